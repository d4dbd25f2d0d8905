/* SPDX-License-Identifier: Apache-2.0
 * TensorFlow and JAX both write XSpace, and both may carry compiled programs;
 * only TensorFlow has executors and eager calls. */
#include "analyze/shared/framework.h"

#include "model/trace.h"
#include <string.h>

enum framework framework_of(const struct trace *t, uint32_t source) {
    static const char *const tf[] = {"ExecutorState::Process", "EagerExecute",
                                     "FunctionRun"};
    const char *format = t->sources[source].format;
    if (t->sources[source].own) return FW_OTHER;
    if (strcmp(format, "kineto") == 0 || strcmp(format, "snapshot") == 0)
        return FW_TORCH;
    if (strcmp(format, "stepstats") == 0) return FW_TF;
    if (strcmp(format, "xspace") != 0) return FW_OTHER;
    for (size_t i = 0; i < sizeof tf / sizeof *tf; i++)
        if (strs_find(&t->strs, bytes_of(tf[i])) != STR_NONE) return FW_TF;
    return trace_meta_get(t, source, "hlo_module") ? FW_JAX : FW_TF;
}
