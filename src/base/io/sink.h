/* SPDX-License-Identifier: Apache-2.0
 * Where bytes go out: a buffer in memory, a file descriptor or a function (a
 * compressor), behind one interface. Errors stick: write on, ask once at the
 * end.
 *
 * A screen is a sink for what people read, be it a terminal or a pipe to one.
 * It lets nothing through that could steer a terminal (plain.h), whoever wrote
 * it: colours and the like go by sink_control(), of which a build check knows
 * all callers. */
#ifndef BASE_IO_SINK_H
#define BASE_IO_SINK_H

#include "base/err.h"
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sink {
    char *buf;     /* what is not written yet (fd), or all of it (memory) */
    size_t n, cap; /* bytes in buf, room in buf */
    int fd;        /* -1: memory only, or put */
    int (*put)(void *ctx, const void *p, size_t n); /* 0 or errno; or NULL */
    void *ctx;
    int broken;     /* 0, or the errno of the first failure */
    bool screen;    /* what may not stand on a screen becomes '?' ... */
    bool ascii;     /* ... and so does all but ASCII: a terminal, and the locale
                      is not one of UTF-8 */
    size_t settled; /* of a screen: bytes of buf that may go out as they are */
};

/* Makes a sink that keeps everything in memory: buf[0..n), not terminated. */
void sink_memory(struct sink *s);

/* Makes a sink over an open descriptor, which stays the caller's: for files. */
void sink_fd(struct sink *s, int fd);

/* Makes a screen over an open descriptor, or (-1) in memory: for people. */
void sink_screen(struct sink *s, int fd);

/* Makes a sink that hands pieces of some 64 KiB to put (0 or errno). */
void sink_over(struct sink *s, int (*put)(void *ctx, const void *p, size_t n),
               void *ctx);

void sink_write(struct sink *s, const void *p, size_t n);
void sink_puts(struct sink *s, const char *str);
void sink_putc(struct sink *s, char c);
void sink_int(struct sink *s, int64_t v); /* in decimal */
void sink_repeat(struct sink *s, const char *str, size_t times);
void sink_printf(struct sink *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Writes a sequence of our own that steers the terminal; nothing in it comes
 * from outside. */
void sink_control(struct sink *s, const char *sequence);

/* Writes what is left. Returns 0, or OPS_EIO or OPS_ELIMIT with the reason. If
 * the reader went away (EPIPE), e->text is empty: no words are needed. */
int sink_flush(struct sink *s, struct ops_err *e);

/* Writes one line to a descriptor that people read and allocates nothing: what
 * may not stand in a line becomes '?' in place, and a line feed is put behind
 * the line, which must have room for it. */
void sink_line(int fd, char *line, size_t n);

/* Frees the buffer; neither flushes nor closes. */
void sink_free(struct sink *s);

#endif
