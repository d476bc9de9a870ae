/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execute_failure.c - one line of the log for an execution that failed on its cores: which status, by what fault, at
 * which step of the model.
 */
#include <stdio.h>

#include "runtime/base/status_name.h"
#include "runtime/exec/execute_run.h"
#include "runtime/log/log.h"

#define TAG "NMGR"

/* The core that speaks for the execution: one with its status, of those one that has told a fault. */
static const struct core_run *speaker(const struct execution *e, NRT_STATUS status)
{
	const struct core_run *found = NULL;

	for (uint32_t i = 0; i < e->model->place.parts; i++) {
		const struct core_run *r = &e->runs[i];

		if (r->status == status && (r->ended || r->fault) && (!found || !found->fault))
			found = r;
	}
	return found;
}

/* What its record of the error says; nothing without one. */
static void fault_text(char *buf, size_t size, const struct execution *e, const struct core_run *r)
{
	const struct model_desc *m = &e->model->desc;
	const char *name = model_fault_name(r->fault);

	if (!r->fault)
		buf[0] = '\0';
	else if (r->fault_step < m->step_count)
		(void)snprintf(buf, size, ", fault '%s' at step %u (line %u of the model)",
			name ? name : "unknown", r->fault_step + 1, m->lines[r->fault_step]);
	else
		(void)snprintf(buf, size, ", fault '%s'", name ? name : "unknown");
}

void execution_say_failure(const struct execution *e, NRT_STATUS status)
{
	const struct core_run *r = status ? speaker(e, status) : NULL;
	char fault[128];

	if (!r)
		return;
	fault_text(fault, sizeof(fault), e, r);
	log_error(TAG, "Model '%s' on nc %u: %s (%d) from core %u of nd%u%s", e->model->desc.name,
		e->model->nc, status_name(status), (int)status, r->core->index,
		r->core->device->index, fault);
}
