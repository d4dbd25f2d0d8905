/* SPDX-License-Identifier: Apache-2.0
 * Cutting text between characters: see cut.h. */
#include "base/text/cut.h"

#include "base/text/plain.h"
#include <stdio.h>
#include <string.h>

size_t cut_at(const char *s, size_t most) {
    size_t n = strnlen(s, most);
    return n < most || s[n] == '\0' ? n : plain_whole(s, n);
}

size_t cut_bytes_at(struct bytes b, size_t most) {
    return b.n <= most ? b.n : plain_whole((const char *)b.p, most);
}

size_t cut_vfmt(char *buf, size_t cap, const char *fmt, va_list ap) {
    int n = vsnprintf(buf, cap, fmt, ap);
    if (n < 0) n = 0;
    size_t len = (size_t)n < cap ? (size_t)n : plain_whole(buf, cap - 1);
    buf[len] = '\0';
    return len;
}

size_t cut_fmt(char *buf, size_t cap, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    size_t n = cut_vfmt(buf, cap, fmt, ap);
    va_end(ap);
    return n;
}

size_t cut_middle(char *buf, size_t cap, const char *s) {
    static const char gap[] = "...";
    size_t n = strlen(s), dots = sizeof gap - 1;
    if (n < cap) {
        memcpy(buf, s, n + 1);
        return n;
    }
    /* the end of a path says more than its beginning */
    size_t room = cap - 1 - dots, head = cut_at(s, room / 3);
    const char *tail = s + n - (room - head);
    for (int i = 0; i < 3 && ((unsigned char)*tail & 0xc0) == 0x80; i++) tail++;
    size_t left = strlen(tail);
    memcpy(buf, s, head);
    memcpy(buf + head, gap, dots);
    memcpy(buf + head + dots, tail, left + 1);
    return head + dots + left;
}
