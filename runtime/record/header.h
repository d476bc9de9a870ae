/* SPDX-License-Identifier: Apache-2.0 */
/*
 * header.h - the first frame of a recording (REC_HEADER): who recorded what, where and how, as
 * JSON.
 *
 * The recorder describes itself in a struct rec_header_info and gets the text; the merge parses the
 * text back.  Keys are sorted and documented in docs/recording-format.md.  A reader takes every key
 * as absent when it is missing or of another type, and ignores keys that it does not know.
 */
#ifndef NTRACE_RECORD_HEADER_H
#define NTRACE_RECORD_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/record/rec_session.h"

/* Result of a step that is in use. */
#define REC_REACHED "reached"

/* Result of the step of family "process" when the hooks, which know the kernel's own process numbers alone, cannot
 * tell the command's by those that the recorder has. */
#define REC_OTHER_PIDS "other pid namespace"

/* A way of hooking that was tried. */
struct rec_ladder_step {
	const char *family; /* what for: "ioctl", "process" */
	const char *step;   /* how: "tracepoint", "tp_btf" */
	const char *result; /* REC_REACHED, or the name of the error */
};

/* NULL and 0 mean unknown or default; such keys are left out of the text. */
struct rec_header_info {
	const char *producer;	  /* "ntrace 0.1.0" */
	const char *instance_id;  /* "i-..." or the host's name; becomes part of directory names */
	const char *host;	  /* node name */
	const char *kernel;	  /* release, e.g. "6.1.0-18-amd64" */
	const char *machine;	  /* e.g. "x86_64" */
	const char *driver;	  /* version of the neuron driver */
	const char *const *hooks; /* attached kernel hooks, NULL-terminated; NULL: none */
	/* In the order in which they were tried; ends with one without a family.  NULL: not known. */
	const struct rec_ladder_step *ladder;
	bool is_virtual; /* the devices are ntrace-vdev's */
	bool is_cut;	 /* made by rec cut from another recording */

	const struct rec_session *session; /* a program recorded itself; NULL: no */

	/* config */
	bool attached;		    /* to processes that ran already */
	bool all_processes;	    /* kernel hooks looked at every process */
	uint32_t kernel_ring_bytes; /* BPF ring buffer */
	uint32_t ring_capacity;	    /* records per core that runtimes were asked for */

	/* Tables of the producer.  0: the running program's own, which is what a recorder wants. */
	uint64_t registry_hash; /* trace_registry_hash() */
	uint64_t ioctl_hash;	/* rec_ioctl_table_hash() */
};

/* The texts of the top level, by number: key and value (NULL: unknown) of the i-th.  NULL beyond the last. */
const char *rec_header_text_at(
	const struct rec_header_info *info, size_t i, const char **ret_value);

/* XXH3 of the request table: numbers, names, fields. */
uint64_t rec_ioctl_table_hash(void);
/* Does today's table read the records of one with this hash right? */
bool rec_ioctl_table_reads(uint64_t hash);

/* The header's text, NUL-terminated, to be freed.  Bytes that are not UTF-8 become '?'.  0 or
 * -ENOMEM. */
int rec_header_text(const struct rec_header_info *info, char **ret_text);

/* A parsed header; `info` points into it. */
struct rec_header {
	struct rec_header_info info;
	void *json;
	const char **hooks;
	struct rec_ladder_step *ladder;
	struct rec_session *session;
};

/* Parses size bytes of text.  0, -EBADMSG (not a JSON object), -ENOMEM.  On error *ret is empty,
 * and rec_header_free is harmless. */
int rec_header_parse(const char *text, size_t size, struct rec_header *ret);
void rec_header_free(struct rec_header *h);

/* The header of a cut of the recording with this one: marked as such, what we do not know kept.  0 and
 * the text (to be freed), or as rec_header_parse. */
int rec_header_cut(const char *text, size_t size, char **ret_text);

#endif
