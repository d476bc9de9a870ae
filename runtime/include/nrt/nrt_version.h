/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_version.h - the version of the library.
 */
#ifndef NRT_VERSION_H
#define NRT_VERSION_H

#include <stddef.h>
#include <stdint.h>

#include <nrt/nrt_status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RT_VERSION_DETAIL_LEN 128
#define GIT_HASH_LEN 64

/* 224 bytes. */
typedef struct nrt_version {
	uint64_t rt_major;
	uint64_t rt_minor;
	uint64_t rt_patch;
	uint64_t rt_maintenance;
	char rt_detail[RT_VERSION_DETAIL_LEN]; /* text, NUL-terminated */
	char git_hash[GIT_HASH_LEN];	       /* text: which build, "ntrace-" and its version */
} nrt_version_t;

/*
 * Fills *ver.  size: bytes that the caller's structure has; at least 160 (else NRT_FAILURE), the git hash is
 * filled when more than 200 are there, bytes behind the structure are left alone.  Legal at
 * any time.  NRT_INVALID when ver is NULL.
 */
NRT_API NRT_STATUS nrt_get_version(nrt_version_t *ver, size_t size);

#ifdef __cplusplus
}
#endif

#endif
