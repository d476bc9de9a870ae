/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * file_ops.h - which requests stand for the file operations of file_ops.def.
 *
 * Numbers of which no ioctl should be: 16,383 bytes in both directions, with a letter that is none.  Small ones a tool
 * may send to any file (FIBMAP is 1).
 */
#ifndef NTRACE_VMLINUX_FILE_OPS_H
#define NTRACE_VMLINUX_FILE_OPS_H

#define NEV_OP_REQUEST(op) (0xffffff00u | (op))
#define NEV_IS_OP(request) ((request) >= NEV_OP_REQUEST(0))

#endif
