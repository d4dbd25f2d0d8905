/* SPDX-License-Identifier: Apache-2.0
 * The trace while it is filled: what importers call, row by row, and what joins
 * and seals traces. Before seal alone; model/trace.h is what everybody reads.
 *
 * Adders never fail loudly: when memory runs out they set t->oom, which
 * trace_seal() turns into an error. */
#ifndef MODEL_TRACE_FILL_H
#define MODEL_TRACE_FILL_H

#include "base/err.h"
#include "model/trace.h"

static inline void span_set_cat(struct spans *s, row_id r, uint32_t cat) {
    s->cat_lo[r] = (uint16_t)cat;
    s->cat_hi[r] = (uint8_t)(cat >> 16);
}

/* Adds a source; takes file (may be NULL) and copies path. Sets format, rank
 * and pid to "not recorded". Returns its index; ROW_NONE if out of memory. */
uint32_t trace_source(struct trace *t, const char *path,
                      const struct format *format, struct file *file,
                      struct bytes bytes);

/* Sets the epoch, if this is the first source. Returns the shift (ps) that a
 * later source must add to its own times, which count from unix_ns. A source
 * without a clock passes has_clock false and gets 0. */
int64_t trace_epoch(struct trace *t, uint32_t source, int64_t unix_ns,
                    bool has_clock);

/* Puts another file in the place of the only source's, which was a pointer. */
void trace_source_file(struct trace *t, uint32_t source, struct file *file);

/* Returns the source whose bytes begin there, or ROW_NONE. */
uint32_t trace_source_find(const struct trace *t, struct bytes bytes);

/* Returns the track for (source, kind, pid, tid), made when new. */
uint32_t trace_track(struct trace *t, uint32_t source, enum track_kind kind,
                     int64_t pid, int64_t tid);

/* Returns the same track; ROW_NONE if there is none. */
uint32_t trace_track_find(const struct trace *t, uint32_t source,
                          enum track_kind kind, int64_t pid, int64_t tid);

/* Names a track; of two different names the one that is not the process's own
 * or made from a number wins, and the clash is a note. */
void trace_track_name(struct trace *t, uint32_t track, struct bytes name);

/* Returns the device (source, kind, ordinal), made when new and labelled "GPU
 * 0" etc. */
uint32_t trace_device(struct trace *t, uint32_t source, enum device_kind kind,
                      int64_t ordinal);

/* Returns the same device; ROW_NONE if there is none. Before seal. */
uint32_t trace_device_find(const struct trace *t, uint32_t source,
                           enum device_kind kind, int64_t ordinal);

/* Returns the number of a category, made when new; 0 if it is empty, and when
 * there are too many (NOTE_CATEGORIES_FULL). */
uint32_t trace_category(struct trace *t, const struct category *c);
uint32_t trace_cat(struct trace *t, struct bytes text); /* of a word alone */

/* Returns text interned in the trace; 0 ("") if out of memory, which sets
 * t->oom. */
str_id trace_str(struct trace *t, struct bytes b);

/* One span, all that an importer knows of it. */
struct span_in {
    int64_t ts, dur;
    uint32_t track;
    str_id name;
    uint32_t cat;
    uint8_t kind, flags;
    uint64_t args; /* source->args_base + the arguments' offset + 1; 0: none */
    size_t args_n; /* how many bytes they are */
};

/* Appends a span. Times out of range are counted (NOTE_TIME_OUT_OF_RANGE) and
 * the span left out, negative durations mended. Returns the row (before seal's
 * sort: good only for the adders below), or ROW_NONE. */
row_id trace_span(struct trace *t, const struct span_in *s);

/* Makes room for about so many more rows at once: growing step by step moves
 * large columns again and again. The number is a guess; memory that is not
 * filled is not touched and goes back at seal. */
void trace_reserve(struct trace *t, size_t rows);

/* Join launch and device work by an id that is unique within the source. They
 * are called once for each side's row, in any order; 1:n. */
void trace_link_host(struct trace *t, uint32_t source, uint64_t id, row_id r);
void trace_link_device(struct trace *t, uint32_t source, uint64_t id, row_id r);

/* Adds one end of an arrow: at ts on that track, start ('s'), middle or end.
 * The seal binds it to the innermost span there. */
void trace_flow(struct trace *t, uint64_t id, uint32_t track, int64_t ts,
                uint8_t phase);

/* Does the same for a span that is known: ts only tells the order of the
 * ends. */
void trace_flow_row(struct trace *t, uint64_t id, row_id row, int64_t ts,
                    uint8_t phase);

/* Says that this row marks step `number` (also set SPAN_STEPMARK on it). */
void trace_step_hint(struct trace *t, row_id row, int64_t number);

/* Says that this host row belongs to group `number`, which is as good as a
 * step when the source has no marker. */
void trace_group_hint(struct trace *t, row_id row, int64_t number);

/* Says that this host row is an op of run `number` of a compiled program, which
 * the host may execute beside the thread that called it. Later calls have
 * higher numbers. */
void trace_run_hint(struct trace *t, row_id row, int64_t number);

/* Returns the allocator of that name on that device (ROW_NONE: host memory). */
uint32_t trace_allocator(struct trace *t, uint32_t source, struct bytes name,
                         uint32_t device);

struct mem_in {
    int64_t ts, bytes, allocated, reserved;
    uint64_t addr;
    uint32_t track;
    uint32_t allocator;
    str_id what;
};
/* Returns the size that a file tells. No number of a file is MEM_UNSIZED or
 * MEM_GROWN: such a size is one that cannot be, as its neighbours are. */
static inline int64_t mem_told(int64_t bytes) {
    return bytes <= MEM_GROWN ? MEM_GROWN + 1 : bytes;
}

/* Appends a memory event. A total below 0 is not recorded. Returns its number
 * (before seal's sort: good only for trace_mem_stack), or ROW_NONE if its time
 * is out of range, or there is no memory. */
row_id trace_mem(struct trace *t, const struct mem_in *m);

/* Moves memory event `from` to place `to`, in all columns. */
static inline void mem_move(struct mem_events *m, size_t to, size_t from) {
#define X(type, column)                                                        \
    if (m->column) m->column[to] = m->column[from];
    MEM_COLUMNS(X)
#undef X
    if (m->stack) m->stack[to] = m->stack[from];
}

/* Says where event m (ROW_NONE: nothing happens) was allocated. */
void trace_mem_stack(struct trace *t, row_id m, uint32_t stack);

/* Returns the frame, made when new; ROW_NONE if out of memory. */
uint32_t trace_frame(struct trace *t, str_id name, str_id file, int32_t line);

/* Returns the stack of these frames, innermost first, made when new; ROW_NONE
 * if n is 0 or memory ran out. O(n). */
uint32_t trace_stack(struct trace *t, const uint32_t *frames, size_t n);

/* Adds a segment with no blocks yet; then each of its blocks, by address. */
void trace_segment(struct trace *t, const struct mem_segment *s);
void trace_block(struct trace *t, const struct mem_block *b);
void trace_before(struct trace *t, const struct mem_before *b);
/* Adds a failed allocation. Times out of range are counted and the record left
 * out. */
void trace_oom(struct trace *t, const struct mem_oom *o);

/* Returns the counter of that name on that device (or ROW_NONE), made when
 * new. */
uint32_t trace_counter(struct trace *t, uint32_t source, struct bytes name,
                       struct bytes unit, uint32_t device);
/* Does the same for one process: two may count different things by one name. */
uint32_t trace_counter_of(struct trace *t, uint32_t source, int64_t pid,
                          struct bytes name, struct bytes unit,
                          uint32_t device);
void trace_sample(struct trace *t, uint32_t counter, int64_t ts, double value);

void trace_meta(struct trace *t, uint32_t source, const char *key,
                struct bytes value);

static inline void trace_note(struct trace *t, enum note_id id, uint64_t n) {
    t->notes[id] += n;
}

/* Moves all of b (unsealed) behind a (unsealed) and frees b: rows, halves,
 * tracks, strings re-interned, notes added. b's sources that have the same
 * file as a's are the same source (a parallel importer's pieces); others are
 * new ones. */
int trace_append(struct trace *a, struct trace *b, struct ops_err *e);

/* Does the same for a b that tells more of the process of a's source `source`:
 * its devices, tracks and allocators are that source's. */
int trace_append_companion(struct trace *a, struct trace *b, uint32_t source,
                           struct ops_err *e);

/* Does the same for a later file of one recording: both are parts of one
 * profile, and its facts are those of `source`. */
int trace_append_continuation(struct trace *a, struct trace *b, uint32_t source,
                              struct ops_err *e);

/* Puts a memory snapshot beside the trace that was taken of the same process
 * (both unsealed) and frees it. Memory events that both have count once, as
 * the trace tells them, and get the snapshot's call stacks: see mem_join.c. */
int trace_join_memory(struct trace *t, uint32_t source, struct trace *snap,
                      struct ops_err *e);

/* Counts how many allocations of snap stand in t, too: the same address at the
 * same time. It fails only when memory runs out. O(n log n). */
int trace_shared_allocs(const struct trace *t, const struct trace *snap,
                        size_t *out, struct ops_err *e);

/* Return a number of bytes in 8 bits, rounded up by an eighth at the most; and
 * back, SIZE_MAX from 14 GiB on. */
uint8_t room_for(size_t n);
size_t room_of(uint8_t room);

#endif
