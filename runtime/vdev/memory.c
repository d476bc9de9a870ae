/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - allocation, look-up and release of device memory; see memory.h. */
#include "runtime/vdev/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/base/file.h"

#define HOST_SPACE 4u /* index into next_address */
/* Addresses of one stack repeat after this much; HBM bases are at least as far apart. */
#define SPACE_BYTES (64ull << 30)
/* The driver keeps the lowest 16 MiB of each HBM for itself; so address 0 is never given. */
#define SPACE_FIRST (16ull << 20)

struct vdev_memory *vdev_memory_ref(struct vdev_memory *memory)
{
	atomic_fetch_add(&memory->refs, 1);
	return memory;
}

static void memory_destroy(struct vdev_memory *memory)
{
	if (memory->map)
		munmap(memory->map, memory->mapped_size);
	if (memory->fd >= 0)
		close(memory->fd);
	free(memory);
}

void vdev_memory_put(struct vdev_memory *memory)
{
	if (!memory || atomic_fetch_sub(&memory->refs, 1) != 1)
		return;
	memory_destroy(memory);
}

void vdev_memory_cleanup(struct vdev_memory **memory)
{
	vdev_memory_put(*memory);
}

uint8_t *vdev_memory_at(const struct vdev_memory *memory, uint64_t offset, uint64_t size)
{
	if (offset > memory->size || size > memory->size - offset)
		return NULL;
	return memory->map + offset;
}

/* Maps a new memfd that nobody can shrink, grow or seal any further. */
static struct vdev_memory *memory_create(uint64_t size, uint64_t mapped_size)
{
	struct vdev_memory *memory = calloc(1, sizeof(*memory));
	void *map;

	if (!memory)
		return NULL;
	atomic_init(&memory->refs, 1);
	memory->size = size;
	memory->mapped_size = mapped_size;
	memory->fd = memfd_create(VDEV_MEMORY_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (memory->fd < 0 || ftruncate(memory->fd, (off_t)mapped_size) < 0 ||
		fcntl(memory->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		goto fail;
	map = mmap(NULL, mapped_size, PROT_READ | PROT_WRITE, MAP_SHARED, memory->fd, 0);
	if (map == MAP_FAILED)
		goto fail;
	memory->map = map;
	return memory;
fail:
	memory_destroy(memory);
	return NULL;
}

struct vdev_memory *vdev_memory_new(uint64_t size)
{
	return memory_create(size, size);
}

static const struct vdev_memory *overlapping(
	const struct vdev_device *device, uint64_t address, uint64_t size)
{
	for (size_t i = 0; i < device->memory_slots; i++) {
		const struct vdev_memory *m = device->memories[i];

		if (m && address < m->address + m->mapped_size && m->address < address + size)
			return m;
	}
	return NULL;
}

/* Next free range of the space, going round; 0 when two rounds find none. */
static uint64_t find_address(
	struct vdev_device *device, unsigned space, uint64_t base, uint64_t size, uint64_t align)
{
	uint64_t next = device->next_address[space];
	unsigned rounds = 0;

	next = next < SPACE_FIRST ? SPACE_FIRST : next;
	for (;;) {
		const struct vdev_memory *m;

		next = (next + align - 1) & ~(align - 1);
		if (next > SPACE_BYTES || size > SPACE_BYTES - next) {
			if (++rounds == 2)
				return 0;
			next = SPACE_FIRST;
			continue;
		}
		m = overlapping(device, base + next, size);
		if (!m) {
			device->next_address[space] = next + size;
			return base + next;
		}
		next = m->address + m->mapped_size - base;
	}
}

static int free_slot(struct vdev_device *device, size_t *ret_slot)
{
	struct vdev_memory **grown;
	size_t slots;

	for (size_t i = 0; i < device->memory_slots; i++) {
		if (!device->memories[i]) {
			*ret_slot = i;
			return 0;
		}
	}
	slots = device->memory_slots ? 2 * device->memory_slots : 64;
	grown = reallocarray(device->memories, slots, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	for (size_t i = device->memory_slots; i < slots; i++)
		grown[i] = NULL;
	*ret_slot = device->memory_slots;
	device->memories = grown;
	device->memory_slots = slots;
	return 0;
}

static int memory_insert(struct vdev_device *device, pid_t caller,
	const struct vdev_memory_wish *wish, struct vdev_memory *memory)
{
	const struct vdev_config *config = &device->vdev->config;
	const struct vdev_arch *arch = vdev_arch_of(device->vdev);
	unsigned space = wish->host ? HOST_SPACE : wish->hbm % arch->hbm_count;
	uint64_t base = wish->host ? arch->host_bit : arch->hbm_base[space];
	size_t slot;
	int r;

	if (!vdev_attached_locked(device, caller))
		return -EACCES;
	if (memory->mapped_size > config->memory_bytes - device->used_bytes)
		return -ENOMEM;
	r = free_slot(device, &slot);
	if (r < 0)
		return r;
	memory->address = find_address(device, space, base, memory->mapped_size,
		wish->align > VDEV_PAGE ? wish->align : VDEV_PAGE);
	if (!memory->address)
		return -ENOMEM;
	memory->device = device;
	memory->owner = wish->owner;
	memory->host = wish->host;
	memory->hbm = space;
	memory->handle = slot + 1;
	device->memories[slot] = vdev_memory_ref(memory);
	device->used_bytes += memory->mapped_size;
	atomic_fetch_add(&device->vdev->counters.allocations, 1);
	atomic_fetch_add(&device->vdev->counters.allocated_bytes, (int_fast64_t)memory->size);
	return 0;
}

int vdev_memory_alloc(struct vdev_device *device, pid_t caller, const struct vdev_memory_wish *wish,
	struct vdev_memory **ret)
{
	_cleanup_memory_ struct vdev_memory *memory = NULL;
	int r;

	if (wish->size == 0 || (wish->align & (wish->align - 1)))
		return -EINVAL;
	if (wish->size > device->vdev->config.memory_bytes || wish->align > SPACE_BYTES / 2)
		return -ENOMEM;
	memory = memory_create(wish->size, (wish->size + VDEV_PAGE - 1) & ~(VDEV_PAGE - 1));
	if (!memory)
		return -ENOMEM;
	pthread_mutex_lock(&device->lock);
	r = memory_insert(device, caller, wish, memory);
	pthread_mutex_unlock(&device->lock);
	if (r < 0)
		return r;
	*ret = memory;
	memory = NULL;
	return 0;
}

struct vdev_memory *vdev_memory_get_locked(
	struct vdev_device *device, pid_t caller, uint64_t handle)
{
	struct vdev_memory *memory;

	if (handle == 0 || handle > device->memory_slots)
		return NULL;
	memory = device->memories[handle - 1];
	if (!memory || (memory->owner && memory->owner != caller) ||
		!vdev_attached_locked(device, caller))
		return NULL;
	return vdev_memory_ref(memory);
}

struct vdev_memory *vdev_memory_get(struct vdev_device *device, pid_t caller, uint64_t handle)
{
	struct vdev_memory *memory;

	pthread_mutex_lock(&device->lock);
	memory = vdev_memory_get_locked(device, caller, handle);
	pthread_mutex_unlock(&device->lock);
	return memory;
}

void vdev_memory_free_locked(struct vdev_device *device, uint64_t handle)
{
	struct vdev_memory *memory = device->memories[handle - 1];

	device->memories[handle - 1] = NULL;
	device->used_bytes -= memory->mapped_size;
	atomic_fetch_sub(&device->vdev->counters.allocations, 1);
	atomic_fetch_sub(&device->vdev->counters.allocated_bytes, (int_fast64_t)memory->size);
	atomic_store(&memory->freed, true);
	vdev_meetings_forget(&device->vdev->meetings, memory);
	vdev_memory_put(memory);
}

void vdev_memory_free_owner_locked(struct vdev_device *device, pid_t owner)
{
	for (size_t i = 0; i < device->memory_slots; i++)
		if (device->memories[i] && device->memories[i]->owner == owner)
			vdev_memory_free_locked(device, i + 1);
}

int vdev_memory_free(struct vdev_device *device, pid_t caller, uint64_t handle)
{
	_cleanup_memory_ struct vdev_memory *memory = NULL;

	pthread_mutex_lock(&device->lock);
	memory = vdev_memory_get_locked(device, caller, handle);
	/* Only if it is still in the table and not the device's own. */
	if (memory && memory->owner == caller)
		vdev_memory_free_locked(device, handle);
	pthread_mutex_unlock(&device->lock);
	return memory && memory->owner == caller ? 0 : -EINVAL;
}

void vdev_memory_used_locked(
	const struct vdev_device *device, pid_t owner, uint64_t *ret_host, uint64_t *ret_device)
{
	*ret_host = *ret_device = 0;
	for (size_t i = 0; i < device->memory_slots; i++) {
		const struct vdev_memory *m = device->memories[i];

		if (m && m->owner == owner)
			*(m->host ? ret_host : ret_device) += m->size;
	}
}

/* Reference to the memory of that HBM in the first slot from *slot on, and *slot behind it. */
static struct vdev_memory *next_in_hbm(struct vdev_device *device, unsigned hbm, size_t *slot)
{
	struct vdev_memory *found = NULL;

	pthread_mutex_lock(&device->lock);
	while (!found && *slot < device->memory_slots) {
		struct vdev_memory *m = device->memories[(*slot)++];

		if (m && !m->host && m->hbm == hbm)
			found = vdev_memory_ref(m);
	}
	pthread_mutex_unlock(&device->lock);
	return found;
}

void vdev_memory_scrub(struct vdev_device *device, unsigned hbm, uint32_t word)
{
	struct vdev_memory *memory;
	size_t slot = 0;

	while ((memory = next_in_hbm(device, hbm, &slot))) {
		uint32_t *words = (uint32_t *)(void *)memory->map; /* whole pages */

		for (uint64_t i = 0; i < memory->mapped_size / sizeof(*words); i++)
			words[i] = word;
		vdev_memory_put(memory);
	}
}
