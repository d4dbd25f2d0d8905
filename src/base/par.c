/* SPDX-License-Identifier: Apache-2.0
 * Two pieces of work, two threads. */
#include "base/par.h"

#include <assert.h>
#include <pthread.h>
#include <stddef.h>

struct job {
    struct work w;
    bool ok;
};

static void *run_job(void *arg) {
    struct job *j = arg;
    j->ok = j->w.run(j->w.ctx);
    return NULL;
}

bool par_both(struct work a, struct work b, int threads) {
    assert(a.run != NULL && b.run != NULL);
    struct job other = {b, false};
    pthread_t thread;
    bool apart = threads > 1 &&
                 pthread_create(&thread, NULL, run_job, &other) == 0;
    bool ok = a.run(a.ctx);
    if (apart) pthread_join(thread, NULL);
    else run_job(&other);
    return ok && other.ok;
}
