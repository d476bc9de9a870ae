/* SPDX-License-Identifier: Apache-2.0 */
/*
 * residents_test.c - whose memory is sampled when there are many processes, and when they are gone.
 */
#include <signal.h>
#include <sys/wait.h>

#include "agent/collect/residents.h"
#include "tests/shim/shim.h"
#include "tests/unit/scratch.h"

enum { CHILDREN = 6, ROUND = 4 };

static pid_t start_child(void)
{
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			pause();
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Samples of each child in the recording. */
static void count_samples(const char *path, const pid_t *children, unsigned counts[CHILDREN])
{
	const struct rec_frame *f;
	const uint8_t *payload;
	struct rec_reader *r;
	struct rec_mem s;

	memset(counts, 0, CHILDREN * sizeof(*counts));
	if (rec_reader_open(path, &r) < 0)
		return;
	while (rec_reader_next(r, &f, &payload) == 1) {
		if (f->type != REC_MEM)
			continue;
		memcpy(&s, payload, sizeof(s));
		for (unsigned i = 0; i < CHILDREN; i++)
			counts[i] += s.pid == (uint32_t)children[i] && s.rss_bytes > 0;
	}
	rec_reader_close(r);
}

TEST("residents: every process has its turn, who is gone makes room, what is left out is counted",
	"[record]")
{
	struct residents m = {0};
	pid_t children[CHILDREN];
	unsigned counts[CHILDREN];
	struct rec_writer *w;
	struct scratch s;

	REQUIRE(scratch_make(&s));
	struct scratch_path path = scratch_path(&s, "rec");
	REQUIRE_EQ(rec_writer_open(path.s, &w), 0);
	for (unsigned i = 0; i < CHILDREN; i++) {
		children[i] = start_child();
		CHECK_EQ(residents_know(&m, w, (uint32_t)children[i]), 0);
		CHECK_EQ(residents_know(&m, w, (uint32_t)children[i]), 0);
	}
	CHECK_EQ(m.count, CHILDREN);
	for (unsigned i = 0; i < 3; i++) /* 12 samples */
		CHECK_EQ(residents_sample(&m, w, ROUND), 0);
	CHECK_EQ(m.skipped, 3 * (CHILDREN - ROUND));

	end_child(children[1]);
	end_child(children[5]);
	for (unsigned i = 0; i < 2; i++)
		CHECK_EQ(residents_sample(&m, w, CHILDREN), 0);
	CHECK_EQ(m.count, CHILDREN - 2);
	CHECK_EQ(residents_know(&m, w, (uint32_t)children[1]), 0);
	CHECK_EQ(m.count, CHILDREN - 2); /* not again */
	CHECK_EQ(m.skipped, 3 * (CHILDREN - ROUND));

	for (unsigned i = 0; i < CHILDREN; i++)
		if (i != 1 && i != 5)
			end_child(children[i]);
	CHECK_EQ(residents_sample(&m, w, CHILDREN), 0);
	CHECK_EQ(m.count, 0);
	CHECK_EQ(rec_writer_close(w), 0);
	count_samples(path.s, children, counts);
	for (unsigned i = 0; i < CHILDREN; i++)
		CHECK_EQ(counts[i], i == 1 || i == 5 ? 3 : 5);
	residents_free(&m);
	scratch_remove(&s);
}
