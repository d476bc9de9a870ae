/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rec_session.h - what the header of a recording says when a program made it of itself: an inspect
 * session.
 *
 * Such a recording lies in the session's directory, and its files come to be in that directory
 * itself, not in one of a process below it.
 */
#ifndef NTRACE_RECORD_REC_SESSION_H
#define NTRACE_RECORD_REC_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the session did not do. */
struct rec_session_off {
	const char *what; /* an activity; "event_cores", "event_types": a filter */
	const char *why;
};

#define SESSION_TYPE_NUMBER int64_t
#define SESSION_TYPE_TEXT const char *
#define SESSION_TYPE_LIST const char *const *

/* NULL and 0: not known, left out.  Lists end with NULL. */
struct rec_session {
#define SESSION_MEMBER(kind, name) SESSION_TYPE_##kind name;
#include "runtime/record/session_members.def"
#undef SESSION_MEMBER
	const struct rec_session_off *off; /* ends with one without `what` */
};

/* A member, for those who show all of them. */
struct rec_session_value {
	const char *key;
	enum rec_session_kind { SESSION_NUMBER, SESSION_TEXT, SESSION_LIST } kind;
	int64_t number;
	const char *text;	 /* NULL: not known */
	const char *const *list; /* the same */
};

/* The i-th member but `off`; false beyond the last. */
bool rec_session_value(const struct rec_session *s, size_t i, struct rec_session_value *ret);

#endif
