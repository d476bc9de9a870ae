/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collector_core.c - the rings of a logical core that is collected: opening, emptying, asking the device.
 *
 * Rings that nobody gave a size take 8 MiB for instructions and 1 MiB else, less where that would be more than a
 * third of the device's memory for all of its cores; and all of them half of that, down to 64 KiB, as long as the device
 * has no room.  When the program needs the memory, they are halved again, and in the end given back.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "runtime/log/log.h"
#include "runtime/profile/collector_parts.h"

#define TAG "NMGR"
#define MIN_RING_BYTES 65536u
#define MAX_RING_BYTES (1u << 31)
#define MIB (1u << 20)
#define ROUNDS 16u /* of a ring, before the next one has its turn */
#define PASS 65536u
#define MAX_HALVED 15u /* from MAX to MIN */

/* ---- sizes -------------------------------------------------------------------------------- */

static uint64_t default_bytes(enum notification_size size)
{
	return size == NOTIFICATION_SIZE_INSTRUCTION ? 8 * MIB : MIB;
}

/* What all rings of a physical core take at most without a setting. */
static uint64_t default_sum(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < NOTIFICATION_TYPES; i++) {
		const struct notification_type *t = notification_type(i);

		if (t->size != NOTIFICATION_SIZE_OWN)
			sum += default_bytes(t->size) * (t->last_engine - t->first_engine + 1);
	}
	return sum;
}

/* How often the defaults are halved on this device. */
static unsigned default_shift(const struct device_system *s, const struct device_core *core)
{
	uint64_t sum = default_sum(), memory, share;
	unsigned shift = 0;

	if (device_memory_bytes(core, s->arch, &memory) < 0 || !s->topology.cores_per_device)
		return 0;
	share = memory / 3 / s->topology.cores_per_device;
	while (sum >> shift > share && shift < 16)
		shift++;
	return shift;
}

static uint32_t wished_bytes(uint32_t mb, enum notification_size size, unsigned shift)
{
	uint64_t want = mb ? (uint64_t)mb * MIB : default_bytes(size) >> shift;
	uint64_t bytes = MIN_RING_BYTES;

	while (bytes < want && bytes < MAX_RING_BYTES)
		bytes *= 2;
	return (uint32_t)bytes;
}

/* ---- one ring ----------------------------------------------------------------------------- */

static int ask(void *ctx, uint32_t *ret_written, uint32_t *ret_dropped)
{
	const struct collector_ring *r = ctx;
	struct device_ring_count count = {0};
	int rc = device_profile_rings_ask(r->core, &r->key, 1, &count);

	*ret_written = count.written;
	*ret_dropped = count.dropped;
	return rc;
}

static int tell(void *ctx, uint32_t read)
{
	const struct collector_ring *r = ctx;

	return device_profile_ring_tell(r->core, &r->key, read);
}

static int open_memory(const struct device_system *s, struct collector_ring *r)
{
	const struct profile_ring_device device = {ask, tell, r};
	void *memory;
	int rc = device_profile_ring_open(s, r->core, &r->key, r->bytes, &memory);

	if (rc == 0)
		profile_ring_open(&r->reader, memory, r->bytes, &device);
	return rc;
}

static void unmap(struct collector_ring *r)
{
	if (r->reader.ring.memory)
		(void)munmap(r->reader.ring.memory, r->bytes);
	r->reader.ring.memory = NULL;
}

/* The device has put another ring in the place of ours, and nobody can have what it wrote there.  r->lock held. */
static void reopen(const struct device_system *s, struct collector_ring *r, uint32_t written)
{
	r->lost += r->reader.lost + written;
	r->gone += written;
	r->vague += r->reader.vague + r->reader.doubts;
	r->replaced++;
	unmap(r);
	r->reader = (struct profile_ring){0};
	(void)open_memory(s, r);
	r->opened++;
}

/* One batch; r->lock held. */
static uint32_t take_some(struct collector_ring *r)
{
	uint32_t room = 0, n;
	void *to = pieces_room(&r->records, &room);

	n = profile_ring_take(&r->reader, to, to ? room : PASS);
	if (to)
		pieces_added(&r->records, n);
	else
		r->dropped += n;
	return n;
}

static bool drain_ring(struct collector_ring *r)
{
	bool any = false;

	pthread_mutex_lock(&r->lock);
	if (r->reader.ring.memory && !r->reader.replaced && profile_ring_has(&r->reader)) {
		unsigned rounds = 0;

		while (rounds++ < ROUNDS && take_some(r))
			any = true;
	}
	pthread_mutex_unlock(&r->lock);
	return any;
}

/* ---- all of a core ------------------------------------------------------------------------ */

bool collector_core_drain(struct collector_core *c)
{
	bool any = false;

	for (uint32_t p = 0; p < c->part_count; p++)
		for (unsigned i = 0; i < NOTIFICATION_RINGS; i++)
			any |= drain_ring(&c->parts[p].rings[i]);
	return any;
}

/* What the device has said of a ring: read_before is from before it was asked. */
static void settle_ring(const struct device_system *s, struct collector_ring *r,
	uint32_t opened_before, uint64_t read_before, const struct device_ring_count *said)
{
	struct profile_ring *reader = &r->reader;
	uint64_t end;

	pthread_mutex_lock(&r->lock);
	if (r->opened != opened_before) {
		; /* what was said was of the ring before it */
	} else if (reader->ring.memory && !said) {
		r->unasked++;
		while (profile_ring_has(reader) && take_some(r))
			;
	} else if (reader->ring.memory) {
		end = profile_ring_hear(reader, read_before, said->written, said->dropped);
		/* Without a count: what is there, at most a ring. */
		if (!reader->heard)
			end = reader->ring.read + reader->ring.count;
		while (!reader->replaced && reader->ring.read < end && profile_ring_has(reader) &&
			take_some(r))
			;
		if (reader->replaced)
			reopen(s, r, said->written);
		else if (reader->heard)
			profile_ring_give_up(reader, end);
	}
	pthread_mutex_unlock(&r->lock);
}

static int settle_part(const struct device_system *s, struct collector_part *part)
{
	struct device_ring_key keys[NOTIFICATION_RINGS];
	struct device_ring_count said[NOTIFICATION_RINGS] = {0};
	uint64_t before[NOTIFICATION_RINGS];
	uint32_t opened[NOTIFICATION_RINGS];
	int rc;

	static_assert(NOTIFICATION_RINGS <= DEVICE_ASK_MAX, "one request");
	for (unsigned i = 0; i < NOTIFICATION_RINGS; i++) {
		struct collector_ring *r = &part->rings[i];

		keys[i] = r->key;
		pthread_mutex_lock(&r->lock);
		before[i] = r->reader.ring.read;
		opened[i] = r->opened;
		pthread_mutex_unlock(&r->lock);
	}
	rc = device_profile_rings_ask(part->core, keys, NOTIFICATION_RINGS, said);
	for (unsigned i = 0; i < NOTIFICATION_RINGS; i++)
		settle_ring(s, &part->rings[i], opened[i], before[i], rc == 0 ? &said[i] : NULL);
	return rc;
}

int collector_core_settle(struct collector_core *c)
{
	int rc = 0;

	for (uint32_t p = 0; p < c->part_count; p++) {
		int settled = settle_part(c->system, &c->parts[p]);

		rc = rc ? rc : settled;
	}
	return rc;
}

void collector_core_add_sync(
	struct collector_core *c, uint32_t part, uint32_t exec_id, const struct device_sync *sync)
{
	const struct device_core *core = c->parts[part].core;
	const struct clock_snapshot now = clock_snapshot_take();
	const struct collector_sync s = {
		.part = part,
		.nd_idx = core->device->index,
		.nc_idx = core->index,
		.exec_id = exec_id,
		.device_ps = sync->clock.ps,
		.boot_ns = sync->host.ns,
		.bound_ns = sync->bound_ns,
		.real_offset_ns = clock_snapshot_offset(&now),
	};

	pthread_mutex_lock(&c->lock);
	(void)pieces_add(&c->syncs, &s);
	pthread_mutex_unlock(&c->lock);
}

void collector_core_sync(struct collector_core *c)
{
	for (uint32_t p = 0; p < c->part_count; p++) {
		struct device_sync sync;

		if (device_read_clock_well(c->parts[p].core, &sync) == 0)
			collector_core_add_sync(c, p, 0, &sync);
	}
}

/* ---- open, close -------------------------------------------------------------------------- */

/* All rings of a part, each halved so often. */
static int open_part(struct collector_core *c, struct collector_part *part,
	const struct config_profile *config, unsigned halved)
{
	unsigned shift = default_shift(c->system, part->core);
	int rc = 0;

	for (unsigned i = 0; i < NOTIFICATION_RINGS && rc == 0; i++) {
		struct collector_ring *r = &part->rings[i];
		enum notification_size size = r->type->size;

		if (size == NOTIFICATION_SIZE_OWN)
			continue;
		r->bytes = wished_bytes(config->ring_mb[size], size, shift) >> halved;
		if (r->bytes < MIN_RING_BYTES)
			r->bytes = MIN_RING_BYTES;
		rc = open_memory(c->system, r);
		c->memory.size += rc == 0 ? r->bytes : 0;
		if (rc < 0 && rc != -ENOMEM)
			log_error(TAG, "Profile ring %s %u of nd%u nc%u: %s", r->type->name,
				r->key.engine, r->core->device->index, r->core->index,
				device_strerror(rc));
	}
	return rc;
}

static void close_part(struct collector_part *part)
{
	struct device_ring_key keys[NOTIFICATION_RINGS];
	uint32_t count = 0;

	for (unsigned i = 0; i < NOTIFICATION_RINGS; i++) {
		struct collector_ring *r = &part->rings[i];

		pthread_mutex_lock(&r->lock);
		if (r->reader.ring.memory)
			keys[count++] = r->key;
		unmap(r);
		pthread_mutex_unlock(&r->lock);
	}
	device_profile_rings_end(part->core, keys, count);
}

/* When the device has no room for all, all of them become smaller. */
static int open_parts(struct collector_core *c, const struct config_profile *config)
{
	int rc = -ENOMEM;

	for (unsigned halved = 0; rc == -ENOMEM && halved <= MAX_HALVED; halved++) {
		c->memory.size = 0;
		rc = 0;
		for (uint32_t p = 0; p < c->part_count && rc == 0; p++)
			rc = open_part(c, &c->parts[p], config, halved);
		for (uint32_t p = 0; p < c->part_count && rc < 0; p++)
			close_part(&c->parts[p]);
		if (rc == 0 && halved)
			log_warn(TAG,
				"Profile of nc %u: the device has no room; its rings are smaller, "
				"%llu KiB in all",
				c->vnc, (unsigned long long)c->memory.size >> 10);
	}
	if (rc == -ENOMEM)
		log_error(TAG, "Profile of nc %u: the device has no room for its rings", c->vnc);
	return rc;
}

/* Which rings there are, and an empty list for each. */
static int lay_out(struct collector_part *part, struct pieces_account *account)
{
	struct collector_ring *r = part->rings;
	int rc = 0;

	for (unsigned i = 0; i < NOTIFICATION_TYPES; i++) {
		const struct notification_type *t = notification_type(i);

		for (uint32_t e = t->first_engine; e <= t->last_engine; e++, r++) {
			*r = (struct collector_ring){
				.type = t, .core = part->core, .key = {t->device, t->type, e}};
			pthread_mutex_init(&r->lock, NULL);
			if (rc == 0)
				rc = pieces_open(&r->records, sizeof(struct notification), account);
		}
	}
	return rc;
}

static void account_memory(struct collector_core *c, const struct device_core *first)
{
	c->memory.nc = c->vnc;
	c->memory.device = first->device->index;
	c->memory.hbm = first->hbm;
	c->memory.usage = MEMORY_NOTIFICATION;
	(void)memory_table_add(&c->memory);
	memory_table_name(&c->memory, "profile rings");
}

/* ---- giving back -------------------------------------------------------------------------- */

/* Of half the size, or without memory where that is too little; r->lock held. */
static uint64_t halve(const struct device_system *s, struct collector_ring *r, bool at_work)
{
	if (!r->bytes)
		return 0;
	r->lost += r->reader.lost;
	r->vague += r->reader.vague + r->reader.doubts;
	r->reader = (struct profile_ring){0};
	r->opened++;
	if (r->bytes / 2 >= MIN_RING_BYTES) {
		r->bytes /= 2;
		r->given += at_work; /* what came while there was none */
		if (open_memory(s, r) == 0)
			return r->bytes;
	}
	r->bytes = 0;
	r->given++;
	return 0;
}

uint64_t collector_core_shrink(struct collector_core *c)
{
	uint64_t before = c->memory.size, sum = 0;
	pthread_mutex_t *executions = &c->parts[0].core->lock;
	bool at_work;

	if (!before)
		return 0;
	at_work = pthread_mutex_trylock(executions) != 0;
	collector_core_settle(c);
	for (uint32_t p = 0; p < c->part_count; p++)
		close_part(&c->parts[p]);
	for (uint32_t p = 0; p < c->part_count; p++)
		for (unsigned i = 0; i < NOTIFICATION_RINGS; i++) {
			struct collector_ring *r = &c->parts[p].rings[i];

			pthread_mutex_lock(&r->lock);
			sum += halve(c->system, r, at_work);
			pthread_mutex_unlock(&r->lock);
		}
	if (!at_work)
		pthread_mutex_unlock(executions);
	(void)memory_table_remove(&c->memory);
	c->memory.size = sum;
	if (sum)
		(void)memory_table_add(&c->memory);
	log_warn(TAG,
		"Profile of nc %u: the program needs the device's memory; its rings are smaller, "
		"%llu "
		"KiB instead of %llu",
		c->vnc, (unsigned long long)sum >> 10, (unsigned long long)before >> 10);
	return before - sum;
}

NRT_STATUS collector_core_open(const struct device_system *s, struct device_core *first,
	uint32_t vnc, const struct config_profile *config, struct pieces_account *account,
	struct collector_core **ret)
{
	struct collector_core *c = calloc(1, sizeof(*c));
	int rc = 0;

	if (!c)
		return NRT_RESOURCE;
	c->system = s;
	c->vnc = vnc;
	c->part_count = s->lnc_size;
	pthread_mutex_init(&c->lock, NULL);
	rc = pieces_open(&c->runs, sizeof(struct collector_run), account);
	if (rc == 0)
		rc = pieces_open(&c->syncs, sizeof(struct collector_sync), account);
	for (uint32_t p = 0; p < c->part_count; p++) {
		int made;

		c->parts[p].core = first + p;
		c->parts[p].index = p;
		made = lay_out(&c->parts[p], account);
		rc = rc ? rc : made;
	}
	if (rc == 0)
		rc = open_parts(c, config);
	if (rc < 0) {
		c->memory.size = 0;
		collector_core_close(c);
		collector_core_free(c);
		return status_from_errno(rc);
	}
	account_memory(c, first);
	*ret = c;
	return NRT_SUCCESS;
}

void collector_core_close(struct collector_core *c)
{
	for (uint32_t p = 0; p < c->part_count; p++) {
		close_part(&c->parts[p]);
		for (unsigned i = 0; i < NOTIFICATION_RINGS; i++)
			pieces_close(&c->parts[p].rings[i].records);
	}
	pieces_close(&c->runs);
	pieces_close(&c->syncs);
	if (c->memory.size)
		(void)memory_table_remove(&c->memory);
	c->memory.size = 0;
}

void collector_core_free(struct collector_core *c)
{
	for (uint32_t p = 0; p < c->part_count; p++)
		for (unsigned i = 0; i < NOTIFICATION_RINGS; i++)
			pthread_mutex_destroy(&c->parts[p].rings[i].lock);
	pthread_mutex_destroy(&c->lock);
	free(c);
}
