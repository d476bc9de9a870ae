/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segments.h - the files of a recording, in order.
 */
#ifndef NTRACE_RECORD_SEGMENTS_H
#define NTRACE_RECORD_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct segments {
	int dir_fd;
	uint32_t *index; /* ascending */
	size_t count;
	uint32_t version; /* of the first: for those whose head is damaged */
};

/* Opens the directory (or REC_DIR in it) and looks at all heads.  The errors of rec_reader_open;
 * segments_close in any case. */
int segments_open(struct segments *s, const char *path);
void segments_close(struct segments *s);

/* A file descriptor of the i-th segment; -EPROTO when it is no regular file; -errno. */
int segments_file(const struct segments *s, size_t i);

/* Does a writer hold its lock on the directory? */
bool segments_in_work(const struct segments *s);

#endif
