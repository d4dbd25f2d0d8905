/* SPDX-License-Identifier: Apache-2.0
 * opscope/record.h: record what a program does, from inside it.
 *
 *     #include <opscope/record.h>
 *     #include <stdio.h>
 *
 *     int main(int argc, char **argv) {
 *         char why[OPS_PROBLEM_MAX];
 *         ops_start(argc > 1 ? argv[1] : "logs", NULL);       // (1)
 *         for (int i = 0; i < 100; i++) {
 *             ops_step(i);                                    // (2)
 *             { OPS_SCOPE("forward"); }                       // (3)
 *         }
 *         if (ops_problem(why, sizeof why) != 0)
 *             fprintf(stderr, "not recorded: %s\n", why);
 *         return 0;       // ops_stop() comes by itself
 *     }
 *
 * cc train.c -lopscope-record, and then: opscope overview logs
 *
 * What is promised
 *   - No call fails, blocks, prints into or ends the program. What cannot be
 *     recorded is dropped and counted, and the profile names it.
 *   - Every call may come from any thread, before ops_start and after ops_stop.
 *     A call from a signal handler that interrupted another one is dropped and
 *     counted; a handler may leave by siglongjmp(). A child of fork() records
 *     by itself from its first call on, into a file of its own. A thread must
 *     not be cancelled asynchronously inside of a call.
 *   - The program's descriptors are its own: the recorder has a table apart
 *     from them, takes no number and holds no copy.
 *   - The program ends when it would without the recorder, with the same
 *     status; signals come to the same threads.
 *   - What a call recorded is in shared memory when the call returns: it
 *     survives kill -9, and the next `opscope` that looks at the folder reads
 *     it. A power loss loses what was not flushed yet.
 *   - Memory is bounded: at most 8 MiB for a thread and 512 MiB for a program
 *     and its children of fork() together, by default; one that records little
 *     takes some 50 KiB. What dead children held is given back.
 *   - In a set-uid program no variable of the environment is read. Nothing is
 *     made that other users may write to.
 *
 * What it costs: a scope is two reads of the CPU's time stamp counter and 16
 * bytes; off, one load and a branch. Strings are copied when they must be: no
 * pointer is kept after the call. Names should be few (a name is interned
 * once for ever, at most 262,144 of them): what varies goes into an argument.
 *
 * Names that are string literals are interned once per call site; others are
 * looked up at every call (some 20 ns more). Needs GNU C (gcc or clang), C11 or
 * C++11; Linux 3.17 or later and glibc. docs/recorder/cost.md says what it
 * touches in the program and on the machine. */
#ifndef OPSCOPE_RECORD_H
#define OPSCOPE_RECORD_H

#include "opscope/version.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- versions ------------------------------------------------------------ */

/* What a compiled program takes for granted of the library: the words that the
 * macros look at, the functions that they call, the structs that do not grow
 * (ops_async). A program that was compiled with another number is not recorded:
 * ops_start fails and ops_problem() says so. */
#define OPS_RECORD_ABI 1
/* Returns the library's version, "0.1.0"; OPS_VERSION_MAJOR, ... are the
 * header's. */
OPS_API const char *ops_record_version(void);

/* Structs that may get more members, at their end: ops_options,
 * ops_device_tracer, ops_device_record. Each is handed over with its size,
 * mostly by the inline call that takes it, so that a program and a library of
 * different versions understand each other. Fill them by name, or zero them
 * first: what is not given is 0, and 0 is the default. */

/* --- start and stop ------------------------------------------------------ */

/* 0 means the default of each member. The environment comes first, unless
 * as_given says otherwise: see docs/recorder/library.md for OPSCOPE_LOGDIR and
 * its neighbours. */
struct ops_options {
    /* Which steps (numbers given to ops_step) to record; NULL: everything.
     *     "100..102"   "1,10,100"   "500.."   "every 50"   "every 50 for 3"
     *     "10s..20s"   "every 60s for 2s"          by time since the start
     *     "demand"     nothing until asked: by signal, or by creating the
     *                  file opscope.capture in the log folder
     * Outside of the window a scope costs what it costs when off. */
    const char *steps;
    /* Keeps the last events of each thread instead of all: nothing is written
     * until ops_dump(), the signal, or a crash. */
    bool flight;
    /* A signal that dumps (flight) or starts a capture (steps "demand"); 0 for
     * none. A handler that was there before is called too. One that cannot be
     * caught is refused. */
    int signal;
    /* How much a capture on demand takes: steps, or milliseconds in a program
     * without ops_step. 0 stands for 3 steps, 2000 ms. */
    int demand_steps, demand_ms;
    size_t ring_bytes;   /* per thread, rounded to a power of two; 0: 8 MiB */
    size_t memory_bytes; /* for all rings, those of children included; 0: 512
                            MiB, or a quarter of what /dev/shm has free or the
                            container still allows, if that is less */
    int rank, world;     /* taken when world > 0 (a rank that is not below it is
                            refused), else from RANK, WORLD_SIZE, SLURM_PROCID,
                            OMPI_COMM_WORLD_RANK, ... */
    const char *host;    /* part of the file's name; NULL: the host's name */
    const char *run;     /* the run's folder; NULL: one of its own, named by
                            the time, which the ranks of a job share */
    bool no_machine;     /* do not sample RSS, page faults, CPU, GPU */
    bool no_fork;        /* children of fork() do not record */
    bool no_tsc;         /* clock_gettime() rather than the TSC */
    /* logdir, run and steps are as they are given here, and OPSCOPE_LOGDIR,
     * OPSCOPE_RUN and OPSCOPE_STEPS have no say. (Not in the padding that older
     * programs left: it may hold anything.) */
    bool as_given __attribute__((aligned(8)));
    bool no_demand; /* leaves the file opscope.capture to somebody else */
};

/* Starts recording into logdir (made if need be; NULL: "."). Returns 0, or -1
 * if nothing can be recorded; ops_problem() says why. If recording was started
 * already, the first start stays, and this returns 0. */
static inline int ops_start(const char *logdir, const struct ops_options *o);

/* Closes the profile: <logdir>/plugins/profile/<run>/<host>_<rank or
 * pid>.xplane.pb. Waits only for the rest of the rings to be written. Does
 * nothing if recording was not started. */
OPS_API void ops_stop(void);

/* Writes what the rings hold (flight recorder), or closes the file so far and
 * goes on in a new one. Returns 0, or -1 with ops_problem(). */
OPS_API int ops_dump(void);

/* Waits until all that was recorded until now is in the files. */
OPS_API void ops_flush(void);

/* Is a window open? */
static inline bool ops_recording(void);

/* Tells why the last ops_start or ops_dump failed, or what stands in the way of
 * writing (disk full, folder gone). Copies the text into buf, cut to n bytes
 * with the NUL behind it, and returns how long it is: 0 when all is well, and
 * then buf is "". ops_problem(NULL, 0) only asks whether there is one. It takes
 * no lock: any thread, a handler or a child of fork() may ask at any time. */
enum { OPS_PROBLEM_MAX = 256 }; /* no text is longer, with its NUL */
OPS_API size_t ops_problem(char *buf, size_t n);

/* --- steps, scopes, instants, counters ----------------------------------- */

/* Begins a step (an iteration of the training loop); the step before on this
 * thread ends. It stands outermost in the loop. */
static inline void ops_step(int64_t number);
/* Begins an epoch, in which steps lie; the epoch before ends, and the open
 * step, too. */
static inline void ops_epoch(int64_t number);
/* Ends the open step (epoch) of this thread, so that what follows the loop is
 * not part of it. */
static inline void ops_step_end(void);
static inline void ops_epoch_end(void);

/* What a scope is, for analyses; it is part of the name. */
enum ops_kind {
    OPS_KIND_OP,    /* the program's own work: the default */
    OPS_KIND_INPUT, /* waits for, reads or prepares training data */
    OPS_KIND_COMM,  /* talks to other ranks: all-reduce, broadcast, barrier */
    OPS_KIND_COPY,  /* moves data between memories */
    OPS_KIND_WAIT,  /* waits for a device or another thread */
    OPS_KIND_PHASE  /* a part of the step with ops in it: forward, backward */
};

/* Make a scope from here to the end of the block. Each is one declaration: it
 * stands where a declaration may stand, and `if (x) OPS_SCOPE("y");` without
 * braces is an error of the compiler in C (in C++ it is a scope that ends at
 * once). */
#define OPS_SCOPE(name) OPS_SCOPE_AS(OPS_KIND_OP, name)
#define OPS_SCOPE_AS(kind, name)                                               \
    struct ops_scope_ OPS_CAT_(ops_scope_at_, __COUNTER__)                     \
        __attribute__((cleanup(ops_scope_close_), unused)) =                   \
            OPS_ON_() ? ops_begin_(OPS_ID_(kind, name)) : ops_scope_none_()
/* Do the same with an argument, "layer" = 3, "file" = path. */
#define OPS_SCOPE_INT(name, key, value)                                        \
    OPS_SCOPE_WITH_(name, ops_arg_int_, key, value)
#define OPS_SCOPE_NUM(name, key, value)                                        \
    OPS_SCOPE_WITH_(name, ops_arg_num_, key, value)
#define OPS_SCOPE_TEXT(name, key, text)                                        \
    OPS_SCOPE_WITH_(name, ops_arg_text_, key, text)

/* Begin and end a scope by hand: ops_end() ends the innermost scope of this
 * thread that was begun so. One that is left by longjmp() ends with the scope
 * of a block around it, at the latest. */
#define ops_begin(name) ops_begin_as(OPS_KIND_OP, name)
#define ops_begin_as(kind, name)                                               \
    (OPS_ON_() ? ops_begin_by_hand_(OPS_ID_(kind, name)) : ops_begin_skip_())
static inline void ops_end(void);

/* Add arguments to the innermost open scope: any number of them, 1 KiB in all.
 * Two keys mean something to analyses: "flops" (floating-point operations, int)
 * and "bytes" (bytes moved, int); "shape" is shown beside the name. */
#define ops_arg_int(key, value)                                                \
    OPS_IF_ON_(ops_arg_int_(OPS_ID_(OPS_KEY_, key), value))
#define ops_arg_num(key, value)                                                \
    OPS_IF_ON_(ops_arg_num_(OPS_ID_(OPS_KEY_, key), value))
#define ops_arg_text(key, text)                                                \
    OPS_IF_ON_(ops_arg_text_(OPS_ID_(OPS_KEY_, key), text))

#define ops_instant(name) OPS_IF_ON_(ops_instant_(OPS_ID_(OPS_KIND_OP, name)))
#define ops_counter(name, value)                                               \
    OPS_IF_ON_(ops_counter_(OPS_ID_(OPS_COUNT_, name), value))

/* Draw an arrow from the innermost open scope of one thread to one of another:
 * out where the work is handed over, in where it is taken up. The id is the
 * program's; ops_flow_new() makes one that is new in this process. */
OPS_API uint64_t ops_flow_new(void);
static inline void ops_flow_out(uint64_t id);
static inline void ops_flow_in(uint64_t id);

/* --- memory -------------------------------------------------------------- */

/* Record an allocation and a free. p is an address in any memory; tag says what
 * it is for ("activations", "weights", "gradients", "optimizer", "input": these
 * are known to `memory --by category`; any other is shown as it is). A free of
 * what was never alloc'ed is kept and named. */
#define ops_alloc(p, bytes, tag)                                               \
    OPS_IF_ON_(                                                                \
        ops_alloc_((uint64_t)(uintptr_t)(p), bytes, OPS_ID_(OPS_TAG_, tag)))
static inline void ops_free(const void *p);

/* --- work that is not a scope of a thread --------------------------------- */

/* A span that begins here and ends anywhere: another function or thread. The
 * handle is the caller's and may be copied; end it once. */
struct ops_async {
    uint64_t t0;
    uint32_t name, gen, slot;
};
#define ops_async_begin(kind, name)                                            \
    (OPS_ON_() ? ops_async_begin_(OPS_ID_(kind, name)) : ops_async_none_())
static inline void ops_async_end(struct ops_async *a); /* NULL is fine */

/* Returns the clock of the profile: nanoseconds of CLOCK_MONOTONIC. */
OPS_API uint64_t ops_now(void);

/* Returns the track of a queue (stream, engine) of a device that the program
 * itself knows about; the same names give the same track. device: "npu 0". */
OPS_API uint32_t ops_device_track(const char *device, const char *queue);
/* Records what ran there, from t0 to t1 (ops_now). corr joins it to the host's
 * side: a number from ops_correlation(), or 0. */
#define ops_device_span(track, name, t0, t1, corr)                             \
    OPS_IF_ON_(                                                                \
        ops_device_span_(track, OPS_ID_(OPS_KIND_OP, name), t0, t1, corr))
/* Returns a new number, noted at the innermost open scope of this thread: this
 * scope launched the work of that number. 0 when off. */
static inline uint64_t ops_correlation(void);

/* An accelerator's own tracer. opscope calls it from a thread of its own, which
 * shares the program's descriptors, at the end from the one that removes it,
 * never from two at once; collect() also one last time after stop(). It must
 * not call ops_* itself, nor leave a call by a jump. */
enum ops_device_class {
    OPS_DEVICE_KERNEL,
    OPS_DEVICE_COPY,
    OPS_DEVICE_SET,
    OPS_DEVICE_SYNC,
    OPS_DEVICE_COUNTER
};
struct ops_device_record {
    const char *queue; /* "stream 7" */
    const char *name;
    enum ops_device_class what;
    uint64_t t0, t1; /* in the tracer's own ticks */
    uint64_t corr;   /* as in ops_device_span */
    int64_t bytes;   /* copies and sets; -1: not known */
    double value;    /* counters */
};
struct ops_device_tracer {
    const char *device; /* "npu 0" */
    void *self;         /* handed to every call below */
    /* Begin and end tracing; start returns 0, or something else if it
     * cannot. */
    int (*start)(void *self);
    void (*stop)(void *self);
    /* Hands over what is finished by now, record by record: give(to, &record,
     * sizeof record). May be called often; a tracer that has its records only
     * at the end gives none until stop() was called. Returns how many it lost
     * since the last call. */
    uint64_t (*collect)(void *self,
                        void (*give)(void *to,
                                     const struct ops_device_record *r,
                                     size_t size),
                        void *to);
    /* Returns the device's clock now, in ticks; it is read between two reads of
     * the host's. NULL if its ticks are ops_now(). */
    uint64_t (*clock)(void *self);
    /* "model", "memory_bytes", ...: pairs, ended by NULL; or NULL. */
    const char *const *facts;
};
/* Adds a tracer. The struct is copied; what it points to is not, and lives
 * until ops_device_tracer_remove() of the same pointer. May come before or
 * after ops_start. Returns 0, or -1 if there are 16 already, or start, stop or
 * collect is missing. */
static inline int ops_device_tracer_add(const struct ops_device_tracer *t);
OPS_API void ops_device_tracer_remove(const struct ops_device_tracer *t);

/* --- scalars and identity ------------------------------------------------- */

/* Adds a point of a curve, for TensorBoard and `opscope scalars`: it is written
 * to <logdir>/events.out.tfevents.*, whether or not a window is open. */
#define ops_scalar(tag, step, value)                                           \
    OPS_IF_STARTED_(ops_scalar_(OPS_ID_(OPS_TAG_, tag), step, value))

/* Names the calling thread in the profile; else it has the system's name. */
OPS_API void ops_thread_name(const char *name);
/* Sets the rank, for programs that learn it after ops_start. */
OPS_API void ops_set_rank(int rank, int world);

/* --- the same as plain functions ------------------------------------------ */

/* For callers without a C compiler: dlopen(), Python's ctypes, Rust, Julia. The
 * rule: what is a macro or inline above, ops_X, is a function here, ops_fn_X,
 * and takes the same; a scope is ops_fn_begin and ops_fn_end. What is a
 * function above is called by its own name: ops_stop, ops_dump, ops_flush,
 * ops_problem, ops_flow_new, ops_now, ops_device_track, ops_thread_name,
 * ops_set_rank. Kinds are the numbers of enum ops_kind. Names are looked up at
 * every call. These functions do not hang on OPS_RECORD_ABI: they stay as they
 * are.
 *
 * Two take something else. Options are a text, as in a URL: the members of
 * ops_options, flags 0 or 1, "steps=100..102&rank=0&world=4&run=first%20try";
 * NULL: all defaults; one that is wrong: -1 and ops_problem(). And a handle is
 * filled in place: 24 bytes, aligned to 8, that need not be known further. */
OPS_API int ops_fn_start(const char *logdir, const char *options);
OPS_API bool ops_fn_recording(void);
OPS_API void ops_fn_step(int64_t number);
OPS_API void ops_fn_epoch(int64_t number);
OPS_API void ops_fn_step_end(void);
OPS_API void ops_fn_epoch_end(void);
OPS_API void ops_fn_begin(const char *name);
OPS_API void ops_fn_begin_as(int kind, const char *name);
OPS_API void ops_fn_end(void);
OPS_API void ops_fn_arg_int(const char *key, int64_t value);
OPS_API void ops_fn_arg_num(const char *key, double value);
OPS_API void ops_fn_arg_text(const char *key, const char *text);
OPS_API void ops_fn_instant(const char *name);
OPS_API void ops_fn_counter(const char *name, double value);
OPS_API void ops_fn_scalar(const char *tag, int64_t step, double value);
OPS_API void ops_fn_flow_out(uint64_t id);
OPS_API void ops_fn_flow_in(uint64_t id);
OPS_API void ops_fn_alloc(const void *p, uint64_t bytes, const char *tag);
OPS_API void ops_fn_free(const void *p);
OPS_API void ops_fn_async_begin(struct ops_async *a, int kind,
                                const char *name);
OPS_API void ops_fn_async_end(struct ops_async *a);
OPS_API void ops_fn_device_span(uint32_t track, const char *name, uint64_t t0,
                                uint64_t t1, uint64_t corr);
OPS_API uint64_t ops_fn_correlation(void);
OPS_API int ops_fn_device_tracer_add(const struct ops_device_tracer *t,
                                     size_t size);

/* --- what the macros are made of; not for direct use ---------------------- */

/* [0] is 0 while recording is not started, in every ABI. Else it is the number
 * of the session * 8, + OPS_ON_BIT_ while a window is open. It has a page of
 * its own, which fork() wipes: an array, so that a program's copy of it (copy
 * relocation) is a whole page too. */
enum { OPS_STATE_WORDS_ = 16384 };
OPS_API extern uint32_t ops_state_[OPS_STATE_WORDS_];
/* Names of other things than scopes live apart from theirs. */
enum { OPS_KEY_ = 16, OPS_TAG_, OPS_COUNT_ };
enum { OPS_ON_BIT_ = 1, OPS_PENDING_BIT_ = 2, OPS_GEN_SHIFT_ = 3 };

struct ops_scope_ {
    uint32_t which, gen; /* which: 0: not recorded */
};

OPS_API int ops_start_(uint32_t abi, const char *logdir,
                       const struct ops_options *o, size_t size);
OPS_API int ops_device_tracer_add_(const struct ops_device_tracer *t,
                                   size_t size);
OPS_API uint32_t ops_intern_(const char *name, uint32_t kind);
OPS_API struct ops_scope_ ops_begin_(uint32_t name);
OPS_API void ops_begin_by_hand_(uint32_t name);
OPS_API struct ops_scope_ ops_begin_known_(uint32_t name);
OPS_API bool ops_end_known_(struct ops_scope_ s, bool anywhere);
OPS_API void ops_begin_off_(void);
OPS_API void ops_scope_end_(struct ops_scope_ s);
OPS_API void ops_end_(void);
OPS_API void ops_step_(int64_t number);
OPS_API void ops_epoch_(int64_t number);
OPS_API void ops_step_end_(void);
OPS_API void ops_epoch_end_(void);
OPS_API void ops_arg_int_(uint32_t key, int64_t v);
OPS_API void ops_arg_num_(uint32_t key, double v);
OPS_API void ops_arg_text_(uint32_t key, const char *text);
OPS_API void ops_instant_(uint32_t name);
OPS_API void ops_counter_(uint32_t name, double v);
OPS_API void ops_flow_(uint64_t id, int out);
OPS_API void ops_alloc_(uint64_t addr, uint64_t bytes, uint32_t tag);
OPS_API void ops_free_(uint64_t addr);
OPS_API struct ops_async ops_async_begin_(uint32_t name);
OPS_API void ops_async_end_(struct ops_async *a);
OPS_API void ops_device_span_(uint32_t track, uint32_t name, uint64_t t0,
                              uint64_t t1, uint64_t corr);
OPS_API uint64_t ops_correlation_(void);
OPS_API void ops_scalar_(uint32_t tag, int64_t step, double v);

#define OPS_CAT2_(a, b) a##b
#define OPS_CAT_(a, b)  OPS_CAT2_(a, b)
#define OPS_STATE_()    __atomic_load_n(ops_state_, __ATOMIC_RELAXED)
#define OPS_ON_()                                                              \
    __builtin_expect((OPS_STATE_() & (OPS_ON_BIT_ | OPS_PENDING_BIT_)) != 0, 0)
#define OPS_IF_ON_(call)      (OPS_ON_() ? (void)(call) : (void)0)
#define OPS_IF_STARTED_(call) (OPS_STATE_() != 0 ? (void)(call) : (void)0)

/* Makes a scope of a block with an argument; if the scope could not be begun
 * there is no argument, which would become its parent's. */
#define OPS_SCOPE_WITH_(name, arg, key, value)                                 \
    struct ops_scope_ OPS_CAT_(ops_scope_at_, __COUNTER__) __attribute__((     \
        cleanup(ops_scope_close_), unused)) = OPS_ON_() ? __extension__({      \
        struct ops_scope_ ops_new_ = ops_begin_(OPS_ID_(OPS_KIND_OP, name));   \
        if (__builtin_expect(ops_new_.which != 0, 1))                          \
            arg(OPS_ID_(OPS_KEY_, key), value);                                \
        ops_new_;                                                              \
    })                                                                         \
                                                        : ops_scope_none_()

/* Gives the number of a name: kept at the call site when it is a literal. */
#define OPS_ID_(kind, name)                                                    \
    __extension__({                                                            \
        uint32_t ops_id_;                                                      \
        if (__builtin_constant_p(name)) {                                      \
            static uint32_t ops_kept_; /* 0: not interned yet */               \
            ops_id_ = __atomic_load_n(&ops_kept_, __ATOMIC_RELAXED);           \
            if (__builtin_expect(ops_id_ == 0, 0)) {                           \
                ops_id_ = ops_intern_(name, kind);                             \
                __atomic_store_n(&ops_kept_, ops_id_, __ATOMIC_RELAXED);       \
            }                                                                  \
        } else {                                                               \
            ops_id_ = ops_intern_(name, kind);                                 \
        }                                                                      \
        ops_id_;                                                               \
    })

static inline int ops_start(const char *logdir, const struct ops_options *o) {
    return ops_start_(OPS_RECORD_ABI, logdir, o, sizeof *o);
}

static inline int ops_device_tracer_add(const struct ops_device_tracer *t) {
    return ops_device_tracer_add_(t, sizeof *t);
}

static inline bool ops_recording(void) {
    return (OPS_STATE_() & OPS_ON_BIT_) != 0;
}

static inline struct ops_scope_ ops_scope_none_(void) {
    struct ops_scope_ none = {0, 0};
    return none;
}

static inline void ops_scope_close_(struct ops_scope_ *s) {
    if (__builtin_expect(s->which != 0, 0)) ops_scope_end_(*s);
}

/* Remembers a begin that is not recorded, for its end. */
static inline void ops_begin_skip_(void) {
    if (__builtin_expect(OPS_STATE_() != 0, 0)) ops_begin_off_();
}
static inline void ops_end(void) {
    if (__builtin_expect(OPS_STATE_() != 0, 0)) ops_end_();
}
static inline void ops_step(int64_t number) {
    if (OPS_STATE_() != 0) ops_step_(number);
}
static inline void ops_epoch(int64_t number) {
    if (OPS_STATE_() != 0) ops_epoch_(number);
}
static inline void ops_step_end(void) {
    if (OPS_STATE_() != 0) ops_step_end_();
}
static inline void ops_epoch_end(void) {
    if (OPS_STATE_() != 0) ops_epoch_end_();
}
static inline void ops_flow_out(uint64_t id) {
    if (OPS_ON_()) ops_flow_(id, 1);
}
static inline void ops_flow_in(uint64_t id) {
    if (OPS_ON_()) ops_flow_(id, 0);
}
static inline void ops_free(const void *p) {
    if (OPS_ON_()) ops_free_((uint64_t)(uintptr_t)p);
}
static inline uint64_t ops_correlation(void) {
    return OPS_ON_() ? ops_correlation_() : 0;
}
static inline struct ops_async ops_async_none_(void) {
    struct ops_async none = {0, 0, 0, 0};
    return none;
}
static inline void ops_async_end(struct ops_async *a) {
    if (a == NULL || a->gen == 0) return;
    ops_async_end_(a);
    a->gen = 0;
}

#ifdef __cplusplus
}
#endif
#endif
