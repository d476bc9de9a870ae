/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_guard_test.c - what is sent to a device at all, how often, and in which form.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "runtime/device/guards.h"
#include "runtime/log/log.h"
#include "runtime/vdev/vdev_abi.h"
#include "tests/shim/shim.h"
#include "tests/unit/scratch.h"
#include "vmlinux/ioctl_table.h"
#include "vmlinux/neuron_args.h"

static void be_quiet(bool quiet)
{
	if (quiet)
		setenv("NEURON_RT_LOG_LEVEL", "QUIET", 1);
	else
		unsetenv("NEURON_RT_LOG_LEVEL");
	log_configure();
}

/* ---- the table ---------------------------------------------------------------------------- */

TEST("guards: every request of the driver has a rule, and no other number has", "[device]")
{
	struct guard_rule rule;

	for (size_t i = 0; i < ioctl_row_count; i++) {
		test_info("%s", ioctl_rows[i].name);
		REQUIRE(guard_rule(ioctl_rows[i].cmd, &rule));
		CHECK_STR(rule.request, ioctl_rows[i].name);
		CHECK(rule.does && rule.does[0]);
	}
	CHECK(!guard_rule(0, &rule));
	CHECK(!guard_rule(0x80084effu, &rule));
}

static enum guard_answer ask_real(uint32_t cmd, bool allow_reset)
{
	/* Large enough for every argument, and no field of it is 0. */
	static uint32_t arg[4096];
	const struct device_file file = {.is_real = true, .allow_reset = allow_reset, .owner = 7};

	for (size_t i = 0; i < sizeof(arg) / sizeof(arg[0]); i++)
		arg[i] = 1;
	return guard_check(&file, 7, cmd, arg);
}

TEST("guards: a real device gets information, versions, marks and notification queues", "[device]")
{
	static const uint32_t sent[] = {NEURON_IOCTL_DEVICE_INFO, NEURON_IOCTL_DEVICE_BASIC_INFO,
		NEURON_IOCTL_DEVICE_GET_ALL_APPS_INFO, NEURON_IOCTL_COMPATIBLE_VERSION,
		NEURON_IOCTL_DRIVER_INFO_GET, NEURON_IOCTL_DEVICE_BDF, NEURON_IOCTL_DEVICE_BDF_EXT,
		NEURON_IOCTL_HOST_DEVICE_ID, NEURON_IOCTL_HOST_DEVICE_ID_TO_RID_MAP,
		NEURON_IOCTL_NC_PID_STATE_DUMP, NEURON_IOCTL_CRWL_NC_RANGE_MARK,
		NEURON_IOCTL_CRWL_NC_RANGE_MARK_EXT0, NEURON_IOCTL_CRWL_NC_RANGE_UNMARK,
		NEURON_IOCTL_CRWL_NC_RANGE_UNMARK_EXT0, NEURON_IOCTL_NOTIFICATIONS_INIT_V1,
		NEURON_IOCTL_NOTIFICATIONS_INIT_V2};

	for (size_t i = 0; i < sizeof(sent) / sizeof(sent[0]); i++) {
		test_info("%s", ioctl_row_find(sent[i])->name);
		CHECK_EQ(ask_real(sent[i], false), GUARD_PASS);
	}
}

TEST("guards: resets, queues, registers and memory of a real device need the second permission",
	"[device]")
{
	static const uint32_t held[] = {NEURON_IOCTL_DEVICE_RESET, NEURON_IOCTL_NC_RESET,
		NEURON_IOCTL_DMA_QUEUE_INIT, NEURON_IOCTL_DMA_QUEUE_COPY_START,
		NEURON_IOCTL_DMA_ACK_COMPLETED, NEURON_IOCTL_BAR_READ, NEURON_IOCTL_BAR_WRITE,
		NEURON_IOCTL_MEM_ALLOC, NEURON_IOCTL_MEM_ALLOC_V2MT64_PA,
		NEURON_IOCTL_MEM_BUF_COPY64, NEURON_IOCTL_MEMSET64, NEURON_IOCTL_PROGRAM_ENGINE_NC,
		NEURON_IOCTL_SEMAPHORE_WRITE, NEURON_IOCTL_EVENT_SET, NEURON_IOCTL_CINIT_SET_STATE,
		NEURON_IOCTL_HBM_SCRUB_START, NEURON_IOCTL_POWER_PROFILE,
		NEURON_IOCTL_NOTIFICATIONS_INIT_WITH_REALLOC_V2};

	for (size_t i = 0; i < sizeof(held) / sizeof(held[0]); i++) {
		test_info("%s", ioctl_row_find(held[i])->name);
		CHECK_EQ(ask_real(held[i], false), GUARD_NEEDS_RESET);
		CHECK_EQ(ask_real(held[i], true), GUARD_PASS);
	}
}

TEST("guards: what damages the kernel is not sent to a real device, whatever is allowed",
	"[device]")
{
	static const uint32_t never[] = {NEURON_IOCTL_MEM_BUF_ZEROCOPY64_V40,
		NEURON_IOCTL_MEM_BUF_ZEROCOPY64, NEURON_IOCTL_MEM_BUF_ZEROCOPY64_BATCHES,
		NEURON_IOCTL_DMA_QUEUE_INIT_BATCH, 0x80084effu};
	const struct device_file file = {.is_real = true, .allow_reset = true, .owner = 7};
	struct neuron_dma_queue_init queue = {.tx_handle = 1, .rx_handle = 1};

	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
		CHECK_EQ(ask_real(never[i], true), GUARD_HAZARD);
	CHECK_EQ(guard_check(&file, 7, NEURON_IOCTL_DMA_QUEUE_INIT, &queue), GUARD_PASS);
	queue.rx_handle = 0; /* a start would follow a NULL pointer */
	CHECK_EQ(guard_check(&file, 7, NEURON_IOCTL_DMA_QUEUE_INIT, &queue), GUARD_HAZARD);
	queue = (struct neuron_dma_queue_init){.rx_handle = 1};
	CHECK_EQ(guard_check(&file, 7, NEURON_IOCTL_DMA_QUEUE_INIT, &queue), GUARD_HAZARD);
}

TEST("guards: the queues of a real device's engines alone, not of the engine of virtual ones",
	"[device]")
{
	static const uint32_t cmds[] = {NEURON_IOCTL_DMA_QUEUE_INIT,
		NEURON_IOCTL_DMA_QUEUE_COPY_START, NEURON_IOCTL_DMA_ACK_COMPLETED};
	const struct device_file real = {.is_real = true, .allow_reset = true, .owner = 7};
	const struct device_file other = {.owner = 7};
	union {
		struct neuron_dma_queue_init init;
		struct neuron_dma_queue_copy_start start;
		struct neuron_dma_ack_completed ack;
	} arg;

	for (size_t i = 0; i < sizeof(cmds) / sizeof(cmds[0]); i++) {
		memset(&arg, 0, sizeof(arg));
		arg.init.tx_handle = arg.init.rx_handle = 1;
		if (i == 0)
			arg.init.eng_id = VDEV_EXEC_ENGINE;
		else if (i == 1)
			arg.start.eng_id = VDEV_EXEC_ENGINE;
		else
			arg.ack.eng_id = VDEV_EXEC_ENGINE;
		CHECK_EQ(guard_check(&real, 7, cmds[i], &arg), GUARD_HAZARD);
		CHECK_EQ(guard_check(&other, 7, cmds[i], &arg), GUARD_PASS);
	}
}

TEST("device: the clock register of virtual devices is not read on a real one", "[device]")
{
	struct device device = {.file = {.is_real = true, .allow_reset = true, .kept.fd = -1}};
	const struct device_core core = {.device = &device};
	struct device_sync sync;

	device.file.owner = getpid();
	CHECK_EQ(device_read_clock(&core, &sync), -ENOTSUP);
}

TEST("guards: a virtual device gets every request, but none from a child of who opened it",
	"[device]")
{
	const struct device_file file = {.owner = 7};

	for (size_t i = 0; i < ioctl_row_count; i++) {
		struct neuron_dma_queue_init queue = {0};

		test_info("%s", ioctl_rows[i].name);
		CHECK_EQ(guard_check(&file, 7, ioctl_rows[i].cmd, &queue), GUARD_PASS);
		CHECK_EQ(guard_check(&file, 8, ioctl_rows[i].cmd, &queue), GUARD_CHILD);
	}
}

/* ---- sending ------------------------------------------------------------------------------ */

static struct {
	int calls, interrupted; /* the first ones fail with EINTR */
	int result, error;
} driver;

static int fake_ioctl(int fd, uint32_t cmd, void *arg)
{
	(void)fd;
	(void)cmd;
	(void)arg;
	driver.calls++;
	errno = driver.calls <= driver.interrupted ? EINTR : driver.error;
	return driver.calls <= driver.interrupted ? -1 : driver.result;
}

static bool open_any(struct device_file *file)
{
	*file = (struct device_file){.owner = getpid()};
	return kept_fd_know(&file->kept, open("/dev/zero", O_RDONLY | O_CLOEXEC)) == 0;
}

TEST("device: an interrupted request is sent again where that does no harm", "[device]")
{
	struct device_file file;

	REQUIRE(open_any(&file));
	for (size_t i = 0; i < ioctl_row_count; i++) {
		struct guard_rule rule;
		uint64_t arg[2048] = {0};

		REQUIRE(guard_rule(ioctl_rows[i].cmd, &rule));
		test_info("%s", rule.request);
		driver.calls = 0;
		driver.interrupted = 3;
		driver.result = 0;
		CHECK_EQ(device_ioctl_by(fake_ioctl, &file, ioctl_rows[i].cmd, arg),
			rule.again ? 0 : -EINTR);
		CHECK_EQ(driver.calls, rule.again ? 4 : 1);
	}
	driver.interrupted = 0;
	device_close(&file);
}

TEST("device: requests that must not happen twice are not repeated", "[device]")
{
	static const uint32_t once[] = {NEURON_IOCTL_MEM_ALLOC_V2MT64_PA, NEURON_IOCTL_MEM_FREE,
		NEURON_IOCTL_NC_RESET, NEURON_IOCTL_DMA_QUEUE_COPY_START,
		NEURON_IOCTL_DMA_ACK_COMPLETED, NEURON_IOCTL_CRWL_NC_RANGE_MARK_EXT0,
		NEURON_IOCTL_SEMAPHORE_INCREMENT, NEURON_IOCTL_CRWL_WRITER_ENTER};
	static const uint32_t again[] = {NEURON_IOCTL_DEVICE_INFO, NEURON_IOCTL_NC_RESET_READY,
		NEURON_IOCTL_CINIT_SET_STATE, NEURON_IOCTL_MEM_BUF_COPY64,
		NEURON_IOCTL_NOTIFICATIONS_INIT_V2, NEURON_IOCTL_BAR_READ};
	struct guard_rule rule;

	for (size_t i = 0; i < sizeof(once) / sizeof(once[0]); i++)
		CHECK(guard_rule(once[i], &rule) && !rule.again);
	for (size_t i = 0; i < sizeof(again) / sizeof(again[0]); i++)
		CHECK(guard_rule(again[i], &rule) && rule.again);
}

TEST("device: a request gives 0 or an error, also for a positive result and a stolen file",
	"[device]")
{
	struct device_file file;
	uint64_t arg = 0;

	REQUIRE(open_any(&file));
	driver.calls = driver.interrupted = 0;
	driver.result = 0;
	CHECK_EQ(device_ioctl_by(fake_ioctl, &file, NEURON_IOCTL_DEVICE_BDF, &arg), 0);
	driver.result = 22; /* bytes that were not copied, or MEM_GET_EXTENDED_INFO's EINVAL */
	CHECK_EQ(device_ioctl_by(fake_ioctl, &file, NEURON_IOCTL_DEVICE_BDF, &arg), -EFAULT);
	driver.result = -1;
	driver.error = EBUSY;
	CHECK_EQ(device_ioctl_by(fake_ioctl, &file, NEURON_IOCTL_DEVICE_BDF, &arg), -EBUSY);
	CHECK_EQ(driver.calls, 3);
	CHECK_EQ(close(file.kept.fd), 0);
	CHECK_EQ(device_ioctl_by(fake_ioctl, &file, NEURON_IOCTL_DEVICE_BDF, &arg), -EBADF);
	CHECK_EQ(driver.calls, 3);
}

TEST("device: a simulated device is none to a child of who opened it", "[device]")
{
	struct device_file file = {.owner = getpid(), .simulated = true, .kept.fd = -1};
	struct neuron_device_info info = {0};

	CHECK_EQ(device_ioctl(&file, NEURON_IOCTL_DEVICE_INFO, &info), 0);
	file.owner = getppid();
	be_quiet(true);
	CHECK_EQ(device_ioctl(&file, NEURON_IOCTL_DEVICE_INFO, &info), -EPERM);
	be_quiet(false);
}

TEST("device: a refused request does not reach a character device", "[device]")
{
	static struct device_system s;
	struct scratch dir = {""};
	struct device_file file;
	struct neuron_device_reset reset = {.nc_map = 1};
	struct neuron_device_info info = {0};

	if (geteuid() != 0)
		SKIP("root, to make a device node");
	REQUIRE(scratch_make(&dir));
	memset(&s, 0, sizeof(s));
	(void)snprintf(s.root, sizeof(s.root), "%s", dir.dir);
	CHECK_EQ(mkdir(scratch_path(&dir, "dev").s, 0700), 0);
	CHECK_EQ(mknod(scratch_path(&dir, "dev/neuron0").s, S_IFCHR | 0600, makedev(1, 3)), 0);
	be_quiet(true);
	s.allow_real = true;
	REQUIRE_EQ(device_open_kept(&s, 0, O_RDWR, &file), NRT_SUCCESS);
	CHECK(file.is_real);
	CHECK_EQ(device_ioctl(&file, NEURON_IOCTL_NC_RESET, &reset), -EPERM);
	CHECK_EQ(device_ioctl(&file, NEURON_IOCTL_DEVICE_INFO, &info), -ENOTTY); /* it was asked */
	device_close(&file);
	s.allow_reset = true;
	REQUIRE_EQ(device_open_kept(&s, 0, O_RDWR, &file), NRT_SUCCESS);
	CHECK_EQ(device_ioctl(&file, NEURON_IOCTL_NC_RESET, &reset), -ENOTTY);
	CHECK_EQ(device_ioctl(&file, NEURON_IOCTL_MEM_BUF_ZEROCOPY64, &info), -EPERM);
	file.owner = getppid();
	CHECK_EQ(device_ioctl(&file, NEURON_IOCTL_DEVICE_INFO, &info), -EPERM);
	device_close(&file);
	be_quiet(false);
	scratch_remove(&dir);
}

/* ---- forms -------------------------------------------------------------------------------- */

#define ALL_FEATURES (~0ull)

static struct {
	uint32_t known; /* the only form that is understood, 0 = none */
	int answer;	/* its result */
	uint32_t tried[8];
	unsigned count;
} old;

static int send_old(uint32_t cmd, void *arg)
{
	CHECK(arg == &old);
	if (old.count < 8)
		old.tried[old.count++] = cmd;
	return cmd == old.known ? old.answer : -EINVAL;
}

TEST("forms: newest first, and the one that succeeded from then on", "[device]")
{
	static const uint32_t order[] = {NEURON_IOCTL_MEM_ALLOC_V2MT64_PA,
		NEURON_IOCTL_MEM_ALLOC_V2MT64, NEURON_IOCTL_MEM_ALLOC_V2MT,
		NEURON_IOCTL_MEM_ALLOC_V2, NEURON_IOCTL_MEM_ALLOC};

	for (unsigned k = 0; k < 5; k++) {
		struct device_forms f = {0};

		forms_deny(&f, true, ALL_FEATURES);
		old.known = order[k];
		old.answer = 0;
		old.count = 0;
		CHECK_EQ(forms_send(&f, REQUEST_MEM_ALLOC, send_old, &old), 0);
		REQUIRE_EQ(old.count, k + 1);
		for (unsigned i = 0; i <= k; i++)
			CHECK_EQ(old.tried[i], order[i]);
		CHECK_EQ(forms_old(&f), k > 0);
		/* From now on EINVAL is the caller's. */
		old.answer = -EINVAL;
		old.count = 0;
		CHECK_EQ(forms_send(&f, REQUEST_MEM_ALLOC, send_old, &old), -EINVAL);
		CHECK_EQ(old.count, 1);
		CHECK_EQ(old.tried[0], order[k]);
	}
}

TEST("forms: an error that is about the work ends the search and settles nothing", "[device]")
{
	struct device_forms f = {0};

	forms_deny(&f, true, ALL_FEATURES);
	old.known = NEURON_IOCTL_MEM_ALLOC_V2MT;
	old.answer = -ENOMEM;
	old.count = 0;
	CHECK_EQ(forms_send(&f, REQUEST_MEM_ALLOC, send_old, &old), -ENOMEM);
	CHECK_EQ(old.count, 3);
	CHECK(!forms_old(&f));
	old.known = 0;
	old.count = 0;
	CHECK_EQ(forms_send(&f, REQUEST_MEM_ALLOC, send_old, &old), -EINVAL);
	CHECK_EQ(old.count, 5);
}

TEST("forms: feature flags rule out what the driver does not have", "[device]")
{
	static const struct {
		const char *driver;
		bool has;
		uint64_t features;
		uint32_t first;
	} rows[] = {
		{"2.30", true, 0x1fff, NEURON_IOCTL_MEM_ALLOC_V2MT64_PA},
		{"2.30 on V2", true, 0x7ff, NEURON_IOCTL_MEM_ALLOC_V2MT64_PA},
		{"2.24", true, 0xff, NEURON_IOCTL_MEM_ALLOC_V2MT64},
		{"types, but 32 bits", true, 0x1f, NEURON_IOCTL_MEM_ALLOC_V2MT},
		{"flags, but none of these", true, 0x7, NEURON_IOCTL_MEM_ALLOC_V2},
		{"no flags", false, 0, NEURON_IOCTL_MEM_ALLOC_V2},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct device_forms f = {0};

		test_info("driver %s", rows[i].driver);
		forms_deny(&f, rows[i].has, rows[i].features);
		old.known = rows[i].first;
		old.answer = 0;
		old.count = 0;
		CHECK_EQ(forms_send(&f, REQUEST_MEM_ALLOC, send_old, &old), 0);
		CHECK_EQ(old.count, 1);
	}
}

TEST("device: buffer copies go in pieces that a 32-bit counter holds", "[device]")
{
	static const uint32_t cmds[] = {NEURON_IOCTL_MEM_BUF_COPY64, NEURON_IOCTL_MEM_BUF_COPY};
	static const uint64_t sizes[] = {
		1, 1ull << 30, (1ull << 30) + 1, (1ull << 32) - 1, 1ull << 32, 9ull << 30};

	for (size_t c = 0; c < 2; c++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			uint64_t done = 0;
			bool said = true;

			while (done < sizes[i]) {
				uint64_t n = device_copy_piece(cmds[c], done, sizes[i] - done);

				if (n == 0)
					said = false;
				if (n == 0)
					break;
				CHECK(n <= sizes[i] - done && n < 1ull << 32);
				/* The older form has 32 bits for the offset. */
				CHECK(c == 0 || done < 1ull << 32);
				done += n;
			}
			CHECK_EQ(said, c == 0 || sizes[i] <= 1ull << 32);
		}
}
