/* SPDX-License-Identifier: Apache-2.0
 * Output with sticky errors; a descriptor gets 64 KiB at a time. */
#include "base/sink.h"

#include "base/vec.h"
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FLUSH_AT = 1 << 16 };

void sink_memory(struct sink *s) { *s = (struct sink){.fd = -1}; }

void sink_fd(struct sink *s, int fd) { *s = (struct sink){.fd = fd}; }

void sink_over(struct sink *s, int (*put)(void *ctx, const void *p, size_t n),
               void *ctx) {
    *s = (struct sink){.fd = -1, .put = put, .ctx = ctx};
}

static bool keeps_all(const struct sink *s) { return s->fd < 0 && !s->put; }

/* Writes the buffer to where it goes. */
static void drain(struct sink *s) {
    size_t done = 0;
    if (s->put != NULL && s->n > 0) {
        s->broken = s->put(s->ctx, s->buf, s->n);
        done = s->n;
    }
    while (done < s->n && !s->broken) {
        ssize_t k = write(s->fd, s->buf + done, s->n - done);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) s->broken = errno;
        else done += (size_t)k;
    }
    s->n = 0;
}

void sink_write(struct sink *s, const void *p, size_t n) {
    if (s->broken || n == 0) return;
    if (!keeps_all(s) && s->n + n > FLUSH_AT) drain(s);
    if (s->n + n > s->cap) {
        size_t cap = vec_next_cap(s->cap, s->n + n);
        if (!vec_resize(&s->buf, cap, 1)) {
            s->broken = ENOMEM;
            return;
        }
        s->cap = cap;
    }
    memcpy(s->buf + s->n, p, n);
    s->n += n;
}

void sink_puts(struct sink *s, const char *str) {
    sink_write(s, str, strlen(str));
}

void sink_putc(struct sink *s, char c) { sink_write(s, &c, 1); }

void sink_repeat(struct sink *s, const char *str, size_t times) {
    for (size_t i = 0; i < times; i++) sink_puts(s, str);
}

void sink_printf(struct sink *s, const char *fmt, ...) {
    char small[256];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(small, sizeof small, fmt, ap);
    va_end(ap);
    if (n < 0) return;
    if ((size_t)n < sizeof small) {
        sink_write(s, small, (size_t)n);
        return;
    }
    char *big = malloc((size_t)n + 1);
    if (big == NULL) {
        s->broken = ENOMEM;
        return;
    }
    va_start(ap, fmt);
    vsnprintf(big, (size_t)n + 1, fmt, ap);
    va_end(ap);
    sink_write(s, big, (size_t)n);
    free(big);
}

int sink_flush(struct sink *s, struct ops_err *e) {
    if (!keeps_all(s) && !s->broken) drain(s);
    if (s->broken == 0) return 0;
    if (s->broken == ENOMEM) return fail_oom(e);
    if (s->broken == EPIPE) return fail(e, OPS_EIO, "%s", "");
    return fail(e, OPS_EIO, "cannot write: %s", strerror(s->broken));
}

void sink_free(struct sink *s) {
    free(s->buf);
    *s = (struct sink){.fd = -1};
}
