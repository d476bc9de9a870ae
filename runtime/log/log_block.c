/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_block.c - a thread's block of errors.
 *
 * The memory is mapped, not taken from the C library: a signal handler may have interrupted that.  A
 * handler that has interrupted this file finds `busy` and leaves everything alone, or it comes and goes
 * between two changes.
 */
#include "runtime/log/log_block.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/log/log.h"
#include "runtime/log/log_levels.h"
#include "runtime/log/log_line.h"
#include "runtime/log/log_ring.h"

#define NO_CAUSE (-1)
#define JOINER "\n\t"
#define JOINER_BYTES 2u
#define MAPPED_BYTES (LOG_MARGIN + LOG_BLOCK_BYTES + LOG_MARGIN)

/* What can be done; the text is ours, the vendor's is not public. */
static const char *const resolutions[] = {
	[LOG_CAUSE_NEFF_ARCH_INCOMPAT] =
		"load a model in the text format; a NEFF is made for a real accelerator",
};

static __thread struct {
	const char *call; /* that the thread is in; NULL: none, or nobody knows its name */
	char *memory;	  /* the block between its margins; NULL: none */
	uint32_t start;	  /* of what is held, which reaches to the end */
	uint32_t held;	  /* lines */
	unsigned places;  /* where any of them is wanted */
	int cause;
	volatile sig_atomic_t busy;
} own __attribute__((tls_model("initial-exec"))) = {.cause = NO_CAUSE};

static void begin_work(void)
{
	own.busy = 1;
	atomic_signal_fence(memory_order_seq_cst);
}

static void end_work(void)
{
	atomic_signal_fence(memory_order_seq_cst);
	own.busy = 0;
}

/* ---- memory ------------------------------------------------------------------------------- */

static struct {
	pthread_once_t once;
	pthread_key_t key;
	bool has_key;
} ends = {.once = PTHREAD_ONCE_INIT};

static void thread_ends(void *value)
{
	own.memory = NULL;
	(void)munmap((char *)value - LOG_MARGIN, MAPPED_BYTES);
}

static void make_key(void)
{
	ends.has_key = pthread_key_create(&ends.key, thread_ends) == 0;
}

/* Without a key nobody would give it back. */
static void make_memory(void)
{
	void *p;

	pthread_once(&ends.once, make_key);
	if (!ends.has_key)
		return;
	p = mmap(NULL, MAPPED_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return;
	if (pthread_setspecific(ends.key, (char *)p + LOG_MARGIN)) {
		(void)munmap(p, MAPPED_BYTES);
		return;
	}
	own.start = LOG_BLOCK_BYTES;
	own.memory = (char *)p + LOG_MARGIN;
}

/* ---- the block ---------------------------------------------------------------------------- */

static void write_out(void)
{
	if (own.held)
		log_send(own.places, LOG_LEVEL_ERROR, own.memory + own.start,
			LOG_BLOCK_BYTES - own.start, true);
	own.start = LOG_BLOCK_BYTES;
	own.held = 0;
	own.places = 0;
}

static void put_in_front(const char *text, size_t len)
{
	own.start -= (uint32_t)len;
	memcpy(own.memory + own.start, text, len);
}

void log_block_write(void)
{
	if (own.busy)
		return;
	begin_work();
	write_out();
	end_work();
}

bool log_block_add(unsigned places, const char *text, size_t len)
{
	if (!own.memory || own.busy)
		return false;
	begin_work();
	if (len + JOINER_BYTES > own.start)
		write_out();
	if (own.held)
		put_in_front(JOINER, JOINER_BYTES);
	put_in_front(text, len);
	own.held++;
	own.places |= places;
	end_work();
	return true;
}

/* ---- the call ----------------------------------------------------------------------------- */

static bool is_public(const char *func)
{
	return !strncmp(func, "nrt_", 4) || !strncmp(func, "nrta_", 5) || !strncmp(func, "nec_", 4);
}

enum log_block_part log_block_part(const char *func)
{
	if (!own.call || !own.memory || own.busy)
		return LOG_BLOCK_NONE;
	if (!strcmp(func, own.call))
		return LOG_BLOCK_CALL;
	return is_public(func) ? LOG_BLOCK_NONE : LOG_BLOCK_CAUSE;
}

const char *log_block_resolution(const char *func)
{
	if (own.cause == NO_CAUSE || log_block_part(func) != LOG_BLOCK_CALL)
		return NULL;
	return resolutions[own.cause];
}

void log_set_error_cause(enum log_cause cause)
{
	if (own.cause == NO_CAUSE)
		own.cause = (int)cause;
	else
		log_warn("NLOG", "Error cause is already defined as %d", own.cause);
}

void log_api_begin(const char *call)
{
	bool holds = call && log_coalesces();

	if (own.busy)
		return;
	if (holds && !own.memory) {
		begin_work();
		make_memory();
		end_work();
	}
	own.cause = NO_CAUSE;
	own.call = holds ? call : NULL;
}

static void fail_generally(void)
{
	const struct log_source self = {LOG_LEVEL_ERROR, "NLOG", own.call};
	unsigned places = log_places(self.level, self.tag);
	struct log_line l;

	if (!places)
		return;
	log_line_say(&l, &self, log_block_resolution(own.call), "Generic API Failure");
	(void)log_block_add(places, log_line_text(&l), l.len);
	log_line_keep(&l);
}

void log_api_flush(void)
{
	if (own.busy)
		return;
	if (own.held)
		fail_generally();
	log_block_write();
	own.cause = NO_CAUSE; /* it has been told */
}

void log_api_end(void)
{
	if (own.busy)
		return;
	if (own.held)
		fail_generally();
	/* Before the block goes: what a handler adds behind it would stay. */
	own.call = NULL;
	atomic_signal_fence(memory_order_seq_cst);
	log_block_write();
}
