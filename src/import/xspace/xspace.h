/* SPDX-License-Identifier: Apache-2.0
 * Private to the XSpace importer: what its files share.
 *
 *     XSpace { planes { lines { events { stats } }  event names  stat names } }
 *
 * The names of a plane stand behind its lines, so that a plane is walked
 * twice: xplane_open() reads everything but the events (a line is one length
 * to skip), xline_read() the events. What an event needs from its name is
 * worked out once per name, what a stat means once per stat name: the loop
 * over events looks both up by number and touches no text. */
#ifndef IMPORT_XSPACE_XSPACE_H
#define IMPORT_XSPACE_XSPACE_H

#include "base/bytes.h"
#include "base/map.h"
#include "base/pb.h"
#include "base/xspace.h"
#include "model/format.h"
#include "model/trace.h"

struct import_opts;
struct span_in;

/* The stats that decide something on the way in; all others are arguments. */
enum xcode {
    XSTAT_NONE,
#define X(id, name) XSTAT_##id,
#include "import/xspace/stats.def"
#undef X
    XSTAT_COUNT,
};

#define XBIT(code) (UINT64_C(1) << (code))

/* A stat's value: the field of XStat that held it. */
enum xtype {
    XVAL_NONE,
    XVAL_DOUBLE = XSTAT_DOUBLE,
    XVAL_UINT = XSTAT_UINT64,
    XVAL_INT = XSTAT_INT64,
    XVAL_STR = XSTAT_STR,
    XVAL_BYTES = XSTAT_BYTES,
    XVAL_REF = XSTAT_REF,
};

struct xval {
    enum xtype type;
    uint64_t u;     /* number, bits of a double, or id of XVAL_REF */
    struct bytes b; /* XVAL_STR, XVAL_BYTES */
};

/* The stats of one event, by code; valid where seen has the bit. */
struct xfacts {
    uint64_t seen;
    struct xval v[XSTAT_COUNT];
};

/* Things that a name makes special beyond its kind. */
enum xrole {
    XROLE_NONE,
    XROLE_ALLOC, /* MemoryAllocation */
    XROLE_FREE,  /* MemoryDeallocation */
    XROLE_EAGER, /* EagerExecute: an op if nothing nested names it better */
    XROLE_RUNTIME_SURE, /* machinery by its name, whatever its stats say */
    XROLE_STEP,
    XROLE_EPOCH,
    XROLE_DROPPED, /* of opscope's recorder: xspace_own.c */
};

/* An event name (XEventMetadata), understood. */
struct xname {
    struct bytes raw;     /* the XEventMetadata message */
    struct bytes name;    /* of the span */
    struct bytes display; /* display_name, or empty */
    struct bytes cat;     /* hlo_category, or empty */
    uint8_t kind, flags, role;
    uint32_t stat, nstat; /* its constant stats, in xplane.consts */
};

/* A stat name (XStatMetadata). */
struct xstatname {
    struct bytes name;
    uint8_t code; /* enum xcode */
};

/* Ids to indices: small ids directly, the rest (negative, huge) by hash. */
struct xids {
    uint32_t *dense; /* index + 1, or 0 */
    size_t ndense;
    struct map sparse;
};

enum xplane_kind {
    XPLANE_HOST,
    XPLANE_GPU,
    XPLANE_XLA,
    XPLANE_OTHER,
    XPLANE_FACTS
};

/* What a line of a plane becomes. */
enum xline_kind {
    XLINE_HOST,
    XLINE_STREAM,
    XLINE_DERIVED,
    XLINE_ASYNC,
    XLINE_OVERHEAD,
    XLINE_COUNTERS,
    XLINE_OTHER,
    XLINE_HOST_ASYNC
};

struct xline {
    struct bytes body;
    int64_t id, ts_ns;
    int64_t base; /* ps in the trace that offsets count from */
    struct bytes name, display;
    enum xline_kind kind;
    bool marks;            /* its events mark steps */
    bool modules;          /* its events are runs of compiled programs */
    int64_t before;        /* of such, those that another piece reads */
    const uint8_t *events; /* the first field of body that is an event */
    const uint8_t *stop;   /* read up to here only; NULL: to the end */
};

struct xconst {
    uint8_t code;
    struct xval v;
};

struct xplane {
    struct bytes body;
    struct bytes name;
    int64_t id, ordinal, pid;
    enum xplane_kind kind;
    enum device_kind dev_kind;
    uint32_t device;   /* in x->t, or ROW_NONE */
    bool cut;          /* the file ends inside it */
    bool tf;           /* TensorFlow's executor ran in it */
    bool eager_local;  /* eager ops are named by EagerLocalExecute */
    bool has_step_num; /* some stat is called step_num */
    bool own;          /* opscope's recorder wrote it */
    bool consumes;     /* its events say who launched them: "_c" */
    bool outside;      /* processes seen from outside: source.outside */
    bool own_clock;    /* device_offset_ps counts from dev_zero, a time in */
    int64_t dev_zero;  /* the trace; else from the line's base */
    struct xname *names;
    size_t nnames, cap_names;
    struct xstatname *stats;
    size_t nstats, cap_stats;
    struct xconst *consts;
    size_t nconsts, cap_consts;
    struct xline *lines;
    size_t nlines, cap_lines;
    struct xids name_ids, stat_ids;
    struct bytes *facts;
    size_t nfacts, cap_facts; /* plane stats */
};

struct xspace {
    struct trace *t;
    uint32_t source;
    struct bytes all;
    struct arena arena; /* what dies with the import */
    struct xplane *planes;
    size_t nplanes, cap_planes;
    int64_t zero_ns;    /* line times count from here */
    int64_t shift;      /* ps to add: the trace's epoch */
    bool host_steps;    /* step_num events mark steps */
    bool own;           /* opscope's recorder wrote it */
    uint64_t hlo_steps; /* spent on what windows meet, in all modules */
    uint64_t hlo_bytes; /* of the modules so far */
    bool consumes;      /* an XLA device says who launched its programs */
    bool tail;          /* bytes stand behind a plane that is being written */
    bool oom;
};

/* A run of a compiled program on an XLA device, and who launched it: the ops
 * inside it carry no launch of their own. */
struct xrun {
    const struct xplane *plane;
    int64_t ts, end;
    uint64_t key; /* of the launching event; 0: not recorded */
};

struct xruns {
    struct xrun *v;
    size_t n, cap;
};

/* A scope's arguments have room for 73 flows. */
enum { XMORE_MAX = 128 };

/* One thread's share: fills its own trace. */
struct xpiece {
    const struct xspace *x;
    const struct xplane *plane;
    struct trace *t;
    uint32_t source, device; /* the file and the plane's device, in t */
    struct xlocal {
        str_id name; /* STR_NONE: not interned yet */
        uint32_t cat;
    } * names; /* by index in plane->names: ids in t */
    size_t cap_names;
    int64_t *peaks; /* by allocator of t: the most in use so far */
    size_t npeaks, cap_peaks;
    struct xruns runs;               /* of programs, and ops with a key */
    uint64_t events;                 /* counted for the source */
    const struct import_opts *watch; /* who wants to know how far it is and
                                        may stop it, or NULL */
    const uint8_t *from, *to;        /* of which bytes */
    const uint8_t *kept;             /* read, and in memory, from here on */
    bool tells;                      /* this piece says how far it is */
    bool stopped;                    /* it is to read no more */
    bool memory;                     /* saw a memory event */
    bool python;                     /* saw a Python frame */
    bool shapes; /* saw an event that tells its shape, FLOPs or bytes */
    size_t told; /* of them, how many were told in words */
    struct xlaunch {
        uint64_t key; /* hash of what the stats hold; 0: free */
        uint32_t cat;
    } launches[512]; /* categories made lately, by key: pairs of slots */
    struct xfacts facts;
    struct {
        uint8_t code;
        uint64_t v;
    } more[XMORE_MAX]; /* flows and correlations of an event but the first */
    size_t nmore;
};

/* Reads the next field of a message whose end is the file's if cut is set: what
 * is there of the last field then comes as if it were whole. Damage elsewhere
 * is a note, and ends the message. */
bool xspace_next(struct trace *t, struct pb *r, struct pb_field *f, bool cut);

/* Reads names, stats and lines of a plane, but no events (plane.c). */
void xplane_open(struct xspace *x, struct xplane *p);
void xplane_free(struct xplane *p);
/* Turns plane stats into device figures and meta. */
void xplane_facts(struct xspace *x, struct xplane *p);
/* Keeps a plane stat as text, under its own name. */
void xplane_meta(struct xspace *x, const struct xplane *p, struct bytes name,
                 const struct xval *v);
/* Is this a piece that the end of a cut file made incomplete? */
bool xplane_torn(const struct xspace *x, const struct xplane *p,
                 struct bytes b);
/* Returns the index for an id, or MAP_NONE. */
static inline uint32_t xids_get(const struct xids *m, uint64_t id) {
    if (id < m->ndense) return m->dense[id] - 1;
    return map_get(&m->sparse, id);
}

/* Notes a field that XLine does not have, or not with this type. */
void xline_odd_field(struct trace *t, const struct pb_field *f);

/* Reads one XStat message (facts.c). Returns false if it is damaged, but what
 * could be read of it is there. */
bool xstat_read(struct bytes body, uint64_t *id, struct xval *v);
int64_t xval_int(const struct xplane *p, const struct xval *v);
double xval_num(const struct xplane *p, const struct xval *v);
struct bytes xval_text(const struct xplane *p, const struct xval *v);
/* Reads fact i of a plane. Returns the index of its stat name; MAP_NONE if the
 * fact is damaged or its name is missing. */
uint32_t xplane_fact(const struct xplane *p, size_t i, struct xval *v);
/* Returns the number that the last fact of that name tells; dflt if there is
 * no such fact. */
int64_t xplane_fact_int(const struct xplane *p, const char *name, int64_t dflt);

/* Finds what a name means where it stands (kind.c). */
void xname_classify(const struct xplane *p, struct xname *n);
/* Does this name say that TensorFlow's executor ran here? */
bool xname_is_tf(struct bytes name);
/* Is this eager op the call of a tf.function? It waits for the function's own
 * ops, which are recorded where they run. */
bool xname_is_function(struct bytes op);
enum xline_kind xline_classify(const struct xplane *p, const struct xline *l);

/* Does the same for what opscope's recorder wrote (own.c). */
void xname_own(const struct xplane *p, struct xname *n);
enum xline_kind xline_own(const struct xplane *p, const struct xline *l);
/* Return the number that tells a device of the recorder from others, and its
 * name. */
int64_t xplane_own_ordinal(const struct xplane *p);
struct bytes xplane_own_label(const struct xplane *p);
/* Reads the recorder's facts: who it was, what it could not record. */
void xplane_own_facts(struct xspace *x, struct xplane *p);
/* Settles two pieces: together they say as much in words as one would. */
void xspace_own_settle(const struct xpiece *a, const struct xpiece *b);
/* Says what is left to say of such a file when all of it was read. */
void xspace_own_done(struct xspace *x);

/* Puts a compiled program (HloProto) into the trace's table (hlo.c); label is
 * what spans call it. Damage loses what is damaged. */
void xspace_hlo(struct xspace *x, struct bytes label, uint64_t program,
                struct bytes proto);

/* Keeps what an event of an XLA device says of its launch, and joins ops with
 * the launches of the programs around them when all was read (runs.c). */
void xruns_add(struct xpiece *w, const struct xline *l, int64_t ts,
               int64_t dur);
void xruns_link(struct xspace *x, struct xruns *runs);
/* Returns the key of an event that launches (of: XSTAT_PRODUCER) or was
 * launched (XSTAT_CONSUMER); 0 if it does not say. */
uint64_t xruns_key(const struct xpiece *w, enum xcode type, enum xcode of);

/* Finds when zero is (clock.c). Sets zero and shift of x, the base of every
 * line and the zero of devices' own clocks. */
void xspace_clock(struct xspace *x);

/* Reads the events of a line into the piece's trace (line.c). */
void xline_read(struct xpiece *w, const struct xline *l);

/* An event with its facts, which becomes rows (emit.c). */
struct xevent {
    int64_t ts, dur;
    bool count; /* it stands for several: a sum, with no start */
    bool timed; /* a duration is given, be it 0 */
    str_id name;
    uint32_t cat;
    uint64_t args;
    size_t args_n;
};

/* Where the events of a line go; made when the first one comes. */
struct xtracks {
    uint32_t main, python, async; /* or ROW_NONE: not yet made */
    int64_t marks; /* markers so far: their number where none is given */
};
void xtracks_open(struct xpiece *w, const struct xline *l, struct xtracks *tr);
void xevent_emit(struct xpiece *w, const struct xline *l, struct xtracks *tr,
                 const struct xname *n, const struct xevent *e);
/* Emit the parts that all kinds of files have. */
void xevent_memory(struct xpiece *w, const struct xtracks *tr, bool alloc,
                   const struct xevent *e);
/* Does the same for an event of opscope's recorder; s is what xevent_emit()
 * made of it. */
void xevent_own(struct xpiece *w, const struct xline *l, struct xtracks *tr,
                const struct xname *n, const struct xevent *e,
                struct span_in *s);
static inline bool fact_has(const struct xpiece *w, enum xcode c) {
    return w->facts.seen & XBIT(c);
}
int64_t fact_int(const struct xpiece *w, enum xcode c, int64_t dflt);
struct bytes fact_text(const struct xpiece *w, enum xcode c);

/* Gives an event's stats, then those of its name; "long_name" where the span
 * shows a shorter one, "num_occurrences" where it stands for several. A row's
 * args are where the length of the XEvent stands. */
void xspace_args_each(const struct trace *t, row_id row, args_each_fn *each,
                      void *ctx);

/* Returns where the names of an XSpace stand, for source.index, so that an
 * event's arguments cost a few binary searches; NULL if out of memory.
 * O(names). */
struct xspace_index *xspace_index_new(struct bytes all);

#endif
