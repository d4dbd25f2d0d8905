/* SPDX-License-Identifier: Apache-2.0
 * Are the gradients right? Every weight of a tiny model is moved a little up
 * and down; what the loss does then is compared with what model_backward said.
 * In double, where the two agree to many digits if and only if they are the
 * same thing; with the one-by-one ops, too. Before that our own matrix product,
 * in sizes that a tiny model does not have. */
#include "model.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tgmath.h>

static const double step = 1e-5, tolerance = 1e-6;

struct sample {
    uint8_t tokens[64], targets[64];
};

static double loss_at(struct model *m, const struct sample *s) {
    double loss = model_forward(m, s->tokens, s->targets);
    model_forget(m);
    return loss;
}

/* The largest error of the weights of p, relative to the larger of gradient
 * and a thousandth. */
static double worst_of(struct model *m, struct param *p,
                       const struct sample *s) {
    double worst = 0;
    for (int i = 0; i < p->rows * p->cols; i++) {
        real was = p->w[i];
        p->w[i] = (real)(was + step);
        double up = loss_at(m, s);
        p->w[i] = (real)(was - step);
        double down = loss_at(m, s);
        p->w[i] = was;
        double want = (up - down) / (2 * step), have = p->g[i];
        double error = fabs(want - have) / fmax(1e-3, fabs(want));
        worst = fmax(worst, error);
    }
    return worst;
}

static int check(bool one_by_one) {
    struct shape shape = {.batch = 2,
                          .context = 5,
                          .heads = 2,
                          .layers = 2,
                          .vocabulary = text_vocabulary(),
                          .width = 8};
    struct sample s;
    struct model *m = malloc(sizeof *m);
    if (m == NULL) return 1;
    int bad = 0;
    for (int b = 0; b < shape.batch; b++) {
        uint8_t text[6];
        text_tokens((uint64_t)b, text, 6);
        memcpy(s.tokens + 5 * b, text, 5);
        memcpy(s.targets + 5 * b, text + 1, 5);
    }
    model_open(m, &shape, (struct how){.one_by_one = one_by_one});
    /* gains of 1 and biases of 0 would hide where they are left out */
    for (size_t i = 0; i < m->size; i++)
        m->weights[i] += (real)(0.3 * sin((double)i));
    model_forward(m, s.tokens, s.targets);
    model_backward(m, s.tokens);
    for (int i = 0; i < m->nparams; i++) {
        double worst = worst_of(m, &m->params[i], &s);
        bool ok = worst < tolerance; /* false for NaN, too */
        printf("%-13s %4d weights, worst error %.1e%s\n", m->params[i].name,
               m->params[i].rows * m->params[i].cols, worst,
               ok ? "" : "  WRONG");
        bad += !ok;
    }
    model_close(m);
    free(m);
    return bad;
}

/* Every way to lay out a and x; sizes beyond one tile and one panel. */
static int check_product(int rows, int depth, int cols) {
    size_t n = (size_t)rows * depth + (size_t)depth * cols +
               (size_t)rows * cols;
    real *all = tensor_new(n, "check"), *x_at = all + (size_t)rows * depth;
    real *c = x_at + (size_t)depth * cols;
    double worst = 0;
    for (size_t i = 0; i < n; i++) all[i] = (real)sin((double)i);
    for (int how = 0; how < 4; how++) {
        struct mat a = how & 1 ? mat_turned(mat(all, depth, rows))
                               : mat(all, rows, depth);
        struct mat x = how & 2 ? mat_turned(mat(x_at, cols, depth))
                               : mat(x_at, depth, cols);
        matmul(&(struct blas){0}, a, x, 0, mat(c, rows, cols));
        matmul(&(struct blas){0}, a, x, 1, mat(c, rows, cols)); /* twice */
        for (int i = 0; i < rows * cols; i++) {
            double sum = 0;
            for (int k = 0; k < depth; k++)
                sum += 2 * a.at[i / cols * a.down + k * a.right] *
                       x.at[k * x.down + i % cols * x.right];
            worst = fmax(worst, fabs(sum - c[i]));
        }
    }
    tensor_free(all);
    printf("product %d x %d x %d, worst error %.1e\n", rows, depth, cols,
           worst);
    return !(worst < tolerance);
}

int main(void) {
    int bad = check_product(1, 300, 50) + check_product(13, 300, 50) +
              check_product(6, 256, 16) + check_product(7, 1, 17);
    if (bad) printf("products are wrong\n");
    bad += check(false) + check(true);
    printf("%s\n", bad ? "something is wrong" : "gradients are right");
    return bad != 0;
}
