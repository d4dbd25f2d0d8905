/* SPDX-License-Identifier: Apache-2.0
 * Frames of opscope's own functions. Under `opscope record` a tracer of Python
 * sees the hooks that tell steps among the program's calls; they are the
 * profiler's own cost and none of the program's time.
 *
 * PyTorch writes the path of a frame's file, which is below opscope/_capture/.
 * JAX writes the file's name alone, and others may have that name: a span that
 * the hooks leave in the trace lists their frames as JAX spells them.
 *
 * What a frame of ours calls is ours, too, but for the functions that stand in
 * the place of the program's: what these call is the program's again. */
#include "base/facts.h"
#include "model/args.h"
#include "model/seal.h"
#include "names/frame_name.h"
#include <stdlib.h>

enum whose { THE_PROGRAMS, OURS, STANDS_IN };

/* The folder of the hooks, and how files of functions begin that stand in. */
#define FOLDER   "opscope/_capture/"
#define STAND_IN "stand_ins"

static enum whose ours_by_file(struct bytes file) {
    size_t at = file.n;
    while (at > 0 && file.p[at - 1] != '/') at--;
    struct bytes base = {file.p + at, file.n - at};
    return BYTES_STARTS(base, STAND_IN) ? STANDS_IN : OURS;
}

/* Is it below the folder of the hooks? */
static bool is_in_folder(struct bytes file) {
    const uint8_t *at = file.n == 0
                            ? NULL
                            : memmem(file.p, file.n, FOLDER, sizeof FOLDER - 1);
    return at != NULL && (at == file.p || at[-1] == '/');
}

/* Takes in the names that a span of the hooks lists, with '|' between them. */
static bool read_list(const struct trace *t, row_id r, uint8_t *whose) {
    struct bytes list = args_get(t, r, OWN_FRAMES_ARG).text;
    bool any = false;
    while (list.n > 0) {
        const uint8_t *bar = memchr(list.p, '|', list.n);
        size_t n = bar == NULL ? list.n : (size_t)(bar - list.p);
        struct bytes name = {list.p, n};
        str_id id = strs_find(&t->strs, name);
        if (id != STR_NONE) {
            whose[id] = (uint8_t)ours_by_file(frame_name_split(name).file);
            any = true;
        }
        n += bar != NULL;
        list = (struct bytes){list.p + n, list.n - n};
    }
    return any;
}

/* Fills whose[name]. Returns whether any name is ours. The list itself is for
 * readers: nothing counts it. */
static bool find_names(struct trace *t, uint8_t *whose) {
    str_id listed = strs_find(&t->strs, bytes_of(SPAN_OWN_FRAMES));
    bool any = false;
    for (size_t i = 0; i < t->strs.n; i++) {
        struct bytes file =
            frame_name_split(strs_bytes(&t->strs, (str_id)i)).file;
        if (!is_in_folder(file)) continue;
        whose[i] = (uint8_t)ours_by_file(file);
        any = true;
    }
    for (row_id r = 0; listed != STR_NONE && r < t->spans.n; r++) {
        if (t->spans.name[r] != listed) continue;
        any |= read_list(t, r, whose);
        t->spans.kind[r] = SPAN_OVERHEAD;
        t->spans.flags[r] |= SPAN_DERIVED;
    }
    return any;
}

/* Makes frames of ours, and all inside of them, the profiler's own cost. */
static void mark_track(struct trace *t, const struct track *tr,
                       const uint8_t *whose, uint8_t *hides) {
    struct spans *s = &t->spans;
    for (row_id r = tr->first; r < tr->end; r++) {
        row_id p = s->parent[r];
        bool hidden = p != ROW_NONE && (hides[p / 8] >> (p % 8) & 1);
        enum whose w = (enum whose)whose[s->name[r]];
        if (s->kind[r] != SPAN_PYTHON || (!hidden && w == THE_PROGRAMS))
            continue;
        s->kind[r] = SPAN_OVERHEAD;
        if (hidden || w == OURS) hides[r / 8] |= (uint8_t)(1u << (r % 8));
    }
}

bool seal_own_frames(struct trace *t) {
    bool any = false;
    for (size_t i = 0; i < t->ntracks; i++)
        any |= t->tracks[i].kind == TRACK_PYTHON;
    if (!any) return true;
    uint8_t *whose = calloc(t->strs.n + 1, sizeof *whose), *hides = NULL;
    bool ok = whose != NULL;
    if (ok && find_names(t, whose)) {
        hides = calloc(t->spans.n / 8 + 1, sizeof *hides);
        ok = hides != NULL;
        for (size_t i = 0; ok && i < t->ntracks; i++)
            if (t->tracks[i].kind == TRACK_PYTHON)
                mark_track(t, &t->tracks[i], whose, hides);
    }
    free(whose);
    free(hides);
    return ok;
}
