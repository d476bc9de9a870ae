#!/bin/bash
# Replay tests.  The recordings in recordings/, one per version of the format, must give the files
# that are expected of them.  A recording made now on a virtual device is merged again under other
# conditions, and must give the same bytes.
cd "$(dirname "$0")/../.." || exit 3
BUILD=$(realpath "${BUILD:-build}")
export PATH=$BUILD/bin:$PATH
unset NTRACE_DEVICE_ROOT NTRACE_SOCKET
passed=0 failed=0 skipped=0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

done_with() {
	echo "$passed passed, $failed failed, $skipped skipped"
	[ $failed = 0 ]
	exit
}
skip_all() {
	echo "skipped: replay ($1)"
	skipped=1
	done_with
}
sums() { (cd "$1" && find . -type f ! -path './recording/*' | LC_ALL=C sort | xargs sha256sum); }
check() { # name, status
	if [ "$2" = 0 ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "failed: replay: $1"
	fi
}

for r in tests/replay/recordings/v*; do
	rm -rf "$tmp/again"
	ntrace replay -q "$r" -o "$tmp/again" && sums "$tmp/again" | diff "$r/expected.sha256" -
	check "the expected files from a recording of version ${r##*/v}" $?
	ntrace rec verify -q "$r"
	check "a recording of version ${r##*/v} verifies" $?
	rm -rf "$tmp/again" "$tmp/cut"
	ntrace rec cut -q "$r" -o "$tmp/cut" && ntrace replay -q "$tmp/cut" -o "$tmp/again" &&
		sums "$tmp/again" | grep ntrace.pb >"$tmp/log" && grep ntrace.pb "$r/expected.sha256" | diff - "$tmp/log"
	check "a whole cut of version ${r##*/v} gives the same events" $?
done

# Made by `build/bench/device_rows --write DIR 1200`: a device profile beside the segments.
r=tests/replay/recordings/device
rm -rf "$tmp/again" "$tmp/plain" "$tmp/rec"
ntrace replay -q --device "$r" -o "$tmp/again" && sums "$tmp/again" | diff "$r/expected.sha256" -
check "the expected files from a recording with a device profile" $?
cp -r "$r" "$tmp/rec" && rm "$tmp/rec/device-000000.ntff"
ntrace replay -q "$r" -o "$tmp/plain" && rm -rf "$tmp/again" && ntrace replay -q "$tmp/rec" -o "$tmp/again" &&
	diff <(sums "$tmp/plain") <(sums "$tmp/again")
check "without --device it does not matter whether the profile is there" $?
rm -rf "$tmp/again"
ntrace replay -q --device "$tmp/rec" -o "$tmp/again" 2>"$tmp/log"
[ $? = 4 ] && cmp -s "$tmp"/plain/*/ntrace.pb "$tmp"/again/*/ntrace.pb
check "a missing profile costs its rows, and is told" $?
ntrace export -q --device "$r" -o "$tmp/device.pftrace" && ntrace verify "$tmp/device.pftrace" >"$tmp/log"
check "its Perfetto file is sound" $?

# Of an inspect session whose program was killed: its files come into its own directory.
r=tests/replay/recordings/session
rm -rf "$tmp/leaf"
mkdir "$tmp/leaf" && cp -r "$r" "$tmp/leaf/recording" && rm "$tmp/leaf/recording/expected.sha256"
ntrace salvage -q "$tmp/leaf" && sums "$tmp/leaf" | diff "$r/expected.sha256" -
check "the expected files from the recording of a session" $?
rm -rf "$tmp/again"
ntrace replay -q "$r" -o "$tmp/again" 2>"$tmp/log"
[ $? = 4 ] && (cd "$tmp/leaf" && cat ntrace.pb trace_info.pb host_mem.pb) |
	cmp - <(cd "$tmp"/again/*_pid_* && cat ntrace.pb trace_info.pb host_mem.pb)
check "replay gives the same bytes, in a directory of the process" $?

[ "$(id -u)" = 0 ] || skip_all root
[ -r /sys/kernel/btf/vmlinux ] || skip_all "kernel BTF"
[ -w /dev/fuse ] || skip_all /dev/fuse
ntrace-vdev -q -- ntrace record -q -o "$tmp/live" -- \
	"$BUILD/workloads/inference" --threads 2 --executions 50 >"$tmp/log" 2>&1
status=$?
[ $status = 0 ] || cat "$tmp/log"
check "a recording is made" $status
sums "$tmp/live" >"$tmp/want"
grep -q ntrace.pb "$tmp/want"
check "it has an ntrace.pb" $?

ntrace-vdev -q -- ntrace record -q --device -o "$tmp/inside" -- \
	"$BUILD/workloads/inference" --threads 2 --executions 50 >"$tmp/log" 2>&1 || cat "$tmp/log"
rm -rf "$tmp/again"
ntrace replay -q --device "$tmp/inside" -o "$tmp/again" && diff <(sums "$tmp/inside") <(sums "$tmp/again")
check "a recording with device profiles gives the same bytes again" $?
ntrace dump "$tmp"/again/*/ntrace.pb | grep -q '"pe.add"'
check "and the instructions are in it" $?

# Merges the recording once more, under the conditions of a row, and compares every file.
# program, time zone, locale, umask, directory, command...
again() {
	local program=$1 conditions=${*:2}
	rm -rf "$tmp/again"
	(
		umask "$4"
		cd "$5" && exec env TZ="$2" LC_ALL="$3" "${@:6}" "$program" replay -q "$tmp/live" -o "$tmp/again"
	) 2>"$tmp/log"
	status=$?
	cat "$tmp/log"
	[ $status = 0 ] && sums "$tmp/again" | diff "$tmp/want" -
	check "the same bytes by ${program#"$BUILD/"} with $conditions" $?
}

# Time zone, locale, umask, directory, and a command that changes something more: no randomised
# addresses, memory that is not zero, one CPU, no environment, pid 1.
conditions() {
	cat <<-END
	UTC                C            022  .     env
	Asia/Kolkata       tr_TR.UTF-8  077  /     setarch -R
	America/St_Johns   C.UTF-8      000  /tmp  env MALLOC_PERTURB_=85
	:/no/such/zone     de_DE@euro   027  /     taskset 1
	-                  -            002  /proc env -i TZ=Pacific/Chatham
	XYZ-13:37          ja_JP.eucJP  007  $tmp  unshare --pid --fork
	END
}

# The build under test, and its twins: -O0, -O3, with sanitizers.
for program in "$BUILD/bin/ntrace" ${TWINS-$(ls "$BUILD"/twin/*/bin/ntrace 2>/dev/null)}; do
	while read -r tz lc mask dir how; do
		again "$(realpath "$program")" "$tz" "$lc" "$mask" "$dir" $how
	done < <(conditions)
done

cp -r "$tmp/live/recording" "$tmp/moved"
rm -rf "$tmp/again"
ntrace replay -q "$tmp/moved" -o "$tmp/again" && sums "$tmp/again" | diff "$tmp/want" -
check "the same bytes from a recording that was moved" $?
done_with
