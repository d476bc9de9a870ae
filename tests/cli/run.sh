#!/bin/bash
# Command-line tests: a folder per case, tests/cli/<area>/<case>/, with
#   cmd      bash script, run with `set -u` in an empty directory; $T is the case's folder, $TOP the
#            top of the tree; the built programs come first in PATH, $WORKLOADS holds the workloads
#   stdout, stderr   what must come out (left out: not compared)
#   exit     the status (left out: 0)
#   needs    words: root bpf fuse user preload        (left out: nothing)
#   filter   sed script applied to both outputs before they are compared
# Usage: tests/cli/run.sh [case-folder...]      without one all of them, NTRACE_TEST_JOBS=N at once
# With NTRACE_TEST_RAN=FILE it adds a line per case to that file: outcome, tab, `cli: <area>/<case>`; of a
# skipped one a tab and what is missing.
cd "$(dirname "$0")/../.." || exit 3
TOP=$PWD
BUILD=$(realpath "${BUILD:-build}")
export TOP BUILD WORKLOADS=$BUILD/workloads PATH=$BUILD/bin:$PATH LC_ALL=C
unset NTRACE_DEVICE_ROOT NTRACE_SOCKET
export -n NTRACE_TEST_RAN NTRACE_TEST_JOBS # they are none of the cases', which show what variables there are
passed=0 failed=0 skipped=0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

missing() { # words of `needs` -> the first thing that is missing
	for word in "$@"; do
		case $word in
		root) [ "$(id -u)" = 0 ] || { echo root; return; } ;;
		bpf) [ -r /sys/kernel/btf/vmlinux ] || { echo "kernel BTF"; return; } ;;
		fuse) [ -w /dev/fuse ] || { echo /dev/fuse; return; } ;;
		user) command -v setpriv >/dev/null || { echo setpriv; return; } ;;
		preload) # of the runtime into a program without a sanitizer
			! ldd "$BUILD/lib/libnrt.so.1" | grep -q libtsan ||
				{ echo "a build without ThreadSanitizer, which cannot be loaded into others"; return; } ;;
		git) git -C "$TOP" rev-parse HEAD >/dev/null 2>&1 || { echo "a git checkout"; return; } ;;
		*) echo "a meaning of '$word' in needs"; return ;;
		esac
	done
}

ran() { # outcome, case, what is missing
	[ -z "${NTRACE_TEST_RAN:-}" ] ||
		printf '%s\tcli: %s%s\n' "$1" "${2#tests/cli/}" "${3:+$'\t'$3}" >>"$NTRACE_TEST_RAN"
}

compare() { # case, which
	[ -e "$1/$2" ] || return 0
	if [ -e "$1/filter" ]; then
		sed -E -i -f "$1/filter" "$tmp/$2"
	fi
	diff -u --label "$2 expected" --label "$2 got" "$1/$2" "$tmp/$2"
}

if [ $# = 0 ]; then
	mapfile -t cases < <(find tests/cli -name cmd -printf '%h\n' | sort)
	NTRACE_TEST_RAN=${NTRACE_TEST_RAN:-} bash tests/beside.sh "${NTRACE_TEST_JOBS:-1}" tests/cli/run.sh "${cases[@]}"
	exit
fi
for c in "$@"; do
	lacks=$(missing $(cat "$c/needs" 2>/dev/null))
	if [ -n "$lacks" ]; then
		echo "skipped: ${c#tests/cli/} ($lacks)"
		skipped=$((skipped + 1))
		ran skipped "$c" "$lacks"
		continue
	fi
	rm -rf "$tmp/dir" && mkdir "$tmp/dir"
	(cd "$tmp/dir" && T=$TOP/$c timeout -k 5 120 bash -u "$TOP/$c/cmd") >"$tmp/stdout" 2>"$tmp/stderr" </dev/null
	status=$?
	want=$(cat "$c/exit" 2>/dev/null || echo 0)
	report=$(compare "$c" stdout; compare "$c" stderr)
	if [ "$status" = "$want" ] && [ -z "$report" ]; then
		passed=$((passed + 1))
		ran passed "$c"
		continue
	fi
	failed=$((failed + 1))
	ran failed "$c"
	echo "failed: ${c#tests/cli/}: status $status, expected $want"
	[ -z "$report" ] || echo "$report" | sed 's/^/  /'
	[ -e "$c/stderr" ] || sed 's/^/  stderr: /' "$tmp/stderr" | tail -15
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
