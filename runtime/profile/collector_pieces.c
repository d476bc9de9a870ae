/* SPDX-License-Identifier: Apache-2.0 */
/* collector_pieces.c - lists in pieces; see collector_pieces.h. */
#include "runtime/profile/collector_pieces.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BYTES 4096u
#define LAST_BYTES 65536u

static struct collector_piece *new_piece(
	struct pieces_account *account, uint32_t element_bytes, uint64_t bytes)
{
	struct collector_piece *piece = malloc(sizeof(*piece) + bytes);

	if (!piece)
		return NULL;
	*piece = (struct collector_piece){
		.account = account, .room = (uint32_t)(bytes / element_bytes), .bytes = bytes};
	atomic_init(&piece->holders, 1);
	return piece;
}

int pieces_open(struct pieces *p, uint32_t element_bytes, struct pieces_account *account)
{
	*p = (struct pieces){.element_bytes = element_bytes, .account = account};
	p->end = new_piece(account, element_bytes, 0);
	return p->end ? 0 : -ENOMEM;
}

void pieces_close(struct pieces *p)
{
	if (p->end)
		pieces_drop(p->end);
	p->end = NULL;
}

static bool account_take(struct pieces_account *a, uint64_t bytes)
{
	if (atomic_fetch_add(&a->bytes, bytes) + bytes <= atomic_load(&a->limit))
		return true;
	atomic_fetch_sub(&a->bytes, bytes);
	return false;
}

/* Pieces double, so that short lists take little. */
static uint64_t next_bytes(const struct collector_piece *end)
{
	uint64_t twice = 2 * end->bytes;

	return twice < FIRST_BYTES ? FIRST_BYTES : twice < LAST_BYTES ? twice : LAST_BYTES;
}

static bool add_piece(struct pieces *p)
{
	uint64_t bytes = next_bytes(p->end);
	struct collector_piece *old = p->end, *piece;

	if (!account_take(p->account, bytes))
		return false;
	piece = new_piece(p->account, p->element_bytes, bytes);
	if (!piece) {
		atomic_fetch_sub(&p->account->bytes, bytes);
		return false;
	}
	pieces_hold(piece); /* by the one before, and as the end */
	old->next = piece;
	p->end = piece;
	pieces_drop(old);
	return true;
}

void *pieces_room(struct pieces *p, uint32_t *ret_room)
{
	if (p->end->used == p->end->room && !add_piece(p))
		return NULL;
	*ret_room = p->end->room - p->end->used;
	return p->end->data + (uint64_t)p->end->used * p->element_bytes;
}

void pieces_added(struct pieces *p, uint32_t count)
{
	p->end->used += count;
}

bool pieces_add(struct pieces *p, const void *element)
{
	uint32_t room;
	void *to = pieces_room(p, &room);

	if (!to)
		return false;
	memcpy(to, element, p->element_bytes);
	pieces_added(p, 1);
	return true;
}

struct pieces_place pieces_now(const struct pieces *p)
{
	pieces_hold(p->end);
	return (struct pieces_place){p->end, p->end->used};
}

void pieces_leave(struct pieces_place *place)
{
	if (place->piece)
		pieces_drop(place->piece);
	place->piece = NULL;
}

const void *pieces_walk(struct pieces_place *from, const struct pieces_place *to,
	uint32_t element_bytes, uint32_t *ret_count, struct collector_piece **ret_piece)
{
	const void *found = NULL;

	while (!found && from->piece) {
		bool last = from->piece == to->piece;
		uint32_t end = last ? to->at : from->piece->used;

		*ret_piece = from->piece;
		*ret_count = end - from->at;
		if (*ret_count)
			found = from->piece->data + (uint64_t)from->at * element_bytes;
		*from = (struct pieces_place){last ? NULL : from->piece->next, 0};
	}
	return found;
}

void pieces_hold(struct collector_piece *piece)
{
	atomic_fetch_add(&piece->holders, 1);
}

void pieces_drop(struct collector_piece *piece)
{
	while (piece && atomic_fetch_sub(&piece->holders, 1) == 1) {
		struct collector_piece *next = piece->next;

		atomic_fetch_sub(&piece->account->bytes, piece->bytes);
		free(piece);
		piece = next;
	}
}
