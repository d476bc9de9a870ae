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

#include "agent/collect/capture.h"
#include "agent/collect/command.h"
#include "agent/collect/counter_frames.h"
#include "agent/collect/host.h"
#include "agent/collect/ioctl_hooks.h"
#include "agent/collect/residents.h"
#include "agent/collect/runtimes.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/sampler.h"
#include "runtime/record/header.h"
#include "runtime/record/recording.h"

#define LAST_POLLS 64 /* when the command has ended; a runtime may go on writing */
#define DRAIN_MS 10
#define TICKS_PER_FLUSH 10   /* 100 ms */
#define TICKS_PER_SAMPLE 100 /* 1 s */

struct capture {
	const struct capture_options *o;
	struct capture_result *ret;
	struct rec_writer *rec;
	struct ioctl_hooks *hooks;
	struct runtimes *runtimes;
	struct counter_frames counters;
	struct command command;
	int epoll_fd, tick_fd, set_fd, signal_fd;
	unsigned ticks;
	unsigned sigints;
	uint32_t end_reason;
	bool ended;
	bool masked;
	sigset_t old_mask; /* what the caller had, if masked */
	unsigned made;	   /* components of the output directory that we made */
	uint64_t kernel_watermark;
	int device_count; /* known when the recording begins */
	int announced_devices;
	uint64_t drained; /* records of the last drain */
	struct residents residents;
};

static int put(
	struct capture *c, enum rec_type type, uint16_t source, const void *data, size_t size)
{
	return rec_writer_frame(c->rec, type, source, data, size, NULL, 0);
}

/* ---- frames of the recorder itself -------------------------------------------------------- */

static int put_clock(struct capture *c)
{
	struct clock_snapshot s = clock_snapshot_take();

	return put(c, REC_CLOCK, REC_SOURCE_RECORDER, &s, sizeof(s));
}

static int put_cpus(struct capture *c)
{
	static struct sampler_cpu rows[SAMPLER_MAX_CPUS];
	int n = sampler_cpus(rows, SAMPLER_MAX_CPUS);

	return n <= 0 ? 0 : put(c, REC_CPU, REC_SOURCE_RECORDER, rows, (size_t)n * sizeof(rows[0]));
}

static int put_watermarks(struct capture *c)
{
	struct runtime_source s;
	uint64_t mark;
	int rc = put(c, REC_WATERMARK, REC_SOURCE_KERNEL, &c->kernel_watermark, sizeof(mark));

	for (unsigned i = 0; rc == 0 && runtimes_get(c->runtimes, i, &s, &mark); i++)
		rc = put(c, REC_WATERMARK, s.source, &mark, sizeof(mark));
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
	return put(c, REC_KERNEL, REC_SOURCE_KERNEL, records, size);
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
	int rc = put(c, REC_PROCESS, s->source, &p, sizeof(p));
	return rc < 0 ? rc : residents_know(&c->residents, c->rec, p.pid);
}

static int on_records(void *ctx, const struct runtime_source *s, uint32_t nc_idx, uint32_t lane,
	const struct trace_record *records, size_t count)
{
	struct capture *c = ctx;
	struct rec_runtime head = {.nc_idx = nc_idx, .lane = lane};

	return rec_writer_frame(c->rec, REC_RUNTIME, s->source, &head, sizeof(head), records,
		count * sizeof(*records));
}

static int on_name(
	void *ctx, const struct runtime_source *s, uint64_t id, const char *text, uint32_t len)
{
	struct capture *c = ctx;
	struct rec_name head = {.id = id};

	return rec_writer_frame(c->rec, REC_NAME, s->source, &head, sizeof(head), text, len);
}

static int on_threads(
	void *ctx, const struct runtime_source *s, const struct rec_thread *rows, size_t count)
{
	struct capture *c = ctx;

	return put(c, REC_THREAD, s->source, rows, count * sizeof(*rows));
}

static int follow_devices(struct capture *c)
{
	int n = ioctl_hooks_scan_devices(c->hooks, c->o->device_root);

	while (c->announced_devices < n) {
		int i = c->announced_devices++;
		struct rec_device d = {
			.index = ioctl_hooks_device(c->hooks, i),
			.is_virtual = ioctl_hooks_device_is_virtual(c->hooks, i),
		};
		int rc = put(c, REC_DEVICE, REC_SOURCE_RECORDER, &d, sizeof(d));
		if (rc < 0)
			return rc;
	}
	return 0;
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
	n = ioctl_hooks_drain(c->hooks, on_kernel, c, &c->kernel_watermark);
	if (n < 0)
		return (int)n;
	c->drained += (uint64_t)n;
	return 0;
}

/* ---- the loop ----------------------------------------------------------------------------- */

static int sample(struct capture *c)
{
	int rc = put_clock(c);

	if (rc == 0)
		rc = put_cpus(c);
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
			rc = follow_devices(c);
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
	return put_clock(c);
}

static void on_signal(struct capture *c)
{
	struct signalfd_siginfo si;

	if (read(c->signal_fd, &si, sizeof(si)) != (ssize_t)sizeof(si))
		return;
	if (si.ssi_code <= 0 && c->command.pid > 0) /* sent by a process, to us alone */
		kill(c->command.pid, (int)si.ssi_signo);
	if (si.ssi_signo == SIGINT && ++c->sigints == 2) {
		c->ended = true;
		c->end_reason = 1;
	}
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
	if (fd == c->command.pidfd) {
		c->ret->wait_status = command_reap(&c->command);
		c->ended = true;
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

static int watch(struct capture *c, int fd)
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
		int rc = watch(c, fds[i]);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* Hooks off, last drain, last counters, end frame.  Calls that go on do not change the counters. */
static int finish(struct capture *c)
{
	struct rec_end end = {.wait_status = c->ret->wait_status, .reason = c->end_reason};
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
		rc = put(c, REC_END, REC_SOURCE_RECORDER, &end, sizeof(end));
	return rc < 0 ? rc : rec_writer_flush(c->rec);
}

/* ---- start and end ------------------------------------------------------------------------ */

static int fail(struct capture *c, enum capture_stage stage, int error, const char *what)
{
	c->ret->stage = stage;
	c->ret->error = error;
	if (what)
		snprintf(c->ret->why, sizeof(c->ret->why), "%s: %s", what, strerror(-error));
	return error;
}

static bool watches_virtual(const struct capture *c)
{
	for (int i = 0; i < c->device_count; i++)
		if (ioctl_hooks_device_is_virtual(c->hooks, i))
			return true;
	return false;
}

static int put_header(struct capture *c)
{
	_cleanup_free_ char *text = NULL;
	struct host h;

	host_read(&h, c->o->device_root, NULL);
	struct rec_header_info info = {
		.producer = "ntrace " NTRACE_VERSION,
		.instance_id = h.instance_id,
		.host = h.uts.nodename,
		.kernel = h.uts.release,
		.machine = h.uts.machine,
		.driver = h.driver[0] ? h.driver : NULL,
		.hooks = ioctl_hooks_names(c->hooks),
		.ladder = ioctl_hooks_ladder(c->hooks),
		.is_virtual = watches_virtual(c),
		.all_processes = c->o->all_processes,
		.kernel_ring_bytes = c->o->kernel_ring_bytes,
		.ring_capacity = c->o->ring_capacity,
	};
	int rc = rec_header_text(&info, &text);
	return rc < 0 ? rc : put(c, REC_HEADER, REC_SOURCE_RECORDER, text, strlen(text));
}

static int put_start(struct capture *c)
{
	struct rec_process p = {.pid = (uint32_t)c->command.pid};
	int rc = put_header(c);

	if (rc == 0)
		rc = put_clock(c);
	if (rc == 0)
		rc = put_cpus(c);
	if (rc == 0)
		rc = follow_devices(c);
	if (rc == 0)
		rc = put(c, REC_PROCESS, REC_SOURCE_KERNEL, &p, sizeof(p));
	return rc < 0 ? rc : rec_writer_flush(c->rec);
}

/* Removes the recording that was just begun, and the output directory if it was ours alone. */
static void discard(struct capture *c)
{
	char path[4200];

	rec_writer_close(c->rec);
	c->rec = NULL;
	snprintf(path, sizeof(path), "%s/" REC_SEGMENT_FORMAT, c->ret->rec_path, 0u);
	unlink(path);
	rmdir(c->ret->rec_path);
	file_mkdirs_undo(c->o->out_dir, c->made);
}

static int no_device_tree(struct capture *c, int error)
{
	const char *root = c->o->device_root;
	char what[256];

	if (!root)
		return fail(c, CAPTURE_DEVICES, error, "cannot look for devices in /dev");
	snprintf(what, sizeof(what), "no device tree at NTRACE_DEVICE_ROOT=%s", root);
	if (error != -ENOTCONN)
		return fail(c, CAPTURE_DEVICES, error, what);
	snprintf(c->ret->why, sizeof(c->ret->why),
		"the virtual device at %s has died; start it again", root);
	return fail(c, CAPTURE_DEVICES, error, NULL);
}

static int open_hooks(struct capture *c)
{
	struct ioctl_hooks_options ho = {
		.ring_bytes = c->o->kernel_ring_bytes, .all_processes = c->o->all_processes};
	int rc = ioctl_hooks_open(&ho, &c->hooks, c->ret->why, sizeof(c->ret->why));

	if (rc < 0)
		return fail(c, CAPTURE_HOOKS, rc, NULL);
	c->device_count = ioctl_hooks_scan_devices(c->hooks, c->o->device_root);
	return c->device_count < 0 ? no_device_tree(c, c->device_count) : 0;
}

static int open_output(struct capture *c)
{
	char what[4200];
	int rc = file_mkdirs(c->o->out_dir, &c->made);

	snprintf(what, sizeof(what), "cannot create %s", c->o->out_dir);
	if (rc < 0)
		return fail(c, CAPTURE_OUTPUT, rc, what);
	if (asprintf(&c->ret->rec_path, "%s/%s", c->o->out_dir, REC_DIR) < 0) {
		c->ret->rec_path = NULL;
		file_mkdirs_undo(c->o->out_dir, c->made);
		return fail(c, CAPTURE_OUTPUT, -ENOMEM, what);
	}
	snprintf(what, sizeof(what), "cannot create %s", c->ret->rec_path);
	rc = rec_writer_open(c->ret->rec_path, &c->rec);
	if (rc < 0)
		file_mkdirs_undo(c->o->out_dir, c->made);
	return rc < 0 ? fail(c, CAPTURE_OUTPUT, rc, what) : 0;
}

static int open_command(struct capture *c, char *const argv[])
{
	int rc = command_prepare(&c->command, argv, runtimes_socket_name(c->runtimes), &c->old_mask,
		runtimes_old_limit(c->runtimes));

	if (rc == 0)
		rc = ioctl_hooks_track(c->hooks, c->command.pid);
	if (rc == 0)
		rc = watch(c, c->command.pidfd);
	if (rc == 0)
		rc = put_start(c);
	if (rc < 0) {
		discard(c);
		return fail(c, CAPTURE_OUTPUT, rc, "cannot begin the recording");
	}
	rc = command_go(&c->command);
	if (rc < 0) {
		discard(c);
		return fail(c, CAPTURE_EXEC, rc, argv[0]);
	}
	return 0;
}

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

static int check_clocks(struct capture *c)
{
	const char *name;
	char what[64];
	int rc = clock_check(&name);

	if (rc == 0)
		return 0;
	snprintf(what, sizeof(what), "cannot read %s", name);
	return fail(c, CAPTURE_CLOCKS, rc, what);
}

static int run(struct capture *c, char *const argv[])
{
	struct runtimes_sink sink = {.wants = wants,
		.on_process = on_process,
		.on_records = on_records,
		.on_name = on_name,
		.on_threads = on_threads,
		.ctx = c};
	int rc = check_clocks(c);

	if (rc == 0)
		rc = open_hooks(c);
	if (rc < 0)
		return rc;
	rc = runtimes_open(c->o->ring_capacity, REC_SOURCE_RUNTIME0, &sink, &c->runtimes);
	if (rc == 0)
		rc = open_loop(c);
	if (rc < 0)
		return fail(c, CAPTURE_HOOKS, rc, "cannot set up the recorder");
	rc = open_output(c);
	c->counters = (struct counter_frames){c->rec, c->hooks, c->runtimes, &c->residents};
	if (rc == 0 && c->device_count == 0 && c->o->on_no_device)
		c->o->on_no_device(c->o->device_root);
	if (rc == 0)
		rc = open_command(c, argv);
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
		fail(c, CAPTURE_RUN, rc, "the recording ends early");
		if (!c->ended && c->o->on_stopped)
			c->o->on_stopped(c->ret->why);
		wait_for_command(c);
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
	c->epoll_fd = c->tick_fd = c->set_fd = c->signal_fd = -1;
	int rc = run(c, argv);
	restore_signals(c);
	command_close(&c->command);
	if (c->rec)
		rec_writer_close(c->rec);
	runtimes_close(c->runtimes);
	ioctl_hooks_close(c->hooks);
	residents_free(&c->residents);
	cleanup_close(&c->epoll_fd);
	cleanup_close(&c->tick_fd);
	cleanup_close(&c->set_fd);
	cleanup_close(&c->signal_fd);
	free(c);
	return rc;
}

void capture_result_free(struct capture_result *r)
{
	free(r->rec_path);
	r->rec_path = NULL;
}
