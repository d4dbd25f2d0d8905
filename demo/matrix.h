/* SPDX-License-Identifier: Apache-2.0
 * Matrices as views, and their product. A transposed matrix is the same
 * numbers with the strides exchanged: nothing is ever moved for it. */
#ifndef DEMO_MATRIX_H
#define DEMO_MATRIX_H

#include <stdbool.h>

/* float, or double in the gradient check, where rounding would hide errors. */
#ifndef DEMO_REAL
#define DEMO_REAL float
#endif
typedef DEMO_REAL real;

struct mat {
    real *at;
    int rows, cols;
    int down, right; /* numbers from one row, one column to the next */
};

/* rows x cols numbers, row after row. */
static inline struct mat mat(real *at, int rows, int cols) {
    return (struct mat){at, rows, cols, cols, 1};
}

static inline struct mat mat_turned(struct mat a) {
    return (struct mat){a.at, a.cols, a.rows, a.right, a.down};
}

/* n rows from row i on. */
static inline struct mat mat_rows(struct mat a, int i, int n) {
    return (struct mat){a.at + (long)i * a.down, n, a.cols, a.down, a.right};
}

/* n columns from column j on. */
static inline struct mat mat_cols(struct mat a, int j, int n) {
    return (struct mat){a.at + (long)j * a.right, a.rows, n, a.down, a.right};
}

/* What multiplies: OpenBLAS where the system has it, else code of our own. */
struct blas {
    void *library; /* NULL: our own */
    void (*gemm)(void);
};

/* Looks for OpenBLAS unless own; one thread, so that ranks do not fight. */
void blas_open(struct blas *b, bool own);
void blas_close(struct blas *b);
const char *blas_name(const struct blas *b);

/* c = a b + keep * c; keep is 0 or 1. c lies row after row. */
void matmul(const struct blas *b, struct mat a, struct mat x, real keep,
            struct mat c);

#endif
