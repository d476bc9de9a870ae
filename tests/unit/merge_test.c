/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_test.c - what the merge makes of events: spans and parents, driver work, links, under
 * losses and equal times.  Each case is a synthetic recording of a few records; every result is
 * also held against the invariants of trace_file.h.
 */
#include "tests/shim/shim.h"
#include "tests/unit/recording_fixture.h"

#define TID 100u
#define REQUEST_COPY NEURON_IOCTL_MEM_BUF_COPY64

static void put_u32(struct trace_record *r, size_t offset, uint32_t v)
{
	memcpy(r->data + offset, &v, sizeof(v));
}

static void put_u64(struct trace_record *r, size_t offset, uint64_t v)
{
	memcpy(r->data + offset, &v, sizeof(v));
}

/* The merged file is there and sound, and so are the books. */
static bool merged(struct fixture *fx, size_t open)
{
	return fx_merged(fx, open) && fx->result.outputs[0].open_spans == open &&
	       fx->result.balanced;
}

static const struct ntrace_event_view *stop_of(const struct fixture *fx, uint64_t id)
{
	static const struct ntrace_event_view none;
	const struct ntrace_event_view *e = trace_file_find(&fx->trace, id, PHASE_STOP);

	return e ? e : &none;
}

/* ---- spans -------------------------------------------------------------------------------- */

TEST("merge: a span is a start and a stop with one id, epoch times and its duration", "[merge]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	struct trace_record *r =
		fx_record(&fx, TRACE_TENSOR_WRITE, TRACE_START, 1ull << 50 | 7, TID, 1000);
	r->nc_idx = 3;
	put_u64(r, 0, 42);
	put_u64(r, 8, 4096);
	r = fx_record(&fx, TRACE_TENSOR_WRITE, TRACE_STOP, 1ull << 50 | 7, TID, 1500);
	r->nc_idx = 3;
	r->status = 2;
	r->has_nrta_seq_id = 1;
	r->nrta_seq_id = 9;
	fx_records(&fx, FX_SOURCE);
	REQUIRE(merged(&fx, 0));
	REQUIRE_EQ(fx.trace.count, 2);
	const struct ntrace_event_view *a = &fx.trace.events[0], *b = &fx.trace.events[1];
	CHECK_EQ(a->phase, PHASE_START);
	CHECK_EQ(a->timestamp, FX_EPOCH + 1000);
	CHECK_EQ(a->id, 1ull << 50 | 7);
	CHECK_EQ(a->tracking_id, a->id);
	CHECK_EQ(a->event_type, TRACE_TENSOR_WRITE);
	CHECK_EQ(a->hint.len, 0);
	CHECK_EQ(a->nc_idx, 3);
	CHECK_EQ(a->thread_id, TID);
	CHECK_EQ(a->has_nrta_seq_id, false);
	CHECK_STR(event_attr(a, "tensor_id"), "42");
	CHECK_STR(event_attr(a, "size"), "4096");
	CHECK_STR(event_attr(a, "nc"), "");
	CHECK_EQ(b->phase, PHASE_STOP);
	CHECK_EQ(b->timestamp, FX_EPOCH + 1500);
	CHECK_EQ(b->duration, 500);
	CHECK_EQ(b->status, 2);
	CHECK_EQ(b->nrta_seq_id, 9);
	CHECK_EQ(fx.result.outputs[0].spans, 1);
	CHECK_EQ(fx.result.outputs[0].events, 2);
	CHECK_EQ(fx.result.outputs[0].pid, FX_PID);
	fx_free(&fx);
}

TEST("merge: an unknown core is said, model ids bring their names, host times become epoch",
	"[merge]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_name(&fx, 77, "net\xff.neff");
	struct trace_record *r = fx_record(&fx, TRACE_EXECUTE_API, TRACE_START, 1, TID, 10);
	r->nc_idx = TRACE_NC_UNKNOWN;
	put_u64(r, 0, 77);
	r = fx_record(&fx, TRACE_EXECUTE_API, TRACE_STOP, 1, TID, 90);
	r->nc_idx = TRACE_NC_UNKNOWN;
	r = fx_record(&fx, TRACE_TIMESTAMP_SYNC, TRACE_INSTANT, 2, TID, 20);
	put_u64(r, 8, 555);
	put_u64(r, 16, FX_BOOT + 15);
	fx_records(&fx, FX_SOURCE);
	REQUIRE(merged(&fx, 0));
	const struct ntrace_event_view *a = trace_file_find(&fx.trace, 1, PHASE_START);
	CHECK_STR(event_attr(a, "nc"), "unknown");
	CHECK_STR(event_attr(a, "model_id"), "77");
	CHECK_STR(event_attr(a, "model_name"), "net?.neff");
	CHECK_STR(event_attr(stop_of(&fx, 1), "nc"), "unknown");
	const struct ntrace_event_view *s = trace_file_find(&fx.trace, 2, PHASE_INSTANT);
	REQUIRE(s != NULL);
	CHECK_STR(event_attr(s, "nc_timestamp_ns"), "555");
	CHECK_EQ((uint64_t)event_attr_number(s, "cpu_timestamp_ns"), FX_EPOCH + 15);
	CHECK_EQ(s->parent_id, 0); /* hardware is nobody's child */
	fx_free(&fx);
}

TEST("merge: an address that is not known is left out, 0 of anything else is not", "[merge]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	for (uint64_t id = 1; id <= 2; id++) {
		fx_record(&fx, TRACE_DMA_MEM_ALLOC, TRACE_START, id, TID, 100 * id);
		put_u64(fx_record(&fx, TRACE_DMA_MEM_ALLOC, TRACE_STOP, id, TID, 100 * id + 50), 8,
			id == 1 ? 0 : 0x1000);
	}
	fx_records(&fx, FX_SOURCE);
	REQUIRE(merged(&fx, 0));
	CHECK_STR(event_attr(stop_of(&fx, 1), "physical_address"), "");
	CHECK_STR(event_attr(stop_of(&fx, 1), "return_code"), "0");
	CHECK_STR(event_attr(stop_of(&fx, 2), "physical_address"), "0x1000");
	fx_free(&fx);
}

TEST("merge: the nearest span that contains an event on its thread is its parent", "[merge]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_span(&fx, TRACE_EXECUTE_API, 1, TID, 100, 900);
	fx_span(&fx, TRACE_EXEC_CORE, 2, TID, 200, 800);
	fx_span(&fx, TRACE_EXEC_WAIT, 3, TID, 300, 700);
	fx_span(&fx, TRACE_EXEC_POST, 4, TID, 810, 820);
	fx_span(&fx, TRACE_EXEC_PRE, 5, TID + 1, 300, 400); /* another thread */
	fx_span(&fx, TRACE_DEVICE_EXEC, 6, TID, 310, 690);  /* the device */
	fx_span(&fx, TRACE_TENSOR_READ, 7, TID, 850, 950);  /* crosses the end of 1 */
	fx_record(&fx, TRACE_GENERIC, TRACE_INSTANT, 8, TID, 500);
	fx_records(&fx, FX_SOURCE);
	REQUIRE(merged(&fx, 0));
	static const uint64_t parents[] = {[1] = 0, 1, 2, 1, 0, 0, 0, 3};
	for (uint64_t id = 1; id <= 8; id++) {
		test_info("id %d", (int)id);
		CHECK_EQ(fx_parent(&fx, id), parents[id]);
	}
	fx_free(&fx);
}

TEST("merge: at equal times spans behave like half-open intervals", "[merge]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_record(&fx, TRACE_EXECUTE_API, TRACE_START, 1, TID, 100);
	fx_record(&fx, TRACE_MODEL_SUBMIT, TRACE_START, 2, TID, 100);
	fx_record(&fx, TRACE_EXEC_PRE, TRACE_START, 3, TID, 100);
	fx_record(&fx, TRACE_EXEC_PRE, TRACE_STOP, 3, TID, 100); /* no time passed */
	fx_record(&fx, TRACE_MODEL_SUBMIT, TRACE_STOP, 2, TID, 200);
	fx_record(&fx, TRACE_EXEC_WAIT, TRACE_START, 4, TID, 200); /* where 2 ended */
	fx_record(&fx, TRACE_GENERIC, TRACE_INSTANT, 5, TID, 200);
	fx_record(&fx, TRACE_EXEC_WAIT, TRACE_STOP, 4, TID, 300);
	fx_record(&fx, TRACE_EXECUTE_API, TRACE_STOP, 1, TID, 300); /* ends with its child */
	fx_record(&fx, TRACE_EXECUTE_API, TRACE_START, 6, TID, 300);
	fx_record(&fx, TRACE_MODEL_SUBMIT, TRACE_START, 7, TID, 300);
	fx_record(&fx, TRACE_MODEL_SUBMIT, TRACE_STOP, 7, TID, 300);
	fx_record(&fx, TRACE_EXECUTE_API, TRACE_STOP, 6, TID, 300); /* both without time */
	fx_records(&fx, FX_SOURCE);
	REQUIRE(merged(&fx, 0));
	CHECK_EQ(fx_parent(&fx, 1), 0);
	CHECK_EQ(fx_parent(&fx, 2), 1);
	CHECK_EQ(fx_parent(&fx, 3), 2);
	CHECK_EQ(fx_parent(&fx, 4), 1);
	CHECK_EQ(fx_parent(&fx, 5), 4);
	CHECK_EQ(fx_parent(&fx, 6), 0);
	CHECK_EQ(fx_parent(&fx, 7), 6);
	fx_free(&fx);
}

TEST("merge: the same interval on both sides: the driver's call is inside the runtime's span",
	"[merge]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_copy(&fx, TID, 100, 200, 64);
	fx_span(&fx, TRACE_DMEM_BUF_COPYIN, 1, TID, 100, 200);
	REQUIRE(merged(&fx, 0));
	CHECK_EQ(fx_by_hint(&fx, "MEM_BUF_COPY64", PHASE_STOP, 0)->parent_id, 1);
	CHECK_STR(event_attr(stop_of(&fx, 1), "driver.ioctl_ns"), "100");
	fx_free(&fx);
}

/* ---- losses ------------------------------------------------------------------------------- */

TEST("merge: a stop without a start is an instant that says so, inside what contains it", "[merge]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_span(&fx, TRACE_EXECUTE_API, 1, TID, 100, 900);
	struct trace_record *r = fx_record(&fx, TRACE_MODEL_LOAD, TRACE_STOP, 2, TID, 200);
	put_u64(r, 0, 31);
	r->status = 5;
	fx_records(&fx, FX_SOURCE);
	REQUIRE(merged(&fx, 0));
	const struct ntrace_event_view *e = trace_file_find(&fx.trace, 2, PHASE_INSTANT);
	REQUIRE(e != NULL);
	CHECK_STR(event_attr(e, "start"), "lost");
	CHECK_STR(event_attr(e, "model_id"), "31");
	CHECK_EQ(e->status, 5);
	CHECK_EQ(e->parent_id, 1);
	CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_START_LOST), 1);
	fx_free(&fx);
}

TEST("merge: a span whose stop was lost stays open and does not adopt what comes later", "[merge]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	/* An execution whose inner stop was lost, and one whose outer stop was lost. */
	fx_span(&fx, TRACE_EXECUTE_API, 1, TID, 100, 400);
	fx_record(&fx, TRACE_EXEC_WAIT, TRACE_START, 2, TID, 200);
	fx_record(&fx, TRACE_GENERIC, TRACE_INSTANT, 3, TID, 300);
	fx_record(&fx, TRACE_GENERIC, TRACE_INSTANT, 4, TID, 450);
	fx_record(&fx, TRACE_EXECUTE_API, TRACE_START, 5, TID, 500);
	fx_record(&fx, TRACE_GENERIC, TRACE_INSTANT, 6, TID, 550);
	fx_records(&fx, FX_SOURCE);
	fx_span(&fx, TRACE_EXECUTE_API, 7, TID, 600, 900);
	REQUIRE(merged(&fx, 2));
	CHECK_EQ(fx_parent(&fx, 1), 0);
	CHECK_EQ(fx_parent(&fx, 3), 2); /* still running as far as one can see */
	CHECK_EQ(fx_parent(&fx, 4), 0); /* ended with 1 at the latest */
	CHECK_EQ(fx_parent(&fx, 6), 5);
	CHECK_EQ(fx_parent(&fx, 7), 0); /* the API does not call itself */
	fx_free(&fx);
}

TEST("merge: killed in the middle, everything is there and what was running is open", "[merge]")
{
	struct fixture fx;
	struct fx_call hanging = {.tid = TID,
		.request = REQUEST_COPY,
		.from = 300,
		.open = true,
		.cpu = 0xffff,
		.nargs = 4,
		.args = {77, 4096, 0, 1}};

	REQUIRE(fx_open(&fx));
	fx_record(&fx, TRACE_TENSOR_WRITE, TRACE_START, 1, TID, 100);
	fx_record(&fx, TRACE_DMEM_BUF_COPYIN, TRACE_START, 2, TID, 200);
	fx_records(&fx, FX_SOURCE);
	fx_call(&fx, &hanging);
	REQUIRE(merged(&fx, 3));
	CHECK(!fx.result.ended);
	const struct ntrace_event_view *e = fx_by_hint(&fx, "MEM_BUF_COPY64", PHASE_START, 0);
	CHECK_EQ(e->timestamp, FX_EPOCH + 300);
	CHECK_STR(event_attr(e, "bytes"), "4096");
	CHECK_STR(event_attr(e, "direction"), "host_to_device");
	fx_free(&fx);
}

TEST("merge: a call that was announced and then finished is one span; the second announcement of "
     "one "
     "still open says nothing new",
	"[merge]")
{
	struct fixture fx;
	struct fx_call c = {
		.tid = TID, .request = REQUEST_COPY, .from = 300, .to = 500, .nargs = 0};

	REQUIRE(fx_open(&fx));
	fx_span(&fx, TRACE_TENSOR_WRITE, 1, TID, 100, 900);
	c.open = true;
	fx_call(&fx, &c);
	c.open = false;
	fx_call(&fx, &c);
	c.tid = TID + 1;
	c.open = true;
	fx_call(&fx, &c);
	fx_call(&fx, &c);
	REQUIRE(merged(&fx, 1));
	CHECK_EQ(fx.result.outputs[0].kernel_spans, 1);
	CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_ANNOUNCED), 2);
	CHECK_EQ(fx_by_hint(&fx, "MEM_BUF_COPY64", PHASE_STOP, 0)->parent_id, 1);
	fx_free(&fx);
}

TEST("merge: a stop before its start is moved to it and counted", "[merge]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_record(&fx, TRACE_TENSOR_READ, TRACE_STOP, 1, TID, 700);
	fx_record(&fx, TRACE_TENSOR_READ, TRACE_START, 1, TID, 1000);
	fx_records(&fx, FX_SOURCE);
	REQUIRE(merged(&fx, 0));
	CHECK_EQ(stop_of(&fx, 1)->duration, 0);
	CHECK_STR(event_attr(stop_of(&fx, 1), "clamped_ns"), "300");
	CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_CLAMPED), 1);
	CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_CLAMPED_NS), 300);
	fx_free(&fx);
}

TEST("merge: ids used twice give one span and instants, and no id has two spans", "[merge]")
{
	struct fixture fx;
	unsigned duplicates = 0, lost = 0;

	REQUIRE(fx_open(&fx));
	fx_span(&fx, TRACE_TENSOR_READ, 1, TID, 100, 200);
	fx_span(&fx, TRACE_TENSOR_READ, 1, TID, 300, 400);
	REQUIRE(merged(&fx, 0));
	REQUIRE_EQ(fx.trace.count, 4);
	for (size_t i = 0; i < 4; i++) {
		duplicates += !strcmp(event_attr(&fx.trace.events[i], "start"), "duplicate");
		lost += !strcmp(event_attr(&fx.trace.events[i], "start"), "lost");
	}
	CHECK_EQ(duplicates, 1);
	CHECK_EQ(lost, 1);
	CHECK_EQ(stop_of(&fx, 1)->duration, 100);
	fx_free(&fx);
}

/* ---- driver work -------------------------------------------------------------------------- */

TEST("merge: driver work is summed at every level, over the span's own thread", "[merge]")
{
	struct fixture fx;
	struct fx_call failing = {.tid = TID,
		.request = NEURON_IOCTL_MEM_FREE,
		.from = 610,
		.to = 615,
		.result = -EACCES,
		.nargs = 2,
		.args = {5}};

	REQUIRE(fx_open(&fx));
	fx_span(&fx, TRACE_EXECUTE_API, 1, TID, 100, 900);
	fx_span(&fx, TRACE_DMEM_BUF_COPYIN, 2, TID, 200, 500);
	fx_span(&fx, TRACE_EXEC_POST, 3, TID, 600, 700);
	fx_span(&fx, TRACE_EXEC_PRE, 4, TID, 710, 720);
	fx_copy(&fx, TID, 210, 250, 1000);
	fx_copy(&fx, TID, 260, 290, 24);
	fx_call(&fx, &failing);
	fx_copy(&fx, TID + 1, 300, 400, 1 << 20); /* another thread's */
	fx_copy(&fx, TID, 890, 910, 7);		  /* ends outside */
	REQUIRE(merged(&fx, 0));
	const struct ntrace_event_view *outer = stop_of(&fx, 1), *copy = stop_of(&fx, 2);
	CHECK_STR(event_attr(copy, "driver.ioctls"), "2");
	CHECK_STR(event_attr(copy, "driver.ioctl_ns"), "70");
	CHECK_STR(event_attr(copy, "driver.dma_bytes"), "1024");
	CHECK_STR(event_attr(copy, "driver.dma_ns"), "70");
	CHECK_STR(event_attr(copy, "driver.errors"), "");
	CHECK_STR(event_attr(outer, "driver.ioctls"), "3");
	CHECK_STR(event_attr(outer, "driver.ioctl_ns"), "75");
	CHECK_STR(event_attr(outer, "driver.dma_bytes"), "1024");
	CHECK_STR(event_attr(outer, "driver.errors"), "1");
	CHECK_STR(event_attr(outer, "driver.last_errno"), "EACCES");
	CHECK_STR(event_attr(stop_of(&fx, 3), "driver.ioctls"), "1");
	CHECK_STR(event_attr(stop_of(&fx, 3), "driver.dma_bytes"), "");
	CHECK_STR(event_attr(stop_of(&fx, 4), "driver.ioctls"), "");
	fx_free(&fx);
}

TEST("merge: a positive result is what a failed user copy left over: an error, no copy", "[merge]")
{
	struct fixture fx;
	struct fx_call left_over = {.tid = TID,
		.request = NEURON_IOCTL_MEM_BUF_COPY64,
		.from = 120,
		.to = 150,
		.result = 64,
		.nargs = 4,
		.args = {77, 4096, 0, 1}};

	REQUIRE(fx_open(&fx));
	fx_span(&fx, TRACE_TENSOR_WRITE, 1, TID, 100, 200);
	fx_call(&fx, &left_over);
	REQUIRE(merged(&fx, 0));
	const struct ntrace_event_view *span = stop_of(&fx, 1);
	CHECK_STR(event_attr(span, "driver.ioctls"), "1");
	CHECK_STR(event_attr(span, "driver.errors"), "1");
	CHECK_STR(event_attr(span, "driver.last_errno"), "EFAULT");
	CHECK_STR(event_attr(span, "driver.dma_bytes"), "");
	fx_free(&fx);
}

TEST("merge: copies that overlap count their union, never more than the span", "[merge]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_span(&fx, TRACE_TENSOR_WRITE, 1, TID, 100, 200);
	fx_copy(&fx, TID, 105, 110, 1);
	fx_copy(&fx, TID, 107, 109, 1);
	fx_copy(&fx, TID, 100, 190, 1);
	fx_copy(&fx, TID, 150, 200, 1);
	REQUIRE(merged(&fx, 0));
	CHECK_STR(event_attr(stop_of(&fx, 1), "driver.dma_ns"), "100");
	CHECK_STR(event_attr(stop_of(&fx, 1), "driver.ioctls"), "4");
	fx_free(&fx);
}

TEST("merge: a driver call carries name, arguments and result", "[merge]")
{
	struct fixture fx;
	struct fx_call free_call = {.tid = TID,
		.request = NEURON_IOCTL_MEM_FREE,
		.from = 300,
		.to = 310,
		.result = -ENOENT,
		.nargs = 2,
		.args = {99}};
	struct fx_call unknown = {.tid = TID,
		.request = 0xc0de4effu,
		.from = 400,
		.to = 401,
		.result = 3,
		.flags = NEV_F_UNKNOWN};
	struct fx_call fault = {.tid = TID,
		.request = REQUEST_COPY,
		.from = 500,
		.to = 501,
		.result = -EFAULT,
		.flags = NEV_F_ARG_FAULT,
		.nargs = 4};
	struct fx_call core = {.tid = TID,
		.request = NEURON_IOCTL_SEMAPHORE_READ,
		.from = 600,
		.to = 601,
		.nargs = 2,
		.args = {2, 5}};

	REQUIRE(fx_open(&fx));
	fx_copy(&fx, TID, 100, 200, 4096);
	fx_call(&fx, &free_call);
	fx_call(&fx, &unknown);
	fx_call(&fx, &fault);
	fx_call(&fx, &core);
	REQUIRE(merged(&fx, 0));
	const struct ntrace_event_view *e = fx_by_hint(&fx, "MEM_BUF_COPY64", PHASE_STOP, 0);
	CHECK_EQ(e->event_type, 0);
	CHECK_EQ(e->nd_idx, 1);
	CHECK_EQ(e->thread_id, TID);
	CHECK_EQ(e->id, 1ull << 63 | 1);
	CHECK_EQ(e->duration, 100);
	CHECK_STR(event_attr(e, "request"), "0xc0284e18");
	CHECK_STR(event_attr(e, "handle"), "77");
	CHECK_STR(event_attr(e, "bytes"), "4096");
	CHECK_STR(event_attr(e, "direction"), "host_to_device");
	CHECK_STR(event_attr(e, "result"), "0");
	CHECK_STR(event_attr(e, "errno"), "");
	CHECK_STR(event_attr(e, "nc"), "unknown");
	e = fx_by_hint(&fx, "MEM_FREE", PHASE_STOP, 0);
	CHECK_STR(event_attr(e, "result"), "-2");
	CHECK_STR(event_attr(e, "errno"), "ENOENT");
	CHECK_STR(event_attr(e, "handle"), "99");
	e = fx_by_hint(&fx, "ioctl_0xc0de4eff", PHASE_STOP, 0);
	CHECK_STR(event_attr(e, "result"), "3");
	e = fx_by_hint(&fx, "MEM_BUF_COPY64", PHASE_STOP, 1);
	CHECK_STR(event_attr(e, "args"), "unreadable");
	CHECK_STR(event_attr(e, "bytes"), "");
	e = fx_by_hint(&fx, "SEMAPHORE_READ", PHASE_STOP, 0);
	CHECK_EQ(e->nc_idx, 2);
	CHECK_STR(event_attr(e, "nc"), "2");
	CHECK_STR(event_attr(e, "index"), "5");
	fx_free(&fx);
}

TEST("merge: kernel spans as extended types or not at all; driver work does not depend on it",
	"[merge]")
{
	struct fixture fx;
	struct trace_file t;
	size_t open;

	REQUIRE(fx_open(&fx));
	fx_span(&fx, TRACE_TENSOR_WRITE, 1, TID, 100, 900);
	fx_copy(&fx, TID, 210, 250, 1000);
	REQUIRE_EQ(fx_merge(&fx, "extended", MERGE_KERNEL_EXTENDED), 0);
	REQUIRE(trace_file_read(&t, fx_path(&fx, "extended").s));
	REQUIRE_EQ(t.count, 4);
	CHECK_EQ(t.events[1].event_type, 1000 + 24); /* _IOC_NR of MEM_BUF_COPY */
	CHECK(pb_str_is(t.events[1].hint, "MEM_BUF_COPY64"));
	trace_file_free(&t);

	REQUIRE_EQ(fx_merge(&fx, "off", MERGE_KERNEL_OFF), 0);
	CHECK(fx.result.balanced);
	CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_NOT_WANTED), 1);
	REQUIRE(trace_file_read(&t, fx_path(&fx, "off").s));
	CHECK_EQ(t.count, 2);
	CHECK_STR(trace_file_fault(&t, &open), "");
	CHECK_STR(event_attr(&t.events[1], "driver.dma_bytes"), "1000");
	trace_file_free(&t);
	fx_free(&fx);
}

/* ---- links -------------------------------------------------------------------------------- */

static void device_run(
	struct fixture *fx, uint64_t id, uint32_t nc, uint32_t exec_id, uint64_t from, uint64_t to)
{
	struct trace_record *r = fx_record(fx, TRACE_DEVICE_EXEC, TRACE_START, id, 0, from);

	r->nc_idx = nc;
	put_u32(r, 4, exec_id);
	r = fx_record(fx, TRACE_DEVICE_EXEC, TRACE_STOP, id, 0, to);
	r->nc_idx = nc;
	fx_records(fx, FX_SOURCE);
}

/* nrt_execute id, its submit id + 1 and wait id + 2 on a core. */
static void execution(struct fixture *fx, uint64_t id, uint32_t nc, uint64_t exec_id, uint64_t from)
{
	static const enum trace_type types[] = {
		TRACE_EXECUTE_API, TRACE_MODEL_SUBMIT, TRACE_EXEC_WAIT};
	static const uint64_t begins[] = {0, 10, 30}, ends[] = {100, 20, 90};

	for (unsigned i = 0; i < 3; i++) {
		struct trace_record *r =
			fx_record(fx, types[i], TRACE_START, id + i, TID + nc, from + begins[i]);
		r->nc_idx = nc;
		put_u64(r, 0, i == 2 ? exec_id : 1);
		r = fx_record(fx, types[i], TRACE_STOP, id + i, TID + nc, from + ends[i]);
		r->nc_idx = nc;
	}
	fx_records(fx, FX_SOURCE);
}

TEST("merge: a device run links to the submit of its execution", "[merge]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	execution(&fx, 10, 0, 500, 1000);
	execution(&fx, 20, 1, 500, 1000); /* the same exec_id on another core */
	execution(&fx, 30, 0, 501, 1200);
	execution(&fx, 40, 0, 500, 5000); /* the same exec_id much later */
	device_run(&fx, 1, 0, 500, 1025, 1080);
	device_run(&fx, 2, 1, 500, 1025, 1080);
	device_run(&fx, 3, 0, 501, 1215, 1285);
	device_run(&fx, 4, 0, 500, 5025, 5080);
	device_run(&fx, 5, 0, 777, 1216, 1286); /* no wait says 777 */
	device_run(&fx, 6, 5, 500, 1025, 1080); /* a core without submits */
	REQUIRE(merged(&fx, 0));
	static const struct {
		const char *id, *grade;
	} links[] = {{"11", "exact"}, {"21", "exact"}, {"31", "exact"}, {"41", "exact"},
		{"31", "inferred"}, {"", ""}};
	for (uint64_t id = 1; id <= 6; id++) {
		const struct ntrace_event_view *e = stop_of(&fx, id);

		test_info("device run %d", (int)id);
		CHECK_STR(event_attr(e, "link.id"), links[id - 1].id);
		CHECK_STR(event_attr(e, "link"), links[id - 1].grade);
		CHECK_STR(event_attr(e, "link.kind"), *links[id - 1].id ? "submit" : "");
		CHECK_EQ(e->parent_id, 0);
	}
	fx_free(&fx);
}

TEST("merge: without its submit record a device run links to the nrt_execute", "[merge]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_span(&fx, TRACE_EXECUTE_API, 10, TID, 1000, 1100);
	struct trace_record *r = fx_record(&fx, TRACE_EXEC_WAIT, TRACE_START, 11, TID, 1030);
	put_u64(r, 0, 500);
	fx_record(&fx, TRACE_EXEC_WAIT, TRACE_STOP, 11, TID, 1090);
	fx_records(&fx, FX_SOURCE);
	device_run(&fx, 1, 0, 500, 1025, 1080);
	REQUIRE(merged(&fx, 0));
	CHECK_STR(event_attr(stop_of(&fx, 1), "link.id"), "10");
	CHECK_STR(event_attr(stop_of(&fx, 1), "link"), "exact");
	fx_free(&fx);
}

/* ---- clocks ------------------------------------------------------------------------------- */

TEST("merge: a step of the realtime clock is an instant; times go on with the first offset",
	"[merge]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx)); /* snapshot at 100 */
	fx_span(&fx, TRACE_TENSOR_READ, 1, TID, 1000, 9000);
	fx_clock(&fx, 2000, 1000000);	      /* within what slewing does */
	fx_clock(&fx, 4000, -2000000000);     /* two seconds back */
	fx_clock(&fx, 6000, -2000000000 + 5); /* and stays there */
	REQUIRE(merged(&fx, 0));
	const struct ntrace_event_view *e = fx_by_hint(&fx, "clock_step", PHASE_INSTANT, 0);
	CHECK_EQ(e->timestamp, FX_EPOCH + 4000);
	CHECK_EQ(e->id, 1ull << 62 | 1);
	CHECK_EQ(event_attr_number(e, "old_offset_ns"), FX_OFFSET + 1000000);
	CHECK_EQ(event_attr_number(e, "new_offset_ns"), FX_OFFSET - 2000000000);
	CHECK_EQ(fx_by_hint(&fx, "clock_step", PHASE_INSTANT, 1)->timestamp, 0);
	CHECK_EQ(stop_of(&fx, 1)->timestamp, FX_EPOCH + 9000);
	CHECK_EQ(stop_of(&fx, 1)->duration, 8000);
	fx_free(&fx);
}
