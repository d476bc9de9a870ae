#!/bin/bash
# Runs tests/bench/trace_events.c together with engines of others, which it makes into shared objects: the same
# threads, windows and 48 bytes (a clock reading and 40 of payload), in turns within one process.
# LTTng-UST writes into a ring that overwrites the oldest; crossbeam's ArrayQueue is filled by force_push under a
# read lock.  Says what is missing where one cannot be measured.
# Usage: CC=gcc trace_peers.sh build/bench/trace_events
CC=${CC:-gcc}
RUSTC=${RUSTC:-rustc}
packages=$(dirname "$0")/../../.ci/packages-bench
session=ntrace-peers-$$
peers=()
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
	cat >"$tmp/emit.c" <<-'C'
		#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
		#define LTTNG_UST_TRACEPOINT_DEFINE
		#include "peer.h"
		#include <stdint.h>
		#include <string.h>
		void peer_loop(uint32_t nc, uint32_t count)
		{
			unsigned char payload[40] = {1};

			(void)nc;
			for (uint32_t i = 0; i < count; i++) {
				memcpy(payload, &i, sizeof(i));
				lttng_ust_tracepoint(ntrace_peer, event, payload);
			}
		}
	C
	# shellcheck disable=SC2046 # flags are words
	$CC -O2 -fPIC -shared -I"$tmp" -o "$tmp/lttng.so" "$tmp/emit.c" $(pkg-config --cflags --libs lttng-ust) -ldl >"$tmp/log" 2>&1
}

lttng_session() {
	lttng --no-sessiond list >/dev/null 2>&1 ||
		lttng-sessiond --no-kernel --daemonize --pidfile="$tmp/pid" || return 1
	lttng --no-sessiond create "$session" --snapshot --output="$tmp/trace" || return 1
	touch "$tmp/session"
	lttng enable-channel -u -s "$session" --overwrite --subbuf-size=1M --num-subbuf=8 c &&
		lttng enable-event -u -s "$session" -c c 'ntrace_peer:*' && lttng start "$session"
}

lttng_peer() {
	for tool in lttng lttng-sessiond pkg-config; do
		command -v "$tool" >/dev/null || lacks LTTng-UST "$tool is not installed" || return
	done
	pkg-config --exists lttng-ust || lacks LTTng-UST "lttng-ust is not installed" || return
	lttng_program || lacks LTTng-UST "the program that emits events does not compile" || return
	lttng_session >"$tmp/log" 2>&1 || lacks LTTng-UST "a session cannot be started" || return
	peers+=("LTTng-UST, overwriting=$tmp/lttng.so")
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
	cat >"$tmp/queue.rs" <<-'RS'
		use crossbeam_queue::ArrayQueue;
		use std::sync::{OnceLock, RwLock};
		#[repr(C)]
		struct Time { s: i64, ns: i64 }
		extern "C" { fn clock_gettime(id: i32, t: *mut Time) -> i32; }
		fn clock() -> u64 {
			let mut t = Time { s: 0, ns: 0 };
			unsafe { clock_gettime(7, &mut t) };
			t.s as u64 * 1_000_000_000 + t.ns as u64
		}
		static QUEUE: OnceLock<RwLock<ArrayQueue<[u64; 6]>>> = OnceLock::new();
		#[no_mangle]
		pub extern "C" fn peer_loop(_nc: u32, count: u32) {
			let queue = QUEUE.get_or_init(|| RwLock::new(ArrayQueue::new(65536)));
			for i in 0..count as u64 {
				let event = [clock(), i, 0, 0, 0, 0];
				queue.read().unwrap().force_push(event);
			}
		}
	RS
	crate cfg_if 2018 && crate crossbeam_utils 2018 cfg_if && crate crossbeam_queue 2018 cfg_if crossbeam_utils &&
		"$RUSTC" -O --crate-type cdylib --edition 2018 -L "$tmp" \
			--extern crossbeam_queue="$tmp/libcrossbeam_queue.rlib" -o "$tmp/queue.so" "$tmp/queue.rs"
}

crossbeam_peer() {
	command -v "$RUSTC" >/dev/null || lacks crossbeam "rustc is not installed" || return
	crossbeam_program >"$tmp/log" 2>&1 || lacks crossbeam "the queue does not compile" || return
	peers+=("crossbeam=$tmp/queue.so")
}

lttng_peer
crossbeam_peer
LTTNG_UST_REGISTER_TIMEOUT=-1 "$1" "${peers[@]}"
