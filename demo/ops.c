/* SPDX-License-Identifier: Apache-2.0
 * The ops, written out. Each opens one scope and says what it works on:
 * scopes cost some 30 ns, an op of a training step a thousand times that. */
#include "ops.h"

#include <opscope/record.h>
#include <stdio.h>
#include <stdlib.h>
#include <tgmath.h>

real *tensor_new(size_t n, const char *tag) {
    real *t = calloc(n, sizeof *t);
    if (t == NULL) {
        fprintf(stderr, "demo: no memory for %zu numbers\n", n);
        exit(1);
    }
    ops_alloc(t, n * sizeof *t, tag);
    return t;
}

void tensor_free(real *t) {
    ops_free(t);
    free(t);
}

static real *row(struct mat a, int i) { return a.at + (long)i * a.down; }

/* The arguments of an op that goes over n numbers. */
static void note_pass(int64_t n, int flops_each, int moves_each) {
    ops_arg_int("flops", n * flops_each);
    ops_arg_int("bytes", n * moves_each * (int64_t)sizeof(real));
}

/* The arguments of n products of (rows x depth) by (depth x cols). Making a
 * text takes longer than a scope: only while somebody records. */
static void note_product(int64_t n, int rows, int depth, int cols) {
    if (!ops_recording()) return;
    char shape[64];
    snprintf(shape, sizeof shape, "%d,%d x %d,%d", rows, depth, depth, cols);
    int64_t a = (int64_t)rows * depth, b = (int64_t)depth * cols;
    int64_t c = (int64_t)rows * cols;
    ops_arg_int("flops", 2 * n * a * cols);
    ops_arg_int("bytes", n * (a + b + c) * (int64_t)sizeof(real));
    ops_arg_text("shape", shape);
}

void embed(struct mat y, const uint8_t *token, const struct param *words,
           const struct param *places) {
    OPS_SCOPE("embed");
    note_pass((int64_t)y.rows * y.cols, 1, 3);
    for (int i = 0; i < y.rows; i++) {
        const real *word = words->w + token[i] * words->cols;
        const real *place = places->w + i % places->rows * places->cols;
        for (int j = 0; j < y.cols; j++) row(y, i)[j] = word[j] + place[j];
    }
}

void embed_back(struct mat dy, const uint8_t *token, struct param *words,
                struct param *places) {
    OPS_SCOPE("embed_back");
    note_pass((int64_t)dy.rows * dy.cols, 2, 5);
    for (int i = 0; i < dy.rows; i++) {
        real *word = words->g + token[i] * words->cols;
        real *place = places->g + i % places->rows * places->cols;
        for (int j = 0; j < dy.cols; j++) {
            word[j] += row(dy, i)[j];
            place[j] += row(dy, i)[j];
        }
    }
}

static struct mat value(const struct param *p) {
    return mat(p->w, p->rows, p->cols);
}

/* y = x w + keep * y, a call for `each` rows. */
static void product(const struct how *h, struct mat x, struct mat w, real keep,
                    struct mat y, int each) {
    for (int i = 0; i < x.rows; i += each) {
        OPS_SCOPE("matmul");
        note_product(1, each, x.cols, y.cols);
        matmul(&h->blas, mat_rows(x, i, each), w, keep, mat_rows(y, i, each));
    }
}

void linear(const struct how *h, struct mat x, const struct param *w,
            struct mat y) {
    product(h, x, value(w), 0, y, h->one_by_one ? 1 : x.rows);
}

void linear_back(const struct how *h, struct mat dy, struct mat x,
                 struct param *w, struct mat dx) {
    product(h, dy, mat_turned(value(w)), 0, dx, h->one_by_one ? 1 : dy.rows);
    product(h, mat_turned(x), dy, 1, mat(w->g, w->rows, w->cols), w->rows);
}

void add(struct mat x, struct mat y, const struct param *bias) {
    OPS_SCOPE("add");
    note_pass((int64_t)x.rows * x.cols, 2, 3);
    for (int i = 0; i < x.rows; i++)
        for (int j = 0; j < x.cols; j++)
            row(x, i)[j] += row(y, i)[j] + bias->w[j];
}

void add_back(struct mat dy, struct param *bias) {
    OPS_SCOPE("add_back");
    note_pass((int64_t)dy.rows * dy.cols, 1, 1);
    for (int i = 0; i < dy.rows; i++)
        for (int j = 0; j < dy.cols; j++) bias->g[j] += row(dy, i)[j];
}

void normalize(struct mat x, const struct param *gain, struct mat y,
               struct mat plain, real *scale) {
    OPS_SCOPE("normalize");
    note_pass((int64_t)x.rows * x.cols, 7, 3);
    for (int i = 0; i < x.rows; i++) {
        const real *from = row(x, i);
        real mean = 0, square = 0;
        for (int j = 0; j < x.cols; j++) mean += from[j];
        mean /= (real)x.cols;
        for (int j = 0; j < x.cols; j++)
            square += (from[j] - mean) * (from[j] - mean);
        scale[i] = 1 / sqrt(square / (real)x.cols + (real)1e-5);
        for (int j = 0; j < x.cols; j++) {
            row(plain, i)[j] = (from[j] - mean) * scale[i];
            row(y, i)[j] = row(plain, i)[j] * gain->w[j];
        }
    }
}

void normalize_back(struct mat dy, struct mat plain, const real *scale,
                    struct param *gain, struct mat dx) {
    OPS_SCOPE("normalize_back");
    note_pass((int64_t)dy.rows * dy.cols, 11, 4);
    for (int i = 0; i < dy.rows; i++) {
        const real *d = row(dy, i), *p = row(plain, i);
        real mean = 0, along = 0; /* of the gradient; of it along the row */
        for (int j = 0; j < dy.cols; j++) {
            mean += d[j] * gain->w[j];
            along += d[j] * gain->w[j] * p[j];
            gain->g[j] += d[j] * p[j];
        }
        mean /= (real)dy.cols;
        along /= (real)dy.cols;
        for (int j = 0; j < dy.cols; j++)
            row(dx, i)[j] += (d[j] * gain->w[j] - mean - p[j] * along) *
                             scale[i];
    }
}

/* Sequence b and head h of part (0: asks, 1: is found, 2: says) of qkv. */
static struct mat head_of(struct attention a, struct mat qkv, int part, int b,
                          int h) {
    int width = qkv.cols / 3, each = width / a.heads;
    return mat_cols(mat_rows(qkv, b * a.context, a.context),
                    part * width + h * each, each);
}

/* Sequence b and head h of an input or output of attention. */
static struct mat slice_of(struct attention a, struct mat y, int b, int h) {
    int each = y.cols / a.heads;
    return mat_cols(mat_rows(y, b * a.context, a.context), h * each, each);
}

/* Rows of s become weights that sum to 1, none for what comes later. */
static void softmax_causal(struct mat s, real scale) {
    for (int i = 0; i < s.rows; i++) {
        real *p = row(s, i), most = p[0], sum = 0;
        for (int j = 1; j <= i; j++) most = p[j] > most ? p[j] : most;
        for (int j = 0; j <= i; j++) sum += p[j] = exp((p[j] - most) * scale);
        for (int j = 0; j <= i; j++) p[j] /= sum;
        for (int j = i + 1; j < s.cols; j++) p[j] = 0;
    }
}

void attend(const struct how *h, struct attention a, struct mat qkv, real *look,
            struct mat y) {
    OPS_SCOPE("attend");
    int each = y.cols / a.heads, squares = y.rows / a.context * a.heads;
    note_product(2 * squares, a.context, each, a.context);
    real scale = 1 / sqrt((real)each);
    for (int i = 0; i < squares; i++) {
        int b = i / a.heads, k = i % a.heads;
        struct mat s = mat(look + (long)i * a.context * a.context, a.context,
                           a.context);
        matmul(&h->blas, head_of(a, qkv, 0, b, k),
               mat_turned(head_of(a, qkv, 1, b, k)), 0, s);
        softmax_causal(s, scale);
        matmul(&h->blas, s, head_of(a, qkv, 2, b, k), 0, slice_of(a, y, b, k));
    }
}

/* d, the gradient of the weights p, becomes that of what they came from. */
static void softmax_back(struct mat p, struct mat d, real scale) {
    for (int i = 0; i < p.rows; i++) {
        real sum = 0;
        for (int j = 0; j <= i; j++) sum += row(p, i)[j] * row(d, i)[j];
        for (int j = 0; j < p.cols; j++)
            row(d, i)[j] = row(p, i)[j] * (row(d, i)[j] - sum) * scale;
    }
}

void attend_back(const struct how *h, struct attention a, struct mat dy,
                 struct mat qkv, const real *look, struct mat dqkv) {
    OPS_SCOPE("attend_back");
    int each = dy.cols / a.heads, squares = dy.rows / a.context * a.heads;
    note_product(4 * squares, a.context, each, a.context);
    real scale = 1 / sqrt((real)each);
    real *room = tensor_new((size_t)a.context * a.context, "gradients");
    struct mat d = mat(room, a.context, a.context);
    for (int i = 0; i < squares; i++) {
        int b = i / a.heads, k = i % a.heads;
        struct mat up = slice_of(a, dy, b, k);
        struct mat p = mat((real *)look + (long)i * a.context * a.context,
                           a.context, a.context);
        matmul(&h->blas, mat_turned(p), up, 0, head_of(a, dqkv, 2, b, k));
        matmul(&h->blas, up, mat_turned(head_of(a, qkv, 2, b, k)), 0, d);
        softmax_back(p, d, scale);
        matmul(&h->blas, d, head_of(a, qkv, 1, b, k), 0,
               head_of(a, dqkv, 0, b, k));
        matmul(&h->blas, mat_turned(d), head_of(a, qkv, 0, b, k), 0,
               head_of(a, dqkv, 1, b, k));
    }
    tensor_free(room);
}

double cross_entropy(struct mat logits, const uint8_t *target) {
    OPS_SCOPE("cross_entropy");
    note_pass((int64_t)logits.rows * logits.cols, 5, 3);
    double loss = 0;
    for (int i = 0; i < logits.rows; i++) {
        real *p = row(logits, i), most = p[0], sum = 0;
        for (int j = 1; j < logits.cols; j++) most = p[j] > most ? p[j] : most;
        real right = p[target[i]] - most;
        for (int j = 0; j < logits.cols; j++) sum += p[j] = exp(p[j] - most);
        loss += log(sum) - right;
        for (int j = 0; j < logits.cols; j++) p[j] /= sum * (real)logits.rows;
        p[target[i]] -= 1 / (real)logits.rows;
    }
    return loss / logits.rows;
}

void adamw(const struct adamw *o, struct param *p) {
    OPS_SCOPE("adamw");
    int n = p->rows * p->cols;
    note_pass(n, 14, 7);
    ops_arg_text("shape", p->name);
    real b1 = (real)o->beta1, b2 = (real)o->beta2, tiny = (real)o->tiny;
    real rate = (real)(o->rate / (1 - pow(o->beta1, o->step)));
    real unbias = (real)(1 / (1 - pow(o->beta2, o->step)));
    /* weights that only scale or shift are not drawn to 0 */
    real keep = p->rows > 1 ? (real)(1 - o->rate * o->decay) : 1;
    for (int i = 0; i < n; i++) {
        real g = p->g[i];
        p->m[i] = b1 * p->m[i] + (1 - b1) * g;
        p->v[i] = b2 * p->v[i] + (1 - b2) * g * g;
        p->w[i] = keep * p->w[i] -
                  rate * p->m[i] / (sqrt(p->v[i] * unbias) + tiny);
        p->g[i] = 0;
    }
}
