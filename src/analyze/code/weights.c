/* SPDX-License-Identifier: Apache-2.0
 * A table of ops, and a reader of lists of lists that only multiplies. */
#include "analyze/code/weights.h"

#include "base/array.h"
#include "base/sum.h"
#include "model/args.h"

/* The outermost op of each layer in torch.nn (those inside of it get the same
 * weights again). Positions as in the signatures of native_functions. */
static const struct {
    const char *name;
    unsigned inputs;
} table[] = {
    {"aten::linear", 6},
    {"aten::conv1d", 6},
    {"aten::conv2d", 6},
    {"aten::conv3d", 6},
    {"aten::conv_transpose1d", 6},
    {"aten::conv_transpose2d", 6},
    {"aten::conv_transpose3d", 6},
    {"aten::batch_norm", 6},
    {"aten::instance_norm", 6},
    {"aten::prelu", 2},
    {"aten::layer_norm", 4 | 8},
    {"aten::group_norm", 4 | 8},
    {"aten::rms_norm", 4},
    {"aten::bilinear", 4 | 8},
    {"aten::embedding", 1},
    {"aten::embedding_bag", 1},
    {"aten::lstm", 4},
    {"aten::gru", 4},
    {"aten::rnn_tanh", 4},
    {"aten::rnn_relu", 4},
    {"aten::lstm_cell", 4 | 8 | 16 | 32},
    {"aten::gru_cell", 4 | 8 | 16 | 32},
    {"aten::rnn_tanh_cell", 4 | 8 | 16 | 32},
    {"aten::rnn_relu_cell", 4 | 8 | 16 | 32},
};

unsigned weights_inputs(struct bytes name) {
    if (!BYTES_STARTS(name, "aten::")) return 0;
    for (size_t i = 0; i < COUNT(table); i++)
        if (bytes_eq(name, table[i].name, strlen(table[i].name)))
            return table[i].inputs;
    return 0;
}

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
