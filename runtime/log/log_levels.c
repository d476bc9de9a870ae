/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_levels.c - the levels of the tags, from the environment.
 *
 * Twelve places, as libnrt has: those of the tags that are public, the rest free.  Both levels of a
 * place are one word, so that a message sees them together.
 */
#include "runtime/log/log_levels.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "runtime/base/env_table.h"
#include "runtime/log/log_line.h"
#include "runtime/log/log_sinks.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define SLOTS 12u
#define KEY_BYTES 4u
#define UNREAD (LOG_LEVEL_TRACE + 1) /* the environment; above every level */
#define WORD(console, syslog) ((unsigned)(console) | (unsigned)(syslog) << 8)
#define CONSOLE_OF(word) ((word)&0xff)
#define SYSLOG_OF(word) ((word) >> 8)

static struct {
	const char *tag;
	_Atomic unsigned levels;
} slots[SLOTS] = {
	{.tag = "NRT"},
	{.tag = "TDRV"},
	{.tag = "NMGR"},
	{.tag = "KMGR"},
	{.tag = "ENC"},
	{.tag = "HAL"},
	{.tag = "RUST"},
	{.tag = "NLOG"},
};

/* No message above it is wanted anywhere.  It never falls but from UNREAD. */
static _Atomic int ceiling = UNREAD;

static _Atomic int coalesces = UNREAD;

static const struct {
	const char *name;
	int level;
} level_names[] = {
	/* A setting is searched for these in this order. */
	{"ERROR", LOG_LEVEL_ERROR},
	{"WARN", LOG_LEVEL_WARN},
	{"INFO", LOG_LEVEL_INFO},
	{"DEBUG", LOG_LEVEL_DEBUG},
	{"TRACE", LOG_LEVEL_TRACE},
	{"DISABLED", LOG_DISABLED},
	{"QUIET", LOG_DISABLED},
};

const char *log_level_name(enum log_level level)
{
	for (size_t i = 0; i < ARRAY_SIZE(level_names); i++)
		if (level_names[i].level == (int)level)
			return level_names[i].name;
	return "";
}

int log_parse_level(const char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(level_names); i++)
		if (strcasestr(text, level_names[i].name))
			return level_names[i].level;
	return -1;
}

/* ---- what is wanted ----------------------------------------------------------------------- */

static bool is_slot(size_t i, const char *tag)
{
	return slots[i].tag && !strncmp(slots[i].tag, tag, KEY_BYTES);
}

static unsigned levels_of(const char *tag)
{
	for (size_t i = 0; i < SLOTS; i++)
		if (is_slot(i, tag))
			return atomic_load_explicit(&slots[i].levels, memory_order_relaxed);
	return atomic_load_explicit(&slots[0].levels, memory_order_relaxed);
}

static unsigned places(enum log_level level, const char *tag)
{
	unsigned word = levels_of(tag);

	return (CONSOLE_OF(word) >= level ? LOG_CONSOLE : 0u) |
	       (SYSLOG_OF(word) >= level ? LOG_SYSLOG : 0u);
}

unsigned log_places_known(enum log_level level, const char *tag)
{
	int most = atomic_load_explicit(&ceiling, memory_order_acquire);

	return (int)level > most || most == UNREAD ? 0 : places(level, tag);
}

unsigned log_places(enum log_level level, const char *tag)
{
	int most = atomic_load_explicit(&ceiling, memory_order_acquire);

	if ((int)level > most)
		return 0;
	if (most == UNREAD)
		log_configure();
	return places(level, tag);
}

static void raise_ceiling(int level)
{
	int was = atomic_load(&ceiling);

	while ((was == UNREAD || was < level) &&
		!atomic_compare_exchange_weak(&ceiling, &was, level))
		;
}

void log_set_levels(const char *tag, enum log_level console, enum log_level syslog)
{
	bool all = !strcmp(tag, "all");

	for (size_t i = 0; i < SLOTS; i++)
		if (all || is_slot(i, tag))
			atomic_store(&slots[i].levels, WORD(console, syslog));
	raise_ceiling((int)(console > syslog ? console : syslog));
}

NRT_STATUS log_get_level(const char *tag, enum log_level *ret)
{
	for (size_t i = 0; i < SLOTS; i++) {
		unsigned word = atomic_load(&slots[i].levels);

		if (!is_slot(i, tag))
			continue;
		if (word == 0) {
			log_say_plainly("At least one of syslog_level or console_level should "
					"be enabled");
			return NRT_INVALID;
		}
		*ret = (enum log_level)(SYSLOG_OF(word) ? SYSLOG_OF(word) : CONSOLE_OF(word));
		return NRT_SUCCESS;
	}
	return NRT_INVALID;
}

bool log_coalesces(void)
{
	int v = atomic_load_explicit(&coalesces, memory_order_relaxed);

	if (v == UNREAD) {
		log_configure();
		v = atomic_load(&coalesces);
	}
	return v != 0;
}

/* ---- the environment ---------------------------------------------------------------------- */

/* What the settings are for: a tag's place, or all of them. */
#define ALL SLOTS

static const char *setting(const char *name, size_t slot)
{
	const char *tag = slot == ALL ? NULL : slots[slot].tag;
	char variable[64];
	const char *text;

	(void)snprintf(variable, sizeof(variable), "%s%s%s", name, tag ? "_" : "", tag ? tag : "");
	text = getenv(variable);
	return text && *text ? text : NULL;
}

/* The environment is read more than once, by the first message and by each nrt_init: what is wrong with a variable is said
 * once, until it is something else. */
typedef _Atomic uint64_t refused_text; /* its hash; 0: none was refused last */
static refused_text refused_levels[SLOTS + 1], refused_places[SLOTS + 1];

static void refuse(refused_text *last, const char *what, const char *text, const char *instead)
{
	uint64_t hash = XXH3_64bits(text, strlen(text)) | 1;
	char line[160];
	int n;

	if (atomic_exchange(last, hash) == hash)
		return;
	n = snprintf(line, sizeof(line), "%s %.80s, default to %s", what, text, instead);
	log_clean(line, (size_t)n);
	log_say_plainly(line);
}

static int level_from(size_t slot, int otherwise)
{
	const char *text = setting("NEURON_RT_LOG_LEVEL", slot);
	int level = text ? log_parse_level(text) : otherwise;

	if (level < 0) {
		refuse(&refused_levels[slot], "invalid level", text, "ERROR");
		return LOG_LEVEL_ERROR;
	}
	atomic_store(&refused_levels[slot], 0);
	return level;
}

static unsigned places_from(size_t slot, unsigned otherwise)
{
	const char *text = setting("NEURON_RT_LOG_LOCATION", slot);
	unsigned where = !text ? otherwise
			       : (strcasestr(text, "CONSOLE") ? LOG_CONSOLE : 0u) |
					 (strcasestr(text, "SYSLOG") ? LOG_SYSLOG : 0u);

	if (!where) {
		refuse(&refused_places[slot], "invalid log location setting", text, "CONSOLE");
		return LOG_CONSOLE;
	}
	atomic_store(&refused_places[slot], 0);
	return where;
}

static unsigned word_of(int level, unsigned where)
{
	return WORD(where & LOG_CONSOLE ? level : LOG_DISABLED,
		where & LOG_SYSLOG ? level : LOG_DISABLED);
}

/* Others write meanwhile: a place goes from what it was to what it will be, and the ceiling is up to date behind all of
 * them, for a message below it goes by its place. */
void log_configure(void)
{
	const struct {
		int level;
		unsigned where;
	} all = {level_from(ALL, LOG_LEVEL_ERROR), places_from(ALL, LOG_CONSOLE)};
	int most = all.level;

	atomic_store(&coalesces, env_number(ENV_ID_NEURON_RT_LOG_COALESCING_ENABLED,
					 getenv("NEURON_RT_LOG_COALESCING_ENABLED")) != 0);
	for (size_t i = 0; i < SLOTS; i++) {
		bool has_tag = slots[i].tag != NULL;
		int level = has_tag ? level_from(i, all.level) : all.level;
		unsigned where = has_tag ? places_from(i, all.where) : all.where;

		atomic_store(&slots[i].levels, word_of(level, where));
		if (level > most)
			most = level;
	}
	raise_ceiling(most);
}
