/* SPDX-License-Identifier: Apache-2.0
 * The sizes of some of an op's inputs. */
#include "analyze/code/weights.h"

#include "analyze/shared/op_inputs.h"
#include "base/array.h"
#include "base/sum.h"
#include "model/args.h"

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
