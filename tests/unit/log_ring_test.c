/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_ring_test.c - the errors that are kept in memory.
 *
 * What is about the ring of the process has a child for it: other tests leave errors there, too.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "runtime/base/file.h"
#include "runtime/log/log_levels.h"
#include "runtime/log/log_ring.h"
#include "tests/shim/shim.h"
#include "tests/unit/hearing.h"
#include "tests/unit/log_listener.h"

/* What a ring has; to be freed. */
static char *dump_of(int (*dump)(const struct log_ring *, int, bool), const struct log_ring *r)
{
	int fd = memfd_create("dump", MFD_CLOEXEC);
	off_t size;
	char *text;

	if (fd < 0 || dump(r, fd, true) != 0)
		return NULL;
	size = lseek(fd, 0, SEEK_END);
	text = calloc(1, (size_t)size + 1);
	if (text && pread(fd, text, (size_t)size, 0) != size)
		text[0] = '\0';
	close(fd);
	return text;
}

static int dump_process(const struct log_ring *r, int fd, bool again)
{
	(void)r;
	return log_dump_errors(fd, again);
}

/* What the process has since the last MARK; to be freed.  Earlier tests may have left errors. */
#define MARK "from here on"
static char *dumped(void)
{
	char *text = dump_of(dump_process, NULL), *p = text, *last = NULL;

	while (p && (p = strstr(p, MARK)))
		last = p += strlen(MARK) + 1;
	if (last)
		memmove(text, last, strlen(last) + 1);
	return text;
}

#define WANT(x)                          \
	do {                             \
		if (!(x))                \
			return __LINE__; \
	} while (0)

/* Lines go nowhere else. */
static bool be_quiet(void)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || dup2(fd, 1) != 1 || dup2(fd, 2) != 2)
		return false;
	log_write(LOG_LEVEL_ERROR, "NRT", "f", MARK);
	return true;
}

static void say(unsigned number)
{
	log_write(LOG_LEVEL_ERROR, "NRT", "f", "number %u;", number);
}

static int keeps_errors(void *arg)
{
	_cleanup_free_ char *text = NULL;

	(void)arg;
	WANT(be_quiet());
	log_set_levels("all", LOG_LEVEL_TRACE, LOG_DISABLED);
	log_set_levels("TDRV", LOG_DISABLED, LOG_DISABLED);
	say(1);
	log_write(LOG_LEVEL_WARN, "NRT", "f", "a warning");
	log_write(LOG_LEVEL_ERROR, "TDRV", "f", "not wanted");
	log_write_unkept(LOG_LEVEL_ERROR, "NRT", "f", "shown alone");
	say(2);
	text = dumped();
	WANT(log_matches(text, LOG_HEAD("ERROR", "NRT", "f") "number 1;\n" LOG_HEAD(
				       "ERROR", "NRT", "f") "number 2;\n"));
	return 0;
}

TEST("log ring: errors that are shown somewhere are kept, as lines, the oldest first", "[log]")
{
	CHECK_EQ(scratch_child(keeps_errors, NULL), 0);
}

static int keeps_causes(void *arg)
{
	_cleanup_free_ char *text = NULL;

	(void)arg;
	WANT(be_quiet());
	setenv("NEURON_RT_LOG_COALESCING_ENABLED", "1", 1);
	log_configure();
	log_api_begin("nrt_call");
	say(1);
	text = dumped(); /* in the call, as a core dump does */
	log_api_end();
	WANT(log_matches(text, LOG_HEAD("ERROR", "NRT", "f") "number 1;\n"));
	free(text);
	text = dumped();
	WANT(log_count(text, "Generic API Failure\n") == 1);
	return 0;
}

TEST("log ring: an error that is held for its call is in it at once", "[log]")
{
	CHECK_EQ(scratch_child(keeps_causes, NULL), 0);
}

static void put(struct log_ring *r, unsigned number)
{
	char line[64];

	log_ring_put(r, line, (size_t)snprintf(line, sizeof(line), "number %u;\n", number));
}

/* Numbers from the first one that is there to the last, without a gap; how many. */
static unsigned rows_in_order(const struct log_ring *r, unsigned last)
{
	_cleanup_free_ char *text = dump_of(log_ring_dump, r);
	unsigned first = 0, n;
	char want[32], *p = text;

	if (!p || sscanf(p, "number %u;", &first) != 1)
		return 0;
	for (n = first; n <= last; n++) {
		size_t len = (size_t)snprintf(want, sizeof(want), "number %u;\n", n);

		if (strncmp(p, want, len) != 0)
			return 0;
		p += len;
	}
	return *p ? 0 : n - first;
}

/* Of lines of 9 to 16 bytes, with two words of 8 in front. */
#define PER_CORE (LOG_RING_CORE_BYTES / 32)

static int wraps(void *arg)
{
	struct log_ring *r = log_ring_larger(NULL, 1), *larger;
	unsigned n = 0;

	(void)arg;
	WANT(r);
	WANT(dump_of(log_ring_dump, r)[0] == '\0');
	while (n < 2 * PER_CORE)
		put(r, n++);
	WANT(rows_in_order(r, n - 1) >= PER_CORE - 1 && rows_in_order(r, n - 1) <= PER_CORE);
	larger = log_ring_larger(r, 3);
	WANT(larger != r && rows_in_order(larger, n - 1) == rows_in_order(r, n - 1));
	WANT(log_ring_larger(larger, 2) == larger);
	put(r, n++); /* of who has not seen that there is another one */
	while (n < 3 * PER_CORE)
		put(larger, n++);
	WANT(rows_in_order(larger, n - 1) >= 2 * PER_CORE - 2);
	while (n < 10 * PER_CORE)
		put(larger, n++);
	WANT(rows_in_order(larger, n - 1) >= 3 * PER_CORE - 1);
	WANT(rows_in_order(larger, n - 1) <= 3 * PER_CORE + 1);
	return 0;
}

TEST("log ring: 128 KiB of the last errors per core, and what there is stays", "[log]")
{
	CHECK_EQ(scratch_child(wraps, NULL), 0);
}

static int without_repeats(void *arg)
{
	struct log_ring *r = log_ring_larger(NULL, 1);
	int fd = memfd_create("dump", MFD_CLOEXEC);
	char text[256] = "";

	(void)arg;
	WANT(r && fd >= 0);
	put(r, 1);
	put(r, 2);
	WANT(log_ring_dump(r, -1, false) == -EBADF); /* that was no writing */
	WANT(log_ring_dump(r, fd, false) == 0);
	put(r, 3);
	r = log_ring_larger(r, 2);
	put(r, 4);
	WANT(log_ring_dump(r, fd, false) == 0 && log_ring_dump(r, fd, false) == 0);
	WANT(pread(fd, text, sizeof(text) - 1, 0) > 0);
	WANT(!strcmp(text, "number 1;\nnumber 2;\nnumber 3;\nnumber 4;\n"));
	WANT(rows_in_order(r, 4) == 4); /* with `again` all */
	return 0;
}

TEST("log ring: what has been written out is written again only when that is wanted", "[log]")
{
	CHECK_EQ(scratch_child(without_repeats, NULL), 0);
}

TEST("log ring: what cannot be written is the caller's to know", "[log]")
{
	struct log_ring *r = log_ring_larger(NULL, 1);
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	REQUIRE(r);
	CHECK_EQ(log_ring_dump(r, -1, true), 0); /* nothing to write */
	put(r, 1);
	CHECK_EQ(log_ring_dump(r, -1, true), -EBADF);
	CHECK_EQ(log_ring_dump(r, fd, true), -ENOSPC);
	close(fd);
}

static int beyond_limit(void *arg)
{
	const struct rlimit none = {0, 0};
	int fd = memfd_create("dump", MFD_CLOEXEC);

	(void)arg;
	WANT(be_quiet());
	WANT(setrlimit(RLIMIT_FSIZE, &none) == 0);
	WANT(log_dump_errors(fd, true) == -EFBIG);
	return 0;
}

TEST("log ring: a file that may not grow is an error, and no end of the program", "[log]")
{
	CHECK_EQ(scratch_child(beyond_limit, NULL), 0);
}

#define THREADS 8u
#define LINES 100u

static void *say_many(void *arg)
{
	for (unsigned i = 0; i < LINES; i++)
		say((unsigned)(uintptr_t)arg * LINES + i);
	return NULL;
}

static int has_all(void *arg)
{
	_cleanup_free_ char *text = dumped();
	char want[32];

	(void)arg;
	for (unsigned i = 0; i < THREADS * LINES; i++) {
		snprintf(want, sizeof(want), "number %u;\n", i);
		WANT(log_count(text, want) == 1);
	}
	WANT(log_count(text, "\n") == THREADS * LINES);
	return 0;
}

static int with_threads(void *arg)
{
	pthread_t threads[THREADS];

	(void)arg;
	WANT(be_quiet());
	for (uintptr_t i = 0; i < THREADS; i++)
		WANT(pthread_create(&threads[i], NULL, say_many, (void *)i) == 0);
	for (uint32_t i = 0; i < 20; i++) {
		log_set_cores(i); /* while they write */
		free(dumped());
	}
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	WANT(has_all(NULL) == 0);
	return scratch_child(has_all, NULL);
}

TEST("log ring: 8 threads lose no line, and a child of a fork has them all", "[log]")
{
	CHECK_EQ(scratch_child(with_threads, NULL), 0);
}

/* Of 64 bytes, so that a line of which a part is another's is seen. */
#define FORM "%u-%u-%u-%u-%u-%u-%u-%u;\n"
#define FLOOD 20000u

struct flood {
	struct log_ring *ring;
	unsigned self;
};

static void *flood(void *arg)
{
	const struct flood *f = arg;
	char line[128];

	for (unsigned i = 0, n; i < FLOOD; i++) {
		n = (f->self + 1) * 1000000 + i;
		log_ring_put(f->ring, line,
			(size_t)snprintf(line, sizeof(line), FORM, n, n, n, n, n, n, n, n));
	}
	return NULL;
}

TEST("log ring: a writer that others overtake by a whole ring spoils none of their lines", "[log]")
{
	struct log_ring *r = log_ring_larger(NULL, 1);
	struct flood floods[THREADS];
	pthread_t threads[THREADS];
	unsigned lines = 0, bad = 0;
	char *text, *rest = NULL;

	REQUIRE(r);
	for (unsigned i = 0; i < THREADS; i++) {
		floods[i] = (struct flood){r, i};
		REQUIRE(pthread_create(&threads[i], NULL, flood, &floods[i]) == 0);
	}
	for (int i = 0; i < (int)THREADS; i++)
		pthread_join(threads[i], NULL);
	text = dump_of(log_ring_dump, r);
	REQUIRE(text);
	for (char *p = strtok_r(text, "\n", &rest); p; p = strtok_r(NULL, "\n", &rest), lines++) {
		unsigned n = (unsigned)strtoul(p, NULL, 10);
		char want[128];

		snprintf(want, sizeof(want), FORM, n, n, n, n, n, n, n, n);
		want[strlen(want) - 1] = '\0';
		bad += strcmp(p, want) != 0;
	}
	CHECK_EQ(bad, 0);
	CHECK(lines > 1000);
	free(text);
}
