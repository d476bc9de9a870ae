#!/bin/sh
# What the tests of a guest have: read by the runner before a test's own script.

result() { # pass|fail|skip text: the outcome of the test, which ends here
	echo "RESULT $*"
	[ "$1" != fail ]
	exit
}
pass() { result pass "${1:-}"; }
fail() { result fail "$*"; }
skip() { result skip "$*"; }

# Everything that a test needs besides what `needs` says.
need() { command -v "$1" >/dev/null || skip "$1 is missing"; }

# The two files are the same, or the test has failed.
equal() { # got, wanted, what it is
	diff "$2" "$1" >/tmp/diff && return
	sed 's/^/  /' /tmp/diff | head -40
	fail "$3: not what was expected (< expected, > got)"
}
same() { # got, wanted, what it is
	[ "$1" = "$2" ] || fail "$3: '$1', expected '$2'"
}

# Until the command succeeds; at most half a minute.
wait_for() {
	local end=$(($(cut -d. -f1 /proc/uptime) + 30))
	until "$@"; do
		[ "$(cut -d. -f1 /proc/uptime)" -lt $end ] || fail "waited 30 s for: $*"
		usleep 20000
	done
}

# Loads the module: the stand-in of that variant, or the one that the user has given for all of them.
standin() { # variant, parameters
	local variant=$1 file
	shift
	file=/lib/modules/standin/$variant/neuron.ko
	if [ -e /lib/modules/given/neuron.ko ]; then
		[ "$variant" = plain ] || skip "a module that was given has no variant $variant"
		file=/lib/modules/given/neuron.ko
		set --
	fi
	insmod "$file" "$@" || fail "cannot load $file $*"
}
module_is_given() { [ -e /lib/modules/given/neuron.ko ]; }

# The driver calls of a recording in order: name and attributes.  Without the polling of the device's clock, whose
# number depends on the time.
driver_calls() { # directory of the recording
	cat "$1"/*_pid_*/ntrace.pb >/dev/null || return
	for f in "$1"/*_pid_*/ntrace.pb; do
		ntrace dump "$f" | grep '_STOP"' | grep -v '"hint":"BAR_READ"' |
			sed -n 's/.*"hint":"\([^"]*\)".*"attributes":{\(.*"request":.*\)},"phase".*/\1 \2/p'
	done
}

# A directory that stands for a device: its file is an ordinary one, so that a call costs as little as can be.
plain_device() { # -> sets NTRACE_DEVICE_ROOT
	mkdir -p root/dev && : >root/dev/neuron0
	export NTRACE_DEVICE_ROOT=$PWD/root
}

# A number from the ledger of a recording; 0 when it has no such row.
ledger() { # recording, source, name
	ntrace rec info "$1" | awk -v s="$2" -v n="$3" '$2 == s && $3 == n { v = $4 } END { print v + 0 }'
}
# Sum over the CPUs of the BPF counter of that number, from the map itself.
bpf_counter() { # number as in enum nev_counter
	bpftool map dump name cpus |
		awk -v n="$1" '/"counters":/ { sub(/.*\[/, ""); split($0, v, /[],]/); sum += v[n + 1] } END { print sum + 0 }'
}
