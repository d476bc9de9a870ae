#!/bin/bash
# Tests in virtual machines: our programs on Debian's kernels, in QEMU without KVM.
# A test is a directory tests/vm/<name>/ with
#   run      sh script for the guest, run with `set -u` in an empty directory after guest/lib.sh; $T is the
#            test's directory; it ends by printing `RESULT pass|fail|skip text`
#   expect   what it must print before that (left out: not compared)
#   needs    words: fuse module standin standin-<variant>     (left out: nothing)
#   boot     lines: `cmdline ...`, `memory MB`, `timeout SECONDS`, `kernels NAME...`, `long`, `everywhere`
#   host     bash script that is run here before; $OUT is a directory whose files the guest sees in $T
# Tests that boot alike run in one boot, more than ten of them in several; VM_JOBS guests run at once, one per
# processor by default.  tests/vm/deny: those that are not run on a kernel, with the reason.
# Usage: BUILD=build tests/vm/run.sh [test...]
#   VM_KERNELS='6.1 6.12'   only these   VM_TEST_SIZE=short|long   only these, see size_of   VM_STRICT=1   what is missing is a failure
#   NEURON_KO=path          this module in place of the stand-in, on the kernel that it was built for
# Leaves the consoles in $BUILD/vm/run/.  Ends with `N passed, N failed, N skipped`.
cd "$(dirname "$0")/../.." || exit 3
BUILD=$(realpath "${BUILD:-build}")
export BUILD LC_ALL=C
. tests/vm/guest.sh
passed=0 failed=0 skipped=0
jobs=${VM_JOBS:-$(nproc)}
dir=${VM_DIR:-tests/vm} # where the tests are; another one when this program itself is tested
run=$BUILD/vm/${VM_DIR:+harness-}run
rm -rf "$run" && mkdir -p "$run" || exit 3

first_kernel=$(awk '!/^#/ { print $1; exit }' tests/vm/kernels)

finish() {
	echo "$passed passed, $failed failed, $skipped skipped"
	[ $failed = 0 ]
	exit
}
outcome() { # passed|failed|skipped, test, kernel, text
	local o=$1
	[ "$o" != skipped ] || [ -z "${VM_STRICT:-}" ] || o=failed
	case $o in
	passed) passed=$((passed + 1)) ;;
	failed) failed=$((failed + 1)) ;;
	skipped) skipped=$((skipped + 1)) ;;
	esac
	[ $o = passed ] || echo "$o: vm: $2 on $3${4:+ ($4)}"
	[ -z "${NTRACE_TEST_RAN:-}" ] || printf '%s\tvm: %s%s\n' "$o" "$2" "${4:+$'\t'$4}" >>"$NTRACE_TEST_RAN"
}

# ---- the tests and what they ask for --------------------------------------------------------------

setting() { # test, word, default
	local v
	v=$(sed -n "s/^$2 *//p" "$dir/$1/boot" 2>/dev/null | head -1)
	echo "${v:-$3}"
}
# Short are those without the word `long` on the first kernel, and on the others what has the word `everywhere`.
size_of() { # test, kernel
	if grep -qx long "$dir/$1/boot" 2>/dev/null; then
		echo long
	elif [ "$2" = "$first_kernel" ] || grep -qx everywhere "$dir/$1/boot" 2>/dev/null; then
		echo short
	else
		echo long
	fi
}
denied() { # test, kernel -> the reason
	local k t reason
	while read -r k t reason; do
		# shellcheck disable=SC2053
		[[ $2 != $k || $1 != $t ]] || { echo "$reason"; return 0; }
	done < <(grep -v '^#' "$dir/deny")
	return 1
}
all_tests() {
	find "$dir" -mindepth 2 -maxdepth 2 -name run -printf '%h\n' | sed 's,.*/,,' | sort
}

# ---- modules --------------------------------------------------------------------------------------

# Builds a variant of the stand-in for a kernel; prints what is missing, nothing if it is there.
build_standin() { # kernel directory, variant
	local out=$1/standin/$2 log
	log=$(make -s -C tests/vm/standin HEADERS="$(realpath "$1/headers")" OUT="$out" VARIANT="$2" 2>&1)
	[ -e "$out/neuron.ko" ] && return
	echo "the stand-in, variant $2: $(echo "$log" | tail -3 | tr '\n' ' ')"
}
# What of a test's needs cannot be had; builds what can.
missing_needs() { # test, kernel directory, guest's directory for modules
	local word v
	for word in $(cat "$dir/$1/needs" 2>/dev/null); do
		case $word in
		fuse) ;; # every kernel here has it
		module | standin | standin-*)
			v=${word#standin-}
			[ "$v" != "$word" ] || v=plain
			if [ -n "${NEURON_KO:-}" ]; then
				[ "$word" = module ] || { echo "a stand-in; NEURON_KO is given"; return; }
				mkdir -p "$3/given" && cp "$NEURON_KO" "$3/given/neuron.ko"
			else
				if [ ! -e "$2/standin/$v/built-now" ]; then
					build_standin "$2" "$v" | grep . && return
				fi
				touch "$2/standin/$v/built-now"
				mkdir -p "$3/standin/$v" && strip -g -o "$3/standin/$v/neuron.ko" "$2/standin/$v/neuron.ko"
			fi ;;
		*) echo "a meaning of '$word' in needs"; return ;;
		esac
	done
}

# ---- boots ----------------------------------------------------------------------------------------

# Puts a test into the job; prints what is missing.
prepare() { # test, kernel directory, work directory
	local to=$3/job/tests/$1
	missing_needs "$1" "$2" "$3/lib/modules" | grep . && return
	mkdir -p "$3/job/tests" && cp -rL "$dir/$1" "$to"
	if [ -e "$dir/$1/host" ]; then
		OUT=$to timeout 120 bash -u "$dir/$1/host" >"$3/host-$1.log" 2>&1 ||
			{ echo "its host part: $(tail -1 "$3/host-$1.log")"; rm -rf "$to"; }
	fi
}
console_of() { # work directory, test: what it printed
	tr -d '\r' <"$1/console" | sed -n "/^vm: begin $2$/,/^vm: end $2$/p" | grep -v "^vm: " | tail -40 | sed 's/^/  /'
}

# Runs what is in <work>/list in one boot; what is left when the machine dies is left in the list.
boot_list() { # kernel name, kernel directory, work directory
	local work=$3 name limit sum=180 cmdline memory word said secs text last=
	while read -r name limit; do sum=$((sum + limit)); done <"$work/list"
	read -r name _ <"$work/list"
	cmdline=$(setting "$name" cmdline '') memory=$(setting "$name" memory 512)
	cp "$work/list" "$work/job/list" && echo "$VM_TROUBLE" >"$work/job/trouble"
	echo '. /vm/runner.sh' >"$work/job/run"
	vm_boot "$2" "$work" "$memory" "$sum" "$cmdline"
	local status=$?
	: >"$work/left"
	while read -r word name said secs text; do
		case $word in
		begin) last=$name ;;
		result)
			last=
			echo "$name" >>"$work/left"
			echo "  $1 $name: $said ($secs s)" >>"$run/times"
			case $said in
			pass) outcome passed "$name" "$1" ;;
			skip) outcome skipped "$name" "$1" "$text" ;;
			*)
				outcome failed "$name" "$1" "$text"
				console_of "$work" "$name"
				;;
			esac ;;
		esac
	done < <(tr -d '\r' <"$work/result")
	if [ $status != 0 ]; then
		text="the machine died or hung: $(vm_trouble "$work" | tail -1)"
		[ -n "$last" ] || read -r last _ < <(grep -vwFf "$work/left" "$work/list")
		if [ -n "$last" ]; then
			outcome failed "$last" "$1" "$text"
			console_of "$work" "$last"
			echo "$last" >>"$work/left"
		fi
	fi
	# What has not been told of is for another boot.
	awk 'NR == FNR { done[$1] = 1; next } !($1 in done)' "$work/left" "$work/list" >"$work/list.new"
	mv "$work/list.new" "$work/list"
}

tests_on() { # kernel name, kernel directory
	local t why key n=0 work parts=1 here=()
	local -A group=()
	for t in "${tests[@]}"; do
		case " $(setting "$t" kernels "$1") " in *" $1 "*) ;; *) continue ;; esac
		[ -z "${VM_TEST_SIZE:-}" ] || [ "$VM_TEST_SIZE" = "$(size_of "$t" "$1")" ] || continue
		if why=$(denied "$t" "$1"); then
			echo "denied: vm: $t on $1 ($why)"
			continue
		fi
		here+=("$t")
	done
	[ ${#here[@]} -le 10 ] || parts=$jobs
	for t in "${here[@]}"; do
		key="$((n++ % parts)) $(setting "$t" memory 512) $(setting "$t" cmdline '')"
		group[$key]+="$t "
	done
	n=0
	for key in "${!group[@]}"; do
		n=$((n + 1)) work=$run/$1-$n
		mkdir -p "$work/job"
		for t in ${group[$key]}; do
			why=$(prepare "$t" "$2" "$work")
			if [ -n "$why" ]; then
				outcome skipped "$t" "$1" "$why"
			else
				echo "$t $(setting "$t" timeout 180)" >>"$work/list"
			fi
		done
		[ ! -s "$work/list" ] || beside "$1" "$2" "$work"
	done
}

# Boots while others run; what it says and counts is taken by collect().
works=()
beside() { # kernel name, kernel directory, work directory
	vm_base "$2" "$BUILD/vm/base-$1.cpio" >"$3/base.log" 2>&1 # once, before two want it
	while [ "$(jobs -pr | wc -l)" -ge "$jobs" ]; do wait -n; done
	works+=("$3")
	(
		passed=0 failed=0 skipped=0
		while [ -s "$3/list" ]; do boot_list "$@"; done
		echo "$passed $failed $skipped" >"$3/counts"
	) >"$3/said" 2>&1 &
}
collect() {
	local work p f k
	wait
	for work in "${works[@]}"; do
		cat "$work/said"
		read -r p f k <"$work/counts" || {
			echo "failed: vm: the boots of ${work##*/} ended without a count"
			p=0 f=1 k=0
		}
		passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + k))
	done
}

# ---- which tests, which kernels -------------------------------------------------------------------

tests=()
for t in ${*:-$(all_tests)}; do
	[ -e "$dir/$t/run" ] || { echo "vm: no test named $t; there are: $(all_tests | tr '\n' ' ')" >&2; exit 2; }
	tests+=("$t")
done
lacks=$(vm_missing | tr '\n' ' ')
if [ -n "$lacks" ]; then
	for t in "${tests[@]}"; do outcome skipped "$t" "every kernel" "missing: ${lacks% }"; done
	finish
fi
if [ -n "${NEURON_KO:-}" ]; then
	wanted=$(modinfo -F vermagic "$NEURON_KO" | cut -d' ' -f1)
	[ -n "$wanted" ] || { echo "vm: $NEURON_KO is no kernel module" >&2; exit 2; }
fi
ran=
for k in ${VM_KERNELS:-$(awk '!/^#/ { print $1 }' tests/vm/kernels)}; do
	line=$(bash tests/vm/kernels.sh "$k" 2>"$run/kernel.log")
	read -r _ kernel release <<<"$line"
	if [ -z "$release" ]; then
		for t in "${tests[@]}"; do outcome skipped "$t" "$k" "$(tail -1 "$run/kernel.log")"; done
	elif [ -z "${wanted:-}" ] || [ "$wanted" = "$release" ]; then
		find "$kernel/standin" -name built-now -delete 2>/dev/null
		tests_on "$k" "$kernel"
		ran=yes
	fi
done
collect
[ -n "$ran" ] || [ -z "${wanted:-}" ] ||
	outcome failed "the given module" "every kernel" "$NEURON_KO is for Linux $wanted, which tests/vm/kernels does not have"
# The tests of this program itself.
if [ $# = 0 ] && [ -z "${VM_DIR:-}${NEURON_KO:-}" ] && [ "${VM_TEST_SIZE:-long}" = long ]; then
	if said=$(bash tests/vm/harness.sh); then
		outcome passed harness "$first_kernel"
	else
		outcome failed harness "$first_kernel" "what run.sh says of tests that fail"
		echo "$said" | sed 's/^/  /'
	fi
fi
[ ! -s "$run/times" ] || sort "$run/times"
finish
