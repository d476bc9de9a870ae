#!/bin/sh
# Runs every benchmark of tests/bench/; each prints its figures and ratios against a peer measured in
# the same run.  Usage: BUILD=build tests/bench/run.sh
cd "$(dirname "$0")/../.." || exit 3
BUILD=${BUILD:-build}
export BUILD
status=0
for b in "$BUILD"/bench/*; do
	[ -x "$b" ] && [ ! -d "$b" ] || continue
	case $b in *.d) continue ;; esac
	printf '== %s\n' "$(basename "$b")"
	"$b"
	s=$?
	[ $s = 77 ] && continue # said what it lacks
	[ $s = 0 ] || { echo "bench: $b ended with status $s"; status=1; }
done
exit $status
