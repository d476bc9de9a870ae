#!/bin/bash
# Boots a kernel in QEMU without KVM and runs one command in it, as root, on a console.
# Usage: BUILD=build tests/vm/boot.sh [-k KERNEL] [-t SECONDS] [-m MEGABYTES] [-a 'KERNEL ARGUMENTS'] [-f FILE]... COMMAND
#   -f FILE   put this file (or directory) into the guest below /job; may be given often
# The command sees descriptor 3, whose text lands in build/vm/boot/<kernel>/result; the console's is printed.
# Exit: 0 job ended with 0, 1 it did not, 2 the guest died or hung, 3 something is missing.
cd "$(dirname "$0")/../.." || exit 3
BUILD=${BUILD:-build}
name=6.1 seconds=120 memory=512 args= files=()
while getopts k:t:m:a:f: o; do
	case $o in
	k) name=$OPTARG ;;
	t) seconds=$OPTARG ;;
	m) memory=$OPTARG ;;
	a) args=$OPTARG ;;
	f) files+=("$OPTARG") ;;
	*) exit 3 ;;
	esac
done
shift $((OPTIND - 1))
. tests/vm/guest.sh
vm_missing && exit 3
kernel=$(bash tests/vm/kernels.sh "$name" | cut -d' ' -f2)
[ -n "$kernel" ] || exit 3
work=$BUILD/vm/boot/$name
rm -rf "$work" && mkdir -p "$work/job" || exit 3
printf '%s\n' "$*" >"$work/job/run"
[ ${#files[@]} = 0 ] || cp -r "${files[@]}" "$work/job/" || exit 3
vm_boot "$kernel" "$work" "$memory" "$seconds" "$args"
status=$?
tr -d '\r' <"$work/console"
vm_trouble "$work" >&2
[ $status = 0 ] || exit 2
grep -q 'vm: job ended with status 0' "$work/result"
