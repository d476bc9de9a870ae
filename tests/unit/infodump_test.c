/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infodump_test.c - the support bundle: its lines in their order, how often it is written, and that nothing that others
 * have named is lost or breaks a line.
 */
#include "runtime/lifecycle/infodump.h"

#include <regex.h>

#include "tests/shim/shim.h"
#include "tests/unit/nrt_init_fixture.h"

#define LINE_BYTES 1024u
#define BEGIN "------------->8------------[ cut here ]------------>8-------------"
#define END "-------------8<-----------[ cut to here ]-----------8<------------"

/* ---- reading the log ---------------------------------------------------------------------- */

struct bundle {
	char *text;
	const char *lines[2048]; /* without the head of the log */
	size_t count;
};

/* Every line of the bundle, of this level. */
static int bundle_read(struct bundle *b, const struct place *p, const char *level)
{
	char head[64];

	snprintf(head, sizeof(head), " %5s   NRT:nrt_infodump ", level);
	b->count = 0;
	b->text = program_text(p->log.s);
	WANT(b->text != NULL);
	for (char *line = strtok(b->text, "\n"); line; line = strtok(NULL, "\n")) {
		char *body = strstr(line, head);

		WANT(strlen(line) < LINE_BYTES);
		if (!body)
			continue;
		body += strlen(head);
		b->lines[b->count++] = body + strspn(body, " ");
	}
	return 0;
}

static int count_bundles(const struct place *p, const char *level)
{
	struct bundle b;
	int n = 0;

	if (bundle_read(&b, p, level) != 0)
		return -1;
	for (size_t i = 0; i < b.count; i++)
		n += !strcmp(b.lines[i], BEGIN);
	free(b.text);
	return n;
}

static bool matches(const char *text, const char *pattern)
{
	regex_t r;
	bool does;

	if (regcomp(&r, pattern, REG_EXTENDED | REG_NOSUB) != 0)
		return false;
	does = regexec(&r, text, 0, NULL, 0) == 0;
	regfree(&r);
	return does;
}

/* The lines from *at on are these, to a NULL. */
static int lines_are(const struct bundle *b, size_t *at, const char *const patterns[])
{
	for (; *patterns; patterns++, (*at)++) {
		const char *line = *at < b->count ? b->lines[*at] : "no more lines";

		if (!matches(line, *patterns))
			dprintf(complaint_fd, "'%s' is not '%s'\n", line, *patterns);
		WANT(matches(line, *patterns));
	}
	return 0;
}

/* ---- what it has -------------------------------------------------------------------------- */

#define HEAD                                                                                     \
	"^Neuron runtime information - please include in any support request:$",                 \
		"^------------->8------------\\[ cut here \\]------------>8-------------$",      \
		"^NRT version: 2\\.31\\.24\\.0 \\(ntrace-[0-9.]+\\)$",                           \
		"^Embedded FW version: none \\(ntrace\\)$", "^CCOM version: none \\(ntrace\\)$", \
		"^NCFW version: none \\(ntrace\\)$", "^Instance ID: [a-zA-Z0-9.-]+$",            \
		"^Cluster ID: none$", "^Kernel: Linux [^ ]+ [^ ]+$", "^Nodename: .+$",           \
		"^Driver version: 2\\.[0-9.]+$"
#define LAST "^-------------8<-----------\\[ cut to here \\]-----------8<------------$"

static void make_environment(void)
{
	clearenv();
	setenv("NEURON_A", "1", 1);
	setenv("SECRET", "no", 1);
	setenv("NEURONS", "no", 1);
	setenv("NEURON_CC_FLAGS", "-O2 -v", 1);
}

static int after_success(void *arg)
{
	static const char *const expected[] = {HEAD, "^Visible cores: 0, 1$", "^Environment:$",
		"^NEURON_A=1$", "^NEURON_CC_FLAGS=-O2 -v$", "^NTRACE_DEVICE_ROOT=/.*$",
		"^NEURON_RT_LOG_LEVEL=INFO$", LAST, NULL};
	struct bundle b;
	size_t at = 0;

	make_environment();
	WANT(enter_linked(arg, "INFO") == 0);
	WANT_STATUS(init(), 0);
	WANT(state_now() == STATE_INIT);
	lib.nrt_close();
	WANT_STATUS(init(), 0);
	lib.nrt_close();
	WANT(bundle_read(&b, arg, "INFO") == 0);
	WANT(lines_are(&b, &at, expected) == 0);
	WANT(at == b.count); /* the second one wrote none */
	free(b.text);
	return count_bundles(arg, "ERROR");
}

TEST("infodump: a success writes it once, as INFO, with all lines in their order", "[nrt][vdev]")
{
	NEED_VDEV();
	with_device(after_success, fixture_device);
}

static int after_failure(void *arg)
{
	static const char *const expected[] = {HEAD, "^Failure: NRT_INVALID in nrt_init\\(\\)$",
		"^Visible cores: none$", "^Environment:$", "^NEURON_A=1$",
		"^NEURON_CC_FLAGS=-O2 -v$", "^NTRACE_DEVICE_ROOT=/.*$",
		"^NEURON_RT_LOG_LEVEL=INFO$", "^NEURON_RT_EXEC_TIMEOUT=1s$", LAST, NULL};
	struct bundle b;
	size_t at = 0;

	make_environment();
	WANT(enter_linked(arg, "INFO") == 0);
	WANT_STATUS(init(), 0);
	lib.nrt_close();
	WANT(count_bundles(arg, "INFO") == 1);
	setenv("NEURON_RT_EXEC_TIMEOUT", "1s", 1);
	WANT_STATUS(init(), NRT_INVALID);
	WANT_STATUS(init(), NRT_INVALID);
	unsetenv("NEURON_RT_EXEC_TIMEOUT");
	WANT_STATUS(init(), 0);
	lib.nrt_close();
	WANT(count_bundles(arg, "INFO") == 1);
	WANT(bundle_read(&b, arg, "ERROR") == 0);
	WANT(lines_are(&b, &at, expected) == 0);
	WANT(at == b.count);
	free(b.text);
	return 0;
}

TEST("infodump: a failure writes it once more, as ERROR, with the status; later ones do not",
	"[nrt][vdev]")
{
	NEED_VDEV();
	with_device(after_failure, fixture_device);
}

/* ---- without a device --------------------------------------------------------------------- */

static void in_place(int (*fn)(void *))
{
	struct place p;

	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(fn, &p), 0);
	place_close(&p);
}

static int every_level_once(void *arg)
{
	WANT(enter_linked(arg, "TRACE") == 0);
	infodump(LOG_LEVEL_WARN, -1, NRT_TIMEOUT, "a_call", NULL);
	infodump(LOG_LEVEL_INFO, -1, NRT_SUCCESS, "a_call", NULL);
	infodump(LOG_LEVEL_WARN, -1, NRT_TIMEOUT, "a_call", NULL);
	infodump(LOG_LEVEL_ERROR, 3, NRT_TIMEOUT, "a_call", NULL);
	infodump(LOG_LEVEL_ERROR, 3, NRT_TIMEOUT, "a_call", NULL);
	WANT(count_bundles(arg, "INFO") == 0);
	WANT(count_bundles(arg, "WARN") == 1);
	WANT(count_bundles(arg, "ERROR") == 1);
	WANT(said(arg, "Failure: NRT_TIMEOUT in a_call()\n"));
	return 0;
}

TEST("infodump: it is written when the severity is worse than before, and else not", "[nrt]")
{
	in_place(every_level_once);
}

static int names_the_core(void *arg)
{
	WANT(enter_linked(arg, NULL) == 0);
	infodump(LOG_LEVEL_ERROR, 3, NRT_TIMEOUT, "a_call", NULL);
	WANT(said(arg, "LNC: 3\n"));
	return 0;
}

TEST("infodump: the logical core has a line when there is one", "[nrt]")
{
	in_place(names_the_core);
}

static int many_cores(void *arg)
{
	struct device_system *d = calloc(1, sizeof(*d));
	struct bundle b;
	unsigned next = 128, lines = 0;

	WANT(d != NULL);
	WANT(enter_linked(arg, NULL) == 0);
	*d = (struct device_system){.lnc_size = 2, .first_core = 256, .core_count = 300};
	infodump(LOG_LEVEL_ERROR, -1, NRT_TIMEOUT, "a_call", d);
	free(d);
	WANT(bundle_read(&b, arg, "ERROR") == 0);
	for (size_t i = 0; i < b.count; i++) {
		const char *list = b.lines[i] + strlen("Visible cores: ");

		if (strncmp(b.lines[i], "Visible cores: ", 15) != 0)
			continue;
		lines++;
		for (; *list; list += strspn(list, ", "))
			WANT(strtoul(list, (char **)&list, 10) == next++);
	}
	free(b.text);
	WANT(lines == 3 && next == 128 + 150);
	return 0;
}

TEST("infodump: cores that do not fit into a line go on in the next", "[nrt]")
{
	in_place(many_cores);
}

/* ---- what others have named --------------------------------------------------------------- */

/* What the lines NAME=... and NAME+=... have behind them, together. */
static char *gathered(const struct bundle *b, const char *name)
{
	char *all = calloc(1, 1 << 20);
	size_t len = strlen(name);

	for (size_t i = 0; all && i < b->count; i++) {
		const char *rest = b->lines[i] + len;

		if (strncmp(b->lines[i], name, len) != 0)
			continue;
		if (*rest == '=' ? !*all : !strncmp(rest, "+=", 2))
			strcat(all, strchr(rest, '=') + 1);
	}
	return all;
}

static const struct {
	const char *value; /* repeated */
	size_t times;
	const char *shown; /* NULL: as it is */
} values[] = {
	{"", 1, NULL},
	{"0123456789", 1, NULL},
	{"0123456789", 200, NULL},
	{"0123456789 ", 6000, NULL},
	{"\xc3\xa4\xe2\x82\xac", 500, NULL}, /* characters of two and three bytes are not cut */
	{"\033[31m", 300, "\\x1b[31m"},
	{"a\nb", 300, "a\\nb"},
	{"\xff", 2000, "\\xff"},
};

static int values_are_whole(void *arg)
{
	struct bundle b;
	char name[32];

	clearenv();
	for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
		char *text = calloc(1, 1 << 20);

		for (size_t i = 0; i < values[v].times; i++)
			strcat(text, values[v].value);
		snprintf(name, sizeof(name), "NEURON_V%zu", v);
		setenv(name, text, 1);
		free(text);
	}
	WANT(enter_linked(arg, NULL) == 0);
	infodump(LOG_LEVEL_ERROR, -1, NRT_TIMEOUT, "a_call", NULL);
	WANT(bundle_read(&b, arg, "ERROR") == 0);
	for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
		const char *shown = values[v].shown ? values[v].shown : values[v].value, *at;
		char *all;

		snprintf(name, sizeof(name), "NEURON_V%zu", v);
		at = all = gathered(&b, name);
		WANT(all != NULL && strlen(all) == values[v].times * strlen(shown));
		for (; *at; at += strlen(shown))
			WANT(!strncmp(at, shown, strlen(shown)));
		free(all);
	}
	WANT(!strcmp(b.lines[b.count - 1], END));
	free(b.text);
	return 0;
}

TEST("infodump: a value of any length is there to its end, and none breaks a line", "[nrt]")
{
	in_place(values_are_whole);
}

static int long_name(void *arg)
{
	char name[5000];
	struct bundle b;

	clearenv();
	memset(name, 'L', sizeof(name));
	memcpy(name, "NEURON_", 7);
	name[sizeof(name) - 1] = '\0';
	setenv(name, "1", 1);
	WANT(enter_linked(arg, NULL) == 0);
	infodump(LOG_LEVEL_ERROR, -1, NRT_TIMEOUT, "a_call", NULL);
	WANT(bundle_read(&b, arg, "ERROR") == 0);
	free(b.text);
	WANT(said(arg, "LLL...=1\n"));
	return 0;
}

TEST("infodump: a name that is too long is cut, and that is to be seen", "[nrt]")
{
	in_place(long_name);
}

static int no_variables(void *arg)
{
	WANT(enter_linked(arg, NULL) == 0);
	clearenv();
	infodump(LOG_LEVEL_ERROR, -1, NRT_TIMEOUT, "a_call", NULL);
	WANT(said(arg, "Environment: none\n"));
	return 0;
}

TEST("infodump: an environment without a variable of these says so", "[nrt]")
{
	in_place(no_variables);
}
