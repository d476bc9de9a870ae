#!/bin/bash
# What an event of 48 bytes (a clock reading and 40 of payload) costs in engines of others, in the terms of
# tests/bench/trace_events.c: CPU time of the emitting threads per event, median of the rounds.
# LTTng-UST writes into a ring that overwrites the oldest; crossbeam's ArrayQueue is filled by force_push under a
# read lock.  Says what is missing where one cannot be measured.
# Usage: CC=gcc trace_peers.sh
CC=${CC:-gcc}
RUSTC=${RUSTC:-rustc}
events=400000
rounds=7
packages=$(dirname "$0")/../../.ci/packages-bench
session=ntrace-peers-$$
tmp=$(mktemp -d) || exit 1
trap cleanup EXIT

cleanup() {
	[ ! -e "$tmp/session" ] || lttng destroy "$session" >/dev/null 2>&1
	if [ -s "$tmp/pid" ]; then
		daemon=$(cat "$tmp/pid")
		kill "$daemon" && timeout 20 tail --pid="$daemon" -f /dev/null
	fi
	rm -rf "$tmp"
}
lacks() { # peer, reason
	echo "$1: not measured, $2 (needs $(grep -v '^#' "$packages" | paste -sd' '))"
	[ ! -s "$tmp/log" ] || tail -3 "$tmp/log"
	return 1
}

# ---- LTTng-UST ------------------------------------------------------------------------------------

lttng_program() {
	cat >"$tmp/peer.h" <<-'C'
		#undef LTTNG_UST_TRACEPOINT_PROVIDER
		#define LTTNG_UST_TRACEPOINT_PROVIDER ntrace_peer
		#undef LTTNG_UST_TRACEPOINT_INCLUDE
		#define LTTNG_UST_TRACEPOINT_INCLUDE "peer.h"
		#if !defined(PEER_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
		#define PEER_H
		#include <lttng/tracepoint.h>
		LTTNG_UST_TRACEPOINT_EVENT(ntrace_peer, event, LTTNG_UST_TP_ARGS(const unsigned char *, p),
			LTTNG_UST_TP_FIELDS(lttng_ust_field_array(unsigned char, payload, p, 40)))
		#endif
		#include <lttng/tracepoint-event.h>
	C
	cat >"$tmp/emit.c" <<-C
		#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
		#define LTTNG_UST_TRACEPOINT_DEFINE
		#include "peer.h"
		#include <stdio.h>
		#include <string.h>
		#include <time.h>
		static double cpu_ns(void)
		{
			struct timespec t;
			clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
			return t.tv_sec * 1e9 + t.tv_nsec;
		}
		int main(void)
		{
			unsigned char payload[40] = {1};
			for (int round = 0; round < $rounds; round++) {
				double begin = cpu_ns();
				for (unsigned i = 0; i < $events; i++) {
					memcpy(payload, &i, sizeof(i));
					lttng_ust_tracepoint(ntrace_peer, event, payload);
				}
				printf("%.1f\n", (cpu_ns() - begin) / $events);
			}
			return 0;
		}
	C
	# shellcheck disable=SC2046 # flags are words
	$CC -O2 -I"$tmp" -o "$tmp/emit" "$tmp/emit.c" $(pkg-config --cflags --libs lttng-ust) -ldl >"$tmp/log" 2>&1
}

lttng_session() {
	lttng --no-sessiond list >/dev/null 2>&1 ||
		lttng-sessiond --no-kernel --daemonize --pidfile="$tmp/pid" || return 1
	lttng --no-sessiond create "$session" --snapshot --output="$tmp/trace" || return 1
	touch "$tmp/session"
	lttng enable-channel -u -s "$session" --overwrite --subbuf-size=1M --num-subbuf=8 c &&
		lttng enable-event -u -s "$session" -c c 'ntrace_peer:*' && lttng start "$session"
}

median() { sort -n | awk '{ v[NR] = $1 } END { printf "%7.1f ns  (%.1f to %.1f)\n", v[int((NR + 1) / 2)], v[1], v[NR] }'; }

lttng_peer() {
	for tool in lttng lttng-sessiond pkg-config; do
		command -v "$tool" >/dev/null || lacks LTTng-UST "$tool is not installed" || return
	done
	pkg-config --exists lttng-ust || lacks LTTng-UST "lttng-ust is not installed" || return
	lttng_program || lacks LTTng-UST "the program that emits events does not compile" || return
	lttng_session >"$tmp/log" 2>&1 || lacks LTTng-UST "a session cannot be started" || return
	LTTNG_UST_REGISTER_TIMEOUT=-1 "$tmp/emit" >"$tmp/ns" 2>"$tmp/log" ||
		lacks LTTng-UST "the program that emits events failed" || return
	printf '%-38s %s\n' 'LTTng-UST, overwriting' "$(median <"$tmp/ns")"
}

# ---- crossbeam ------------------------------------------------------------------------------------

crate() { # name, edition, what it uses...
	dir=$(ls -d /usr/share/cargo/registry/"$(echo "$1" | tr _ -)"-[0-9]* 2>/dev/null | head -1)
	[ -n "$dir" ] || return 1
	name=$1 edition=$2
	shift 2
	# shellcheck disable=SC2046
	"$RUSTC" -O --crate-type rlib --crate-name "$name" --edition "$edition" --cap-lints allow --cfg 'feature="std"' \
		--cfg 'feature="alloc"' --out-dir "$tmp" -L "$tmp" $(for u in "$@"; do echo "--extern $u=$tmp/lib$u.rlib"; done) \
		"$dir/src/lib.rs"
}

crossbeam_program() {
	cat >"$tmp/queue.rs" <<-RS
		use crossbeam_queue::ArrayQueue;
		use std::sync::{Arc, Barrier, RwLock};
		#[repr(C)]
		struct Time { s: i64, ns: i64 }
		extern "C" { fn clock_gettime(id: i32, t: *mut Time) -> i32; }
		fn clock(id: i32) -> u64 {
			let mut t = Time { s: 0, ns: 0 };
			unsafe { clock_gettime(id, &mut t) };
			t.s as u64 * 1_000_000_000 + t.ns as u64
		}
		fn run(queue: Arc<RwLock<ArrayQueue<[u64; 6]>>>, start: Arc<Barrier>) -> u64 {
			start.wait();
			let begin = clock(3);
			for i in 0..$events {
				let event = [clock(7), i, 0, 0, 0, 0];
				queue.read().unwrap().force_push(event);
			}
			clock(3) - begin
		}
		fn main() {
			let n: usize = std::env::args().nth(1).unwrap().parse().unwrap();
			let queue = Arc::new(RwLock::new(ArrayQueue::new(65536)));
			for _ in 0..$rounds {
				let start = Arc::new(Barrier::new(n));
				let threads: Vec<_> = (0..n).map(|_| {
					let (q, s) = (queue.clone(), start.clone());
					std::thread::spawn(move || run(q, s))
				}).collect();
				let cpu: u64 = threads.into_iter().map(|t| t.join().unwrap()).sum();
				println!("{:.1}", cpu as f64 / $events as f64 / n as f64);
			}
		}
	RS
	crate cfg_if 2018 && crate crossbeam_utils 2018 cfg_if && crate crossbeam_queue 2018 cfg_if crossbeam_utils &&
		"$RUSTC" -O --edition 2018 -L "$tmp" --extern crossbeam_queue="$tmp/libcrossbeam_queue.rlib" \
			-o "$tmp/queue" "$tmp/queue.rs"
}

crossbeam_peer() {
	command -v "$RUSTC" >/dev/null || lacks crossbeam "rustc is not installed" || return
	crossbeam_program >"$tmp/log" 2>&1 || lacks crossbeam "the queue does not compile" || return
	for n in 1 2; do
		"$tmp/queue" $n >"$tmp/ns" || return
		printf '%-38s %s\n' "crossbeam, $n thread$([ $n = 1 ] || echo s)" "$(median <"$tmp/ns")"
	done
}

lttng_peer
crossbeam_peer
exit 0
