/* SPDX-License-Identifier: Apache-2.0
 * A reader of lists of lists that only multiplies. */
#include "analyze/code/weights.h"

#include "base/sum.h"
#include "model/args.h"

/* Numbers of one input: a tensor "[16, 3]", a list of them, or "[]". */
struct input {
    int64_t sum;     /* of the tensors that are complete */
    int64_t product; /* of the one that is being read */
    bool any;        /* has it a size at all? */
};

static void put_size(struct input *in, int64_t v) {
    if (!in->any) in->product = 1;
    in->any = true;
    if (__builtin_mul_overflow(in->product, v, &in->product))
        in->product = INT64_MAX;
}

static void end_list(struct input *in) {
    if (in->any) sum_add(&in->sum, in->product);
    in->any = false;
}

int64_t weights_from(struct bytes dims, unsigned inputs) {
    struct input in = {0};
    int64_t sum = 0, v = -1;
    unsigned place = 0;
    int depth = 0;
    for (size_t i = 0; i < dims.n; i++) {
        uint8_t c = dims.p[i];
        if (c >= '0' && c <= '9') {
            v = v < 0 ? 0 : v;
            v = v > INT64_MAX / 100 ? v : v * 10 + (c - '0');
            continue;
        }
        if (v >= 0) put_size(&in, v);
        v = -1;
        if (c == '[' && ++depth == 2) in = (struct input){0};
        if (c != ']') continue;
        end_list(&in);
        if (--depth != 1) continue;
        if (place < 32 && (inputs >> place & 1)) sum_add(&sum, in.sum);
        place++;
    }
    return place > 0 ? sum : -1;
}

int64_t weights_of(const struct trace *t, row_id row, unsigned inputs) {
    struct arg a = args_get(t, row, "Input Dims");
    if (a.type == ARG_NONE) a = args_get(t, row, "Input dims");
    return a.text.n > 0 ? weights_from(a.text, inputs) : -1;
}
