/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blind.c - one sentence per thing that could not be seen, from the recording alone.
 */
#include "runtime/record/blind.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/record/blind_hooks.h"
#include "runtime/trace/event_registry.h"

struct lines {
	char (*text)[BLIND_BYTES];
	uint32_t count, dropped;
};

static void add(struct lines *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct lines *s, const char *format, ...)
{
	va_list ap;

	if (s->count == BLIND_LINES) {
		s->dropped++;
		return;
	}
	va_start(ap, format);
	vsnprintf(s->text[s->count++], BLIND_BYTES, format, ap);
	va_end(ap);
}

static void add_line(void *ctx, const char *line)
{
	add(ctx, "%s", line);
}

/* A lost header says nothing against them. */
static bool has_hooks(const struct session *l)
{
	const char *const *hooks = l->header.info.hooks;

	return !l->has_header || (hooks && *hooks);
}

/* Whom the hooks looked at, if not at everybody. */
static const char *watched(const struct session *l)
{
	return l->header.info.attached ? "those attached to and their later children"
				       : "the command and its children";
}

static void about_session(struct lines *s, const struct rec_session *own)
{
	add(s, "the driver's side, and other processes: the program recorded itself");
	for (const struct rec_session_off *o = own->off; o && o->what; o++)
		add(s, "%s: %s", o->what, o->why);
}

/* Did the hooks take none of the command's processes for its own? */
static bool has_other_pids(const struct session *l)
{
	const struct rec_ladder_step *step = l->has_header ? l->header.info.ladder : NULL;

	while (step && step->family && strcmp(step->result, REC_OTHER_PIDS) != 0)
		step++;
	return step && step->family;
}

static uint64_t counter(const struct session *l, enum rec_counter_id id)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < l->counter_count; i++)
		if (l->counters[i].id == (uint32_t)id)
			sum += l->counters[i].value;
	return sum;
}

/* The process filter had no room for them. */
static void about_children(struct lines *s, const struct session *l)
{
	uint64_t n = counter(l, REC_C_KERNEL_UNTRACKED);

	if (n)
		add(s, "driver calls of %" PRIu64 " processes that could not be followed", n);
}

/* Rounded up: it is what was at most. */
static void about_kprobes(struct lines *s, const struct session *l)
{
	uint64_t ns = counter(l, REC_C_KERNEL_KPROBES_OFF_NS);

	if (ns)
		add(s,
			"what kprobes alone would have seen while they were switched off for the "
			"whole machine: of at most %" PRIu64 " ms",
			ns / 1000000 + (ns % 1000000 != 0));
}

static void about_hooks(struct lines *s, const struct session *l)
{
	if (session_own(l)) {
		about_session(s, session_own(l));
		return;
	}
	if (!has_hooks(l)) {
		add(s, "no kernel hook was active: driver requests");
		return;
	}
	if (has_other_pids(l)) {
		add(s,
			"driver calls of %s: the recorder ran in a pid namespace of its own, and "
			"the "
			"hooks know the kernel's own numbers alone (record -a sees every process)",
			watched(l));
		return;
	}
	if (l->has_header && l->process_count == 0 && l->ended && !rec_damaged(&l->damage)) {
		if (l->header.info.all_processes)
			add(s, "no device was used");
		else
			add(s, "no device was used by %s; others were not watched", watched(l));
		about_children(s, l);
		blind_meanwhile(l, add_line, s);
		return;
	}
	about_children(s, l);
	blind_hooks(l, add_line, s);
	about_kprobes(s, l);
	if (l->has_header && !l->header.info.all_processes)
		add(s, "ioctls of processes other than %s", watched(l));
}

static void about_tables(struct lines *s, const struct session *l)
{
	if (!l->has_header) {
		add(s, "the recording's header is lost: host, hooks and instance are not known");
		return;
	}
	if (l->header.info.registry_hash != trace_registry_hash())
		add(s, "recorded with another event registry: payload attributes may be misread");
	if (!rec_ioctl_table_reads(l->header.info.ioctl_hash))
		add(s, "recorded with another request table: driver attributes may be misread");
}

static void about_refused(struct lines *s, const struct session *l)
{
	const struct refused *r = &l->refused;
	char line[BLIND_BYTES];

	for (uint32_t i = 0; i < r->count; i++) {
		refused_line(&r->rows[i], line, sizeof(line));
		add(s, "%s", line);
	}
	if (r->more_calls)
		add(s,
			"what other requests of another driver version would have done: %" PRIu64
			" calls were refused",
			r->more_calls);
}

static void about_runtimes(struct lines *s, const struct session *l)
{
	uint64_t refused = counter(l, REC_C_AGENT_REFUSED);
	uint64_t failed = counter(l, REC_C_AGENT_FAILED);
	uint64_t running = counter(l, REC_C_AGENT_LEFT_RUNNING);
	uint64_t replaced = counter(l, REC_C_AGENT_REPLACED);

	if (l->has_header && l->header.info.attached)
		add(s, "everything before ntrace was attached, and the ends of what had begun by "
		       "then");
	if (!l->has_runtime && l->has_failed)
		add(s, "host spans: nrt_init failed before there could be any");
	else if (!l->has_runtime && (l->process_count || !has_hooks(l)))
		add(s, "host spans: no process announced a runtime of ours");
	if (l->unnamed)
		add(s,
			"which process %" PRIu64
			" runtime%s whose PROCESS frame is lost belonged to: written under pid 0",
			l->unnamed, l->unnamed == 1 ? "" : "s");
	if (refused)
		add(s, "host spans of %" PRIu64 " runtime%s whose announcement was refused",
			refused, refused == 1 ? "" : "s");
	if (replaced)
		add(s,
			"host spans of %" PRIu64
			" program%s that %s attached to became since (execve)",
			replaced, replaced == 1 ? "" : "s",
			replaced == 1 ? "a process" : "processes");
	if (running)
		add(s, "%" PRIu64 " process%s of the command that ran on after it", running,
			running == 1 ? "" : "es");
	if (l->foreign)
		add(s,
			"driver work inside of %" PRIu64
			" event%s of threads that ended before their "
			"id outside of their pid namespace was known",
			l->foreign, l->foreign == 1 ? "" : "s");
	if (failed)
		add(s, "the rest of %" PRIu64 " runtime%s whose shared memory broke its rules",
			failed, failed == 1 ? "" : "s");
}

void blind_runs_line(uint64_t device_runs, enum blind_why why, char line[BLIND_BYTES])
{
	static const char *const whys[BLIND_WHYS] = {
		[BLIND_NO_PROFILE] =
			"no device profile (NTFF) was taken (record --device takes them)",
		[BLIND_NO_RECORDS] = "the device profiles (NTFF) have no whole record of them: "
				     "lost, or not profiled",
		[BLIND_CUT] = "the cut has no device profile (NTFF) of them",
		[BLIND_NO_SESSION] = "the session took no device profile (NTFF) "
				     "(NEURON_RT_INSPECT_DEVICE_PROFILE)",
	};

	snprintf(line, BLIND_BYTES, "inside of %" PRIu64 " device run%s: %s", device_runs,
		device_runs == 1 ? "" : "s", whys[why]);
}

uint64_t blind_runs(const char *line, enum blind_why *ret_why)
{
	uint64_t runs = 0;

	if (sscanf(line, "inside of %20" SCNu64 " device run", &runs) != 1)
		return 0;
	for (unsigned why = 0; why < BLIND_WHYS; why++) {
		char as_written[BLIND_BYTES];

		blind_runs_line(runs, why, as_written);
		*ret_why = why;
		if (!strcmp(line, as_written))
			return runs;
	}
	return 0;
}

static enum blind_why why_blind(const struct session *l)
{
	if (l->profiles.found)
		return BLIND_NO_RECORDS;
	if (session_own(l))
		return BLIND_NO_SESSION;
	return l->header.info.is_cut ? BLIND_CUT : BLIND_NO_PROFILE;
}

/* Profiles of a session are files beside its trace.  Those of a whole session come to be at its end. */
static bool about_session_profiles(struct lines *s, const struct session *l)
{
	const struct rec_session *own = session_own(l);
	const char *mode = own && own->device_profile ? own->device_profile : "off";
	bool off = !strcmp(mode, "off");

	if (off && !(own && own->on_fail))
		return false;
	if (off)
		add(s, "inside of device runs that did not fail: the session took device profiles "
		       "(NTFF) "
		       "of failures alone (NEURON_RT_INSPECT_ON_FAIL)");
	if (!l->ended && !strcmp(mode, "session") && !session_has_file(l, "ntff"))
		add(s, "inside of device runs: the device profiles (NTFF) were not written, the "
		       "program ended before");
	else if (!l->ended)
		add(s, "device profiles (NTFF) that were not written when the program ended");
	return true;
}

/* A signal ended the program in the middle of what would have been one. */
static void about_lost_profiles(struct lines *s, const struct session_lost *lost)
{
	if (lost->count == 1)
		add(s,
			"device profile (NTFF) of %s: a thread that the signal interrupted worked "
			"on it",
			lost->first);
	else if (lost->count)
		add(s,
			"device profiles (NTFF) of %" PRIu64
			" cores, the first %s: threads that the signal interrupted worked on them",
			lost->count, lost->first);
}

/* The disk was full, or the directory not there. */
static void about_unwritten_files(struct lines *s, const struct session_lost *unwritten)
{
	if (unwritten->count == 1)
		add(s, "%s, a file of the session that could not be written", unwritten->first);
	else if (unwritten->count)
		add(s, "%" PRIu64 " files of the session that could not be written, the first %s",
			unwritten->count, unwritten->first);
}

/* Device profiles that the recording names. */
static void about_profiles(struct lines *s, const struct session *l)
{
	const struct session_profiles *p = &l->profiles;

	for (uint64_t i = 0; i < p->bad && i < SESSION_BAD_PROFILES; i++)
		add(s, "%s", p->why[i]);
	if (p->bad > SESSION_BAD_PROFILES)
		add(s, "%" PRIu64 " device profiles more that are missing or damaged",
			p->bad - SESSION_BAD_PROFILES);
	for (uint64_t i = 0; i < p->absent && i < SESSION_BAD_PROFILES; i++)
		add(s, "device profile of pid %" PRIu32 ": missing", p->absent_pids[i]);
	if (p->absent > SESSION_BAD_PROFILES)
		add(s, "device profiles of %" PRIu64 " processes more: missing",
			p->absent - SESSION_BAD_PROFILES);
	if (p->asked && p->named && !p->found)
		add(s, "device profiles: the footer of the recording does not lead to them");
	if (p->at_least)
		add(s,
			"device records that %" PRIu64
			" device profile%s lost beyond those that are counted",
			p->at_least, p->at_least == 1 ? "" : "s");
}

/* Runs that a runtime of ours told are counted; what another runtime started is not known. */
static void about_device(struct lines *s, const struct session *l, uint64_t device_runs)
{
	bool untold = !l->has_runtime || counter(l, REC_C_AGENT_REFUSED) ||
		      counter(l, REC_C_AGENT_FAILED);

	char line[BLIND_BYTES];

	if (!(l->ended && l->profiles.found) && about_session_profiles(s, l))
		return;
	blind_runs_line(device_runs, why_blind(l), line);
	if (l->profiles.named && !l->profiles.asked)
		add(s, BLIND_NOT_ASKED ", which shows the device profiles (NTFF) that were taken");
	else if (device_runs)
		add(s, "%s", line);
	else if (l->profiles.found)
		return;
	else if (l->process_count && untold)
		add(s, "inside of the device: no device profile (NTFF) was taken");
}

static const char *blind_end(const struct session *l)
{
	switch (l->end.reason) {
	case REC_END_COMMAND: /* no end frame at all */
	case REC_END_ASKED:
		if (l->damage.cut_bytes)
			return "everything since the end of the recording, which is cut off";
		if (session_own(l))
			return "the end: at most the last 100 ms before the program ended";
		return l->header.info.is_cut
			       ? "everything since the end of what was cut, which is "
				 "not that of the recorder"
			       : "the end: the last 100 ms if the recorder was killed";
	case REC_END_NO_SPACE:
		return "everything since there was no more space for the recording";
	default:
		return session_own(l) ? "everything since the session failed"
				      : "everything since the recorder failed";
	}
}

uint32_t blind_lines(
	const struct session *l, uint64_t device_runs, char lines[BLIND_LINES][BLIND_BYTES])
{
	struct lines s = {.text = lines};

	memset(lines, 0, BLIND_LINES * BLIND_BYTES);
	about_hooks(&s, l);
	about_device(&s, l, device_runs);
	about_lost_profiles(&s, &l->lost_files);
	about_unwritten_files(&s, &l->unwritten_files);
	about_profiles(&s, l);
	about_runtimes(&s, l);
	about_refused(&s, l);
	if (!l->ended)
		add(&s, "%s", blind_end(l));
	about_tables(&s, l);
	if (s.dropped) /* its own place was another line's */
		snprintf(lines[BLIND_LINES - 1], BLIND_BYTES, "%" PRIu32 " things more",
			s.dropped + 1);
	return s.count;
}
