#!/bin/bash
# Fault injection: the commands below are run with the N-th allocation, the N-th call to the system, and
# all of those from the N-th on failing (tests/shim/faults.c), for N = 1, 2, ... until nothing fails.
# Each run must end in time with an exit code of its own, either with the output of an undisturbed run
# or with a message and without any output; nothing else may be left, and under AddressSanitizer no leak.
# The ordinary run takes a part, which the table tells; NTRACE_TEST_FULL=1 takes every N.
# Usage: BUILD=build tests/faults/run.sh [command...]      without one all of them, NTRACE_TEST_JOBS=N at once
cd "$(dirname "$0")/../.." || exit 3
TOP=$PWD
BUILD=$(realpath "${BUILD:-build}")
export PATH=$BUILD/bin:$PATH LC_ALL=C
full=${NTRACE_TEST_FULL:-} inside=${NTRACE_TEST_INSIDE:-} # a virtual device is there
[ -n "$inside" ] || unset NTRACE_DEVICE_ROOT
unset NTRACE_SOCKET

# name   output   ordinary run: the first N, then every   command
# An output is `tree` (a file or directory $out, the same bytes each time), `text` (standard output), `cut` (a
# recording in $out) or `trace` (a directory $out that `record` makes).  The longest stands first.
rows() {
	cat <<-'END'
	record      trace  20 13   ntrace record -q --strict -o $out -- $BUILD/workloads/inference --executions 2
	record-dev  trace  3 97    ntrace record -q --strict --device -o $out -- $BUILD/workloads/inference --executions 2
	replay      tree   40 7    ntrace replay -q $rec -o $out
	replay-v1   tree   5 29    ntrace replay -q $old -o $out
	cut         cut    40 7    ntrace rec cut -q $rec -o $out --from 0
	info        text   40 7    ntrace rec info $rec
	info-json   text   10 17   ntrace rec info --json $rec
	verify      text   10 17   ntrace rec verify $rec
	dump        text   20 67   ntrace dump $files/ntrace.pb
	dump-text   text   5 149   ntrace dump --text $files/ntrace.pb
	dump-info   text   40 7    ntrace dump $files/trace_info.pb
	dump-ntff   text   60 7    ntrace dump $TOP/tests/unit/golden/sample.ntff
	dump-ntff-t text   60 7    ntrace dump --text $TOP/tests/unit/golden/sample.ntff
	diff        text   40 7    ntrace diff $merged $merged
	diff-other  text   10 17   ntrace diff --json --ignore-times $merged $other
	summary     text   40 7    ntrace summary $merged
	summary-rec text   10 17   ntrace summary --json $rec
	salvage     text   40 7    ntrace salvage -q $rec -o $merged
	export      tree   40 7    ntrace export -q -o $out $merged
	export-rec  tree   10 17   ntrace export -q -o $out $rec
	verify-file text   40 7    ntrace verify $perfetto
	END
}

passed=0 failed=0 skipped=0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
dir=$tmp/dir out=$tmp/dir/out
rec=$TOP/tests/replay/recordings/v2 old=$TOP/tests/replay/recordings/v1 merged=$tmp/merged other=$tmp/other
perfetto=$tmp/trace.pftrace
export perfetto rec old merged other out BUILD TOP
# Leaks change the exit code; the preload library comes before the sanitizer's.
export ASAN_OPTIONS=verify_asan_link_order=0:exitcode=99:detect_leaks=1 UBSAN_OPTIONS=exitcode=99

said() { # fault, text
	failed=$((failed + 1))
	[ $failed -gt 40 ] || { echo "failed: faults: $name: $1: $2"; sed 's/^/  /' "$tmp/stderr" | head -12; }
}

sums() {
	[ ! -f "$1" ] || sha256sum <"$1"
	(cd "$1" 2>/dev/null && find . -type f | sort | xargs -r sha256sum)
}

# What the run left that counts: for comparison with the undisturbed one.
result() { # kind
	case $1 in
	tree) sums "$out" ;;
	text) cat "$tmp/stdout" ;;
	cut) ntrace rec verify -q "$out" 2>&1 && ntrace replay -q "$out" -o "$tmp/again" 2>&1 && sums "$tmp/again"
		rm -rf "$tmp/again" ;;
	trace) trace_result ;;
	esac
}
# A whole trace: the files verify, nothing but BLIND is missing from it.
trace_result() {
	ntrace rec verify -q "$out" 2>&1
	ntrace replay -q "$out" -o "$tmp/again" 2>&1
	(cd "$out" && find . -type f -printf '%f\n' | sort)
	[ "$(cd "$out" && sha256sum ./*_pid_*/*.pb)" = "$(cd "$tmp/again" && sha256sum ./*_pid_*/*.pb)" ] || echo differs
	ntrace dump "$out"/*_pid_*/ntrace.pb 2>&1 | grep -c '"nrt_execute","timestamp'
	rm -rf "$tmp/again"
}

run() { # fault, command...
	local fault=$1
	shift
	rm -rf "$dir" "$tmp/log"
	mkdir "$dir"
	(cd "$dir" && TMPDIR=$dir LD_PRELOAD=$BUILD/tests/faults.so NTRACE_FAULT=$fault NTRACE_FAULT_LOG=$tmp/log \
		timeout -k 2 60 "$@") >"$tmp/stdout" 2>"$tmp/stderr" </dev/null
	status=$?
}

# Judges the run that just was.
judge() { # fault, kind
	local left
	left=$(find "$dir" -mindepth 1 -maxdepth 1 ! -name out -printf '%f ')
	if grep -qE 'AddressSanitizer|LeakSanitizer|runtime error:' "$tmp/stderr"; then
		said "$1" "a sanitizer says"
	elif [ $status = 124 ] || [ $status = 137 ]; then
		said "$1" "it does not end"
	elif [ -n "$left" ]; then
		said "$1" "it left $left"
	elif [ $status = "$want_status" ]; then
		if [ "$(result "$2")" = "$want" ]; then
			passed=$((passed + 1))
		else
			said "$1" "status $status, and not the output of an undisturbed run: $(result "$2" | diff - <(echo "$want") | sed -n 2p)"
		fi
	elif ! [[ " $codes " == *" $status "* ]]; then
		said "$1" "status $status"
	elif [ $status = 4 ]; then
		said "$1" "status 4: whole data is taken for damaged"
	elif ! grep -qE '^ntrace: .*[a-z]' "$tmp/stderr"; then
		said "$1" "status $status without a message"
	elif grep -qE '^ntrace: .*(: *$|: ;|\(null\)|Success)' "$tmp/stderr"; then
		said "$1" "status $status, and the message says nothing: $(grep '^ntrace:' "$tmp/stderr" | head -1)"
	elif [[ $2 = tree || $2 = cut ]] && [ -e "$out" ]; then
		said "$1" "status $status, and output is left: $(find "$out" | head -5 | tr '\n' ' ')"
	elif [ "$2" = trace ] && ! whole_or_absent; then
		said "$1" "status $status, and half a file is left: $(find "$out" | tr '\n' ' ')"
	else
		passed=$((passed + 1))
	fi
}

# `record` that failed may leave a recording, which can be merged, and directories with all four files.
whole_or_absent() {
	local d
	[ -z "$(find "$out" -name '.*' 2>/dev/null)" ] || return 1
	for d in "$out"/*_pid_*; do
		[ ! -e "$d" ] || [ "$(ls "$d" | wc -l)" = 4 ] || return 1
	done
	[ ! -e "$out" ] || [ -e "$out"/recording/segment-000000.ntrec ] || return 1
	[ ! -e "$out" ] || ntrace rec info "$out" >/dev/null 2>"$tmp/info" || return 1
}

inject() { # name, kind, first, step, command...
	name=$1 kind=$2
	local first=$3 step=$4 mode n
	shift 4
	[ -z "$full" ] || step=1
	run count "$@"
	want_status=$status want=$(result "$kind")
	if grep -q Sanitizer "$tmp/stderr" || { [ $status != 0 ] && [ $status != 1 ]; }; then
		said count "an undisturbed run ends with status $status"
		return
	fi
	for mode in alloc:N file:N file:N+; do
		for ((n = 1; n < 1000000; n += n < first ? 1 : step)); do
			run "${mode/N/$n}" "$@"
			grep -q '^failed' "$tmp/log" 2>/dev/null || break
			judge "${mode/N/$n}: $(sed -n '1s/^failed //p' "$tmp/log")" "$kind"
		done
		[ "$n" != 1 ] || said "$mode" "nothing could be made to fail"
	done
}

if ldd "$BUILD/bin/ntrace" | grep -q libtsan; then
	echo "skipped: faults (a build without ThreadSanitizer, which allows no library before it)"
	echo "0 passed, 0 failed, 1 skipped"
	exit 0
fi
if [ $# = 0 ]; then
	bash tests/beside.sh "${NTRACE_TEST_JOBS:-1}" tests/faults/run.sh $(rows | awk '{ print $1 }')
	exit
fi
codes=$(sed -n 's/^EXIT_CODE([A-Z_]*, \([0-9]*\),.*/\1/p' agent/exit_codes.def | tr '\n' ' ')
ntrace replay -q "$rec" -o "$merged" && ntrace replay -q "$old" -o "$other" &&
	ntrace export -q -o "$perfetto" "$merged" || exit 3
files=$(echo "$merged"/*_pid_*)
export files
main() {
	local name kind first step command p f
	while read -r name kind first step command; do
		[[ " $* " == *" $name "* ]] || continue
		if [ "$kind" = trace ] && [ -z "$inside" ]; then
			if [ "$(id -u)" != 0 ] || [ ! -r /sys/kernel/btf/vmlinux ] || [ ! -w /dev/fuse ]; then
				echo "skipped: faults: $name (root, kernel BTF or /dev/fuse)"
				skipped=$((skipped + 1))
				continue
			fi
			ntrace-vdev -q -- env NTRACE_TEST_INSIDE=1 bash tests/faults/run.sh "$name" >"$tmp/inner" 2>&1
			head -n -1 "$tmp/inner"
			read -r p _ f _ < <(tail -1 "$tmp/inner")
			passed=$((passed + p)) failed=$((failed + f))
			continue
		fi
		inject "$name" "$kind" "$first" "$step" $(eval echo "$command")
	done < <(rows)
	echo "$passed passed, $failed failed, $skipped skipped"
	[ $failed = 0 ]
}
main "$@"; exit # read whole before it runs, so that it may be edited meanwhile
