/* SPDX-License-Identifier: Apache-2.0 */
/*
 * name_list.c - copying and freeing of lists of texts.
 */
#include "runtime/base/name_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int name_list_copy(const char *const *names, size_t count, const char ***ret)
{
	const char **list = calloc(count + 1, sizeof(*list));

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		list[i] = strdup(names[i]);
		if (!list[i]) {
			name_list_free(list, i);
			return -ENOMEM;
		}
	}
	*ret = list;
	return 0;
}

void name_list_free(const char **names, size_t count)
{
	if (!names)
		return;
	for (size_t i = 0; i < count; i++)
		free((void *)names[i]);
	free(names);
}
