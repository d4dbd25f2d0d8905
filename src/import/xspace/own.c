/* SPDX-License-Identifier: Apache-2.0
 * What opscope's own recorder wrote (docs/recorder/format.md): known by the
 * plane fact opscope_version, or by names that carry opscope_kind. Here nothing
 * is guessed from names: the program said what each scope is. */
#include "import/xspace/xspace.h"

#include "base/facts.h"
#include "base/hash.h"
#include "base/text/cut.h"
#include "base/xspace.h"
#include "model/trace_fill.h"
#include <inttypes.h>
#include <stdio.h>

/* enum ops_kind of record.h, as written; on a device: enum ops_device_class.
 * The category is how analyses know it: see name_class.h. */
static const struct own_kind {
    const char *word;
    uint8_t host, device; /* enum span_kind */
    const char *cat;
} kinds[] = {
    {"op", SPAN_OP, SPAN_KERNEL, ""},
    {"input", SPAN_OP, SPAN_KERNEL, "ops_input"},
    {"comm", SPAN_OP, SPAN_KERNEL, "ops_comm"},
    {"copy", SPAN_OP, SPAN_COPY, "ops_copy"},
    {"wait", SPAN_API, SPAN_SYNC, "ops_wait"},
    {"phase", SPAN_ANNOTATION, SPAN_OTHER, "ops_phase"},
    {"kernel", SPAN_OP, SPAN_KERNEL, ""},
    {"set", SPAN_OP, SPAN_MEMSET, ""},
    {"sync", SPAN_API, SPAN_SYNC, ""},
};

static const struct own_kind *kind_named(struct bytes word) {
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (bytes_eq(word, kinds[k].word, strlen(kinds[k].word)))
            return &kinds[k];
    return NULL;
}

/* Returns the role of a name that is no scope of the program: such a name has
 * no kind of its own. */
static uint8_t role_of(struct bytes name) {
    static const struct {
        const char *name;
        uint8_t role;
    } roles[] = {
        {"step", XROLE_STEP},
        {"epoch", XROLE_EPOCH},
        {"MemoryAllocation", XROLE_ALLOC},
        {"MemoryDeallocation", XROLE_FREE},
        {"opscope: dropped", XROLE_DROPPED},
    };
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (bytes_eq(name, roles[i].name, strlen(roles[i].name)))
            return roles[i].role;
    return XROLE_NONE;
}

/* Is it a function of Python, as opscope's Python side names them:
 * "$file.py:12 function"? A file's name may have blanks: "<frozen abc>". */
static bool is_frame(struct bytes b) {
    if (!BYTES_STARTS(b, "$")) return false;
    const uint8_t *space = memrchr(b.p, ' ', b.n), *at = space;
    while (at != NULL && at > b.p + 1 && at[-1] >= '0' && at[-1] <= '9') at--;
    return at != NULL && at < space && at > b.p + 1 && at[-1] == ':';
}

void xname_own(const struct xplane *p, struct xname *n) {
    const struct own_kind *k = NULL;
    bool device = p->kind != XPLANE_HOST && p->kind != XPLANE_FACTS;
    for (uint32_t i = n->stat + n->nstat; i-- > n->stat;)
        if (p->consts[i].code == XSTAT_OPSCOPE_KIND)
            k = kind_named(xval_text(p, &p->consts[i].v)); /* the first holds */
    n->kind = device ? SPAN_KERNEL : SPAN_OP;
    if (!device && is_frame(n->name)) {
        n->kind = SPAN_PYTHON;
        return;
    }
    if (k == NULL) {
        n->role = device ? XROLE_NONE : role_of(n->name);
        return;
    }
    n->kind = device ? k->device : k->host;
    /* on a device the span's kind says all but this */
    if (!device || strcmp(k->cat, "ops_comm") == 0) n->cat = bytes_of(k->cat);
}

enum xline_kind xline_own(const struct xplane *p, const struct xline *l) {
    if (BYTES_IS(l->name, XSPACE_COUNTERS_LINE)) return XLINE_COUNTERS;
    if (p->kind != XPLANE_HOST) return XLINE_STREAM;
    /* a thread's line is called "<name>/<tid>" */
    if (BYTES_IS(l->name, "async") ||
        (BYTES_STARTS(l->name, "async ") && !memchr(l->name.p, '/', l->name.n)))
        return XLINE_HOST_ASYNC;
    return XLINE_HOST;
}

struct bytes xplane_own_label(const struct xplane *p) {
    static const char prefix[] = "/device:CUSTOM:";
    struct bytes b = p->name;
    if (!BYTES_STARTS(b, "/device:CUSTOM:")) return (struct bytes){b.p, 0};
    return (struct bytes){b.p + sizeof prefix - 1, b.n - sizeof prefix + 1};
}

int64_t xplane_own_ordinal(const struct xplane *p) {
    struct bytes b = xplane_own_label(p);
    size_t at = b.n;
    int64_t v = 0;
    if (p->id > 0) return p->id; /* tells "npu 0" from "dsp 0" */
    while (at > 0 && b.n - at < 9 && b.p[at - 1] >= '0' && b.p[at - 1] <= '9')
        at--;
    for (; at < b.n; at++) v = v * 10 + (b.p[at] - '0');
    return v;
}

/* ---- facts ---- */

/* Returns a number of ranks; -1 if there is no such number. */
static int64_t rank_fact(const struct xplane *p, const struct xval *v) {
    int64_t i = xval_int(p, v);
    return i >= 0 && i < INT64_C(1) << 31 ? i : -1;
}

/* Returns what the user can do about a loss; NULL if there is nothing. */
static const char *advice_on(struct bytes why) {
    static const struct {
        const char *why, *advice;
    } list[] = {
        {LOSS_RING_FULL, "larger rings (ops_options.ring_bytes, memory_bytes) "
                         "or fewer steps (.steps) avoid it"},
        {LOSS_NO_MEMORY, "more memory for rings (ops_options.memory_bytes, "
                         "room in /dev/shm) or fewer steps (.steps) avoid it"},
        {LOSS_NO_RING, "more memory for rings (ops_options.memory_bytes, room "
                       "in /dev/shm) or fewer threads at a time avoid it"},
        {LOSS_REFUSED, "a larger ops_options.memory_bytes, or fewer processes "
                       "at a time, avoids it"},
        {LOSS_PROCESSES, "room in /dev/shm and on the disk of the log folder "
                         "avoids it"},
        {LOSS_TOO_DEEP, "a thread may have 256 scopes open"},
        {LOSS_ARGS, "the open scopes of a thread have room for 1,024 bytes of "
                    "arguments"},
        {LOSS_UNMATCHED, "a thread may end only what it began, and once"},
        {LOSS_NAMES, "names that are few and fixed avoid it; what varies goes "
                     "into an argument"},
        {LOSS_NAMES_MEMORY, "more memory for rings "
                            "(ops_options.memory_bytes, room in /dev/shm) "
                            "avoids it"},
        {LOSS_WRITE, "room on the disk of the log folder avoids it"},
        {LOSS_SCALARS, "room on the disk of the log folder avoids it"},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (bytes_ends(why, list[i].why)) return list[i].advice;
    return NULL;
}

/* Keeps the words of a loss, with what the user can do about it. */
static void put_loss(struct trace *t, uint32_t source, const char *key,
                     const char *what) {
    const char *advice = advice_on(bytes_of(what));
    char text[512];
    snprintf(text, sizeof text, "%s%s%s", what, advice != NULL ? "; " : "",
             advice != NULL ? advice : "");
    trace_meta(t, source, key, bytes_of(text));
}

static void own_loss(struct xspace *x, const struct xplane *p,
                     const struct xval *v) {
    struct bytes b = xval_text(p, v);
    char text[300];
    cut_fmt(text, sizeof text, "%.*s", CUT_BYTES(299, b));
    trace_note(x->t, NOTE_SOURCE_WARNING, 1);
    put_loss(x->t, x->source, FACT_LOSS, text);
}

static void own_fact(struct xspace *x, struct xplane *p, struct bytes name,
                     const struct xval *v) {
    struct source *s = &x->t->sources[x->source];
    if (BYTES_IS(name, FACT_PROCESS_ID)) {
        s->pid = xval_int(p, v);
        if (p->kind == XPLANE_HOST) p->pid = s->pid;
    } else if (BYTES_IS(name, FACT_FAMILY)) {
        s->family = xval_int(p, v);
    } else if (BYTES_IS(name, FACT_RANK)) {
        s->rank = rank_fact(p, v);
    } else if (BYTES_IS(name, FACT_WORLD_SIZE)) {
        s->world_size = rank_fact(p, v);
    } else if (BYTES_IS(name, FACT_HOST_NAME)) {
        s->host = trace_str(x->t, xval_text(p, v));
    } else if (p->device != ROW_NONE && BYTES_IS(name, "model")) {
        x->t->devices[p->device].model = trace_str(x->t, xval_text(p, v));
    } else if (p->device != ROW_NONE && BYTES_IS(name, "memory_bytes")) {
        int64_t bytes = xval_int(p, v);
        x->t->devices[p->device].memory_bytes = bytes > 0 ? bytes : 0;
    } else if (BYTES_IS(name, FACT_LOSS)) {
        own_loss(x, p, v);
    } else if (p->device == ROW_NONE || !BYTES_IS(name, FACT_START_UNIX_NS)) {
        xplane_meta(x, p, name, v);
    }
}

static uint64_t name_hash(struct bytes name) {
    return hash_bytes(name.p, name.n);
}

/* Of two facts of one name the last holds: they are told again as they grow.
 * Losses are each their own. */
void xplane_own_facts(struct xspace *x, struct xplane *p) {
    struct xval v;
    struct map last = {0};
    for (size_t i = 0; i < p->nfacts; i++) {
        uint32_t s = xplane_fact(p, i, &v);
        if (s != MAP_NONE &&
            !map_set(&last, name_hash(p->stats[s].name), (uint32_t)i))
            x->oom = true;
    }
    for (size_t i = 0; i < p->nfacts; i++) {
        uint32_t s = xplane_fact(p, i, &v);
        struct bytes name = s == MAP_NONE ? bytes_of("") : p->stats[s].name;
        if (s == MAP_NONE && !xplane_torn(x, p, p->facts[i]))
            trace_note(x->t, NOTE_BAD_FIELD, 1);
        if (s != MAP_NONE &&
            (map_get(&last, name_hash(name)) == i || BYTES_IS(name, FACT_LOSS)))
            own_fact(x, p, name, &v);
    }
    map_free(&last);
}

/* ---- events ---- */

enum { DROPS_TOLD = 64 };

/* Notes a loss that the recorder noted on the thread where it happened. */
static void own_dropped(struct xpiece *w, const struct xline *l) {
    int64_t n = fact_int(w, XSTAT_DROP_COUNT, 1);
    struct bytes why = fact_text(w, XSTAT_DROP_WHY);
    struct bytes thread = l->display.n > 0 ? l->display : l->name;
    char text[256];
    if (n <= 0) return;
    trace_note(w->t, NOTE_RECORDER_DROPPED, (uint64_t)n);
    if (w->told++ >= DROPS_TOLD) return;
    cut_fmt(text, sizeof text, "%" PRId64 " on thread %.*s: %.*s", n,
            CUT_BYTES(64, thread), CUT_BYTES(120, why));
    put_loss(w->t, w->source, "dropped", text);
}

void xspace_own_settle(const struct xpiece *a, const struct xpiece *b) {
    size_t room = a->told < DROPS_TOLD ? DROPS_TOLD - a->told : 0;
    /* a piece's trace has no other meta */
    if (b->t->nmeta > room) b->t->nmeta = room;
}

/* Adds the arrows and launches that one stat of this scope tells. */
static void own_join(struct xpiece *w, uint8_t code, uint64_t v, row_id row,
                     bool host) {
    const struct spans *s = &w->t->spans;
    enum { IN = 1, OUT = 2, BOTH = 3 };
    if (code == XSTAT_CORRELATION) {
        if (v == 0) return;
        if (host) trace_link_host(w->t, w->source, v, row);
        else trace_link_device(w->t, w->source, v, row);
        return;
    }
    /* An arrow leaves its scope before it ends and comes in before the other
     * one does: this order holds wherever in the scopes the calls stood. */
    uint64_t id = v >> 2;
    if ((v & BOTH) == BOTH)
        trace_flow_row(w->t, id, row, s->ts[row] + s->dur[row], 't');
    else if ((v & BOTH) == OUT) trace_flow_row(w->t, id, row, s->ts[row], 's');
    else if ((v & BOTH) == IN)
        trace_flow_row(w->t, id, row, s->ts[row] + s->dur[row], 'i');
}

/* Does the event have such an id? The recorder's ids are unsigned; an argument
 * of the program that happens to have the same name is not. */
static bool has_id(const struct xpiece *w, enum xcode c) {
    return fact_has(w, c) && w->facts.v[c].type == XVAL_UINT;
}

/* Takes marks of steps and epochs. */
static void own_mark(struct xpiece *w, const struct xname *n,
                     struct span_in *s) {
    if (n->role == XROLE_STEP && fact_has(w, XSTAT_STEP_NUM)) {
        s->kind = SPAN_ANNOTATION;
        s->flags |= SPAN_STEPMARK;
    } else if (n->role == XROLE_EPOCH && fact_has(w, XSTAT_EPOCH_NUM)) {
        char text[40]; /* "epoch 3": steps are added up by this name */
        snprintf(text, sizeof text, "epoch %" PRId64,
                 fact_int(w, XSTAT_EPOCH_NUM, 0));
        s->kind = SPAN_ANNOTATION;
        s->cat = trace_cat(w->t, bytes_of("ops_epoch"));
        s->name = trace_str(w->t, bytes_of(text));
    }
}

void xevent_own(struct xpiece *w, const struct xline *l, struct xtracks *tr,
                const struct xname *n, const struct xevent *e,
                struct span_in *s) {
    const uint64_t cost = XBIT(XSTAT_FLOPS) | XBIT(XSTAT_MOVED_BYTES) |
                          XBIT(XSTAT_SHAPE);
    bool host = l->kind == XLINE_HOST || l->kind == XLINE_HOST_ASYNC;
    if (n->role == XROLE_ALLOC || n->role == XROLE_FREE) {
        xevent_memory(w, tr, n->role == XROLE_ALLOC, e);
        return;
    }
    if (n->role == XROLE_DROPPED) {
        own_dropped(w, l);
        return;
    }
    own_mark(w, n, s);
    if (l->kind == XLINE_HOST_ASYNC) s->flags |= SPAN_ASYNC;
    if (!e->timed && host && !(s->flags & SPAN_STEPMARK))
        s->flags |= SPAN_INSTANT;
    if (!host) { /* a name on a device has a kind; an event may know better */
        const struct own_kind *k = kind_named(fact_text(w, XSTAT_OPSCOPE_KIND));
        s->kind = k != NULL ? k->device : n->kind;
    }
    if (fact_int(w, XSTAT_UNFINISHED, 0) != 0) {
        s->flags |= SPAN_OPEN;
        trace_note(w->t, NOTE_UNFINISHED, 1);
    }
    if (w->facts.seen & cost) {
        s->flags |= SPAN_COSTED;
        w->shapes = true;
    }
    row_id row = trace_span(w->t, s);
    if (row == ROW_NONE) return;
    if (s->flags & SPAN_STEPMARK)
        trace_step_hint(w->t, row, fact_int(w, XSTAT_STEP_NUM, 0));
    /* the flow of an asynchronous span only tells other readers what it is */
    bool flow = l->kind != XLINE_HOST_ASYNC && has_id(w, XSTAT_FLOW);
    if (flow) own_join(w, XSTAT_FLOW, w->facts.v[XSTAT_FLOW].u, row, host);
    if (has_id(w, XSTAT_CORRELATION))
        own_join(w, XSTAT_CORRELATION, w->facts.v[XSTAT_CORRELATION].u, row,
                 host);
    for (size_t i = 0; i < w->nmore; i++)
        if (w->more[i].code == XSTAT_CORRELATION || flow)
            own_join(w, w->more[i].code, w->more[i].v, row, host);
}

/* Notes losses that no thread's line tells of; and whether the recording was
 * closed. */
void xspace_own_done(struct xspace *x) {
    bool closed = false, host = false, rescued = false;
    for (size_t i = 0; i < x->nplanes; i++) {
        const struct xplane *p = &x->planes[i];
        if (BYTES_IS(p->name, XSPACE_ENVIRONMENT)) closed = true;
        if (!p->own) continue;
        bool is_host = p->kind == XPLANE_HOST;
        host |= is_host;
        rescued |= is_host && xplane_fact_int(p, FACT_UNCLOSED, 0) > 0;
        int64_t points = xplane_fact_int(p, FACT_SCALARS_LOST, 0);
        if (points > 0) trace_note(x->t, NOTE_SCALARS_LOST, (uint64_t)points);
        int64_t processes = xplane_fact_int(p, FACT_UNRECORDED, 0);
        if (processes > 0)
            trace_note(x->t, NOTE_PROCESS_UNRECORDED, (uint64_t)processes);
        int64_t lost = xplane_fact_int(p, FACT_DROPPED, 0);
        /* these come beside those of which lines of threads tell, where it
         * happened */
        if (lost > 0) trace_note(x->t, NOTE_RECORDER_DROPPED, (uint64_t)lost);
    }
    /* files of devices stand beside the host's, which tells it for them */
    if (host && !closed) trace_note(x->t, NOTE_PART_OPEN, 1);
    if (host && closed && rescued) trace_note(x->t, NOTE_RESCUED, 1);
}
