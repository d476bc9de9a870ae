/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_console_test.c - messages to a console that is a pipe: which do not get in, and that none stands in another one.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "runtime/log/log_levels.h"
#include "runtime/log/log_sinks.h"
#include "runtime/log/log_turn.h"
#include "tests/shim/shim.h"
#include "tests/unit/hearing.h"
#include "tests/unit/log_listener.h"

#define PIPE_BYTES 4096

#define WANT(x)                                    \
	do {                                       \
		if (!(x))                          \
			return __LINE__ % 251 + 1; \
	} while (0)

/* stderr of a child is a small pipe. */
struct console {
	int out, in;
};

static bool console_open(struct console *c, int flags)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC | flags) < 0 || fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES) < 0)
		return false;
	c->out = ends[0];
	c->in = ends[1];
	log_set_levels("all", LOG_LEVEL_ERROR, LOG_DISABLED);
	return dup2(c->in, 2) == 2;
}

static void say(const char *text)
{
	log_write(LOG_LEVEL_ERROR, "NRT", "f", "%s", text);
}

static void fill(int fd)
{
	static const char rest[PIPE_BYTES];

	while (write(fd, rest, 1) == 1)
		;
}

/* What is in there now; to be freed. */
static char *take(int fd)
{
	char *text = calloc(1, 64 << 10);
	ssize_t n = read(fd, text, (64 << 10) - 1);

	text[n > 0 ? n : 0] = '\0';
	return text;
}

/* ---- what does not get in ----------------------------------------------------------------- */

static int counted(void *arg)
{
	struct console c;
	char *text;

	(void)arg;
	WANT(console_open(&c, O_NONBLOCK));
	fill(2);
	say("lost");
	say("lost");
	log_from_handler(LOG_LEVEL_ERROR, "NRT", "lost\n", 5);
	free(take(c.out));
	say("here");
	say("there");
	text = take(c.out);
	WANT(log_matches(text,
		LOG_HEAD("ERROR", "NLOG", "log_to_console") "3 messages before this line could not "
							    "be written: EAGAIN\n" LOG_HEAD("ERROR",
								    "NRT",
								    "f") "here\n" LOG_HEAD("ERROR",
								    "NRT", "f") "there\n"));
	free(text);
	return 0;
}

TEST("log console: what a non-blocking one does not take is counted, and said with the next line",
	"[log]")
{
	CHECK_EQ(scratch_child(counted, NULL), 0);
}

/* A block that is longer than the pipe. */
static int cut(void *arg)
{
	static char block[LOG_MARGIN + 3 * PIPE_BYTES + LOG_MARGIN];
	struct console c;
	char *text;

	(void)arg;
	WANT(console_open(&c, O_NONBLOCK));
	memset(block, 'x', sizeof(block));
	log_to_console(LOG_LEVEL_ERROR, block + LOG_MARGIN, 3 * PIPE_BYTES, true);
	text = take(c.out);
	WANT(strlen(text) == PIPE_BYTES && text[PIPE_BYTES - 1] == 'x');
	free(text);
	say("here");
	text = take(c.out);
	WANT(*text == '\n' && strstr(text, "\n2") == text &&
		strstr(text, " 1 message before this line "));
	free(text);
	say("there");
	text = take(c.out);
	WANT(log_matches(text, LOG_HEAD("ERROR", "NRT", "f") "there\n"));
	free(text);
	return 0;
}

TEST("log console: a message of which only a part got in ends there, and counts as lost", "[log]")
{
	CHECK_EQ(scratch_child(cut, NULL), 0);
}

static bool sleeps(void *tid)
{
	char path[64], *text, *state;
	bool does;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", *(int *)tid);
	text = program_text(path);
	state = strrchr(text, ')');
	does = state && state[2] == 'S';
	free(text);
	return does;
}

struct reader {
	struct console *c;
	int tid; /* who writes */
};

static void *read_when_it_waits(void *arg)
{
	struct reader *r = arg;

	(void)program_until(sleeps, &r->tid, 20);
	free(take(r->c->out));
	return NULL;
}

/* It does not wait for ever: on a busy machine once more. */
static int waited_for(void *arg)
{
	struct console c;
	struct reader r = {.c = &c, .tid = gettid()};
	bool lost = true;

	(void)arg;
	WANT(console_open(&c, O_NONBLOCK));
	for (int i = 0; i < 10 && lost; i++) {
		pthread_t thread;
		char *text;

		fill(2);
		WANT(pthread_create(&thread, NULL, read_when_it_waits, &r) == 0);
		say("late");
		pthread_join(thread, NULL);
		text = take(c.out);
		lost = !strstr(text, " late\n");
		free(text);
		say("so that nothing is to be said");
		free(take(c.out));
	}
	WANT(!lost);
	return 0;
}

TEST("log console: room in a non-blocking one is waited for a little", "[log]")
{
	CHECK_EQ(scratch_child(waited_for, NULL), 0);
}

/* ---- turns -------------------------------------------------------------------------------- */

#define THREADS 4u
#define BLOCKS 50u
#define BLOCK_BYTES 10000u

static void *write_blocks(void *arg)
{
	char room[LOG_MARGIN + BLOCK_BYTES + LOG_MARGIN];

	for (unsigned i = 0; i < BLOCKS; i++) {
		memset(room + LOG_MARGIN, 'a' + (int)(uintptr_t)arg, BLOCK_BYTES);
		log_to_console(LOG_LEVEL_ERROR, room + LOG_MARGIN, BLOCK_BYTES, true);
		say("line");
	}
	return NULL;
}

static char all[THREADS * BLOCKS * (BLOCK_BYTES + 200)];

static void *read_all(void *arg)
{
	const struct console *c = arg;
	size_t len = 0;
	ssize_t n;

	while ((n = read(c->out, all + len, sizeof(all) - 1 - len)) > 0)
		len += (size_t)n;
	return NULL;
}

/* The text behind a whole block or line; NULL: there is none. */
static const char *behind_whole(const char *p, unsigned *blocks, unsigned *lines)
{
	char letter[2] = {*p, '\0'};

	if (*p >= 'a' && *p < 'a' + (int)THREADS) {
		++*blocks;
		return strspn(p, letter) == BLOCK_BYTES && !strncmp(p + BLOCK_BYTES, "\n\n", 2)
			       ? p + BLOCK_BYTES + 2
			       : NULL;
	}
	++*lines;
	p += strcspn(p, "\n");
	return *p && !strncmp(p - 5, " line", 5) ? p + 1 : NULL;
}

static int in_turns(void *arg)
{
	unsigned blocks = 0, lines = 0;
	pthread_t threads[THREADS], reader;
	const char *p = all;
	struct console c;

	(void)arg;
	WANT(console_open(&c, 0));
	WANT(pthread_create(&reader, NULL, read_all, &c) == 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		WANT(pthread_create(&threads[i], NULL, write_blocks, (void *)i) == 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	close(2);
	close(c.in);
	pthread_join(reader, NULL);
	while (p && *p)
		p = behind_whole(p, &blocks, &lines);
	WANT(p && blocks == THREADS * BLOCKS && lines == THREADS * BLOCKS);
	return 0;
}

TEST("log console: a block that a pipe takes in parts has no line of another thread in it", "[log]")
{
	CHECK_EQ(scratch_child(in_turns, NULL), 0);
}

static atomic_int has_turn;

static void *hold_turn(void *until)
{
	struct log_turn t;

	log_turn_begin(&t);
	atomic_store(&has_turn, 1);
	while (!atomic_load((atomic_bool *)until))
		usleep(1000);
	log_turn_end(&t);
	return NULL;
}

/* A thread that the child has not has its turn for ever. */
static int speaks(void *arg)
{
	struct log_turn t;

	(void)arg;
	log_turn_begin(&t);
	return t.has ? 0 : 1;
}

static int held_by_others(void *arg)
{
	atomic_bool until = false;
	struct log_turn t, inner;
	pthread_t thread;

	(void)arg;
	alarm(60);
	log_turn_begin(&t);
	log_turn_begin(&inner); /* as a handler of this thread does */
	WANT(t.has && !inner.has);
	log_turn_end(&inner);
	WANT(pthread_create(&thread, NULL, hold_turn, &until) == 0);
	log_turn_end(&t);
	while (!atomic_load(&has_turn))
		usleep(1000);
	WANT(scratch_child(speaks, NULL) == 0);
	log_turn_begin(&t); /* after a second */
	WANT(t.has);
	log_turn_end(&t);
	atomic_store(&until, true);
	pthread_join(thread, NULL);
	return 0;
}

TEST("log console: a turn that does not end hangs nobody: no other thread, handler or child of a "
     "fork",
	"[log]")
{
	CHECK_EQ(scratch_child(held_by_others, NULL), 0);
}
