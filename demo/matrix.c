/* SPDX-License-Identifier: Apache-2.0
 * Matrix products. OpenBLAS is found at run time, so that the program builds
 * and runs without it. Our own product keeps a tile of TILE_ROWS x TILE_COLS
 * sums in registers, while rows of a and a panel of x, laid out for it, stream
 * past. */
#include "matrix.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum {
    LANES = 32 / sizeof(real), /* in a register of AVX2: compilers keep longer
                                  values than that in memory */
    TILE_ROWS = 6, /* of two registers: 12 of the 16 that there are */
    TILE_COLS = 2 * LANES,
    PANEL_DEPTH = 256, /* of TILE_COLS floats: half of an L1 cache */
};

typedef real lanes __attribute__((vector_size(LANES * sizeof(real))));

/* One row of a tile. */
struct line {
    lanes left, right;
};

/* cblas_sgemm or cblas_dgemm, as cblas.h has them. */
typedef void gemm_call(int order, int turn_a, int turn_b, int m, int n, int k,
                       real alpha, const real *a, int lda, const real *b,
                       int ldb, real beta, real *c, int ldc);
enum { ROW_MAJOR = 101, AS_IS = 111, TURNED = 112 };

void blas_open(struct blas *b, bool own) {
    static const char *const names[] = {"libopenblas.so.0", "libopenblas.so"};
    *b = (struct blas){0};
    /* Read when the library is loaded, before it starts threads. */
    setenv("OPENBLAS_NUM_THREADS", "1", 0);
    for (size_t i = 0; !own && i < 2 && b->gemm == NULL; i++) {
        b->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (b->library == NULL) continue;
        void *at = dlsym(b->library,
                         sizeof(real) == 4 ? "cblas_sgemm" : "cblas_dgemm");
        memcpy(&b->gemm, &at, sizeof at);
        if (at == NULL) blas_close(b);
    }
}

void blas_close(struct blas *b) {
    if (b->library != NULL) dlclose(b->library);
    *b = (struct blas){0};
}

const char *blas_name(const struct blas *b) {
    return b->gemm != NULL ? "OpenBLAS" : "own matrix product";
}

static int least(int a, int b) { return a < b ? a : b; }
static int most(int a, int b) { return a > b ? a : b; }

/* At most TILE_COLS columns of x, row by row, padded with zeros. */
static void pack(struct mat x, struct line *to) {
    for (int k = 0; k < x.rows; k++, to++) {
        const real *row = x.at + (long)k * x.down;
        real line[TILE_COLS] = {0};
        for (int j = 0; j < x.cols; j++) line[j] = row[(long)j * x.right];
        memcpy(to, line, sizeof line);
    }
}

/* Adds a factor times x to a row of sums. */
static inline void add(struct line *sum, real factor, struct line x) {
    sum->left += factor * x.left;
    sum->right += factor * x.right;
}

/* The sums of one tile. Rows that a does not have are its last once more. */
static void tile(struct mat a, const struct line *x,
                 struct line sum[TILE_ROWS]) {
    const real *r[TILE_ROWS];
    for (int i = 0; i < TILE_ROWS; i++)
        r[i] = a.at + (long)least(i, a.rows - 1) * a.down;
    struct line s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, s4 = {0}, s5 = {0};
    for (long k = 0, at = 0; k < a.cols; k++, at += a.right) {
        add(&s0, r[0][at], x[k]);
        add(&s1, r[1][at], x[k]);
        add(&s2, r[2][at], x[k]);
        add(&s3, r[3][at], x[k]);
        add(&s4, r[4][at], x[k]);
        add(&s5, r[5][at], x[k]);
    }
    sum[0] = s0, sum[1] = s1, sum[2] = s2;
    sum[3] = s3, sum[4] = s4, sum[5] = s5;
}

/* Into c, of which at most TILE_ROWS x TILE_COLS are there. */
static void store(const struct line *sum, real keep, struct mat c) {
    for (int i = 0; i < c.rows; i++) {
        real *row = c.at + (long)i * c.down, line[TILE_COLS];
        memcpy(line, &sum[i], sizeof line);
        for (int j = 0; j < c.cols; j++)
            row[j] = line[j] + (keep != 0 ? row[j] : 0);
    }
}

/* The scalar product of n numbers. */
static real product(const real *a, const real *b, int n) {
    lanes sums = {0}, u, v;
    int k = 0;
    for (; k + LANES <= n; k += LANES) {
        memcpy(&u, a + k, sizeof u);
        memcpy(&v, b + k, sizeof v);
        sums += u * v;
    }
    real sum = 0;
    for (int i = 0; i < LANES; i++) sum += sums[i];
    for (; k < n; k++) sum += a[k] * b[k];
    return sum;
}

/* c = a x + keep * c for one row a: copying x first would cost more than the
 * product. */
static void multiply_row(struct mat a, struct mat x, real keep, real *c) {
    if (keep == 0) memset(c, 0, (size_t)x.cols * sizeof *c);
    if (x.right == 1) {
        for (int k = 0; k < x.rows; k++) {
            real factor = a.at[(long)k * a.right];
            const real *row = x.at + (long)k * x.down;
            for (int j = 0; j < x.cols; j++) c[j] += factor * row[j];
        }
        return;
    }
    for (int j = 0; j < x.cols; j++)
        c[j] += product(a.at, x.at + (long)j * x.right, x.rows);
}

/* c = a x + keep * c, a panel of x after the other. */
static void multiply(struct mat a, struct mat x, real keep, struct mat c) {
    struct line panel[PANEL_DEPTH], sum[TILE_ROWS];
    for (int k = 0; k < a.cols; k += PANEL_DEPTH) {
        int depth = least(PANEL_DEPTH, a.cols - k);
        for (int j = 0; j < c.cols; j += TILE_COLS) {
            int cols = least(TILE_COLS, c.cols - j);
            pack(mat_cols(mat_rows(x, k, depth), j, cols), panel);
            for (int i = 0; i < c.rows; i += TILE_ROWS) {
                int rows = least(TILE_ROWS, c.rows - i);
                tile(mat_cols(mat_rows(a, i, rows), k, depth), panel, sum);
                store(sum, k > 0 ? 1 : keep,
                      mat_cols(mat_rows(c, i, rows), j, cols));
            }
        }
    }
}

/* What BLAS calls the leading dimension. The stride of a single row means
 * nothing and may be less than BLAS accepts. */
static int leading(struct mat a) {
    return a.right == 1 ? most(a.down, a.cols) : most(a.right, a.rows);
}

void matmul(const struct blas *b, struct mat a, struct mat x, real keep,
            struct mat c) {
    if (b->gemm == NULL) {
        if (a.rows == 1 && a.right == 1 && (x.right == 1 || x.down == 1))
            multiply_row(a, x, keep, c.at);
        else multiply(a, x, keep, c);
        return;
    }
    bool turn_a = a.right != 1, turn_x = x.right != 1;
    gemm_call *call = (gemm_call *)b->gemm;
    call(ROW_MAJOR, turn_a ? TURNED : AS_IS, turn_x ? TURNED : AS_IS, c.rows,
         c.cols, a.cols, 1, a.at, leading(a), x.at, leading(x), keep, c.at,
         c.down);
}
