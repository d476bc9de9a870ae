#!/bin/sh
# The demo: a private virtual device, a workload on it, and what ntrace recorded.
# Leaves only its output directory.  Usage: BUILD=build tests/demo.sh
cd "$(dirname "$0")/.." || exit 3
BUILD=${BUILD:-build}
PATH=$PWD/$BUILD/bin:$PATH
out=$BUILD/demo
say() { printf '\n== %s\n' "$*"; }

if [ "$(id -u)" != 0 ]; then
	echo "demo: recording ioctls with eBPF needs root; run: sudo make demo" >&2
	exit 3
fi
rm -rf "$out"

say "ntrace record -o $out -- inference, on a VIRTUAL device of 2 NeuronCores"
ntrace-vdev --devices 1 --cores 2 -- \
	ntrace record -o "$out" -- "$BUILD/workloads/inference" --threads 2 --executions 20
status=$?
[ $status = 0 ] || { echo "demo: recording failed with status $status" >&2; exit $status; }

leaf=$(echo "$out"/*_pid_*)
say "what is there"
find "$out" -type f | sort | while read -r f; do printf '%9d  %s\n' "$(stat -c %s "$f")" "$f"; done

say "ten lines of the timeline (ntrace dump --text $leaf/ntrace.pb)"
ntrace dump --text "$leaf/ntrace.pb" | grep -n '' | grep -A9 'nrt_execute' | sed 's/^[0-9]*[:-]//' | head -10

say "how to go on"
cat <<END
ntrace dump $leaf/ntrace.pb | head          the same as JSON lines
ntrace replay $out -o /tmp/again            the same bytes from the recording
ntrace-vdev -- ntrace record -- ./your-program
ntrace --help; man docs/man/ntrace.1
END
