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
 * sequence in which nothing at all is left over. */
#include "model/turns.h"

#include "base/array.h"
#include "base/sort.h"
#include "base/sum.h"
#include "base/vec.h"
#include "model/span_class.h"
#include "names/compiler_names.h"
#include "names/op_names.h"
#include <stdlib.h>

enum {
    MOST_PER_TURN = 8, /* cuts that may make up one turn */
    MOST_CUTTERS = 8,  /* names that are tried as cuts */
    LEAST_TURNS = 3,   /* where a cut alone is no turn, or only calls tell */
    CALL_PERCENT = 20, /* of the window that the calls of a function fill */
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
    uint32_t *ref, *now; /* by name: counts of two pieces, zero between uses */
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
    free(c->ref);
    free(c->now);
}

static bool is_call(const struct trace *t, row_id r) {
    const struct spans *s = &t->spans;
    uint8_t k = s->kind[r];
    return !(s->flags[r] & (SPAN_INSTANT | SPAN_DERIVED | SPAN_ASYNC)) &&
           k != SPAN_PYTHON && k != SPAN_OVERHEAD && !span_is_step_mark(t, r);
}

/* Lists the calls of a track. Returns false if out of memory. */
static bool calls_list(const struct trace *t, const struct track *tr,
                       struct calls *c) {
    size_t rows = tr->end - tr->first, texts = t->strs.n + 1;
    uint32_t *numbers = vec_alloc(texts, sizeof *numbers); /* by text */
    *c = (struct calls){.row = vec_alloc(rows + 1, sizeof *c->row),
                        .name = vec_alloc(rows + 1, sizeof *c->name),
                        .often = vec_alloc(rows + 1, sizeof *c->often)};
    bool ok = numbers != NULL && c->row != NULL && c->name != NULL &&
              c->often != NULL;
    if (ok) memset(numbers, 0xff, texts * sizeof *numbers); /* all ROW_NONE */
    for (row_id r = tr->first; ok && r < tr->end; r++) {
        if (!is_call(t, r)) continue;
        uint32_t *number = &numbers[t->spans.name[r]];
        if (*number == ROW_NONE) {
            *number = (uint32_t)c->nnames;
            c->often[c->nnames++] = 0;
        }
        c->often[*number]++;
        c->name[c->n] = *number;
        c->row[c->n++] = r;
    }
    free(numbers);
    c->ref = calloc(c->nnames + 1, sizeof *c->ref);
    c->now = calloc(c->nnames + 1, sizeof *c->now);
    return ok && c->ref != NULL && c->now != NULL;
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
    double alike;
};

/* How a piece compares with the one whose counts are in c->ref. */
struct likeness {
    bool holds; /* it has what that one has, and perhaps more */
    bool part;  /* that one has what it has */
    bool equal; /* hardly more */
};

/* Compares two stretches of calls, taken together, with ref: what is called and
 * how often, or only what. */
static struct likeness compare(struct calls *c, struct piece p,
                               struct piece rest, struct piece ref,
                               const struct finding *f) {
    size_t common = 0, names = 0, of_ref = 0, more = 0;
    size_t size = p.to - p.from + rest.to - rest.from;
    size_t want = ref.to - ref.from;
    struct piece both[] = {p, rest};
    for (int k = 0; k < 2; k++) count_into(c, both[k], c->now, 1);
    for (int k = 0; k < 2; k++)
        for (size_t i = both[k].from; i < both[k].to; i++) {
            uint32_t n = c->name[i];
            if (c->now[n] == 0) continue; /* was looked at */
            common += c->now[n] < c->ref[n] ? c->now[n] : c->ref[n];
            names += c->ref[n] > 0;
            more += c->ref[n] == 0;
            c->now[n] = 0;
        }
    for (size_t i = ref.from; i < ref.to; i++) {
        of_ref += c->now[c->name[i]] == 0;
        c->now[c->name[i]] = 1;
    }
    for (size_t i = ref.from; i < ref.to; i++) c->now[c->name[i]] = 0;
    bool part = (size - common) * 100 <= size * LACK_PERCENT;
    if (f->by_names) return (struct likeness){names == of_ref, part, more == 0};
    /* one piece of several that is another must not pass for a little */
    size_t strict = f->per > 1 ? 100 * EXACT * f->per : 100;
    return (struct likeness){
        .holds = (want - common) * strict <= want * LACK_PERCENT,
        .part = part,
        .equal = size <= want || (size - want) * strict <= want * MORE_PERCENT,
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

/* Are pieces of `per` cuts turns? Returns false if out of memory. */
static bool judge(struct calls *c, const struct cuts *k, size_t per,
                  struct finding *f) {
    size_t n = k->n / per, at, holds = 0, equal = 0;
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
    }
    count_into(c, ref, c->ref, -1);
    if (f->n < f->first + 2) return true;
    size_t turns = f->n - f->first;
    f->alike = (double)equal / (double)turns;
    if (holds * 100 < turns * HOLD_PERCENT) return true;
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

/* Cuts before each call of the function that takes most of the thread's
 * time. */
static bool cut_by_function(const struct trace *t, const struct calls *c,
                            struct cuts *k) {
    int64_t *time = calloc(c->nnames + 1, sizeof *time), *end, most = 0;
    end = calloc(c->nnames + 1, sizeof *end);
    bool ok = time != NULL && end != NULL;
    uint32_t best = ROW_NONE;
    for (size_t i = 0; ok && i < c->nnames; i++) end[i] = INT64_MIN;
    for (size_t i = 0; ok && i < c->n; i++) {
        row_id r = c->row[i];
        uint32_t n = c->name[i];
        if (c->often[n] < 2 || t->spans.ts[r] < end[n] || !may_be_turn(t, r))
            continue;
        end[n] = span_end(t, r);
        sat_inc(&time[n], t->spans.dur[r]);
        if (time[n] <= most) continue;
        most = time[n];
        best = n;
    }
    int64_t last = INT64_MIN;
    const struct source *src =
        c->n > 0 ? &t->sources[t->tracks[t->spans.track[c->row[0]]].source]
                 : NULL;
    if (best != ROW_NONE &&
        most < (src->window_end - src->window_ts) / 100 * CALL_PERCENT)
        best = ROW_NONE;
    for (size_t i = 0; ok && best != ROW_NONE && i < c->n; i++) {
        row_id r = c->row[i];
        if (c->name[i] != best || t->spans.ts[r] < last || !may_be_turn(t, r))
            continue;
        if (last == INT64_MIN) k->from = i;
        else ok = cut_at(k, i);
        last = span_end(t, r);
    }
    if (ok && best != ROW_NONE) ok = cut_at(k, c->n);
    free(time);
    free(end);
    return ok;
}

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
        if (f->verdict == YES && all) return true;
        f->verdict = NO;
    }
    return true;
}

/* ---- the thread, and the answer ---- */

/* Returns the thread with the most calls of the optimizer, or ROW_NONE; failing
 * these, the one that has most of the source's calls. */
static uint32_t driving_thread(const struct trace *t, uint32_t source) {
    uint32_t best = ROW_NONE, largest = ROW_NONE;
    size_t most = 0, rows = 0, all = 0;
    const uint32_t *of = t->of_source.v;
    for (size_t k = t->of_source.first[source];
         k < t->of_source.first[source + 1]; k++) {
        const struct track *tr = &t->tracks[of[k]];
        if (tr->kind != TRACK_THREAD) continue;
        size_t calls = 0, steps = 0;
        for (row_id r = tr->first; r < tr->end; r++) {
            calls += is_call(t, r);
            steps += (span_class(t, r) & CLASS_OPTIMIZER) != 0;
        }
        if (steps > most) {
            most = steps;
            best = of[k];
        }
        if (calls > rows) {
            rows = calls;
            largest = of[k];
        }
        all += calls;
    }
    if (best != ROW_NONE) return best;
    return rows * 2 > all ? largest : ROW_NONE;
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
        [TURN_OPTIMIZER] = cut_by_optimizer,
        [TURN_BACKWARD] = cut_by_backward,
        [TURN_INPUT] = cut_by_input,
        [TURN_FUNCTION] = cut_by_function,
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
        /* signs of training that do not agree leave no better one */
        if (k.n > 0 && i < TURN_INPUT && f.verdict == NO) f.verdict = MAYBE;
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
