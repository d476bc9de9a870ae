#!/bin/bash
# Makes the base of a guest's file system: busybox, our programs with the libraries they need, modules.
# The libraries are found by ldd; a build with a sanitizer is too big for a guest.
# Usage: BUILD=build tests/vm/initramfs.sh KERNEL-DIRECTORY OUTPUT.cpio
cd "$(dirname "$0")/../.." || exit 3
BUILD=${BUILD:-build}
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/{bin,sbin,usr/bin,usr/sbin,lib64,etc,proc,sys,dev,tmp,run,root,vm,lib/modules} || exit 1
ln -s /lib "$root/usr/lib" && chmod 1777 "$root/tmp"

programs() { # what is there of it
	local p
	for p in "$BUILD"/bin/ntrace "$BUILD"/bin/ntrace-vdev "$BUILD"/workloads/inference "$BUILD"/vm/programs/*; do
		[ ! -x "$p" ] || echo "$p"
	done
	for p in setpriv prlimit capsh unshare bpftool; do
		PATH=$PATH:/usr/sbin:/sbin command -v $p
	done
}
for p in $(programs); do
	cp -L "$p" "$root/bin/" || exit 1
	for l in $(ldd "$p" 2>/dev/null | grep -o '/[^ ]*'); do
		mkdir -p "$root/$(dirname "$l")"
		[ -e "$root/$l" ] || cp -L "$l" "$root/$l" || exit 1
	done
done
# Threads that are cancelled need it, and no program names it.
for l in /lib/x86_64-linux-gnu/libgcc_s.so.1 /usr/lib/x86_64-linux-gnu/libgcc_s.so.1; do
	[ ! -e $l ] || { mkdir -p "$root/lib" && cp -L $l "$root/lib/"; }
done
# A workload finds the library beside itself, in ../lib.
[ ! -e "$BUILD/lib/libnrt.so.1" ] || cp -L "$BUILD/lib/libnrt.so.1" "$root/lib/" || exit 1
busybox=$(command -v busybox) || { echo "vm: busybox is missing" >&2; exit 1; }
cp -L "$busybox" "$root/bin/busybox"
for a in $("$busybox" --list); do
	[ -e "$root/bin/$a" ] || ln -s busybox "$root/bin/$a"
done
cp "$1"/modules/*.ko "$root/lib/modules/" 2>/dev/null
cp tests/vm/guest/* "$root/vm/" && mv "$root/vm/init" "$root/init" && chmod 755 "$root/init" || exit 1
find "$root/bin" "$root/lib" -type f ! -name busybox ! -name '*.ko' -exec strip --strip-unneeded {} + 2>/dev/null
(cd "$root" && find . -mindepth 1 | cpio --quiet -o -H newc -R 0:0) >"$2.tmp" && mv "$2.tmp" "$2"
