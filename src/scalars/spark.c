/* SPDX-License-Identifier: Apache-2.0
 * Sparklines. */
#include "scalars/spark.h"

#include "base/sum.h"
#include <assert.h>
#include <math.h>
#include <string.h>

enum { HEIGHTS = 8, FLAT = 3 };

/* The mean of the finite ones. NAN when there are none. */
static double mean_of(const double *v, size_t n) {
    double mean = 0;
    size_t have = 0;
    for (size_t i = 0; i < n; i++)
        if (isfinite(v[i])) mean = mean_step(mean, v[i], (double)++have);
    return have > 0 ? mean : NAN;
}

/* Which of the heights v has between lo and hi. */
static int height(double v, double lo, double hi) {
    if (!(hi > lo)) return FLAT;
    /* halved, so that the distance of two large numbers stays finite */
    double share = (v / 2 - lo / 2) / (hi / 2 - lo / 2);
    int h = (int)(share * HEIGHTS);
    return h < 0 ? 0 : h >= HEIGHTS ? HEIGHTS - 1 : h;
}

char *spark_line(const double *v, size_t n, size_t width, bool ascii,
                 char buf[SPARK_BYTES]) {
    static const char *const blocks[HEIGHTS] = {"▁", "▂", "▃", "▄",
                                                "▅", "▆", "▇", "█"};
    static const char *const plain[HEIGHTS] = {"_", ".", ",", "-",
                                               "~", "=", "+", "#"};
    double mean[SPARK_CHARS], lo = NAN, hi = NAN;
    if (width > SPARK_CHARS) width = SPARK_CHARS;
    size_t places = n < width ? n : width;
    for (size_t i = 0; i < places; i++) {
        size_t from = (size_t)((double)n * (double)i / (double)places);
        size_t to = (size_t)((double)n * (double)(i + 1) / (double)places);
        if (i + 1 == places) to = n;
        assert(from <= to && to <= n);
        mean[i] = mean_of(v + from, to - from);
        lo = fmin(lo, mean[i]);
        hi = fmax(hi, mean[i]);
    }
    char *p = buf;
    for (size_t i = 0; i < places; i++) {
        const char *c = "x";
        if (!isnan(mean[i]))
            c = (ascii ? plain : blocks)[height(mean[i], lo, hi)];
        size_t len = strlen(c);
        memcpy(p, c, len);
        p += len;
    }
    *p = '\0';
    return buf;
}
