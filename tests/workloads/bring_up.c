/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bring_up.c - a program that initialises the Neuron runtime and closes it again, several times.
 *
 *	bring_up [CYCLES [COMMAND...]]
 *
 * An nrt_init that fails is said on standard output and tried once more.  At the end it says how many
 * descriptors were left open, when any were.  With a command it is up when it becomes that command.
 * Exit status: 0 all cycles went through in the end, 1 not, 2 descriptors were left.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <nrt/nrt.h>

static int open_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static NRT_STATUS start(void)
{
	NRT_STATUS status = nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "");

	if (status == NRT_SUCCESS)
		return status;
	printf("nrt_init failed with status %d\n", (int)status);
	return nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "");
}

int main(int argc, char **argv)
{
	int cycles = argc > 1 ? atoi(argv[1]) : 1, before = 0, after = 0;
	uint32_t cores = 0;

	for (int i = 0; i < cycles; i++) {
		if (start() != NRT_SUCCESS || nrt_get_visible_vnc_count(&cores) != NRT_SUCCESS)
			return 1;
		if (argc > 2) {
			execvp(argv[2], argv + 2);
			return 1;
		}
		nrt_close();
		after = open_descriptors();
		if (i == 0)
			before = after; /* the control file of traces stays */
	}
	printf("cores %u, descriptors left %d\n", (unsigned)cores, after - before);
	return after == before ? 0 : 2;
}
