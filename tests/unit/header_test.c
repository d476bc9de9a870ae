/* SPDX-License-Identifier: Apache-2.0 */
/*
 * header_test.c - the recording's header: text and back, and what a reader makes of strange ones.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/file.h"
#include "runtime/record/header.h"
#include "runtime/trace/event_registry.h"
#include "tests/shim/shim.h"

static const char *const hooks[] = {"tracepoint:a", "tracepoint:b", NULL};
static const struct rec_ladder_step ladder[] = {
	{"ioctl", "fentry", "EPERM"}, {"ioctl", "tracepoint", "reached"}, {NULL, NULL, NULL}};

static const char *const activities[] = {"system_profile", "cpu_util", NULL};
static const char *const environment[] = {"NEURON_RT_INSPECT_ENABLE=1", NULL};
static const struct rec_session_off off[] = {{"host_memory", "not \xff wanted"}, {NULL, NULL}};

TEST("header: what a session says of itself is read back, each member of it", "[record][inspect]")
{
	const struct rec_session session = {
		.session_id = -3,
		.enabled = 1,
		.period_ms = 1000,
		.device_profile = "off",
		.event_cores = "0-3,7",
		.directory = "/a/b",
		.activities = activities,
		.environment = environment,
		.off = off,
	};
	struct rec_header_info info = {.producer = "p", .session = &session};
	struct rec_session_value want, is;
	struct rec_header h = {0};
	_cleanup_free_ char *text = NULL;
	size_t i;

	REQUIRE_EQ(rec_header_text(&info, &text), 0);
	REQUIRE_EQ(rec_header_parse(text, strlen(text), &h), 0);
	REQUIRE(h.info.session != NULL);
	for (i = 0; rec_session_value(&session, i, &want); i++) {
		REQUIRE(rec_session_value(h.info.session, i, &is));
		CHECK_STR(is.key, want.key);
		CHECK_EQ(is.number, want.number);
		CHECK(!is.text == !want.text && (!is.text || !strcmp(is.text, want.text)));
		CHECK(!is.list == !want.list);
		for (size_t n = 0; is.list && want.list && want.list[n]; n++)
			CHECK_STR(is.list[n], want.list[n]);
	}
	CHECK_EQ(i, 17);
	REQUIRE(h.info.session->off != NULL);
	CHECK_STR(h.info.session->off[0].what, "host_memory");
	CHECK_STR(h.info.session->off[0].why, "not ? wanted");
	CHECK(h.info.session->off[1].what == NULL);
	rec_header_free(&h);
}

TEST("header: of a session that is no object, or has members of other types, what is right is "
     "taken",
	"[record][inspect]")
{
	static const char odd[] =
		"{\"session\":{\"session_id\":\"x\",\"layout\":5,\"off\":[{\"what\":1},"
		"{\"what\":\"a\",\"why\":\"b\"},3],\"activities\":[1,\"z\"],\"unknown\":[]}}";
	static const char none[] = "{\"session\":[1]}";
	struct rec_header h = {0};

	REQUIRE_EQ(rec_header_parse(none, strlen(none), &h), 0);
	CHECK(!h.info.session);
	rec_header_free(&h);
	REQUIRE_EQ(rec_header_parse(odd, strlen(odd), &h), 0);
	REQUIRE(h.info.session != NULL);
	CHECK_EQ(h.info.session->session_id, 0);
	CHECK(!h.info.session->layout);
	REQUIRE(h.info.session->off && h.info.session->activities);
	CHECK_STR(h.info.session->off[0].what, "a");
	CHECK(h.info.session->off[1].what == NULL);
	CHECK_STR(h.info.session->activities[0], "z");
	CHECK(h.info.session->activities[1] == NULL);
	rec_header_free(&h);
}

TEST("header: everything that is written is read back", "[record]")
{
	struct rec_header_info info = {
		.producer = "ntrace 1",
		.instance_id = "i-0a",
		.host = "node",
		.kernel = "6.1",
		.machine = "x86_64",
		.driver = "2.24.7.0",
		.hooks = hooks,
		.ladder = ladder,
		.is_virtual = true,
		.is_cut = true,
		.attached = true,
		.all_processes = true,
		.kernel_ring_bytes = 4u << 20,
		.ring_capacity = 4294967295u,
	};
	struct rec_header h = {0};
	_cleanup_free_ char *text = NULL;

	REQUIRE_EQ(rec_header_text(&info, &text), 0);
	REQUIRE_EQ(rec_header_parse(text, strlen(text), &h), 0);
	CHECK_STR(h.info.producer, "ntrace 1");
	CHECK_STR(h.info.instance_id, "i-0a");
	CHECK_STR(h.info.host, "node");
	CHECK_STR(h.info.kernel, "6.1");
	CHECK_STR(h.info.machine, "x86_64");
	CHECK_STR(h.info.driver, "2.24.7.0");
	CHECK(h.info.is_virtual && h.info.is_cut && h.info.all_processes && h.info.attached);
	CHECK_EQ(h.info.kernel_ring_bytes, 4u << 20);
	CHECK_EQ(h.info.ring_capacity, 4294967295u);
	CHECK_STR(h.info.hooks[0], "tracepoint:a");
	CHECK_STR(h.info.hooks[1], "tracepoint:b");
	CHECK(h.info.hooks[2] == NULL);
	REQUIRE(h.info.ladder != NULL);
	CHECK_STR(h.info.ladder[0].family, "ioctl");
	CHECK_STR(h.info.ladder[0].step, "fentry");
	CHECK_STR(h.info.ladder[0].result, "EPERM");
	CHECK_STR(h.info.ladder[1].step, "tracepoint");
	CHECK_STR(h.info.ladder[1].result, "reached");
	CHECK(h.info.ladder[2].family == NULL);
	CHECK(h.info.registry_hash == trace_registry_hash());
	CHECK(h.info.ioctl_hash == rec_ioctl_table_hash());
	rec_header_free(&h);
}

TEST("header: keys are sorted and the unknown is left out", "[record]")
{
	struct rec_header_info info = {
		.producer = "p", .registry_hash = 0xabcdef0123456789u, .ioctl_hash = 1};
	_cleanup_free_ char *text = NULL;

	REQUIRE_EQ(rec_header_text(&info, &text), 0);
	CHECK_STR(text,
		"{\"config\":{\"all_processes\":false},\"format\":\"ntrace-recording\","
		"\"hooks\":[],\"ioctl_hash\":\"0x0000000000000001\",\"is_virtual\":false,"
		"\"producer\":\"p\",\"registry_hash\":\"0xabcdef0123456789\",\"version\":2}");
}

TEST("header: a host name that is not UTF-8 still gives valid JSON", "[record]")
{
	struct rec_header_info info = {.host = "m\xfcller"};
	struct rec_header h = {0};
	_cleanup_free_ char *text = NULL;

	REQUIRE_EQ(rec_header_text(&info, &text), 0);
	REQUIRE_EQ(rec_header_parse(text, strlen(text), &h), 0);
	CHECK_STR(h.info.host, "m?ller");
	rec_header_free(&h);
}

TEST("header: wrong types and unknown keys are as if absent, other texts are refused", "[record]")
{
	static const char odd[] =
		"{\"producer\":7,\"hooks\":[1,\"h\",null],\"config\":[],"
		"\"ladder\":[7,{\"family\":\"f\"},"
		"{\"family\":\"f\",\"step\":\"s\",\"result\":\"r\"}],"
		"\"registry_hash\":\"0xzz\",\"is_virtual\":\"yes\",\"cut\":1,\"future\":{}}";
	static const char *const refused[] = {"", "[]", "7", "{\"a\":", "{} x", "\xff"};
	struct rec_header h = {0};

	REQUIRE_EQ(rec_header_parse(odd, strlen(odd), &h), 0);
	CHECK(h.info.producer == NULL && h.info.host == NULL);
	CHECK(!h.info.is_virtual && !h.info.is_cut && !h.info.all_processes && !h.info.attached);
	CHECK(h.info.registry_hash == 0);
	CHECK_STR(h.info.hooks[0], "h");
	CHECK_STR(h.info.ladder[0].step, "s");
	CHECK(h.info.ladder[1].family == NULL);
	CHECK(h.info.hooks[1] == NULL);
	rec_header_free(&h);
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		test_info("text %zu", i);
		CHECK_EQ(rec_header_parse(refused[i], strlen(refused[i]), &h), -EBADMSG);
		rec_header_free(&h);
	}
}

TEST("header: its text may be cut anywhere without harm", "[record]")
{
	struct rec_header_info info = {
		.producer = "p", .instance_id = "i", .hooks = hooks, .ladder = ladder};
	struct rec_header h = {0};
	_cleanup_free_ char *text = NULL;

	REQUIRE_EQ(rec_header_text(&info, &text), 0);
	for (size_t n = 0; n < strlen(text); n++) {
		CHECK_EQ(rec_header_parse(text, n, &h), -EBADMSG);
		rec_header_free(&h);
	}
}
