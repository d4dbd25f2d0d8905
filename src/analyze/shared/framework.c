/* SPDX-License-Identifier: Apache-2.0
 * TensorFlow and JAX write the same files, which may carry compiled programs;
 * only TensorFlow has executors and eager calls. */
#include "analyze/shared/framework.h"

#include "base/array.h"
#include "model/format.h"
#include "model/trace.h"
#include <string.h>

enum framework framework_of(const struct trace *t, uint32_t source) {
    static const char *const tf[] = {"ExecutorState::Process", "EagerExecute",
                                     "FunctionRun"};
    if (t->sources[source].by_opscope) return FW_OTHER;
    switch (t->sources[source].format->writer) {
    case WRITER_TORCH: return FW_TORCH;
    case WRITER_TF: return FW_TF;
    case WRITER_ANY: return FW_OTHER;
    case WRITER_XPROF: break;
    }
    for (size_t i = 0; i < COUNT(tf); i++)
        if (strs_find(&t->strs, bytes_of(tf[i])) != STR_NONE) return FW_TF;
    return trace_meta_get(t, source, "hlo_module") ? FW_JAX : FW_TF;
}
