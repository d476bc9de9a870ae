/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_env.c - `ntrace env`: the variables that the runtime reads, what they are set to, and what is wrong
 * with that.
 *
 * Nothing is shown of an environment but the values of variables in the table and the names of those that
 * look like a misspelt one; with --all also others whose names begin as theirs do, which is what the support bundle of
 * the runtime has.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/output/json_out.h"
#include "runtime/base/env_checks.h"
#include "runtime/base/env_table.h"
#include "runtime/base/file.h"
#include "runtime/base/printable.h"

#define MAX_ENVIRONMENT ((size_t)64 << 20)

struct options {
	const char *pid; /* NULL = this process's environment */
	bool set_only, json, others;
};

/* "NAME=VALUE" texts, each with its NUL, one behind the other. */
struct environment {
	char *texts;
	size_t size;
};

struct finding {
	const struct env_row *row;
	const char *text; /* NULL = not set */
	bool given, is_wrong;
	char wrong[ENV_CHECK_BYTES];   /* why, such as "is not 0 or 1" */
	const struct env_row *instead; /* a variable that goes before this one */
	bool waits;		       /* for a session, which no variable begins */
};

/* ---- the environment ---------------------------------------------------------------------- */

static int of_process(const char *pid, struct environment *ret)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%s/environ", pid);
	return file_read(path, MAX_ENVIRONMENT, &ret->texts, &ret->size);
}

static int of_this_one(struct environment *ret)
{
	char *p;

	ret->size = 0;
	for (char **e = environ; e && *e; e++)
		ret->size += strlen(*e) + 1;
	ret->texts = p = malloc(ret->size + 1);
	if (!p)
		return -ENOMEM;
	for (char **e = environ; e && *e; e++)
		p = stpcpy(p, *e) + 1;
	ret->texts[ret->size] = '\0';
	return 0;
}

/* The text behind *at, or the first one; NULL at the end. */
static const char *next_text(const struct environment *e, const char *at)
{
	at = at ? at + strlen(at) + 1 : e->texts;
	return at < e->texts + e->size ? at : NULL;
}

/* The first one counts, as for getenv. */
static const char *value_of(const struct environment *e, const char *name)
{
	size_t len = strlen(name);

	for (const char *t = next_text(e, NULL); t; t = next_text(e, t))
		if (!strncmp(t, name, len) && t[len] == '=')
			return t + len + 1;
	return NULL;
}

/* ---- what is to be said ------------------------------------------------------------------- */

static const char *lookup(void *environment, enum env_id id)
{
	const char *text = value_of(environment, env_row(id)->name);

	return env_has_value(env_row(id), text) ? text : NULL;
}

/* What is done with a value that is not allowed, where that is not the end of nrt_init: the first word
 * that is looked for is taken. */
static void add_instead(const struct env_row *row, char *buf, size_t size)
{
	size_t used = strlen(buf);

	if (row->kind == ENV_SEARCHED && used < size)
		(void)snprintf(buf + used, size - used, "; %.*s is taken",
			(int)strcspn(row->detail, " "), row->detail);
}

static void find(struct environment *e, enum env_id id, struct finding *ret)
{
	const struct env_row *row = env_row(id);
	struct finding f = {.row = row, .text = value_of(e, row->name)};
	char allowed[ENV_ALLOWED_BYTES];
	struct env_value v;

	f.given = env_has_value(row, f.text);
	if (f.given)
		f.instead = env_overruled_by(id, lookup, e);
	f.waits = env_waits_for_session(id, lookup, e);
	if (env_left_unread(id, lookup, e)) {
		*ret = f;
		return;
	}
	if (f.given && row->use != ENV_REMOVED && env_parse(row, f.text, &v) < 0) {
		(void)snprintf(f.wrong, sizeof(f.wrong), "is not %s",
			env_allowed(row, allowed, sizeof(allowed)));
		add_instead(row, f.wrong, sizeof(f.wrong));
		f.is_wrong = true;
	} else if (f.given) {
		f.is_wrong = env_check(id, lookup, e, f.wrong, sizeof(f.wrong));
	}
	*ret = f;
}

/* What is wrong with a misspelt name in the environment; NULL: nothing. */
static const struct env_row *meant_by(const char *text)
{
	return env_meant(text, strcspn(text, "="));
}

/* Is it set and not in the table, though its name begins like those? */
static bool is_other(const char *text)
{
	return env_is_ours(text) && !env_find(text, strcspn(text, "="));
}

/* What stands behind the '='; "": there is none. */
static const char *other_value(const char *text)
{
	text += strcspn(text, "=");
	return text + (*text == '=');
}

/* ---- text --------------------------------------------------------------------------------- */

static void print_value(const char *name, const char *source, const char *use, const char *value)
{
	printf("%-48s %-11s %-8s ", name, source, use);
	printable_put(stdout, *value ? value : "-", *value ? strlen(value) : 1);
	putchar('\n');
}

static void print_others(const struct environment *e, bool first)
{
	bool any = false;

	for (const char *t = next_text(e, NULL); t; t = next_text(e, t)) {
		if (!is_other(t))
			continue;
		if (!any)
			printf("%s== Not known to the runtime\n", first ? "" : "\n");
		any = true;
		print_value(printable(t, strcspn(t, "="), (char[PRINTABLE_BYTES]){0}),
			"environment", "unknown", other_value(t));
	}
}

static void print_finding(const struct finding *f)
{
	const char *value = f->given ? f->text : f->row->initial;

	print_value(f->row->name, f->given ? "environment" : "default", env_use_name(f->row->use),
		value);
	printf("  %s\n", f->row->text);
	if (f->is_wrong)
		printf("  WRONG: this %s\n", f->wrong);
	if (f->instead)
		printf("  not used: %s is set\n", f->instead->name);
	if (f->waits)
		printf("  NEURON_RT_INSPECT_ENABLE is not set: a session begins by "
		       "nrt_inspect_begin alone\n");
}

static bool print_text(struct environment *e, const struct options *o)
{
	int group = -1;
	bool right = true;

	for (int i = 0; i < ENV_COUNT; i++) {
		struct finding f;

		find(e, (enum env_id)i, &f);
		right &= !f.is_wrong;
		if (o->set_only && !f.given)
			continue;
		if ((int)f.row->group != group)
			printf("%s== %s\n", group < 0 ? "" : "\n", env_group_title(f.row->group));
		group = (int)f.row->group;
		print_finding(&f);
	}
	if (o->others)
		print_others(e, group < 0);
	for (const char *t = next_text(e, NULL); t; t = next_text(e, t)) {
		const struct env_row *meant = meant_by(t);

		if (!meant)
			continue;
		right = false;
		printf("WRONG: %s is not a variable of the runtime; did you mean %s?\n",
			printable(t, strcspn(t, "="), (char[PRINTABLE_BYTES]){0}), meant->name);
	}
	return right;
}

/* ---- JSON --------------------------------------------------------------------------------- */

static void jout_finding(struct json_out *j, const struct finding *f)
{
	char allowed[ENV_ALLOWED_BYTES];

	jout_begin(j, '{');
	jout_key_text(j, "name", f->row->name);
	jout_key_text(j, "group", env_group_title(f->row->group));
	jout_key_text(j, "value", f->given ? f->text : f->row->initial);
	jout_key_text(j, "source", f->given ? "environment" : "default");
	jout_key_text(j, "default", f->row->initial);
	jout_key_text(j, "allowed", env_allowed(f->row, allowed, sizeof(allowed)));
	jout_key_text(j, "use", env_use_name(f->row->use));
	jout_key_text(j, "meaning", f->row->text);
	jout_key_bool(j, "ok", !f->is_wrong);
	if (f->is_wrong)
		jout_key_text(j, "wrong", f->wrong);
	if (f->instead)
		jout_key_text(j, "instead", f->instead->name);
	if (f->waits)
		jout_key_bool(j, "waits_for_session", true);
	jout_end(j, '}');
}

static void print_others_json(struct json_out *j, const struct environment *e)
{
	jout_key(j, "unknown");
	jout_begin(j, '[');
	for (const char *t = next_text(e, NULL); t; t = next_text(e, t)) {
		if (!is_other(t))
			continue;
		jout_begin(j, '{');
		jout_key(j, "name");
		jout_string(j, t, strcspn(t, "="));
		jout_key_text(j, "value", other_value(t));
		jout_end(j, '}');
	}
	jout_end(j, ']');
}

static bool print_json(struct environment *e, const struct options *o)
{
	struct json_out j = {.f = stdout};
	bool right = true;

	jout_begin(&j, '{');
	jout_key(&j, "variables");
	jout_begin(&j, '[');
	for (int i = 0; i < ENV_COUNT; i++) {
		struct finding f;

		find(e, (enum env_id)i, &f);
		right &= !f.is_wrong;
		if (!o->set_only || f.given)
			jout_finding(&j, &f);
	}
	jout_end(&j, ']');
	if (o->others)
		print_others_json(&j, e);
	jout_key(&j, "misspelt");
	jout_begin(&j, '[');
	for (const char *t = next_text(e, NULL); t; t = next_text(e, t)) {
		const struct env_row *meant = meant_by(t);

		if (!meant)
			continue;
		right = false;
		jout_begin(&j, '{');
		jout_key(&j, "name");
		jout_string(&j, t, strcspn(t, "="));
		jout_key_text(&j, "meant", meant->name);
		jout_end(&j, '}');
	}
	jout_end(&j, ']');
	jout_key_bool(&j, "ok", right);
	jout_end(&j, '}');
	putchar('\n');
	return right;
}

/* ---- the command -------------------------------------------------------------------------- */

static const struct argp_option option_table[] = {
	{"all", 'a', 0, 0, "also NEURON_* and NTRACE_* variables that the runtime does not know",
		0},
	{"json", 'j', 0, 0, "as JSON", 0},
	{"pid", 'p', "PID", 0, "the environment that this process was started with", 0},
	{"set", 's', 0, 0, "only variables that are set", 0},
	{0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case 'a':
		o->others = true;
		return 0;
	case 'j':
		o->json = true;
		return 0;
	case 'p':
		if (!*arg || strspn(arg, "0123456789") != strlen(arg) || strlen(arg) > 10)
			argp_error(state, "'%s' is no process id", arg);
		o->pid = arg;
		return 0;
	case 's':
		o->set_only = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {option_table, parse_option, 0,
	"Lists the environment variables that the runtime knows: the value, where it is from, what "
	"is "
	"done with it.  Exit code 1 when a value is not allowed or a name looks misspelt.",
	0, 0, 0};

static int cannot_read(const char *pid, int error)
{
	if (error == -ENOMEM)
		return agent_no_memory("env");
	if (error == -ENOENT || error == -ESRCH)
		agent_message("env: there is no process %s", pid);
	else
		agent_message("env: cannot read the environment of process %s: %s%s", pid,
			strerror(-error),
			error == -EACCES || error == -EPERM
				? "; run it as root or as the process's user"
				: "");
	return EXIT_ENVIRONMENT;
}

int cmd_env(int argc, char **argv)
{
	struct options o = {.pid = NULL};
	struct environment e = {.texts = NULL};
	bool right;
	int rc;

	agent_parse(&argp, "ntrace env", argc, argv, 0, &o);
	rc = o.pid ? of_process(o.pid, &e) : of_this_one(&e);
	if (rc < 0)
		return cannot_read(o.pid, rc);
	right = o.json ? print_json(&e, &o) : print_text(&e, &o);
	free(e.texts);
	return right ? EXIT_OK : EXIT_NO;
}
