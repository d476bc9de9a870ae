/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_random_test.c - the merge against brute force: random spans and calls, all times different,
 * of which parents and sums are known by comparing each with each; then the same with losses and
 * equal times, where the invariants of every file must still hold.
 */
#include "tests/shim/shim.h"
#include "tests/unit/merge_random.h"

#define MAX_SPANS 60u

struct span {
	uint64_t from, to;
	uint32_t tid;
	bool call;
	uint64_t id; /* of a runtime's span */
	int32_t result;
	uint64_t bytes;
};

struct model {
	struct span spans[MAX_SPANS];
	unsigned count;
};

/* Spans with ends drawn from different times, so that they nest, follow and cross. */
static void make_model(struct model *m, struct random *r)
{
	uint64_t times[2 * MAX_SPANS];

	m->count = 2 + next(r, MAX_SPANS - 2);
	for (unsigned i = 0; i < 2 * m->count; i++) {
		unsigned k = next(r, i + 1);

		times[i] = times[k];
		times[k] = 1000 + 10 * i;
	}
	for (unsigned i = 0; i < m->count; i++) {
		struct span *s = &m->spans[i];
		uint64_t a = times[2 * i], b = times[2 * i + 1];

		/* Short spans are the rule, as in life; else nothing would nest. */
		if (next(r, 3))
			b = a + 1 + next(r, 8);
		*s = (struct span){.from = a < b ? a : b,
			.to = a < b ? b : a,
			.tid = TID + next(r, 2),
			.call = next(r, 2),
			.id = i + 1,
			.result = next(r, 4) ? 0 : -5,
			.bytes = next(r, 10000)};
	}
}

static void put_model(struct fixture *fx, const struct model *m)
{
	for (unsigned i = 0; i < m->count; i++) {
		const struct span *s = &m->spans[i];
		struct fx_call c = {.tid = s->tid,
			.request = NEURON_IOCTL_MEM_BUF_COPY64,
			.from = s->from,
			.to = s->to,
			.result = s->result,
			.nargs = 4,
			.args = {1, s->bytes, 0, 1}};

		if (s->call)
			fx_call(fx, &c);
		else
			fx_span(fx, TRACE_GENERIC, s->id, s->tid, s->from, s->to);
	}
}

static bool contains(const struct span *a, const struct span *b)
{
	return a != b && a->tid == b->tid && a->from < b->from && b->to < a->to;
}

/* The container that began last. */
static const struct span *parent_of(const struct model *m, const struct span *s)
{
	const struct span *best = NULL;

	for (unsigned i = 0; i < m->count; i++)
		if (contains(&m->spans[i], s) && (!best || m->spans[i].from > best->from))
			best = &m->spans[i];
	return best;
}

/* The STOP of a span; calls are found by their times. */
static const struct ntrace_event_view *stop_of(const struct fixture *fx, const struct span *s)
{
	for (size_t i = 0; i < fx->trace.count; i++) {
		const struct ntrace_event_view *e = &fx->trace.events[i];

		if (e->phase == PHASE_STOP && e->timestamp == FX_EPOCH + s->to &&
			e->duration == s->to - s->from && e->thread_id == s->tid &&
			(e->hint.len > 0) == s->call)
			return e;
	}
	return NULL;
}

struct sums {
	long long ioctls, ioctl_ns, errors, bytes, dma_ns;
};

/* Sums over the calls inside, the union of copies by looking at each nanosecond. */
static struct sums sums_of(const struct model *m, const struct span *s)
{
	struct sums sum = {0};

	for (unsigned i = 0; i < m->count; i++) {
		const struct span *c = &m->spans[i];

		if (!c->call || !contains(s, c))
			continue;
		sum.ioctls++;
		sum.ioctl_ns += (long long)(c->to - c->from);
		sum.errors += c->result < 0;
		sum.bytes += c->result < 0 ? 0 : (long long)c->bytes;
	}
	for (uint64_t t = s->from; t < s->to; t++) {
		bool copying = false;

		for (unsigned i = 0; i < m->count; i++) {
			const struct span *c = &m->spans[i];

			copying |= c->call && c->result >= 0 && contains(s, c) && c->from <= t &&
				   t < c->to;
		}
		sum.dma_ns += copying;
	}
	return sum;
}

/* An attribute, 0 when it is left out. */
static long long number(const struct ntrace_event_view *e, const char *key)
{
	long long v = event_attr_number(e, key);

	return v < 0 ? 0 : v;
}

static bool right(const struct fixture *fx, const struct model *m, const struct span *s)
{
	const struct ntrace_event_view *e = stop_of(fx, s);
	const struct span *parent = parent_of(m, s);
	const struct ntrace_event_view *p = parent ? stop_of(fx, parent) : NULL;
	struct sums sum = s->call ? (struct sums){0} : sums_of(m, s);

	if (!e || e->parent_id != (p ? p->id : 0))
		return false;
	return number(e, "driver.ioctls") == sum.ioctls &&
	       number(e, "driver.ioctl_ns") == sum.ioctl_ns &&
	       number(e, "driver.errors") == sum.errors &&
	       number(e, "driver.dma_bytes") == sum.bytes &&
	       number(e, "driver.dma_ns") == sum.dma_ns;
}

/* Times of one thread's spans of one side may coincide by chance: such models are not judged. */
static bool times_differ(const struct model *m)
{
	for (unsigned i = 0; i < m->count; i++)
		for (unsigned k = 0; k < m->count; k++) {
			const struct span *a = &m->spans[i], *b = &m->spans[k];

			if (a->from == b->to || (i != k && (a->from == b->from || a->to == b->to)))
				return false;
		}
	return true;
}

TEST("merge: parents and driver work of random spans are those that brute force finds",
	"[merge][slow]")
{
	struct random r = {1};
	struct fixture fx;
	struct model m;
	unsigned judged = 0;

	for (unsigned round = 0; round < 400; round++) {
		size_t open;

		make_model(&m, &r);
		if (!times_differ(&m))
			continue;
		judged++;
		REQUIRE(fx_open(&fx));
		put_model(&fx, &m);
		REQUIRE(fx_merge_one(&fx));
		test_info("round %u of %u spans", round, m.count);
		CHECK_STR(trace_file_fault(&fx.trace, &open), "");
		CHECK_EQ(open, 0);
		for (unsigned i = 0; i < m.count; i++)
			CHECK(right(&fx, &m, &m.spans[i]));
		fx_free(&fx);
	}
	CHECK(judged > 50);
}

TEST("merge: whatever starts, stops and times are thrown at it, the file is sound and nothing is "
     "missing",
	"[merge][slow]")
{
	struct random r = {7};
	struct fixture fx;

	for (unsigned round = 0; round < 400; round++) {
		size_t open;

		REQUIRE(fx_open(&fx));
		put_anything(&fx, &r, 16, 30);
		test_info("round %u", round);
		REQUIRE(fx_merge_one(&fx));
		CHECK_STR(trace_file_fault(&fx.trace, &open), "");
		CHECK_EQ(open, fx.result.outputs[0].open_spans);
		CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_READ), 5 * 16);
		CHECK(fx.result.balanced);
		fx_free(&fx);
	}
}
