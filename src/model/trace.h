/* SPDX-License-Identifier: Apache-2.0
 * The trace: THE data structure. Importers fill it row by row, trace_seal()
 * sorts, nests and links it, and from then on it is const.
 *
 *     spans    what ran, when, where: one row each, in columns
 *     tracks   where: a host thread, the Python frames of a thread, a stream
 *     devices  the GPUs, TPUs and CPUs that tracks belong to
 *     links    launch call -> device span
 *     mem      allocations and frees; segments, blocks, ooms, before: the
 *              allocators' state around them, where a source tells it
 *     stacks   call stacks that sources recorded with memory events
 *     samples  counters over time
 *     steps    the training steps, found by seal
 *     sources  the files it came from; notes, meta: what to know about them
 *
 * Times are int64 picoseconds from trace->epoch. Spans are sorted by track,
 * then start, then longest first: a parent stands before its children. Python
 * frames have tracks of their own beside the thread's (real files have
 * annotations that cross frame borders).
 *
 * Ownership: what is inside a trace dies with the trace. One thread fills,
 * then seals (model/trace_fill.h); after that any number may read. */
#ifndef MODEL_TRACE_H
#define MODEL_TRACE_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/map.h"
#include "model/ids.h"
#include "model/strs.h"
#include <stdbool.h>
#include <stdint.h>

struct format; /* model/format.h */
struct ops_err;

#define PS_PER_NS INT64_C(1000)
#define PS_PER_US INT64_C(1000000)
#define PS_PER_MS INT64_C(1000000000)
#define PS_PER_S  INT64_C(1000000000000)

/* Times outside these are damage: 91 days ahead of the epoch (Kineto counts
 * from a three-month grid), 6.6 days before it, durations of 6.6 days. Any end
 * and any distance between two of them then fits int64. */
#define TS_LIMIT  (INT64_C(7900000) * PS_PER_S)
#define DUR_LIMIT (INT64_C(570000) * PS_PER_S)

static inline bool ts_is_sane(int64_t ts) {
    return ts >= -DUR_LIMIT && ts <= TS_LIMIT;
}

/* Sizes over this are damage: no machine has a block of a pebibyte. All that a
 * trace's memory events move together is bounded, too, so that any sum of
 * theirs is exact. */
#define SIZE_LIMIT  (INT64_C(1) << 50)
#define SIZES_LIMIT (INT64_C(1) << 62)

static inline bool size_is_sane(int64_t bytes) {
    return bytes >= 0 && bytes <= SIZE_LIMIT;
}

/* What a span is, by where and how it was recorded. What it is *for* (input,
 * collective, launch, ...) is a property of its name: see name_class.h. */
enum span_kind {
    SPAN_OTHER,      /* recorded by somebody, meaning unknown: a host region */
    SPAN_OP,         /* a framework operation on a host thread */
    SPAN_ANNOTATION, /* a region that the user or the framework named */
    SPAN_API,        /* a driver or runtime call: launch, copy, sync, ... */
    SPAN_PYTHON,     /* a Python (or C-from-Python) frame */
    SPAN_RUNTIME,    /* a framework's own machinery: executors, thread pools */
    SPAN_KERNEL,     /* device: a kernel, or an op of an XLA device */
    SPAN_COPY,       /* device: a memory copy */
    SPAN_MEMSET,     /* device: a fill */
    SPAN_SYNC,       /* device: a wait (stream, event, context) */
    SPAN_OVERHEAD,   /* the profiler's own cost, as far as it recorded it */
    SPAN_KINDS,
};

enum span_flag {
    SPAN_INSTANT = 1,  /* a point in time; dur is 0 */
    SPAN_ASYNC = 2,    /* may overlap its neighbours; no parent, no children */
    SPAN_DERIVED = 4,  /* made from other events by the source: never counted */
    SPAN_STEPMARK = 8, /* marks a step (ProfilerStep#N, step_num, Steps line) */
    SPAN_OPEN = 16,    /* still open at the end of the recording */
    SPAN_EAGER = 32,   /* op ran eagerly (TensorFlow) */
    SPAN_COSTED = 64,  /* its arguments tell what it did: "flops", "bytes" or
                          "shape", as the program gave them */
};

/* The columns that importers fill; 45 bytes a row, with those of seal. */
#define SPAN_COLUMNS(X)                                                        \
    X(int64_t, ts)     /* ps from the trace's epoch */                         \
    X(int64_t, dur)    /* ps, >= 0 */                                          \
    X(uint32_t, track) /* index in tracks */                                   \
    X(str_id, name)                                                            \
    X(uint16_t, cat_lo) /* index in trace->cats (24 bits): span_cat() */       \
    X(uint8_t, cat_hi)                                                         \
    X(uint32_t, args_lo)  /* where the arguments stand in the trace's */       \
    X(uint8_t, args_hi)   /* address space of mapped files (40 bits) ... */    \
    X(uint8_t, args_room) /* ... and how long they are: trace_args() */        \
    X(uint8_t, kind)      /* enum span_kind */                                 \
    X(uint8_t, flags)     /* enum span_flag */

struct spans {
    size_t n, cap;
#define X(type, column) type *column;
    SPAN_COLUMNS(X)
#undef X
    /* filled by seal: */
    row_id *parent;  /* innermost span around it on its track, or ROW_NONE */
    uint16_t *depth; /* number of spans around it, at most 65535 */
    uint32_t *step;  /* index in steps, or ROW_NONE */
};

/* What all rows of one kind share: the source's word for it and, of device
 * work, what it was launched as (struct launch). 0 if not recorded. */
struct category {
    str_id text;
    str_id hlo_op, tf_op, details, module;
};

enum { CATEGORIES = 1 << 24 }; /* no more than these can be told apart */

enum track_kind {
    TRACK_THREAD,  /* a host thread: ops, annotations, API calls */
    TRACK_PYTHON,  /* the Python frames of a host thread */
    TRACK_STREAM,  /* a device's stream, or its "XLA Ops" line */
    TRACK_DERIVED, /* a device line made from others: never counted */
    TRACK_ASYNC,   /* spans that begin and end anywhere; may overlap */
    TRACK_OTHER,   /* anything else with spans: profiler overhead, ... */
};

struct track {
    enum track_kind kind;
    str_id name;       /* thread or stream name as people know it */
    int64_t pid, tid;  /* as recorded; tid is the stream on a device */
    uint32_t source;   /* index in sources */
    uint32_t device;   /* index in devices, or ROW_NONE for host tracks */
    uint32_t thread;   /* TRACK_PYTHON: its TRACK_THREAD; else ROW_NONE */
    bool named;        /* name came from the file, not made from tid */
    row_id first, end; /* rows [first, end), set by seal */
};

enum device_kind { DEVICE_GPU, DEVICE_TPU, DEVICE_CPU, DEVICE_OTHER };

/* 0 in a number or id means that it was not recorded. */
struct device {
    enum device_kind kind;
    int64_t ordinal; /* the N of GPU N */
    uint32_t source;
    str_id label;  /* "GPU 0" */
    bool labelled; /* the source gave the label */
    str_id model;  /* "NVIDIA H200" */
    int64_t memory_bytes;
    int64_t units; /* SMs, CUs, cores */
    int cc_major, cc_minor;
    int64_t clock_hz;
    int64_t bandwidth_bytes_per_s;
    int64_t peak_flops; /* FLOP/s of its matrix units, as the device says */
    int64_t threads_per_unit;
};

/* Launch call -> device span, both as rows. After seal: sorted by device row,
 * and by_host lists link numbers sorted by host row, then device row. */
struct links {
    size_t n, cap;
    row_id *host, *device;
    uint32_t *by_host;
};

/* Halves of links before seal: (source, correlation id, row). */
struct half_links {
    size_t n, cap;
    struct half_link {
        uint64_t key; /* correlation id */
        uint32_t source;
        row_id row;
    } * v;
};

/* Arrows between spans that the source drew itself (Chrome flows); after seal
 * sorted by from. */
struct flows {
    size_t n, cap;
    row_id *from, *to;
};

/* Ends of arrows before seal. */
struct half_flows {
    size_t n, cap;
    struct half_flow {
        uint64_t id; /* the source's id, its category mixed in */
        int64_t ts;
        uint32_t track;
        row_id row;    /* the span that it means, or ROW_NONE: the innermost
                           one at ts on that track */
        uint8_t phase; /* 's', 't', 'f' or 'i': an end after which the start
                           stays good for others */
    } * v;
};

/* Bytes of a free whose size the source does not tell: seal takes that of the
 * allocation at the same address, or leaves the event out and notes it. */
#define MEM_UNSIZED INT64_MIN
/* The same of an allocation: seal takes by how far the level rose. */
#define MEM_GROWN (INT64_MIN + 1)

/* Total of an event whose bytes are in nobody's total: torch's shared memory
 * (batches from a DataLoader's workers) is reported beside the CPU allocator,
 * with a total of 0. Seal finds them. */
#define MEM_APART INT64_C(-2)

/* The columns that all memory events have. */
#define MEM_COLUMNS(X)                                                         \
    X(int64_t, ts)                                                             \
    X(int64_t, bytes)     /* > 0 allocated, < 0 freed */                       \
    X(uint64_t, addr)     /* 0: not recorded */                                \
    X(int64_t, allocated) /* total in use after it; -1: not recorded, */       \
                          /* or MEM_APART */                                   \
    X(int64_t, reserved)  /* total held by the allocator, or -1; the column */ \
                          /* is NULL after seal where nobody recorded it */    \
    X(uint32_t, track)    /* thread, or ROW_NONE */                            \
    X(uint32_t, allocator) /* index in allocators */                           \
    X(str_id, what)        /* op or tensor named by the source, or 0 */

/* Memory events; after seal sorted by allocator, then time, then file order. */
struct mem_events {
    size_t n, cap;
#define X(type, column) type *column;
    MEM_COLUMNS(X)
#undef X
    uint32_t *stack; /* where it was allocated: index in stacks, or ROW_NONE; of
                        a free, too, where the allocation is not among the
                        events. NULL where nobody recorded one */
};

/* A frame of a recorded call stack. */
struct frame {
    str_id name;  /* the function */
    str_id file;  /* 0: not recorded */
    int32_t line; /* 0: not recorded, as for C++ frames */
};

/* Call stacks, each distinct one once. Stack s is the frames
 * items[first[s]] .. items[first[s + 1] - 1], innermost first, at least one. */
struct stacks {
    struct frame *frames;
    size_t nframes, cap_frames;
    uint32_t *items;
    size_t nitems, cap_items;
    size_t *first;
    size_t n, cap;                   /* n + 1 of them, if n > 0 */
    struct map frame_map, stack_map; /* only between new and seal */
};

struct allocator {
    str_id name; /* "GPU 0", "CPU", "GPU_0_bfc", ... */
    uint32_t source;
    uint32_t device;      /* index in devices, or ROW_NONE (host memory) */
    int64_t capacity;     /* bytes, or -1 */
    int64_t peak_life;    /* the allocator's own peak since it began, or -1 */
    double fragmentation; /* as reported at the peak, 0..1, or -1 */
};

/* A piece that a caching allocator took from the driver, and how it is cut: the
 * state at the moment when the source was written. After seal sorted by
 * allocator, then address. */
struct mem_segment {
    uint64_t addr;
    int64_t bytes;     /* the whole piece */
    int64_t allocated; /* in blocks that the program holds */
    int64_t active;    /* the same and blocks that wait to be freed */
    int64_t requested; /* what the program asked for, before rounding */
    int64_t stream;    /* the stream that may use it; 0 is the default */
    int64_t pool[2];   /* 0, 0: the default; else a private (graph) pool */
    uint32_t allocator;
    bool large;        /* of the pool for large blocks */
    bool expandable;   /* can grow in place */
    uint32_t stack;    /* who made the allocator take it, or ROW_NONE */
    size_t first, end; /* its blocks, by address: [first, end) in blocks */
};

enum block_state { BLOCK_FREE, BLOCK_ALLOCATED, BLOCK_PENDING_FREE };

struct mem_block {
    uint64_t addr;
    int64_t bytes;
    int64_t requested; /* -1: not recorded */
    uint32_t stack;    /* who allocated it (last), or ROW_NONE */
    uint8_t state;     /* enum block_state */
};

/* A block that was there before its allocator's first event, where a source
 * knows it. After seal sorted by allocator, then address, each address once.
 * Where an allocator has any, the list is complete: a snapshot alone has their
 * sum as its level; beside a trace, which writes its own level, sizes may be
 * rounded a little differently (import/snapshot/events.c). */
struct mem_before {
    uint64_t addr;
    int64_t bytes;
    int64_t ts; /* when it was allocated, or TS_NONE */
    uint32_t allocator;
    uint32_t stack; /* or ROW_NONE */
};
#define TS_NONE INT64_MIN

/* An allocation that failed. After seal sorted by time. */
struct mem_oom {
    int64_t ts;
    int64_t bytes;       /* asked for */
    int64_t device_free; /* free on the device then, or -1: not recorded */
    int64_t allocated, reserved; /* the allocator's, or -1: not recorded */
    uint32_t track;              /* thread, or ROW_NONE */
    uint32_t stack;              /* or ROW_NONE */
    uint32_t allocator;
};

/* Counter samples, in file order; sorted by counter and time by seal. */
struct samples {
    size_t n, cap;
    int64_t *ts;
    double *value;
    uint32_t *counter; /* index in counters */
};

struct counter {
    str_id name, unit;
    uint32_t source;
    uint32_t device; /* or ROW_NONE */
    int64_t pid;     /* the process that it counts in, or NO_PID */
    str_id process;  /* that process's name, or 0 */
    bool ranges;   /* its samples are of ranges of work, not of instants ... */
    bool launched; /* ... and each stands at the call that launched it */
};
#define NO_PID INT64_MIN

/* How the steps were found, the strongest first. */
enum step_rule {
    STEPS_BY_REGION, /* of a view: the user named them (region.h) */
    STEPS_BY_MARKER,
    STEPS_BY_GROUP,
    STEPS_BY_RUN, /* of a compiled program: no marker, but it is a guess */
    STEPS_INFERRED,
    STEPS_WHOLE,
};

/* What ends a turn of a loop that nobody marked, the strongest first. */
enum turn_sign {
    TURN_OPTIMIZER, /* the optimizer's call */
    TURN_BACKWARD,  /* a backward pass */
    TURN_INPUT,     /* it asks for a batch */
    TURN_FUNCTION,  /* the call of a compiled function, or a named region */
    TURN_MODULE,    /* the call of a torch module: inference */
    TURN_SEQUENCE,  /* nothing but that all calls repeat */
};

struct step {
    int64_t number; /* as the program counts */
    str_id name;    /* "ProfilerStep#3", "train 3" */
    uint32_t source;
    row_id marker;   /* the span that marks it, or ROW_NONE */
    uint32_t thread; /* the step's thread: a track, or ROW_NONE */
    int64_t marker_ts, marker_dur;
    int64_t ts, dur; /* the step by docs/rules.md */
    bool cut;        /* the window began or ended in it: it is no measure of
                        the others, of which there is one that is whole */
};

struct source {
    char *path;                  /* as the user gave or the search found it */
    const struct format *format; /* what its importer can tell (format.h) */
    str_id host;                 /* 0: not recorded */
    int64_t rank;                /* -1: not recorded */
    int64_t world_size;          /* -1: not recorded */
    int64_t pid;                 /* -1: not recorded */
    int64_t family; /* a number that only a process and the children that it
                        forked have in common; 0: not recorded */
    uint32_t companion_of; /* the source of whose process it tells more (a
                             memory snapshot's trace), or ROW_NONE */
    int decimals;          /* of a microsecond that the source can tell */
    int64_t rounding_ps;   /* ps by which rounding at the source may make a
                             child end after its parent */
    bool has_clock;        /* trace->epoch_ns is wall-clock time */
    bool has_memory;       /* memory recording was on (even if no event came) */
    bool has_device;       /* device recording was on */
    bool has_shapes, has_stacks;
    bool by_opscope;    /* opscope's recorder wrote it (record.h) */
    bool runs_mark;     /* what marks its steps are runs of compiled programs */
    bool last_is_whole; /* nothing cuts its last step: that was told */
    bool beside;        /* of steps that another source has it tells more: it
                             has none of its own (load/runs_traced.c) */
    bool process_view;  /* processes as `opscope record` saw them: lifetimes
                             and counters, no work (capture/profile.c) */
    enum step_rule step_rule;      /* set by seal */
    enum turn_sign turn_sign;      /* of STEPS_INFERRED: what they end with */
    double turns_alike;            /* and the share of them that do the same */
    size_t step_first, step_end;   /* its steps, [first, end); set by seal */
    int64_t window_ts, window_end; /* first start and last end, set by seal */
    uint64_t events;    /* events in the file, all kinds, before any skip */
    uint64_t args_base; /* where its bytes begin in the args address space */
    struct bytes bytes; /* the mapped (inflated) bytes */
    struct file *file;  /* owns bytes; closed by trace_free */
    void *index;        /* what format->args_each needs; one block, freed by
                             trace_free; or NULL */
};

struct meta {
    str_id key, value;
    uint32_t source;
};

/* Numbers by what they belong to: those of x are v[first[x]] up to v[first[x +
 * 1] - 1], in rising order. A file may have any number of sources and devices:
 * a question about one of them must not cost a look at all tracks. */
struct lists {
    uint32_t *v;
    size_t *first;
};

enum note_id {
#define X(id, name, class, text, fix) NOTE_##id,
#include "model/notes.def"
#undef X
    NOTE_COUNT,
};

/* What a note says of the input: see notes.def. */
enum note_class { NOTE_CLASS_LOSS, NOTE_CLASS_MENDED, NOTE_CLASS_DETAIL };

/* What several analyses need of a whole trace, worked out by the first that
 * asks and kept for the others: see trace_memo(). */
enum memo_id {
    MEMO_PHASES,
    MEMO_HOST_TREE,
    MEMO_BARE,
    MEMO_COMPILERS,
    MEMO_LOD,
    MEMOS,
};

struct trace {
    struct arena arena;
    struct strs strs;
    struct spans spans;
    struct links links;
    struct flows flows;
    struct mem_events mem;
    struct samples samples;
    struct stacks stacks;
    struct mem_segment *segments;
    size_t nsegments, cap_segments;
    struct mem_block *blocks;
    size_t nblocks, cap_blocks;
    struct mem_before *before;
    size_t nbefore, cap_before;
    struct mem_oom *ooms;
    size_t nooms, cap_ooms;
    struct track *tracks;
    size_t ntracks, cap_tracks;
    struct device *devices;
    size_t ndevices, cap_devices;
    struct allocator *allocators;
    size_t nallocators, cap_allocators;
    struct counter *counters;
    size_t ncounters, cap_counters;
    struct step *steps;
    size_t nsteps, cap_steps;
    struct source *sources;
    size_t nsources, cap_sources;
    struct meta *meta;
    size_t nmeta, cap_meta;
    struct category *cats;
    size_t ncats, cap_cats; /* 0 is empty */
    struct hlo *hlo;        /* compiled programs; NULL: none; hlo.h */
    /* tracks of each source and of each device, meta of each source; set by
     * seal */
    struct lists of_source, of_device, meta_of;
    /* allocators of each source, and by allocator the first of its events, one
     * more behind the last; set by seal */
    struct lists allocators_of;
    size_t *mem_first;
    uint16_t *name_class; /* by str_id: enum name_class, set by seal */
    uint16_t *cat_class;  /* the same by category: name_class.h */
    int64_t epoch_ns;     /* Unix ns that ts 0 stands for */
    bool epoch_set;
    uint64_t notes[NOTE_COUNT];
    size_t nprocesses;  /* sources that are not beside another one; by seal */
    struct memo *memos; /* by enum memo_id, made by seal: trace_memo() */
    /* of a view: the trace whose rows it borrows, and of which only what lies
     * in its steps counts; NULL: this is no view (region.h) */
    const struct trace *base;
    struct views *views; /* those of this trace that are kept, made by seal */
    bool sealed, oom;
    int threads; /* that seal may use; 0 is 1 */
    /* only between new and seal: */
    struct half_links host_halves, device_halves;
    struct half_flows half_flows;
    struct map track_map, device_map, cat_map, allocator_map, counter_map;
    struct map source_map; /* where its bytes begin -> source */
    struct map demangled;
    struct step_hints { /* step numbers that the source gave */
        size_t n, cap;
        struct step_hint {
            row_id row; /* span that carries it */
            int64_t number;
        } * v;
    } step_hints, group_hints, /* markers; rows of numbered groups ... */
        run_hints;             /* ... and of runs of compiled programs */
};

/* Returns the number of the row's category, in trace->cats. */
static inline uint32_t span_cat(const struct trace *t, row_id r) {
    return (uint32_t)t->spans.cat_hi[r] << 16 | t->spans.cat_lo[r];
}

/* Returns a new, empty trace; NULL if out of memory. */
struct trace *trace_new(void);
void trace_free(struct trace *t);

/* Sorts, nests, links, finds steps, trims. After it the trace is const. It
 * fails only when memory runs out. O(n log n) at worst, O(n) for rows that come
 * in order by track. */
int trace_seal(struct trace *t, struct ops_err *e);

/* Writes "train.py:12 step < train.py:80 main": at most n frames, innermost
 * first, terminated and cut at cap. Where some frames have a line (Python),
 * those that have none (C++) are passed over; else those of the recorder and
 * the allocator are. Returns the length; 0 if stack is ROW_NONE. */
size_t stack_text(const struct trace *t, uint32_t stack, int n, char *buf,
                  size_t cap);

/* Returns the value of a meta key of that source (ROW_NONE: any), or NULL.
 * O(what the source has) after seal. */
const char *trace_meta_get(const struct trace *t, uint32_t source,
                           const char *key);

enum { NOTE_TEXT = 400 }; /* room for a note's sentence */

/* Return what notes.def says of a note: its name on screen, its sentence behind
 * a count of n (in buf), how to avoid it next time (or NULL), and whether it is
 * a loss. */
const char *note_name(enum note_id id);
const char *note_text(enum note_id id, uint64_t n, char buf[NOTE_TEXT]);
const char *note_fix(enum note_id id);
enum note_class note_class(enum note_id id);

/* Returns what make() works out of a sealed trace. The first caller makes it
 * for all later ones, which wait meanwhile. It dies with the trace, by drop().
 * NULL if make() returned NULL: the next caller tries again. */
const void *trace_memo(const struct trace *t, enum memo_id id,
                       void *(*make)(const struct trace *t),
                       void (*drop)(void *v));

/* Returns the trace of which t is a view; t itself if it is none. Questions
 * that do not hang on the window are put to it. */
static inline const struct trace *trace_base(const struct trace *t) {
    return t->base != NULL ? t->base : t;
}

/* The raw arguments of a row as they stand in the file: the source, and the
 * bytes from the arguments' first byte on, as many as they had when the file
 * was read, or up to an eighth more. n is 0 when there are none. The format is
 * the source's: see args.h for readers.
 *
 * The file may have changed since then, into anything: readers may rely on
 * nothing but n, not even on reading the same byte twice. All arguments of a
 * trace together are no longer than its files and an eighth. */
struct bytes trace_args(const struct trace *t, row_id row, uint32_t *source);

/* Returns the source whose arguments stand at that address (as in struct
 * span_in). A track may hold rows of several files of one process; likely is
 * the track's source. */
uint32_t args_source(const struct trace *t, uint32_t likely, uint64_t at);

/* Returns the device span's launching call, or ROW_NONE. O(log links). */
row_id trace_launch_of(const struct trace *t, row_id device_row);

/* Returns the first link whose device row is this one or later. O(log
 * links). */
size_t trace_link_at(const struct trace *t, row_id device_row);

/* Returns the end of the links of a launching call: numbers [*first, end) in
 * links.by_host. */
size_t trace_links_from(const struct trace *t, row_id host_row, size_t *first);

/* Returns the first row of the track that starts at ts or later; the track's
 * end if there is none. O(log rows). */
row_id trace_row_at(const struct trace *t, const struct track *tr, int64_t ts);

/* How far up a stack is looked: real ones are tens deep, deep recursion in
 * Python a thousand; a made-up file must not cost n times n. */
enum { CLIMB_MAX = 10000 };

/* Returns the innermost span of the track that runs at ts (start <= ts < end);
 * ROW_NONE if none does. O(log n + depth). */
row_id span_at(const struct trace *t, uint32_t track, int64_t ts);

/* Does the same for many instants in about the order of time: *near is the row
 * from which to look on (0 at first), and becomes one close to ts. O(log of the
 * distance + depth); an instant before *near costs a search of all. */
row_id span_at_near(const struct trace *t, uint32_t track, int64_t ts,
                    row_id *near);

/* Kinds and flags of spans as words, on screen and in the files that opscope
 * writes for other viewers and reads back. kind_name returns "op", "kernel",
 * ...; "other" for anything else. */
const char *kind_name(uint8_t kind);

/* Returns the word for flag bit number i; NULL if it is not written (instants
 * and overlapping spans show in their form already). */
const char *flag_name(unsigned i);

/* Reads "annotation step": a kind, then flags, blanks between them. Returns
 * false if the first word is no kind; unknown flags are passed over. */
bool kind_parse(struct bytes words, uint8_t *kind, uint8_t *flags);

/* What all launches of one kernel variant share: the op it was compiled from,
 * its launch shape (CUPTI's details) and the compiled module, "jit_step(8623)".
 * Profilers repeat these on every kernel; they are kept once, in the row's
 * category, so that a table of millions of kernels reads them only a few
 * times. */
struct launch {
    struct bytes hlo_op, tf_op, details, module; /* n is 0: not recorded */
};

/* Returns the category of these facts, made when new; 0 if there is nothing to
 * say or no room for more categories. */
uint32_t launch_cat(struct trace *t, const struct launch *l);

/* Gives the facts of a category, borrowed from the trace. Returns false if it
 * has none. */
bool launch_of_cat(const struct trace *t, uint32_t cat, struct launch *out);

/* Returns the Python track of each track, ROW_NONE where it has none; NULL when
 * out of memory. The caller frees it. */
uint32_t *trace_python_tracks(const struct trace *t);

/* Returns where people count from: the epoch when the trace begins within an
 * hour of it (XSpace counts from the session's start), else the trace's first
 * start (Kineto counts from a three-month grid). Text output shows times so. */
int64_t trace_origin(const struct trace *t);

/* Returns a time that a person gave, in ps: from the epoch, as start_us in JSON
 * is, or, when it is too small for that, from the origin, as text shows it. */
int64_t trace_given_time(const struct trace *t, int64_t ps);

static inline const char *span_name(const struct trace *t, row_id r) {
    return strs_text(&t->strs, t->spans.name[r]);
}

/* Returns what the allocator held after memory event i, or -1. */
static inline int64_t mem_reserved(const struct trace *t, size_t i) {
    return t->mem.reserved ? t->mem.reserved[i] : -1;
}

/* Returns where memory event i was allocated, as a stack, or ROW_NONE. */
static inline uint32_t mem_stack(const struct trace *t, size_t i) {
    return t->mem.stack ? t->mem.stack[i] : ROW_NONE;
}

static inline int64_t span_end(const struct trace *t, row_id r) {
    return t->spans.ts[r] + t->spans.dur[r];
}

/* Do spans of this track contain each other? Streams of a GPU are queues, not
 * stacks: kernels there may overlap a little (programmatic launch) without one
 * being part of the other. */
static inline bool track_nests(const struct trace *t, const struct track *tr) {
    if (tr->kind == TRACK_ASYNC) return false;
    return tr->kind != TRACK_STREAM || tr->device == ROW_NONE ||
           t->devices[tr->device].kind != DEVICE_GPU;
}

/* Did a device mark the steps of a source (an XLA device, or a line that was
 * drawn for a GPU)? Then they lie on the device's own time line, and what it
 * ran in one is that step's, whoever launched it when. */
static inline bool trace_device_steps(const struct trace *t, uint32_t source) {
    const struct source *s = &t->sources[source];
    if (s->step_first == s->step_end) return false;
    row_id m = t->steps[s->step_first].marker;
    return m != ROW_NONE && t->tracks[t->spans.track[m]].device != ROW_NONE;
}

/* Is it on a device, and work (kernel, copy or fill), not a wait or derived? */
static inline bool span_is_device_work(const struct trace *t, row_id r) {
    uint8_t k = t->spans.kind[r];
    return k >= SPAN_KERNEL && k <= SPAN_MEMSET &&
           !(t->spans.flags[r] & SPAN_DERIVED);
}

#endif
