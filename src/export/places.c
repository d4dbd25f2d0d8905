/* SPDX-License-Identifier: Apache-2.0
 * Numbers for processes and threads: the recorded one if it is free, else the
 * next free one. */
#include "export/places.h"

#include "base/hash.h"
#include "base/vec.h"
#include <stdlib.h>

/* Returns the wanted number if it is free, else the next of *next; marks it as
 * used. *ok becomes false if memory ran out. */
static int64_t take_number(struct map *used, uint64_t within, int64_t want,
                           uint64_t *next, bool *ok) {
    for (uint64_t v = (uint64_t)want;; v = (*next)++) {
        uint32_t *at = map_at(used, hash_pair(within, v));
        if (at == NULL) {
            *ok = false;
            return want;
        }
        if (*at != MAP_NONE) continue;
        *at = 0;
        return (int64_t)v;
    }
}

static void raise(uint64_t *next, int64_t number) {
    if (number >= 0 && (uint64_t)number >= *next) *next = (uint64_t)number + 1;
}

/* Returns the process of a track, made when new. */
static uint32_t process_of(struct places *p, const struct track *tr, bool *ok) {
    uint64_t owner = (uint64_t)tr->source << 32 | tr->device;
    uint64_t key = hash_pair(owner, (uint64_t)tr->pid);
    uint32_t *at = map_at(&p->known, key);
    if (at == NULL || !VEC_ROOM(p->processes, p->n, p->cap)) {
        *ok = false;
        return 0;
    }
    if (*at != MAP_NONE) return *at;
    uint32_t k = *at = (uint32_t)p->n++;
    p->processes[k] = (struct process){
        .pid = take_number(&p->pids, 1, tr->pid, &p->next_pid, ok),
        .source = tr->source,
        .device = tr->device,
    };
    uint32_t *of = tr->device != ROW_NONE ? &p->of_device[tr->device]
                                          : &p->of_source[tr->source];
    if (*of == ROW_NONE) *of = k;
    return k;
}

static bool shares(const struct track *tr) {
    return tr->kind == TRACK_PYTHON && tr->thread != ROW_NONE;
}

/* Returns n times "none"; NULL if out of memory. */
static uint32_t *none(size_t n) {
    uint32_t *v = malloc((n + 1) * sizeof *v);
    for (size_t i = 0; v && i < n; i++) v[i] = ROW_NONE;
    return v;
}

bool places_init(struct places *p, const struct trace *t) {
    *p = (struct places){
        .tracks = calloc(t->ntracks + 1, sizeof *p->tracks),
        .of_source = none(t->nsources),
        .of_device = none(t->ndevices),
    };
    bool ok = p->tracks && p->of_source && p->of_device;
    for (size_t i = 0; ok && i < t->ntracks; i++)
        raise(&p->next_pid, t->tracks[i].pid);
    for (size_t i = 0; ok && i < t->ntracks; i++) {
        uint32_t k = p->tracks[i].process = process_of(p, &t->tracks[i], &ok);
        if (ok) raise(&p->processes[k].next_tid, t->tracks[i].tid);
    }
    for (size_t i = 0; ok && i < t->ntracks; i++) {
        const struct track *tr = &t->tracks[i];
        uint32_t k = p->tracks[i].process;
        if (!shares(tr))
            p->tracks[i].tid = take_number(&p->tids, (uint64_t)k + 2, tr->tid,
                                           &p->processes[k].next_tid, &ok);
    }
    for (size_t i = 0; ok && i < t->ntracks; i++)
        if (shares(&t->tracks[i]))
            p->tracks[i] = p->tracks[t->tracks[i].thread];
    map_free(&p->known);
    map_free(&p->pids);
    map_free(&p->tids);
    return ok;
}

int64_t places_pid_of(const struct places *p, uint32_t source,
                      uint32_t device) {
    uint32_t k = device != ROW_NONE ? p->of_device[device] : ROW_NONE;
    if (k == ROW_NONE) k = p->of_source[source];
    return k == ROW_NONE ? 0 : p->processes[k].pid;
}

void places_free(struct places *p) {
    free(p->tracks);
    free(p->processes);
    free(p->of_source);
    free(p->of_device);
    *p = (struct places){0};
}
