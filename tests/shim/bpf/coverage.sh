#!/bin/sh
# Runs the tests that drive the BPF programs on the host, and says which of their branches were taken; those that
# were not follow, one a line.  Usage: BUILD=build tests/shim/bpf/coverage.sh
cd "$(dirname "$0")/../../.." || exit 3
BUILD=${BUILD:-build}
dir=$(realpath "$BUILD")/bpfcov
rm -f "$dir"/*.gcda "$dir"/*.gcov
"$dir/unit" '[bpf-host]' >"$dir/unit.log" 2>&1 || { cat "$dir/unit.log"; exit 1; }
for o in "$dir"/*.gcda; do
	gcov --branch-probabilities --branch-counts --object-file "$o" "$o" >>"$dir/gcov.log" 2>&1
	# One source of several programs: each tells of its own copy.
	for g in *.gcov; do
		[ -f "$g" ] || continue
		mv "$g" "$dir/$(basename "$o" .gcda)-$g"
	done
done
awk '
FNR == 1 { name = FILENAME; sub(".*/", "", name); sub(".gcov$", "", name); line = 0; keep = 0 }
/^ *-: *0:Source:/ { keep = /Source:bpf\// }
!keep { next }
/^ *[0-9#=*-]+:/ { split($0, part, ":"); line = part[2] + 0; text = part[3]; for (i = 4; i in part; i++) text = text ":" part[i]; delete part }
/^branch / { all[name]++; if ($4 + 0 > 0 && $0 !~ /never executed/) taken[name]++; else missed[++n] = name ":" line ": " text }
END {
	for (f in all) printf "%-28s %3d of %3d branches taken (%.1f %%)\n", f, taken[f], all[f], 100 * taken[f] / all[f]
	for (i = 1; i <= n; i++) print "not taken: " missed[i]
}' "$dir"/*.gcov
