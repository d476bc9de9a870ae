/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfetto_writer.h - packets of a Perfetto trace, streamed.
 *
 * The numbers are those of proto/perfetto_subset.proto.  A writer holds one packet at a time and what
 * was interned; nothing grows with the number of events.  Errors are sticky: they are kept in
 * `error` and every later call does nothing, so a caller may check once at the end.
 *
 * An event is built between pft_event and pft_put:
 *
 *	pft_event(w, PFT_BEGIN, track);
 *	pft_name(w, s, "nrt_execute");
 *	pft_note(w, s, key, value);
 *	pft_put(w, s, time);
 */
#ifndef NTRACE_OUTPUT_PERFETTO_WRITER_H
#define NTRACE_OUTPUT_PERFETTO_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/output/perfetto_intern.h"
#include "proto/event_codec.h"

/* TrackEvent.Type */
enum pft_type { PFT_BEGIN = 1, PFT_END = 2, PFT_INSTANT = 3, PFT_COUNTER = 4 };

/* Categories, by what is shown. */
enum pft_category { PFT_RUNTIME = 1, PFT_DEVICE, PFT_DRIVER, PFT_MARK, PFT_CATEGORIES };

enum pft_table { PFT_NAMES, PFT_KEYS, PFT_VALUES, PFT_TABLES };

/* Sequences begin their clock here, so that it does not matter in which order processes come. */
#define PFT_ORIGIN_NS 1u

/* A sequence of packets in order of time.  With `incremental` it interns and counts time from packet to
 * packet; without it its packets stand alone. */
struct pft_seq {
	uint32_t id; /* trusted_packet_sequence_id, from 1 */
	bool incremental;
	uint64_t last; /* time of its newest packet, boot ns */
	struct pft_intern tables[PFT_TABLES];
	struct pb_buf fresh; /* definitions that go with its next event */
};

struct pft_writer {
	int (*write)(void *ctx, const void *data, size_t size); /* 0 or -errno */
	void *ctx;
	int error;
	int64_t offset; /* realtime - boot time, of the whole file */
	uint64_t bytes, packets;
	uint32_t sequences, tracks; /* ids given so far */
	uint64_t flows;
	uint64_t newest; /* time of an event, boot ns; 0: there was none */
	struct pb_buf event, scratch, packet, out;
};

void pft_writer_free(struct pft_writer *w);
void pft_flush(struct pft_writer *w);

/* Starts a sequence: an incremental one with its clock and categories. */
void pft_seq_open(struct pft_writer *w, struct pft_seq *s, bool incremental);
void pft_seq_free(struct pft_seq *s);

/* What realtime was at a boot time. */
void pft_clock(struct pft_writer *w, const struct pft_seq *s, uint64_t boot_ns, int64_t offset_ns);

/* A track, for its descriptor. */
struct pft_track {
	uint64_t parent;
	struct pb_str name;
	bool is_process, is_thread, is_counter;
	uint32_t pid, tid;
	int unit;	       /* of a counter, CounterDescriptor.Unit; 0: unit_name */
	const char *unit_name; /* may be NULL */
};

/* Describes a track in sequence s; returns its uuid. */
uint32_t pft_track(struct pft_writer *w, const struct pft_seq *s, const struct pft_track *t);

/* Begins an event; whatever was begun before and not put is forgotten. */
void pft_event(struct pft_writer *w, enum pft_type type, uint32_t track);

/* The number of a text in a table of an incremental sequence, told to the reader with the sequence's
 * next event when it is new.  NULL: the table is full, or the text too long for it. */
struct pft_text *pft_intern(
	struct pft_writer *w, struct pft_seq *s, enum pft_table table, struct pb_str text);
/* The same for one of the exporter's own texts, of which there are few: for them a table is never full. */
struct pft_text *pft_intern_own(
	struct pft_writer *w, struct pft_seq *s, enum pft_table table, struct pb_str text);

void pft_category(struct pft_writer *w, enum pft_category c);
void pft_name(struct pft_writer *w, struct pft_seq *s, struct pb_str name);
/* By the number of a text in PFT_NAMES. */
void pft_name_iid(struct pft_writer *w, uint32_t iid);

/* An annotation: the value as what its text is (decimal, 0x..., true, false, else a string). */
void pft_note(struct pft_writer *w, struct pft_seq *s, struct pb_str key, struct pb_str value);
/* The same with a key that was looked up already (NULL: key). */
void pft_note_key(struct pft_writer *w, struct pft_seq *s, const struct pft_text *known,
	struct pb_str key, struct pb_str value);
/* With a key of the exporter's own; the sequence is incremental. */
void pft_note_u64(struct pft_writer *w, struct pft_seq *s, const char *key, uint64_t value);

void pft_flow(struct pft_writer *w, uint64_t id, bool terminates);
void pft_value(struct pft_writer *w, int64_t value);
void pft_value_double(struct pft_writer *w, double value);

/* Writes the event at a time, boot ns, which is taken as the sequence's newest if it is older. */
void pft_put(struct pft_writer *w, struct pft_seq *s, uint64_t time);

static inline struct pb_str pft_str(const char *s)
{
	return (struct pb_str){s, (uint32_t)__builtin_strlen(s)};
}

#endif
