#!/bin/bash
# Runs fuzz targets with libFuzzer, one after another, FUZZ_SECONDS each (none given: it only says how).
# New inputs go to $BUILD/corpus/<target>, findings to $BUILD/findings/<target>-*, logs beside them.
# Usage: BUILD=build/fuzz FUZZ_SECONDS=N tests/fuzz/fuzz.sh [target...]     `make fuzz` builds them.
# A minimised corpus:  $BUILD/tests/libfuzzer/T -merge=1 tests/fuzz/corpus/T $BUILD/corpus/T
cd "$(dirname "$0")/../.." || exit 3
BUILD=${BUILD:-build/fuzz}
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(ls tests/fuzz/corpus)
if [ -z "${FUZZ_SECONDS:-}" ]; then
	echo "built: $BUILD/tests/libfuzzer/{$(IFS=,; echo "${targets[*]}")}; make fuzz FUZZ_SECONDS=N runs them"
	exit 0
fi
passed=0 failed=0
for t in "${targets[@]}"; do
	mkdir -p "$BUILD/corpus/$t" "$BUILD/findings"
	options=(-max_total_time="$FUZZ_SECONDS" -timeout=20 -rss_limit_mb=1500 -print_final_stats=1
		-artifact_prefix="$BUILD/findings/$t-" -max_len=8192)
	[ ! -e "tests/fuzz/$t.dict" ] || options+=(-dict="tests/fuzz/$t.dict")
	if "$BUILD/tests/libfuzzer/$t" "${options[@]}" "$BUILD/corpus/$t" "tests/fuzz/corpus/$t" \
		>"$BUILD/findings/$t.log" 2>&1; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "failed: fuzz: $t found something:"
		grep -E 'ERROR|SUMMARY|not true|Test unit written' "$BUILD/findings/$t.log"
	fi
	echo "$t: $(grep -E '#[0-9]+.*(DONE|cov:)' "$BUILD/findings/$t.log" | tail -1)"
done
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
