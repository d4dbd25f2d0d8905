/* SPDX-License-Identifier: Apache-2.0
 * A table of ops, and the sizes of some of their inputs. */
#include "analyze/code/weights.h"

#include "analyze/shared/op_inputs.h"
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

int64_t weights_from(struct bytes dims, unsigned inputs) {
    struct op_inputs in;
    int64_t sum = 0;
    op_inputs_from(dims, (struct bytes){0}, (struct bytes){0}, &in);
    for (int i = 0; i < in.n && sum >= 0; i++)
        if (inputs >> i & 1 || in.v[i].numel < 0)
            sum = known_add(sum, in.v[i].numel);
    return in.n > 0 ? sum : -1;
}

int64_t weights_of(const struct trace *t, row_id row, unsigned inputs) {
    struct arg a = args_get(t, row, "Input Dims");
    if (a.type == ARG_NONE) a = args_get(t, row, "Input dims");
    return a.text.n > 0 ? weights_from(a.text, inputs) : -1;
}
