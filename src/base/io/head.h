/* SPDX-License-Identifier: Apache-2.0
 * The first bytes of a file, inflated if it is compressed: enough to tell what
 * it is without reading it all. */
#ifndef BASE_IO_HEAD_H
#define BASE_IO_HEAD_H

#include <stddef.h>
#include <stdint.h>

/* Up to cap bytes into buf; the number of them, 0 when there are none or the
 * file cannot be read. buf must have room for 64 more, which become zero. */
size_t file_head(const char *path, uint8_t *buf, size_t cap);

#endif
