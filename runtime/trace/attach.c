/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach.c - the mailbox of the control page, both sides of it.
 *
 * Either side may be killed between any two steps.  An agent that died after its request finds nobody to hold the
 * lock, so nothing is subscribed; the next one goes on from whatever number stands there.
 */
#include "runtime/trace/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/trace/trace.h"

#define PAGE 4096u

/* ---- both sides --------------------------------------------------------------------------- */

/* The futex is shared: the page is another one in every process. */
static void wake(_Atomic uint32_t *word)
{
	(void)syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void attach_ring(_Atomic uint32_t *word)
{
	atomic_fetch_add(word, 1);
	wake(word);
}

void attach_set(_Atomic uint32_t *word, uint32_t value)
{
	atomic_store(word, value);
	wake(word);
}

void attach_sleep(const _Atomic uint32_t *word, uint32_t seen, int ms)
{
	struct timespec limit = {ms / 1000, ms % 1000 * 1000000L};

	(void)syscall(SYS_futex, word, FUTEX_WAIT, seen, ms < 0 ? NULL : &limit, NULL, 0);
}

/* ---- the runtime -------------------------------------------------------------------------- */

/* Of the service thread, or of who starts it. */
static bool subscribed; /* on the mailbox's word */

static int subscribe(const struct ctl_mailbox *m)
{
	struct trace_filter filter = {.types = atomic_load(&m->types)};
	int rc = trace_agent_lives();

	if (rc <= 0)
		return rc < 0 ? rc : -ECANCELED;
	for (size_t i = 0; i < TRACE_MAX_NC / 64; i++)
		filter.cores[i] = atomic_load(&m->cores[i]);
	rc = trace_set_subscriber(CTL_SUB_AGENT, &filter, atomic_load(&m->records));
	subscribed |= rc == 0;
	return rc;
}

static int unsubscribe(void)
{
	if (subscribed)
		trace_unsubscribe(CTL_SUB_AGENT);
	subscribed = false;
	return 0;
}

void attach_serve(struct ctl *ctl)
{
	struct ctl_mailbox *m = &ctl->mail;
	uint32_t request = atomic_load(&m->request);

	/* Without a descriptor nobody can tell whether the agent lives: it ends as well. */
	if (subscribed && trace_agent_lives() <= 0)
		unsubscribe();
	if (request == atomic_load(&m->answered))
		return;
	atomic_store(&m->answer, request % 2 ? subscribe(m) : unsubscribe());
	attach_set(&m->answered, request);
}

void attach_forget(void)
{
	subscribed = false;
}

/* ---- the agent ---------------------------------------------------------------------------- */

int attach_claim(int fd, pid_t *ret_holder)
{
	struct flock lock = {.l_type = F_WRLCK, .l_start = CTL_AGENT_BYTE, .l_len = 1};
	int error;

	*ret_holder = 0;
	if (fcntl(fd, F_SETLK, &lock) == 0)
		return 0;
	error = errno;
	if (error != EAGAIN && error != EACCES)
		return -error;
	if (fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK)
		*ret_holder = lock.l_pid;
	return -EBUSY;
}

static void ask(struct attach_page *p, uint32_t request)
{
	p->request = request;
	atomic_store(&p->ctl->mail.request, request);
	attach_ring(&p->ctl->mail.bell);
}

int attach_subscribe(struct attach_page *p, int fd, uint32_t records, int ms)
{
	void *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	struct ctl_mailbox *m;

	*p = (struct attach_page){0};
	if (at == MAP_FAILED)
		return -errno;
	p->ctl = at;
	m = &p->ctl->mail;
	if (!atomic_load(&m->serving))
		attach_sleep(&m->serving, 0, ms);
	if (!atomic_load(&m->serving))
		return -ENOTCONN;
	atomic_store(&m->records, records);
	atomic_store(&m->types, UINT64_MAX);
	for (size_t i = 0; i < TRACE_MAX_NC / 64; i++)
		atomic_store(&m->cores[i], UINT64_MAX);
	/* The next odd number. */
	ask(p, (atomic_load(&m->request) + 1) | 1);
	return 0;
}

void attach_unsubscribe(struct attach_page *p)
{
	if (p->request % 2)
		ask(p, p->request + 1);
}

int attach_answer(struct attach_page *p, int ms)
{
	struct ctl_mailbox *m = &p->ctl->mail;
	uint64_t end = clock_boot().ns + (uint64_t)ms * 1000000u;
	int answer;

	for (;;) {
		uint32_t answered = atomic_load(&m->answered);
		uint64_t now = clock_boot().ns;

		if (answered == p->request)
			break;
		if (now >= end)
			return -ETIMEDOUT;
		attach_sleep(&m->answered, answered, (int)((end - now) / 1000000u) + 1);
	}
	answer = atomic_load(&m->answer);
	return answer > 0 || answer < -4095 ? -EPROTO : answer;
}

void attach_close(struct attach_page *p)
{
	if (p->ctl)
		(void)munmap(p->ctl, PAGE);
	*p = (struct attach_page){0};
}
