#!/bin/bash
# Runs a script of tests once per argument, several at once.  Prints what each run said, in the order of the
# arguments, and the sum of their counts.
# Usage: tests/beside.sh JOBS SCRIPT ARGUMENT...
jobs=$1 script=$2
shift 2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
printf '%s\0' "$@" | awk -v RS='\0' -v ORS='\0' '{ print NR; print }' |
	script=$script tmp=$tmp xargs -0 -n 2 -P "$jobs" bash -c 'bash "$script" "$2" >"$tmp/$1" 2>&1; echo $? >"$tmp/$1.status"' -
passed=0 failed=0 skipped=0 i=0
for argument in "$@"; do
	i=$((i + 1))
	last=$(tail -1 "$tmp/$i" 2>/dev/null)
	if [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
		head -n -1 "$tmp/$i"
		passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2])) skipped=$((skipped + BASH_REMATCH[3]))
		[ "$(cat "$tmp/$i.status")" = 0 ] || [ "${BASH_REMATCH[2]}" != 0 ] || failed=$((failed + 1))
	else
		cat "$tmp/$i"
		echo "failed: $script $argument ended with status $(cat "$tmp/$i.status") and no count"
		failed=$((failed + 1))
	fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
