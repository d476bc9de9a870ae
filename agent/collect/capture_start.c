/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture_start.c - how a capture begins: clocks, hooks, output, then the command or the processes to attach to.
 *
 * Nothing is left behind by a beginning that fails: hooks go with their handle, the recording that was just begun
 * is removed, and so is the directory if it was made for it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "agent/collect/capture_parts.h"
#include "agent/collect/time_shift.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/host.h"
#include "runtime/record/header.h"
#include "runtime/record/rec_put.h"

int capture_fail(struct capture *c, enum capture_stage stage, int error, const char *what)
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
		.attached = c->o->target_count > 0,
		.all_processes = c->o->all_processes,
		.kernel_ring_bytes = c->o->kernel_ring_bytes,
		.ring_capacity = c->o->ring_capacity,
	};
	int rc = rec_header_text(&info, &text);
	return rc < 0 ? rc : capture_put(c, REC_HEADER, REC_SOURCE_RECORDER, text, strlen(text));
}

static int put_start(struct capture *c)
{
	int rc = put_header(c);

	if (rc == 0)
		rc = rec_put_clock(c->rec);
	if (rc == 0)
		rc = capture_put_cpus(c);
	if (rc == 0)
		rc = capture_follow_devices(c);
	return rc < 0 ? rc : rec_writer_flush(c->rec);
}

/* Has the hooks follow it, and the loop its end. */
static int follow_process(struct capture *c, pid_t pid, int pidfd)
{
	struct rec_process p = {.pid = (uint32_t)pid};
	int rc = ioctl_hooks_track(c->hooks, pid);

	if (rc == 0)
		rc = capture_watch(c, pidfd);
	return rc < 0 ? rc : capture_put(c, REC_PROCESS, REC_SOURCE_KERNEL, &p, sizeof(p));
}

/* Removes the recording that was just begun, and the output directory if it was ours alone. */
static void discard(struct capture *c)
{
	char path[4200];

	rec_writer_close(c->rec);
	c->rec = NULL;
	profiles_close(&c->profiles);
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
		return capture_fail(c, CAPTURE_DEVICES, error, "cannot look for devices in /dev");
	snprintf(what, sizeof(what), "no device tree at NTRACE_DEVICE_ROOT=%s", root);
	if (error != -ENOTCONN)
		return capture_fail(c, CAPTURE_DEVICES, error, what);
	snprintf(c->ret->why, sizeof(c->ret->why),
		"the virtual device at %s has died; start it again", root);
	return capture_fail(c, CAPTURE_DEVICES, error, NULL);
}

/* Have all the processes that are to be attached to a runtime of ours? */
static bool has_rings(const struct capture *c)
{
	unsigned n = 0;

	while (n < c->o->target_count && c->o->targets[n].memfd >= 0)
		n++;
	return n && n == c->o->target_count;
}

int capture_open_hooks(struct capture *c)
{
	struct ioctl_hooks_options ho = {.ring_bytes = c->o->kernel_ring_bytes,
		.all_processes = c->o->all_processes,
		.devices = host_device_count(c->o->device_root),
		.rate = c->o->rate,
		.cost = c->o->hook_cost,
		.off = c->o->hooks_off,
		.level = c->o->hooks};
	int rc = ioctl_hooks_open(&ho, &c->hooks, c->ret->why, sizeof(c->ret->why));

	/* Rings can be read without them, but not a wish fulfilled that makes no sense. */
	if (rc < 0 && rc != -EINVAL && has_rings(c)) {
		if (c->o->on_no_hooks)
			c->o->on_no_hooks(c->ret->why);
		rc = ioctl_hooks_open_none(rc, &c->hooks);
	}
	if (rc < 0)
		return capture_fail(c, CAPTURE_HOOKS, rc, NULL);
	c->device_count = ioctl_hooks_scan_devices(c->hooks, c->o->device_root);
	if (c->device_count < 0 && !*ioctl_hooks_names(c->hooks))
		c->device_count = 0; /* nothing would be seen of them */
	return c->device_count < 0 ? no_device_tree(c, c->device_count) : 0;
}

int capture_open_output(struct capture *c)
{
	char what[4200];
	int rc = file_mkdirs(c->o->out_dir, &c->made);

	snprintf(what, sizeof(what), "cannot create %s", c->o->out_dir);
	if (rc < 0)
		return capture_fail(c, CAPTURE_OUTPUT, rc, what);
	if (asprintf(&c->ret->rec_path, "%s/%s", c->o->out_dir, REC_DIR) < 0) {
		c->ret->rec_path = NULL;
		file_mkdirs_undo(c->o->out_dir, c->made);
		return capture_fail(c, CAPTURE_OUTPUT, -ENOMEM, what);
	}
	snprintf(what, sizeof(what), "cannot create %s", c->ret->rec_path);
	rc = rec_writer_open(c->ret->rec_path, &c->rec);
	if (rc < 0)
		file_mkdirs_undo(c->o->out_dir, c->made);
	return rc < 0 ? capture_fail(c, CAPTURE_OUTPUT, rc, what) : 0;
}

int capture_open_command(struct capture *c, char *const argv[])
{
	int rc = c->o->device_profiles ? profiles_open(&c->profiles, c->ret->rec_path) : 0;

	if (rc == 0)
		rc = command_prepare(&c->command, argv, runtimes_socket_name(c->runtimes),
			c->profiles.dir, &c->old_mask, runtimes_old_limit(c->runtimes));
	if (rc == 0)
		rc = put_start(c);
	if (rc == 0)
		rc = follow_process(c, c->command.pid, c->command.pidfd);
	if (rc < 0) {
		discard(c);
		return capture_fail(c, CAPTURE_OUTPUT, rc, "cannot begin the recording");
	}
	rc = command_go(&c->command);
	if (rc < 0) {
		discard(c);
		return capture_fail(c, CAPTURE_EXEC, rc, argv[0]);
	}
	return 0;
}

/* The first one or none: what the others have been asked for goes with the runtimes' handle. */
static int attach_all(struct capture *c)
{
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < c->o->target_count; i++) {
		struct attach_target *t = &c->o->targets[i];

		rc = follow_process(c, t->pid, t->pidfd);
		if (rc < 0) {
			snprintf(c->ret->why, sizeof(c->ret->why), "process %d: %s", (int)t->pid,
				strerror(-rc));
		} else if (t->memfd >= 0) {
			rc = runtimes_attach(c->runtimes, t->pid, t->memfd, t->maps, c->ret->why,
				sizeof(c->ret->why));
			t->memfd = -1;
		}
		c->attached++;
	}
	return rc;
}

static int arm_end(struct capture *c)
{
	struct itimerspec end = {.it_value = {.tv_sec = (time_t)(c->o->duration_ns / 1000000000u),
					 .tv_nsec = (long)(c->o->duration_ns % 1000000000u)}};

	if (!c->o->duration_ns)
		return 0;
	c->end_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (c->end_fd < 0 || timerfd_settime(c->end_fd, 0, &end, NULL) < 0)
		return -errno;
	return capture_watch(c, c->end_fd);
}

int capture_open_attached(struct capture *c)
{
	int rc = put_start(c);

	if (rc == 0)
		rc = arm_end(c);
	if (rc < 0) {
		discard(c);
		return capture_fail(c, CAPTURE_OUTPUT, rc, "cannot begin the recording");
	}
	rc = attach_all(c);
	if (rc < 0) {
		discard(c);
		return capture_fail(c, CAPTURE_ATTACH, rc, NULL);
	}
	if (c->o->on_attached)
		c->o->on_attached();
	return 0;
}

int capture_check_clocks(struct capture *c)
{
	const char *name;
	char what[64];
	int64_t own_ns;
	int rc = clock_check(&name);

	if (rc == 0 && time_shift_own(&own_ns) == 0 && own_ns != 0)
		return capture_fail(c, CAPTURE_CLOCKS, -EOPNOTSUPP,
			"the boot clock is set off from the machine's by a time namespace");
	if (rc == 0)
		return 0;
	snprintf(what, sizeof(what), "cannot read %s", name);
	return capture_fail(c, CAPTURE_CLOCKS, rc, what);
}
