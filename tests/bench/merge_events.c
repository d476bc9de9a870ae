/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_events.c - how fast events become ntrace.pb.
 *
 * Frames are made in memory as a recorder would write them (batches of four threads on four cores and
 * of the kernel hooks, with watermarks) and merged, linked and encoded into /dev/null, so that no disk is
 * measured.  A round is an execution with submit, wait and device run, and sixteen allocations with one
 * copy each: 72 events with six attributes on average.  Making the frames is measured alone before
 * and its time is subtracted; both are shown.  Resident memory is shown for each size.  Then the same
 * without a file, every event parsed again: what `ntrace summary REC` takes before it looks at any.
 *
 * Then events go into files and into a recording: what they take per event, and how fast the recording
 * is read and merged.  (The events are more regular than a program's: bench/recording has random
 * ones.)  There is a sample of the host per second as if a program made a million events a second.
 *
 * Peers in the same run: dd of as many bytes as were encoded from /dev/zero to /dev/null, and protobuf-c
 * packing the very same events of a smaller trace (what the encoding alone would cost with the usual
 * library).
 *
 * Usage: merge_events [EVENTS...]
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "proto/delimited.h"
#include "proto/event_codec.h"
#include "proto/neuron_trace.pb-c.h"
#include "runtime/base/file.h"
#include "runtime/record/merge.h"
#include "tests/bench/frames.h"
#include "tests/unit/scratch.h"

#define FILE_EVENTS 4000000u

/* ---- peers -------------------------------------------------------------------------------- */

/* Packs events with protobuf-c as they stand in a file; events per second, or -1. */
static double pack_with_protobuf_c(const uint8_t *data, size_t size)
{
	_cleanup_free_ uint8_t *out = malloc(1 << 16);
	size_t pos = 0, len = 0, count = 0, cap = 1 << 21;
	Ntff__NtraceEvent **events = calloc(cap, sizeof(*events));
	const uint8_t *msg;
	double start, seconds = -1;

	while (out && events && count < cap && pb_delimited_next(data, size, &pos, &msg, &len) == 1)
		events[count++] = ntff__ntrace_event__unpack(NULL, len, msg);
	start = now();
	for (size_t i = 0; out && events && i < count; i++) {
		uint8_t prefix[PB_MAX_VARINT];

		pb_varint_put(prefix, ntff__ntrace_event__get_packed_size(events[i]));
		ntff__ntrace_event__pack(events[i], out);
	}
	seconds = now() - start;
	for (size_t i = 0; events && i < count; i++)
		ntff__ntrace_event__free_unpacked(events[i], NULL);
	free(events);
	return out && count ? (double)count / seconds : -1;
}

/* Attributes in a file. */
static uint64_t count_attributes(const uint8_t *data, size_t size)
{
	struct ntrace_event_view *e = calloc(1, sizeof(*e));
	size_t pos = 0, len, at;
	const uint8_t *msg;
	uint64_t n = 0;

	while (e && pb_delimited_next(data, size, &pos, &msg, &len) == 1)
		if (ntrace_event_parse(msg, len, e, &at) == 0)
			n += e->attr_count;
	free(e);
	return n;
}

/* dd of so many bytes to a path, synced; seconds, or -1. */
static double run_dd(uint64_t bytes, const char *path)
{
	char count[40], to[PATH_MAX + 32];
	double start = now();
	int status = -1;
	pid_t child;

	snprintf(count, sizeof(count), "count=%" PRIu64, bytes >> 18);
	snprintf(to, sizeof(to), "of=%s", path);
	child = fork();
	if (child == 0) {
		/* /dev/null cannot be synced. */
		const char *sync = strcmp(path, "/dev/null") ? "conv=fsync" : "conv=notrunc";
		execlp("dd", "dd", "if=/dev/zero", to, "bs=256k", count, sync, "status=none",
			(char *)NULL);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0 || status)
		return -1;
	return now() - start;
}

/* ---- measuring ---------------------------------------------------------------------------- */

static int sink_open(
	void *ctx, uint32_t pid, const char *name, int64_t realtime_offset_ns, void **ret_process)
{
	(void)pid, (void)name, (void)realtime_offset_ns;
	*ret_process = ctx;
	return 0;
}

static int sink_write(
	void *ctx, void *process, enum merge_file which, const uint8_t *data, size_t size)
{
	static struct ntrace_event_view e;
	uint64_t *parsed = ctx;
	size_t pos = 0, len, at;
	const uint8_t *msg;

	(void)process;
	while (which == MERGE_NTRACE && pb_delimited_next(data, size, &pos, &msg, &len) == 1)
		*parsed += ntrace_event_parse(msg, len, &e, &at) == 0;
	return 0;
}

static int merge(uint64_t events, const char *out, const struct merge_sink *sink,
	struct merge_result *m, double *ret_seconds)
{
	struct generator *g = new_generator(events);
	struct merge_options options = {.kernel_events = MERGE_KERNEL_HINT, .sink = sink};
	struct merge_frames frames = {generate, generate_again, no_damage, g};
	_cleanup_free_ char *error = NULL;
	double start = used();
	int rc = g ? merge_frames(&frames, "bench", out, &options, m, &error) : -ENOMEM;

	*ret_seconds = used() - start;
	free(g);
	if (rc < 0 || m->output_count != 1)
		printf("merge failed: %s\n", error ? error : strerror(-rc));
	return rc < 0 || m->output_count != 1 ? -1 : 0;
}

static double generate_only(uint64_t events)
{
	struct generator *g = new_generator(events);
	const struct rec_frame *f;
	const uint8_t *payload;
	double start = used();

	while (g && generate(g, &f, &payload) > 0)
		__asm__ volatile("" : : "r"(payload) : "memory");
	free(g);
	return used() - start;
}

static bool feed(uint64_t events, double making)
{
	uint64_t parsed = 0;
	struct merge_sink sink = {&parsed, sink_open, sink_write};
	struct merge_result m;
	double seconds;

	if (merge(events, NULL, &sink, &m, &seconds) < 0)
		return false;
	bool right = parsed == m.outputs[0].events;
	merge_result_free(&m);
	printf("%.0f M events: merge and parse without a file %.2f M events/s of one core\n",
		(double)parsed / 1e6, (double)parsed / (seconds - making) / 1e6);
	return right;
}

/* One size in a process of its own, so that its memory is its own. */
static int measure(uint64_t events)
{
	struct merge_result m;
	struct rusage u;
	double making = generate_only(events), seconds;

	if (merge(events, NULL, NULL, &m, &seconds) < 0)
		return 1;
	getrusage(RUSAGE_SELF, &u);
	double count = (double)m.outputs[0].events, bytes = (double)m.outputs[0].bytes;
	double dd = run_dd(m.outputs[0].bytes, "/dev/null");
	printf("%.0f M events: merge, link and encode %.2f M events/s of one core (%.2f s, and "
	       "%.2f s "
	       "making frames), %.0f MB/s of %.0f bytes per event, %ld MiB resident; dd of the "
	       "same "
	       "bytes %.2f s\n",
		count / 1e6, count / (seconds - making) / 1e6, seconds - making, making,
		bytes / (seconds - making) / 1e6, bytes / count, u.ru_maxrss >> 10, dd);
	bool right =
		m.balanced && m.ledger[REC_C_MERGE_LATE].value == 0 && m.outputs[0].open_spans == 0;
	merge_result_free(&m);
	right &= feed(events, making);
	fflush(stdout);
	return right ? 0 : 1;
}

/* The frames as a recording; 0 or -errno. */
static int write_recording(uint64_t events, const char *path, uint64_t *ret_bytes)
{
	struct generator *g = new_generator(events);
	const struct rec_frame *f;
	const uint8_t *payload;
	struct rec_writer *w = NULL;
	int rc = g ? rec_writer_open(path, &w) : -ENOMEM;

	while (rc == 0 && generate(g, &f, &payload) > 0)
		rc = rec_writer_frame_at(w, (enum rec_type)f->type, f->source, f->time_ns, payload,
			f->size, NULL, 0);
	if (rc == 0)
		rc = rec_writer_flush(w);
	if (rc == 0)
		*ret_bytes = rec_writer_bytes(w);
	int closed = rec_writer_close(w);
	free(g);
	return rc < 0 ? rc : closed;
}

/* A recording of so many events: its size, and how fast it is read and merged. */
static int replay(struct scratch *dir, uint64_t events)
{
	struct scratch_path rec = scratch_path(dir, REC_DIR);
	struct merge_options options = {.kernel_events = MERGE_KERNEL_HINT};
	_cleanup_free_ char *error = NULL;
	struct merge_result m = {0};
	uint64_t bytes = 0;
	int rc = write_recording(events, rec.s, &bytes);
	double start = used();

	if (rc == 0)
		rc = merge_recording(rec.s, NULL, &options, &m, &error);
	double seconds = used() - start;
	if (rc < 0 || m.output_count != 1) {
		printf("replay failed: %s\n", error ? error : strerror(-rc));
		return 1;
	}
	double count = (double)m.outputs[0].events;
	printf("recording of such regular events: %.2f bytes per event; read, merged, linked and "
	       "encoded %.2f M events/s "
	       "of one core\n",
		(double)bytes / count, count / seconds / 1e6);
	merge_result_free(&m);
	return 0;
}

static void print_sizes(const struct merge_output *o)
{
	static const char *const names[] = {
		"ntrace.pb", "trace_info.pb", "cpu_util.pb", "host_mem.pb"};

	printf("bytes per event (%u CPUs, a sample per million events):", CPUS);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		char path[PATH_MAX + 32];
		struct stat st = {0};

		snprintf(path, sizeof(path), "%s/%s", o->dir, names[i]);
		if (stat(path, &st) == 0)
			printf(" %s %.4f (%jd bytes)", names[i],
				(double)st.st_size / (double)o->events, (intmax_t)st.st_size);
	}
	printf("\n");
}

/* What the events of a file are, and what protobuf-c takes for them. */
static int inspect(const struct merge_output *o)
{
	_cleanup_free_ char *data = NULL;
	char path[PATH_MAX + 32];
	size_t size = 0;

	snprintf(path, sizeof(path), "%s/ntrace.pb", o->dir);
	if (file_read(path, 1u << 31, &data, &size) < 0)
		return 1;
	printf("%.2f attributes per event; protobuf-c packs %.2f M events/s\n",
		(double)count_attributes((const uint8_t *)data, size) / (double)o->events,
		pack_with_protobuf_c((const uint8_t *)data, size) / 1e6);
	return 0;
}

/* The same events in files: how fast to disk, beside dd of the same bytes, and their sizes. */
static int compare(struct scratch *dir, uint64_t events, bool details)
{
	struct scratch_path out = scratch_path(dir, "out"), plain = scratch_path(dir, "plain");
	struct merge_result m;
	double start = now(), seconds, cpu, dd;
	int status = 0;

	if (merge(events, out.s, NULL, &m, &cpu) < 0)
		return 1;
	seconds = now() - start;
	dd = run_dd(m.outputs[0].bytes, plain.s);
	printf("to a file, synced: %.0f events in %.2f s by the clock, %.2f M events/s; dd of the "
	       "same bytes %.2f s\n",
		(double)m.outputs[0].events, seconds, (double)m.outputs[0].events / seconds / 1e6,
		dd);
	if (details) {
		print_sizes(&m.outputs[0]);
		status = inspect(&m.outputs[0]);
	}
	merge_result_free(&m);
	scratch_remove_tree(out.s);
	unlink(plain.s);
	return status;
}

int main(int argc, char **argv)
{
	static char *usual[] = {"merge_events", "1000000"};
	struct scratch dir;
	int status = 0;

	if (argc < 2) {
		argv = usual;
		argc = 2;
	}
	for (int i = 1; i < argc; i++) {
		int one = 1;
		pid_t child = fork();

		if (child == 0)
			_exit(measure(strtoull(argv[i], NULL, 10)));
		if (child < 0 || waitpid(child, &one, 0) < 0)
			one = 1;
		status |= one != 0;
	}
	if (!scratch_make(&dir)) {
		perror("scratch directory");
		return 1;
	}
	status |= compare(&dir, 1000000, true) || compare(&dir, FILE_EVENTS, false) ||
		  replay(&dir, FILE_EVENTS);
	scratch_remove(&dir);
	return status;
}
