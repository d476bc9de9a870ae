/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfetto_verify.h - a strict checker of Perfetto traces, whoever wrote them.
 *
 * It follows the public rules of the format, pfcheck_findings.def, and shares no code with the
 * exporter.  Stricter than viewers in three points: order within a sequence, descriptors before use,
 * and flow ids that are used once.  The file is read once, packet by packet; memory grows with
 * sequences, interned entries, tracks and flows, not with events.
 */
#ifndef NTRACE_OUTPUT_PERFETTO_VERIFY_H
#define NTRACE_OUTPUT_PERFETTO_VERIFY_H

#include <stdbool.h>
#include <stdint.h>

enum pfv_kind {
#define FINDING(id, name, damage, rule) PFV_##id,
#include "agent/output/pfcheck_findings.def"
#undef FINDING
	PFV_KINDS,
};

struct pfv_finding {
	enum pfv_kind kind;
	uint64_t offset; /* in the file, of the packet or of the field within it */
	const char *text;
};

struct pfv_result {
	uint64_t bytes, packets, events, sequences, tracks, flows;
	uint64_t slices;	   /* begun */
	uint64_t open;		   /* of these, not ended */
	uint64_t findings, damage; /* damage: of kinds that are */
	uint64_t counts[PFV_KINDS];
};

const char *pfv_kind_name(enum pfv_kind kind);
const char *pfv_kind_rule(enum pfv_kind kind);

/*
 * Checks the trace that fd gives from its position on.  0, findings or not; -errno when it cannot be
 * read, -ENOMEM.  Each finding is reported as it is met.
 */
int perfetto_verify(int fd, void (*report)(void *ctx, const struct pfv_finding *f), void *ctx,
	struct pfv_result *ret);

#endif
