/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_test.c - settings from the environment: every variable of the table with good and bad values,
 * what is said, which variable goes before which.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/env_table.h"
#include "runtime/lifecycle/config.h"
#include "tests/shim/shim.h"
#include "tests/unit/hearing.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* ---- reading with some variables set, and what is said then ------------------------------- */

/* config_read; what it says. */
static char *said_by_read(struct hearing *h, NRT_STATUS *ret, struct config *c)
{
	hear_on(h);
	*ret = config_read(c);
	return hear(h);
}

/* The same with this variable. */
static char *said_with(
	struct hearing *h, const char *name, const char *value, NRT_STATUS *ret, struct config *c)
{
	char *said;

	setenv(name, value, 1);
	said = said_by_read(h, ret, c);
	unsetenv(name);
	return said;
}

/* ---- every variable ----------------------------------------------------------------------- */

/* What a kind takes and what not.  MIN and MAX stand for the row's limits, MIN-1 and MAX+1 for the
 * numbers behind them. */
static const struct kind_case {
	const char *value[2][14]; /* allowed, not allowed */
} kinds[] = {
	[ENV_TEXT] = {{{"", "x", "-1", "0x1", " "}, {NULL}}},
	[ENV_FLAG] = {{{"0", "1", "MIN", "MAX"},
		{"2", "-1", "yes", "1x", " 1", "1 ", "99999999999999999999", "0x1", "1.0"}}},
	[ENV_TRUTH] = {{{"0", "1", "TRUE", "false"}, {"2", "-1", "T", "TRUE ", "maybe", "10"}}},
	[ENV_NUMBER] = {{{"MIN", "MAX"}, {"MIN-1", "MAX+1", "many", "1x", " 1", "+1", "1 ", "0x1",
						 "1.5", "99999999999999999999", "-"}}},
	[ENV_CORE_SIZE] = {{{"1", "2", "3", "MAX"},
		{"0", "MIN-1", "MAX+1", "two", "1x", " 1", "-1", "99999999999999999999"}}},
	[ENV_CLAMPED] = {{{"0", "MIN", "MAX", "MAX+1", "4294967295"},
		{"-1", "4294967296", "many", "1x", " 1", "99999999999999999999"}}},
	[ENV_POWER] = {{{"MIN", "MAX", "2", "1024"},
		{"0", "3", "-2", "many", "4k", "MAX+1", "4294967296", "99999999999999999999"}}},
	[ENV_MULTIPLE] = {{{"MIN", "MAX", "1024"},
		{"0", "MIN-1", "MAX+1", "513", "-512", "many", "512x", "99999999999999999999"}}},
	[ENV_CORES] = {{{"0", "MAX", "0-MAX", "3-5", "0-3,4", "5,4,3,4"},
		{"MAX+1", "0-MAX+1", "a", "1,", ",1", "1-", "3-1", "1 2", "-1", "0x1", "0--1",
			"99999999999999999999"}}},
	[ENV_CORE_SET] = {{{"0", "MAX", "0-MAX", "0-3,5", "5,4,3,4"},
		{"MAX+1", "a", "1,", ",1", "1-", "3-1", "1 2", "-1", "0x1", "1-2-3",
			"99999999999999999999"}}},
	[ENV_SIZES] = {{{"0", "4294967295", "512,256", "1-3,7", "0-4294967295"},
		{"4294967296", "a", "1,", ",1", "1-", "3-1", "-1", "5x", "99999999999999999999"}}},
	[ENV_WORD] = {{{"WORD", "word"},
		{"none of them", "-1", "99999999999999999999", "0x", ","}}},
	[ENV_SEARCHED] = {{{"WORD", "word", "the WORD is in it"}, {NULL}}},
};

/* The last word of a list of words, in the case that is wanted. */
static void last_word(const char *words, bool small, char *buf, size_t size)
{
	const char *last = strrchr(words, ' ') ? strrchr(words, ' ') + 1 : words;

	(void)snprintf(buf, size, "%.*s", (int)strcspn(last, "="), last);
	for (char *p = buf; small && *p; p++)
		*p = *p >= 'A' && *p <= 'Z' ? (char)(*p + 32) : *p;
}

/* Puts the row's own limits in place of MIN, MAX, WORD.  False: this row has no such number. */
static bool fill_in(const struct env_row *row, const char *pattern, char *buf, size_t size)
{
	const struct {
		const char *mark;
		__int128 number;
	} marks[] = {{"MIN-1", (__int128)row->min - 1}, {"MAX+1", (__int128)row->max + 1},
		{"MIN", row->min}, {"MAX", row->max}};
	const char *at = strcasestr(pattern, "word");
	char word[32];

	if (at) {
		last_word(row->detail, *at == 'w', word, sizeof(word));
		(void)snprintf(buf, size, "%.*s%s%s", (int)(at - pattern), pattern, word, at + 4);
		return true;
	}
	for (size_t i = 0; i < COUNT(marks); i++) {
		at = strstr(pattern, marks[i].mark);
		if (!at)
			continue;
		if (marks[i].number > INT64_MAX || marks[i].number < INT64_MIN)
			return false;
		(void)snprintf(buf, size, "%.*s%" PRId64 "%s", (int)(at - pattern), pattern,
			(int64_t)marks[i].number, at + strlen(marks[i].mark));
		return true;
	}
	(void)snprintf(buf, size, "%s", pattern);
	return true;
}

/* One value of one variable through config_read. */
static void try_value(struct hearing *h, const struct env_row *row, const char *value, bool good)
{
	struct config c = {.exec_timeout_s = 77};
	char expected[512], allowed[ENV_ALLOWED_BYTES];
	NRT_STATUS status = NRT_SUCCESS;
	char *said = said_with(h, row->name, value, &status, &c);

	(void)snprintf(expected, sizeof(expected), "%s='%s' is not %s\n", row->name, value,
		env_allowed(row, allowed, sizeof(allowed)));
	/* Nothing is taken from the rest when one is wrong. */
	if (status != (good ? NRT_SUCCESS : NRT_INVALID) || good == !!strstr(said, "ERROR") ||
		good == !!strstr(said, expected) || good != (c.exec_timeout_s != 77)) {
		test_info("%s='%s': status %d, '%s'", row->name, value, (int)status, said);
		CHECK(!"this value is read as it should");
	}
	free(said);
}

static void try_row(struct hearing *h, const struct env_row *row)
{
	bool checked = row->use != ENV_REMOVED;
	char value[64];

	if (row->kind != ENV_TEXT)
		try_value(h, row, "", true);
	for (int bad = 0; bad < 2; bad++)
		for (size_t i = 0; kinds[row->kind].value[bad][i]; i++)
			if (fill_in(row, kinds[row->kind].value[bad][i], value, sizeof(value)))
				try_value(h, row, value, !bad || !checked);
}

TEST("config: every variable with nothing, its limits, letters, overflow, a minus and trailing "
     "junk",
	"[config]")
{
	struct hearing h;

	REQUIRE(hear_begin(&h, "ERROR"));
	for (int i = 0; i < ENV_COUNT; i++)
		if (env_row((enum env_id)i) != env_find("NEURON_RT_LOG_LEVEL", 19))
			try_row(&h, env_row((enum env_id)i));
	hear_end(&h);
}

TEST("config: a text that is too long for its variable is refused", "[config]")
{
	static const char *const names[] = {
		"NEURON_RT_OOM_DUMP_DIRECTORY", "NEURON_RT_LOCAL_CORE_DUMP_DIRECTORY"};
	struct hearing h;

	REQUIRE(hear_begin(&h, "QUIET"));
	for (size_t i = 0; i < COUNT(names); i++) {
		const struct env_row *row = env_find(names[i], strlen(names[i]));
		struct config c;
		char text[4200];

		REQUIRE(row && row->max > 0);
		for (int64_t n = row->max; n <= row->max + 1; n++) {
			memset(text, 'x', (size_t)n);
			text[n] = '\0';
			setenv(names[i], text, 1);
			CHECK_EQ(config_read(&c), n == row->max ? NRT_SUCCESS : NRT_INVALID);
			unsetenv(names[i]);
		}
	}
	hear_end(&h);
}

/* ---- what is said, and which goes before which -------------------------------------------- */

TEST("config: of a session that no variable begins a line at INFO tells, no warning", "[config]")
{
	static const char *const levels[] = {"INFO", "WARN"};
	NRT_STATUS status;
	struct hearing h;
	struct config c;

	for (unsigned i = 0; i < 4; i++) {
		bool enabled = i & 1;

		if (enabled)
			setenv("NEURON_RT_INSPECT_ENABLE", "1", 1);
		REQUIRE(hear_begin(&h, levels[i / 2]));
		char *said =
			said_with(&h, "NEURON_RT_INSPECT_DEVICE_PROFILE", "session", &status, &c);

		test_info("%u: '%s'", i, said);
		CHECK_EQ(status, NRT_SUCCESS);
		CHECK_EQ(
			strstr(said,
				"NEURON_RT_INSPECT_DEVICE_PROFILE is set, NEURON_RT_INSPECT_ENABLE "
				"is not") != NULL,
			i == 0);
		free(said);
		hear_end(&h);
		unsetenv("NEURON_RT_INSPECT_ENABLE");
	}
}

TEST("config: warnings name what is misspelt, removed or too long", "[config]")
{
	static const struct {
		const char *name, *value, *said;
	} rows[] = {
		{"NEURON_RT_DBG_DUMP_INPUTS_ON_ERR", "2", "no inputs are kept\n"},
		{"NEURON_RT_INSPECT_ENABLE", "1", ""},
		{"NEURON_RT_INSPECT_ON_FAIL", "1", ""},
		{"NEURON_RT_INSPEC_ENABLE", "1",
			"NEURON_RT_INSPEC_ENABLE is not a variable of this library; did you mean "
			"NEURON_RT_INSPECT_ENABLE?\n"},
		{"NEURON_RT_INSPECT_DURATION_NSEC", "anything",
			"NEURON_RT_INSPECT_DURATION_NSEC has no effect any more: length of a "
			"session; gone since SDK 2.22\n"},
		{"NEURON_RT_DBG_CC_DMA_PACKET_SIZE", "1-17",
			"NEURON_RT_DBG_CC_DMA_PACKET_SIZE has more items than 16; the rest is "
			"ignored\n"},
		{"NEURON_CC_FLAGS", "-O1", ""},
		{"NEURON_RT_DBG_CC_DMA_PACKET_SIZE", "1-16", ""},
		{"NEURON_RT_ENABLE_P2P", "1", ""},
		{"NEURON_RT_NUM_CORES", "1", ""},
	};
	struct config c;
	struct hearing h;
	NRT_STATUS status;

	REQUIRE(hear_begin(&h, "WARN"));
	for (size_t i = 0; i < COUNT(rows); i++) {
		char *said = said_with(&h, rows[i].name, rows[i].value, &status, &c);

		test_info("%s: '%s'", rows[i].name, said);
		CHECK_EQ(status, NRT_SUCCESS);
		CHECK_EQ(strstr(said, " WARN ") != NULL, *rows[i].said != '\0');
		CHECK(strstr(said, rows[i].said) != NULL);
		setenv(rows[i].name, rows[i].value, 1);
		free(said);
		hear_on(&h);
		status = config_peek(&c);
		said = hear(&h);
		unsetenv(rows[i].name);
		CHECK_EQ(status, NRT_SUCCESS);
		CHECK_STR(said, "");
		free(said);
	}
	hear_end(&h);
}

TEST("config: a list of visible cores goes before a number of cores, and that is said", "[config]")
{
	static const struct {
		const char *visible, *number;
		bool said;
		NRT_STATUS status;
	} rows[] = {
		{"2-4", "2", true, NRT_SUCCESS}, {"2-4", "0", false, NRT_SUCCESS},
		{"2-4", "", false, NRT_SUCCESS}, {"", "2", false, NRT_SUCCESS},
		{"2-4", "many", false, NRT_INVALID}, /* it is read all the same */
	};
	struct hearing h;

	REQUIRE(hear_begin(&h, "WARN"));
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct config c = {0};
		NRT_STATUS status;
		char *said;

		setenv("NEURON_RT_NUM_CORES", rows[i].number, 1);
		said = said_with(&h, "NEURON_RT_VISIBLE_CORES", rows[i].visible, &status, &c);
		unsetenv("NEURON_RT_NUM_CORES");
		test_info("%s, %s: '%s'", rows[i].visible, rows[i].number, said);
		CHECK_EQ(status, rows[i].status);
		CHECK_EQ(strstr(said, "Using NEURON_RT_VISIBLE_CORES to allocate Logical Neuron "
				      "Cores") != NULL,
			rows[i].said);
		if (!status && *rows[i].visible) {
			CHECK_EQ(c.visible_cores.first, 2);
			CHECK_EQ(c.visible_cores.count, 3);
		}
		free(said);
	}
	hear_end(&h);
}

TEST("config: cores that are no neighbours are refused with the message that is looked for",
	"[config]")
{
	struct hearing h;
	struct config c;
	NRT_STATUS status;
	char *said;

	REQUIRE(hear_begin(&h, "ERROR"));
	said = said_with(&h, "NEURON_RT_VISIBLE_CORES", "0-3,5", &status, &c);
	CHECK_EQ(status, NRT_INVALID);
	CHECK(strstr(said, " Logical Neuron cores are not contiguous\n"));
	CHECK(strstr(said, "NEURON_RT_VISIBLE_CORES='0-3,5' is not a list like 0-3,4 of "
			   "neighbouring cores up to 511\n"));
	free(said);
	hear_end(&h);
}

TEST("config: the size of a logical core has two names, and NEURON_LOGICAL_NC_CONFIG goes before",
	"[config]")
{
	static const struct {
		const char *newer, *older;
		NRT_STATUS status;
		uint32_t size;
	} rows[] = {
		{NULL, NULL, 0, 0}, {"1", NULL, 0, 1}, {NULL, "2", 0, 2}, {"1", "2", 0, 1},
		{"2", "1", 0, 2}, {"", "2", 0, 2}, {"2", "", 0, 2},
		{"2", "two", 0, 2}, /* not looked at */
		{NULL, "two", NRT_INVALID, 0}, {"0", "2", NRT_INVALID, 0},
		{"3", NULL, 0, 3}, /* whether there is such a size the device says */
	};
	struct hearing h;

	REQUIRE(hear_begin(&h, "ERROR"));
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct config c = {.lnc_size = 0};
		NRT_STATUS status;
		char *said;

		if (rows[i].newer)
			setenv("NEURON_LOGICAL_NC_CONFIG", rows[i].newer, 1);
		if (rows[i].older)
			setenv("NEURON_RT_VIRTUAL_CORE_SIZE", rows[i].older, 1);
		said = said_by_read(&h, &status, &c);
		unsetenv("NEURON_LOGICAL_NC_CONFIG");
		unsetenv("NEURON_RT_VIRTUAL_CORE_SIZE");
		test_info("%zu: '%s'", i, said);
		CHECK_EQ(status, rows[i].status);
		CHECK_EQ(c.lnc_size, rows[i].size);
		if (rows[i].status)
			CHECK(strstr(said, "' is not 1 or 2\n"));
		else if (rows[i].size)
			CHECK_STR(c.lnc_variable, rows[i].newer && *rows[i].newer
							  ? "NEURON_LOGICAL_NC_CONFIG"
							  : "NEURON_RT_VIRTUAL_CORE_SIZE");
		CHECK_EQ(strstr(said, "Failed to parse vnc config") != NULL,
			rows[i].status != NRT_SUCCESS);
		free(said);
	}
	hear_end(&h);
}

TEST("config: every bad value is said", "[config]")
{
	static const char *const values[][2] = {{"NEURON_RT_NUM_CORES", "-1"},
		{"NEURON_RT_EXEC_TIMEOUT", "1s"}, {"NEURON_RT_ENABLE_P2P", "yes"}};
	struct hearing h;
	struct config c;
	NRT_STATUS status;
	char *said;

	REQUIRE(hear_begin(&h, "ERROR"));
	for (size_t i = 0; i < COUNT(values); i++)
		setenv(values[i][0], values[i][1], 1);
	said = said_by_read(&h, &status, &c);
	for (size_t i = 0; i < COUNT(values); i++)
		unsetenv(values[i][0]);
	CHECK_EQ(status, NRT_INVALID);
	CHECK(strstr(said, "NEURON_RT_NUM_CORES='-1' is not a number from 0 to 4294967295\n"));
	CHECK(strstr(
		said, "NEURON_RT_EXEC_TIMEOUT='1s' is not a number from 1 to 86400 (seconds)\n"));
	CHECK(strstr(said, "NEURON_RT_ENABLE_P2P='yes' is not 0 or 1\n"));
	free(said);
	hear_end(&h);
}

TEST("config: more ranks per proxy than one need the barrier in hardware", "[config]")
{
	static const struct {
		const char *ranks, *barrier;
		NRT_STATUS status;
	} rows[] = {{"2", "", NRT_SUCCESS}, {"2", "1", NRT_SUCCESS}, {"2", "0", NRT_INVALID},
		{"1", "0", NRT_SUCCESS}, {"", "0", NRT_SUCCESS}};
	struct hearing h;

	REQUIRE(hear_begin(&h, "ERROR"));
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct config c;
		NRT_STATUS status;
		char *said;

		setenv("NEURON_RT_RANKS_PER_NETWORK_PROXY", rows[i].ranks, 1);
		said = said_with(
			&h, "NEURON_RT_ENABLE_HW_EXECUTION_BARRIER", rows[i].barrier, &status, &c);
		unsetenv("NEURON_RT_RANKS_PER_NETWORK_PROXY");
		CHECK_EQ(status, rows[i].status);
		CHECK_EQ(strstr(said, "NEURON_RT_RANKS_PER_NETWORK_PROXY=2 needs "
				      "NEURON_RT_ENABLE_HW_EXECUTION_BARRIER=1\n") != NULL,
			rows[i].status != NRT_SUCCESS);
		free(said);
	}
	hear_end(&h);
}

/* ---- fields ------------------------------------------------------------------------------- */

TEST("config: nothing is set, and every setting has its initial value", "[config]")
{
	struct config c;

	memset(&c, 0xff, sizeof(c));
	REQUIRE_EQ(config_read(&c), NRT_SUCCESS);
	CHECK(!c.allow_reset);
	CHECK_EQ(c.visible_cores.count, 0);
	CHECK_EQ(c.core_count, 0);
	CHECK_EQ(c.lnc_size, 0);
	CHECK(c.reset_cores);
	CHECK_EQ(c.exec_timeout_s, 30);
	CHECK_EQ(c.async_max_inflight, 0);
	CHECK_EQ(c.compute_queue_limit, 8);
	CHECK_STR(c.root_comm_id, "");
}

TEST("config: values arrive in their fields", "[config]")
{
	static const char *const values[][2] = {
		{"NTRACE_DEVICE_ROOT", "/r"},
		{"NTRACE_ALLOW_DEVICE", "1"},
		{"NTRACE_ALLOW_RESET", "1"},
		{"NEURON_RT_FAKE_INSTANCE_TYPE", "trn2.48xlarge"},
		{"NEURON_RT_RESET_CORES", "0"},
		{"NEURON_RT_EXEC_TIMEOUT", "5"},
		{"NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS", "64"}, /* brought in */
		{"NEURON_RT_XU_COMPUTE_MAX_QUEUED_REQUESTS", "4294967296"},
		{"NEURON_RT_NUM_CORES", "4"},
		{"NEURON_RT_ROOT_COMM_ID", "10.0.0.1:63423"},
	};
	struct config_discovery d = {.root = NULL};
	struct config c = {0};

	for (size_t i = 0; i < COUNT(values); i++)
		setenv(values[i][0], values[i][1], 1);
	CHECK_EQ(config_read(&c), NRT_SUCCESS);
	CHECK(c.allow_reset);
	CHECK(!c.reset_cores);
	CHECK_EQ(c.exec_timeout_s, 5);
	CHECK_EQ(c.async_max_inflight, 63);
	CHECK_EQ(c.compute_queue_limit, UINT32_MAX);
	CHECK_EQ(c.core_count, 4);
	CHECK_STR(c.root_comm_id, "10.0.0.1:63423");
	CHECK_EQ(config_read_discovery(&d), NRT_SUCCESS);
	CHECK_STR(d.root, "/r");
	CHECK(d.allow_device);
	CHECK_STR(d.fake_instance, "trn2.48xlarge");
	for (size_t i = 0; i < COUNT(values); i++)
		unsetenv(values[i][0]);
}

TEST("config: what discovery needs is read alone, and a bad value of it is refused", "[config]")
{
	struct config_discovery d;
	struct hearing h;
	NRT_STATUS status;
	char *said;

	REQUIRE(hear_begin(&h, "ERROR"));
	setenv("NEURON_RT_NUM_CORES", "many", 1); /* a later step */
	memset(&d, 0xff, sizeof(d));
	CHECK_EQ(config_read_discovery(&d), NRT_SUCCESS);
	unsetenv("NEURON_RT_NUM_CORES");
	CHECK_STR(d.root, "");
	CHECK(!d.allow_device);
	CHECK_STR(d.fake_instance, "");
	setenv("NTRACE_ALLOW_DEVICE", "yes", 1);
	hear_on(&h);
	status = config_read_discovery(&d);
	said = hear(&h);
	unsetenv("NTRACE_ALLOW_DEVICE");
	CHECK_EQ(status, NRT_INVALID);
	CHECK(strstr(said, "NTRACE_ALLOW_DEVICE='yes' is not 0 or 1\n"));
	free(said);
	hear_end(&h);
}

TEST("log: a location that is none is said, and a level, once", "[log]")
{
	struct hearing h;
	char *said;

	REQUIRE(hear_begin(&h, "ERROR"));
	hear_on(&h);
	setenv("NEURON_RT_LOG_LOCATION", "the moon", 1);
	setenv("NEURON_RT_LOG_LEVEL_TDRV", "loud", 1);
	log_configure();
	log_configure(); /* once more the same is not said again */
	setenv("NEURON_RT_LOG_LOCATION", "syslog,console", 1);
	setenv("NEURON_RT_LOG_LEVEL_TDRV", "louder", 1);
	log_configure();
	setenv("NEURON_RT_LOG_LOCATION", "the moon", 1);
	unsetenv("NEURON_RT_LOG_LEVEL_TDRV");
	log_configure();
	unsetenv("NEURON_RT_LOG_LOCATION");
	said = hear(&h);
	CHECK_STR(said, "invalid log location setting the moon, default to CONSOLE\n"
			"invalid level loud, default to ERROR\n"
			"invalid level louder, default to ERROR\n"
			"invalid log location setting the moon, default to CONSOLE\n");
	free(said);
	hear_end(&h);
}
