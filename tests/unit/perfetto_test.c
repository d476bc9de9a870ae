/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfetto_test.c - what of a trace stands where in the Perfetto file.
 */
#include "proto/varint_fast.h"
#include "tests/unit/perfetto_fixture.h"

TEST("perfetto: fields have the numbers and types that proto/perfetto_subset.proto has",
	"[perfetto]")
{
#define FIELD(id, message, name, number, wire) \
	{&perfetto__protos__##message##__descriptor, #name, number, WIRE_##wire},
	static const struct {
		const ProtobufCMessageDescriptor *message;
		const char *name;
		uint32_t number;
		unsigned wire;
	} fields[] = {
#include "agent/output/perfetto_fields.def"
	};
#undef FIELD

	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		const ProtobufCFieldDescriptor *f = protobuf_c_message_descriptor_get_field_by_name(
			fields[i].message, fields[i].name);
		unsigned wire;

		test_info("%s.%s", fields[i].message->name, fields[i].name);
		REQUIRE(f);
		CHECK_EQ(f->id, fields[i].number);
		wire = f->type == PROTOBUF_C_TYPE_STRING || f->type == PROTOBUF_C_TYPE_BYTES ||
				       f->type == PROTOBUF_C_TYPE_MESSAGE
			       ? WIRE_LEN
		       : f->type == PROTOBUF_C_TYPE_FIXED64 || f->type == PROTOBUF_C_TYPE_DOUBLE
			       ? WIRE_FIXED64
			       : WIRE_VARINT;
		CHECK_EQ(wire, fields[i].wire);
	}
}

/* ---- tests ------------------------------------------------------------------------------------- */

TEST("perfetto: spans and driver calls nest on their thread's track, below process and host",
	"[perfetto]")
{
	static const struct row rows[] = {
		START_(TRACE_EXECUTE_API, 1, 10, "model_id=5"),
		START_(0, 1ull << 63 | 1, 20, "nc=unknown", "MEM_BUF_COPY64"),
		STOP_(0, 1ull << 63 | 1, 30, "nc=unknown request=0xc0284e18 result=0",
			"MEM_BUF_COPY64"),
		STOP_(TRACE_EXECUTE_API, 1, 40, "driver.ioctls=1"),
		{PHASE_START, TRACE_TENSOR_READ, 2, 45, 11, "size=8", NULL, 0, 3},
		{PHASE_STOP, TRACE_TENSOR_READ, 2, 46, 11, "", NULL, 0, 3},
	};
	struct exported *x = EXPORT(rows);

	REQUIRE(x);
	CHECK_STR(story(x, "thread 10"), "<10:nrt_execute <20:MEM_BUF_COPY64 >30 >40 ");
	CHECK_STR(story(x, "thread 11"), "<45:nrt_tensor_read >46 ");
	const Perfetto__Protos__TrackDescriptor *t = track(x, named(x, "nrt_execute", 0)->track);
	CHECK_EQ(t->thread->tid, 10);
	CHECK_EQ(t->thread->pid, 7);
	t = track(x, t->parent_uuid);
	CHECK_EQ(t->process->pid, 7);
	CHECK_STR(t->process->process_name, "i-1_pid_7");
	CHECK_STR(track(x, t->parent_uuid)->name, "host i-1");
	CHECK_STR(named(x, "nrt_execute", 0)->category, "runtime");
	CHECK_STR(named(x, "MEM_BUF_COPY64", 0)->category, "driver");
	CHECK_STR(named(x, "nrt_execute", 0)->notes, "model_id=u5 nc=u0 ");
	CHECK_STR(named(x, "nrt_tensor_read", 0)->notes, "size=u8 nc=u3 ");
	CHECK_EQ(x->boot_at[0] + OFFSET, x->realtime_at[0]);
	exported_free(x);
}

TEST("perfetto: attributes are annotations of their own type, and nothing is said twice",
	"[perfetto]")
{
	static const struct row rows[] = {
		START_(TRACE_TENSOR_READ, 1, 10,
			"a=0 b=18446744073709551615 c=-5 d=0xff e=true f=false g=text h=007 "
			"i=0x0ff "
			"j=-0 k=9223372036854775808 l=0x m= n=text"),
		STOP_(TRACE_TENSOR_READ, 1, 20, ""),
		START_(0, 1ull << 63, 30, "nc=2", "MEM_BUF_COPY64"),
		STOP_(0, 1ull << 63, 40, "nc=2 request=0xc0284e19 result=-1 errno=EIO",
			"MEM_BUF_COPY64"),
	};
	struct exported *x = EXPORT(rows);

	REQUIRE(x);
	CHECK_STR(named(x, "nrt_tensor_read", 0)->notes,
		"a=u0 b=s18446744073709551615 c=i-5 d=pff e=b1 f=b0 g=stext h=s007 i=s0x0ff j=s-0 "
		"k=u9223372036854775808 l=s0x m=s n=stext nc=u0 ");
	CHECK_STR(named(x, "MEM_BUF_COPY64", 0)->notes, "nc=u2 nd=u0 ");
	CHECK_STR(x->seen[3].notes, "nc=u2 request=pc0284e19 result=i-1 errno=sEIO ");
	exported_free(x);
}

TEST("perfetto: device runs stand on their core, at once on lanes, and links are arrows",
	"[perfetto]")
{
	static const struct row rows[] = {
		START_(TRACE_MODEL_SUBMIT, 1, 10, ""),
		STOP_(TRACE_MODEL_SUBMIT, 1, 12, ""),
		START_(TRACE_DEVICE_EXEC, 2, 20, "device_core_idx=4"),
		START_(TRACE_DEVICE_EXEC, 3, 21, "device_core_idx=5"),
		START_(TRACE_DEVICE_EXEC, 4, 22, "device_core_idx=5"),
		START_(TRACE_CC_EXEC, 5, 23, "op_id=1"),
		STOP_(TRACE_CC_EXEC, 5, 24, ""),
		STOP_(TRACE_DEVICE_EXEC, 3, 25, "link.id=1 link.kind=submit link=exact"),
		STOP_(TRACE_DEVICE_EXEC, 2, 26, "link.id=1 link.kind=submit link=inferred"),
		STOP_(TRACE_DEVICE_EXEC, 4, 27, "link.id=1 link.kind=submit link=exact"),
	};
	struct exported *x = EXPORT(rows);

	REQUIRE(x);
	CHECK_STR(story(x, "NeuronCore 0, physical core 4"),
		"<20:nc_exec_running !26:submit (inferred) >26 ");
	CHECK_STR(story(x, "NeuronCore 0, physical core 5"), "<21:nc_exec_running >25 ");
	CHECK_STR(story(x, "NeuronCore 0, physical core 5, at once 2"), "<22:nc_exec_running >27 ");
	CHECK_STR(story(x, "NeuronCore 0"), "<23:cc_running >24 ");
	const struct seen *submit = named(x, "nrt_model_submit", 0);
	CHECK_EQ(submit->flows, 2);
	CHECK_EQ(x->seen[7].end_flow, submit->flow);
	CHECK_STR(x->seen[7].notes, "link.kind=ssubmit link=sexact ");
	CHECK_EQ(named(x, "submit (inferred)", 0)->end_flow, submit->flow + 1);
	CHECK_EQ(x->seen[9].end_flow, 0);
	CHECK_STR(x->seen[9].notes, "link.kind=ssubmit link=sinferred ");
	/* A third run has no arrow left: it says its link instead. */
	CHECK_STR(x->seen[10].notes, "link.id=u1 link.kind=ssubmit link=sexact ");
	exported_free(x);
}

/* A row of a device profile: of no thread. */
#define UNIT_ROW(phase_, n, time_, hint_, ...)                                               \
	{                                                                                    \
		.phase = (phase_), .id = 1ull << 60 | (n), .time = (time_), .hint = (hint_), \
		.attrs = __VA_ARGS__                                                         \
	}

#define CALL_ID (1ull << 63 | 1)
#define DMA_ID(n) (1ull << 63 | ((n) + 1))

TEST("perfetto: whole copies nest in their call; doorbells stand on the track of their queue",
	"[perfetto]")
{
	static const struct row rows[] = {
		START_(0, CALL_ID, 10, "nc=unknown", "MEM_BUF_COPY64"),
		START_(0, DMA_ID(1), 11, "nc=unknown dma.seq=1 dma.bytes=64", "dma_copy"),
		START_(0, DMA_ID(2), 12, "nc=unknown dma.engine=128 dma.queue=1 dma.seq=1 dma.tx=2",
			"dma_doorbell"),
		START_(0, DMA_ID(3), 13, "nc=unknown dma.engine=128 dma.queue=1 dma.seq=2",
			"dma_doorbell"),
		STOP_(0, DMA_ID(2), 14,
			"nc=unknown dma.engine=128 dma.queue=1 dma.seq=1 result=0 link.id=7",
			"dma_doorbell"),
		STOP_(0, DMA_ID(3), 15,
			"nc=unknown dma.engine=128 dma.queue=1 dma.seq=2 result=-1 errno=ETIMEDOUT",
			"dma_doorbell"),
		STOP_(0, DMA_ID(1), 16, "nc=unknown dma.seq=1 dma.bytes=64 result=0", "dma_copy"),
		STOP_(0, CALL_ID, 20, "nc=unknown request=0xc0284e18 result=0", "MEM_BUF_COPY64"),
		ROW(PHASE_INSTANT, 0, DMA_ID(4), 30, "nc=unknown dma.engine=5 dma.queue=3 dma.rx=2",
			"dma_ack"),
		START_(0, DMA_ID(5), 40, "nc=unknown dma.seq=1", "dma_async"),
		STOP_(0, DMA_ID(5), 50, "nc=unknown dma.seq=1 result=0", "dma_async"),
	};
	struct exported *x = EXPORT(rows);

	REQUIRE(x);
	CHECK_STR(story(x, "thread 10"), "<10:MEM_BUF_COPY64 <11:dma_copy >16 >20 ");
	CHECK_STR(story(x, "neuron0 DMA engine 128 queue 1"), "<12:dma_doorbell >14 ");
	CHECK_STR(story(x, "neuron0 DMA engine 128 queue 1, at once 2"), "<13:dma_doorbell >15 ");
	CHECK_STR(story(x, "neuron0 DMA engine 5 queue 3"), "!30:acked ");
	CHECK_STR(story(x, "neuron0 DMA, asynchronous copies"), "<40:dma_async >50 ");
	CHECK_STR(named(x, "dma_doorbell", 0)->category, "driver");
	CHECK_STR(named(x, "dma_doorbell", 0)->notes, "dma.seq=u1 dma.tx=u2 ");
	CHECK_STR(named(x, "dma_copy", 0)->notes, "dma.seq=u1 dma.bytes=u64 nd=u0 ");
	exported_free(x);
}

TEST("perfetto: a whole copy that lost its end ends with its call, or where the next begins",
	"[perfetto]")
{
	static const struct row rows[] = {
		START_(0, CALL_ID, 10, "nc=unknown", "MEM_BUF_COPY64"),
		START_(0, DMA_ID(1), 11, "nc=unknown", "dma_copy"),
		START_(0, DMA_ID(2), 12, "nc=unknown", "dma_copy"),
		STOP_(0, CALL_ID, 20, "nc=unknown request=0xc0284e18 result=0", "MEM_BUF_COPY64"),
		START_(0, DMA_ID(3), 30, "nc=unknown", "MEM_FREE"),
		STOP_(0, DMA_ID(3), 40, "nc=unknown", "MEM_FREE"),
	};
	struct exported *x = EXPORT(rows);

	REQUIRE(x);
	CHECK_STR(story(x, "thread 10"),
		"<10:MEM_BUF_COPY64 <11:dma_copy >12 <12:dma_copy >20 >20 <30:MEM_FREE >40 ");
	exported_free(x);
}

TEST("perfetto: engines, DMA queues and the TopSP have tracks below their physical core",
	"[perfetto]")
{
	static const struct row rows[] = {
		UNIT_ROW(PHASE_START, 1, 10, "dma3.copy", "engine=dma3 device_core_idx=5 index=1"),
		UNIT_ROW(
			PHASE_STOP, 1, 12, "dma3.copy", "device_duration_ps=2000 clock.bound_ns=7"),
		UNIT_ROW(PHASE_START, 2, 12, "pe.add",
			"engine=pe device_core_idx=5 index=2 device_ps=9"),
		UNIT_ROW(PHASE_INSTANT, 3, 13, "pe.semaphore",
			"engine=pe device_core_idx=5 value=1"),
		UNIT_ROW(PHASE_START, 4, 13, "topsp.barrier", "engine=topsp device_core_idx=5"),
		UNIT_ROW(PHASE_START, 5, 13, "pe.add", "engine=pe device_core_idx=4"),
		UNIT_ROW(PHASE_STOP, 2, 14, "pe.add",
			"device_duration_ps=1900 link.id=9 clock.bound_ns=7"),
		UNIT_ROW(PHASE_STOP, 5, 14, "pe.add", ""),
		UNIT_ROW(PHASE_START, 6, 14, "pe.copy", "engine=pe device_core_idx=5"),
		UNIT_ROW(PHASE_STOP, 6, 15, "pe.copy", ""),
		UNIT_ROW(PHASE_STOP, 4, 15, "topsp.barrier", ""),
		UNIT_ROW(PHASE_INSTANT, 7, 16, "error", "device_core_idx=5 fault=3 @status=1003"),
	};
	struct exported *x = EXPORT(rows);

	REQUIRE(x);
	CHECK_STR(story(x, "dma3"), "<10:dma3.copy >12 ");
	CHECK_STR(story(x, "topsp"), "<13:topsp.barrier >15 ");
	CHECK_STR(story(x, "NeuronCore 0, physical core 5"), "!16:error ");
	CHECK_STR(named(x, "dma3.copy", 0)->notes, "index=u1 ");
	CHECK_STR(x->seen[1].notes, "device_duration_ps=u2000 clock.bound_ns=u7 ");
	CHECK_STR(x->seen[6].notes, "device_duration_ps=u1900 link.id=u9 clock.bound_ns=u7 ");
	exported_free(x);
}

TEST("perfetto: a span that outlives what it is within is cut there, and its rest is drawn",
	"[perfetto]")
{
	static const struct row rows[] = {
		START_(TRACE_EXECUTE_API, 1, 10, ""),
		START_(TRACE_TENSOR_READ, 2, 20, ""),
		STOP_(TRACE_EXECUTE_API, 1, 30, ""),
		START_(TRACE_EXECUTE_API, 3, 40, ""),
		STOP_(TRACE_TENSOR_READ, 2, 50, "a=1"),
		START_(TRACE_EXECUTE_API, 4, 60, ""), /* 3 lost its stop */
		STOP_(TRACE_EXECUTE_API, 4, 70, ""),
		START_(TRACE_EXECUTE_API, 5, 80, ""),
	};
	struct exported *x = EXPORT(rows);

	REQUIRE(x);
	CHECK_STR(story(x, "thread 10"),
		"<10:nrt_execute <20:nrt_tensor_read >30 >30 "
		"<40:nrt_execute >60 <60:nrt_execute >70 <80:nrt_execute ");
	CHECK_STR(story(x, "outlived what it was within"), "<30:nrt_tensor_read >50 ");
	CHECK_STR(named(x, "nrt_tensor_read", 1)->notes, "continued=b1 ");
	CHECK_STR(x->seen[2].notes, "end=snot seen ");
	CHECK_EQ(x->verified.open, 1);
	exported_free(x);
}

TEST("perfetto: ends without a start, starts that come twice and impossible events are instants "
     "and losses",
	"[perfetto]")
{
	static const struct row rows[] = {
		STOP_(TRACE_TENSOR_READ, 1, 10, "", NULL, 5),
		START_(TRACE_TENSOR_READ, 2, 20, ""),
		START_(TRACE_TENSOR_READ, 2, 21, ""),
		STOP_(TRACE_TENSOR_READ, 2, 30, ""),
		{PHASE_INSTANT, TRACE_TENSOR_READ, 3, 40, 10, "start=lost", NULL, 0, 0},
		{PHASE_INSTANT, TRACE_DEVICE_EXEC, 4, 50, 10, "invalid=zero nc=unknown", NULL, 0,
			0},
	};
	struct exported *x = EXPORT(rows);

	REQUIRE(x);
	CHECK_STR(story(x, "thread 10"), "!10:nrt_tensor_read <20:nrt_tensor_read "
					 "!21:nrt_tensor_read >30 !40:nrt_tensor_read ");
	CHECK_STR(story(x, "NeuronCore unknown"), "!50:nc_exec_running ");
	CHECK_STR(named(x, "nrt_tensor_read", 0)->notes, "nc=u0 start=snot seen duration_ns=u5 ");
	CHECK_STR(story(x, "records lost or broken"), "10=1 21=2 40=3 50=4 ");
	CHECK_STR(story(x, "losses"), "!50:lost: kernel/ring_full !50:blind ");
	CHECK_STR(named(x, "lost: kernel/ring_full", 0)->notes, "records=u12 ");
	CHECK_STR(named(x, "blind", 0)->notes, "what=swhat was not seen ");
	exported_free(x);
}

TEST("perfetto: steps of the clock are marks of the process and snapshots", "[perfetto]")
{
	static const struct row rows[] = {
		START_(TRACE_TENSOR_READ, 1, 10, ""),
		{PHASE_INSTANT, 0, 1ull << 62, 20, 0, "old_offset_ns=5 new_offset_ns=7000",
			"clock_step", 0, 0},
		STOP_(TRACE_TENSOR_READ, 1, 30, ""),
	};
	struct exported *x = EXPORT(rows);

	REQUIRE(x);
	CHECK_STR(story(x, "i-1_pid_7"), "!20:clock_step ");
	CHECK_STR(named(x, "clock_step", 0)->category, "mark");
	REQUIRE_EQ(x->snapshots, 2);
	CHECK_EQ(x->boot_at[1], BOOT + 20);
	CHECK_EQ(x->realtime_at[1], BOOT + 20 + 7000);
	exported_free(x);
}

TEST("perfetto: time that goes back in a file stands still, and says by how much", "[perfetto]")
{
	static const struct row rows[] = {
		START_(TRACE_TENSOR_READ, 1, 100, ""),
		STOP_(TRACE_TENSOR_READ, 1, 60, ""),
	};
	struct exported *x = EXPORT(rows);

	REQUIRE(x);
	CHECK_STR(story(x, "thread 10"), "<100:nrt_tensor_read >100 ");
	CHECK_STR(x->seen[1].notes, "out_of_order_ns=u40 ");
	exported_free(x);
}

#define MS 1000000ull
#define COPY(id, from, to, bytes, rest)                                                       \
	{PHASE_START, 0, 1ull << 63 | (id), from, 10 + (id), "", "MEM_BUF_COPY64", 0, 0},     \
	{                                                                                     \
		PHASE_STOP, 0, 1ull << 63 | (id), to, 10 + (id),                              \
			"bytes=" bytes " direction=" rest, "MEM_BUF_COPY64", (to) - (from), 0 \
	}

TEST("perfetto: the area below the rates of copies is their bytes", "[perfetto]")
{
	/* BOOT is at a border of windows of 10 ms. */
	static const struct row rows[] = {
		COPY(1, 0, 5 * MS, "1000", "host_to_device"),
		COPY(2, 5 * MS, 35 * MS, "3001", "host_to_device"),
		COPY(3, 40 * MS, 41 * MS, "77", "device_to_host"),
		COPY(4, 42 * MS, 43 * MS, "99", "device_to_host errno=EIO"),
		COPY(5, 900 * MS, 901 * MS, "5", "host_to_device"),
	};
	struct exported *x = EXPORT(rows);

	REQUIRE(x);
	CHECK_STR(story(x, "copies host_to_device B/s"),
		"0=150000 10000000=100000 30000000=50100 40000000=0 900000000=500 910000000=0 ");
	CHECK_STR(story(x, "copies host_to_device bytes"),
		"0=1500 10000000=2500 20000000=3500 30000000=4001 900000000=4006 ");
	CHECK_STR(story(x, "copies device_to_host bytes"), "40000000=77 ");
	exported_free(x);
}

TEST("perfetto: a copy that takes longer than rates are kept loses no byte", "[perfetto]")
{
	static const struct row rows[] = {
		COPY(1, 0, 1 * MS, "10", "host_to_device"),
		COPY(2, 0, 60000 * MS, "123456789012", "host_to_device"),
	};
	struct exported *x = EXPORT(rows);
	uint64_t area = 0, total = 0;
	const struct seen *before = NULL;

	REQUIRE(x);
	REQUIRE(x->count < MAX_SEEN);
	for (unsigned i = 0; i < x->count; i++) {
		const struct seen *e = &x->seen[i];
		const char *name = track_name(x, e->track);

		if (!strcmp(name, "copies host_to_device bytes"))
			total = (uint64_t)e->value;
		if (strcmp(name, "copies host_to_device B/s") != 0)
			continue;
		if (before)
			area += (uint64_t)before->value * ((e->time - before->time) / MS) / 1000;
		before = e;
	}
	CHECK_EQ(total, 123456789022);
	CHECK_EQ(area, 123456789022);
	CHECK_EQ(before->value, 0);
	exported_free(x);
}

TEST("perfetto: a process with the pid of another host's is not taken for it", "[perfetto]")
{
	static const struct row rows[] = {
		START_(TRACE_TENSOR_READ, 1, 10, ""),
		STOP_(TRACE_TENSOR_READ, 1, 20, ""),
	};
	struct scratch s;
	struct exported *x;

	REQUIRE(scratch_make(&s));
	CHECK(put_trace(&s, "i-1_pid_7", 7, rows, 2) && put_trace(&s, "i-2_pid_7", 7, rows, 2));
	x = export_path(s.dir);
	scratch_remove(&s);
	REQUIRE(x);
	CHECK_EQ(x->result.processes, 2);
	CHECK_STR(story(x, "thread 10"), "<10:nrt_tensor_read >20 <10:nrt_tensor_read >20 ");
	unsigned processes = 0, hosts = 0;
	for (unsigned i = 0; i < x->track_count; i++) {
		processes += x->tracks[i]->process != NULL;
		hosts += x->tracks[i]->name && !strncmp(x->tracks[i]->name, "host ", 5);
	}
	CHECK_EQ(processes, 1);
	CHECK_EQ(hosts, 2);
	exported_free(x);
}

TEST("perfetto: texts that are not UTF-8 or very long, and many of them, make a sound file",
	"[perfetto]")
{
	enum { COUNT = 6000 };
	struct row *rows = calloc(2 * COUNT, sizeof(*rows));
	char(*hints)[24] = calloc(COUNT, sizeof(*hints));
	char *longer = malloc(9001);
	struct exported *big = calloc(1, sizeof(*big));
	struct feed_options options = {0};
	char *error = NULL;
	struct scratch s;

	REQUIRE(big && rows && hints && longer && scratch_make(&s));
	memset(longer, 'x', 9000);
	longer[9000] = '\0';
	memcpy(longer, "a=", 2);
	for (uint64_t i = 0; i < COUNT; i++) {
		snprintf(hints[i], sizeof(hints[i]), "\xff%llu", (unsigned long long)i);
		rows[2 * i] = (struct row){
			PHASE_START, 0, 1ull << 63 | i, 2 * i, 10, longer, hints[i], 0, 0};
		rows[2 * i + 1] = (struct row){
			PHASE_STOP, 0, 1ull << 63 | i, 2 * i + 1, 10, "b=\xfe", hints[i], 0, 0};
		longer[3] = (char)('a' + i % 20);
	}
	CHECK(put_trace(&s, "i-1_pid_7", 7, rows, 2 * COUNT));
	big->rc = perfetto_export(
		s.dir, &options, keep, &big->bytes, &big->result, &big->write_failed, &error);
	CHECK_EQ(big->rc, 0);
	CHECK_EQ(check(big), 0);
	CHECK_EQ(big->verified.findings, 0);
	CHECK_EQ(big->verified.slices, COUNT);
	free(error);
	exported_free(big);
	scratch_remove(&s);
	free(rows);
	free(hints);
	free(longer);
}

static int refuse(void *ctx, const void *data, size_t size)
{
	(void)ctx, (void)data, (void)size;
	return -ENOSPC;
}

TEST("perfetto: what cannot be written is told apart from what cannot be read", "[perfetto]")
{
	static const struct row rows[] = {START_(TRACE_TENSOR_READ, 1, 10, "")};
	struct feed_options options = {0};
	struct perfetto_result r;
	struct scratch s;
	char *error = NULL;
	bool failed = false;

	REQUIRE(scratch_make(&s));
	CHECK(put_trace(&s, "i-1_pid_7", 7, rows, 1));
	CHECK_EQ(perfetto_export(s.dir, &options, refuse, NULL, &r, &failed, &error), -ENOSPC);
	CHECK(failed);
	free(error);
	struct scratch_path nothing = scratch_path(&s, "nothing");
	CHECK_EQ(perfetto_export(nothing.s, &options, refuse, NULL, &r, &failed, &error), -ENOENT);
	CHECK(!failed);
	CHECK(error && strstr(error, nothing.s));
	free(error);
	scratch_remove(&s);
}

TEST("perfetto: a span that was seen from outside is none of the driver, and goes by its hint",
	"[perfetto]")
{
	static const struct row rows[] = {
		START_(0, 1ull << 62 | 5, 10, "", "outside"),
		START_(0, 1ull << 63 | 6, 20, "", "ioctl"),
		STOP_(0, 1ull << 63 | 6, 30, "", "ioctl"),
		STOP_(0, 1ull << 62 | 5, 40, "", "outside"),
	};
	struct exported *x = EXPORT(rows);

	REQUIRE(x);
	CHECK_STR(story(x, "thread 10"), "<10:outside <20:ioctl >30 >40 ");
	CHECK_STR(named(x, "outside", 0)->category, "runtime");
	CHECK_STR(named(x, "ioctl", 0)->category, "driver");
	exported_free(x);
}
