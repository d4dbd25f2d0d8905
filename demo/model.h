/* SPDX-License-Identifier: Apache-2.0
 * A small language model: a decoder of the usual kind. Each layer adds to the
 * stream of tokens first what attention finds, then what a net of two linear
 * maps makes of it:
 *
 *     x += project(attend(normalize(x)));   x += down(relu2(up(normalize(x))))
 *
 * Forwards keeps what backwards needs, and backwards frees it. */
#ifndef DEMO_MODEL_H
#define DEMO_MODEL_H

#include "ops.h"

struct shape {
    int batch;   /* sequences at once */
    int context; /* tokens in a sequence */
    int vocabulary, width, heads, layers;
};

/* What forwards leaves for backwards; rows are tokens. */
struct kept {
    struct mat plain1, norm1, qkv, looked, plain2, norm2, up, relu;
    real *scale1, *scale2, *look;
};

struct layer {
    struct param *gain1, *qkv, *project, *project_bias;
    struct param *gain2, *up, *up_bias, *down, *down_bias;
    struct kept kept;
};

enum { MAX_LAYERS = 16, MAX_PARAMS = 9 * MAX_LAYERS + 4 };

struct model {
    struct shape shape;
    struct how how;
    struct param params[MAX_PARAMS];
    int nparams;
    size_t size; /* numbers in all weights */
    /* All of a kind lie in one piece. The gradients have one number more: the
     * loss, which goes to the other ranks with them. */
    real *weights, *gradients, *means, *squares;
    struct param *words, *places, *gain, *head;
    struct layer layers[MAX_LAYERS];
    /* of the pass under way */
    struct mat stream, plain, norm, logits;
    real *scale;
};

/* Numbers in all weights of such a model. */
size_t model_size(const struct shape *s);

/* Random weights, always the same; model_close frees. */
void model_open(struct model *m, const struct shape *s, struct how how);
void model_close(struct model *m);

/* The mean loss of batch x context tokens. The pass has to be ended by
 * model_backward or by model_forget. */
double model_forward(struct model *m, const uint8_t *tokens,
                     const uint8_t *targets);
/* Adds to the gradients of all weights. */
void model_backward(struct model *m, const uint8_t *tokens);
void model_forget(struct model *m);

/* Updates all weights and sets their gradients to 0. */
void model_update(struct model *m, const struct adamw *o);

/* Numbers in the attention weights of one layer. */
size_t model_look_size(const struct shape *s);

#endif
