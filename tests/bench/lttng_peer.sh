#!/bin/bash
# What babeltrace2 takes to read LTTng events into its dummy sink, beside the merge of as many events
# in the same run.  Both are CPU time of one thread, on events with six attributes (of LTTng's they are
# integers, which is less to read than the texts that the merge writes).  Says what is missing where
# it cannot be measured.
# Usage: CC=gcc lttng_peer.sh MERGE_EVENTS
merge=$1
events=1000000
CC=${CC:-gcc}
packages=$(dirname "$0")/../../.ci/packages-bench
session=ntrace-bench-$$
tmp=$(mktemp -d) || exit 1
trap cleanup EXIT

cleanup() {
	[ ! -d "$tmp/trace" ] || lttng destroy "$session" >/dev/null 2>&1
	if [ -s "$tmp/pid" ]; then
		daemon=$(cat "$tmp/pid")
		kill "$daemon" && timeout 20 tail --pid="$daemon" -f /dev/null
	fi
	rm -rf "$tmp"
}
lacks() {
	echo "babeltrace2 ratio: not measured, $1"
	[ ! -s "$tmp/log" ] || tail -3 "$tmp/log"
	exit 0
}
for tool in lttng lttng-sessiond babeltrace2; do
	command -v "$tool" >/dev/null ||
		lacks "$tool is not installed; needs $(grep -v '^#' "$packages" | paste -sd' ')"
done
pkg-config --exists lttng-ust ||
	lacks "lttng-ust is not installed; needs $(grep -v '^#' "$packages" | paste -sd' ')"

# The fields of an ntrace_event, as a tracepoint.
cat >"$tmp/event.h" <<'END'
struct peer {
	unsigned long id, parent, tracking, duration, a[6];
	unsigned type, phase, nd, nc, thread, status;
};
END
cat >"$tmp/peer.h" <<'END'
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER ntrace_peer
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "peer.h"
#if !defined(PEER_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define PEER_H
#include <lttng/tracepoint.h>
#define NUMBER(name) lttng_ust_field_integer(unsigned long, name, e->name)
#define SMALL(name) lttng_ust_field_integer(unsigned, name, e->name)
#define ATTRIBUTE(i) lttng_ust_field_integer(unsigned long, attribute_##i, e->a[i])
LTTNG_UST_TRACEPOINT_EVENT(ntrace_peer, event,
	LTTNG_UST_TP_ARGS(const struct peer *, e, const char *, text),
	LTTNG_UST_TP_FIELDS(
		NUMBER(id) NUMBER(parent) NUMBER(tracking) NUMBER(duration)
		SMALL(type) SMALL(phase) SMALL(nd) SMALL(nc) SMALL(thread) SMALL(status)
		lttng_ust_field_string(hint, text)
		ATTRIBUTE(0) ATTRIBUTE(1) ATTRIBUTE(2) ATTRIBUTE(3) ATTRIBUTE(4) ATTRIBUTE(5)))
#endif
#include <lttng/tracepoint-event.h>
END
cat >"$tmp/emit.c" <<END
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "event.h"
#include "peer.h"
int main(void)
{
	struct peer e = {.a = {4096, 65536, 131072, 7, 1790000000, 12}};

	for (unsigned i = 0; i < $events; i++) {
		e.id = e.tracking = i / 2;
		e.phase = 1 + i % 2;
		e.duration = i % 2 * 900;
		lttng_ust_tracepoint(ntrace_peer, event, &e, "MEM_COPY64");
	}
	return 0;
}
END
# shellcheck disable=SC2046 # flags are words
$CC -O2 -I"$tmp" -o "$tmp/emit" "$tmp/emit.c" $(pkg-config --cflags --libs lttng-ust) -ldl >"$tmp/log" 2>&1 ||
	lacks "the program that emits events does not compile"

# A session daemon that runs already is used, else one of ours; kernel modules are not asked for.
lttng --no-sessiond list >/dev/null 2>&1 ||
	lttng-sessiond --no-kernel --daemonize --pidfile="$tmp/pid" >"$tmp/log" 2>&1
{
	lttng --no-sessiond create "$session" --output="$tmp/trace" &&
		lttng enable-channel -u -s "$session" --blocking-timeout=inf --subbuf-size=4M --num-subbuf=8 c &&
		lttng enable-event -u -s "$session" -c c 'ntrace_peer:*' &&
		lttng start "$session"
} >"$tmp/log" 2>&1 || lacks "a session cannot be started"
# The program waits for room in the buffers, so nothing is discarded.
LTTNG_UST_ALLOW_BLOCKING=1 LTTNG_UST_REGISTER_TIMEOUT=-1 "$tmp/emit" >"$tmp/log" 2>&1
lttng stop "$session" >/dev/null 2>&1
count=$(babeltrace2 "$tmp/trace" --component=sink.utils.counter 2>"$tmp/log" |
	awk '/Event message/ { gsub(/,/, ""); n = $1 } END { print n }')
[ "$count" = "$events" ] || lacks "${count:-no} of $events events were recorded"

TIMEFORMAT='%U %S'
seconds=$({ time babeltrace2 "$tmp/trace" --output-format=dummy >/dev/null 2>&1; } 2>&1 | awk '{ print $1 + $2 }')
"$merge" "$count" >"$tmp/log"
rate() { sed -n "s/.*$1 \([0-9.]*\) M .*of one core.*/\1/p" "$tmp/log" | head -1; }
awk -v n="$count" -v s="$seconds" -v m="$(rate encode)" -v r="$(rate encoded)" 'BEGIN {
	b = n / s / 1e6
	printf "babeltrace2, dummy sink: %.2f M events/s of one core (%d events)\n", b, n
	printf "  merge, link and encode: %.2f M, %.1f times as many; from a recording: %.2f M, %.1f times\n",
		m, m / b, r, r / b
}'
