/* SPDX-License-Identifier: Apache-2.0
 * Output with sticky errors; a descriptor gets 64 KiB at a time. */
#include "base/io/sink.h"

#include "base/text/plain.h"
#include "base/vec.h"
#include <errno.h>
#include <langinfo.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FLUSH_AT = 1 << 16 };

void sink_memory(struct sink *s) { *s = (struct sink){.fd = -1}; }

void sink_fd(struct sink *s, int fd) { *s = (struct sink){.fd = fd}; }

void sink_screen(struct sink *s, int fd) {
    bool utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    *s = (struct sink){.fd = fd,
                       .screen = true,
                       .ascii = !utf8 && fd >= 0 && isatty(fd)};
}

void sink_over(struct sink *s, int (*put)(void *ctx, const void *p, size_t n),
               void *ctx) {
    *s = (struct sink){.fd = -1, .put = put, .ctx = ctx};
}

static bool keeps_all(const struct sink *s) { return s->fd < 0 && !s->put; }

/* Cleans buf for a screen, except a character at its end that is not whole yet;
 * at the end all of buf. Works in place: nothing becomes longer. */
static void settle(struct sink *s, bool end) {
    if (!s->screen || s->n == s->settled) return;
    char *from = s->buf + s->settled;
    size_t n = s->n - s->settled, whole = end ? n : plain_whole(from, n);
    size_t kept = plain_clean(from, whole, s->ascii ? PLAIN_ASCII : PLAIN_PAGE);
    memmove(from + kept, from + whole, n - whole);
    s->settled += kept;
    s->n = s->settled + n - whole;
}

/* Returns 0 or errno. */
static int write_all(int fd, const char *p, size_t n) {
    for (size_t done = 0; done < n;) {
        ssize_t k = write(fd, p + done, n - done);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) return errno;
        done += (size_t)k;
    }
    return 0;
}

/* Writes the buffer to where it goes; of a screen only what is settled. */
static void drain(struct sink *s, bool end) {
    settle(s, end);
    size_t n = s->screen ? s->settled : s->n;
    if (n > 0)
        s->broken = s->put ? s->put(s->ctx, s->buf, n)
                           : write_all(s->fd, s->buf, n);
    s->n -= n;
    if (s->n > 0) memmove(s->buf, s->buf + n, s->n);
    s->settled = 0;
}

void sink_write(struct sink *s, const void *p, size_t n) {
    if (s->broken || n == 0) return;
    if (!keeps_all(s) && s->n + n > FLUSH_AT) drain(s, false);
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

void sink_int(struct sink *s, int64_t v) {
    char buf[24];
    size_t i = sizeof buf;
    uint64_t u = v < 0 ? -(uint64_t)v : (uint64_t)v;
    do buf[--i] = (char)('0' + u % 10);
    while ((u /= 10) != 0);
    if (v < 0) buf[--i] = '-';
    sink_write(s, buf + i, sizeof buf - i);
}

void sink_repeat(struct sink *s, const char *str, size_t times) {
    for (size_t i = 0; i < times; i++) sink_puts(s, str);
}

void sink_printf(struct sink *s, const char *fmt, ...) {
    char small[256];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(small, sizeof small, fmt, ap);
    va_end(ap);
    char *big = n < (int)sizeof small ? NULL : malloc((size_t)n + 1);
    if (n >= (int)sizeof small && big == NULL) s->broken = ENOMEM;
    if (big != NULL) {
        va_start(ap, fmt);
        vsnprintf(big, (size_t)n + 1, fmt, ap);
        va_end(ap);
    }
    if (n > 0) sink_write(s, big != NULL ? big : small, (size_t)n);
    free(big);
}

void sink_control(struct sink *s, const char *sequence) {
    settle(s, true);
    sink_puts(s, sequence);
    s->settled = s->n;
}

int sink_flush(struct sink *s, struct ops_err *e) {
    if (!keeps_all(s) && !s->broken) drain(s, true);
    if (!s->broken) settle(s, true);
    if (s->broken == 0) return 0;
    if (s->broken == ENOMEM) return fail_oom(e);
    if (s->broken == EPIPE) return fail(e, OPS_EIO, "%s", "");
    return fail(e, OPS_EIO, "cannot write: %s", strerror(s->broken));
}

void sink_line(int fd, char *line, size_t n) {
    struct sink how;
    sink_screen(&how, fd);
    n = plain_clean(line, n, PLAIN_LINE);
    if (how.ascii) n = plain_clean(line, n, PLAIN_ASCII);
    line[n++] = '\n';
    write_all(fd, line, n);
}

void sink_free(struct sink *s) {
    free(s->buf);
    *s = (struct sink){.fd = -1};
}
