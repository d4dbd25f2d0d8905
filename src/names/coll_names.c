/* SPDX-License-Identifier: Apache-2.0
 * Kinds by the letters of a name alone, so that all_reduce, AllReduce and
 * all-reduce are one spelling. */
#include "names/coll_names.h"

#include "base/array.h"
#include "names/pattern.h"
#include <assert.h>

const char *coll_kind_name(enum coll_kind k) {
    static const char *const names[COLL_KINDS] = {
        "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier",
        "broadcast",  "reduce",     "gather",         "scatter",    "permute",
        "send",       "recv",       "send_recv",      "other",
    };
    assert(k < COLL_KINDS);
    return names[k];
}

/* clang-format off */
/* The first word found decides, so the longer ones come first. TensorFlow's
 * CollectiveReduce and CollectiveGather give the result to all. */
static const struct pattern kinds[] = {
    {COLL_REDUCE_SCATTER, NAMES("reducescatter", "psumscatter")},
    {COLL_ALL_REDUCE, NAMES("allreduce", "psum", "collectivereduce",
        "crossdevicereduce")},
    {COLL_ALL_GATHER, NAMES("allgather", "collectivegather")},
    {COLL_ALL_TO_ALL, NAMES("alltoall")},
    {COLL_BARRIER, NAMES("barrier")},
    {COLL_BROADCAST, NAMES("broadcast", "bcast")},
    {COLL_PERMUTE, NAMES("permute")},
    {COLL_SEND_RECV, NAMES("sendrecv")},
    {COLL_SCATTER, NAMES("scatter")},
    {COLL_GATHER, NAMES("gather")},
    {COLL_REDUCE, NAMES("reduce")},
    {COLL_RECV, NAMES("recv")},
    {COLL_SEND, NAMES("send")},
};
/* clang-format on */

enum coll_kind coll_kind_of(struct bytes name) {
    uint8_t text[96]; /* what names a collective stands at its start */
    size_t n = 0;
    for (size_t i = 0; i < name.n && n < sizeof text && name.p[i] != '('; i++) {
        uint8_t c = name.p[i];
        if (c >= 'A' && c <= 'Z') c = (uint8_t)(c - 'A' + 'a');
        if (c >= 'a' && c <= 'z') text[n++] = c;
    }
    return (enum coll_kind)words_first(kinds, COUNT(kinds),
                                       (struct bytes){text, n}, COLL_OTHER);
}
