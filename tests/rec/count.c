/* SPDX-License-Identifier: Apache-2.0
 * How many events of each name a profile has, by the tests' own reader.
 *
 *     count FILE NAME...      prints a line "NAME number" for each; NAME may be
 *                             "fact:KEY" (a number), "span" (from the first
 *                             begin to the last end, in microseconds) or
 *                             "dropped" */
#include "xs.h"

static uint64_t span_us(const struct xs *x) {
    uint64_t first = UINT64_MAX, last = 0;
    for (size_t i = 0; i < x->n; i++) {
        if (x->v[i].start < first) first = x->v[i].start;
        if (x->v[i].end > last) last = x->v[i].end;
    }
    return x->n == 0 ? 0 : (last - first) / 1000000;
}

int main(int argc, char **argv) {
    struct xs x = {0};
    if (argc < 2 || !xs_load(&x, argv[1])) return 1;
    for (int i = 2; i < argc; i++) {
        long long n = (long long)xs_count(&x, argv[i]);
        if (strncmp(argv[i], "fact:", 5) == 0)
            n = (long long)xs_fact(&x, argv[i] + 5, -1);
        if (strcmp(argv[i], "span") == 0) n = (long long)span_us(&x);
        if (strcmp(argv[i], "dropped") == 0) n = (long long)xs_dropped(&x);
        printf("%s %lld\n", argv[i], n);
    }
    xs_free(&x);
    return 0;
}
