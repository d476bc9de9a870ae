/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_test.c - messages: which are wanted at the console and which by syslog, and how they look there.
 */
#include <fcntl.h>
#include <pthread.h>
#include <pty.h>
#include <stdatomic.h>
#include <stdint.h>

#include "runtime/log/log_levels.h"
#include "tests/shim/shim.h"
#include "tests/unit/hearing.h"
#include "tests/unit/log_listener.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char *const variables[] = {"NEURON_RT_LOG_LEVEL", "NEURON_RT_LOG_LEVEL_TDRV",
	"NEURON_RT_LOG_LOCATION", "NEURON_RT_LOG_LOCATION_TDRV"};

static void forget_settings(void)
{
	for (size_t i = 0; i < COUNT(variables); i++)
		unsetenv(variables[i]);
	log_configure();
}

TEST("log: each part has a level for the console and one for syslog", "[log]")
{
	/* What is set, in the order of `variables`, and where TDRV and NMGR show an INFO then. */
	static const struct {
		const char *set[4];
		unsigned tdrv, nmgr;
	} rows[] = {
		{{NULL, NULL, NULL, NULL}, 0, 0},
		{{"info", NULL, NULL, NULL}, LOG_CONSOLE, LOG_CONSOLE},
		{{"info", NULL, "syslog", NULL}, LOG_SYSLOG, LOG_SYSLOG},
		{{"debug", NULL, "SYSLOG,CONSOLE", NULL}, LOG_CONSOLE | LOG_SYSLOG,
			LOG_CONSOLE | LOG_SYSLOG},
		{{"error", "trace", NULL, NULL}, LOG_CONSOLE, 0},
		{{"info", NULL, NULL, "syslog"}, LOG_SYSLOG, LOG_CONSOLE},
		{{"info", "error", "syslog", "console"}, 0, LOG_SYSLOG},
		{{"quiet", "info", "syslog", NULL}, LOG_SYSLOG, 0},
		{{"info", "disabled", "syslog console", NULL}, 0, LOG_CONSOLE | LOG_SYSLOG},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		forget_settings();
		for (size_t v = 0; v < COUNT(variables); v++)
			if (rows[i].set[v])
				setenv(variables[v], rows[i].set[v], 1);
		log_configure();
		test_info("row %zu", i);
		CHECK_EQ(log_places(LOG_LEVEL_INFO, "TDRV"), rows[i].tdrv);
		CHECK_EQ(log_places(LOG_LEVEL_INFO, "NMGR"), rows[i].nmgr);
	}
	forget_settings();
}

static void *configure_again(void *stop)
{
	while (!atomic_load((atomic_bool *)stop))
		log_configure();
	return NULL;
}

TEST("log: reading the environment once more drops no message of another thread", "[log]")
{
	atomic_bool stop = false;
	pthread_t thread;
	unsigned dropped = 0;

	setenv("NEURON_RT_LOG_LEVEL", "disabled", 1);
	setenv("NEURON_RT_LOG_LEVEL_TDRV", "error", 1);
	log_configure();
	REQUIRE(pthread_create(&thread, NULL, configure_again, &stop) == 0);
	for (unsigned i = 0; i < 5000000; i++)
		dropped += log_places(LOG_LEVEL_ERROR, "TDRV") != LOG_CONSOLE;
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	CHECK_EQ(dropped, 0);
	forget_settings();
}

TEST("log: a part is known by four bytes, others are as NRT, and all sets every one", "[log]")
{
	static const char *const tags[] = {
		"NRT", "TDRV", "NMGR", "KMGR", "ENC", "HAL", "RUST", "NLOG", "OTHER"};

	for (size_t i = 0; i < COUNT(tags); i++) {
		log_set_levels("all", LOG_LEVEL_ERROR, LOG_LEVEL_DEBUG);
		CHECK_EQ(log_places(LOG_LEVEL_ERROR, tags[i]), LOG_CONSOLE | LOG_SYSLOG);
		CHECK_EQ(log_places(LOG_LEVEL_DEBUG, tags[i]), LOG_SYSLOG);
		CHECK_EQ(log_places(LOG_LEVEL_TRACE, tags[i]), 0);
		log_set_levels("all", LOG_DISABLED, LOG_DISABLED);
		CHECK_EQ(log_places(LOG_LEVEL_ERROR, tags[i]), 0);
	}
	log_set_levels("TDRVX", LOG_LEVEL_TRACE, LOG_DISABLED);
	CHECK_EQ(log_places(LOG_LEVEL_TRACE, "TDRV"), LOG_CONSOLE);
	CHECK_EQ(log_places(LOG_LEVEL_TRACE, "TDRVY"), LOG_CONSOLE);
	CHECK_EQ(log_places(LOG_LEVEL_ERROR, "NRT"), 0);
	CHECK_EQ(log_places(LOG_LEVEL_ERROR, "OTHER"), 0);
	forget_settings();
}

TEST("log: the one level of a part is that of syslog, else that of the console", "[log]")
{
	enum log_level level = LOG_DISABLED;
	struct hearing h;
	char *said;

	REQUIRE(hear_begin(&h, "ERROR"));
	log_set_levels("NRT", LOG_LEVEL_TRACE, LOG_LEVEL_WARN);
	CHECK_EQ(log_get_level("NRT", &level), NRT_SUCCESS);
	CHECK_EQ(level, LOG_LEVEL_WARN);
	log_set_levels("NRT", LOG_LEVEL_TRACE, LOG_DISABLED);
	CHECK_EQ(log_get_level("NRT", &level), NRT_SUCCESS);
	CHECK_EQ(level, LOG_LEVEL_TRACE);
	CHECK_EQ(log_get_level("NONE", &level), NRT_INVALID);
	log_set_levels("NRT", LOG_DISABLED, LOG_DISABLED);
	hear_on(&h);
	CHECK_EQ(log_get_level("NRT", &level), 2);
	said = hear(&h);
	CHECK_STR(said, "At least one of syslog_level or console_level should be enabled\n");
	CHECK_EQ(level, LOG_LEVEL_TRACE);
	free(said);
	hear_end(&h);
}

/* ---- what a message looks like ------------------------------------------------------------ */

static const struct level_row {
	enum log_level level;
	const char *name, *colour;
	unsigned severity;
} levels[] = {
	{LOG_LEVEL_ERROR, "ERROR", "\033[91m", 3},
	{LOG_LEVEL_WARN, "WARN", "\033[95m", 4},
	{LOG_LEVEL_INFO, "INFO", "", 6},
	{LOG_LEVEL_DEBUG, "DEBUG", "", 7},
	{LOG_LEVEL_TRACE, "TRACE", "", 7},
};

TEST("log: a line on the console and one for syslog look as documented, at each level", "[log]")
{
	struct listener l;
	struct hearing h;

	REQUIRE(hear_begin(&h, "TRACE"));
	REQUIRE(listener_begin(&l));
	log_set_levels("all", LOG_LEVEL_TRACE, LOG_LEVEL_TRACE);
	for (size_t i = 0; i < COUNT(levels); i++) {
		char want[512], *console, *sent;

		test_info("%s", levels[i].name);
		hear_on(&h);
		log_write(levels[i].level, "TDRV", "some_function", "%d of %s", 7, "them");
		console = hear(&h);
		snprintf(want, sizeof(want), LOG_HEAD("%s", "TDRV", "some_function") "7 of them\n",
			levels[i].name);
		CHECK(log_matches(console, want));
		sent = listener_next(&l);
		snprintf(want, sizeof(want),
			"<%u>nrt\\[%d\\]: " LOG_WHO("%s", "TDRV", "some_function") "7 of them",
			8 | levels[i].severity, (int)getpid(), levels[i].name);
		CHECK(log_matches(sent, want));
		test_info("console '%s', syslog '%s'", console, sent);
		free(console);
		free(sent);
	}
	listener_end(&l);
	hear_end(&h);
}

TEST("log: errors go to stderr, the rest to stdout", "[log]")
{
	for (size_t i = 0; i < COUNT(levels); i++) {
		struct hearing h;
		char *said;

		REQUIRE(hear_begin(&h, "TRACE"));
		hear_on(&h);
		dup2(levels[i].level == LOG_LEVEL_ERROR ? h.out : h.err,
			levels[i].level == LOG_LEVEL_ERROR ? 1 : 2); /* back */
		log_write(levels[i].level, "NRT", "f", "here");
		said = hear(&h);
		CHECK_EQ(log_count(said, "here\n"), 1);
		free(said);
		hear_end(&h);
	}
}

TEST("log: colours are for terminals, and for errors and warnings", "[log]")
{
	int out = dup(1), err = dup(2), terminal, end;
	char text[COUNT(levels)][512];

	REQUIRE(openpty(&terminal, &end, NULL, NULL, NULL) == 0);
	log_set_levels("all", LOG_LEVEL_TRACE, LOG_DISABLED);
	fflush(NULL);
	dup2(end, 1);
	dup2(end, 2);
	for (size_t i = 0; i < COUNT(levels); i++) {
		ssize_t n;

		log_write(levels[i].level, "NRT", "f", "here");
		n = read(terminal, text[i], sizeof(text[i]) - 1);
		text[i][n > 0 ? n : 0] = '\0';
	}
	dup2(out, 1);
	dup2(err, 2);
	for (size_t i = 0; i < COUNT(levels); i++) {
		size_t colour = strlen(levels[i].colour);

		CHECK_EQ(strncmp(text[i], levels[i].colour, colour), 0);
		CHECK_EQ(text[i][colour], '2'); /* of the year */
		CHECK_EQ(log_count(text[i], "\033"), colour ? 2 : 0);
		CHECK_EQ(log_count(text[i], "here\033[0m\r\n"), colour ? 1 : 0);
	}
	close(out);
	close(err);
	close(terminal);
	close(end);
	forget_settings();
}

TEST("log: a line has at most 1024 bytes", "[log]")
{
	static char longest[5000];
	struct hearing h;
	char *said;

	memset(longest, 'x', sizeof(longest) - 1);
	REQUIRE(hear_begin(&h, "ERROR"));
	hear_on(&h);
	log_write(LOG_LEVEL_ERROR, "NRT", "f", "%s", longest);
	said = hear(&h);
	CHECK_EQ(strlen(said), 1024);
	CHECK_EQ(said[1023], '\n');
	free(said);
	hear_on(&h);
	log_write(LOG_LEVEL_ERROR, "NRT", longest, "%s", longest);
	said = hear(&h);
	CHECK_EQ(strlen(said), 1024);
	free(said);
	hear_end(&h);
}

/* ---- syslog ------------------------------------------------------------------------------- */

/* Many errors for a syslog that does not take them; how often this was said.  The socket is never read. */
static int errors_nobody_takes(void *path)
{
	struct hearing h;
	int said_lost, said_all;
	char *said;

	alarm(60); /* no message waits */
	if (!hear_begin(&h, "ERROR"))
		return 100;
	log_set_syslog(path);
	log_set_levels("all", LOG_LEVEL_ERROR, LOG_LEVEL_ERROR);
	hear_on(&h);
	for (int i = 0; i < 2000; i++)
		log_write(LOG_LEVEL_ERROR, "NRT", "f", "message %d.", i);
	said = hear(&h);
	said_lost = (int)log_count(said, ") did not take this message: E");
	said_all = log_count(said, " message ") == 2000;
	free(said);
	return said_all ? said_lost : 101;
}

TEST("log: a syslog that is missing or full blocks nothing, ends nothing and is said once", "[log]")
{
	struct listener l;
	char *first;

	CHECK_EQ(scratch_child(errors_nobody_takes, (void *)"/nowhere/log"), 1);
	REQUIRE(listener_begin(&l));
	CHECK_EQ(scratch_child(errors_nobody_takes, l.path.s), 1);
	first = listener_next(&l);
	CHECK(strstr(first, "message 0.") != NULL);
	free(first);
	listener_end(&l);
}

/* The descriptors of this process are closed, by a program that closes all. */
static int closes_all(void *arg)
{
	struct listener *l = arg;

	log_set_levels("all", LOG_DISABLED, LOG_LEVEL_ERROR);
	log_write(LOG_LEVEL_ERROR, "NRT", "f", "before");
	for (int fd = 3; fd < 1024; fd++)
		if (fd != l->fd)
			close(fd);
	log_write(LOG_LEVEL_ERROR, "NRT", "f", "behind");
	log_write(LOG_LEVEL_ERROR, "NRT", "f", "behind");
	for (int fd = 3; fd < 1024; fd++)
		if (fd != l->fd && fcntl(fd, F_GETFD) >= 0)
			return 1; /* the sockets of the two */
	return 0;
}

TEST("log: syslog hears of a program that closes all its descriptors", "[log]")
{
	static const char *const want[] = {"before", "behind", "behind", ""};
	struct listener l;

	REQUIRE(listener_begin(&l));
	CHECK_EQ(scratch_child(closes_all, &l), 0);
	for (size_t i = 0; i < COUNT(want); i++) {
		char *text = listener_next(&l);

		CHECK(strstr(text, want[i]) != NULL);
		free(text);
	}
	listener_end(&l);
}

TEST("log: a line from a signal handler goes where its level is shown, as it is", "[log]")
{
	static const char text[] = "from a handler\n";
	struct listener l;
	struct hearing h;
	char *said, *sent;

	REQUIRE(hear_begin(&h, "ERROR"));
	REQUIRE(listener_begin(&l));
	log_set_levels("all", LOG_LEVEL_INFO, LOG_LEVEL_INFO);
	hear_on(&h);
	log_from_handler(LOG_LEVEL_INFO, "NRT", text, strlen(text));
	log_from_handler(LOG_LEVEL_DEBUG, "NRT", text, strlen(text));
	said = hear(&h);
	CHECK_STR(said, text);
	sent = listener_next(&l);
	CHECK(log_matches(sent, "<14>nrt\\[[0-9]+\\]: from a handler"));
	free(sent);
	sent = listener_next(&l);
	CHECK_STR(sent, "");
	free(sent);
	free(said);
	listener_end(&l);
	hear_end(&h);
}
