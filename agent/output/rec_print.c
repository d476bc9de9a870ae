/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rec_print.c - what `rec info` and `rec verify` show of a recording.  Times are printed as seconds since the first clock snapshot in
 * text, as epoch nanoseconds in JSON.
 */
#include "agent/output/rec_print.h"
#include "runtime/base/printable.h"

#include <inttypes.h>
#include <string.h>

#include "agent/output/json_out.h"
#include "agent/output/rec_print_hooks.h"
#include "agent/output/report.h"
#include "agent/output/state.h"
#include "runtime/base/status_name.h"

static const char *const type_names[SUMMARY_TYPES] = {
	[REC_HEADER] = "header",
	[REC_CLOCK] = "clock",
	[REC_DEVICE] = "device",
	[REC_PROCESS] = "process",
	[REC_KERNEL] = "kernel",
	[REC_RUNTIME] = "runtime",
	[REC_WATERMARK] = "watermark",
	[REC_COUNTERS] = "counters",
	[REC_CPU] = "cpu",
	[REC_MEM] = "mem",
	[REC_NAME] = "name",
	[REC_END] = "end",
	[REC_FOOTER] = "footer",
	[REC_THREAD] = "thread",
	[REC_DEVICE_PROFILE] = "profile",
	[REC_FILE] = "file",
	[REC_DRIVER] = "driver",
	[REC_MODULE] = "module",
	[REC_HOOK_COST] = "hook_cost",
	[REC_FAILURE] = "failure",
	[REC_HOOKS] = "hooks",
};

#define MAX_TEXT 65536u /* bytes of a text that are shown */

static uint64_t epoch(const struct rec_summary *s, uint64_t boot_ns)
{
	return boot_ns + (uint64_t)clock_snapshot_offset(&s->clock);
}

/* The bytes of text that a terminal can take; others become '?'. */
static void plain(FILE *f, const char *text, size_t max)
{
	printable_put(f, text, strnlen(text, max));
}

/* ---- text --------------------------------------------------------------------------------- */

static void seconds(FILE *f, const struct rec_summary *s, uint64_t boot_ns)
{
	uint64_t zero = s->clock.boot_before;
	uint64_t ns = boot_ns >= zero ? boot_ns - zero : zero - boot_ns;

	fprintf(f, "%s%" PRIu64 ".%09" PRIu64, boot_ns < zero ? "-" : "", ns / 1000000000u,
		ns % 1000000000u);
}

/* The driver has come or gone. */
static void print_driver(FILE *f, const struct rec_summary *s, const struct module_change *c)
{
	fprintf(f, "driver      ");
	if (c->loaded)
		plain(f, c->version[0] ? c->version : "of unknown version", sizeof(c->version));
	fprintf(f, "%s generation %" PRIu32 ", %s at ", c->loaded ? "," : "of", c->generation,
		c->loaded ? "loaded" : "unloaded");
	seconds(f, s, c->boot_ns);
	fprintf(f, " s\n");
	rec_print_hooks(f, c->ladder, c->hooks);
}

static void print_header(FILE *f, const struct rec_summary *s)
{
	const char *key, *text;

	fprintf(f, "format      version %u\n", s->version);
	if (!s->has_header)
		fprintf(f, "header      missing\n");
	for (size_t i = 0; (key = rec_header_text_at(&s->header.info, i, &text)); i++) {
		if (!text)
			continue;
		fprintf(f, "%-11s ", key);
		plain(f, text, 200);
		fputc('\n', f);
	}
	if (s->header.info.is_virtual)
		fprintf(f, "device      VIRTUAL (ntrace-vdev), not a Neuron device\n");
	rec_print_hooks(f, s->header.info.ladder, s->header.info.hooks);
	for (size_t i = 0; i < s->modules.count; i++)
		print_driver(f, s, &s->modules.changes[i]);
}

/* What an inspect session said of itself, but for what is not known. */
static void print_session(FILE *f, const struct rec_summary *s)
{
	const struct rec_session *own = s->header.info.session;
	struct rec_session_value v;

	for (size_t i = 0; own && rec_session_value(own, i, &v); i++) {
		if (!v.number && !v.text && !(v.list && *v.list))
			continue;
		fprintf(f, "session     %s", v.key);
		if (v.kind == SESSION_NUMBER)
			fprintf(f, " %" PRId64, v.number);
		if (v.text) {
			fputc(' ', f);
			plain(f, v.text, 200);
		}
		for (; v.list && *v.list; v.list++) {
			fputc(' ', f);
			plain(f, *v.list, 200);
		}
		fputc('\n', f);
	}
	for (const struct rec_session_off *o = own ? own->off : NULL; o && o->what; o++) {
		fprintf(f, "session     without ");
		plain(f, o->what, 60);
		fprintf(f, ": ");
		plain(f, o->why, 200);
		fputc('\n', f);
	}
}

static void print_sources(FILE *f, const struct rec_summary *s)
{
	for (size_t i = 0; i < s->source_count; i++) {
		const struct summary_source *src = &s->sources[i];

		if (src->source == REC_SOURCE_RECORDER)
			continue;
		fprintf(f, "source %-4u ", src->source);
		if (src->source == REC_SOURCE_KERNEL)
			fprintf(f, "driver calls");
		else
			fprintf(f, "runtime");
		if (src->is_process) {
			fprintf(f, ", pid %u%s", src->process.pid, src->process.comm[0] ? " " : "");
			plain(f, src->process.comm, sizeof(src->process.comm));
		}
		fprintf(f, ", %" PRIu64 " records\n", src->records);
	}
}

static void print_profiles(FILE *f, const struct rec_summary *s)
{
	for (size_t i = 0; i < s->profile_count; i++) {
		const struct summary_profile *p = &s->profiles[i];
		const char *fault = summary_profile_fault(p);

		fprintf(f, "profile     of the device, pid %" PRIu32 ", ", p->frame.pid);
		if (p->frame.index == REC_DEVICE_PROFILE_NONE)
			fprintf(f, "missing\n");
		else
			fprintf(f, REC_DEVICE_PROFILE_FORMAT ", %" PRIu64 " bytes%s%s\n",
				p->frame.index, p->frame.bytes, fault ? ": " : "",
				fault ? fault : "");
	}
}

static void print_span(FILE *f, const struct rec_summary *s)
{
	if (s->clock.boot_after == 0) {
		fprintf(f, "time        unknown: no clock snapshot\n");
		return;
	}
	fprintf(f, "start       %" PRIu64 " (epoch ns)\n", epoch(s, s->clock.boot_before));
	if (s->last_ns == 0)
		return;
	fprintf(f, "records     from ");
	seconds(f, s, s->first_ns);
	fprintf(f, " to ");
	seconds(f, s, s->last_ns);
	fprintf(f, " s\n");
}

static void print_types(FILE *f, const struct rec_summary *s)
{
	fprintf(f, "%-11s %12s %16s\n", "frames of", "frames", "bytes");
	for (unsigned t = 0; t < SUMMARY_TYPES; t++)
		if (s->types[t].frames)
			fprintf(f, "  %-9s %12" PRIu64 " %16" PRIu64 "\n",
				type_names[t] ? type_names[t] : "?", s->types[t].frames,
				s->types[t].bytes);
	if (s->damage.unknown_frames)
		fprintf(f, "  %-9s %12" PRIu64 "\n", "unknown", s->damage.unknown_frames);
	if (s->blocks)
		fprintf(f, "blocks      %" PRIu64 ", %" PRIu64 " bytes as stored\n", s->blocks,
			s->stored_bytes);
}

/* Programs that ran, those that took most first. */
static void print_hook_cost(FILE *f, const struct rec_summary *s)
{
	for (size_t i = 0; i < s->hook_cost_count; i++) {
		const struct rec_hook_cost *p = &s->hook_cost[i];

		if (!p->runs)
			continue;
		fprintf(f, "hook cost   %12" PRIu64 " ns %10" PRIu64 " runs %8" PRIu64 " ns each  ",
			p->run_ns, p->runs, p->run_ns / p->runs);
		plain(f, p->program, sizeof(p->program));
		fputc('\n', f);
	}
}

static void print_failures(FILE *f, const struct rec_summary *s)
{
	for (size_t i = 0; i < s->failure_count; i++) {
		const struct rec_failure *p = &s->failures[i];
		const char *name = status_name((int32_t)p->status);

		fprintf(f, "failed      nrt_init of process %" PRIu32 " (", p->pid);
		plain(f, p->comm, sizeof(p->comm));
		fprintf(f, "): %s (%" PRId32 ")\n", name ? name : "unknown status",
			(int32_t)p->status);
	}
}

static void print_ledger(FILE *f, const struct rec_summary *s)
{
	fprintf(f, "ledger\n");
	for (uint32_t id = 1; id < REC_COUNTER_MAX; id++) {
		const struct rec_counter_info *info = rec_counter_info(id);

		if (s->ledger.value[id])
			fprintf(f, "  %-4s %-9s %-14s %14" PRIu64 "  %s\n",
				rec_counter_kind_name(info->kind), info->stage, info->name,
				s->ledger.value[id], info->text);
	}
	print_hook_cost(f, s);
	fprintf(f, "gaps        %" PRIu64 " driver calls missing by number%s\n", s->seq_gaps,
		s->seq_gaps && s->header.info.is_cut ? ": this is a cut" : "");
	fprintf(f, "open spans  %" PRIu64 "\n", s->open_spans);
}

void rec_print_damage(FILE *f, const struct rec_damage *d)
{
	char text[STATE_TEXT];

	state_damage(d, text);
	if (*text)
		fprintf(f, "damage      %s\n", text);
}

void rec_print_text(FILE *f, const struct rec_summary *s)
{
	print_header(f, s);
	print_session(f, s);
	print_span(f, s);
	print_sources(f, s);
	print_profiles(f, s);
	print_failures(f, s);
	print_types(f, s);
	print_ledger(f, s);
	fprintf(f, "footer      %s\n",
		s->footer_fault ? s->footer_fault
		: s->has_footer ? "agrees"
				: "none");
	if (s->ended)
		fprintf(f, "ended       in order, wait status %d\n", s->end.wait_status);
	else if (s->in_work)
		fprintf(f, "ended       not yet: it is still being written\n");
	else
		fprintf(f, "ended       %s%s\n", rec_end_in_order(&s->end) ? "no end frame: " : "",
			report_end(&s->end, s->header.info.session));
	rec_print_damage(f, &s->damage);
}

/* ---- JSON --------------------------------------------------------------------------------- */

static void key_string(struct json_out *j, const char *key, const char *text, size_t max)
{
	jout_key(j, key);
	jout_string(j, text, strnlen(text, max));
}

static void json_off(struct json_out *j, const struct rec_session_off *off)
{
	jout_key(j, "off");
	jout_begin(j, '[');
	for (; off && off->what; off++) {
		jout_begin(j, '{');
		key_string(j, "what", off->what, MAX_TEXT);
		key_string(j, "why", off->why, MAX_TEXT);
		jout_end(j, '}');
	}
	jout_end(j, ']');
}

/* As it stands in the header; left out when it is of no session. */
static void json_session(struct json_out *j, const struct rec_session *own)
{
	struct rec_session_value v;

	if (!own)
		return;
	jout_key(j, "session");
	jout_begin(j, '{');
	for (size_t i = 0; rec_session_value(own, i, &v); i++) {
		if (v.kind == SESSION_NUMBER) {
			jout_key(j, v.key);
			jout_signed(j, v.number);
		} else if (v.text) {
			key_string(j, v.key, v.text, MAX_TEXT);
		} else if (v.list) {
			jout_key(j, v.key);
			jout_begin(j, '[');
			for (; *v.list; v.list++)
				jout_string(j, *v.list, strnlen(*v.list, MAX_TEXT));
			jout_end(j, ']');
		}
	}
	json_off(j, own->off);
	jout_end(j, '}');
}

/* Left out where the driver neither came nor went. */
static void json_drivers(struct json_out *j, const struct rec_summary *s)
{
	if (!s->modules.count)
		return;
	jout_key(j, "drivers");
	jout_begin(j, '[');
	for (size_t i = 0; i < s->modules.count; i++) {
		const struct module_change *c = &s->modules.changes[i];

		jout_begin(j, '{');
		jout_key_unsigned(j, "time_ns", epoch(s, c->boot_ns));
		jout_key_bool(j, "loaded", c->loaded);
		jout_key_unsigned(j, "generation", c->generation);
		if (c->version[0])
			key_string(j, "version", c->version, sizeof(c->version));
		if (c->loaded)
			rec_json_hooks(j, c->ladder, c->hooks);
		jout_end(j, '}');
	}
	jout_end(j, ']');
}

static void json_header(struct json_out *j, const struct rec_summary *s)
{
	const char *key, *text;

	jout_key_unsigned(j, "version", s->version);
	for (size_t i = 0; (key = rec_header_text_at(&s->header.info, i, &text)); i++)
		if (text)
			key_string(j, key, text, MAX_TEXT);
	jout_key_bool(j, "is_virtual", s->header.info.is_virtual);
	rec_json_hooks(j, s->header.info.ladder, s->header.info.hooks);
	json_drivers(j, s);
	json_session(j, s->header.info.session);
	if (s->clock.boot_after)
		jout_key_unsigned(j, "start_ns", epoch(s, s->clock.boot_before));
	if (s->clock.boot_after && s->last_ns) {
		jout_key_unsigned(j, "first_ns", epoch(s, s->first_ns));
		jout_key_unsigned(j, "last_ns", epoch(s, s->last_ns));
	}
}

static void json_sources(struct json_out *j, const struct rec_summary *s)
{
	jout_key(j, "sources");
	jout_begin(j, '[');
	for (size_t i = 0; i < s->source_count; i++) {
		const struct summary_source *src = &s->sources[i];

		if (src->source == REC_SOURCE_RECORDER)
			continue;
		jout_begin(j, '{');
		jout_key_unsigned(j, "source", src->source);
		if (src->is_process) {
			jout_key_unsigned(j, "pid", src->process.pid);
			if (src->process.comm[0])
				key_string(j, "comm", src->process.comm, sizeof(src->process.comm));
		}
		jout_key_unsigned(j, "records", src->records);
		jout_end(j, '}');
	}
	jout_end(j, ']');
}

static void json_profiles(struct json_out *j, const struct rec_summary *s)
{
	char name[32];

	if (!s->profile_count)
		return;
	jout_key(j, "device_profiles");
	jout_begin(j, '[');
	for (size_t i = 0; i < s->profile_count; i++) {
		const struct summary_profile *p = &s->profiles[i];
		const char *fault = summary_profile_fault(p);

		snprintf(name, sizeof(name), REC_DEVICE_PROFILE_FORMAT, p->frame.index);
		jout_begin(j, '{');
		jout_key_unsigned(j, "pid", p->frame.pid);
		if (p->frame.index != REC_DEVICE_PROFILE_NONE) {
			key_string(j, "file", name, sizeof(name));
			jout_key_unsigned(j, "bytes", p->frame.bytes);
		} else {
			fault = "missing";
		}
		if (fault)
			key_string(j, "fault", fault, MAX_TEXT);
		jout_end(j, '}');
	}
	jout_end(j, ']');
}

static void json_types(struct json_out *j, const struct rec_summary *s)
{
	jout_key(j, "frames");
	jout_begin(j, '{');
	for (unsigned t = 0; t < SUMMARY_TYPES; t++) {
		if (!s->types[t].frames)
			continue;
		jout_key(j, type_names[t] ? type_names[t] : "?");
		jout_begin(j, '{');
		jout_key_unsigned(j, "frames", s->types[t].frames);
		jout_key_unsigned(j, "bytes", s->types[t].bytes);
		jout_end(j, '}');
	}
	jout_end(j, '}');
	jout_key_unsigned(j, "blocks", s->blocks);
	jout_key_unsigned(j, "stored_bytes", s->stored_bytes);
}

/* Left out where it was not measured. */
static void json_hook_cost(struct json_out *j, const struct rec_summary *s)
{
	if (!s->hook_cost)
		return;
	jout_key(j, "hook_cost");
	jout_begin(j, '[');
	for (size_t i = 0; i < s->hook_cost_count; i++) {
		const struct rec_hook_cost *p = &s->hook_cost[i];

		jout_begin(j, '{');
		key_string(j, "program", p->program, sizeof(p->program));
		jout_key_unsigned(j, "runs", p->runs);
		jout_key_unsigned(j, "run_ns", p->run_ns);
		jout_end(j, '}');
	}
	jout_end(j, ']');
}

/* Left out where none failed. */
static void json_failures(struct json_out *j, const struct rec_summary *s)
{
	if (!s->failure_count)
		return;
	jout_key(j, "failures");
	jout_begin(j, '[');
	for (size_t i = 0; i < s->failure_count; i++) {
		const struct rec_failure *p = &s->failures[i];

		jout_begin(j, '{');
		jout_key_unsigned(j, "pid", p->pid);
		key_string(j, "comm", p->comm, sizeof(p->comm));
		jout_key_unsigned(j, "nrt_init", p->status);
		jout_end(j, '}');
	}
	jout_end(j, ']');
}

static void json_ledger(struct json_out *j, const struct rec_summary *s)
{
	jout_key(j, "ledger");
	jout_begin(j, '[');
	for (uint32_t id = 1; id < REC_COUNTER_MAX; id++) {
		const struct rec_counter_info *info = rec_counter_info(id);

		if (!s->ledger.value[id])
			continue;
		jout_begin(j, '{');
		key_string(j, "stage", info->stage, MAX_TEXT);
		key_string(j, "name", info->name, MAX_TEXT);
		key_string(j, "kind", rec_counter_kind_name(info->kind), MAX_TEXT);
		jout_key_unsigned(j, "value", s->ledger.value[id]);
		jout_end(j, '}');
	}
	jout_end(j, ']');
	json_failures(j, s);
	json_hook_cost(j, s);
	jout_key_unsigned(j, "seq_gaps", s->seq_gaps);
	jout_key_unsigned(j, "open_spans", s->open_spans);
}

void rec_print_json(FILE *f, const struct rec_summary *s)
{
	struct json_out j = {.f = f};

	jout_begin(&j, '{');
	json_header(&j, s);
	json_sources(&j, s);
	json_profiles(&j, s);
	json_types(&j, s);
	json_ledger(&j, s);
	jout_key_bool(&j, "ended", s->ended);
	jout_key_bool(&j, "in_work", s->in_work);
	jout_key_bool(&j, "footer", s->has_footer);
	if (s->footer_fault)
		key_string(&j, "footer_fault", s->footer_fault, MAX_TEXT);
	jout_key(&j, "damage");
	jout_begin(&j, '{');
	jout_key_unsigned(&j, "skipped_bytes", s->damage.skipped_bytes);
	jout_key_unsigned(&j, "cut_bytes", s->damage.cut_bytes);
	jout_key_unsigned(&j, "bad_frames", s->damage.bad_frames);
	jout_key_unsigned(&j, "unknown_frames", s->damage.unknown_frames);
	jout_end(&j, '}');
	jout_end(&j, '}');
	fputc('\n', f);
}
