#!/bin/sh
# Cuts what our BPF programs read out of the type information of a kernel or a module.
# Usage: [BUILD=build] tests/btf/keep.sh FROM TO     FROM: BTF, a vmlinux with it, or a module with DWARF
set -e
[ $# = 2 ] || { echo "usage: tests/btf/keep.sh FROM TO" >&2; exit 2; }
BUILD=${BUILD:-build}
PATH=$PATH:/usr/sbin
from=$1
case $from in
*.ko) # its own BTF is based on the kernel's: what DWARF says stands alone
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	objcopy --remove-section .BTF "$from" "$work/module.ko"
	pahole --btf_encode_detached="$work/btf" "$work/module.ko"
	from=$work/btf
	;;
esac
bpftool gen min_core_btf "$from" "$2" "$BUILD"/bpf/ioctl.bpf.o "$BUILD"/bpf/driver.bpf.o "$BUILD"/bpf/dma.bpf.o
