#!/bin/sh
# What babeltrace2 takes to read LTTng events into its dummy sink, as a ratio to the merge of as many
# events in the same run; says what is missing where it cannot be measured.
# Usage: CC=gcc lttng_peer.sh MERGE_EVENTS
merge=$1
events=1000000
CC=${CC:-gcc}

lacks() {
	echo "babeltrace2 ratio: not measured, $1"
	exit 0
}
for tool in lttng lttng-sessiond babeltrace2; do
	command -v "$tool" >/dev/null || lacks "$tool is not installed"
done
pkg-config --exists lttng-ust || lacks "liblttng-ust-dev is not installed"
tmp=$(mktemp -d) || exit 1
session=ntrace-bench-$$
trap 'lttng destroy "$session" >/dev/null 2>&1; rm -rf "$tmp"' EXIT

cat >"$tmp/emit.c" <<END
#include <lttng/tracef.h>
int main(void)
{
	for (int i = 0; i < $events; i++)
		tracef("%d 4096 65536 131072 7 copy", i);
	return 0;
}
END
# shellcheck disable=SC2046 # flags are words
$CC -O2 -o "$tmp/emit" "$tmp/emit.c" $(pkg-config --cflags --libs lttng-ust) -ldl ||
	lacks "the program that emits events does not compile"
lttng list >/dev/null 2>&1 || lttng-sessiond --daemonize >/dev/null 2>&1
{
	lttng create "$session" --output="$tmp/trace" &&
		lttng enable-channel -u -s "$session" --subbuf-size=4M --num-subbuf=16 bench &&
		lttng enable-event -u -s "$session" -c bench 'lttng_ust_tracef:*' &&
		lttng start "$session"
} >/dev/null 2>&1 || lacks "a session cannot be started"
"$tmp/emit"
lttng stop "$session" >/dev/null 2>&1
count=$(babeltrace2 "$tmp/trace" 2>/dev/null | wc -l)
[ "$count" -gt 0 ] || lacks "no event was recorded"
start=$(date +%s.%N)
babeltrace2 "$tmp/trace" -o dummy 2>/dev/null
end=$(date +%s.%N)
rate=$("$merge" "$count" | sed -n 's/.*encode \([0-9.]*\) M.*/\1/p')
awk -v n="$count" -v s="$start" -v e="$end" -v m="$rate" 'BEGIN {
	b = n / (e - s) / 1e6
	printf "babeltrace2 dummy sink: %.2f M events/s of %d; the merge does %.1f times as many\n", b, n, m / b
}'
