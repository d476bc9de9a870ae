#!/bin/bash
# Short runs of each program under valgrind: no error, no leak at exit.  Needs root for the recording.
# Usage: BUILD=build tests/valgrind.sh
cd "$(dirname "$0")/.." || exit 3
BUILD=$(realpath "${BUILD:-build}")
export PATH=$BUILD/bin:$PATH
unset NTRACE_DEVICE_ROOT NTRACE_SOCKET
passed=0 failed=0 skipped=0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
vg="valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,indirect,possible --show-leak-kinds=definite,indirect,possible"

check() { # name, wanted status, command...
	name=$1 want=$2
	shift 2
	"$@" >"$tmp/log" 2>&1
	status=$?
	if [ $status = "$want" ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "failed: valgrind: $name: status $status, expected $want"
		tail -30 "$tmp/log" | sed 's/^/  /'
	fi
}
if ! command -v valgrind >/dev/null; then
	echo "skipped: valgrind (valgrind is not installed)"
	echo "0 passed, 0 failed, 1 skipped"
	exit 0
fi
check "ntrace --help" 0 $vg ntrace --help
check "ntrace replay of nothing" 3 $vg ntrace replay "$tmp/none" -o "$tmp/x"
if [ "$(id -u)" = 0 ] && [ -w /dev/fuse ]; then
	check "a workload on a virtual device" 0 ntrace-vdev -q -- \
		$vg "$BUILD/workloads/inference" --threads 2 --executions 5
	# Recording itself cannot run here: valgrind 3.19 knows neither fsopen(2) nor the bpf(2) commands
	# of this kernel.  Its exits are held clean by LeakSanitizer in the asan part.
	check "a recording" 0 ntrace-vdev -q -- \
		ntrace record -q -o "$tmp/out" -- "$BUILD/workloads/inference" --executions 5
	check "ntrace rec info" 0 $vg ntrace rec info "$tmp/out"
	check "ntrace replay" 0 $vg ntrace replay -q "$tmp/out" -o "$tmp/again"
	check "ntrace diff" 0 $vg ntrace diff "$tmp"/out/*_pid_* "$tmp"/again/*_pid_*
	for f in "$tmp"/out/*_pid_*/*.pb; do
		check "ntrace dump $(basename "$f")" 0 $vg ntrace dump "$f"
	done
	check "ntrace rec cut" 0 $vg ntrace rec cut -q "$tmp/out" -o "$tmp/cut"
	check "ntrace summary of files" 0 $vg ntrace summary "$tmp"/out/*_pid_*
	check "ntrace summary of a recording" 0 $vg ntrace summary --json "$tmp/out/recording"
	check "ntrace export" 0 $vg ntrace export -q "$tmp/out/recording" -o "$tmp/t.pftrace"
	check "ntrace verify" 0 $vg ntrace verify "$tmp/t.pftrace"
	check "ntrace-vdev" 0 $vg --child-silent-after-fork=yes ntrace-vdev -q -- \
		"$BUILD/workloads/inference" --executions 5
else
	echo "skipped: valgrind of record (root and /dev/fuse)"
	skipped=$((skipped + 1))
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
