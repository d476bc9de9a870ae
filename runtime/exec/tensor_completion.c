/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor_completion.c - how often executions have completed a tensor as their output.
 */
#include "runtime/exec/tensor.h"

void tensor_completed(struct nrt_tensor *t)
{
	pthread_mutex_lock(&t->lock);
	t->completed++;
	pthread_cond_broadcast(&t->counted);
	pthread_mutex_unlock(&t->lock);
}
