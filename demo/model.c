/* SPDX-License-Identifier: Apache-2.0
 * The model put together from its ops. */
#include "model.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <tgmath.h>

/* --- weights -------------------------------------------------------------- */

static struct param *want(struct model *m, const char *name, int rows,
                          int cols) {
    assert(m->nparams < MAX_PARAMS);
    struct param *p = &m->params[m->nparams++];
    *p = (struct param){.name = name, .rows = rows, .cols = cols};
    m->size += (size_t)rows * (size_t)cols;
    return p;
}

/* Which weights there are; no memory yet. */
static void plan(struct model *m, const struct shape *s) {
    int w = s->width;
    assert(s->layers > 0 && s->layers <= MAX_LAYERS && w % s->heads == 0);
    *m = (struct model){.shape = *s};
    m->words = want(m, "words", s->vocabulary, w);
    m->places = want(m, "places", s->context, w);
    for (int i = 0; i < s->layers; i++) {
        struct layer *l = &m->layers[i];
        l->gain1 = want(m, "gain1", 1, w);
        l->qkv = want(m, "qkv", w, 3 * w);
        l->project = want(m, "project", w, w);
        l->project_bias = want(m, "project_bias", 1, w);
        l->gain2 = want(m, "gain2", 1, w);
        l->up = want(m, "up", w, 4 * w);
        l->up_bias = want(m, "up_bias", 1, 4 * w);
        l->down = want(m, "down", 4 * w, w);
        l->down_bias = want(m, "down_bias", 1, w);
    }
    m->gain = want(m, "gain", 1, w);
    m->head = want(m, "head", w, s->vocabulary);
}

size_t model_size(const struct shape *s) {
    struct model *m = malloc(sizeof *m);
    assert(m != NULL);
    plan(m, s);
    size_t size = m->size;
    free(m);
    return size;
}

size_t model_look_size(const struct shape *s) {
    return (size_t)s->batch * (size_t)s->heads * (size_t)s->context *
           (size_t)s->context;
}

/* About normal, mean 0, deviation 1: the sum of 12 uniform numbers less 6. */
static double normal(uint64_t *state) {
    double sum = -6;
    for (int i = 0; i < 12; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        sum += (double)(*state >> 11) / 9007199254740992.0;
    }
    return sum;
}

void model_open(struct model *m, const struct shape *s, struct how how) {
    uint64_t state = 1;
    plan(m, s);
    m->how = how;
    m->weights = tensor_new(m->size, "weights");
    m->gradients = tensor_new(m->size + 1, "gradients");
    m->means = tensor_new(m->size, "optimizer");
    m->squares = tensor_new(m->size, "optimizer");
    size_t at = 0;
    for (int i = 0; i < m->nparams; i++) {
        struct param *p = &m->params[i];
        size_t n = (size_t)p->rows * (size_t)p->cols;
        p->w = m->weights + at;
        p->g = m->gradients + at;
        p->m = m->means + at;
        p->v = m->squares + at;
        at += n;
        bool gain = strncmp(p->name, "gain", 4) == 0;
        double size = p->rows == 1 ? 0 : 0.7 / sqrt((double)s->width);
        for (size_t k = 0; k < n; k++)
            p->w[k] = (real)(gain ? 1 : size * normal(&state));
    }
}

void model_close(struct model *m) {
    tensor_free(m->weights);
    tensor_free(m->gradients);
    tensor_free(m->means);
    tensor_free(m->squares);
}

/* --- forwards ------------------------------------------------------------- */

static int tokens_of(const struct model *m) {
    return m->shape.batch * m->shape.context;
}

/* A row of so many numbers for each token. */
static struct mat activation(const struct model *m, int cols) {
    int rows = tokens_of(m);
    return mat(tensor_new((size_t)rows * (size_t)cols, "activations"), rows,
               cols);
}

static void let_go(struct mat *a) {
    tensor_free(a->at);
    a->at = NULL;
}

static struct attention attention_of(const struct model *m) {
    return (struct attention){m->shape.context, m->shape.heads};
}

static void keep(const struct model *m, struct kept *k) {
    int w = m->shape.width, n = tokens_of(m);
    k->plain1 = activation(m, w);
    k->norm1 = activation(m, w);
    k->qkv = activation(m, 3 * w);
    k->looked = activation(m, w);
    k->plain2 = activation(m, w);
    k->norm2 = activation(m, w);
    k->up = activation(m, 4 * w);
    k->relu = activation(m, 4 * w);
    k->scale1 = tensor_new((size_t)n, "activations");
    k->scale2 = tensor_new((size_t)n, "activations");
    k->look = tensor_new(model_look_size(&m->shape), "activations");
}

static void forget(struct kept *k) {
    struct mat *all[] = {&k->plain1, &k->norm1, &k->qkv, &k->looked,
                         &k->plain2, &k->norm2, &k->up,  &k->relu};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) let_go(all[i]);
    tensor_free(k->scale1);
    tensor_free(k->scale2);
    tensor_free(k->look);
}

static void layer_forward(struct model *m, struct layer *l) {
    struct kept *k = &l->kept;
    const struct how *h = &m->how;
    keep(m, k);
    struct mat branch = activation(m, m->shape.width);
    normalize(m->stream, l->gain1, k->norm1, k->plain1, k->scale1);
    linear(h, k->norm1, l->qkv, k->qkv);
    attend(h, attention_of(m), k->qkv, k->look, k->looked);
    linear(h, k->looked, l->project, branch);
    add(m->stream, branch, l->project_bias);
    normalize(m->stream, l->gain2, k->norm2, k->plain2, k->scale2);
    linear(h, k->norm2, l->up, k->up);
    bias_relu2(k->up, l->up_bias, k->relu);
    linear(h, k->relu, l->down, branch);
    add(m->stream, branch, l->down_bias);
    let_go(&branch);
}

double model_forward(struct model *m, const uint8_t *tokens,
                     const uint8_t *targets) {
    m->stream = activation(m, m->shape.width);
    embed(m->stream, tokens, m->words, m->places);
    for (int i = 0; i < m->shape.layers; i++) layer_forward(m, &m->layers[i]);
    m->plain = activation(m, m->shape.width);
    m->norm = activation(m, m->shape.width);
    m->logits = activation(m, m->shape.vocabulary);
    m->scale = tensor_new((size_t)tokens_of(m), "activations");
    normalize(m->stream, m->gain, m->norm, m->plain, m->scale);
    linear(&m->how, m->norm, m->head, m->logits);
    return cross_entropy(m->logits, targets);
}

/* --- backwards ------------------------------------------------------------ */

static struct mat gradient(const struct model *m, int cols) {
    int rows = tokens_of(m);
    return mat(tensor_new((size_t)rows * (size_t)cols, "gradients"), rows,
               cols);
}

/* d is the gradient of the stream after the layer, then of that before it. */
static void layer_backward(struct model *m, struct layer *l, struct mat d) {
    struct kept *k = &l->kept;
    const struct how *h = &m->how;
    int w = m->shape.width;
    struct mat wide = gradient(m, 4 * w), narrow = gradient(m, w);
    add_back(d, l->down_bias);
    linear_back(h, d, k->relu, l->down, wide);
    bias_relu2_back(wide, k->relu, l->up_bias);
    linear_back(h, wide, k->norm2, l->up, narrow);
    normalize_back(narrow, k->plain2, k->scale2, l->gain2, d);
    let_go(&wide);
    struct mat dqkv = gradient(m, 3 * w);
    add_back(d, l->project_bias);
    linear_back(h, d, k->looked, l->project, narrow);
    attend_back(h, attention_of(m), narrow, k->qkv, k->look, dqkv);
    linear_back(h, dqkv, k->norm1, l->qkv, narrow);
    normalize_back(narrow, k->plain1, k->scale1, l->gain1, d);
    let_go(&dqkv);
    let_go(&narrow);
    forget(k);
}

/* What no layer keeps. */
static void forget_ends(struct model *m) {
    let_go(&m->stream);
    let_go(&m->plain);
    let_go(&m->norm);
    let_go(&m->logits);
    tensor_free(m->scale);
}

void model_backward(struct model *m, const uint8_t *tokens) {
    struct mat d = gradient(m, m->shape.width);
    struct mat last = gradient(m, m->shape.width);
    linear_back(&m->how, m->logits, m->norm, m->head, last);
    normalize_back(last, m->plain, m->scale, m->gain, d);
    let_go(&last);
    for (int i = m->shape.layers - 1; i >= 0; i--)
        layer_backward(m, &m->layers[i], d);
    embed_back(d, tokens, m->words, m->places);
    let_go(&d);
    forget_ends(m);
}

void model_forget(struct model *m) {
    for (int i = 0; i < m->shape.layers; i++) forget(&m->layers[i].kept);
    forget_ends(m);
}

void model_update(struct model *m, const struct adamw *o) {
    for (int i = 0; i < m->nparams; i++) adamw(o, &m->params[i]);
}
