/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_check.c - `ntrace check`: what this machine allows, and what follows for a recording.
 */
#include <stdio.h>

#include "agent/agent.h"
#include "agent/collect/probe.h"

static const struct argp argp = {0, 0, 0,
	"Lists what this machine allows, a line each: ok, missing or denied.  Exit code 1 when "
	"`ntrace "
	"record` cannot work here.",
	0, 0, 0};
