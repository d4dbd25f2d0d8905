/* SPDX-License-Identifier: Apache-2.0
 * Several processes that train one model: each on its part of the batch, and
 * all with the mean of their gradients, exchanged through shared memory. */
#ifndef DEMO_RANKS_H
#define DEMO_RANKS_H

#include "matrix.h"
#include <stddef.h>

struct exchange; /* the shared memory */

struct ranks {
    int rank, world;
    struct exchange *shared; /* NULL: alone */
    size_t n;                /* numbers that are exchanged at once */
};

/* Memory for exchanging n numbers between world ranks; false: there is none,
 * or the system has no barriers between processes. */
bool ranks_open(struct ranks *r, int world, size_t n);
void ranks_close(struct ranks *r);

/* Runs work(r, arg) once for each rank, in processes of their own where there
 * are several, and returns the first status that is not 0. A rank that fails
 * takes the others with it: they would wait for it for ever. */
int ranks_run(struct ranks *r, int (*work)(struct ranks *r, void *arg),
              void *arg);

/* n numbers become their mean over all ranks. Every rank has to call it. */
void all_reduce(struct ranks *r, real *at);

#endif
