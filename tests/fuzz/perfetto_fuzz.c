/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfetto_fuzz.c - Perfetto traces of any bytes before the checker of `ntrace verify`.
 *
 * Beyond not crashing: each finding is reported once, in the file and with a text.
 */
#include <fcntl.h>

#include "agent/output/perfetto_verify.h"
#include "tests/fuzz/fuzz.h"

struct heard {
	uint64_t count, size;
};

static void hear(void *ctx, const struct pfv_finding *f)
{
	struct heard *h = ctx;

	FUZZ_REQUIRE(f->kind < PFV_KINDS && f->offset <= h->size && f->text && *f->text);
	h->count++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct scratch_path path = fuzz_file("trace.pftrace", data, size);
	struct heard h = {.size = size};
	struct pfv_result r;
	uint64_t sum = 0;
	int fd = open(path.s, O_RDONLY | O_CLOEXEC);

	FUZZ_REQUIRE(fd >= 0);
	FUZZ_REQUIRE(perfetto_verify(fd, hear, &h, &r) == 0);
	for (unsigned k = 0; k < PFV_KINDS; k++)
		sum += r.counts[k];
	FUZZ_REQUIRE(sum == r.findings && h.count == r.findings && r.damage <= r.findings);
	FUZZ_REQUIRE(r.bytes == size || r.damage);
	FUZZ_REQUIRE(r.open <= r.slices);
	close(fd);
	return 0;
}
