/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rec_hooks_test.c - what `rec info` tells of the drivers of a recording: each one's version and generation, the ways of
 * hooking that were tried on it, and the hooks that were on.
 */
#include "agent/output/rec_print.h"

#include <stdio.h>

#include "runtime/record/modules.h"
#include "runtime/record/rec_cut.h"
#include "runtime/record/rec_summary.h"
#include "tests/shim/shim.h"
#include "tests/unit/recording_fixture.h"

#define NAMES "fentry:ncdev_ioctl\0kretprobe:ndma_memcpy_wait_for_completion"

static void fx_driver(struct fixture *fx, uint32_t generation, const char *version,
	const struct rec_module_step *rows, size_t count)
{
	struct rec_module m = {.generation = generation, .loaded = version != NULL};

	if (version)
		memcpy(m.version, version, strlen(version));
	rec_writer_frame_at(fx->w, REC_MODULE, REC_SOURCE_RECORDER, FX_BOOT + 100, &m, sizeof(m),
		rows, count * sizeof(*rows));
}

static void fx_hooks(struct fixture *fx, uint32_t generation, const char *names, size_t size)
{
	const struct rec_hooks h = {.generation = generation};

	fx_frame2(fx, REC_HOOKS, REC_SOURCE_RECORDER, &h, sizeof(h), names, size);
}

/* What is printed of a recording; to be freed. */
static char *shown(const char *path, void (*print)(FILE *f, const struct rec_summary *s))
{
	struct rec_summary s;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	CHECK_EQ(rec_summary_make(path, &s), 0);
	CHECK_EQ(s.invalid, 0);
	print(f, &s);
	fclose(f);
	rec_summary_free(&s);
	return text;
}

TEST("rec info: each driver that comes has its version, generation, ladder and hooks",
	"[rec][driver]")
{
	static const struct rec_module_step old[] = {{"ioctl", "fentry", "no BTF"}},
					    new[] = {{"ioctl", "fentry", "reached"}};
	const struct rec_cut_options all = {.pid_count = 0};
	struct rec_cut_result cut;
	struct fixture fx;
	char *text;

	REQUIRE(fx_open(&fx));
	fx_hooks(&fx, 1, NAMES, sizeof(NAMES)); /* of a driver that nobody saw come */
	fx_driver(&fx, 1, "2.24.7.0", old, 1);
	fx_driver(&fx, 1, NULL, NULL, 0);
	fx_hooks(&fx, 1, NAMES, sizeof(NAMES));
	fx_driver(&fx, 2, "2.30.2.0", new, 1);
	fx_hooks(&fx, 2, NAMES, sizeof(NAMES));
	fx_driver(&fx, 3, "", new, 1);
	fx_copy(&fx, 1, 200, 210, 1);
	fx_end(&fx);
	REQUIRE_EQ(fx_close_writer(&fx), 0);

	text = shown(fx_path(&fx, REC_DIR).s, rec_print_text);
	CHECK(strstr(text, "\ndriver      2.24.7.0, generation 1, loaded at 0.000000050 s\n"
			   "ladder      ioctl: fentry no BTF\n"
			   "driver      of generation 1, unloaded at 0.000000050 s\n"
			   "driver      2.30.2.0, generation 2, loaded at 0.000000050 s\n"
			   "hook        fentry:ncdev_ioctl\n"
			   "hook        kretprobe:ndma_memcpy_wait_for_completion\n"
			   "ladder      ioctl: fentry reached\n"
			   "driver      of unknown version, generation 3, loaded at 0.000000050 s\n"
			   "ladder      ioctl: fentry reached\n"));
	free(text);
	text = shown(fx_path(&fx, REC_DIR).s, rec_print_json);
	CHECK(strstr(text,
		"\"loaded\":true,\"generation\":2,\"version\":\"2.30.2.0\",\"hooks\":["
		"\"fentry:ncdev_ioctl\",\"kretprobe:ndma_memcpy_wait_for_completion\"],"
		"\"ladder\":[{\"family\":\"ioctl\",\"step\":\"fentry\",\"result\":\"reached\"}]}"));
	CHECK(strstr(text, "\"loaded\":false,\"generation\":1}"));
	free(text);

	/* A cut has them, too. */
	REQUIRE_EQ(rec_cut(fx_path(&fx, REC_DIR).s, fx_path(&fx, "cut").s, &all, &cut), 0);
	text = shown(fx_path(&fx, "cut").s, rec_print_text);
	CHECK(strstr(text, "hook        kretprobe:ndma_memcpy_wait_for_completion\n"));
	free(text);
	fx_free(&fx);
}

TEST("rec info: names of hooks may be anything", "[rec][driver]")
{
	static const struct {
		const char *names;
		size_t size;
		const char *shown;
	} cases[] = {
		{"", 0, ""},
		{"no end", 6, ""},
		{"one\0no end", 10, "hook        one\n"},
		{"\033[31m\xff", 7, "hook        ?[31m?\n"},
		{"\0\0", 2, "hook        \nhook        \n"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char expected[128];
		struct fixture fx;
		char *text;

		REQUIRE(fx_open(&fx));
		fx_driver(&fx, 1, "1", NULL, 0);
		fx_hooks(&fx, 1, cases[i].names, cases[i].size);
		fx_end(&fx);
		REQUIRE_EQ(fx_close_writer(&fx), 0);
		text = shown(fx_path(&fx, REC_DIR).s, rec_print_text);
		snprintf(expected, sizeof(expected),
			"driver      1, generation 1, loaded at 0.000000050 s\n%sstart ",
			cases[i].shown);
		test_info("case %zu: %s", i, text);
		CHECK(strstr(text, expected) != NULL);
		free(text);
		fx_free(&fx);
	}
}
