#!/bin/bash
# Runs each fuzz target once over its corpus (tests/fuzz/corpus/<target>/), with the build's sanitizers.
# Usage: BUILD=build tests/fuzz/run.sh [target...]
cd "$(dirname "$0")/../.." || exit 3
BUILD=${BUILD:-build}
passed=0 failed=0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(cd tests/fuzz && ls ./*_fuzz.c | sed 's,.*/\(.*\)_fuzz.c,\1,')
for t in "${targets[@]}"; do
	mapfile -t inputs < <(find "tests/fuzz/corpus/$t" -type f | sort)
	if [ ${#inputs[@]} = 0 ]; then
		echo "failed: fuzz: $t has no corpus"
		failed=$((failed + 1))
	elif TMPDIR=$tmp timeout -k 5 300 "$BUILD/tests/fuzz/$t" "${inputs[@]}" >"$tmp/log" 2>"$tmp/err"; then
		passed=$((passed + ${#inputs[@]}))
	else
		status=$?
		failed=$((failed + 1))
		echo "failed: fuzz: $(tail -1 "$tmp/log"): status $status"
		head -30 "$tmp/err" | sed 's/^/  /'
	fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
