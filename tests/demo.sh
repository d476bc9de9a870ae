#!/bin/sh
# The demo: a private virtual device, a workload on it, and what ntrace recorded.
# Leaves only its output directory, and makes that anew.  Usage: BUILD=build tests/demo.sh [DIR]     default: build/demo
cd "$(dirname "$0")/.." || exit 3
BUILD=${BUILD:-build}
case $BUILD in
/*) bin=$BUILD/bin ;;
*) bin=$PWD/$BUILD/bin ;;
esac
PATH=$bin:$PATH
out=${1:-$BUILD/demo}
say() { printf '\n== %s\n' "$*"; }

if [ "$(id -u)" != 0 ]; then
	echo "demo: recording ioctls with eBPF needs root; run: sudo make demo" >&2
	exit 3
fi
rm -rf "$out"

say "ntrace record -o $out -- inference, on a VIRTUAL device of 4 NeuronCores, 2 logical ones"
ntrace-vdev --devices 1 --cores 4 -- \
	ntrace record -o "$out" -- "$BUILD/workloads/inference" --threads 2 --executions 20
status=$?
[ $status = 0 ] || { echo "demo: recording failed with status $status" >&2; exit $status; }

leaf=$(echo "$out"/*_pid_*)
say "what is there"
find "$out" -type f | sort | while read -r f; do printf '%9d  %s\n' "$(stat -c %s "$f")" "$f"; done

say "the summary (ntrace summary $out)"
ntrace summary "$out" || exit

say "ten lines of the timeline (ntrace dump --text $leaf/ntrace.pb)"
ntrace dump --text "$leaf/ntrace.pb" | grep -n '' | grep -A9 'nrt_execute' | sed 's/^[0-9]*[:-]//' | head -10

own=$(dirname "$out")
free() { # a name that nothing has
	name=$own/$1 n=2
	while [ -e "$name" ]; do name=$own/$1_$n n=$((n + 1)); done
	echo "$name"
}
say "how to go on, from $PWD"
cat <<END
PATH=$bin:\$PATH
# the same as JSON lines
ntrace dump $leaf/ntrace.pb | head
# the same bytes from the recording
ntrace replay $out -o $(free again)
# your own program in place of inference; what is below $out is deleted by the next demo
ntrace-vdev -- ntrace record -o $(free mine) -- $BUILD/workloads/inference --executions 3
# what each unit of the cores did inside of the runs, too
ntrace-vdev -- ntrace record --device -o $(free inside) -- $BUILD/workloads/inference --executions 3
# all commands; the manual is docs/man/ntrace.1
ntrace --help
END
