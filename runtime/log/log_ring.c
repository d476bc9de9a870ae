/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_ring.c - a ring of lines without a lock.
 *
 * A writer takes a place by moving `head`, copies its text there with a hash in front, and then writes the
 * word in front of both: which place it is, and how long the text.  Places are counted from the
 * beginning of the process and never twice, so a reader takes that word for the sign that a whole line of
 * this round stands there; a line that is being written, or whose thread is not in this process (the
 * child of a fork), has none and is passed over.  Text is not taken for the sign: two of its bytes are
 * hardly a length, nor the word behind it the hash.
 *
 * The sign also says that the line has been written out once, so that a file to which that is done again and again
 * gets it once: also the line that was not there yet when others behind it were.
 *
 * A writer that has slept in its copy while others filled the whole ring must not go on over their lines: its own is
 * older than the oldest.  It looks before each word; should it fall asleep just behind that, it spoils one
 * word, and by the hash the reader leaves that line out.
 *
 * Everything is copied in words, atomically, for a reader may look at what is just overwritten.
 */
#include "runtime/log/log_ring.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <xxhash.h>

#include "runtime/log/log.h"
#include "runtime/log/log_sinks.h"

#define WORD sizeof(uint64_t)
#define LENGTH_BITS 16
#define LENGTH_MASK ((1u << (LENGTH_BITS - 1)) - 1)
#define WRITTEN_OUT (1u << (LENGTH_BITS - 1)) /* of the sign */
#define MOST_CORES 512u
#define FRONT 2u /* words in front of a text: sign, hash */

struct log_ring {
	_Atomic uint64_t *words;
	uint64_t count;
	_Atomic uint64_t head;	/* the next place; 0 is none */
	struct log_ring *older; /* which it followed; NULL: none */
};

/* Of one core, for what is said before the cores are known. */
static _Atomic uint64_t first_words[LOG_RING_CORE_BYTES / WORD];
static struct log_ring first = {first_words, LOG_RING_CORE_BYTES / WORD, 1, NULL};
static struct log_ring *_Atomic ring = &first;

static uint64_t words_of(size_t len)
{
	return (len + WORD - 1) / WORD;
}

static _Atomic uint64_t *at(const struct log_ring *r, uint64_t place)
{
	return &r->words[place % r->count];
}

/* Has it been given to a later line? */
static bool is_taken_again(const struct log_ring *r, uint64_t place)
{
	return atomic_load_explicit(&r->head, memory_order_relaxed) - place > r->count;
}

/* No word before an earlier one. */
static void put_word(struct log_ring *r, uint64_t place, uint64_t i, uint64_t word)
{
	if (!is_taken_again(r, place))
		atomic_store_explicit(at(r, place + i), word, memory_order_release);
}

static uint64_t hash_of(const char *line, size_t len, uint64_t place)
{
	return XXH3_64bits_withSeed(line, len, place);
}

void log_ring_put(struct log_ring *r, const char *line, size_t len)
{
	uint64_t need, place;

	if (len > LOG_RING_LINE_MAX)
		len = LOG_RING_LINE_MAX;
	if (len == 0)
		return;
	need = words_of(len);
	place = atomic_fetch_add(&r->head, FRONT + need);
	put_word(r, place, 1, hash_of(line, len, place));
	for (uint64_t i = 0; i < need; i++) {
		size_t rest = len - i * WORD;
		uint64_t word = 0;

		memcpy(&word, line + i * WORD, rest < WORD ? rest : WORD);
		put_word(r, place, FRONT + i, word);
	}
	put_word(r, place, 0, place << LENGTH_BITS | len);
}

void log_ring_add(const char *line, size_t len)
{
	log_ring_put(atomic_load(&ring), line, len);
}

/* ---- reading ------------------------------------------------------------------------------ */

static uint64_t sign_at(const struct log_ring *r, uint64_t place)
{
	return atomic_load_explicit(at(r, place), memory_order_acquire);
}

/* The length of the line that has this sign at its place; 0: there is none. */
static size_t line_at(uint64_t sign, uint64_t place, uint64_t head)
{
	size_t len = sign & LENGTH_MASK;

	if (sign >> LENGTH_BITS != place || len == 0 || len > LOG_RING_LINE_MAX)
		return 0;
	return place + FRONT + words_of(len) <= head ? len : 0;
}

static bool copy_line(const struct log_ring *r, uint64_t place, size_t len, char *to)
{
	uint64_t hash = atomic_load_explicit(at(r, place + 1), memory_order_acquire);

	for (uint64_t i = 0; i < words_of(len); i++) {
		uint64_t word =
			atomic_load_explicit(at(r, place + FRONT + i), memory_order_acquire);

		memcpy(to + i * WORD, &word, WORD);
	}
	return hash == hash_of(to, len, place);
}

/* Unless another line has come there. */
static void mark_written(const struct log_ring *r, uint64_t place, uint64_t sign)
{
	(void)atomic_compare_exchange_strong(at(r, place), &sign, sign | WRITTEN_OUT);
}

/* From the oldest on, until one cannot be written; without those that have been, unless `again`. */
static int write_ring(const struct log_ring *r, int fd, bool again)
{
	uint64_t head = atomic_load(&r->head);
	uint64_t place = head > r->count ? head - r->count : 1;
	char line[LOG_RING_LINE_MAX + WORD];
	int rc = 0;

	while (place < head && rc == 0) {
		uint64_t sign = sign_at(r, place);
		size_t len = line_at(sign, place, head);

		if (len && (again || !(sign & WRITTEN_OUT)) && copy_line(r, place, len, line)) {
			rc = log_write_quietly(fd, line, len);
			if (rc == 0)
				mark_written(r, place, sign);
		}
		place += len ? FRONT + words_of(len) : 1;
	}
	return rc;
}

/* What was written before it was there belongs to it, until it is full itself. */
static bool has_room(const struct log_ring *r)
{
	return atomic_load(&r->head) <= r->count;
}

int log_ring_dump(const struct log_ring *newest, int fd, bool again)
{
	const struct log_ring *r = NULL, *done;
	int rc = 0;

	while (r != newest && rc == 0) {
		done = r;
		for (r = newest; r->older && r->older != done && has_room(r);)
			r = r->older;
		rc = write_ring(r, fd, again);
	}
	return rc;
}

int log_dump_errors(int fd, bool again)
{
	return log_ring_dump(atomic_load(&ring), fd, again);
}

/* ---- its size ----------------------------------------------------------------------------- */

struct log_ring *log_ring_larger(struct log_ring *old, uint32_t logical_cores)
{
	uint64_t bytes = (uint64_t)LOG_RING_CORE_BYTES *
			 (logical_cores < MOST_CORES ? logical_cores : MOST_CORES);
	struct log_ring *larger;
	void *p;

	if (old && bytes / WORD <= old->count)
		return old;
	p = mmap(NULL, bytes + sizeof(*larger), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return old;
	larger = (struct log_ring *)((char *)p + bytes);
	larger->words = p;
	larger->count = bytes / WORD;
	atomic_init(&larger->head, 1);
	larger->older = old;
	return larger;
}

/* Somebody may be writing to what it was before, so that is never given back, and its lines are not copied: the last
 * one could come behind the copy. */
void log_set_cores(uint32_t logical_cores)
{
	atomic_store(&ring, log_ring_larger(atomic_load(&ring), logical_cores));
}
