# What the cases of attach share.  A case runs in an empty directory.
export NEURON_RT_LOG_LEVEL=QUIET

# A program that does what it is told: tell WORD.  Its pid is $PROGRAM.
# (A library with a sanitizer wants its runtime loaded first, also into a program that has none.)
start_program() {
	LIBNRT=${LIBNRT:-$BUILD/lib/libnrt.so.1}
	sanitizer=$(ldd "$LIBNRT" | awk '/lib[at]san/ { print $3 }')
	coproc TOLD {
		exec env ${sanitizer:+LD_PRELOAD="$sanitizer" ASAN_OPTIONS=detect_leaks=0} \
			python3 "$TOP/tests/cli/attach/program.py" "$LIBNRT"
	}
	PROGRAM=$TOLD_PID
	read -r said <&"${TOLD[0]}"
}
tell() {
	echo "$1" >&"${TOLD[1]}"
	read -r said <&"${TOLD[0]}"
}

# A program that works until it is told otherwise; returns when its runtime is there.  Its pid is $WORKER.
start_worker() {
	"$@" "$WORKLOADS/inference" --check --threads 2 --pause-us 200 "${WORK[@]}" >worked 2>&1 &
	WORKER=$!
	[ "${1:-}" = unshare ] || # then it is the child that works
		until grep -qs ntrace-ctl /proc/$WORKER/maps || ! kill -0 $WORKER; do sleep 0.02; done
}

# Attaches in the background; returns when it is attached or has given up.  Its pid is $AGENT, its words in $1.said
start_attach() { # output, argument...
	ntrace attach -o "$1" "${@:2}" 2>"$1.said" &
	AGENT=$!
	until grep -qs 'attached;' "$1.said" || ! kill -0 $AGENT 2>/dev/null; do sleep 0.02; done
}

# At least so many events are in the rings' part of a running recording: it has begun to follow.
until_recorded() { # output, pid of its agent
	until [ "$(stat -c %s "$1"/recording/segment-*.ntrec)" -gt 20000 ] || ! kill -0 "$2" 2>/dev/null; do
		sleep 0.02
	done
}

facts() { # output: what the report says, without numbers that are never the same
	grep -E '^lost' "$1.said" | sed -E 's/kernel ([0-9]+) of \1 calls/kernel all calls/
		s/runtime ([0-9]+) of \1 events/runtime all events/; s/ and [0-9]+ still open//'
}
