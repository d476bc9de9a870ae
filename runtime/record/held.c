/* SPDX-License-Identifier: Apache-2.0 */
/*
 * held.c - the queue in front of the writer: order by time, then by everything else.
 *
 * Items come in long runs that are almost in order, one per ring and drain; a release takes some ten
 * or hundred thousand of them.  References (time, item) are sorted by an LSD radix sort on the
 * distance from the oldest: 100 ms are 27 bits, three passes of 11.  Items of one time, of which there are
 * few, are then ordered among themselves by comparison:
 *
 *	stops of spans that began before	the one that began last first: inner before outer
 *	starts of spans that go on		runtime before kernel, then by source, place, sequence
 *	spans that begin and end now		the same, start before stop
 *	instants				the same
 *
 * so spans behave like half-open intervals, and what happens exactly when one ends and the next begins
 * is inside neither.  Stops that began together are ordered in the opposite way of their starts.  If
 * all that is equal, the contents decide: the order in which items arrived never does.
 *
 * References wait in blocks that know their oldest and newest time, so that a release which takes little
 * looks at little, however much is held back.
 */
#include "runtime/record/held.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_LIMIT (256u << 20)
#define PAGE_BYTES (256u << 10)
#define PAGE_ITEMS (PAGE_BYTES / sizeof(struct item) - 1)
#define RADIX_BITS 11u
#define SMALL_SORT 48u
#define PREFETCH 12u
#define COMPACT_BELOW (HELD_BLOCK_REFS / 4)

/* Takes the place of the page's first item; pages are aligned to their size. */
struct held_page {
	struct held_page *next;	 /* of the spare ones */
	struct held_page *other; /* of all */
	uint32_t used, live;
};

static_assert(sizeof(struct held_page) <= sizeof(struct item), "held_page");

void held_init(struct held *h, size_t limit, int (*open_file)(void *ctx), void *ctx)
{
	*h = (struct held){.limit = limit ? limit : DEFAULT_LIMIT,
		.open_file = open_file,
		.ctx = ctx,
		.fd = -1};
}

/* ---- pages -------------------------------------------------------------------------------- */

static struct held_page *page_of(struct item *item)
{
	return (struct held_page *)((uintptr_t)item & ~(uintptr_t)(PAGE_BYTES - 1));
}

static struct held_page *new_page(struct held *h)
{
	struct held_page *p = h->spare;

	if (p) {
		h->spare = p->next;
	} else {
		p = aligned_alloc(PAGE_BYTES, PAGE_BYTES);
		if (!p)
			return NULL;
		p->other = h->pages;
		h->pages = p;
	}
	p->next = NULL;
	p->used = p->live = 0;
	h->page_count++;
	return p;
}

/* Kept for the next items. */
static void old_page(struct held *h, struct held_page *p)
{
	h->page_count--;
	p->next = h->spare;
	h->spare = p;
}

struct item *held_item(struct held *h)
{
	struct held_page *p = h->page;

	if (!p || p->used == PAGE_ITEMS) {
		p = new_page(h);
		if (!p)
			return NULL;
		if (h->page && h->page->live == 0)
			old_page(h, h->page);
		h->page = p;
	}
	p->live++;
	return (struct item *)p + ++p->used;
}

void held_release_item(struct held *h, struct item *item)
{
	struct held_page *p = page_of(item);

	if (--p->live)
		return;
	if (p == h->page)
		p->used = 0;
	else
		old_page(h, p);
}

void held_free(struct held *h)
{
	while (h->pages) {
		struct held_page *other = h->pages->other;

		free(h->pages);
		h->pages = other;
	}
	for (size_t b = 0; b < h->block_count; b++)
		free(h->blocks[b]);
	for (size_t r = 0; r < h->run_count; r++)
		free(h->runs[r].buf);
	free(h->blocks);
	free(h->batch.refs);
	free(h->scratch.refs);
	free(h->runs);
	map64_free(&h->late_flags);
	if (h->fd >= 0)
		close(h->fd);
	*h = (struct held){.fd = -1};
}

/* ---- references --------------------------------------------------------------------------- */

static struct held_block *add_block(struct held *h)
{
	struct held_block *b;

	if (h->block_count == h->block_cap) {
		size_t cap = h->block_cap ? 2 * h->block_cap : 16;
		struct held_block **more = realloc(h->blocks, cap * sizeof(*more));

		if (!more)
			return NULL;
		h->blocks = more;
		h->block_cap = cap;
	}
	b = malloc(sizeof(*b));
	if (!b)
		return NULL;
	b->count = 0;
	b->min = UINT64_MAX;
	b->max = 0;
	return h->blocks[h->block_count++] = b;
}

static int put_ref(struct held *h, struct held_ref r)
{
	struct held_block *b = h->block_count ? h->blocks[h->block_count - 1] : NULL;

	if (!b || b->count == HELD_BLOCK_REFS) {
		b = add_block(h);
		if (!b)
			return -ENOMEM;
	}
	if (r.time < b->min)
		b->min = r.time;
	if (r.time > b->max)
		b->max = r.time;
	b->refs[b->count++] = r;
	return 0;
}

static int room(struct held_refs *r, size_t count)
{
	size_t cap = r->cap ? r->cap : 1024;
	struct held_ref *more;

	while (cap < count)
		cap *= 2;
	if (cap == r->cap)
		return 0;
	more = realloc(r->refs, cap * sizeof(*more));
	if (!more)
		return -ENOMEM;
	r->refs = more;
	r->cap = cap;
	return 0;
}

/* Moves what is older than `before` out of a block into the batch, which has room. */
static void take_from(struct held *h, struct held_block *b, uint64_t before)
{
	uint32_t kept = 0;

	if (b->max < before) {
		memcpy(&h->batch.refs[h->batch.count], b->refs, b->count * sizeof(*b->refs));
		h->batch.count += b->count;
	} else {
		b->min = UINT64_MAX;
		for (uint32_t i = 0; i < b->count; i++) {
			if (b->refs[i].time < before) {
				h->batch.refs[h->batch.count++] = b->refs[i];
				continue;
			}
			if (b->refs[i].time < b->min)
				b->min = b->refs[i].time;
			b->refs[kept++] = b->refs[i];
		}
	}
	b->count = kept;
}

/* Fills the batch with everything before a time; blocks that are nearly empty then are joined. */
static int take(struct held *h, uint64_t before)
{
	struct held_block **blocks = h->blocks;
	size_t count = h->block_count;
	int rc = room(&h->batch, h->count);

	h->batch.count = 0;
	if (rc < 0)
		return rc;
	h->block_count = 0;
	for (size_t i = 0; i < count; i++) {
		struct held_block *b = blocks[i];

		if (b->min < before)
			take_from(h, b, before);
		struct held_block *last = h->block_count ? blocks[h->block_count - 1] : NULL;
		if (last && b->count < COMPACT_BELOW && last->count + b->count <= HELD_BLOCK_REFS) {
			memcpy(&last->refs[last->count], b->refs, b->count * sizeof(*b->refs));
			last->count += b->count;
			last->min = b->min < last->min && b->count ? b->min : last->min;
			last->max = b->max > last->max && b->count ? b->max : last->max;
			free(b);
			continue;
		}
		if (b->count == 0) {
			b->min = UINT64_MAX;
			b->max = 0;
		}
		blocks[h->block_count++] = b;
	}
	h->count -= h->batch.count;
	return 0;
}

/* ---- order -------------------------------------------------------------------------------- */

static unsigned rank(const struct item *i)
{
	if (i->kind >= ITEM_INSTANT)
		return 3;
	if (i->flags & ITEM_ZERO)
		return 2;
	return i->kind == ITEM_START;
}

#define COMPARE(x, y)                              \
	do {                                       \
		if ((x) != (y))                    \
			return (x) < (y) ? -1 : 1; \
	} while (0)

static int compare_places(const struct item *a, const struct item *b)
{
	COMPARE(a->side, b->side);
	COMPARE(a->source, b->source);
	COMPARE(a->place, b->place);
	COMPARE(a->seq, b->seq);
	COMPARE(a->pair, b->pair);
	return 0;
}

int held_compare(const struct item *a, const struct item *b)
{
	unsigned x = rank(a), y = rank(b);
	int c;

	COMPARE(x, y);
	if (x == 0) {
		COMPARE(b->start, a->start);
		c = compare_places(b, a);
	} else {
		c = compare_places(a, b);
	}
	if (c)
		return c;
	COMPARE(b->kind, a->kind); /* a start before its stop */
	return memcmp(a, b, sizeof(*a));
}

static int compare_refs(const void *a, const void *b)
{
	return held_compare(((const struct held_ref *)a)->item, ((const struct held_ref *)b)->item);
}

static void insertion_sort(struct held_ref *r, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		struct held_ref x = r[i];
		size_t k = i;

		for (; k > 0 && r[k - 1].time > x.time; k--)
			r[k] = r[k - 1];
		r[k] = x;
	}
}

/* One pass by a digit; false when all have the same, and nothing was moved. */
static bool radix_pass(const struct held_ref *from, struct held_ref *to, size_t count,
	uint64_t base, unsigned shift)
{
	uint32_t at[1u << RADIX_BITS] = {0};
	const uint64_t mask = (1u << RADIX_BITS) - 1;
	uint32_t sum = 0;

	for (size_t i = 0; i < count; i++)
		at[(from[i].time - base) >> shift & mask]++;
	if (at[(from[0].time - base) >> shift & mask] == count)
		return false;
	for (size_t d = 0; d <= mask; d++) {
		uint32_t n = at[d];

		at[d] = sum;
		sum += n;
	}
	for (size_t i = 0; i < count; i++)
		to[at[(from[i].time - base) >> shift & mask]++] = from[i];
	return true;
}

/* Sorts the batch by time. */
static int sort_batch(struct held *h)
{
	size_t n = h->batch.count;
	struct held_ref *from = h->batch.refs;
	uint64_t min = UINT64_MAX, max = 0;
	bool sorted = true;

	for (size_t i = 0; i < n; i++) {
		sorted &= from[i].time >= max;
		min = from[i].time < min ? from[i].time : min;
		max = from[i].time > max ? from[i].time : max;
	}
	if (sorted)
		return 0;
	if (n <= SMALL_SORT) {
		insertion_sort(from, n);
		return 0;
	}
	if (n > UINT32_MAX)
		return -EFBIG;
	int rc = room(&h->scratch, n);
	if (rc < 0)
		return rc;
	for (unsigned shift = 0; shift < 64 && (max - min) >> shift; shift += RADIX_BITS) {
		if (!radix_pass(h->batch.refs, h->scratch.refs, n, min, shift))
			continue;
		struct held_refs t = h->batch;
		h->batch = h->scratch;
		h->scratch = t;
		h->batch.count = n;
	}
	return 0;
}

int held_give_group(struct held_ref *refs, size_t count, held_fn fn, void *ctx)
{
	int rc = 0;

	if (count > 1)
		qsort(refs, count, sizeof(*refs), compare_refs);
	for (size_t i = 0; rc >= 0 && i < count; i++)
		rc = fn(ctx, refs[i].item);
	return rc;
}

/* Gives the sorted batch. */
static int give_batch(struct held *h, held_fn fn, void *ctx)
{
	struct held_ref *r = h->batch.refs;
	size_t n = h->batch.count, next;
	int rc = 0;

	for (size_t i = 0; rc >= 0 && i < n; i = next) {
		if (i + PREFETCH < n) {
			__builtin_prefetch(r[i + PREFETCH].item);
			__builtin_prefetch((const char *)r[i + PREFETCH].item + 64);
		}
		next = i + 1;
		if (next == n || r[next].time != r[i].time) {
			rc = fn(ctx, r[i].item);
		} else {
			while (next < n && r[next].time == r[i].time)
				next++;
			rc = held_give_group(&r[i], next - i, fn, ctx);
		}
		for (size_t k = i; k < next; k++)
			held_release_item(h, r[k].item);
	}
	return rc < 0 ? rc : 0;
}

/* ---- in and out --------------------------------------------------------------------------- */

static size_t bytes_held(const struct held *h)
{
	return h->page_count * PAGE_BYTES + h->count * sizeof(struct held_ref);
}

/* All that waits goes to the file.  A tiny limit still lets a few hundred items gather. */
static int spill(struct held *h)
{
	int rc = take(h, UINT64_MAX);

	if (rc == 0)
		rc = sort_batch(h);
	if (rc == 0)
		rc = held_write_run(h, h->batch.refs, h->batch.count);
	for (size_t i = 0; i < h->batch.count; i++)
		held_release_item(h, h->batch.refs[i].item);
	h->batch.count = 0;
	h->generation++;
	return rc;
}

int held_put(struct held *h, struct item *item)
{
	int rc = put_ref(h, (struct held_ref){item->time, item});

	if (rc < 0) {
		held_release_item(h, item);
		return rc;
	}
	h->count++;
	if (bytes_held(h) > h->limit && h->count * sizeof(struct item) > h->limit / 2)
		return spill(h);
	return 0;
}

int held_flags(struct held *h, struct item *item, uint32_t generation, uint64_t pair,
	enum item_flags flags)
{
	uint64_t *known;

	if (generation == h->generation) {
		item->flags |= (uint16_t)flags;
		return 0;
	}
	known = map64_find(&h->late_flags, pair);
	return map64_put(&h->late_flags, pair, flags | (known ? *known : 0));
}

int held_release(struct held *h, uint64_t before, held_fn fn, void *ctx)
{
	int rc = take(h, before);

	if (rc == 0)
		rc = sort_batch(h);
	if (rc == 0)
		rc = h->run_count ? held_merge_runs(h, before, fn, ctx) : give_batch(h, fn, ctx);
	h->batch.count = 0;
	return rc;
}
