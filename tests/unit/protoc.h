/* SPDX-License-Identifier: Apache-2.0 */
/*
 * protoc.h - Debian's protoc as an independent reader and writer of our bytes.
 *
 * A delimited stream becomes a message with one repeated field by putting the byte 0x0a (field 1,
 * length-delimited) before each length; the messages of that shape are written to a scratch
 * directory when protoc runs.
 */
#ifndef NTRACE_TESTS_PROTOC_H
#define NTRACE_TESTS_PROTOC_H

#include <errno.h>

#include "proto/delimited.h"
#include "proto/event_codec.h"
#include "runtime/base/file.h"
#include "tests/unit/scratch.h"

#define PROTOC_SCHEMA                                                 \
	"syntax = \"proto3\";\n"                                      \
	"package ntff_test;\n"                                        \
	"import \"proto/neuron_trace.proto\";\n"                      \
	"message stream { repeated ntff.ntrace_event event = 1; }\n"  \
	"message cpu_stream { repeated ntff.cpu_util sample = 1; }\n" \
	"message mem_stream { repeated ntff.host_mem_usage sample = 1; }\n"

/* The root of the tree, from the name that the compiler was given: "." or a path. */
static inline struct scratch_path protoc_root(void)
{
	struct scratch_path p;
	char *end;

	snprintf(p.s, sizeof(p.s), "./%s", __FILE__[0] == '/' ? __FILE__ + 1 : __FILE__);
	if (__FILE__[0] == '/')
		snprintf(p.s, sizeof(p.s), "%s", __FILE__);
	end = strstr(p.s, "/tests/unit/");
	if (end)
		*end = '\0';
	return p;
}

/* What is missing for these tests, or NULL. */
static inline const char *protoc_missing(void)
{
	struct scratch_path schema = protoc_root();

	strncat(schema.s, "/proto/neuron_trace.proto", sizeof(schema.s) - strlen(schema.s) - 1);
	if (access(schema.s, R_OK) != 0)
		return "proto/neuron_trace.proto (run from the root of the tree)";
	if (system("protoc --version >/dev/null 2>&1") != 0)
		return "protoc";
	return NULL;
}

static inline int protoc_put_file(const char *path, const void *data, size_t size)
{
	struct outfile f;
	int err = outfile_open(&f, path);

	if (err)
		return err;
	outfile_write(&f, data, size);
	return outfile_commit(&f);
}

/*
 * Runs `protoc --<mode>=<type>` (mode: decode or encode) on `in`.  0 and what it printed (to be
 * freed, NUL-terminated); -EPROTO when protoc fails; -errno.
 */
static inline int protoc_run(const char *mode, const char *type, const void *in, size_t in_size,
	char **ret_out, size_t *ret_size)
{
	struct scratch_path root = protoc_root();
	_cleanup_free_ char *command = NULL;
	struct pb_buf out = {0};
	struct scratch scratch;
	char chunk[4096];
	FILE *pipe;
	int err;

	if (!scratch_make(&scratch))
		return -errno;
	err = protoc_put_file(
		scratch_path(&scratch, "ntff_test.proto").s, PROTOC_SCHEMA, strlen(PROTOC_SCHEMA));
	if (!err)
		err = protoc_put_file(scratch_path(&scratch, "in").s, in, in_size);
	if (!err &&
		asprintf(&command, "protoc '--proto_path=%s' '--proto_path=%s' --%s=%s %s <'%s/in'",
			root.s, scratch.dir, mode, type, "ntff_test.proto", scratch.dir) < 0) {
		command = NULL;
		err = -ENOMEM;
	}
	pipe = err ? NULL : popen(command, "r");
	if (pipe) {
		for (size_t n; (n = fread(chunk, 1, sizeof(chunk), pipe)) > 0;)
			pb_buf_append(&out, chunk, n);
		err = pclose(pipe) == 0 ? 0 : -EPROTO;
	}
	if (!err)
		err = pb_buf_append(&out, "", 1);
	scratch_remove(&scratch);
	if (err) {
		pb_buf_free(&out);
		return err;
	}
	*ret_out = (char *)out.data;
	*ret_size = out.len - 1;
	return 0;
}

/* A delimited stream as a message with one repeated field. */
static inline int protoc_wrap(const uint8_t *stream, size_t size, struct pb_buf *out)
{
	const uint8_t *msg;
	size_t pos = 0, start = 0, len;
	int more;

	while ((more = pb_delimited_next(stream, size, &pos, &msg, &len)) == 1) {
		if (pb_buf_append(out, "\x0a", 1) ||
			pb_buf_append(out, stream + start, pos - start))
			return -ENOMEM;
		start = pos;
	}
	return more;
}

#endif
