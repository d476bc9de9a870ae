/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_driver_test.c - what the merge makes of the driver's DMA path: spans, links to calls, parents,
 * whatever was lost, and the books.  Each case is a synthetic recording of a few records.
 */
#include "runtime/record/rec_cut.h"
#include "runtime/record/rec_summary.h"
#include "tests/shim/shim.h"
#include "tests/unit/driver_fixture.h"

#define TID 100u
#define OTHER_TID 101u

static bool merged(struct fixture *fx, size_t open)
{
	return fx_merged(fx, open) && fx->result.balanced &&
	       fx->result.outputs[0].open_spans == open;
}

static const struct ntrace_event_view *of(
	const struct fixture *fx, const char *hint, uint32_t phase, unsigned skip)
{
	return fx_by_hint(fx, hint, phase, skip);
}

/* Is it linked to the call that has this start? */
static bool links(const struct fixture *fx, const struct ntrace_event_view *e, uint64_t call,
	const char *kind)
{
	uint64_t id = 0;

	for (size_t i = 0; i < fx->trace.count; i++) {
		const struct ntrace_event_view *c = &fx->trace.events[i];

		if (c->phase == PHASE_START && c->timestamp == FX_EPOCH + call &&
			pb_str_is(c->hint, "MEM_BUF_COPY64"))
			id = c->id;
	}
	return id && strtoull(event_attr(e, "link.id"), NULL, 10) == id &&
	       !strcmp(event_attr(e, "link.kind"), kind) && !strcmp(event_attr(e, "link"), "exact");
}

TEST("driver: a doorbell and its completion are a span of its queue, linked to the call",
	"[merge][dma]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_doorbell(&fx, NEV_DMA_START, 1, TID, 1200, 1000);
	fx_doorbell(&fx, NEV_DMA_STOP, 1, TID, 1700, 1000);
	fx_copy(&fx, TID, 1000, 2000, 64);
	REQUIRE(merged(&fx, 0));
	REQUIRE_EQ(fx.trace.count, 4);
	const struct ntrace_event_view *start = of(&fx, "dma_doorbell", PHASE_START, 0),
				       *stop = of(&fx, "dma_doorbell", PHASE_STOP, 0);
	CHECK_EQ(start->timestamp, FX_EPOCH + 1200);
	CHECK_EQ(stop->timestamp, FX_EPOCH + 1700);
	CHECK_EQ(stop->duration, 500);
	CHECK_EQ(start->id, stop->id);
	CHECK_EQ(start->id >> 63, 1);
	CHECK_EQ(start->event_type, 0);
	CHECK_EQ(start->nd_idx, 1);
	CHECK_EQ(start->thread_id, TID);
	CHECK_STR(event_attr(start, "nc"), "unknown");
	CHECK_STR(event_attr(start, "dma.engine"), "128");
	CHECK_STR(event_attr(start, "dma.queue"), "0");
	CHECK_STR(event_attr(start, "dma.seq"), "1");
	CHECK_STR(event_attr(start, "dma.tx"), "3");
	CHECK_STR(event_attr(start, "dma.rx"), "3");
	CHECK_STR(event_attr(start, "result"), "");
	CHECK_STR(event_attr(stop, "result"), "0");
	CHECK(links(&fx, start, 1000, "doorbell"));
	CHECK(links(&fx, stop, 1000, "completion"));
	/* Contained in the call on its thread. */
	CHECK_EQ(stop->parent_id, of(&fx, "MEM_BUF_COPY64", PHASE_START, 0)->id);
	fx_free(&fx);
}

TEST("driver: two doorbells in flight on one queue end in their order", "[merge][dma]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_doorbell(&fx, NEV_DMA_START, 1, TID, 1100, 1000);
	fx_doorbell(&fx, NEV_DMA_START, 2, TID, 1200, 1000);
	fx_doorbell(&fx, NEV_DMA_STOP, 1, TID, 1300, 1000);
	fx_doorbell(&fx, NEV_DMA_START, 3, TID, 1400, 1000);
	fx_doorbell(&fx, NEV_DMA_STOP, 2, TID, 1500, 1000);
	fx_doorbell(&fx, NEV_DMA_STOP, 3, TID, 1600, 1000);
	fx_copy(&fx, TID, 1000, 2000, 64);
	REQUIRE(merged(&fx, 0));
	CHECK_EQ(of(&fx, "dma_doorbell", PHASE_STOP, 0)->duration, 200);
	CHECK_EQ(of(&fx, "dma_doorbell", PHASE_STOP, 1)->duration, 300);
	CHECK_EQ(of(&fx, "dma_doorbell", PHASE_STOP, 2)->duration, 200);
	for (unsigned i = 0; i < 3; i++)
		CHECK_EQ(of(&fx, "dma_doorbell", PHASE_STOP, i)->parent_id,
			of(&fx, "MEM_BUF_COPY64", PHASE_START, 0)->id);
	fx_free(&fx);
}

TEST("driver: queues of different numbers, engines and devices do not mix", "[merge][dma]")
{
	static const struct {
		uint16_t device, engine, queue;
	} queues[] = {{1, 128, 0}, {1, 128, 1}, {1, 129, 0}, {2, 128, 0}};
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	for (unsigned end = 0; end < 2; end++)
		for (unsigned i = 0; i < 4; i++) {
			struct nev_dma d = fx_dma_of(end ? NEV_DMA_STOP : NEV_DMA_START,
				NEV_DMA_DOORBELL, TID, 1000 + 100 * i + (end ? 1000 + i : 0));

			d.device = queues[i].device;
			d.engine = queues[i].engine;
			d.queue = queues[i].queue;
			d.sequence = 1;
			fx_dma(&fx, d);
		}
	REQUIRE(merged(&fx, 0));
	for (unsigned i = 0; i < 4; i++)
		CHECK_EQ(of(&fx, "dma_doorbell", PHASE_STOP, i)->duration, 1000 + i);
	fx_free(&fx);
}

TEST("driver: whole copies contain the doorbells that they make", "[merge][dma]")
{
	struct fixture fx;
	struct nev_dma d = fx_dma_of(NEV_DMA_START, NEV_DMA_TRANSFER, TID, 1100);

	REQUIRE(fx_open(&fx));
	d.call_ns = FX_BOOT + 1000;
	d.device = 1;
	d.sequence = 1;
	d.bytes = 4096;
	d.flags = NEV_DMA_F_TO_DEVICE | NEV_DMA_F_SRC_HOST;
	fx_dma(&fx, d);
	fx_doorbell(&fx, NEV_DMA_START, 1, TID, 1200, 1000);
	fx_doorbell(&fx, NEV_DMA_STOP, 1, TID, 1300, 1000);
	d.hdr.type = NEV_DMA_STOP;
	d.hdr.time_ns = FX_BOOT + 1400;
	fx_dma(&fx, d);
	fx_copy(&fx, TID, 1000, 2000, 4096);
	REQUIRE(merged(&fx, 0));
	const struct ntrace_event_view *copy = of(&fx, "dma_copy", PHASE_START, 0);
	CHECK_STR(event_attr(copy, "dma.bytes"), "4096");
	CHECK_STR(event_attr(copy, "dma.direction"), "host_to_device");
	CHECK(links(&fx, copy, 1000, "submit"));
	CHECK_EQ(of(&fx, "dma_copy", PHASE_STOP, 0)->parent_id,
		of(&fx, "MEM_BUF_COPY64", PHASE_START, 0)->id);
	CHECK_EQ(of(&fx, "dma_doorbell", PHASE_STOP, 0)->parent_id, copy->id);
	fx_free(&fx);
}

TEST("driver: a completion without its doorbell is an instant, a doorbell without its end stays "
     "open",
	"[merge][dma]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_doorbell(&fx, NEV_DMA_STOP, 7, TID, 1100, 1000);
	fx_doorbell(&fx, NEV_DMA_START, 8, TID, 1200, 1000);
	fx_copy(&fx, TID, 1000, 2000, 64);
	fx_copy(&fx, TID, 3000, 4000, 64);
	REQUIRE(merged(&fx, 1));
	const struct ntrace_event_view *lost = of(&fx, "dma_doorbell", PHASE_INSTANT, 0);
	CHECK_STR(event_attr(lost, "start"), "lost");
	CHECK_STR(event_attr(lost, "dma.seq"), "7");
	CHECK(links(&fx, lost, 1000, "completion"));
	CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_START_LOST), 1);
	/* It holds nothing: both calls have no parent. */
	CHECK_EQ(of(&fx, "MEM_BUF_COPY64", PHASE_STOP, 0)->parent_id, 0);
	CHECK_EQ(of(&fx, "MEM_BUF_COPY64", PHASE_STOP, 1)->parent_id, 0);
	fx_free(&fx);
}

TEST("driver: a whole copy that lost its end contains nothing after its call", "[merge][dma]")
{
	struct fixture fx;
	struct nev_dma d = fx_dma_of(NEV_DMA_START, NEV_DMA_TRANSFER, TID, 1100);

	REQUIRE(fx_open(&fx));
	d.call_ns = FX_BOOT + 1000;
	d.sequence = 1;
	fx_dma(&fx, d);
	fx_copy(&fx, TID, 1000, 2000, 64);
	fx_copy(&fx, TID, 3000, 4000, 64);
	REQUIRE(merged(&fx, 1));
	CHECK_EQ(of(&fx, "MEM_BUF_COPY64", PHASE_STOP, 1)->parent_id, 0);
	fx_free(&fx);
}

TEST("driver: a wait in vain has its number and the name of a timeout, on either driver",
	"[merge][dma]")
{
	static const int32_t results[] = {-1, -110, -5};
	static const char *const names[] = {"ETIMEDOUT", "ETIMEDOUT", "EIO"};
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	for (uint32_t i = 0; i < 3; i++) {
		struct nev_dma d = fx_dma_of(NEV_DMA_STOP, NEV_DMA_DOORBELL, TID, 1100 + 1000 * i);

		fx_doorbell(&fx, NEV_DMA_START, i + 1, TID, 1000 + 1000 * i, 0);
		d.device = 1;
		d.engine = 128;
		d.queue = 0;
		d.sequence = i + 1;
		d.result = results[i];
		fx_dma(&fx, d);
	}
	REQUIRE(merged(&fx, 0));
	for (unsigned i = 0; i < 3; i++) {
		const struct ntrace_event_view *e = of(&fx, "dma_doorbell", PHASE_STOP, i);

		CHECK_EQ(event_attr_number(e, "result"), results[i]);
		CHECK_STR(event_attr(e, "errno"), names[i]);
		CHECK_STR(event_attr(e, "link.id"), "");
	}
	fx_free(&fx);
}

/* A number of the driver's own is no errno that it may look like. */
TEST("driver: -1 is a timeout only of a doorbell, and only before 2.30", "[merge][dma]")
{
	static const struct {
		const char *driver;
		enum nev_dma_kind kind;
		const char *name;
	} cases[] = {
		{"2.24.7.0", NEV_DMA_DOORBELL, "ETIMEDOUT"},
		{"2.30.2.0", NEV_DMA_DOORBELL, ""},
		{"3.1.0", NEV_DMA_DOORBELL, ""},
		{"2.24.7.0", NEV_DMA_TRANSFER, ""},
		{"2.24.7.0", NEV_DMA_MEMSET, ""},
		{"2.24.7.0", NEV_DMA_ZEROCOPY, ""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct rec_header_info info = {.producer = "ntrace test",
			.instance_id = "i-0",
			.host = "h",
			.driver = cases[i].driver};
		struct nev_dma d = fx_dma_of(NEV_DMA_START, cases[i].kind, TID, 1100);
		const struct ntrace_event_view *e = NULL;
		struct fixture fx;

		REQUIRE(fx_open_bare(&fx));
		fx_header(&fx, &info);
		fx_clock(&fx, 100, 0);
		d.device = 1;
		d.engine = 128;
		d.queue = 0;
		d.sequence = 1;
		fx_dma(&fx, d);
		d.hdr.type = NEV_DMA_STOP;
		d.hdr.time_ns += 100;
		d.result = -1;
		fx_dma(&fx, d);
		REQUIRE(fx_merged(&fx, 0));
		for (size_t k = 0; k < fx.trace.count; k++)
			if (fx.trace.events[k].phase == PHASE_STOP)
				e = &fx.trace.events[k];
		REQUIRE(e != NULL);
		test_info("case %zu", i);
		CHECK_EQ(event_attr_number(e, "result"), -1);
		CHECK_STR(event_attr(e, "errno"), cases[i].name);
		fx_free(&fx);
	}
}

/* A copy whose result is -1, with what the DMA path said inside of it; kind 0: nothing was seen of it. */
static void fx_minus_one(struct fixture *fx, uint32_t request, uint8_t kind, int32_t outcome)
{
	const struct fx_call c = {
		.tid = TID, .request = request, .from = 1000, .to = 2000, .result = -1};
	struct nev_dma d = fx_dma_of(NEV_DMA_START, kind, TID, 1100);

	d.call_ns = FX_BOOT + 1000;
	d.device = 1;
	d.engine = 128;
	d.queue = 0;
	d.sequence = 1;
	if (kind)
		fx_dma(fx, d);
	d.hdr.type = NEV_DMA_STOP;
	d.hdr.time_ns += 100;
	d.result = outcome;
	/* As they come: calls of a drain before its records of the DMA path. */
	fx_call(fx, &c);
	if (kind)
		fx_dma(fx, d);
}

TEST("driver: a -1 that a request hands on is no EPERM, but what its DMA failed of where that is "
     "known",
	"[merge][dma]")
{
	static const char untold[] = "-1 (the driver tells no reason)";
	static const struct {
		uint32_t request;
		enum nev_dma_kind kind;
		int32_t outcome;
		const char *name;
	} cases[] = {
		{NEURON_IOCTL_MEM_BUF_COPY64, NEV_DMA_DOORBELL, -1, "ETIMEDOUT"},
		{NEURON_IOCTL_MEM_BUF_COPY64, NEV_DMA_DOORBELL, -5, "EIO"},
		{NEURON_IOCTL_MEM_BUF_COPY64, NEV_DMA_DOORBELL, 0, untold},
		{NEURON_IOCTL_MEM_BUF_COPY64, NEV_DMA_TRANSFER, -1, untold},
		{NEURON_IOCTL_MEM_BUF_COPY64, 0, 0, untold},
		{NEURON_IOCTL_MEM_COPY_ASYNC_WAIT, 0, 0, untold},
		{NEURON_IOCTL_NOTIFICATIONS_QUEUE_INFO, 0, 0, untold},
		{NEURON_IOCTL_BAR_READ, NEV_DMA_DOORBELL, -5, "EPERM"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct rec_end end = {.wait_status = 15};
		const struct ntrace_event_view *e = NULL;
		char told[128];
		struct fixture fx;

		REQUIRE(fx_open(&fx));
		fx_minus_one(&fx, cases[i].request, cases[i].kind, cases[i].outcome);
		fx_frame(&fx, REC_END, REC_SOURCE_RECORDER, &end, sizeof(end));
		REQUIRE(fx_merged(&fx, 0));
		for (size_t k = 0; k < fx.trace.count; k++)
			if (fx.trace.events[k].phase == PHASE_STOP &&
				*event_attr(&fx.trace.events[k], "request"))
				e = &fx.trace.events[k];
		REQUIRE(e != NULL);
		test_info("case %zu", i);
		CHECK_EQ(event_attr_number(e, "result"), -1);
		CHECK_STR(event_attr(e, "errno"), cases[i].name);
		REQUIRE_EQ(fx.result.failure_count, 1);
		snprintf(told, sizeof(told), " on neuron1: %s, ", cases[i].name);
		CHECK(strstr(fx.result.failures[0].errors[0], told) != NULL);
		fx_free(&fx);
	}
}

TEST("driver: what a thread of the driver completes stays of its owner, without a parent",
	"[merge][dma]")
{
	struct fixture fx;
	struct nev_dma d = fx_dma_of(NEV_DMA_STOP, NEV_DMA_DOORBELL, OTHER_TID, 1700);

	REQUIRE(fx_open(&fx));
	fx_doorbell(&fx, NEV_DMA_START, 1, TID, 1200, 1000);
	fx_copy(&fx, TID, 1000, 1500, 64);
	d.tgid = FX_PID + 1; /* nobody's own directory */
	d.device = 1;
	d.engine = 128;
	d.queue = 0;
	d.sequence = 1;
	d.flags = NEV_DMA_F_KTHREAD;
	fx_dma(&fx, d);
	REQUIRE(merged(&fx, 0));
	const struct ntrace_event_view *e = of(&fx, "dma_doorbell", PHASE_STOP, 0);
	CHECK_EQ(e->duration, 500);
	CHECK_EQ(e->parent_id, 0);
	CHECK_STR(event_attr(e, "dma.thread"), "driver");
	CHECK_STR(event_attr(e, "link.id"), "");
	CHECK(links(&fx, of(&fx, "dma_doorbell", PHASE_START, 0), 1000, "doorbell"));
	fx_free(&fx);
}

TEST("driver: work in a call that was announced is linked to it, and does not end it",
	"[merge][dma]")
{
	struct fixture fx;
	struct fx_call call = {.tid = TID, .request = NEURON_IOCTL_MEM_BUF_COPY64, .from = 1000};

	REQUIRE(fx_open(&fx));
	call.open = true;
	call.to = 100001000;
	fx_call(&fx, &call);
	fx_doorbell(&fx, NEV_DMA_START, 1, TID, 110000000, 1000);
	fx_watermark(&fx, REC_SOURCE_KERNEL, 120000000);
	fx_doorbell(&fx, NEV_DMA_STOP, 1, TID, 130000000, 1000);
	fx_watermark(&fx, REC_SOURCE_KERNEL, 140000000);
	call.open = false;
	call.to = 150000000;
	fx_call(&fx, &call);
	REQUIRE(merged(&fx, 0));
	const struct ntrace_event_view *stop = of(&fx, "dma_doorbell", PHASE_STOP, 0);
	CHECK(links(&fx, of(&fx, "dma_doorbell", PHASE_START, 0), 1000, "doorbell"));
	CHECK(links(&fx, stop, 1000, "completion"));
	CHECK_EQ(stop->parent_id, of(&fx, "MEM_BUF_COPY64", PHASE_START, 0)->id);
	CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_EXIT_MISSED), 0);
	fx_free(&fx);
}

TEST("driver: work without a call, and of an earlier call of the thread, is linked to none",
	"[merge][dma]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_doorbell(&fx, NEV_DMA_START, 1, TID, 1200, 0);
	fx_doorbell(&fx, NEV_DMA_STOP, 1, TID, 1300, 900);
	fx_copy(&fx, TID, 1000, 2000, 64);
	REQUIRE(merged(&fx, 0));
	CHECK_STR(event_attr(of(&fx, "dma_doorbell", PHASE_START, 0), "link.id"), "");
	CHECK_STR(event_attr(of(&fx, "dma_doorbell", PHASE_STOP, 0), "link.id"), "");
	fx_free(&fx);
}

TEST("driver: points are instants with what they know, an acknowledgement among them",
	"[merge][dma]")
{
	static const struct {
		enum nev_dma_kind kind;
		const char *hint, *link;
	} kinds[] = {
		{NEV_DMA_USER, "dma_user", "doorbell"},
		{NEV_DMA_ACK, "dma_ack", "ack"},
		{NEV_DMA_QUEUE_INIT, "dma_queue_init", "queue"},
		{NEV_DMA_QUEUE_RELEASE, "dma_queue_release", "queue"},
		{NEV_DMA_TRANSFER, "dma_copy", "submit"},
	};
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		struct nev_dma d = fx_dma_of(NEV_DMA_POINT, kinds[i].kind, TID, 1100 + 10 * i);

		d.call_ns = FX_BOOT + 1000;
		d.device = 1;
		d.engine = 5;
		d.queue = 3;
		d.sequence = 9;
		d.rx = 17;
		fx_dma(&fx, d);
	}
	fx_copy(&fx, TID, 1000, 2000, 64);
	REQUIRE(merged(&fx, 0));
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		const struct ntrace_event_view *e = of(&fx, kinds[i].hint, PHASE_INSTANT, 0);

		test_info("%s", kinds[i].hint);
		CHECK_STR(event_attr(e, "dma.engine"), "5");
		CHECK_STR(event_attr(e, "dma.queue"), "3");
		CHECK_STR(event_attr(e, "dma.seq"), "9");
		CHECK_STR(event_attr(e, "dma.rx"), "17");
		CHECK(links(&fx, e, 1000, kinds[i].link));
		CHECK_EQ(e->parent_id, of(&fx, "MEM_BUF_COPY64", PHASE_START, 0)->id);
	}
	fx_free(&fx);
}

TEST("driver: an asynchronous copy goes from one call to another", "[merge][dma]")
{
	struct fixture fx;
	struct nev_dma d = fx_dma_of(NEV_DMA_START, NEV_DMA_ASYNC, TID, 1100);

	REQUIRE(fx_open(&fx));
	d.call_ns = FX_BOOT + 1000;
	d.device = 1;
	d.sequence = 1;
	d.bytes = 128;
	d.flags = NEV_DMA_F_TO_DEVICE | NEV_DMA_F_FROM_DEVICE;
	fx_dma(&fx, d);
	fx_copy(&fx, TID, 1000, 2000, 64);
	d.hdr.type = NEV_DMA_STOP;
	d.hdr.time_ns = FX_BOOT + 3500;
	d.call_ns = FX_BOOT + 3000;
	fx_dma(&fx, d);
	fx_copy(&fx, TID, 3000, 4000, 64);
	REQUIRE(merged(&fx, 0));
	CHECK_EQ(of(&fx, "dma_async", PHASE_STOP, 0)->duration, 2400);
	CHECK_STR(event_attr(of(&fx, "dma_async", PHASE_START, 0), "dma.direction"),
		"device_to_device");
	CHECK(links(&fx, of(&fx, "dma_async", PHASE_START, 0), 1000, "submit"));
	CHECK(links(&fx, of(&fx, "dma_async", PHASE_STOP, 0), 3000, "completion"));
	CHECK_EQ(of(&fx, "MEM_BUF_COPY64", PHASE_STOP, 1)->parent_id, 0);
	fx_free(&fx);
}

TEST("driver: sequences that begin again are other spans", "[merge][dma]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_doorbell(&fx, NEV_DMA_START, 1, TID, 1000, 0);
	fx_doorbell(&fx, NEV_DMA_START, 1, TID, 2000, 0);
	fx_doorbell(&fx, NEV_DMA_STOP, 1, TID, 2300, 0);
	REQUIRE(merged(&fx, 1));
	CHECK_EQ(of(&fx, "dma_doorbell", PHASE_STOP, 0)->duration, 300);
	CHECK(of(&fx, "dma_doorbell", PHASE_START, 0)->id !=
		of(&fx, "dma_doorbell", PHASE_START, 1)->id);
	fx_free(&fx);
}

TEST("driver: event types of their own, or none of it, as the option says", "[merge][dma]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_doorbell(&fx, NEV_DMA_START, 1, TID, 1000, 0);
	fx_doorbell(&fx, NEV_DMA_STOP, 1, TID, 1500, 0);
	REQUIRE_EQ(fx_merge(&fx, "extended", MERGE_KERNEL_EXTENDED), 0);
	REQUIRE(trace_file_read(&fx.trace, fx_path(&fx, "extended").s));
	CHECK_EQ(of(&fx, "dma_doorbell", PHASE_START, 0)->event_type, 1305);
	trace_file_free(&fx.trace);
	REQUIRE_EQ(fx_merge(&fx, "off", MERGE_KERNEL_OFF), 0);
	REQUIRE(trace_file_read(&fx.trace, fx_path(&fx, "off").s));
	CHECK_EQ(fx.trace.count, 0);
	CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_NOT_WANTED), 2);
	CHECK(fx.result.balanced);
	fx_free(&fx);
}

TEST("driver: records that cannot be are counted, and those beside them are read", "[merge][dma]")
{
	struct fixture fx;
	struct nev_dma d[5];

	REQUIRE(fx_open(&fx));
	for (unsigned i = 0; i < 5; i++) {
		d[i] = fx_dma_of(NEV_DMA_POINT, NEV_DMA_ACK, TID, 1000 + i);
		d[i].hdr.seq = i;
	}
	d[0].kind = 0;
	d[1].kind = NEV_DMA_KIND_END;
	d[2].hdr.type = NEV_IOCTL_DONE;
	d[3].hdr.time_ns = UINT64_MAX;
	/* And a piece of one behind them. */
	fx_frame2(&fx, REC_DRIVER, REC_SOURCE_KERNEL, d, sizeof(d), "piece", 5);
	REQUIRE(merged(&fx, 0));
	CHECK_EQ(fx.trace.count, 1);
	CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_INVALID), 5);
	fx_free(&fx);
}

/* ---- what was blind ------------------------------------------------------------------------- */

/* Is there a line that begins so? */
static bool is_blind(const struct fixture *fx, const char *line)
{
	for (uint32_t i = 0; i < fx->result.blind_count; i++)
		if (!strncmp(fx->result.blind[i], line, strlen(line)))
			return true;
	test_info("not blind: %s", line);
	return false;
}

TEST("driver: what no step of the ladder reached is named, with what was tried", "[merge][dma]")
{
	static const char *const hooks[] = {"fentry:udma_m2m_copy_start", NULL};
	static const struct rec_ladder_step ladder[] = {
		{"ioctl", "fentry", "reached"},
		{"doorbell", "fentry", "reached"},
		{"zerocopy", "fentry", "no such function"},
		{"zerocopy", "kprobe", "no such function"},
		{"transfer", "kprobe", "unknown prototype"},
		{"transfer", "tracepoint", "reached"},
		{NULL, NULL, NULL},
	};
	struct rec_header_info info = {.producer = "ntrace test",
		.instance_id = "i-0",
		.host = "h",
		.hooks = hooks,
		.ladder = ladder};
	struct fixture fx;

	REQUIRE(fx_open_bare(&fx));
	fx_header(&fx, &info);
	fx_clock(&fx, 100, 0);
	fx_copy(&fx, TID, 1000, 2000, 64);
	REQUIRE(fx_merge_one(&fx));
	CHECK(is_blind(&fx,
		"doorbells that a thread of the driver rings for a program, completions and "
		"timeouts of its copies, fills of memory, asynchronous copies, rings that "
		"programs fill themselves, queues that come and go (not hooked)"));
	CHECK(is_blind(&fx, "copies from user memory (fentry: no such function, kprobe: no such "
			    "function)"));
	CHECK(is_blind(&fx, "DMA that devices start by themselves, and the driver's interrupts"));
	CHECK(is_blind(&fx,
		"how long copies took, those without a buffer's size, and zero copy: tracepoints "
		"tell that a copy was made"));
	fx_free(&fx);
}

/* ---- the books ------------------------------------------------------------------------------ */

static void put_books(struct fixture *fx, uint64_t made, uint64_t full)
{
	fx_counter(fx, REC_SOURCE_KERNEL, REC_C_DMA_MADE, 0, made);
	fx_counter(fx, REC_SOURCE_KERNEL, REC_C_DMA_DONE, 0, made - full);
	fx_counter(fx, REC_SOURCE_KERNEL, REC_C_DMA_RING_FULL, 0, full);
	fx_counter(fx, REC_SOURCE_KERNEL, REC_C_DMA_RECEIVED, 0, made - full);
}

TEST("driver: the ledger counts what was made, came and was lost; numbers show the same gaps",
	"[merge][dma]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_doorbell(&fx, NEV_DMA_START, 1, TID, 1000, 0);
	fx.next_seq += 3; /* no room for them */
	fx_doorbell(&fx, NEV_DMA_STOP, 1, TID, 1500, 0);
	put_books(&fx, 5, 3);
	fx_end(&fx);
	REQUIRE(fx_merged(&fx, 0));
	CHECK(fx.result.balanced);
	CHECK_EQ(fx.result.lost, 3);
	CHECK_EQ(fx.result.seq_gaps, 3);
	CHECK_EQ(fx_ledger(&fx, REC_C_READER_OFFERED), 2);
	CHECK_EQ(fx_ledger(&fx, REC_C_READER_TAKEN), 2);
	CHECK_EQ(fx_ledger(&fx, REC_C_RECORDING_READ), 2);
	fx_free(&fx);
}

TEST("driver: a loss that nobody counted is not balanced", "[merge][dma]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_doorbell(&fx, NEV_DMA_START, 1, TID, 1000, 0);
	put_books(&fx, 2, 0);
	fx_end(&fx);
	REQUIRE(fx_merge_one(&fx));
	CHECK(!fx.result.balanced);
	fx_free(&fx);
}

TEST("driver: of a recorder that died the records found count", "[merge][dma]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_doorbell(&fx, NEV_DMA_START, 1, TID, 1000, 0);
	put_books(&fx, 1, 0);
	fx_doorbell(&fx, NEV_DMA_STOP, 1, TID, 1500, 0);
	fx_copy(&fx, TID, 1000, 2000, 64);
	REQUIRE(merged(&fx, 0));
	CHECK_EQ(fx_ledger(&fx, REC_C_DMA_RECEIVED), 2);
	CHECK_EQ(fx_ledger(&fx, REC_C_KERNEL_RECEIVED), 1);
	fx_free(&fx);
}

TEST("driver: a summary of the recording counts frames, records, spans and gaps", "[rec][dma]")
{
	struct fixture fx;
	struct rec_summary s;

	REQUIRE(fx_open(&fx));
	fx_doorbell(&fx, NEV_DMA_START, 1, TID, 1000, 0);
	fx_doorbell(&fx, NEV_DMA_STOP, 1, TID, 1500, 0);
	fx_doorbell(&fx, NEV_DMA_START, 2, TID, 1600, 0);
	put_books(&fx, 3, 0);
	fx_end(&fx);
	fx_close_writer(&fx);
	REQUIRE_EQ(rec_summary_make(fx_path(&fx, REC_DIR).s, &s), 0);
	CHECK_EQ(s.types[REC_DRIVER].frames, 3);
	CHECK_EQ(s.types[REC_DRIVER].bytes, 3 * sizeof(struct nev_dma));
	CHECK_EQ(s.open_spans, 1);
	CHECK_EQ(s.invalid, 0);
	CHECK_EQ(s.last_ns, FX_BOOT + 1600);
	CHECK(ledger_balanced(&s.ledger, s.seq_gaps, s.ended));
	rec_summary_free(&s);
	fx_free(&fx);
}

TEST("driver: a cut keeps spans that reach into its time whole, and its books balance",
	"[rec][dma]")
{
	struct rec_cut_options o = {.from = {CUT_RELATIVE, 1400}, .to = {CUT_RELATIVE, 2900}};
	struct rec_cut_result r;
	struct fixture fx;

	REQUIRE(fx_open(&fx)); /* its first clock snapshot is at 50 */
	fx_doorbell(&fx, NEV_DMA_START, 1, TID, 1000, 0);
	fx_doorbell(&fx, NEV_DMA_STOP, 1, TID, 1100, 0);
	fx_doorbell(&fx, NEV_DMA_START, 2, TID, 1200, 0);
	fx_doorbell(&fx, NEV_DMA_STOP, 2, TID, 2000, 0);
	fx_doorbell(&fx, NEV_DMA_START, 3, TID, 2500, 0);
	fx_doorbell(&fx, NEV_DMA_STOP, 3, TID, 3500, 0);
	put_books(&fx, 6, 0);
	fx_end(&fx);
	fx_close_writer(&fx);
	REQUIRE_EQ(rec_cut(fx_path(&fx, REC_DIR).s, fx_path(&fx, "cut").s, &o, &r), 0);
	CHECK_EQ(r.kept, 4);
	CHECK_EQ(r.left_out, 2);
	struct merge_options m = {.kernel_events = MERGE_KERNEL_HINT};
	REQUIRE_EQ(merge_recording(
			   fx_path(&fx, "cut").s, fx_path(&fx, "out").s, &m, &fx.result, &fx.error),
		0);
	CHECK(fx.result.balanced);
	REQUIRE(trace_file_read(&fx.trace, fx_path(&fx, "out").s));
	CHECK_EQ(fx.trace.count, 4);
	CHECK_EQ(of(&fx, "dma_doorbell", PHASE_STOP, 0)->duration, 800);
	CHECK_EQ(of(&fx, "dma_doorbell", PHASE_STOP, 1)->duration, 1000);
	fx_free(&fx);
}

TEST("driver: what each program has cost is that of the newest frame, the dearest first",
	"[record][dma]")
{
	const struct rec_hook_cost older[] = {{"one", 1, 10}, {"two", 2, 5}, {"three", 3, 7}},
				   newer[] = {{"one", 2, 20}, {"two", 4, 30}};
	struct fixture fx;
	struct rec_summary s;

	REQUIRE(fx_open(&fx));
	fx_frame(&fx, REC_HOOK_COST, REC_SOURCE_KERNEL, older, sizeof(older));
	fx_frame(&fx, REC_HOOK_COST, REC_SOURCE_KERNEL, newer, sizeof(newer));
	fx_end(&fx);
	fx_close_writer(&fx);
	REQUIRE_EQ(rec_summary_make(fx_path(&fx, REC_DIR).s, &s), 0);
	REQUIRE_EQ(s.hook_cost_count, 2);
	CHECK_STR(s.hook_cost[0].program, "two");
	CHECK_EQ(s.hook_cost[0].run_ns, 30);
	CHECK_EQ(s.hook_cost[1].runs, 2);
	CHECK_EQ(s.invalid, 0);
	rec_summary_free(&s);
	fx_free(&fx);
}

TEST("driver: a row of a program's cost that is not whole counts as invalid", "[record][dma]")
{
	const struct rec_hook_cost row = {"one", 1, 10};
	struct fixture fx;
	struct rec_summary s;

	REQUIRE(fx_open(&fx));
	fx_frame(&fx, REC_HOOK_COST, REC_SOURCE_KERNEL, &row, sizeof(row) - 1);
	fx_end(&fx);
	fx_close_writer(&fx);
	REQUIRE_EQ(rec_summary_make(fx_path(&fx, REC_DIR).s, &s), 0);
	CHECK_EQ(s.hook_cost_count, 0);
	CHECK_EQ(s.invalid, 1);
	rec_summary_free(&s);
	fx_free(&fx);
}
