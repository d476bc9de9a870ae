/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_file_ops_test.c - what the hooks inside of the driver add to the files: handles, file operations, the
 * driver's comings and goings, requests of another version, and what was blind on which step.
 */
#include <errno.h>
#include <string.h>

#include "runtime/record/modules.h"
#include "tests/shim/shim.h"
#include "tests/unit/recording_fixture.h"

#define TID 4711u

static bool open_with(struct fixture *fx, const char *driver, const struct rec_ladder_step *ladder)
{
	static const char *const hooks[] = {"fentry:ncdev_ioctl", NULL};
	struct rec_header_info info = {.producer = "ntrace test",
		.instance_id = "i-0123",
		.host = "h",
		.driver = driver,
		.hooks = hooks,
		.ladder = ladder};

	if (!fx_open_bare(fx))
		return false;
	fx_header(fx, &info);
	fx_clock(fx, 100, 0);
	fx_process(fx, FX_SOURCE, FX_PID);
	return true;
}

static bool says(const struct fixture *fx, const char *text)
{
	for (uint32_t i = 0; i < fx->result.blind_count; i++)
		if (strcmp(fx->result.blind[i], text) == 0)
			return true;
	return false;
}

static bool says_about(const struct fixture *fx, const char *part)
{
	for (uint32_t i = 0; i < fx->result.blind_count; i++)
		if (strstr(fx->result.blind[i], part))
			return true;
	return false;
}

static void call(struct fixture *fx, uint64_t from, uint32_t request, int32_t result,
	uint16_t flags, uint8_t nargs, const uint64_t *args)
{
	struct fx_call c = {.tid = TID,
		.request = request,
		.from = from,
		.to = from + 10,
		.result = result,
		.flags = flags,
		.nargs = nargs};

	if (nargs)
		memcpy(c.args, args, nargs * sizeof(*args));
	fx_call(fx, &c);
}

TEST("merge: an allocation has its handle when that was read, and each call the kind of its file",
	"[merge][driver]")
{
	const uint64_t args[] = {4096, 0, 1, 2, 7, 33};
	const struct ntrace_event_view *e;
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	call(&fx, 100, NEURON_IOCTL_MEM_ALLOC_V2MT64, 0, NEV_F_WORK | NEV_F_HANDLE_OUT, 6, args);
	call(&fx, 200, NEURON_IOCTL_MEM_ALLOC_V2MT64, -ENOMEM, NEV_F_WORK, 6, args);
	call(&fx, 300, NEURON_IOCTL_DEVICE_BDF_EXT, 0, NEV_F_QUERY, 0, NULL);
	call(&fx, 400, NEURON_IOCTL_DEVICE_BDF_EXT, 0, 0, 0, NULL);
	REQUIRE(fx_merged(&fx, 0));
	e = fx_by_hint(&fx, "MEM_ALLOC_V2MT64", PHASE_STOP, 0);
	CHECK_STR(event_attr(e, "handle"), "33");
	CHECK_STR(event_attr(e, "type"), "7");
	CHECK_STR(event_attr(e, "file"), "work");
	e = fx_by_hint(&fx, "MEM_ALLOC_V2MT64", PHASE_STOP, 1);
	CHECK_STR(event_attr(e, "handle"), "");
	CHECK_STR(event_attr(e, "bytes"), "4096");
	CHECK_STR(event_attr(fx_by_hint(&fx, "DEVICE_BDF_EXT", PHASE_STOP, 0), "file"), "query");
	CHECK_STR(event_attr(fx_by_hint(&fx, "DEVICE_BDF_EXT", PHASE_STOP, 1), "file"), "");
	fx_free(&fx);
}

TEST("merge: open, flush, release and mmap are spans of their names, and no ioctls",
	"[merge][driver]")
{
	static const char *const names[] = {"open", "flush", "release"};
	const uint64_t map[] = {0x4000001000, 8192};
	const struct ntrace_event_view *e;
	struct fixture fx;
	struct trace_file t;

	REQUIRE(fx_open(&fx));
	fx_span(&fx, TRACE_TENSOR_WRITE, 1, TID, 50, 900);
	for (uint32_t op = 1; op <= 3; op++)
		call(&fx, 100 * op, NEV_OP_REQUEST(op), 0, NEV_F_WORK, 0, NULL);
	call(&fx, 400, NEV_OP_REQUEST(NEV_OP_MMAP), -EINVAL, NEV_F_WORK, 2, map);
	fx_copy(&fx, TID, 500, 510, 64);
	REQUIRE(fx_merged(&fx, 0));
	for (size_t i = 0; i < 3; i++) {
		e = fx_by_hint(&fx, names[i], PHASE_STOP, 0);
		CHECK_EQ(e->id >> 63, 1);
		CHECK_EQ(e->duration, 10);
	}
	e = fx_by_hint(&fx, "mmap", PHASE_STOP, 0);
	CHECK_STR(event_attr(e, "address"), "0x4000001000");
	CHECK_STR(event_attr(e, "bytes"), "8192");
	CHECK_STR(event_attr(e, "errno"), "EINVAL");
	e = &fx.trace.events[fx.trace.count - 1];
	CHECK_STR(event_attr(e, "driver.ioctls"), "1");
	CHECK_STR(event_attr(e, "driver.errors"), "");

	/* No event type of theirs is that of a request. */
	REQUIRE_EQ(fx_merge(&fx, "extended", MERGE_KERNEL_EXTENDED), 0);
	REQUIRE(trace_file_read(&t, fx_path(&fx, "extended").s));
	for (size_t i = 0, op = 1; i < t.count; i++)
		if (t.events[i].phase == PHASE_STOP && t.events[i].hint.len &&
			t.events[i].event_type > 1255)
			CHECK_EQ(t.events[i].event_type, 1256 + op++);
	trace_file_free(&t);
	fx_free(&fx);
}

static void module(struct fixture *fx, uint64_t at, uint32_t generation, bool loaded,
	const char *version, const struct rec_module_step *rows, size_t count)
{
	struct rec_module m = {.generation = generation,
		.loaded = loaded,
		.calls_unseen_ns = generation * 10000001ull,
		.inside_unseen_ns = loaded ? 700000000 / (generation + 1) : 0};

	memcpy(m.version, version, strlen(version));
	CHECK_EQ(rec_writer_frame_at(fx->w, REC_MODULE, REC_SOURCE_RECORDER, FX_BOOT + at, &m,
			 sizeof(m), rows, count * sizeof(*rows)),
		0);
}

TEST("merge: the driver's comings and goings are instants with generation and version",
	"[merge][driver]")
{
	const struct rec_module_step reached[] = {{"ioctl", "fentry", "reached"},
		{"file", "fentry", "no BTF"}, {"file", "kprobe", "ENOENT"}};
	const struct rec_module_step idle[] = {{"ioctl", "fentry", "reached"},
		{"transfer", "idle", "unseen"}, {"ioctl", "idle", "unseen"}};
	const struct rec_ladder_step before[] = {
		{"driver", "module", "not loaded"}, {"ioctl", "syscall", "reached"}, {0}};
	const struct ntrace_event_view *e;
	struct fixture fx;

	REQUIRE(open_with(&fx, NULL, before));
	fx_copy(&fx, TID, 100, 110, 1);
	module(&fx, 150, 1, true, "2.24.7.0", reached, 3);
	fx_copy(&fx, TID, 200, 210, 1);
	module(&fx, 250, 1, false, "", NULL, 0);
	module(&fx, 300, 2, true, "2.30.2.0", idle, 3);
	REQUIRE(fx_merged(&fx, 0));
	e = fx_by_hint(&fx, "driver_loaded", PHASE_INSTANT, 0);
	CHECK_STR(event_attr(e, "generation"), "1");
	CHECK_STR(event_attr(e, "version"), "2.24.7.0");
	CHECK(e->timestamp > fx_by_hint(&fx, "MEM_BUF_COPY64", PHASE_STOP, 0)->timestamp);
	CHECK(e->timestamp < fx_by_hint(&fx, "MEM_BUF_COPY64", PHASE_STOP, 1)->timestamp);
	e = fx_by_hint(&fx, "driver_unloaded", PHASE_INSTANT, 0);
	CHECK_STR(event_attr(e, "generation"), "1");
	CHECK_STR(event_attr(e, "version"), "");
	e = fx_by_hint(&fx, "driver_loaded", PHASE_INSTANT, 1);
	CHECK_STR(event_attr(e, "version"), "2.30.2.0");
	CHECK(says(&fx,
		"from when somebody opens a device that nobody had open until hooks are back on "
		"the driver: which handle each call was made on, whole copies"));
	CHECK(says(&fx, "what a driver that was loaded meanwhile did before hooks were on it: "
			"calls of at most 21 ms, what it did inside of at most 350 ms"));
	CHECK(!says_about(&fx, "kprobes alone"));
	fx_free(&fx);
}

TEST("merge: how long kprobes were switched off is said", "[merge][driver]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_copy(&fx, TID, 100, 110, 1);
	fx_counter(&fx, REC_SOURCE_KERNEL, REC_C_KERNEL_KPROBES_OFF_NS, 0, 1400000001);
	REQUIRE(fx_merged(&fx, 0));
	CHECK(says(&fx, "what kprobes alone would have seen while they were switched off for the "
			"whole machine: of at most 1401 ms"));
	fx_free(&fx);
}

TEST("merge: a frame of the driver's that is too short is counted and harmless", "[merge][driver]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_copy(&fx, TID, 100, 110, 1);
	fx_frame(&fx, REC_MODULE, REC_SOURCE_RECORDER, "short", 5);
	REQUIRE(fx_merged(&fx, 0));
	CHECK(!says_about(&fx, "loaded meanwhile"));
	CHECK_EQ(fx_by_hint(&fx, "driver_loaded", PHASE_INSTANT, 0)->timestamp, 0);
	fx_free(&fx);
}

TEST("merge: a request that the driver refused because it is of another version is named with both",
	"[merge][driver]")
{
	struct fixture fx;

	REQUIRE(open_with(&fx, "2.24.7.0", NULL));
	call(&fx, 100, NEURON_IOCTL_MEM_COPY64, -EINVAL, 0, 6, (const uint64_t[6]){0});
	call(&fx, 200, NEURON_IOCTL_MEM_COPY64, -EINVAL, 0, 6, (const uint64_t[6]){0});
	call(&fx, 300, 0xc0504e7c, -ENOTTY, NEV_F_UNKNOWN | NEV_F_OTHER_SIZE, 0, NULL);
	/* These are not: the driver's own, another error, a number that nobody has. */
	call(&fx, 400, NEURON_IOCTL_MEM_COPY, -EINVAL, 0, 6, (const uint64_t[6]){0});
	call(&fx, 500, NEURON_IOCTL_HOST_MEM_UNPIN, -EFAULT, 0, 0, NULL);
	call(&fx, 600, 0xc0504eff, -EINVAL, NEV_F_UNKNOWN, 0, NULL);
	REQUIRE(fx_merged(&fx, 0));
	for (uint32_t i = 0; i < fx.result.blind_count; i++)
		test_info("%s", fx.result.blind[i]);
	CHECK(says(&fx,
		"what MEM_COPY64 of driver 2.30 would have done: driver 2.24.7.0 refused it "
		"with EINVAL, 2 times"));
	CHECK(says(&fx, "what 0xc0504e7c (number 124, 80 bytes; known are 40, 48, 64) of an "
			"unknown driver would have "
			"done: driver 2.24.7.0 refused it with ENOTTY, 1 time"));
	CHECK_STR(event_attr(fx_by_hint(&fx, "ioctl_0xc0504e7c", PHASE_STOP, 0), "args"),
		"other_size");
	fx_free(&fx);
}

TEST("merge: what another driver that was loaded later refused is its refusal", "[merge][driver]")
{
	struct fixture fx;

	REQUIRE(open_with(&fx, "2.24.7.0", NULL));
	/* Of the first driver itself: a wrong argument. */
	call(&fx, 100, NEURON_IOCTL_MEM_BUF_ZEROCOPY64_V40, -EINVAL, 0, 4, (const uint64_t[4]){0});
	module(&fx, 150, 1, false, "", NULL, 0);
	module(&fx, 160, 1, true, "2.30.2.0", NULL, 0);
	call(&fx, 200, NEURON_IOCTL_MEM_BUF_ZEROCOPY64_V40, -EINVAL, 0, 4, (const uint64_t[4]){0});
	call(&fx, 300, NEURON_IOCTL_MEM_BUF_ZEROCOPY64_DEPRECATED, -EINVAL, 0, 6,
		(const uint64_t[6]){0});
	call(&fx, 400, NEURON_IOCTL_MEM_COPY64, -EINVAL, 0, 6, (const uint64_t[6]){0});
	call(&fx, 500, NEURON_IOCTL_DMA_QUIESCE_QUEUES, -ENOTTY, 0, 0, NULL);
	REQUIRE(fx_merged(&fx, 0));
	for (uint32_t i = 0; i < fx.result.blind_count; i++) {
		test_info("%s", fx.result.blind[i]);
		CHECK(!strstr(fx.result.blind[i], "2.24.7.0 refused"));
		CHECK(!strstr(fx.result.blind[i], "what MEM_COPY64 of"));
		CHECK(!strstr(fx.result.blind[i], "DMA_QUIESCE_QUEUES"));
	}
	CHECK(says(&fx, "what MEM_BUF_ZEROCOPY64_V40 of driver 2.24 would have done: driver "
			"2.30.2.0 refused it with EINVAL, 1 time"));
	CHECK(says(&fx, "what MEM_BUF_ZEROCOPY64_DEPRECATED of driver 2.27 would have done: driver "
			"2.30.2.0 refused it with EINVAL, 1 time"));
	fx_free(&fx);
}

TEST("merge: what was blind follows the steps that were reached", "[merge][driver]")
{
	static const struct {
		struct rec_ladder_step ladder[8];
		const char *said, *unsaid;
	} cases[] = {
		{{{"ioctl", "fentry", "reached"}, {"file", "fentry", "reached"},
			 {"ioctl", "syscall", "not needed"}},
			NULL, "opens, closes"},
		{{{"ioctl", "fentry", "no BTF"}, {"ioctl", "kprobe", "reached"},
			 {"file", "fentry", "no BTF"}, {"file", "kprobe", "ENOENT"}},
			"opens, closes and mappings of devices (fentry: no BTF, kprobe: ENOENT)",
			"which handle"},
		{{{"ioctl", "fentry", "no BTF"}, {"ioctl", "kprobe", "unknown prototype"},
			 {"file", "fentry", "no BTF"}, {"file", "kprobe", "unknown prototype"},
			 {"ioctl", "syscall", "reached"}},
			"which handle each call was made on, opens, closes and mappings of "
			"devices (fentry: no BTF, kprobe: unknown prototype)",
			NULL},
		{{{"process", "tp_btf", "reached"}, {"ioctl", "syscall", "reached"}},
			"which handle each call was made on, opens, closes and mappings of "
			"devices (not hooked)",
			NULL},
		{{{"process", "tp_btf", "reached"}, {"ioctl", "syscall", "reached"}},
			"doorbells of the driver, completions and timeouts of its copies, whole "
			"copies, fills of memory, copies from user memory, asynchronous copies, "
			"rings that programs fill themselves, queues that come and go (not "
			"hooked)",
			"the driver's interrupts"},
		{{{"driver", "module", "not loaded"}, {"ioctl", "syscall", "reached"}},
			"DMA that devices start by themselves, and the driver's own threads and "
			"interrupts",
			"opens, closes"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fixture fx;

		REQUIRE(open_with(&fx, "2.24.7.0", cases[i].ladder));
		fx_copy(&fx, TID, 100, 110, 1);
		REQUIRE(fx_merged(&fx, 0));
		for (uint32_t k = 0; k < fx.result.blind_count; k++) {
			test_info("case %zu: %s", i, fx.result.blind[k]);
			CHECK(!cases[i].unsaid || !strstr(fx.result.blind[k], cases[i].unsaid));
		}
		CHECK(says(&fx, "doorbells rung from user space through mapped registers"));
		CHECK(!cases[i].said || says(&fx, cases[i].said));
		fx_free(&fx);
	}
}

TEST("merge: what hooks of one driver reached says nothing of another that came later",
	"[merge][driver]")
{
	const struct rec_module_step old[] = {{"ioctl", "fentry", "reached"},
		{"file", "fentry", "reached"}, {"zerocopy", "fentry", "reached"},
		{"transfer", "tracepoint", "reached"}},
				     new[] = {{"ioctl", "fentry", "reached"},
					     {"file", "fentry", "EBUSY"},
					     {"zerocopy", "kprobe", "no such function"}};
	const struct rec_ladder_step before[] = {
		{"driver", "module", "not loaded"}, {"ioctl", "syscall", "reached"}, {0}};
	struct fixture fx;
	unsigned lines = 0;

	REQUIRE(open_with(&fx, NULL, before));
	fx_copy(&fx, TID, 100, 110, 1);
	/* The newer one first and last, so that neither order hides it. */
	module(&fx, 150, 1, true, "2.30.2.0", new, 3);
	module(&fx, 160, 1, false, "", NULL, 0);
	module(&fx, 170, 2, true, "2.24.7.0", old, 4);
	module(&fx, 180, 2, false, "", NULL, 0);
	module(&fx, 190, 3, true, "2.30.2.0", new, 3);
	REQUIRE(fx_merged(&fx, 0));
	for (uint32_t i = 0; i < fx.result.blind_count; i++) {
		test_info("%s", fx.result.blind[i]);
		lines += strstr(fx.result.blind[i], "(driver 2.30.2.0; ") != NULL;
		if (strstr(fx.result.blind[i], "2.24.7.0"))
			CHECK(!strstr(fx.result.blind[i], "copies from user memory"));
	}
	CHECK(says(&fx, "copies from user memory (driver 2.30.2.0; kprobe: no such function)"));
	CHECK(says(&fx, "opens, closes and mappings of devices (driver 2.30.2.0; fentry: EBUSY)"));
	CHECK_EQ(lines, 3); /* and what was not hooked: once, though it came twice */
	CHECK(says(&fx, "how long copies took, those without a buffer's size, and zero copy: "
			"tracepoints tell that a copy was made"));
	fx_free(&fx);
}

TEST("merge: drivers beyond those that are named are said to have been there", "[merge][driver]")
{
	const struct rec_module_step all[] = {{"ioctl", "fentry", "reached"}};
	const struct rec_ladder_step before[] = {{"driver", "module", "not loaded"}, {0}};
	struct fixture fx;
	bool more = false;

	REQUIRE(open_with(&fx, NULL, before));
	fx_copy(&fx, TID, 100, 110, 1);
	for (unsigned i = 0; i < 40; i++) {
		char version[16];

		snprintf(version, sizeof(version), "2.24.%u", i);
		module(&fx, 150 + i, i, true, version, all, 1);
	}
	REQUIRE(fx_merged(&fx, 0));
	CHECK_EQ(fx.result.blind_count, sizeof(fx.result.blind) / sizeof(fx.result.blind[0]));
	for (uint32_t i = 0; i < fx.result.blind_count; i++)
		more |= strstr(fx.result.blind[i], "things more") != NULL;
	CHECK(more);
	fx_free(&fx);
}

TEST("merge: what only later drivers do is missed where it is done and was not hooked",
	"[merge][driver]")
{
	static const struct {
		const char *driver;
		struct rec_ladder_step ladder[4];
		bool missed;
	} cases[] = {
		{"2.24.7.0",
			{{"owner", "fentry", "no such function"},
				{"owner", "kprobe", "unknown prototype"}},
			false},
		{"2.27.4.0", {{"owner", "fentry", "no BTF"}}, false},
		{"2.28.0.0", {{"owner", "fentry", "no BTF"}}, true},
		{"2.30.2.0", {{"owner", "fentry", "EBUSY"}}, true},
		{"2.30.2.0", {{"owner", "fentry", "EBUSY"}, {"owner", "kprobe", "reached"}}, false},
		{"3.0", {{"owner", "kprobe", "no such function"}}, true},
		{NULL, {{"owner", "kprobe", "no such function"}}, true},
		{"odd", {{"owner", "kprobe", "no such function"}}, true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fixture fx;
		bool missed = false;

		REQUIRE(open_with(&fx, cases[i].driver, cases[i].ladder));
		fx_copy(&fx, TID, 100, 110, 1);
		REQUIRE(fx_merged(&fx, 0));
		for (uint32_t k = 0; k < fx.result.blind_count; k++)
			missed |= strstr(fx.result.blind[k],
					  "doorbells that a thread of the driver rings for a "
					  "program") != NULL;
		test_info("case %zu", i);
		CHECK_EQ(missed, cases[i].missed);
		fx_free(&fx);
	}
}
