/* SPDX-License-Identifier: Apache-2.0
 * What a program did, by its own account: read with clock_gettime before and
 * after each call, kept in memory that has nothing to do with the recorder's,
 * and printed as JSON, a line each. A test holds the profile against it. */
#ifndef TESTS_REC_DIARY_H
#define TESTS_REC_DIARY_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* t has the times just before and just after the call that begins it, and the
 * same of its end. For something that is one call, the last two are 0. */
struct diary_note {
    const char *what, *name, *kind;
    uint64_t t[4];
    char more[400]; /* JSON members, each behind a comma */
};

/* The diary of one thread, printed after it has ended. */
struct diary {
    char thread[32];
    long tid;
    struct diary_note *v;
    size_t n, cap;
};

static inline uint64_t diary_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline void diary_open(struct diary *d, const char *thread) {
    memset(d, 0, sizeof *d);
    snprintf(d->thread, sizeof d->thread, "%s", thread);
    d->tid = syscall(SYS_gettid);
}

/* Makes room before the clock is read. Returns the note's number: notes move
 * when the diary grows. */
static inline size_t diary_note(struct diary *d, const char *what,
                                const char *name, const char *kind) {
    if (d->n == d->cap) {
        d->cap = d->cap == 0 ? 1024 : 2 * d->cap;
        d->v = realloc(d->v, d->cap * sizeof *d->v);
        if (d->v == NULL) abort();
    }
    d->v[d->n] = (struct diary_note){.what = what, .name = name, .kind = kind};
    return d->n++;
}

/* Writes JSON; each byte beyond ASCII becomes the character with its number, so
 * that any bytes can be told. */
static inline void diary_text(FILE *f, const char *s) {
    fputc('"', f);
    for (; *s != 0; s++) {
        unsigned char c = (unsigned char)*s;
        if (c < 32 || c >= 127 || c == '"' || c == '\\')
            fprintf(f, "\\u%04x", c);
        else fputc(c, f);
    }
    fputc('"', f);
}

static inline void diary_print(const struct diary *d, FILE *f) {
    for (size_t i = 0; i < d->n; i++) {
        const struct diary_note *n = &d->v[i];
        fprintf(f,
                "{\"what\": \"%s\", \"thread\": \"%s\", \"tid\": %ld, "
                "\"name\": ",
                n->what, d->thread, d->tid);
        diary_text(f, n->name);
        fprintf(f, ", \"kind\": \"%s\", \"t\": [%llu, %llu, %llu, %llu]%s}\n",
                n->kind, (unsigned long long)n->t[0],
                (unsigned long long)n->t[1], (unsigned long long)n->t[2],
                (unsigned long long)n->t[3], n->more);
    }
    free(d->v);
}

#endif
