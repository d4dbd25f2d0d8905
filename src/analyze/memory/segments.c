/* SPDX-License-Identifier: Apache-2.0
 * segments: how an allocator's memory is cut at the moment of the dump, one row
 * per piece that it took from the driver. A free piece that is too small for
 * the next request is lost until all of its segment is free: that is
 * fragmentation, and this table shows where it lies. */
#include "analyze/analyze.h"
#include "analyze/memory/mem_site.h"
#include "analyze/shared/missing.h"
#include "base/array.h"
#include "base/sum.h"
#include "base/text/number.h"
#include "model/format.h"
#include <stdio.h>

static const struct column segments_cols[] = {
    {"device", NULL, NULL, "whose memory it is", COL_TEXT, COL_KEY},
    {"address", NULL, NULL, "where it begins", COL_TEXT, 0},
    {"bytes", NULL, "bytes", "size of the segment", COL_BYTES,
     COL_MAIN | COL_SIZE},
    {"allocated_bytes", "allocated", "bytes",
     "in blocks that the program holds", COL_BYTES, 0},
    {"active_bytes", "active", "bytes",
     "the same, and blocks that wait for the device to be freed", COL_BYTES,
     COL_DETAIL},
    {"requested_bytes", "requested", "bytes",
     "what the program asked for; the rest of allocated is rounding", COL_BYTES,
     COL_DETAIL},
    {"largest_free_bytes", "largest free", "bytes",
     "the largest piece that can be handed out again", COL_BYTES, 0},
    {"blocks", NULL, NULL, "pieces that it is cut into", COL_INT, 0},
    {"free_blocks", "free", NULL, "pieces that are free", COL_INT, 0},
    {"fragmentation_pct", "fragm.", "%",
     "held but not in use: (bytes - active) / bytes", COL_PERCENT, 0},
    {"stream", NULL, NULL,
     "the CUDA stream that may use it, as an address; 0: the default", COL_TEXT,
     COL_DETAIL},
    {"pool", NULL, NULL,
     "small or large blocks; and the private pool, as of a CUDA graph",
     COL_TEXT, 0},
    {"expandable", NULL, NULL, "can grow in place", COL_BOOL, COL_DETAIL},
    {"stack", NULL, NULL,
     "Python frames that made the allocator take it, innermost first", COL_TEXT,
     COL_DETAIL | COL_SYMBOL},
};

struct segment_sums {
    size_t segments;
    int64_t bytes, active, largest; /* largest: of the free pieces */
};

static void put_hex(struct result *r, const char *col, uint64_t v) {
    char text[24];
    snprintf(text, sizeof text, v ? "0x%llx" : "0", (unsigned long long)v);
    cell_text(r, col, text);
}

static void put_segment(struct result *r, const struct trace *t,
                        const struct mem_segment *s, struct segment_sums *all) {
    const struct allocator *a = &t->allocators[s->allocator];
    int64_t largest = 0, empty = 0;
    for (size_t k = s->first; k < s->end; k++) {
        if (t->blocks[k].state != BLOCK_FREE) continue;
        empty++;
        if (t->blocks[k].bytes > largest) largest = t->blocks[k].bytes;
    }
    all->segments++;
    sat_inc(&all->bytes, s->bytes);
    sat_inc(&all->active, s->active);
    if (largest > all->largest) all->largest = largest;
    result_row(r);
    cell_text(r, "device", label_device(r, t, a->source, a->device));
    put_hex(r, "address", s->addr);
    cell_int(r, "bytes", s->bytes);
    cell_int(r, "allocated_bytes", s->allocated);
    cell_int(r, "active_bytes", s->active);
    if (s->requested >= 0) cell_int(r, "requested_bytes", s->requested);
    cell_int(r, "largest_free_bytes", largest);
    cell_int(r, "blocks", (int64_t)(s->end - s->first));
    cell_int(r, "free_blocks", empty);
    if (s->bytes > 0 && s->active <= s->bytes)
        cell_float(r, "fragmentation_pct",
                   100.0 * (1.0 - (double)s->active / (double)s->bytes));
    put_hex(r, "stream", (uint64_t)s->stream);
    const char *kind = s->large ? "large" : "small";
    if (s->pool[0] == 0 && s->pool[1] == 0) cell_text(r, "pool", kind);
    else
        cell_text(r, "pool",
                  arena_fmt(&r->arena, "%s, private %lld,%lld", kind,
                            (long long)s->pool[0], (long long)s->pool[1]));
    cell_bool(r, "expandable", s->expandable);
    mem_stack_cell(r, "stack", t, s->stack);
}

static void say_segments(struct result *r, const struct trace *t,
                         const struct selection *in,
                         const struct segment_sums *all) {
    char bytes[48], active[48], largest[48];
    bool snapshot = false; /* is one among the sources that count? */
    for (size_t i = 0; i < t->nsources; i++)
        snapshot |= (in->all || in->source_in[i]) &&
                    t->sources[i].format->role == ROLE_MEMORY;
    if (all->segments == 0 && !snapshot)
        result_missing(
            r, "segments",
            "only memory snapshots, which PyTorch writes, tell how an "
            "allocator's memory is cut",
            missing_advice(t, ADVICE_PIECES));
    else if (all->segments == 0)
        result_remark(r, "the snapshot has no segment: nothing was held when "
                         "it was written, or it was cut");
    if (all->segments == 0) return;
    human_bytes(all->bytes, bytes, sizeof bytes);
    human_bytes(all->active, active, sizeof active);
    human_bytes(all->largest, largest, sizeof largest);
    result_remark(r,
                  "When the snapshot was written %s were held, %s of them "
                  "in use; the largest free piece is %s: what is larger "
                  "needs memory from the device.",
                  bytes, active, largest);
    if (in->by_step)
        result_remark(r, "segments are the state at one moment: --steps and "
                         "--region do not change them");
}

static int segments_run(const struct trace *t, const struct opts *o,
                        struct result *r, struct ops_err *e) {
    struct selection in = {0};
    struct segment_sums all = {0};
    TRY(select_init(&in, t, o, e));
    result_init(r, "segments", "Segments of the allocator");
    result_from_trace(r, t);
    result_cols(r, segments_cols, COUNT(segments_cols));
    for (size_t i = 0; i < t->nsegments; i++) {
        uint32_t source = t->allocators[t->segments[i].allocator].source;
        if (in.all || in.source_in[source])
            put_segment(r, t, &t->segments[i], &all);
    }
    say_segments(r, t, &in, &all);
    select_free(&in);
    return result_done(r, e);
}

const struct analysis analysis_segments = {
    .name = "segments",
    .help = "how the GPU allocator's memory is cut, and where it is lost",
    .row = "one segment of a GPU allocator",
    .run = segments_run,
};
