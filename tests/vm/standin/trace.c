// SPDX-License-Identifier: GPL-2.0-only
/* trace.c - the one place where the tracepoints are made; see trace.h. */
#define CREATE_TRACE_POINTS
#include "tests/vm/standin/trace.h"
