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

# ---- events of the stand-in, as tests/vm/programs/expect.h writes them ----------------------------

# The events of a recording as they stand in its files, a process after the other.
events_in_order() { # directory of the recording, kinds
	local f pid
	for f in "$1"/*_pid_*/ntrace.pb; do
		pid=${f%/*}
		[ ! -e "$f" ] || ntrace dump "$f" | awk -v pid="${pid##*_}" -f /vm/events.awk
	done | grep -E "^[^ ]+ (${2:-ioctl|file|dma}) |^[?]"
}
# The same, threads one after the other and without their numbers.
events_of() { # directory of the recording, kinds
	events_in_order "$@" | by_thread 1
}
# Who of a process's threads made the events, in turns: `main` or `others`.
turns_of() { # pid; events with threads on stdin
	awk -v pid="$1" '$NF == pid { who = $1 == pid ? "main" : "others"; if (who != last) printf "%s%s", last ? " " : "", who; last = who }
		END { print "" }'
}
# What the hooks of a recording did not reach, as its summary says.
unreached() { # directory of the recording
	ntrace summary "$1" | sed -nE 's/^blind: (.*\((not hooked|[a-z]+: .*)\))$/\1/p'
}
# Lines with a thread in column n -> without it, those of a thread together, threads in the order of their text.
by_thread() {
	awk -v n="$1" '{ t = $n; $n = ""; gsub(/  +/, " "); sub(/^ /, ""); text[t] = text[t] $0 "|" }
		END { for (t in text) print text[t] }' | sort | tr '|' '\n' | grep .
}
# Calls of a function that the stand-in has counted, over all devices; and the sum of their bytes.
standin_calls() { awk -v f="$1" '$2 == f { n += $3 } END { print n + 0 }' /sys/kernel/debug/neuron_standin/counts; }
standin_bytes() { awk -v f="$1" '$2 == f { n += $5 } END { print n + 0 }' /sys/kernel/debug/neuron_standin/counts; }
standin_zero() { echo 0 >/sys/kernel/debug/neuron_standin/counts; }

links() { bpftool link list 2>/dev/null | grep -c '^[0-9]'; }
# Until the recorder has hooked the driver that was just loaded: a function of it, by whatever step, and then no
# other hook for a second.
wait_hooked() { # function
	local n=-1 still=0
	wait_for grep -q "^$1 " /sys/kernel/tracing/enabled_functions
	while [ $still -lt 10 ]; do
		still=$((still + 1))
		[ "$n" = "$(links)" ] || still=0
		n=$(links)
		usleep 100000
	done
}

# Unloads the driver, which a recorder lets go after the last device was closed: hook by hook, and in an emulated
# machine the kernel takes its time for each.
unload_soon() {
	local tries=0
	until rmmod neuron 2>/tmp/rmmod; do
		[ $tries -lt 300 ] || { cat /tmp/rmmod; return 1; }
		tries=$((tries + 1))
		usleep 100000
	done
	echo "unloaded after $tries refusals"
}

# Which step of the ladder a family of hooks has reached in a recording.
step_of() { # recording, family
	ntrace rec info "$1" | sed -n "s/^ladder *$2: \([a-z_]*\) reached.*/\1/p" | head -1
}
