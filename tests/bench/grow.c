/* SPDX-License-Identifier: Apache-2.0
 * grow kineto|xspace IN OUT SIZE: a profile of about SIZE (e.g. 1G, 172M) with
 * the event mix of IN. */
#include "grow.h"
#include "base/io/file.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void put(int fd, const uint8_t *p, size_t n) {
    while (n != 0) {
        ssize_t k = write(fd, p, n);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) {
            perror("grow: write");
            exit(1);
        }
        p += k;
        n -= (size_t)k;
    }
}

void pour_flush(struct pour *o) {
    put(o->fd, o->buf, o->n);
    o->n = 0;
}

void pour_bytes(struct pour *o, const void *p, size_t n) {
    o->total += n;
    if (n > sizeof o->buf - o->n) pour_flush(o);
    if (n > sizeof o->buf) {
        put(o->fd, p, n);
        return;
    }
    memcpy(o->buf + o->n, p, n);
    o->n += n;
}

void pour_patch(struct pour *o, uint64_t at, const void *p, size_t n) {
    pour_flush(o);
    if (pwrite(o->fd, p, n, (off_t)at) != (ssize_t)n) {
        perror("grow: patch");
        exit(1);
    }
}

void pour_rewind(struct pour *o, uint64_t at) {
    pour_flush(o);
    if (ftruncate(o->fd, (off_t)at) != 0 ||
        lseek(o->fd, (off_t)at, SEEK_SET) < 0) {
        perror("grow: rewind");
        exit(1);
    }
    o->total = at;
}

/* Reads 100, 64K, 172M, 1G: decimal thousands, as the goals are stated. */
static uint64_t size_of(const char *s) {
    char *end;
    double v = strtod(s, &end);
    if (*end == 'K' || *end == 'k') v *= 1e3;
    if (*end == 'M') v *= 1e6;
    if (*end == 'G') v *= 1e9;
    return v > 0 ? (uint64_t)v : 0;
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: grow kineto|xspace IN OUT SIZE\n");
        return 1;
    }
    struct file *in;
    struct ops_err e;
    if (file_open(argv[2], &in, &e) != 0) {
        fprintf(stderr, "grow: %s: %s\n", argv[2], e.text);
        return 2;
    }
    struct pour *out = calloc(1, sizeof *out);
    if (out == NULL) return 4;
    out->fd = open(argv[3], O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (out->fd < 0) {
        perror(argv[3]);
        return 2;
    }
    if (strcmp(argv[1], "xspace") == 0)
        grow_xspace(in->bytes, out, size_of(argv[4]));
    else grow_kineto(in->bytes, out, size_of(argv[4]));
    pour_flush(out);
    int rc = close(out->fd);
    free(out);
    file_close(in);
    return rc == 0 ? 0 : 2;
}
