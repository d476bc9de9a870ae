/* SPDX-License-Identifier: Apache-2.0 */
/* vdev_harness.c - a virtual device for tests, and its raw client; see vdev_harness.h. */
#include "tests/unit/vdev_harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/vdev/root.h"
#include "vmlinux/ioctl_table.h"
#include "vmlinux/neuron_args.h"

extern char **environ;

#define MAX_ARGS 12
#define PATIENCE_MS 10000
#define TEST_PREFIX "ntrace-test-"
#define STALE_S 120

const char *vdev_missing(void)
{
	if (geteuid() != 0)
		return "root (to mount FUSE)";
	return access("/dev/fuse", R_OK | W_OK) == 0 ? NULL : "/dev/fuse";
}

const char *vdev_program(void)
{
	static char path[512];
	const char *build = getenv("BUILD");

	snprintf(path, sizeof(path), "%s/bin/ntrace-vdev", build ? build : "build");
	return path;
}

void vdev_new_root(char root[64])
{
	static unsigned count;

	snprintf(root, 64, "/tmp/" TEST_PREFIX "vdev-%d-%u", getpid(), count++);
}

/* ---- sweeping ---------------------------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

/* True when a dead device was there and is gone. */
static bool sweep_root(const char *path)
{
	_cleanup_free_ char *lock = NULL;
	struct vdev_root root;
	struct stat st;

	if (asprintf(&lock, "%s/.lock", path) < 0) {
		lock = NULL;
		return false;
	}
	if (lstat(lock, &st) < 0 || st.st_uid != geteuid() || time(NULL) - st.st_mtime < STALE_S ||
		vdev_root_open(&root, path) < 0)
		return false;
	vdev_root_close(&root);
	return true;
}

static void sweep_directory(const char *parent)
{
	DIR *dir = opendir(parent);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char path[512], below[540];

		if (strncmp(entry->d_name, TEST_PREFIX, strlen(TEST_PREFIX)) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", parent, entry->d_name);
		snprintf(below, sizeof(below), "%s/root", path);
		if (sweep_root(path) || sweep_root(below))
			nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	}
	if (dir)
		closedir(dir);
}

void vdev_sweep_tests(void)
{
	static bool done;
	const char *tmp = getenv("TMPDIR");

	if (done)
		return;
	done = true;
	sweep_directory("/tmp");
	if (tmp && *tmp && strcmp(tmp, "/tmp") != 0)
		sweep_directory(tmp);
}

/* ---- the program ------------------------------------------------------------------------- */

static pid_t spawn(const char *const *args, int out)
{
	char *argv[MAX_ARGS + 2] = {(char *)(uintptr_t)vdev_program()};
	posix_spawn_file_actions_t actions;
	pid_t pid = -1;

	for (int i = 0; i < MAX_ARGS && args[i]; i++)
		argv[i + 1] = (char *)(uintptr_t)args[i];
	posix_spawn_file_actions_init(&actions);
	if (out >= 0)
		posix_spawn_file_actions_adddup2(&actions, out, 1);
	else
		posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	if (out < 0)
		posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	if (posix_spawn(&pid, argv[0], &actions, NULL, argv, environ) != 0)
		pid = -1;
	posix_spawn_file_actions_destroy(&actions);
	return pid;
}

static int status_code(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int vdev_exec(const char *const *args)
{
	pid_t pid = spawn(args, -1);
	int status;

	return pid < 0 || waitpid(pid, &status, 0) != pid ? -1 : status_code(status);
}

static bool wait_ready(int fd)
{
	char text[256];
	size_t used = 0;

	while (used < sizeof(text) - 1) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		ssize_t n;

		if (poll(&p, 1, PATIENCE_MS) <= 0)
			return false;
		n = read(fd, text + used, sizeof(text) - 1 - used);
		if (n <= 0)
			return false;
		used += (size_t)n;
		if (memchr(text, '\n', used))
			return strncmp(text, "ready ", 6) == 0;
	}
	return false;
}

bool vdev_run_restart(struct vdev_run *run, const char *const *args)
{
	const char *argv[MAX_ARGS + 1] = {"-q", "--root", run->root};
	int out[2];
	bool ready;

	vdev_sweep_tests();
	for (int i = 0; args && args[i] && i < MAX_ARGS - 3; i++)
		argv[i + 3] = args[i];
	if (pipe2(out, O_CLOEXEC) < 0)
		return false;
	run->pid = spawn(argv, out[1]);
	close(out[1]);
	ready = run->pid > 0 && wait_ready(out[0]);
	close(out[0]);
	return ready;
}

bool vdev_run_start(struct vdev_run *run, const char *const *args)
{
	*run = (struct vdev_run){0};
	vdev_new_root(run->root);
	return vdev_run_restart(run, args);
}

int vdev_run_stop(struct vdev_run *run, int signal)
{
	_cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, run->pid, 0);
	struct pollfd p = {.fd = pidfd, .events = POLLIN};
	int status = -1;

	if (signal)
		kill(run->pid, signal);
	if (poll(&p, 1, PATIENCE_MS) != 1)
		return -1;
	if (waitpid(run->pid, &status, 0) != run->pid)
		status = -1;
	run->pid = 0;
	return status;
}

void vdev_run_end(struct vdev_run *run)
{
	if (run->pid > 0 && vdev_run_stop(run, SIGTERM) < 0)
		vdev_run_stop(run, SIGKILL);
}

long long vdev_stat(const struct vdev_run *run, const char *name)
{
	_cleanup_free_ char *text = NULL;
	char path[96], *save = NULL;
	size_t size, length = strlen(name);

	snprintf(path, sizeof(path), "%s/stats", run->root);
	if (file_read(path, 1 << 20, &text, &size) < 0)
		return -1;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (strncmp(line, name, length) == 0 && line[length] == ' ')
			return atoll(line + length);
	return -1;
}

static bool out_of_patience(const struct timespec *start)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec - start->tv_sec > PATIENCE_MS / 1000;
}

bool vdev_wait_stat(const struct vdev_run *run, const char *name, long long value)
{
	struct timespec start;

	clock_gettime(CLOCK_MONOTONIC, &start);
	while (vdev_stat(run, name) < value) {
		if (out_of_patience(&start))
			return false;
		sched_yield();
	}
	return true;
}

bool vdev_stat_settles(const struct vdev_run *run, const char *name, long long value)
{
	struct timespec start;

	clock_gettime(CLOCK_MONOTONIC, &start);
	while (vdev_stat(run, name) != value) {
		if (out_of_patience(&start))
			return false;
		sched_yield();
	}
	return true;
}

/* ---- the client -------------------------------------------------------------------------- */

int vdev_open(const struct vdev_run *run, unsigned device, int flags)
{
	char path[96];
	int fd;

	snprintf(path, sizeof(path), "%s/dev/neuron%u", run->root, device);
	fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int vdev_call(int fd, unsigned long cmd, void *arg)
{
	int r = ioctl(fd, cmd, arg);

	return r < 0 ? -errno : r;
}

int vdev_alloc(int fd, uint64_t size, uint64_t *ret_handle)
{
	struct neuron_mem_alloc_v2mt arg = {
		.size = size, .align = 4096, .mem_handle = (uintptr_t)ret_handle};

	return vdev_call(fd, NEURON_IOCTL_MEM_ALLOC_V2MT64, &arg);
}

static int copy(int fd, uint64_t handle, uint64_t offset, const void *data, uint64_t size, bool to)
{
	struct neuron_mem_buf_copy64 arg = {
		.mem_handle = handle,
		.buffer = (uintptr_t)data,
		.size = size,
		.offset = offset,
		.copy_to_mem_handle = to,
	};

	return vdev_call(fd, NEURON_IOCTL_MEM_BUF_COPY64, &arg);
}

int vdev_write(int fd, uint64_t handle, uint64_t offset, const void *data, uint64_t size)
{
	return copy(fd, handle, offset, data, size, true);
}

int vdev_read(int fd, uint64_t handle, uint64_t offset, void *data, uint64_t size)
{
	return copy(fd, handle, offset, data, size, false);
}

int vdev_connect(const struct vdev_run *run)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/mem.sock", run->root);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		int error = -errno;

		close(fd);
		return error;
	}
	return fd;
}

int vdev_ask(int sock, unsigned device, uint64_t handle, uint64_t *ret_size)
{
	struct vdev_mem_request request = {.device = device, .mem_handle = handle};
	struct vdev_mem_answer answer = {.status = -EPROTO};
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {&answer, sizeof(answer)};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof(control.space),
	};
	int fd = -EPROTO;

	if (send(sock, &request, sizeof(request), MSG_NOSIGNAL) < 0 ||
		recvmsg(sock, &msg, MSG_CMSG_CLOEXEC) != sizeof(answer))
		return -EPIPE;
	*ret_size = answer.size;
	if (answer.status < 0)
		return answer.status;
	if (CMSG_FIRSTHDR(&msg))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

void *vdev_map(const struct vdev_run *run, unsigned device, uint64_t handle, uint64_t *ret_size)
{
	_cleanup_close_ int sock = vdev_connect(run);
	_cleanup_close_ int fd = sock < 0 ? sock : vdev_ask(sock, device, handle, ret_size);
	void *map = fd < 0 ? MAP_FAILED
			   : mmap(NULL, *ret_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return map == MAP_FAILED ? NULL : map;
}

int vdev_in_child(int (*fn)(void *), void *arg)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(fn(arg));
	return pid < 0 || waitpid(pid, &status, 0) != pid ? -1 : status_code(status);
}

int vdev_set_cinit(int fd, unsigned core, uint32_t state, uint32_t *ret_state)
{
	struct neuron_cinit_set a = {.nc_id = core, .state = state};
	int r = vdev_call(fd, NEURON_IOCTL_CINIT_SET_STATE, &a);

	*ret_state = a.new_state;
	return r;
}

void *vdev_start_cinit(void *arg)
{
	struct vdev_cinit_waiter *w = arg;

	w->result = vdev_set_cinit(w->fd, 0, NEURON_CINIT_STARTED, &w->state);
	return NULL;
}

/* ---- a core ------------------------------------------------------------------------------ */

int vdev_notes_open(struct vdev_notes *n, const struct vdev_run *run, int fd, unsigned device,
	const struct neuron_notifications_init_v2 *which)
{
	struct neuron_notifications_init_v2 nq = *which;
	int r;

	*n = (struct vdev_notes){0};
	nq.on_host_memory = 1;
	r = vdev_call(fd, NEURON_IOCTL_NOTIFICATIONS_INIT_V2, &nq);
	if (r < 0)
		return r;
	n->ring = vdev_map(run, device, nq.mem_handle, &n->ring_size);
	n->slots = n->ring_size / sizeof(*n->ring);
	return n->ring ? 0 : -EPROTO;
}

void vdev_notes_close(struct vdev_notes *n)
{
	if (n->ring)
		munmap(n->ring, n->ring_size);
	n->ring = NULL;
}

bool vdev_notes_has(const struct vdev_notes *n)
{
	const struct notification *slot = &n->ring[n->seen % n->slots];
	uint64_t head = __atomic_load_n((const uint64_t *)(const void *)slot, __ATOMIC_ACQUIRE);
	uint8_t wanted = n->seen / n->slots % 2 ? 0 : NOTE_PHASE;

	/* A slot of the first lap is zero until written. */
	return head && (head >> 24 & NOTE_PHASE) == wanted;
}

bool vdev_notes_next(struct vdev_notes *n, struct notification *ret)
{
	struct timespec start;

	clock_gettime(CLOCK_MONOTONIC, &start);
	while (!vdev_notes_has(n)) {
		if (out_of_patience(&start))
			return false;
		sched_yield();
	}
	*ret = n->ring[n->seen++ % n->slots];
	return true;
}

int vdev_client_bind(const struct vdev_client *c)
{
	struct neuron_dma_queue_init queue = {.eng_id = VDEV_EXEC_ENGINE,
		.qid = c->core,
		.tx_handle = c->program,
		.rx_handle = c->table};

	return vdev_call(c->fd, NEURON_IOCTL_DMA_QUEUE_INIT, &queue);
}

int vdev_client_release(const struct vdev_client *c)
{
	struct neuron_dma_queue_release release = {VDEV_EXEC_ENGINE, c->core};

	return vdev_call(c->fd, NEURON_IOCTL_DMA_QUEUE_RELEASE, &release);
}

int vdev_client_open_on(struct vdev_client *c, const struct vdev_run *run, int fd, unsigned device,
	unsigned core, uint32_t ring_size)
{
	const struct neuron_notifications_init_v2 nq = {
		.nq_dev_id = core,
		.nq_dev_type = VDEV_NQ_DEV_TYPE_CORE,
		.nq_type = VDEV_NQ_TYPE_NOTIFY,
		.engine_index = VDEV_NQ_ENGINE_INDEX,
		.size = ring_size,
	};
	int r;

	*c = (struct vdev_client){.fd = fd, .core = core};
	r = vdev_notes_open(&c->notes, run, fd, device, &nq);
	if (r == 0)
		r = vdev_alloc(fd,
			sizeof(struct vdev_program) +
				VDEV_MAX_INSTRUCTIONS * sizeof(struct vdev_instruction),
			&c->program);
	if (r == 0)
		r = vdev_alloc(fd, VDEV_MAX_BINDINGS * sizeof(struct vdev_binding), &c->table);
	return r < 0 ? r : vdev_client_bind(c);
}

int vdev_client_open(struct vdev_client *c, const struct vdev_run *run, int fd, unsigned core,
	uint32_t ring_size)
{
	return vdev_client_open_on(c, run, fd, 0, core, ring_size);
}

void vdev_client_close(struct vdev_client *c)
{
	vdev_notes_close(&c->notes);
}

int vdev_client_load_program(struct vdev_client *c, struct vdev_program header,
	const struct vdev_instruction *steps, uint32_t step_count,
	const struct vdev_binding *bindings, uint32_t binding_count)
{
	int r;

	header.magic = VDEV_PROGRAM_MAGIC;
	header.instruction_count = step_count;
	header.binding_count = binding_count;
	r = vdev_write(c->fd, c->program, 0, &header, sizeof(header));
	if (r == 0)
		r = vdev_write(
			c->fd, c->program, sizeof(header), steps, step_count * sizeof(*steps));
	if (r == 0)
		r = vdev_write(c->fd, c->table, 0, bindings, binding_count * sizeof(*bindings));
	return r;
}

int vdev_client_load(struct vdev_client *c, const struct vdev_instruction *steps,
	uint32_t step_count, const struct vdev_binding *bindings, uint32_t binding_count)
{
	return vdev_client_load_program(c, (struct vdev_program){.flags = VDEV_PROGRAM_SERIAL},
		steps, step_count, bindings, binding_count);
}

int vdev_client_launch(struct vdev_client *c, uint32_t number)
{
	struct neuron_dma_queue_copy_start start = {
		.eng_id = VDEV_EXEC_ENGINE, .qid = c->core, .tx_desc_count = number};

	return vdev_call(c->fd, NEURON_IOCTL_DMA_QUEUE_COPY_START, &start);
}

bool vdev_client_has(const struct vdev_client *c)
{
	return vdev_notes_has(&c->notes);
}

bool vdev_client_next(struct vdev_client *c, struct notification *ret)
{
	return vdev_notes_next(&c->notes, ret);
}

bool vdev_client_run(struct vdev_client *c, uint32_t number, struct notification *ret_start,
	struct notification *ret_end)
{
	return vdev_client_launch(c, number) == 0 && vdev_client_next(c, ret_start) &&
	       ret_start->subtype == NOTE_START && vdev_client_next(c, ret_end) &&
	       ret_end->subtype == NOTE_END;
}
