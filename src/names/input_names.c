/* SPDX-License-Identifier: Apache-2.0
 * Names of tf.data iterators are paths, the pipeline from its end backwards:
 * Iterator::Root::Prefetch::BatchV2::TFRecord. Where a stage has several
 * inputs, or makes a new one for each element, an index follows its name. */
#include "names/input_names.h"

#include "base/array.h"
#include "names/pattern.h"
#include <assert.h>

/* clang-format off */
/* The first word in the stage's name decides: longer words come first. */
static const struct pattern kinds[] = {
    {STAGE_MAP, NAMES("MapAndBatch")},
    {STAGE_FLOW, NAMES("FlatMap")},
    {STAGE_PREFETCH, NAMES("Prefetch")},
    {STAGE_CACHE, NAMES("Cache")},
    {STAGE_SHUFFLE, NAMES("Shuffle")},
    {STAGE_MAP, NAMES("Map", "Filter", "ParseExample", "Scan")},
    {STAGE_BATCH, NAMES("Batch", "Window")},
    {STAGE_SOURCE, NAMES("TensorSlice", "FromTensor", "Range", "Record",
        "TextLine", "SSTable", "Generator", "Csv", "CSV", "Sql", "Random",
        "List", "DataService", "Snapshot", "Load")},
};
/* clang-format on */

const char *stage_kind_name(enum stage_kind k) {
    static const char *const names[STAGE_KINDS] = {
        "wait",     "source", "map",    "batch", "shuffle", "cache",
        "prefetch", "flow",   "region", "op",    "pin",     "copy",
    };
    assert(k < STAGE_KINDS);
    return names[k];
}

/* Returns where the last part of the path begins; 0 if there is no "::". */
static size_t last_part(struct bytes name) {
    for (size_t i = name.n; i >= 2; i--)
        if (name.p[i - 1] == ':' && name.p[i - 2] == ':') return i;
    return 0;
}

enum stage_kind stage_kind_of(struct bytes iterator) {
    size_t at = last_part(iterator);
    struct bytes last = {iterator.p + at, iterator.n - at};
    return (enum stage_kind)words_first(kinds, COUNT(kinds), last, STAGE_FLOW);
}

struct bytes stage_name_parent(struct bytes iterator) {
    size_t at = last_part(iterator);
    struct bytes up = {iterator.p, at < 2 ? 0 : at - 2};
    if (up.n == 0 || up.p[up.n - 1] != ']') return up;
    while (up.n > 0 && up.p[up.n - 1] != '[') up.n--;
    if (up.n > 0) up.n--;
    return up;
}

enum loader name_loader(struct bytes name) {
    if (!word_in("DataLoader", name)) return LOADER_NONE;
    if (word_in("_SingleProcess", name)) return LOADER_INLINE;
    if (word_in("_MultiProcessing", name)) return LOADER_WORKERS;
    return LOADER_SOME;
}

bool name_is_input_thread(struct bytes name) {
    return word_in("pt_data", name) || word_in("tf_data", name);
}

bool name_pins_memory(struct bytes name) {
    static const char *const words[] = {"PointerGetAttributes", "HostAlloc",
                                        "HostMalloc",           "HostRegister",
                                        "pin_memory",           NULL};
    return words_in(words, name);
}

const char *const input_sync_runs[SYNC_RUNS] = {
    "InstantiatedCapturedFunction::Run",
    "InstantiatedCapturedFunction::RunWithBorrowedArgs",
    "InstantiatedCapturedFunction::RunInstantiated",
};
const char input_async_run[] = "InstantiatedCapturedFunction::RunAsync";
const char input_async_work[] = "ExecutorState::Process";
const char input_root[] = "Iterator::Root";

bool input_is_prefetch(struct bytes name) {
    return word_in("::Prefetch", name) || name_loader(name) == LOADER_WORKERS;
}

bool input_is_parallel(struct bytes name) {
    if (!name_is_iterator(name)) return name_loader(name) == LOADER_WORKERS;
    size_t at = last_part(name);
    struct bytes last = {name.p + at, name.n - at};
    return BYTES_STARTS(last, "Parallel") || BYTES_STARTS(last, "MapAndBatch");
}
