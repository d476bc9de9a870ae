/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreign_fixture.h - an ntrace.pb as others may write it, event by event, and its summary.
 */
#ifndef NTRACE_TESTS_FOREIGN_FIXTURE_H
#define NTRACE_TESTS_FOREIGN_FIXTURE_H

#include "agent/output/summary.h"
#include "runtime/base/file.h"
#include "tests/unit/summary_fixture.h"

struct foreign {
	struct scratch dir;
	struct pb_buf bytes;
	struct ntrace_event_view e; /* the next event; what it holds stays for the one after it */
	struct summary s;
};

static inline bool foreign_open(struct foreign *f)
{
	memset(f, 0, sizeof(*f));
	return scratch_make(&f->dir);
}

static inline struct pb_str foreign_text(const char *s)
{
	return (struct pb_str){s, (uint32_t)strlen(s)};
}

static inline void foreign_attr(struct foreign *f, const char *key, const char *value)
{
	ntrace_event_attr(&f->e, foreign_text(key), foreign_text(value));
}

/* Appends the event that f->e is but for these; then its attributes, hint and status are gone. */
static inline void foreign_put(
	struct foreign *f, uint32_t type, uint32_t phase, uint64_t id, uint64_t timestamp)
{
	f->e.event_type = type;
	f->e.phase = phase;
	f->e.id = f->e.tracking_id = id;
	f->e.timestamp = timestamp;
	f->e.thread_id = 7;
	ntrace_event_append(&f->bytes, &f->e);
	f->e = (struct ntrace_event_view){.nc_idx = f->e.nc_idx};
}

static inline bool foreign_write(struct foreign *f, const char *name, size_t size)
{
	FILE *to = fopen(scratch_path(&f->dir, name).s, "w");
	bool ok = to && fwrite(f->bytes.data, 1, size, to) == size;

	return to && fclose(to) == 0 && ok;
}

/* The feed's result for a file of the fixture. */
static inline int foreign_sum_file(struct foreign *f, const char *name)
{
	struct feed_options how = {NULL};
	struct feed_sink sink;
	char *error = NULL;
	int rc, computed;

	summary_free(&f->s);
	sink = summary_sink(&f->s);
	rc = feed_trace(scratch_path(&f->dir, name).s, &how, &sink, &error);
	free(error);
	computed = summary_compute(&f->s);
	return computed < 0 ? computed : rc;
}

static inline int foreign_sum(struct foreign *f)
{
	return foreign_write(f, "ntrace.pb", f->bytes.len) ? foreign_sum_file(f, "ntrace.pb")
							   : -EIO;
}

static inline void foreign_free(struct foreign *f)
{
	summary_free(&f->s);
	pb_buf_free(&f->bytes);
	scratch_remove(&f->dir);
}

#endif
