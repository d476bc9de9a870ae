/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reserve_race_test.c - processes that want the same cores at the same moment.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/shim/shim.h"
#include "tests/unit/reserve_fixture.h"

#define ROUNDS 100
#define MAX_RIVALS 8

struct rivals {
	const struct place *place;
	int go[2];   /* closed: both start */
	int done[2]; /* closed: the winner ends */
	int say[2];  /* each says how it went, with its pid */
};

struct outcome {
	int32_t pid;
	int32_t status;
	uint32_t first; /* core that it got */
};

static void rival_log(const struct place *p, int32_t pid, char *path, size_t size)
{
	snprintf(path, size, "%s/rival.%d", p->scratch.dir, pid);
}

static void rival(struct rivals *r, const struct device_wish *wish)
{
	struct outcome o = {.pid = (int32_t)getpid()};
	struct device_system *s = NULL;
	char path[1200], byte;
	int log;

	close(r->go[1]);
	close(r->done[1]);
	close(r->say[0]);
	rival_log(r->place, o.pid, path, sizeof(path));
	log = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (log < 0 || dup2(log, 2) < 0)
		_exit(1);
	(void)!read(r->go[0], &byte, 1);
	o.status = (int32_t)reserve(r->place, wish, &s);
	o.first = s ? s->first_core : 0;
	(void)!write(r->say[1], &o, sizeof(o));
	(void)!read(r->done[0], &byte, 1);
	device_shut_down(s);
	_exit(0);
}

static pid_t rival_start(struct rivals *r, const struct device_wish *wish)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0)
		rival(r, wish);
	return pid;
}

/* The loser's log names the winner, by the number and by what it runs. */
static bool names(const struct place *p, const struct outcome *loser, const struct outcome *winner)
{
	char path[1200], want[64];
	char *text;
	bool found;

	rival_log(p, loser->pid, path, sizeof(path));
	snprintf(want, sizeof(want), "Attached to nd0: %d (unit)", winner->pid);
	text = program_text(path);
	found = text && strstr(text, want);
	if (!found)
		test_info("not said: %s; but: %s", want, text ? text : "");
	free(text);
	return found;
}

/* Starts n rivals at the same moment and lets them end when all have said how it went.  False when that
 * could not be done, or one of them died. */
static bool race(
	const struct place *p, const struct device_wish *wish, struct outcome *o, unsigned n)
{
	struct rivals r = {.place = p};
	pid_t pids[MAX_RIVALS];
	bool good = true;

	if (pipe(r.go) < 0 || pipe(r.done) < 0 || pipe(r.say) < 0)
		return false;
	for (unsigned i = 0; i < n; i++)
		pids[i] = rival_start(&r, wish);
	close(r.go[1]);
	close(r.say[1]);
	for (unsigned i = 0; i < n; i++)
		good &= read(r.say[0], &o[i], sizeof(o[i])) == sizeof(o[i]);
	close(r.done[1]);
	for (unsigned i = 0; i < n; i++)
		good &= program_wait(pids[i]) == 0;
	close(r.go[0]);
	close(r.done[0]);
	close(r.say[0]);
	return good;
}

/* False: the round did not go as it must. */
static bool round_of(const struct place *p, const struct device_wish *wish)
{
	struct outcome o[2];
	int winner;

	if (!race(p, wish, o, 2))
		return false;
	test_info("statuses %d and %d", o[0].status, o[1].status);
	winner = o[0].status ? 1 : 0;
	return o[winner].status == NRT_SUCCESS && o[!winner].status == NRT_FAILURE &&
	       names(p, &o[!winner], &o[winner]);
}

static void compete(const struct device_wish *wish)
{
	struct place p;
	int good = 0;

	if (device_lacks())
		SKIP(device_lacks());
	REQUIRE(place_open(&p));
	REQUIRE(virtual_device_start(&p.device, p.scratch.dir, one_device));
	while (good < ROUNDS && round_of(&p, wish))
		good++;
	CHECK_EQ(good, ROUNDS);
	CHECK(all_free(&p, 0xff));
	CHECK(virtual_device_reaches(&p.device, "open_handles", 0));
	place_close(&p);
}

TEST("reserve: of two processes that want the same cores one wins, and the other names it",
	"[reserve][vdev]")
{
	compete(&(struct device_wish){true, 1, 2, 2, NULL});
}

TEST("reserve: of two processes that want all cores one wins, and the other names it",
	"[reserve][vdev]")
{
	compete(&(struct device_wish){.core_count = 0});
}

TEST("reserve: as many processes as there are cores get one each", "[reserve][vdev]")
{
	static const char *const options[] = {"--cores=8", "--devices=2", NULL};
	const struct device_wish wish = {.core_count = 1};
	struct outcome o[MAX_RIVALS];
	struct place p;

	if (device_lacks())
		SKIP(device_lacks());
	REQUIRE(place_open(&p));
	REQUIRE(virtual_device_start(&p.device, p.scratch.dir, options));
	for (int round = 0; round < 20; round++) {
		uint64_t got = 0;

		CHECK(race(&p, &wish, o, MAX_RIVALS));
		for (int i = 0; i < MAX_RIVALS; i++) {
			CHECK_EQ(o[i].status, NRT_SUCCESS);
			got |= 1ull << o[i].first;
		}
		CHECK_EQ(got, 0x5555); /* slot 0 of each */
	}
	place_close(&p);
}
