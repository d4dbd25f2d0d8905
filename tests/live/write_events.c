/* SPDX-License-Identifier: Apache-2.0
 * write_events DIR: scalars through the recorder's writer, of all that may be
 * hard: NaN, infinities, the smallest and largest numbers, large and negative
 * steps, tags beyond ASCII, several flushes, two files. Prints what it wrote,
 * one line each: TAG <tab> STEP <tab> WALL <tab> VALUE, in hexadecimal where a
 * decimal would round. */
#include "ring/eventfile.h"

#include <fcntl.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static struct eventfile f;

static void put(const char *tag, int64_t step, float v, double wall) {
    eventfile_scalar(&f, tag, strlen(tag), step, v, wall);
    printf("%s\t%" PRId64 "\t%a\t%a\n", tag, step, wall, (double)v);
}

int main(int argc, char **argv) {
    static const float odd[] = {NAN,     INFINITY, -INFINITY, FLT_MAX, -FLT_MAX,
                                FLT_MIN, 1e-45f,   0.0f,      -0.0f};
    int dir = argc == 2 ? open(argv[1], O_PATH | O_DIRECTORY) : -1;
    if (dir < 0 || eventfile_init(&f, dir, argv[1], NULL) != 0) return 1;
    double wall = 1790857026.123456;
    for (int i = 0; i < 5000; i++) {
        put("loss", i, 2.5f * expf(-0.001f * (float)i), wall += 0.001);
        put("train/gr\303\266\303\237e", i, (float)i / 3, wall);
        if (i % 1000 == 0 && eventfile_flush(&f) != 0) return 1;
    }
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        put("odd", (int64_t)i, odd[i], wall += 1);
    put("far", INT64_C(1) << 60, 1, wall += 1);
    if (eventfile_close(&f) != 0) return 1;
    for (int i = 5000; i < 5100; i++) put("loss", i, 0.01f, wall += 0.001);
    return eventfile_close(&f) != 0 || f.lost > 0;
}
