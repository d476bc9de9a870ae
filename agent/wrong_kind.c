/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wrong_kind.c - tells somebody who named a file of another kind than the command takes what it is and
 * what to do with it.
 */
#include "agent/agent.h"

/* What takes a file of that kind. */
static const char *const advice[] = {
	[FILE_NTRACE] = "summary, dump, diff and export take it",
	[FILE_CPU_UTIL] = "`ntrace dump` shows it; summary, diff and export take its directory",
	[FILE_HOST_MEM] = "`ntrace dump` shows it; summary, diff and export take its directory",
	[FILE_TRACE_INFO] = "`ntrace dump` shows it; summary, diff and export take its directory",
	[FILE_PERFETTO] = "`ntrace verify` checks it, ui.perfetto.dev shows it",
	[FILE_SEGMENT] = "give the directory that it is in",
	[FILE_NTFF] = "`ntrace dump` shows it",
	[FILE_NTFF_FOREIGN] = "the header of the vendor's own is not public, their tools read it",
	[FILE_INFO_FOREIGN] =
		"the vendor's numbers of its fields are not public; summary, diff and "
		"export take the ntrace.pb beside it",
	[FILE_NEFF] = "the vendor's runtime and tools take it",
	[FILE_MODEL] = "a program runs it with nrt_load",
	[FILE_FOREIGN] = "give a directory that `ntrace record` or `replay` wrote, or a file in it",
};

bool agent_wrong_kind(const char *command, const char *path, enum file_kind wanted)
{
	enum file_kind kind = file_kind_of(path, wanted);

	/* What somebody else wrote, whole or not, is for the one who checks it to judge. */
	if (kind == FILE_UNTOLD || kind == wanted ||
		(kind == FILE_FOREIGN && wanted == FILE_PERFETTO))
		return false;
	agent_message("%s: %s is %s; %s", command, path, file_kind_text(kind), advice[kind]);
	return true;
}
