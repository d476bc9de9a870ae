/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_block_test.c - errors of a call that are held and written as one block.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <pty.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>

#include "runtime/log/log_levels.h"
#include "tests/shim/shim.h"
#include "tests/unit/hearing.h"
#include "tests/unit/log_listener.h"

#define BLOCK "NEURON_RT_LOG_COALESCING_ENABLED"
#define CALL "nrt_call"

static bool block_begin(struct hearing *h)
{
	setenv(BLOCK, "1", 1);
	return hear_begin(h, "ERROR");
}

static void block_end(struct hearing *h)
{
	unsetenv(BLOCK);
	hear_end(h);
}

/* A cause, and what a call says itself. */
static void cause(const char *text)
{
	log_write(LOG_LEVEL_ERROR, "TDRV", "part", "%s", text);
}

static void speak(const char *text)
{
	log_write(LOG_LEVEL_ERROR, "NRT", CALL, "%s", text);
}

TEST("log block: an error of the call comes with what led to it, the last first", "[log]")
{
	struct listener l;
	struct hearing h;
	char *said, *sent;

	REQUIRE(block_begin(&h));
	REQUIRE(listener_begin(&l));
	log_set_levels("all", LOG_LEVEL_ERROR, LOG_LEVEL_ERROR);
	hear_on(&h);
	log_api_begin(CALL);
	cause("first");
	cause("second");
	said = hear(&h);
	CHECK_STR(said, "");
	free(said);
	hear_on(&h);
	speak("it failed");
	said = hear(&h);
	CHECK(log_matches(said, LOG_HEAD("ERROR", "NRT", CALL) "it failed\n"
							       "\tTDRV:part second\n"
							       "\tTDRV:part first\n\n"));
	sent = listener_next(&l);
	CHECK(log_matches(sent, "<11>nrt\\[[0-9]+\\]: " LOG_WHO("ERROR", "NRT",
					CALL) "it failed\n\tTDRV:part second\n\tTDRV:part first"));
	free(said);
	free(sent);
	hear_on(&h);
	speak("again");
	log_api_end();
	said = hear(&h);
	CHECK(log_matches(said, LOG_HEAD("ERROR", "NRT", CALL) "again\n\n"));
	free(said);
	listener_end(&l);
	block_end(&h);
}

TEST("log block: a call that says nothing itself gets Generic API Failure", "[log]")
{
	struct hearing h;
	char *said;

	REQUIRE(block_begin(&h));
	hear_on(&h);
	log_api_begin(CALL);
	cause("the cause");
	log_api_end();
	said = hear(&h);
	CHECK(log_matches(said, LOG_HEAD("ERROR", "NLOG", CALL) "Generic API Failure\n"
								"\tTDRV:part the cause\n\n"));
	free(said);
	hear_on(&h);
	log_api_begin(CALL);
	log_api_end();
	log_set_levels("NLOG", LOG_DISABLED, LOG_DISABLED);
	log_api_begin(CALL);
	cause("another");
	log_api_end();
	said = hear(&h);
	CHECK_STR(said, "TDRV:part another\n\n");
	free(said);
	block_end(&h);
}

TEST("log block: the known cause has a resolution, which has room in every line", "[log]")
{
	static char longest[3000];
	struct hearing h;
	char *said;

	memset(longest, 'x', sizeof(longest) - 1);
	REQUIRE(block_begin(&h));
	hear_on(&h);
	log_api_begin(CALL);
	cause("no text");
	log_set_error_cause(LOG_CAUSE_NEFF_ARCH_INCOMPAT);
	speak("cannot load");
	log_api_end();
	said = hear(&h);
	CHECK(log_matches(said, LOG_HEAD("ERROR", "NRT", CALL) "cannot load Resolution: .*\n"
							       "\tTDRV:part no text\n\n"));
	free(said);

	log_set_levels("NLOG", LOG_LEVEL_WARN, LOG_DISABLED);
	hear_on(&h);
	log_api_begin(CALL); /* the cause of the call before is forgotten */
	speak("another reason");
	log_set_error_cause(LOG_CAUSE_NEFF_ARCH_INCOMPAT);
	log_set_error_cause(LOG_CAUSE_NEFF_ARCH_INCOMPAT);
	speak(longest);
	log_api_end();
	said = hear(&h);
	CHECK(strstr(said, "another reason\n\n") != NULL);
	CHECK_EQ(log_count(said, "Error cause is already defined as 0\n"), 1);
	CHECK_EQ(log_count(said, "x Resolution: load a model"), 1);
	free(said);
	block_end(&h);
}

TEST("log block: what is no error of this call is written at once", "[log]")
{
	struct hearing h;
	char *said;

	REQUIRE(block_begin(&h));
	log_set_levels("all", LOG_LEVEL_INFO, LOG_DISABLED);
	hear_on(&h);
	cause("in no call");
	log_api_begin(NULL);
	cause("in a call without a name");
	log_api_end();
	log_api_begin(CALL);
	log_write(LOG_LEVEL_WARN, "TDRV", "part", "a warning");
	log_write(LOG_LEVEL_ERROR, "NRT", "nrt_other", "for another call");
	said = hear(&h);
	CHECK_EQ(log_count(said, "\n"), 4);
	CHECK(strstr(said, " in no call\n") != NULL);
	CHECK(strstr(said, " in a call without a name\n") != NULL);
	CHECK(strstr(said, " a warning\n") != NULL);
	CHECK(strstr(said, " for another call\n") != NULL);
	free(said);
	hear_on(&h);
	log_api_end();
	unsetenv(BLOCK); /* the default */
	log_configure();
	log_api_begin(CALL);
	cause("nothing is held");
	said = hear(&h);
	log_api_end();
	CHECK(log_matches(said, LOG_HEAD("ERROR", "TDRV", "part") "nothing is held\n"));
	free(said);
	block_end(&h);
}

TEST("log block: it is red on a terminal, as a whole", "[log]")
{
	int err = dup(2), terminal, end;
	char text[1024];
	ssize_t n;

	REQUIRE(openpty(&terminal, &end, NULL, NULL, NULL) == 0);
	setenv(BLOCK, "1", 1);
	log_configure();
	fflush(NULL);
	dup2(end, 2);
	log_api_begin(CALL);
	cause("why");
	speak("what");
	n = read(terminal, text, sizeof(text) - 1);
	dup2(err, 2);
	log_api_end();
	text[n > 0 ? n : 0] = '\0';
	CHECK(log_matches(text, "\033\\[91m" LOG_HEAD("ERROR", "NRT",
					CALL) "what\r\n\tTDRV:part why\r\n\r\n\033\\[0m"));
	unsetenv(BLOCK);
	log_configure();
	close(err);
	close(terminal);
	close(end);
}

/* ---- nothing is lost ---------------------------------------------------------------------- */

TEST("log block: what does not fit into 16 KiB is written early", "[log]")
{
	static char filler[501];
	struct hearing h;
	char *said;

	memset(filler, 'x', sizeof(filler) - 1);
	REQUIRE(block_begin(&h));
	hear_on(&h);
	log_api_begin(CALL);
	for (int i = 0; i < 100; i++)
		log_write(LOG_LEVEL_ERROR, "TDRV", "part", "%s cause %d.", filler, i);
	log_api_end();
	said = hear(&h);
	for (int i = 0; i < 100; i++) {
		char want[32];

		snprintf(want, sizeof(want), "x cause %d.", i);
		CHECK_EQ(log_count(said, want), 1);
	}
	CHECK_EQ(log_count(said, "Generic API Failure"), 1);
	/* 31 lines of 521 bytes and more are 16 KiB; the last block has the rest. */
	CHECK_EQ(log_count(said, "\n\n"), 4);
	free(said);
	block_end(&h);
}

#define THREADS 8u
#define CALLS 200u

/* Each line names its thread and its number. */
static void *call_often(void *arg)
{
	unsigned self = (unsigned)(uintptr_t)arg;

	for (unsigned i = 0; i < CALLS; i++) {
		log_api_begin(CALL);
		log_write(LOG_LEVEL_ERROR, "TDRV", "part", "thread %u cause %u;", self, i);
		log_write(LOG_LEVEL_ERROR, "NMGR", "part", "thread %u reason %u;", self, i);
		if (i % 2)
			log_write(LOG_LEVEL_ERROR, "NRT", CALL, "thread %u error %u;", self, i);
		log_api_end();
	}
	return arg;
}

static bool run_threads(void *(*fn)(void *))
{
	pthread_t threads[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, fn, (void *)i))
			return false;
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return true;
}

/* How often "thread T <what> N;" is there for each T and N, and whether that is once. */
static bool each_once(const char *text, const char *what, bool odd_alone)
{
	static unsigned char seen[THREADS][CALLS];
	char word[16];

	memset(seen, 0, sizeof(seen));
	for (const char *p = text; (p = strstr(p, "thread ")); p++) {
		unsigned thread, n;

		if (sscanf(p, "thread %u %15s %u;", &thread, word, &n) == 3 &&
			!strcmp(word, what) && thread < THREADS && n < CALLS)
			seen[thread][n]++;
	}
	for (unsigned t = 0; t < THREADS; t++)
		for (unsigned n = 0; n < CALLS; n++)
			if (seen[t][n] != (odd_alone ? n % 2 : 1))
				return false;
	return true;
}

TEST("log block: 8 threads lose no line, and no block has another thread's", "[log]")
{
	struct hearing h;
	char *said, *place;
	unsigned blocks = 0;

	REQUIRE(block_begin(&h));
	hear_on(&h);
	REQUIRE(run_threads(call_often));
	said = hear(&h);
	CHECK(each_once(said, "cause", false));
	CHECK(each_once(said, "reason", false));
	CHECK(each_once(said, "error", true));
	for (char *b = said, *next; (next = strstr(b, "\n\n")); b = next + 2, blocks++) {
		unsigned reason, first, number;

		*next = '\0';
		place = strstr(b, "\n\tNMGR:part thread ");
		if (!place ||
			sscanf(place,
				"\n\tNMGR:part thread %u reason %u;\n"
				"\tTDRV:part thread %u cause",
				&reason, &number, &first) != 3 ||
			reason != first)
			break;
	}
	CHECK_EQ(blocks, THREADS * CALLS);
	free(said);
	block_end(&h);
}

/* A thread that gets no memory. */
static void *call_without_memory(void *arg)
{
	struct rlimit was, none;

	getrlimit(RLIMIT_AS, &was);
	none = was;
	none.rlim_cur = 4096;
	setrlimit(RLIMIT_AS, &none);
	log_api_begin(CALL);
	cause("the cause");
	speak("the error");
	log_api_end();
	setrlimit(RLIMIT_AS, &was);
	return arg;
}

TEST("log block: a thread that has no memory for it writes its lines at once", "[log]")
{
	struct hearing h;
	pthread_t thread;
	char *said;

	REQUIRE(block_begin(&h));
	hear_on(&h);
	CHECK_EQ(pthread_create(&thread, NULL, call_without_memory, NULL), 0);
	pthread_join(thread, NULL);
	said = hear(&h);
	CHECK(log_matches(said, LOG_HEAD("ERROR", "TDRV", "part") "the cause\n" LOG_HEAD(
					"ERROR", "NRT", CALL) "the error\n"));
	free(said);
	block_end(&h);
}

static void *call_once(void *arg)
{
	log_api_begin(CALL);
	log_api_end();
	return arg;
}

static long mappings(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	long pages = 0;

	if (f && fscanf(f, "%ld", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return pages;
}

TEST("log block: a thread's memory goes when it ends", "[log]")
{
	struct hearing h;
	long before;

	REQUIRE(block_begin(&h));
	for (int i = 0; i < 20; i++)
		REQUIRE(run_threads(call_once));
	before = mappings();
	for (int i = 0; i < 200; i++)
		REQUIRE(run_threads(call_once));
	CHECK(mappings() - before < 200l * THREADS * 4 / 2); /* of 4 pages and more each */
	block_end(&h);
}

/* ---- handlers and forks ------------------------------------------------------------------- */

static volatile sig_atomic_t rang;

static void ring(int number)
{
	int saved = errno;

	(void)number;
	log_from_handler(LOG_LEVEL_ERROR, "NRT", "plain;\n", 7);
	cause("interrupted;");
	rang++;
	errno = saved;
}

TEST("log block: handlers at any time neither hang nor lose a line", "[log]")
{
	const struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
	struct sigaction sa = {.sa_handler = ring, .sa_flags = SA_RESTART}, old;
	struct hearing h;
	unsigned calls = 0;
	char *said;

	REQUIRE(block_begin(&h));
	hear_on(&h);
	rang = 0;
	sigaction(SIGALRM, &sa, &old);
	setitimer(ITIMER_REAL, &often, NULL);
	for (; calls < 500 || rang < 200; calls++) {
		log_api_begin(CALL);
		cause("ordinary;");
		if (calls % 2)
			speak("spoken;");
		log_api_end();
	}
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &old, NULL);
	said = hear(&h);
	CHECK_EQ(log_count(said, "ordinary;"), calls);
	CHECK_EQ(log_count(said, "spoken;"), calls / 2);
	CHECK_EQ(log_count(said, "plain;"), rang);
	CHECK_EQ(log_count(said, "interrupted;"), rang);
	free(said);
	block_end(&h);
}

static atomic_bool enough;

static void *call_until(void *arg)
{
	while (!atomic_load(&enough))
		call_often(arg);
	return arg;
}

/* What the child of a fork says, to a file of its own; one that hangs is ended by the alarm. */
static int says_in_child(void *arg)
{
	alarm(30);
	dup2(*(int *)arg, 2);
	log_api_begin(CALL);
	cause("child cause");
	log_api_end();
	cause("child at once");
	return log_dump_errors(open("/dev/null", O_WRONLY | O_CLOEXEC), true) == 0 ? 0 : 1;
}

TEST("log block: the child of a fork speaks while threads of its parent do", "[log]")
{
	static char said[64 << 10];
	pthread_t threads[4];
	struct hearing h;
	int failed = 0, file = memfd_create("said", MFD_CLOEXEC);

	REQUIRE(block_begin(&h));
	hear_on(&h);
	atomic_store(&enough, false);
	for (uintptr_t i = 0; i < 4; i++)
		REQUIRE(pthread_create(&threads[i], NULL, call_until, (void *)i) == 0);
	for (int i = 0; i < 20; i++)
		failed += scratch_child(says_in_child, &file) != 0;
	atomic_store(&enough, true);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	free(hear(&h));
	CHECK_EQ(failed, 0);
	CHECK(pread(file, said, sizeof(said) - 1, 0) > 0);
	CHECK_EQ(log_count(said, "child cause"), 20);
	CHECK_EQ(log_count(said, "child at once"), 20);
	close(file);
	block_end(&h);
}
