/* SPDX-License-Identifier: Apache-2.0 */
/*
 * version.h - the version of the vendor's runtime whose interface this library has.
 */
#ifndef NTRACE_LIFECYCLE_VERSION_H
#define NTRACE_LIFECYCLE_VERSION_H

#define VERSION_MAJOR 2
#define VERSION_MINOR 31
#define VERSION_PATCH 24
#define VERSION_MAINTENANCE 0
#define VERSION_DATE "Mar 25 2026" /* of that version, not of this library */

#define VERSION_WORD_(x) #x
#define VERSION_JOIN_(a, b, c, d) \
	VERSION_WORD_(a) "." VERSION_WORD_(b) "." VERSION_WORD_(c) "." VERSION_WORD_(d)
/* "2.31.24.0" */
#define VERSION_TEXT VERSION_JOIN_(VERSION_MAJOR, VERSION_MINOR, VERSION_PATCH, VERSION_MAINTENANCE)
/* What this build is: where the vendor's library has the hash of its commit.  It cannot be taken for one. */
#define VERSION_BUILD "ntrace-" NTRACE_VERSION

#endif
