#!/bin/sh
# Runs every suite that this machine and user can run; prints their lines and the sum.
# Usage: BUILD=build tests/run.sh [suite...]     suites: unit cli replay fuzz faults conformance
#   NTRACE_TEST_JOBS=N   this many tests of a suite at once
#   CLI_JOBS=N           of the suite cli
cd "$(dirname "$0")/.." || exit 3
BUILD=${BUILD:-build}
mkdir -p "$BUILD"
export BUILD
# Many tests wait for most of their time.
export NTRACE_TEST_JOBS="${NTRACE_TEST_JOBS:-$(($(nproc) + 1))}"
passed=0 failed=0 skipped=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# A sanitizer's finding in any process of any test counts, also where the test does not look.
findings=$(realpath "$BUILD")/sanitizer
rm -rf "$findings" && mkdir -p "$findings"
export ASAN_OPTIONS="log_path=$findings/log${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
# (die_after_fork: a library with a thread of its own is forked by its tests.)
export TSAN_OPTIONS="die_after_fork=0:suppressions=$PWD/tests/tsan.supp:log_path=$findings/log${TSAN_OPTIONS:+:$TSAN_OPTIONS}"
export UBSAN_OPTIONS="log_path=$findings/log:print_stacktrace=1${UBSAN_OPTIONS:+:$UBSAN_OPTIONS}"

# Which tests ran and how they ended, for the suite conformance, which judges the suites before it.
NTRACE_TEST_RAN=$(realpath "$BUILD")/tests/ran
mkdir -p "$BUILD/tests" && rm -f "$NTRACE_TEST_RAN"
export NTRACE_TEST_RAN

suite() { # name, command...
	name=$1
	shift
	echo "== $name"
	"$@" >"$log" 2>&1
	status=$?
	cat "$log"
	last=$(grep -aE '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" | tail -1)
	if [ -z "$last" ]; then
		echo "failed: $name ended with status $status and no count"
		failed=$((failed + 1))
		return
	fi
	# shellcheck disable=SC2086
	set -- $last
	passed=$((passed + $1)) failed=$((failed + $3)) skipped=$((skipped + $5))
	[ $status = 0 ] || [ "$3" != 0 ] || failed=$((failed + 1))
}

for s in ${*:-unit cli replay fuzz faults conformance}; do
	case $s in
	unit) suite unit "$BUILD/tests/unit" ${UNIT_FILTER:+"$UNIT_FILTER"} ;;
	cli) suite cli env NTRACE_TEST_JOBS="${CLI_JOBS:-$NTRACE_TEST_JOBS}" bash tests/cli/run.sh ;;
	replay) suite replay bash tests/replay/run.sh ;;
	faults) suite faults bash tests/faults/run.sh ;;
	fuzz) suite fuzz bash tests/fuzz/run.sh ;;
	conformance) suite conformance bash tests/conformance/run.sh ;;
	*) echo "no suite named $s" >&2; exit 2 ;;
	esac
done
# (LeakSanitizer remarks of a thread that it did not see stop that leaks it reports may be false; without a
# report that is no finding.)
for f in "$findings"/*; do
	grep -qsv 'Running thread [0-9]* was not suspended. False leaks are possible.$' "$f" || continue
	echo "failed: a sanitizer says:"
	head -40 "$f"
	failed=$((failed + 1))
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
