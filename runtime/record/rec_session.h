/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rec_session.h - what the header of a recording says when a program made it of itself: an inspect session.
 *
 * Such a recording lies in the session's directory, and its files come to be in that directory itself, not in one of a process
 * below it.  Keys of the JSON and fields of trace_info.pb (ntrace_session) have the names of the members.
 */
#ifndef NTRACE_RECORD_REC_SESSION_H
#define NTRACE_RECORD_REC_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the session did not do. */
struct rec_session_off {
	const char *what; /* an activity or a file */
	const char *why;
};

/* NULL and 0: not known, left out.  Lists end with NULL. */
struct rec_session {
	int64_t session_id;
	int64_t enabled, on_fail;	   /* 0, 1 */
	int64_t arch;			   /* driver's number: 2, 3, 4 */
	int64_t logical_cores;		   /* that the process sees: 0 ... - 1 */
	int64_t logical_nc_size;	   /* physical cores of each */
	int64_t period_ms;		   /* between samples */
	const char *device_profile;	   /* in effect: "off", "model", "session" */
	const char *device_profile_wanted; /* as it was asked for */
	const char *device_cores;	   /* logical cores with device profiles: "0-3,7" */
	const char *event_cores;       /* logical cores whose events are in it, in the same form */
	const char *layout;	       /* of the directory */
	const char *directory;	       /* where the session's files are */
	const char *runtime;	       /* version of the interface */
	const char *const *activities; /* in effect */
	const char *const *event_types_off; /* types of events that were left out */
	const char *const *environment;	    /* settings in effect, "NAME=value" */
	const struct rec_session_off *off;  /* ends with one without `what` */
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
