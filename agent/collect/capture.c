/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture.c - the recorder's loop: sources in, frames out.
 *
 * Signals: SIGINT from the terminal reaches the command as well, so the recorder only goes on until
 * the command has ended; a signal sent to the recorder alone (kill) is passed on.
 * A second SIGINT stops the recording without waiting.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "agent/collect/capture_parts.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/record/modules.h"
#include "runtime/record/rec_put.h"

#define LAST_POLLS 64 /* when the command has ended; a runtime may go on writing */
#define DRAIN_MS 10
#define TICKS_PER_FLUSH 10   /* 100 ms */
#define TICKS_PER_SAMPLE 100 /* 1 s */

int capture_put(
	struct capture *c, enum rec_type type, uint16_t source, const void *data, size_t size)
{
	return rec_writer_frame(c->rec, type, source, data, size, NULL, 0);
}

/* ---- frames of the recorder itself -------------------------------------------------------- */

int capture_put_cpus(struct capture *c)
{
	static struct sampler_cpu rows[SAMPLER_MAX_CPUS];

	return rec_put_cpus(c->rec, rows);
}

static int put_watermarks(struct capture *c)
{
	struct runtime_source s;
	uint64_t mark;
	int rc = rec_put_watermark(c->rec, REC_SOURCE_KERNEL, c->kernel_watermark);

	for (unsigned i = 0; rc == 0 && runtimes_get(c->runtimes, i, &s, &mark); i++)
		rc = rec_put_watermark(c->rec, s.source, mark);
	return rc;
}

/* ---- sources ------------------------------------------------------------------------------ */

static int on_kernel(void *ctx, const void *records, size_t size)
{
	struct capture *c = ctx;
	const uint8_t *p = records, *end = p + size;
	uint32_t last = 0;

	while (p + sizeof(struct nev_ioctl) <= end) {
		struct nev_ioctl e;
		memcpy(&e, p, sizeof(e));
		if (e.tgid != last) {
			int rc = residents_know(&c->residents, c->rec, e.tgid);
			if (rc < 0)
				return rc;
			last = e.tgid;
		}
		p += sizeof(e) + (size_t)e.hdr.nargs * sizeof(uint64_t);
	}
	return capture_put(c, REC_KERNEL, REC_SOURCE_KERNEL, records, size);
}

static int on_dma(void *ctx, const void *records, size_t size)
{
	struct capture *c = ctx;
	const struct nev_dma *d = records;
	uint32_t last = 0;

	for (size_t i = 0; i < size / sizeof(*d); i++) {
		int rc = d[i].tgid == last ? 0 : residents_know(&c->residents, c->rec, d[i].tgid);

		if (rc < 0)
			return rc;
		last = d[i].tgid;
	}
	return capture_put(c, REC_DRIVER, REC_SOURCE_KERNEL, records, size);
}

/* What the filter of the hooks follows is followed here too. */
static bool wants(void *ctx, pid_t pid)
{
	struct capture *c = ctx;

	return c->o->all_processes || ioctl_hooks_tracks(c->hooks, pid);
}

static int on_process(void *ctx, const struct runtime_source *s)
{
	struct capture *c = ctx;
	struct rec_process p = {.pid = (uint32_t)s->pid,
		.is_virtual = s->is_simulated ? REC_SIMULATED : s->is_virtual};

	memcpy(p.comm, s->comm, sizeof(p.comm));
	int rc = capture_put(c, REC_PROCESS, s->source, &p, sizeof(p));
	return rc < 0 ? rc : residents_know(&c->residents, c->rec, p.pid);
}

static int on_records(void *ctx, const struct runtime_source *s, uint32_t nc_idx, uint32_t lane,
	const struct trace_record *records, size_t count)
{
	struct capture *c = ctx;

	return rec_put_records(c->rec, s->source, nc_idx, lane, records, count);
}

static int on_name(
	void *ctx, const struct runtime_source *s, uint64_t id, const char *text, uint32_t len)
{
	struct capture *c = ctx;

	return rec_put_name(c->rec, s->source, id, text, len);
}

static int on_threads(
	void *ctx, const struct runtime_source *s, const struct rec_thread *rows, size_t count)
{
	struct capture *c = ctx;

	return capture_put(c, REC_THREAD, s->source, rows, count * sizeof(*rows));
}

/* What the hooks have seen until now goes first: by that one tells which calls were before. */
static int on_failure(void *ctx, const struct rec_failure *failure)
{
	struct capture *c = ctx;
	long n = ioctl_hooks_drain(c->hooks, on_kernel, c, &c->kernel_watermark);

	return n < 0 ? (int)n
		     : capture_put(c, REC_FAILURE, REC_SOURCE_RECORDER, failure, sizeof(*failure));
}

int capture_follow_devices(struct capture *c)
{
	int n = ioctl_hooks_scan_devices(c->hooks, c->o->device_root);

	while (c->announced_devices < n) {
		int i = c->announced_devices++;
		struct rec_device d = {
			.index = ioctl_hooks_device(c->hooks, i),
			.is_virtual = ioctl_hooks_device_is_virtual(c->hooks, i),
		};
		int rc = capture_put(c, REC_DEVICE, REC_SOURCE_RECORDER, &d, sizeof(d));
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* The hooks that are on a driver that has come. */
static int put_hooks(struct capture *c)
{
	const struct rec_hooks head = {.generation = ioctl_hooks_generation(c->hooks)};
	const char *const *names = ioctl_hooks_names(c->hooks);
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return -ENOMEM;
	while (*names) {
		fwrite(*names, strlen(*names) + 1, 1, f);
		names++;
	}
	if (fclose(f) != 0)
		return -ENOMEM;
	return rec_writer_frame(
		c->rec, REC_HOOKS, REC_SOURCE_RECORDER, &head, sizeof(head), text, size);
}

/* The driver has come or gone. */
static int put_module(struct capture *c)
{
	const struct driver_module *m = ioctl_hooks_module(c->hooks);
	const struct rec_ladder_step *step = ioctl_hooks_ladder(c->hooks);
	struct rec_module head = {.generation = ioctl_hooks_generation(c->hooks),
		.loaded = m->present,
		.calls_unseen_ns = ioctl_hooks_unseen(c->hooks).calls_ns,
		.inside_unseen_ns = ioctl_hooks_unseen(c->hooks).inside_ns};
	struct rec_module_step rows[MODULES_STEPS];
	size_t n = 0;
	int rc;

	memcpy(head.version, m->version, strnlen(m->version, sizeof(head.version)));
	memcpy(head.srcversion, m->srcversion, strnlen(m->srcversion, sizeof(head.srcversion)));
	memset(rows, 0, sizeof(rows));
	for (; m->present && step->family && n < MODULES_STEPS; step++, n++) {
		memcpy(rows[n].family, step->family, strnlen(step->family, sizeof(rows[n].family)));
		memcpy(rows[n].step, step->step, strnlen(step->step, sizeof(rows[n].step)));
		memcpy(rows[n].result, step->result, strnlen(step->result, sizeof(rows[n].result)));
	}
	rc = rec_writer_frame(c->rec, REC_MODULE, REC_SOURCE_RECORDER, &head, sizeof(head), rows,
		n * sizeof(*rows));
	return rc < 0 || !m->present ? rc : put_hooks(c);
}

static int drain(struct capture *c)
{
	/* Runtimes first: what a span contains is then at least as complete as the span. */
	unsigned rounds = c->ended ? LAST_POLLS : 1;
	long n;

	/* One poll takes a bounded part; at the end there is no later one. */
	do
		n = runtimes_poll(c->runtimes, c->ended);
	while (n > 0 && --rounds);
	if (n < 0)
		return (int)n;
	c->drained += (uint64_t)n;
	n = ioctl_hooks_driver_changed(c->hooks) ? capture_follow_devices(c) : 0;
	n = n < 0 ? n : ioctl_hooks_follow(c->hooks);
	if (n > 0)
		n = put_module(c);
	if (n < 0)
		return (int)n;
	n = ioctl_hooks_drain(c->hooks, on_kernel, c, &c->kernel_watermark);
	if (n < 0)
		return (int)n;
	c->drained += (uint64_t)n;
	return 0;
}

/* ---- the loop ----------------------------------------------------------------------------- */

static int sample(struct capture *c)
{
	int rc = rec_put_clock(c->rec);

	if (rc == 0)
		rc = capture_put_cpus(c);
	if (rc == 0)
		rc = residents_sample(&c->residents, c->rec, RESIDENTS_ROUND);
	return rc < 0 ? rc : counter_frames_put_cost(&c->counters);
}

static int on_tick(struct capture *c)
{
	uint64_t expirations;
	int rc;

	if (read(c->tick_fd, &expirations, sizeof(expirations)) < 0)
		return 0;
	c->drained = 0;
	rc = drain(c);
	c->ticks++;
	/* Behind the data that they close off; without any they can wait. */
	if (rc == 0 && (c->drained || c->ticks % TICKS_PER_FLUSH == 0))
		rc = put_watermarks(c);
	if (rc == 0 && c->ticks % TICKS_PER_FLUSH == 0) {
		/* No older than the records that are flushed with them. */
		rc = counter_frames_put(&c->counters);
		if (rc == 0)
			rc = rec_writer_flush(c->rec);
		/* Last: a virtual device that hangs keeps us here. */
		if (rc == 0)
			rc = capture_follow_devices(c);
	}
	if (rc == 0 && c->ticks % TICKS_PER_SAMPLE == 0)
		rc = sample(c);
	return rc;
}

/* A far-away realtime timer: reading it fails with ECANCELED when the clock is set. */
static int arm_clock_watch(int fd)
{
	struct itimerspec far = {.it_value = {.tv_sec = INT32_MAX}};

	return timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &far, NULL);
}

static int on_clock_set(struct capture *c)
{
	uint64_t expirations;

	if (read(c->set_fd, &expirations, sizeof(expirations)) < 0 && errno != ECANCELED)
		return 0;
	arm_clock_watch(c->set_fd);
	return rec_put_clock(c->rec);
}

static void on_signal(struct capture *c)
{
	struct signalfd_siginfo si;

	if (read(c->signal_fd, &si, sizeof(si)) != (ssize_t)sizeof(si))
		return;
	if (c->o->target_count) { /* nobody else's */
		c->ended = true;
		c->end_reason = REC_END_ASKED;
		return;
	}
	if (si.ssi_code <= 0 && c->command.pid > 0) /* sent by a process, to us alone */
		kill(c->command.pid, (int)si.ssi_signo);
	if (si.ssi_signo == SIGINT && ++c->sigints == 2) {
		c->ended = true;
		c->end_reason = 1;
	}
}

/* A process that was attached to has ended. */
static void one_less(struct capture *c, int pidfd)
{
	epoll_ctl(c->epoll_fd, EPOLL_CTL_DEL, pidfd, NULL);
	c->ended = --c->attached == 0;
}

static int dispatch(struct capture *c, int fd)
{
	if (fd == c->tick_fd)
		return on_tick(c);
	if (fd == c->set_fd)
		return on_clock_set(c);
	if (fd == runtimes_fd(c->runtimes))
		return runtimes_serve(c->runtimes);
	if (fd == c->signal_fd) {
		on_signal(c);
		return 0;
	}
	if (fd == c->end_fd) {
		c->ended = true;
		c->end_reason = REC_END_ASKED;
	} else if (fd == c->command.pidfd) {
		c->ret->wait_status = command_reap(&c->command);
		c->ended = true;
	} else {
		one_less(c, fd);
	}
	return 0;
}

static int loop(struct capture *c)
{
	while (!c->ended) {
		struct epoll_event ev[8];
		int n = epoll_wait(c->epoll_fd, ev, 8, -1);

		for (int i = 0; i < n; i++) {
			int rc = dispatch(c, ev[i].data.fd);
			if (rc < 0)
				return rc;
		}
	}
	return 0;
}

int capture_watch(struct capture *c, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

static int open_loop(struct capture *c)
{
	struct itimerspec tick = {.it_interval = {.tv_nsec = DRAIN_MS * 1000000L},
		.it_value = {.tv_nsec = DRAIN_MS * 1000000L}};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGQUIT);
	sigprocmask(SIG_BLOCK, &set, &c->old_mask);
	c->masked = true;
	c->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	c->tick_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	c->set_fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	c->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (c->epoll_fd < 0 || c->tick_fd < 0 || c->set_fd < 0 || c->signal_fd < 0)
		return -errno;
	if (timerfd_settime(c->tick_fd, 0, &tick, NULL) < 0)
		return -errno;
	arm_clock_watch(c->set_fd);
	int fds[] = {c->tick_fd, c->set_fd, c->signal_fd, runtimes_fd(c->runtimes)};
	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++) {
		int rc = capture_watch(c, fds[i]);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* Hooks off, last drain, last counters, end frame.  Calls that go on do not change the counters. */
static int finish(struct capture *c)
{
	int rc;

	runtimes_disable(c->runtimes);
	runtimes_serve(c->runtimes); /* an announcement that came with the last breath */
	rc = ioctl_hooks_stop(c->hooks, on_kernel, c, &c->kernel_watermark);
	if (rc == 0)
		rc = drain(c);
	if (rc == 0)
		rc = counter_frames_put(&c->counters);
	if (rc == 0)
		rc = rec_writer_flush(c->rec); /* its bytes are counted */
	if (rc == 0)
		rc = sample(c);
	if (rc == 0)
		rc = put_watermarks(c);
	if (rc == 0)
		rc = profiles_collect(&c->profiles, c->ret->rec_path, c->rec);
	c->ret->profiles_failed = c->profiles.failed;
	c->ret->profile_error = c->profiles.error;
	if (rc == 0)
		rc = rec_put_end(c->rec, c->ret->wait_status, (enum rec_end_reason)c->end_reason);
	return rc < 0 ? rc : rec_writer_flush(c->rec);
}

/* ---- start and end ------------------------------------------------------------------------ */

/* What came while the loop ran is done with; what comes from now on is the caller's. */
static void restore_signals(struct capture *c)
{
	struct signalfd_siginfo si;

	if (!c->masked)
		return;
	while (c->signal_fd >= 0 && read(c->signal_fd, &si, sizeof(si)) == (ssize_t)sizeof(si))
		;
	sigprocmask(SIG_SETMASK, &c->old_mask, NULL);
	c->masked = false;
}

/* The command is left to itself; its status is still awaited, and signals go on to it as before. */
static void wait_for_command(struct capture *c)
{
	const int done[] = {c->tick_fd, c->set_fd, runtimes_fd(c->runtimes)};

	runtimes_disable(c->runtimes);
	ioctl_hooks_close(c->hooks);
	c->hooks = NULL;
	for (size_t i = 0; i < sizeof(done) / sizeof(*done); i++)
		epoll_ctl(c->epoll_fd, EPOLL_CTL_DEL, done[i], NULL);
	loop(c);
}

static int run(struct capture *c, char *const argv[])
{
	struct runtimes_sink sink = {.wants = wants,
		.on_process = on_process,
		.on_records = on_records,
		.on_name = on_name,
		.on_threads = on_threads,
		.on_failure = on_failure,
		.ctx = c};
	int rc = capture_check_clocks(c);

	if (rc == 0)
		rc = capture_open_hooks(c);
	if (rc < 0)
		return rc;
	ioctl_hooks_take_dma(c->hooks, on_dma, c);
	rc = runtimes_open(c->o->ring_capacity, REC_SOURCE_RUNTIME0, &sink, &c->runtimes);
	if (rc == 0)
		rc = open_loop(c);
	if (rc < 0)
		return capture_fail(c, CAPTURE_HOOKS, rc, "cannot set up the recorder");
	rc = capture_open_output(c);
	c->counters = (struct counter_frames){
		c->rec, c->hooks, c->runtimes, &c->residents, c->o->target_count > 0};
	if (rc == 0 && c->device_count == 0 && c->o->on_no_device)
		c->o->on_no_device(c->o->device_root);
	if (rc == 0)
		rc = argv ? capture_open_command(c, argv) : capture_open_attached(c);
	if (rc < 0)
		return rc;

	rc = loop(c);
	if (rc == 0)
		rc = finish(c);
	if (rc < 0)
		rec_writer_stop(c->rec, c->ret->wait_status);
	c->ret->rec_bytes = rec_writer_bytes(c->rec);
	int closed = rec_writer_close(c->rec);
	c->rec = NULL;
	if (rc == 0)
		rc = closed;
	if (rc < 0) {
		capture_fail(c, CAPTURE_RUN, rc, "the recording ends early");
		if (!c->ended && c->o->on_stopped)
			c->o->on_stopped(c->ret->why);
		if (argv)
			wait_for_command(c);
		else
			runtimes_disable(c->runtimes);
		return rc;
	}
	c->ret->stage = CAPTURE_DONE;
	return 0;
}

int capture_run(const struct capture_options *o, char *const argv[], struct capture_result *ret)
{
	struct capture *c = calloc(1, sizeof(*c));

	memset(ret, 0, sizeof(*ret));
	ret->wait_status = -1;
	if (!c) {
		ret->stage = CAPTURE_OUTPUT;
		snprintf(ret->why, sizeof(ret->why), "out of memory");
		return ret->error = -ENOMEM;
	}
	c->o = o;
	c->ret = ret;
	c->command = COMMAND_NONE;
	c->epoll_fd = c->tick_fd = c->set_fd = c->signal_fd = c->end_fd = -1;
	int rc = run(c, argv);
	restore_signals(c);
	command_close(&c->command);
	if (c->rec)
		rec_writer_close(c->rec);
	profiles_close(&c->profiles);
	runtimes_close(c->runtimes);
	ioctl_hooks_close(c->hooks);
	residents_free(&c->residents);
	cleanup_close(&c->epoll_fd);
	cleanup_close(&c->tick_fd);
	cleanup_close(&c->set_fd);
	cleanup_close(&c->signal_fd);
	cleanup_close(&c->end_fd);
	free(c);
	return rc;
}

void capture_result_free(struct capture_result *r)
{
	free(r->rec_path);
	r->rec_path = NULL;
}
