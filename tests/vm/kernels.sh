#!/bin/bash
# Fetches the kernels that tests/vm/kernels names from Debian's packages and unpacks what a guest and a
# module's build need.  Nothing is installed: the host's own kernel and boot files stay as they are.
# Usage: BUILD=build tests/vm/kernels.sh [name...]     prints `name directory release` per kernel, which holds
#   bzImage      the image as it is booted
#   vmlinux      the ELF file unpacked from it, with the kernel's BTF
#   release      what `uname -r` says in the guest
#   headers/     for `make -C headers M=...`; with vmlinux in it, so that the build makes BTF of a module
#   modules/     modules of the kernel that tests need, unpacked
# Exit 1 and a line on stderr if one cannot be had.
cd "$(dirname "$0")/../.." || exit 3
BUILD=${BUILD:-build}
mkdir -p "$BUILD/vm/kernels" "$BUILD/vm/debs" || exit 1
dir=$(realpath "$BUILD/vm")
MODULES="fuse.ko"
fail() { echo "vm: $*" >&2; exit 1; }

real_package() { # meta-package -> the package that it stands for now
	apt-cache depends --important "$1" 2>/dev/null | awk '$1 == "Depends:" && $2 ~ /^linux-/ { print $2; exit }'
}
updated=
fetch() { # package -> path of its .deb
	local have
	have=$(find "$dir/debs" -name "$1_*.deb" | sort -V | tail -1)
	if [ -z "$have" ]; then
		(cd "$dir/debs" && apt-get -o APT::Sandbox::User=root -q download "$1" >fetch.log 2>&1) ||
			{ tail -3 "$dir/debs/fetch.log" >&2; return 1; }
		have=$(find "$dir/debs" -name "$1_*.deb" | sort -V | tail -1)
	fi
	echo "$have"
}
unpack() { # .deb, directory, tar's patterns...
	local deb=$1 to=$2
	shift 2
	mkdir -p "$to" && dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$to" --wildcards "$@"
}
# The compressed kernel lies somewhere in the image: each place that looks like the start of one is tried.
unpack_image() { # bzImage, vmlinux
	local at name magic program
	while read -r name magic program; do
		for at in $(LC_ALL=C grep -abo -P "$magic" "$1" | cut -d: -f1); do
			tail -c +$((at + 1)) "$1" | $program >"$2" 2>/dev/null
			[ "$(head -c 4 "$2" | tail -c 3)" != ELF ] || return 0
		done
	done <<-'END'
		xz    \xFD7zXZ\x00           xz -dc --single-stream
		zstd  \x28\xB5\x2F\xFD       zstd -dc
		gzip  \x1F\x8B\x08           gzip -dc
	END
	return 1
}

headers() { # package, directory: what it and the packages it needs hold, with its absolute paths made ours
	local p deb tree=$2/tree
	for p in "$1" $(apt-cache depends --important "$1" | awk '$2 ~ /^linux-(headers-.*-common|kbuild-)/ { print $2 }'); do
		deb=$(fetch "$p") && unpack "$deb" "$tree" './usr/*' || return 1
	done
	sed -i "s,/usr/src/,$tree/usr/src/,g" "$tree/usr/src/$1/Makefile" "$tree/usr/src/$1/.kernelvariables"
	cp "$2/vmlinux" "$tree/usr/src/$1/vmlinux" && ln -sfn "tree/usr/src/$1" "$2/headers" || return 1
	# Not every package has the program that fills in tables of BTF numbers; our modules have no such table.
	p=$2/headers/tools/bpf/resolve_btfids/resolve_btfids
	[ -e "$p" ] || { mkdir -p "$(dirname "$p")" && printf '#!/bin/sh\n' >"$p" && chmod 755 "$p"; }
}

kernel() { # name, image package, headers package
	local image header release to=$dir/kernels/$1 deb m f
	[ ! -e "$to/ready" ] || { echo "$1 $to $(cat "$to/release")"; return; }
	command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || fail "kernels come from Debian's packages: no apt-get"
	if [ -z "$updated" ] && [ -z "$(real_package "$2")" ]; then
		apt-get -q update >/dev/null 2>&1
		updated=yes
	fi
	image=$(real_package "$2") header=$(real_package "$3")
	[ -n "$image" ] && [ -n "$header" ] || fail "kernel $1: apt has no $2 or no $3"
	rm -rf "$to"
	deb=$(fetch "$image") || { apt-get -q update >/dev/null 2>&1; deb=$(fetch "$image"); } ||
		fail "kernel $1: cannot download $image"
	# (tar complains of what a kernel has built in.)
	unpack "$deb" "$to/image" './boot/*' $(for m in $MODULES; do echo "*/$m*"; done) 2>/dev/null
	release=${image#linux-image-}
	mv "$to/image/boot/vmlinuz-$release" "$to/bzImage" && echo "$release" >"$to/release" || fail "kernel $1: no image in $deb"
	mkdir "$to/modules"
	find "$to/image" -name '*.ko*' | while read -r f; do
		case $f in
		*.xz) xz -dc "$f" >"$to/modules/$(basename "$f" .xz)" ;;
		*) cp "$f" "$to/modules/" ;;
		esac
	done
	rm -rf "$to/image"
	unpack_image "$to/bzImage" "$to/vmlinux" || fail "kernel $1: cannot find the kernel in its image"
	headers "$header" "$to" || fail "kernel $1: cannot unpack $header"
	touch "$to/ready"
	echo "$1 $to $release"
}

while read -r name image header; do
	case " ${*:-$name} " in *" $name "*) kernel "$name" "$image" "$header" || exit 1 ;; esac
done < <(grep -v '^#' tests/vm/kernels)
