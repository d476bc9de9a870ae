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
# A header is compiled with each object: a branch counts as taken if one of them took it.
awk '
FNR == 1 { keep = 0 }
/^ *-: *0:Source:/ { keep = /Source:bpf\//; source = $0; sub(".*Source:", "", source) }
!keep { next }
/^ *[0-9#=*-]+:/ { split($0, part, ":"); line = part[2] + 0; text[source ":" line] = substr($0, index($0, part[2] ":") + length(part[2]) + 1); n = 0 }
/^branch / {
	key = source ":" line ":" n++
	if (!(key in of)) { of[key] = source; at[key] = source ":" line; order[++keys] = key }
	if ($4 + 0 > 0 && $0 !~ /never executed/) taken[key] = 1
}
END {
	for (i = 1; i <= keys; i++) { all[of[order[i]]]++; hit[of[order[i]]] += order[i] in taken }
	for (f in all) printf "%-20s %3d of %3d branches taken (%.1f %%)\n", f, hit[f], all[f], 100 * hit[f] / all[f]
	for (i = 1; i <= keys; i++) if (!(order[i] in taken)) print "not taken: " at[order[i]] ":" text[at[order[i]]]
}' "$dir"/*.gcov
