/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_spool_signal_test.c - an inspect session in a program that gets a signal.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/profile/inspect_end.h"
#include "runtime/profile/inspect_spool.h"
#include "runtime/record/merge.h"
#include "tests/shim/shim.h"
#include "tests/unit/inspect_spool_session.h"
#include "tests/unit/scratch.h"

/* ---- signals ------------------------------------------------------------------------------ */

static struct place *of_signal;
static volatile sig_atomic_t heard;

static void on_signal(int number)
{
	struct merge_result m;
	char *text = NULL;

	/* What came before the signal is on its way to the disk. */
	if (merge_recording(scratch_path(&of_signal->scratch, "recording").s, NULL,
		    &(struct merge_options){.leaf = true}, &m, &text) == 0 &&
		m.output_count == 1 && m.outputs[0].events == 2 * of_signal->told->spans)
		heard = number;
	merge_result_free(&m);
	free(text);
}

static int flushed(void *arg)
{
	struct place *p = of_signal = arg;
	struct inspect_outcome o;

	WANT(signal(SIGTERM, on_signal) != SIG_ERR);
	WANT(inspect_end_open() == 0);
	inspect_end_hold();
	WANT(begin(p) == 0);
	inspect_end_arm(getpid());
	inspect_end_release();
	for (int i = 0; i < 20; i++) {
		emit(p, 500);
		heard = 0;
		raise(SIGTERM);
		WANT(heard == SIGTERM);
	}
	inspect_end_hold();
	inspect_end_disarm();
	WANT(finish(p, &o) == 0);
	inspect_end_release();
	WANT(o.events == 20 * 1000 && o.lost == 0);
	return 0;
}

TEST("inspect spool: before the program's own handler runs, all events are handed to the kernel",
	"[inspect][spool]")
{
	struct place p;

#ifdef __SANITIZE_THREAD__
	SKIP("a build without ThreadSanitizer, which objects to a handler that reads the "
	     "recording");
#endif
	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(flushed, &p), 0);
	place_close(&p);
}

static void ask(void *ctx, bool finish)
{
	struct place *p = ctx;
	struct inspect_outcome o;

	if (finish)
		p->told->ready = inspect_spool_finish(p->spool, REC_END_ASKED, &o) == 0;
}

static int terminated(void *arg)
{
	struct place *p = arg;

	p->wish.asked = ask;
	p->wish.ctx = p;
	WANT(signal(SIGTERM, SIG_DFL) != SIG_ERR); /* the runner has a handler */
	WANT(inspect_end_open() == 0);
	inspect_end_hold();
	WANT(begin(p) == 0);
	inspect_end_arm(getpid());
	inspect_end_release();
	emit(p, 700);
	raise(SIGTERM);
	return 1;
}

TEST("inspect spool: a signal that ends the program ends the session in its thread before",
	"[inspect][spool]")
{
	struct place p;
	int status = 0;
	pid_t pid;

	REQUIRE(place_open(&p));
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		_exit(terminated(&p));
	REQUIRE_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	CHECK(p.told->ready);
	REQUIRE(read_files(&p));
	CHECK_EQ(p.trace.count, 1400);
	CHECK(p.trace_info->ended);
	CHECK_EQ(strange_names(&p), 0);
	place_close(&p);
}
