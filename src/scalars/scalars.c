/* SPDX-License-Identifier: Apache-2.0
 * Filling the store of scalars: files, series, points. */
#include "scalars/scalars.h"

#include "base/vec.h"
#include <assert.h>
#include <math.h>
#include <stdlib.h>

bool scalars_init(struct scalars *s) {
    *s = (struct scalars){0};
    return strs_init(&s->strs);
}

void scalars_free(struct scalars *s) {
    for (size_t i = 0; i < s->nseries; i++) {
        struct series *v = &s->series[i];
        free(v->step);
        free(v->wall);
        free(v->value);
        free(v->text);
        free(v->restarts);
    }
    for (size_t i = 0; i < s->nfiles; i++) free(s->files[i].path);
    free(s->series);
    free(s->files);
    free(s->blobs);
    map_free(&s->by_tag);
    strs_free(&s->strs);
    *s = (struct scalars){0};
}

static str_id intern(struct scalars *s, struct bytes b) {
    str_id id = strs_intern(&s->strs, b);
    if (id != STR_NONE) return id;
    s->oom = true;
    return 0;
}

uint32_t scalars_file(struct scalars *s, const char *path, const char *run) {
    char *copy = strdup(path);
    str_id name = intern(s, bytes_of(run));
    if (copy == NULL || s->oom || s->nfiles >= UINT32_MAX / 2 ||
        !VEC_ROOM(s->files, s->nfiles, s->cap_files)) {
        free(copy);
        s->oom = true;
        return UINT32_MAX;
    }
    s->files[s->nfiles] = (struct scalar_file){.path = copy, .run = name};
    return (uint32_t)s->nfiles++;
}

void scalars_reset_file(struct scalars *s, uint32_t file) {
    assert(file < s->nfiles);
    struct scalar_file *f = &s->files[file];
    for (size_t i = 0; i < s->nseries; i++) {
        struct series *v = &s->series[i];
        if (v->file != file) continue;
        v->n = v->nrestarts = 0;
        v->min = v->max = NAN;
        free(v->text);
        v->text = NULL;
    }
    size_t kept = 0;
    for (size_t i = 0; i < s->nblobs; i++)
        if (s->blobs[i].file != file) s->blobs[kept++] = s->blobs[i];
    s->nblobs = kept;
    *f = (struct scalar_file){.path = f->path, .run = f->run};
}

/* Keys are exact, not hashes: 25 bits of file and 3 of kind above 32 of tag. */
static uint64_t key_of(uint32_t file, str_id tag, enum series_kind kind) {
    return (uint64_t)file << 35 | (uint64_t)kind << 32 | tag;
}

struct series *scalars_series(struct scalars *s, uint32_t file,
                              struct bytes tag, enum series_kind kind) {
    assert(file < s->nfiles);
    struct scalar_file *f = &s->files[file];
    /* tags are bounded, or hostile input would fill the memory with names */
    if (s->nseries >= SERIES_MAX && strs_find(&s->strs, tag) == STR_NONE) {
        f->skipped++;
        return NULL;
    }
    str_id id = intern(s, tag);
    uint32_t *at = s->oom ? NULL : map_at(&s->by_tag, key_of(file, id, kind));
    if (at != NULL && *at != MAP_NONE) return &s->series[*at];
    if (at != NULL && s->nseries >= SERIES_MAX) {
        f->skipped++;
        return NULL;
    }
    if (at == NULL || !VEC_ROOM(s->series, s->nseries, s->cap_series)) {
        s->oom = true;
        return NULL;
    }
    struct series *v = &s->series[s->nseries];
    *v = (struct series){
        .file = file, .tag = id, .kind = kind, .min = NAN, .max = NAN};
    *at = (uint32_t)s->nseries++;
    return v;
}

enum series_kind scalars_kind_of(const struct scalars *s, uint32_t file,
                                 struct bytes tag) {
    str_id id = strs_find(&s->strs, tag);
    if (id == STR_NONE) return SERIES_OTHER;
    for (enum series_kind k = 0; k < SERIES_OTHER; k++)
        if (map_get(&s->by_tag, key_of(file, id, k)) != MAP_NONE) return k;
    return SERIES_OTHER;
}

/* Notes that points before number `at` are void from that step on. */
static void add_restart(struct scalars *s, struct series *v, int64_t step) {
    if (v->nrestarts > 0 && v->restarts[v->nrestarts - 1].at == v->n) {
        struct restart *last = &v->restarts[v->nrestarts - 1];
        if (step < last->step) last->step = step;
        return;
    }
    if (v->nrestarts >= RESTARTS_MAX) return;
    if (!VEC_ROOM(v->restarts, v->nrestarts, v->cap_restarts)) {
        s->oom = true;
        return;
    }
    v->restarts[v->nrestarts++] = (struct restart){v->n, step};
}

void scalars_point(struct scalars *s, struct series *v, int64_t step,
                   double wall, double value) {
    if (v->n == v->cap) {
        size_t cap = vec_next_cap(v->cap, v->n + 1);
        s->oom = !vec_resize(&v->step, cap, sizeof *v->step) ||
                 !vec_resize(&v->wall, cap, sizeof *v->wall) ||
                 !vec_resize(&v->value, cap, sizeof *v->value);
        if (s->oom) return;
        v->cap = cap;
    }
    struct scalar_file *f = &s->files[v->file];
    if (!isfinite(wall)) wall = 0; /* times are sorted by */
    /* the tag comes after the restart: that counts for the files before */
    if (v->n == 0 && f->has_restart) add_restart(s, v, f->restart_step);
    v->step[v->n] = step;
    v->wall[v->n] = wall;
    v->value[v->n++] = value;
    if (!f->any || wall < f->first_wall) f->first_wall = wall;
    if (!f->any || wall > f->last_wall) f->last_wall = wall;
    f->any = true;
    s->points++;
}

void scalars_restart(struct scalars *s, uint32_t file, int64_t step) {
    struct scalar_file *f = &s->files[file];
    /* each restart looks at every series: a file of nothing else must end */
    if (++f->restarts > RESTARTS_MAX) return;
    if (!f->has_restart || step < f->restart_step) f->restart_step = step;
    f->has_restart = true;
    for (size_t i = 0; i < s->nseries; i++)
        if (s->series[i].file == file && s->series[i].n > 0)
            add_restart(s, &s->series[i], step);
}

void scalars_blob(struct scalars *s, const struct scalar_blob *b) {
    if (!VEC_ROOM(s->blobs, s->nblobs, s->cap_blobs)) s->oom = true;
    else s->blobs[s->nblobs++] = *b;
}

const char *series_kind_name(enum series_kind kind) {
    static const char *const names[] = {
        [SERIES_SCALAR] = "scalar", [SERIES_HISTOGRAM] = "histogram",
        [SERIES_TEXT] = "text",     [SERIES_IMAGE] = "image",
        [SERIES_AUDIO] = "audio",   [SERIES_HPARAMS] = "hparams",
        [SERIES_OTHER] = "other",
    };
    return names[kind];
}
