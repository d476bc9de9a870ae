#!/bin/bash
# Functions for the scripts of tests/vm, to be read with `.` at the top of the tree.

vm_missing() { # prints what this machine lacks for guests; false if nothing
	local p found=1
	for p in qemu-system-x86_64:qemu-system-x86 busybox:busybox-static cpio:cpio zstd:zstd xz:xz-utils; do
		command -v "${p%%:*}" >/dev/null || { echo "${p#*:}"; found=0; }
	done
	return $found
}

# Boots once.  The job is WORK/job, which the guest sees as /job; leaves WORK/console and WORK/result.
# False if the machine did not switch itself off in time.
vm_boot() { # kernel directory, work directory, megabytes, seconds, kernel arguments
	local base=$BUILD/vm/base-${1##*/}.cpio
	vm_base "$1" "$base" || return 1
	{
		cat "$base"
		(cd "$2" && find job $([ ! -e lib ] || echo lib) | cpio --quiet -o -H newc -R 0:0)
	} >"$2/initramfs" || return 1
	timeout -k 5 "$4" nice qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot \
		-machine pc,accel=tcg -cpu max,la57=off -smp 2 -m "$3" -kernel "$1/bzImage" -initrd "$2/initramfs" \
		-serial "file:$2/console" -serial "file:$2/result" \
		-append "console=ttyS0 loglevel=5 panic=-1 oops=panic softlockup_panic=1 mitigations=off \
random.trust_cpu=on no_timer_check tsc=reliable apparmor=0 audit=0 cryptomgr.notests $5" \
		</dev/null >"$2/qemu.log" 2>&1
	local status=$?
	rm -f "$2/initramfs"
	[ $status = 0 ] && grep -q '^vm: job ended' "$2/result"
}

# The base is made anew when a program or a script in it is newer.
vm_base() { # kernel directory, output
	[ -s "$2" ] && [ -z "$(find tests/vm/guest tests/vm/initramfs.sh "$BUILD/bin" "$BUILD/lib" \
		"$BUILD/vm/programs" "$BUILD/workloads/inference" "$1/ready" -newer "$2" 2>/dev/null)" ] ||
		BUILD=$BUILD bash tests/vm/initramfs.sh "$1" "$2"
}

# What the kernel says when it is in trouble.
VM_TROUBLE='Kernel panic|Oops|BUG:|WARNING: CPU|soft lockup|hard LOCKUP|hung_task|blocked for more than|detected stall|general protection|KASAN|UBSAN'
vm_trouble() { # work directory: the lines, since the last test began
	tr -d '\r' <"$1/console" | awk -v trouble="$VM_TROUBLE" '/^vm: begin / { n = 0 } $0 ~ trouble && n < 5 { line[n++] = $0 }
		END { for (i = 0; i < n; i++) print line[i] }'
	grep -av '^$' "$1/qemu.log" | head -5
}
