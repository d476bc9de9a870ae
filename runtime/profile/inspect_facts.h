/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_facts.h - what a session's trace_info.pb says of the process and of what is recorded, as
 * the spool wants it.
 */
#ifndef NTRACE_PROFILE_INSPECT_FACTS_H
#define NTRACE_PROFILE_INSPECT_FACTS_H

#include "runtime/base/host.h"
#include "runtime/lifecycle/runtime.h"
#include "runtime/profile/inspect_config.h"
#include "runtime/profile/inspect_dir.h"
#include "runtime/profile/inspect_spool.h"

#define INSPECT_FACTS_OFF 9u /* four activities, two rows of each filter, the end */
#define INSPECT_LAYOUT_BYTES 16u

struct inspect_facts {
	struct inspect_info info; /* points into the rest */
	struct rec_session_off off[INSPECT_FACTS_OFF];
	struct rec_device *devices;
	char **environment;
	struct host host;
	char layout[INSPECT_LAYOUT_BYTES];
};

/*
 * The mode that is in effect, by the one rule that there is: device profiles have an activity of
 * their own, a simulated device runs nothing, and MODEL does not go with executions that
 * nrt_execute only posts.
 */
nrt_inspect_device_profile_mode_t inspect_facts_mode(
	const struct runtime *r, const struct nrt_inspect_config *c);

/*
 * What is asked for and will not be is a row of `off`, and a warning in the name of call.
 * environment: c is from there.  NRT_RESOURCE: no memory, said by nobody.  ret is filled in
 * place, and points to itself and to c.
 */
NRT_STATUS inspect_facts_get(const char *call, const struct runtime *r,
	const struct nrt_inspect_config *c, bool environment, struct inspect_facts *ret);
void inspect_facts_free(struct inspect_facts *f);

#endif
