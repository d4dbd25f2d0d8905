/* SPDX-License-Identifier: Apache-2.0
 * The operations of the network, forwards and backwards, each a scope of the
 * profile with what it computes and moves. A backward op adds to the gradients
 * of weights, and writes the gradient of its input unless it says otherwise. */
#ifndef DEMO_OPS_H
#define DEMO_OPS_H

#include "matrix.h"
#include <stddef.h>
#include <stdint.h>

/* A weight: its value, its gradient, and the two means of AdamW. */
struct param {
    const char *name;
    int rows, cols;
    real *w, *g, *m, *v;
};

/* How ops are carried out. */
struct how {
    struct blas blas;
    bool one_by_one; /* the fault of --small-ops: a call for every token */
};

/* n numbers, zero, known to the profile by tag; ends the program when there is
 * no memory. */
real *tensor_new(size_t n, const char *tag);
void tensor_free(real *t);

/* Rows of y: the embedding of each token plus that of its place. */
void embed(struct mat y, const uint8_t *token, const struct param *words,
           const struct param *places);
void embed_back(struct mat dy, const uint8_t *token, struct param *words,
                struct param *places);

/* y = x w. */
void linear(const struct how *h, struct mat x, const struct param *w,
            struct mat y);
void linear_back(const struct how *h, struct mat dy, struct mat x,
                 struct param *w, struct mat dx);

/* x += y + bias, bias for every row. */
void add(struct mat x, struct mat y, const struct param *bias);
/* The bias alone: dy goes through unchanged. */
void add_back(struct mat dy, struct param *bias);

/* Rows of y: those of x with mean 0 and deviation 1, times a gain. scale keeps
 * 1 / deviation of every row, y the result without its gain. */
void normalize(struct mat x, const struct param *gain, struct mat y,
               struct mat plain, real *scale);
/* Adds to dx. */
void normalize_back(struct mat dy, struct mat plain, const real *scale,
                    struct param *gain, struct mat dx);

/* Every token looks at those before it in its sequence. qkv: what it asks, how
 * it is found, what it says. look: one square of weights for each sequence
 * and head, row after row. */
struct attention {
    int context, heads;
};
void attend(const struct how *h, struct attention a, struct mat qkv, real *look,
            struct mat y);
void attend_back(const struct how *h, struct attention a, struct mat dy,
                 struct mat qkv, const real *look, struct mat dqkv);

/* Mean over the rows of -log softmax(row)[target]. logits become what they
 * should have been less of: their gradient, divided by rows. */
double cross_entropy(struct mat logits, const uint8_t *target);

/* One update of w by its gradient, which is set to 0. */
struct adamw {
    double rate, decay, beta1, beta2, tiny;
    int step; /* from 1 on */
};
void adamw(const struct adamw *o, struct param *p);

/* The op that no library has (custom.c): y = max(0, x + bias)^2 in one pass
 * over the memory. */
void bias_relu2(struct mat x, const struct param *bias, struct mat y);
/* dy becomes the gradient of x. y is what forwards gave. */
void bias_relu2_back(struct mat dy, struct mat y, struct param *bias);

#endif
