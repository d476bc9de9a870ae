/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collector_pieces.h - lists that are only ever appended to, shared by readers that are at different places.
 *
 * A list is a chain of pieces of memory.  Each holds on to the next one, and is held by the end of the list, by the
 * places of readers in it and by whoever looks at its contents; so the chain goes from its beginning as its readers
 * advance.  What has been added is never changed or moved.
 *
 * One lock of the caller's per list is held for all calls but pieces_hold, pieces_drop and those on a pieces_place that
 * was made under it.
 */
#ifndef NTRACE_PROFILE_COLLECTOR_PIECES_H
#define NTRACE_PROFILE_COLLECTOR_PIECES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* What all lists of somebody together have; longer-lived than they. */
struct pieces_account {
	_Atomic uint64_t bytes;
	_Atomic uint64_t limit;
};

struct collector_piece {
	_Atomic uint32_t holders;
	struct pieces_account *account;
	struct collector_piece *next; /* NULL: this is the end */
	uint32_t used, room;	      /* elements */
	uint64_t bytes;
	_Alignas(16) unsigned char data[];
};

struct pieces {
	uint32_t element_bytes;
	struct pieces_account *account;
	struct collector_piece *end;
};

/* In front of an element that is to come, or behind the last one. */
struct pieces_place {
	struct collector_piece *piece;
	uint32_t at;
};

/* 0 or -ENOMEM. */
int pieces_open(struct pieces *p, uint32_t element_bytes, struct pieces_account *account);
/* Its end is let go; what readers hold stays.  Harmless on one that was not opened. */
void pieces_close(struct pieces *p);

/* Where the next elements go, and how many fit there; NULL: the account is at its limit, or there is no memory. */
void *pieces_room(struct pieces *p, uint32_t *ret_room);
/* So many have been written there. */
void pieces_added(struct pieces *p, uint32_t count);
/* One element; false as for NULL above. */
bool pieces_add(struct pieces *p, const void *element);

/* The end of the list as it is now.  It is held until pieces_leave. */
struct pieces_place pieces_now(const struct pieces *p);
/* NULL as its piece is harmless. */
void pieces_leave(struct pieces_place *place);

/* The elements from `from` on that lie together, before `to`; *from is behind them then, in the next piece, without being
 * held there.  NULL: there are none.  Needs no lock. */
const void *pieces_walk(struct pieces_place *from, const struct pieces_place *to,
	uint32_t element_bytes, uint32_t *ret_count, struct collector_piece **ret_piece);

void pieces_hold(struct collector_piece *piece);
void pieces_drop(struct collector_piece *piece);

#endif
