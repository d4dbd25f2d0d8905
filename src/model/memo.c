/* SPDX-License-Identifier: Apache-2.0
 * What several analyses need of a sealed trace is worked out once. The trace
 * stays const for all of them: a memo stands beside it, behind its own lock. */
#include "model/seal.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

struct memo {
    pthread_mutex_t lock;
    void *v; /* NULL: nobody has asked yet */
    void (*drop)(void *v);
};

bool seal_memos(struct trace *t) {
    t->memos = calloc(MEMOS, sizeof *t->memos);
    for (size_t i = 0; t->memos != NULL && i < MEMOS; i++)
        pthread_mutex_init(&t->memos[i].lock, NULL);
    return t->memos != NULL;
}

void free_memos(struct trace *t) {
    for (size_t i = 0; t->memos != NULL && i < MEMOS; i++) {
        struct memo *m = &t->memos[i];
        if (m->v != NULL) m->drop(m->v);
        pthread_mutex_destroy(&m->lock);
    }
    free(t->memos);
}

const void *trace_memo(const struct trace *t, enum memo_id id,
                       void *(*make)(const struct trace *t),
                       void (*drop)(void *v)) {
    assert(t->sealed);
    struct memo *m = &t->memos[id];
    pthread_mutex_lock(&m->lock);
    if (m->v == NULL) m->v = make(t);
    m->drop = drop;
    const void *v = m->v;
    pthread_mutex_unlock(&m->lock);
    return v;
}
