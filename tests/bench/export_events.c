/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export_events.c - how fast a recording becomes a Perfetto file, and how many bytes an event takes.
 *
 * A recording of frames.h's events is written and exported, from its bytes to the packets, which go
 * nowhere, so that no disk is measured.  Peers in the same run: the merge of the same recording alone,
 * which the export contains, and `ntrace verify`'s checker over the same packets, which must find
 * nothing.  Each has a process of its own, so that its memory is its own.
 *
 * Usage: export_events [EVENTS...]
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/output/perfetto.h"
#include "agent/output/perfetto_verify.h"
#include "runtime/base/file.h"
#include "runtime/record/recording.h"
#include "tests/bench/frames.h"
#include "tests/unit/scratch.h"

static int write_recording(const char *path, uint64_t events)
{
	struct generator *g = new_generator(events);
	const struct rec_frame *f;
	const uint8_t *payload;
	struct rec_writer *w = NULL;
	struct rec_end end = {0};
	int rc = g ? rec_writer_open(path, &w) : -ENOMEM;

	while (rc == 0 && generate(g, &f, &payload) > 0) {
		size_t head = f->type == REC_RUNTIME ? sizeof(struct rec_runtime) : 0;

		rc = rec_writer_frame(
			w, f->type, f->source, payload, head, payload + head, f->size - head);
	}
	if (rc == 0)
		rc = rec_writer_frame(w, REC_END, 0, &end, sizeof(end), NULL, 0);
	if (w) {
		int closed = rec_writer_close(w);
		rc = rc ? rc : closed;
	}
	free(g);
	return rc;
}

static long resident_mib(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return u.ru_maxrss >> 10;
}

static int merge_alone(void *arg)
{
	struct merge_options options = {.kernel_events = MERGE_KERNEL_HINT};
	_cleanup_free_ char *error = NULL;
	struct merge_result m;
	double start = used(), seconds;
	int rc = merge_recording(arg, NULL, &options, &m, &error);

	seconds = used() - start;
	if (rc == 0)
		printf("  merge alone: %.2f M events/s of one core, %ld MiB resident\n",
			(double)m.outputs[0].events / seconds / 1e6, resident_mib());
	merge_result_free(&m);
	fflush(stdout);
	return rc < 0;
}

static int nowhere(void *ctx, const void *data, size_t size)
{
	__asm__ volatile("" : : "r"(data) : "memory");
	*(uint64_t *)ctx += size;
	return 0;
}

static int export_it(void *arg)
{
	struct feed_options options = {0};
	_cleanup_free_ char *error = NULL;
	struct perfetto_result r;
	uint64_t bytes = 0;
	bool write_failed;
	double start = used(), seconds;
	int rc = perfetto_export(arg, &options, nowhere, &bytes, &r, &write_failed, &error);

	seconds = used() - start;
	if (rc < 0) {
		printf("export failed: %s\n", error ? error : strerror(-rc));
		return 1;
	}
	printf("  merge and export: %.2f M events/s of one core, %.1f bytes per event of %" PRIu64
	       ", %.0f MB/s, %ld MiB resident\n",
		(double)r.events / seconds / 1e6, (double)bytes / (double)r.events, r.events,
		(double)bytes / seconds / 1e6, resident_mib());
	fflush(stdout);
	return bytes > r.events * 60; /* more than that is too much */
}

static int into_memfd(void *ctx, const void *data, size_t size)
{
	return file_write_all(*(int *)ctx, data, size);
}

static void show_finding(void *ctx, const struct pfv_finding *f)
{
	(void)ctx;
	printf("  byte %" PRIu64 ": %s: %s\n", f->offset, pfv_kind_name(f->kind), f->text);
}

static int verify_it(void *arg)
{
	_cleanup_close_ int fd = memfd_create("pftrace", MFD_CLOEXEC);
	struct feed_options options = {0};
	_cleanup_free_ char *error = NULL;
	struct perfetto_result r;
	struct pfv_result v;
	bool write_failed;

	if (fd < 0 || perfetto_export(arg, &options, into_memfd, &fd, &r, &write_failed, &error) ||
		lseek(fd, 0, SEEK_SET) < 0)
		return 1;
	double start = used();
	if (perfetto_verify(fd, show_finding, NULL, &v) < 0)
		return 1;
	printf("  verify: %.2f M events/s of one core, %ld MiB resident, %" PRIu64 " findings\n",
		(double)v.events / (used() - start) / 1e6, resident_mib(), v.findings);
	fflush(stdout);
	return v.findings != 0;
}

static int measure(const struct scratch *dir, uint64_t events)
{
	struct scratch_path rec = scratch_path(dir, "recording");
	int rc;

	rc = write_recording(rec.s, events);
	if (rc < 0) {
		printf("%s: %s\n", rec.s, strerror(-rc));
		return 1;
	}
	printf("%.0f M events:\n", (double)events / 1e6);
	rc = scratch_child(merge_alone, rec.s);
	rc |= scratch_child(export_it, rec.s);
	rc |= scratch_child(verify_it, rec.s);
	scratch_remove_tree(rec.s);
	return rc;
}

int main(int argc, char **argv)
{
	static char *usual[] = {"export_events", "1000000"};
	struct scratch dir;
	int status = 0;

	if (argc < 2) {
		argv = usual;
		argc = 2;
	}
	if (!scratch_make(&dir)) {
		perror("scratch directory");
		return 1;
	}
	for (int i = 1; i < argc; i++)
		status |= measure(&dir, strtoull(argv[i], NULL, 10)) != 0;
	scratch_remove(&dir);
	return status;
}
