/* SPDX-License-Identifier: Apache-2.0
 * The files of one recording. opscope's recorder writes
 *
 *     <stem>.xplane.pb   <stem>.1.xplane.pb ...   parts that are closed
 *     <stem>[.N].xplane.pb.part                   the part being written
 *     <stem>[.N].deviceK.xplane.pb.part           a device's plane of it
 *     <stem>.ring                                 what is not written yet
 *
 * and all of one stem are one process on one time line: a scope that began in
 * one part ends in another. */
#include "load/runs_impl.h"

#include "base/array.h"
#include "base/hash.h"
#include "model/trace_fill.h"
#include <stdlib.h>
#include <string.h>

/* Cuts ".<word><digits>" off the end of a name of n bytes; *out becomes the
 * number. Returns the length left, n if there is no such end. */
static size_t cut_number(const char *name, size_t n, const char *word,
                         uint64_t *out) {
    size_t at = n, w = strlen(word);
    uint64_t v = 0;
    while (at > 0 && n - at < 18 && name[at - 1] >= '0' && name[at - 1] <= '9')
        at--;
    if (at == n || at < w + 2) return n;
    if (memcmp(name + at - w, word, w) != 0 || name[at - w - 1] != '.')
        return n;
    for (size_t i = at; i < n; i++) v = v * 10 + (uint64_t)(name[i] - '0');
    *out = v;
    return at - w - 1;
}

bool own_file_of(const char *path, struct own_file *out) {
    static const struct {
        const char *suffix;
        enum own_form form;
    } forms[] = {
        {".xplane.pb.part", OWN_PART},
        {".xplane.pb", OWN_WHOLE},
        {".ring", OWN_RING},
    };
    const char *slash = strrchr(path, '/');
    size_t folder = slash ? (size_t)(slash + 1 - path) : 0;
    const char *name = path + folder;
    size_t n = strlen(name);
    *out = (struct own_file){0};
    for (size_t i = 0; i < COUNT(forms); i++) {
        if (!bytes_ends(bytes_of(name), forms[i].suffix)) continue;
        n -= strlen(forms[i].suffix);
        out->form = forms[i].form;
        if (out->form == OWN_PART)
            n = cut_number(name, n, "device", &out->device);
        if (out->form != OWN_RING) n = cut_number(name, n, "", &out->part);
        out->stem = folder + n;
        return true;
    }
    return false;
}

bool own_same_stem(const char *a, const char *b) {
    struct own_file x, y;
    return own_file_of(a, &x) && own_file_of(b, &y) && x.stem == y.stem &&
           memcmp(a, b, x.stem) == 0;
}

bool own_is_included(const struct loaded_file *ring, const char *path) {
    struct own_file x, y;
    if (ring->t == NULL || !own_same_stem(ring->path, path)) return false;
    const char *with = trace_meta_get(ring->t, 0, "includes");
    return with != NULL && own_file_of(with, &x) && own_file_of(path, &y) &&
           x.form == OWN_PART && y.form == OWN_PART && x.part == y.part;
}

/* Returns when the recording began, in Unix ns; 0 if it does not say. */
static int64_t start_of(const struct loaded_file *p) {
    return p->t->epoch_set && p->t->sources[0].has_clock ? p->t->epoch_ns : 0;
}

/* Could these two be parts of one recording? */
static bool one_recording(const struct loaded_file *a,
                          const struct loaded_file *b) {
    const struct source *x = &a->t->sources[0], *y = &b->t->sources[0];
    if (!x->by_opscope || !y->by_opscope || !own_same_stem(a->path, b->path))
        return false;
    int64_t s = start_of(a), t = start_of(b);
    return s == 0 || t == 0 || s == t;
}

/* Does a stand for the profile rather than b? One that tells its start comes
 * first, then the earlier part, then the host's. */
static bool stands_before(const struct loaded_file *a,
                          const struct loaded_file *b) {
    struct own_file x, y;
    bool tells = start_of(a) != 0;
    if (tells != (start_of(b) != 0)) return tells;
    if (!own_file_of(a->path, &x) || !own_file_of(b->path, &y)) return false;
    if ((x.form == OWN_RING) != (y.form == OWN_RING)) return y.form == OWN_RING;
    if (x.part != y.part) return x.part < y.part;
    return x.device < y.device;
}

bool stems_init(struct stems *s, const struct loaded_file *v, size_t n) {
    *s = (struct stems){.next = malloc((n + 1) * sizeof *s->next)};
    if (s->next == NULL) return false;
    for (size_t i = n; i-- > 0;) { /* so that each list rises */
        struct own_file f;
        s->next[i] = ROW_NONE;
        if (!own_file_of(v[i].path, &f)) continue;
        uint32_t *at = map_at(&s->first, hash_bytes(v[i].path, f.stem));
        if (at == NULL) return false;
        if (*at != MAP_NONE) s->next[i] = *at;
        *at = (uint32_t)i;
    }
    return true;
}

void stems_free(struct stems *s) {
    map_free(&s->first);
    free(s->next);
}

uint32_t stems_of(const struct stems *s, const char *path) {
    struct own_file f;
    if (!own_file_of(path, &f)) return ROW_NONE;
    uint32_t at = map_get(&s->first, hash_bytes(path, f.stem));
    return at == MAP_NONE ? ROW_NONE : at;
}

/* Is the pointer just old? Whoever closes a profile removes its memory before
 * the pointer to it: one that leads nowhere, beside closed files alone, is. */
static bool is_stale(const struct loaded_file *v, const struct stems *s,
                     uint32_t ring) {
    bool closed = false;
    if (v[ring].t->notes[NOTE_RING_GONE] == 0) return false;
    for (uint32_t i = stems_of(s, v[ring].path); i != ROW_NONE;
         i = s->next[i]) {
        struct own_file f;
        if (i == ring || !own_same_stem(v[i].path, v[ring].path) ||
            !own_file_of(v[i].path, &f))
            continue;
        if (f.form == OWN_PART) return false;
        closed = true;
    }
    return closed;
}

/* Makes one file, the first of them, of the parts of file i's recording. */
static int join_recording(struct loaded_file *v, const struct stems *s,
                          uint32_t i, size_t *left, struct ops_err *e) {
    uint32_t first = i;
    for (uint32_t k = s->next[i]; k != ROW_NONE && *left > 0; k = s->next[k]) {
        --*left;
        if (v[k].t != NULL && one_recording(&v[i], &v[k]) &&
            stands_before(&v[k], &v[first]))
            first = k;
    }
    for (uint32_t k = i; k != ROW_NONE && *left > 0; k = s->next[k]) {
        --*left;
        if (k == first || v[k].t == NULL || !one_recording(&v[first], &v[k]))
            continue;
        struct trace *more = v[k].t;
        v[k].t = NULL;
        v[k].taken = true;
        TRY(trace_append_continuation(v[first].t, more, 0, e));
    }
    return 0;
}

int join_recordings(struct loaded_file *v, size_t n, const struct stems *s,
                    struct ops_err *e) {
    size_t left = pairs_allowed(n);
    for (size_t i = 0; i < n; i++) {
        if (v[i].t == NULL || !is_stale(v, s, (uint32_t)i)) continue;
        trace_free(v[i].t);
        v[i].t = NULL;
        v[i].taken = true;
    }
    for (size_t i = 0; i < n; i++)
        if (v[i].t != NULL && v[i].t->sources[0].by_opscope)
            TRY(join_recording(v, s, (uint32_t)i, &left, e));
    return 0;
}
