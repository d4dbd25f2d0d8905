/* SPDX-License-Identifier: Apache-2.0
 * Turns of a loop without markers.
 *
 * A loop does the same in every turn: the calls between two ends of a turn are
 * the same ones, as often. So something that comes once a turn (the optimizer,
 * the end of a backward pass, the call of a compiled function; failing these
 * the rarest call that repeats) cuts the thread's calls into pieces, and the
 * pieces are compared. If they are alike, the pieces are turns. If they are
 * alike only two by two, as with two optimizers that take turns, those pairs
 * are. A piece that has all of a turn and something more is a turn, too: it
 * evaluates, or it logs.
 *
 * Nested loops look alike from inside and from outside: layers in a pass,
 * passes in an epoch. That is why a sign of the framework is needed, or a
 * sequence in which nothing at all is left over and of which it is plain that
 * it is the outer loop: it changes variables, or another loop is inside. */
#include "model/turns.h"

#include "base/array.h"
#include "base/sort.h"
#include "base/sum.h"
#include "base/vec.h"
#include "model/span_class.h"
#include "names/compiler_names.h"
#include "names/frame_name.h"
#include "names/op_names.h"
#include <stdlib.h>

enum {
    MOST_PER_TURN = 8, /* cuts that may make up one turn */
    MOST_CUTTERS = 8,  /* names that are tried as cuts */
    LEAST_TURNS = 3,   /* where a cut alone is no turn, or only calls tell */
    CALL_PERCENT = 20, /* of the loop that the calls of a region fill */
    LEAST_LAYERS = 3,  /* rounds of a loop inside of a turn */
    LACK_PERCENT = 5,  /* of a piece that another may lack */
    MORE_PERCENT = 10, /* that an equal one may have beside it */
    EXACT = 5,         /* where several pieces make a turn, so much less */
    HOLD_PERCENT = 98, /* of the turns must have all that a turn has */
};

/* The calls of one thread, in order of their starts. */
struct calls {
    row_id *row;
    uint32_t *name; /* numbered from 0 by first use */
    size_t n, nnames;
    uint32_t *often;     /* by name */
    uint8_t *says;       /* by name: enum says */
    uint32_t *ref, *now; /* by name: counts of two pieces, zero between uses */
};

/* What a name says of the piece that it stands in. */
enum says {
    SAYS_TRAINS = 1,    /* part of a backward pass */
    SAYS_UPDATES = 2,   /* changes a variable */
    SAYS_COMPILED = 4,  /* calls a compiled function */
    SAYS_EVALUATES = 8, /* somebody named it so */
    SAYS_AROUND = 16,   /* is such a call, or a region around one */
};

/* Pieces of the calls: piece i ends before call end[i]. */
struct cuts {
    size_t *end;
    size_t n, cap;
    size_t from; /* where the first piece begins */
};

static void calls_free(struct calls *c) {
    free(c->row);
    free(c->name);
    free(c->often);
    free(c->says);
    free(c->ref);
    free(c->now);
}

static bool is_call(const struct trace *t, row_id r) {
    const struct spans *s = &t->spans;
    uint8_t k = s->kind[r];
    return !(s->flags[r] & (SPAN_INSTANT | SPAN_DERIVED | SPAN_ASYNC)) &&
           k != SPAN_PYTHON && k != SPAN_OVERHEAD && !span_is_step_mark(t, r) &&
           !name_is_housekeeping(strs_bytes(&t->strs, s->name[r]));
}

static uint8_t says_of(const struct trace *t, row_id r) {
    struct bytes name = strs_bytes(&t->strs, t->spans.name[r]);
    uint8_t says = 0;
    if (span_class(t, r) & CLASS_BACKWARD) says |= SAYS_TRAINS;
    if (op_is_update(name)) says |= SAYS_UPDATES;
    if (name_is_compiled_call(name)) says |= SAYS_COMPILED;
    if (name_is_evaluation(name)) says |= SAYS_EVALUATES;
    return says;
}

/* Marks compiled functions and the regions around their calls. */
static void mark_around(const struct trace *t, struct calls *c) {
    int64_t next = INT64_MAX; /* the start of the next such call */
    for (size_t i = c->n; i-- > 0;) {
        row_id r = c->row[i];
        uint8_t *says = &c->says[c->name[i]];
        if (*says & SAYS_COMPILED) next = t->spans.ts[r];
        if (span_end(t, r) > next) *says |= SAYS_AROUND;
    }
}

/* Lists the calls of a track. What a runtime does inside of the call of a
 * compiled function is its own affair, and differs from call to call. Returns
 * false if out of memory. */
static bool calls_list(const struct trace *t, const struct track *tr,
                       struct calls *c) {
    size_t rows = tr->end - tr->first, texts = t->strs.n + 1;
    uint32_t *numbers = vec_alloc(texts, sizeof *numbers); /* by text */
    *c = (struct calls){.row = vec_alloc(rows + 1, sizeof *c->row),
                        .name = vec_alloc(rows + 1, sizeof *c->name),
                        .often = vec_alloc(rows + 1, sizeof *c->often),
                        .says = vec_alloc(rows + 1, sizeof *c->says)};
    bool ok = numbers != NULL && c->row != NULL && c->name != NULL &&
              c->often != NULL && c->says != NULL;
    if (ok) memset(numbers, 0xff, texts * sizeof *numbers); /* all ROW_NONE */
    int64_t inside = INT64_MIN; /* the end of such a call */
    for (row_id r = tr->first; ok && r < tr->end; r++) {
        if (!is_call(t, r) || t->spans.ts[r] < inside) continue;
        if (name_is_compiled_call(strs_bytes(&t->strs, t->spans.name[r])))
            inside = span_end(t, r);
        uint32_t *number = &numbers[t->spans.name[r]];
        if (*number == ROW_NONE) {
            *number = (uint32_t)c->nnames;
            c->says[c->nnames] = says_of(t, r);
            c->often[c->nnames++] = 0;
        }
        c->often[*number]++;
        c->name[c->n] = *number;
        c->row[c->n++] = r;
    }
    free(numbers);
    c->ref = calloc(c->nnames + 1, sizeof *c->ref);
    c->now = calloc(c->nnames + 1, sizeof *c->now);
    ok = ok && c->ref != NULL && c->now != NULL;
    if (ok) mark_around(t, c);
    return ok;
}

static bool cut_at(struct cuts *k, size_t end) {
    if (k->n > 0 && k->end[k->n - 1] >= end) return true;
    if (!VEC_ROOM(k->end, k->n, k->cap)) return false;
    k->end[k->n++] = end;
    return true;
}

/* Returns the first call that starts at ts or later, from call `at` on. */
static size_t call_after(const struct trace *t, const struct calls *c,
                         size_t at, int64_t ts) {
    size_t i;
    BOUND(i, at, c->n, t->spans.ts[c->row[i]] < ts);
    return i;
}

/* ---- are the pieces alike? ---- */

/* Pieces [first, ...) of per cuts each; the last may be followed by a rest. */
struct piece {
    size_t from, to; /* calls */
};

static struct piece piece_of(const struct cuts *k, size_t per, size_t i) {
    size_t last = i * per + per - 1;
    return (struct piece){i == 0 ? k->from : k->end[i * per - 1], k->end[last]};
}

static void count_into(const struct calls *c, struct piece p, uint32_t *counts,
                       int add) {
    for (size_t i = p.from; i < p.to; i++) counts[c->name[i]] += (uint32_t)add;
}

enum verdict { NO, MAYBE, YES };

/* What was found out about pieces of `per` cuts each. */
struct finding {
    enum verdict verdict;
    size_t per, first, n; /* the turns: pieces [first, n) */
    bool to_end;          /* the last has what follows the last cut, too */
    bool loose;           /* the first makes what later ones find: it may
                             differ a little */
    bool cold;            /* the first is one, if not quite like the others */
    bool by_names;        /* how often a call comes does not count */
    bool strange;         /* what some have beyond the others is no evaluation
                             and no line that logs: it trains, too, or calls
                             another compiled function */
    double alike;
};

/* How a piece compares with the one whose counts are in c->ref. */
struct likeness {
    bool holds; /* it has what that one has, and perhaps more */
    bool part;  /* that one has what it has */
    bool equal; /* hardly more */
    bool same_size;
    uint8_t more; /* what that which it has beyond that one says */
};

/* Compares two stretches of calls, taken together, with ref: what is called and
 * how often, or only what. */
static struct likeness compare(struct calls *c, struct piece p,
                               struct piece rest, struct piece ref,
                               const struct finding *f) {
    size_t common = 0, names = 0, of_ref = 0, more = 0;
    size_t size = p.to - p.from + rest.to - rest.from;
    size_t want = ref.to - ref.from;
    uint8_t says = 0; /* what is beyond ref */
    struct piece both[] = {p, rest};
    for (int k = 0; k < 2; k++) count_into(c, both[k], c->now, 1);
    for (int k = 0; k < 2; k++)
        for (size_t i = both[k].from; i < both[k].to; i++) {
            uint32_t n = c->name[i];
            if (c->now[n] == 0) continue; /* was looked at */
            common += c->now[n] < c->ref[n] ? c->now[n] : c->ref[n];
            names += c->ref[n] > 0;
            more += c->ref[n] == 0;
            if (c->now[n] > c->ref[n]) says |= c->says[n];
            c->now[n] = 0;
        }
    for (size_t i = ref.from; i < ref.to; i++) {
        of_ref += c->now[c->name[i]] == 0;
        c->now[c->name[i]] = 1;
    }
    for (size_t i = ref.from; i < ref.to; i++) c->now[c->name[i]] = 0;
    bool part = (size - common) * 100 <= size * LACK_PERCENT;
    bool same_size = size * 100 <= want * (100 + MORE_PERCENT) &&
                     want * 100 <= size * (100 + MORE_PERCENT);
    if (f->by_names)
        return (struct likeness){.holds = names == of_ref,
                                 .part = part,
                                 .equal = more == 0,
                                 .same_size = same_size};
    /* one piece of several that is another must not pass for a little */
    size_t strict = f->per > 1 ? 100 * EXACT * f->per : 100;
    return (struct likeness){
        .holds = (want - common) * strict <= want * LACK_PERCENT,
        .part = part,
        .equal = size <= want || (size - want) * strict <= want * MORE_PERCENT,
        .same_size = same_size,
        .more = says,
    };
}

/* Finds the piece that most are like: the one of middle size. */
static bool typical(const struct cuts *k, size_t per, size_t n, size_t *at) {
    struct sort_key *v = vec_alloc(n, sizeof *v);
    if (v == NULL) return false;
    for (size_t i = 0; i < n; i++) {
        struct piece p = piece_of(k, per, i);
        v[i] = (struct sort_key){p.to - p.from, i, (uint32_t)i};
    }
    bool ok = sort_keys(v, n);
    *at = v[(n - 1) / 2].row;
    free(v);
    return ok;
}

/* Looks at the two ends. The window may begin or end within a turn: what is
 * there of it is none. Or it begins with a turn, and what the first piece lacks
 * stands behind the last cut: a line that logs after the optimizer's call. */
static void judge_ends(struct calls *c, const struct cuts *k, struct piece ref,
                       struct finding *f) {
    struct piece none = {0, 0}, first = piece_of(k, f->per, 0);
    struct piece rest = {k->end[f->per * f->n - 1], c->n};
    struct finding loose = *f;
    if (f->loose) loose.per = 1;
    struct likeness l = compare(c, first, none, ref, &loose);
    f->to_end = !l.holds && compare(c, first, rest, ref, &loose).holds;
    f->cold = l.holds || f->to_end;
    f->first = !f->cold && l.part;
    struct piece last = piece_of(k, f->per, f->n - 1);
    l = compare(c, last, f->to_end ? rest : none, ref, f);
    f->n -= !l.holds && l.part;
}

/* Do the parts of turn i lie as those of turn `at`? None may be shorter: a
 * long one in another place is another period. */
static bool parts_fit(const struct cuts *k, size_t per, size_t i, size_t at) {
    for (size_t j = 0; j < per; j++) {
        struct piece p = piece_of(k, 1, i * per + j);
        struct piece ref = piece_of(k, 1, at * per + j);
        if ((p.to - p.from) * 100 < (ref.to - ref.from) * (100 - MORE_PERCENT))
            return false;
    }
    return true;
}

/* Are pieces of `per` cuts turns? Returns false if out of memory. */
static bool judge(struct calls *c, const struct cuts *k, size_t per,
                  struct finding *f) {
    size_t n = k->n / per, at, holds = 0, equal = 0, same_size = 0;
    *f = (struct finding){.per = per,
                          .n = n,
                          .loose = f->loose,
                          .by_names = f->by_names};
    if (n < 2 || (per > 1 && n < LEAST_TURNS)) return true;
    if (!typical(k, per, n, &at)) return false;
    struct piece ref = piece_of(k, per, at);
    count_into(c, ref, c->ref, 1);
    judge_ends(c, k, ref, f);
    for (size_t i = f->first; i < f->n; i++) {
        struct piece none = {0, 0};
        struct likeness l = compare(c, piece_of(k, per, i), none, ref, f);
        holds += l.holds || (i == 0 && f->cold);
        equal += (l.holds && l.equal) || (i == 0 && f->to_end);
        same_size += l.same_size;
        if (i > 0 && per > 1 && !parts_fit(k, per, i, at)) f->strange = true;
        if (i == 0 || l.equal) continue;
        f->strange |= (l.more & SAYS_TRAINS) != 0 ||
                      (l.more & (SAYS_COMPILED | SAYS_EVALUATES)) ==
                          SAYS_COMPILED;
    }
    count_into(c, ref, c->ref, -1);
    if (f->n < f->first + 2) return true;
    size_t turns = f->n - f->first;
    f->alike = (double)equal / (double)turns;
    if (holds * 100 < turns * HOLD_PERCENT || f->strange) return true;
    /* where most are of one length, another length is another thing */
    if (f->by_names && same_size * 2 > turns) return true;
    f->verdict = equal * 2 > turns ? YES : MAYBE;
    return true;
}

/* Finds the smallest number of cuts that make a turn. Turns of different
 * lengths, as of sentences, at least call the same. */
static bool judge_any(struct calls *c, const struct cuts *k,
                      struct finding *f) {
    for (int loose = 0; loose < 2; loose++)
        for (size_t per = 1; per <= MOST_PER_TURN; per++) {
            *f = (struct finding){.loose = loose};
            if (!judge(c, k, per, f)) return false;
            if (f->verdict != NO) return true;
        }
    *f = (struct finding){.by_names = true};
    return judge(c, k, 1, f);
}

/* ---- what may end a turn ---- */

/* Cuts behind each call of the optimizer. */
static bool cut_by_optimizer(const struct trace *t, const struct calls *c,
                             struct cuts *k) {
    int64_t end = INT64_MIN;
    for (size_t i = 0; i < c->n; i++) {
        row_id r = c->row[i];
        if (!(span_class(t, r) & CLASS_OPTIMIZER) || t->spans.ts[r] < end ||
            name_is_zero_grad(strs_bytes(&t->strs, t->spans.name[r])))
            continue;
        end = span_end(t, r);
        if (!cut_at(k, call_after(t, c, i, end))) return false;
    }
    return true;
}

/* Cuts behind each backward pass: a run of outermost calls that are
 * autograd's. */
static bool cut_by_backward(const struct trace *t, const struct calls *c,
                            struct cuts *k) {
    int64_t end = INT64_MIN;
    bool backward = false;
    for (size_t i = 0; i < c->n; i++) {
        row_id r = c->row[i];
        if (t->spans.ts[r] < end) continue;
        end = span_end(t, r);
        bool is = span_class(t, r) & CLASS_BACKWARD;
        if (backward && !is && !cut_at(k, i)) return false;
        backward = is;
    }
    return !backward || cut_at(k, c->n);
}

/* Is it the call of a compiled function, or a region that somebody named? */
static bool may_be_turn(const struct trace *t, row_id r) {
    uint8_t kind = t->spans.kind[r];
    if (kind != SPAN_ANNOTATION && kind != SPAN_RUNTIME) return false;
    enum compile_class class = compile_classify(
        strs_bytes(&t->strs, t->spans.name[r]));
    if (class == CC_JIT) return true;
    return kind == SPAN_ANNOTATION && class == CC_NONE &&
           !(span_class(t, r) & (CLASS_INPUT | CLASS_OPTIMIZER | CLASS_EPOCH |
                                 CLASS_COMM | CLASS_BACKWARD | CLASS_SYNC));
}

/* The calls of a function, by name; those inside of another of the same name
 * are left out. */
struct function {
    int64_t from, end, time;
};

/* Does the thread call compiled functions? */
static bool calls_compiled(const struct calls *c) {
    for (size_t i = 0; i < c->nnames; i++)
        if (c->says[i] & SAYS_COMPILED) return true;
    return false;
}

/* Returns the name of the function or region that takes most of the thread's
 * time, of those that are called more than once; ROW_NONE if there is none.
 * Where functions are compiled, it is one of these or a region around one: it
 * may only put its work elsewhere. Any other must fill a good part of the time
 * from its first to its last call. */
static uint32_t longest_function(const struct trace *t, const struct calls *c,
                                 struct function *of) {
    uint32_t best = ROW_NONE;
    int64_t most = 0;
    bool compiled = calls_compiled(c);
    for (size_t i = 0; i < c->n; i++) {
        row_id r = c->row[i];
        struct function *f = &of[c->name[i]];
        if (!may_be_turn(t, r) || (f->time > 0 && t->spans.ts[r] < f->end))
            continue;
        if (f->time == 0) f->from = t->spans.ts[r];
        f->end = span_end(t, r);
        sat_inc(&f->time, t->spans.dur[r]);
    }
    for (uint32_t n = 0; n < c->nnames; n++) {
        const struct function *f = &of[n];
        bool fits = compiled
                        ? c->says[n] & SAYS_AROUND
                        : f->time >= (f->end - f->from) / 100 * CALL_PERCENT;
        if (c->often[n] < 2 || f->time <= most || !fits) continue;
        most = f->time;
        best = n;
    }
    return best;
}

/* Ends the last piece, where each begins with a call that tells it: the last
 * such call ends before call `behind`. What follows the loop is none of it: the
 * last piece is no longer than the one before. Where it is shorter, the calls
 * that it lacks stand before those that tell: all cuts are so much earlier. */
static bool cut_last(const struct calls *c, struct cuts *k, size_t behind) {
    if (k->n == 0) return true;
    size_t last = k->end[k->n - 1];
    size_t size = last - (k->n > 1 ? k->end[k->n - 2] : k->from);
    size_t left = c->n - last;
    if (left > size)
        return cut_at(k, last + size > behind ? last + size : behind);
    size_t lacks = size - left;
    if (lacks <= k->from) {
        k->from -= lacks;
        for (size_t i = 0; i < k->n; i++) k->end[i] -= lacks;
    }
    return cut_at(k, c->n);
}

/* Cuts before each call of the function that takes most of the thread's
 * time. */
static bool cut_by_function(const struct trace *t, const struct calls *c,
                            struct cuts *k) {
    struct function *of = calloc(c->nnames + 1, sizeof *of);
    if (of == NULL) return false;
    uint32_t best = longest_function(t, c, of);
    int64_t end = INT64_MIN;
    size_t last = 0;
    bool ok = true;
    free(of);
    for (size_t i = 0; ok && best != ROW_NONE && i < c->n; i++) {
        row_id r = c->row[i];
        if (c->name[i] != best || t->spans.ts[r] < end || !may_be_turn(t, r))
            continue;
        if (end == INT64_MIN) k->from = i;
        else ok = cut_at(k, i);
        last = i;
        end = span_end(t, r);
    }
    return ok && cut_last(c, k, call_after(t, c, last, end));
}

/* Do several functions take turns, each once? Where one comes several times in
 * a turn of theirs, it may be the step, and another what is done now and
 * then. */
static bool take_turns(struct calls *c, const struct cuts *k,
                       const struct finding *f) {
    struct piece p = piece_of(k, f->per, f->first);
    bool once = true;
    if (f->per == 1) return true;
    count_into(c, p, c->now, 1);
    for (size_t i = p.from; i < p.to; i++)
        once &= c->now[c->name[i]] == 1 ||
                !(c->says[c->name[i]] & SAYS_COMPILED);
    for (size_t i = p.from; i < p.to; i++) c->now[c->name[i]] = 0;
    return once;
}

/* ---- calls of a model ---- */

/* Returns the Python frames of a thread, or NULL. */
static const struct track *frames_of(const struct trace *t, uint32_t thread) {
    const struct lists *l = &t->of_source;
    uint32_t source = t->tracks[thread].source;
    for (size_t k = l->first[source]; k < l->first[source + 1]; k++) {
        const struct track *tr = &t->tracks[l->v[k]];
        if (tr->kind == TRACK_PYTHON && tr->thread == thread) return tr;
    }
    return NULL;
}

/* Goes to the next frame from *r on that is the call of a module and inside of
 * no other. Returns false if there is none. */
static bool next_module(const struct trace *t, const struct track *frames,
                        row_id *r, int64_t *end) {
    for (; *r < frames->end; ++*r) {
        if (t->spans.ts[*r] < *end ||
            !frame_name_is_module(strs_bytes(&t->strs, t->spans.name[*r])))
            continue;
        *end = span_end(t, *r);
        return true;
    }
    return false;
}

/* Cuts before each call of the module that takes most of the time, of those
 * that are called more than once. A layer that the program calls by itself has
 * a name of its own, so that it comes once in a pass. */
static bool cut_by_module(const struct trace *t, const struct calls *c,
                          struct cuts *k) {
    if (c->n == 0) return true;
    const struct track *frames = frames_of(t, t->spans.track[c->row[0]]);
    if (frames == NULL) return true;
    int64_t *time = calloc(t->strs.n + 1, sizeof *time); /* by name */
    if (time == NULL) return false;
    str_id best = STR_NONE;
    int64_t end = INT64_MIN, most = 0;
    for (row_id r = frames->first; next_module(t, frames, &r, &end); r++) {
        int64_t *all = &time[t->spans.name[r]];
        bool again = *all > 0;
        sat_inc(all, t->spans.dur[r]);
        if (!again || *all <= most) continue;
        most = *all;
        best = t->spans.name[r];
    }
    free(time);
    bool ok = true, first = true;
    size_t behind = 0;
    end = INT64_MIN;
    if (best == STR_NONE) return true;
    for (row_id r = frames->first; ok && next_module(t, frames, &r, &end);
         r++) {
        if (t->spans.name[r] != best) continue;
        size_t at = call_after(t, c, 0, t->spans.ts[r]);
        if (first) k->from = at;
        else ok = cut_at(k, at);
        first = false;
        behind = call_after(t, c, at, end);
    }
    return ok && cut_last(c, k, behind);
}

/* ---- one name, and batches ---- */

/* Cuts the calls as the calls of that name lie: as far before each of them as
 * the first lies behind the window's start. */
static bool cut_by_name(const struct calls *c, uint32_t name, struct cuts *k) {
    size_t before = c->n;
    k->n = k->from = 0;
    for (size_t i = 0; i < c->n; i++) {
        if (c->name[i] != name) continue;
        if (before == c->n) before = i;
        else if (!cut_at(k, i - before)) return false;
    }
    return cut_at(k, c->n);
}

/* Cuts before each batch that is asked for. */
static bool cut_by_input(const struct trace *t, const struct calls *c,
                         struct cuts *k) {
    int64_t end = INT64_MIN;
    for (size_t i = 0; i < c->n; i++) {
        row_id r = c->row[i];
        if (t->spans.kind[r] != SPAN_ANNOTATION || t->spans.ts[r] < end ||
            !(span_class(t, r) & CLASS_INPUT))
            continue;
        if (end == INT64_MIN) k->from = i;
        else if (!cut_at(k, i)) return false;
        end = span_end(t, r);
    }
    return k->n == 0 || cut_at(k, c->n);
}

/* ---- nothing but the sequence ---- */

/* Returns how many calls of the piece, from one of a name on, repeat what
 * stood a period before them. */
static size_t repeats(const struct calls *c, struct piece p, size_t period) {
    size_t run = 0, longest = 0;
    for (size_t i = p.from + period; i < p.to; i++) {
        run = c->name[i] == c->name[i - period] ? run + 1 : 0;
        if (run > longest) longest = run;
    }
    return longest;
}

/* Is most of the piece a loop inside of it, as layers in a pass? Then it is not
 * itself one round of such a loop. The period is the distance between two calls
 * of one name. */
static bool holds_loop(struct calls *c, struct piece p) {
    size_t size = p.to - p.from, tried = 0;
    bool found = false;
    count_into(c, p, c->now, 1);
    for (size_t i = p.from; i < p.to && !found && tried < MOST_CUTTERS; i++) {
        uint32_t name = c->name[i];
        if (c->now[name] < LEAST_LAYERS) continue;
        c->now[name] = 0; /* was looked at */
        size_t next = i + 1;
        while (next < p.to && c->name[next] != name) next++;
        size_t period = next - i, same = repeats(c, p, period);
        tried++;
        found = same >= period * (LEAST_LAYERS - 1) &&
                (same + period) * 2 > size && same + period < size;
    }
    for (size_t i = p.from; i < p.to; i++) c->now[c->name[i]] = 0;
    return found;
}

/* Does every turn show that it is one of the outer loop? A pass over layers
 * that are all alike, with nothing before or behind them, is told from none. */
static bool is_outer(struct calls *c, const struct cuts *k,
                     const struct finding *f) {
    struct piece p = piece_of(k, f->per, f->first);
    for (size_t i = p.from; i < p.to; i++)
        if (c->says[c->name[i]] & SAYS_UPDATES) return true;
    return holds_loop(c, p);
}

/* Takes a rarest call as the cut. Its turns count only if all of them, the
 * first included, are equal: then the window holds nothing else. */
static bool judge_sequence(struct calls *c, struct cuts *k, struct finding *f) {
    uint32_t least = UINT32_MAX, tried = 0;
    *f = (struct finding){.verdict = NO};
    for (size_t i = 0; i < c->nnames; i++)
        if (c->often[i] < least) least = c->often[i];
    if (c->nnames == 0 || least < LEAST_TURNS) return true;
    for (uint32_t i = 0; i < c->nnames && tried < MOST_CUTTERS; i++) {
        if (c->often[i] != least) continue;
        tried++;
        if (!cut_by_name(c, i, k) || !judge(c, k, 1, f)) return false;
        bool all = f->first == 0 && f->n == least && f->alike == 1;
        if (f->verdict == YES && all && is_outer(c, k, f)) return true;
        f->verdict = NO;
    }
    return true;
}

/* ---- the thread, and the answer ---- */

/* How a thread does as the one that drives the loop. */
struct driver {
    size_t steps;    /* calls of the optimizer */
    size_t compiled; /* calls of compiled functions */
    size_t calls;
};

static struct driver driver_of(const struct trace *t, const struct track *tr) {
    struct driver d = {0};
    for (row_id r = tr->first; r < tr->end; r++) {
        if (!is_call(t, r)) continue;
        d.calls++;
        d.steps += (span_class(t, r) & CLASS_OPTIMIZER) != 0;
        d.compiled += name_is_compiled_call(
            strs_bytes(&t->strs, t->spans.name[r]));
    }
    return d;
}

/* Returns the thread with the most calls of the optimizer; failing these, of
 * compiled functions; failing these, the one that has most of the source's
 * calls, or ROW_NONE. */
static uint32_t driving_thread(const struct trace *t, uint32_t source) {
    uint32_t best = ROW_NONE;
    struct driver most = {0};
    size_t all = 0;
    const uint32_t *of = t->of_source.v;
    for (size_t k = t->of_source.first[source];
         k < t->of_source.first[source + 1]; k++) {
        const struct track *tr = &t->tracks[of[k]];
        if (tr->kind != TRACK_THREAD) continue;
        struct driver d = driver_of(t, tr);
        all += d.calls;
        bool better = d.steps != most.steps         ? d.steps > most.steps
                      : d.compiled != most.compiled ? d.compiled > most.compiled
                                                    : d.calls > most.calls;
        if (!better) continue;
        most = d;
        best = of[k];
    }
    if (most.steps > 0 || most.compiled > 0) return best;
    return most.calls * 2 > all ? best : ROW_NONE;
}

/* Turns pieces into times: each begins where the one before it ends. */
static bool put_turns(const struct trace *t, const struct calls *c,
                      const struct cuts *k, const struct finding *f,
                      struct turns *out) {
    for (size_t i = f->first; i < f->n; i++) {
        struct piece p = piece_of(k, f->per, i);
        int64_t end = INT64_MIN;
        if (i + 1 == f->n && f->to_end) p.to = c->n;
        if (p.to < c->n) end = t->spans.ts[c->row[p.to]];
        for (size_t j = p.from; p.to == c->n && j < p.to; j++)
            if (span_end(t, c->row[j]) > end) end = span_end(t, c->row[j]);
        if (!VEC_ROOM(out->v, out->n, out->cap)) return false;
        out->v[out->n++] = (struct turn){t->spans.ts[c->row[p.from]], end};
    }
    out->alike = f->alike;
    return true;
}

bool turns_find(const struct trace *t, uint32_t source, struct turns *out) {
    static bool (*const cutters[])(const struct trace *, const struct calls *,
                                   struct cuts *) = {
        [TURN_OPTIMIZER] = cut_by_optimizer, [TURN_BACKWARD] = cut_by_backward,
        [TURN_INPUT] = cut_by_input,         [TURN_FUNCTION] = cut_by_function,
        [TURN_MODULE] = cut_by_module,
    };
    struct calls c = {0};
    struct cuts k = {0};
    struct finding f = {.verdict = NO};
    *out = (struct turns){.thread = driving_thread(t, source)};
    if (out->thread == ROW_NONE) return true;
    bool ok = calls_list(t, &t->tracks[out->thread], &c);
    for (size_t i = 0; ok && i < COUNT(cutters) && f.verdict == NO; i++) {
        k.n = k.from = 0;
        ok = cutters[i](t, &c, &k) && judge_any(&c, &k, &f);
        out->sign = (enum turn_sign)i;
        /* Several functions may be called for one another's sake. Regions
         * that are not alike say nothing. */
        if (i == TURN_MODULE && f.verdict == YES && f.alike < 1) f.verdict = NO;
        if (i == TURN_FUNCTION && f.verdict == YES &&
            (calls_compiled(&c) ? !take_turns(&c, &k, &f) : f.alike < 1))
            f.verdict = NO;
        /* Signs of training that do not agree leave no better one, nor do
         * compiled functions. */
        bool sure = i < TURN_INPUT ||
                    (i == TURN_FUNCTION && calls_compiled(&c));
        if (k.n > 0 && sure && f.verdict == NO) f.verdict = MAYBE;
    }
    if (ok && f.verdict == NO) {
        ok = judge_sequence(&c, &k, &f);
        out->sign = TURN_SEQUENCE;
    }
    if (ok && f.verdict == YES) ok = put_turns(t, &c, &k, &f, out);
    calls_free(&c);
    free(k.end);
    if (!ok) turns_free(out);
    return ok;
}

void turns_free(struct turns *turns) {
    free(turns->v);
    *turns = (struct turns){0};
}
