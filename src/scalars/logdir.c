/* SPDX-License-Identifier: Apache-2.0
 * Searching a log folder, again and again. Links to folders are not followed,
 * depth and number are bounded: a log folder may hold anything. */
#include "scalars/logdir.h"

#include "base/hash.h"
#include "base/io/dir.h"
#include "base/io/file.h"
#include "base/text/cut.h"
#include "base/vec.h"
#include "model/trace.h"
#include "ring/recover.h"
#include "scalars/profile_loss.h"
#include "scalars/summary.h"
#include <assert.h>
#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

void logdir_free(struct logdir *l) {
    scalars_free(&l->scalars);
    free(l->files);
    map_free(&l->by_path);
    map_free(&l->losses);
    free(l->root);
    *l = (struct logdir){0};
}

bool logdir_is_event_file(const char *name) {
    return strstr(name, "tfevents") != NULL;
}

/* Reads what is new in a file. One that cannot be read is remembered as such;
 * the others are read all the same. */
static void read_on(struct logdir *l, uint32_t i, const struct stat *st) {
    struct logdir_file *f = &l->files[i];
    struct ops_err e = {0};
    struct file *open;
    uint64_t size = (uint64_t)st->st_size;
    if (f->inode == st->st_ino && f->size == size && !f->unreadable) return;
    if (f->rest > 0) { /* what was taken from memory may be in it now */
        scalars_reset_file(&l->scalars, i);
        f->size = 0;
    }
    bool other = f->inode != st->st_ino || size < f->size;
    if (f->size > 0 && other) scalars_reset_file(&l->scalars, i);
    *f = (struct logdir_file){.size = size, .inode = st->st_ino};
    if (size == 0) return; /* made, not written yet */
    int rc = file_open(l->scalars.files[i].path, &open, &e);
    if (rc == OPS_ELIMIT) l->fatal = e;
    if (rc != 0) {
        f->unreadable = true;
        cut_fmt(f->reason, sizeof f->reason, "%.*s", CUT(60, e.text));
        return;
    }
    summary_read(&l->scalars, i, open->bytes);
    file_close(open);
}

/* Returns the file of that path in the store, made when new; UINT32_MAX if out
 * of memory. Of two paths with one hash the map knows the first: the others are
 * searched for. */
static uint32_t file_of(struct logdir *l, const char *path, const char *run) {
    uint32_t *at = map_at(&l->by_path, hash_bytes(path, strlen(path)));
    uint32_t i = at == NULL || *at == MAP_NONE ? (uint32_t)l->nfiles : *at;
    if (i < l->nfiles && strcmp(l->scalars.files[i].path, path) != 0) i = 0;
    while (i < l->nfiles && strcmp(l->scalars.files[i].path, path) != 0) i++;
    if (i < l->nfiles) return i;
    if (at == NULL || !VEC_ROOM(l->files, l->nfiles, l->cap_files)) {
        l->scalars.oom = true;
        return UINT32_MAX;
    }
    i = scalars_file(&l->scalars, path, run);
    if (i == UINT32_MAX) return i;
    assert(i == l->nfiles);
    if (*at == MAP_NONE) *at = i;
    l->files[l->nfiles++] = (struct logdir_file){0};
    return i;
}

static void take_file(struct logdir *l, const char *path, const char *run,
                      const struct stat *st) {
    uint32_t i = file_of(l, path, run);
    if (i != UINT32_MAX) read_on(l, i, st);
}

/* --- points that are in no file yet -------------------------------------- */

/* Reads a file anew: so much of it, and behind that the rest in memory. */
static void read_with_rest(struct logdir *l, uint32_t i, const char *path,
                           const struct recovered_scalars *s) {
    struct file *open = NULL;
    struct ops_err e = {0};
    struct stat st;
    size_t n = 0;
    if (s->file[0] != '\0' && stat(path, &st) == 0 &&
        file_open(path, &open, &e) == 0)
        n = s->bytes < open->bytes.n ? (size_t)s->bytes : open->bytes.n;
    uint8_t *all = malloc(n + s->n);
    if (all == NULL) {
        l->scalars.oom = true;
    } else {
        if (n > 0) memcpy(all, open->bytes.p, n);
        memcpy(all + n, s->p, s->n);
        scalars_reset_file(&l->scalars, i);
        summary_read(&l->scalars, i, (struct bytes){all, n + s->n});
        l->files[i].rest = s->n;
        l->files[i].rest_points = s->points;
        l->files[i].unreadable = false;
    }
    free(all);
    if (open != NULL) file_close(open);
}

/* Returns the path of the event file for
 * <logdir>/plugins/profile/<run>/<stem>.ring. A program that had none yet has
 * its points under the pointer's own name. */
static char *events_path(const char *pointer,
                         const struct recovered_scalars *s) {
    const char *end = pointer + strlen(pointer);
    char *path;
    if (s->file[0] == '\0') return strdup(pointer);
    for (int i = 0; i < 4; i++)
        while (end > pointer && *--end != '/') continue;
    int n = asprintf(&path, "%.*s%s%s", (int)(end - pointer), pointer,
                     end > pointer ? "/" : "", s->file);
    return n < 0 ? NULL : path;
}

/* Takes a pointer to the memory of a program: of a dead one the rest is taken,
 * a living one writes it itself. run: where its event file would be. only: the
 * one file that is asked for; NULL for all. */
static void take_ring(struct logdir *l, const char *pointer, const char *run,
                      const char *only) {
    struct recovered_scalars s;
    int rc = recover_scalars(pointer, &s);
    if (rc == RECOVER_NO_MEMORY) l->scalars.oom = true;
    if (rc != 0) return;
    l->lost += s.lost;
    const char *slash = only == NULL ? NULL : strrchr(only, '/');
    const char *base = slash == NULL ? only : slash + 1;
    bool wanted = s.n > 0 && (only == NULL || strcmp(s.file, base) == 0);
    char *path = !wanted        ? NULL
                 : only != NULL ? strdup(only)
                                : events_path(pointer, &s);
    if (wanted && path == NULL) l->scalars.oom = true;
    uint32_t i = path == NULL ? UINT32_MAX : file_of(l, path, run);
    if (i != UINT32_MAX) {
        if (l->files[i].rest != s.n) read_with_rest(l, i, path, &s);
        l->files[i].rest_seen = true;
    }
    free(path);
    recover_scalars_free(&s);
}

/* Takes the memory of the program of one event file that the user named: it is
 * found through the profiles beside it. */
static void take_ring_of(struct logdir *l, const char *file) {
    const char *slash = strrchr(file, '/');
    char *pattern;
    glob_t g;
    int n = slash == NULL ? 0 : (int)(slash - file + 1);
    if (strcspn(file, "*?[\\") < (size_t)n) return; /* glob would take it */
    if (asprintf(&pattern, "%.*splugins/profile/*/*.ring", n, file) < 0) {
        l->scalars.oom = true;
        return;
    }
    if (glob(pattern, GLOB_NOSORT, NULL, &g) == 0) {
        for (size_t i = 0; i < g.gl_pathc; i++)
            take_ring(l, g.gl_pathv[i], ".", file);
        globfree(&g);
    }
    free(pattern);
}

/* Returns "a" for "a/plugins/profile/x": the run of the event files of a
 * program whose profile lies there. */
static char *run_above(const char *run) {
    const char *end = strstr(run, "plugins/profile");
    if (end == NULL) return strdup(*run ? run : ".");
    if (end == run) return strdup(".");
    return strndup(run, (size_t)(end - run - 1));
}

/* Adds what a closed profile says was lost of its program's curves. */
static void take_profile(struct logdir *l, const struct dir_entry *f) {
    uint64_t key[3] = {hash_bytes(f->path, strlen(f->path)), f->st.st_ino,
                       (uint64_t)f->st.st_size};
    uint32_t *at = map_at(&l->losses, hash_bytes(key, sizeof key));
    if (at == NULL) {
        l->scalars.oom = true;
        return;
    }
    if (*at == MAP_NONE) {
        uint64_t lost = profile_scalars_lost(f->path);
        *at = lost < MAP_NONE ? (uint32_t)lost : MAP_NONE - 1;
    }
    l->lost += *at;
}

/* Searches one folder and all below it; run is its name below the root, or
 * "". */
static void search_logdir(struct logdir *l, const char *dir, const char *run,
                          int depth) {
    struct dir_list in;
    if (l->folders >= DIR_MAX_FOLDERS || depth > DIR_MAX_DEPTH) {
        l->limited = true;
        return;
    }
    l->folders++;
    if (dir_list(dir, &in, NULL) == OPS_ELIMIT) l->scalars.oom = true;
    for (size_t i = 0; i < in.n; i++) {
        const struct dir_entry *f = &in.v[i];
        if (f->folder) {
            char *below = *run ? path_join(run, f->name) : strdup(f->name);
            if (below != NULL) search_logdir(l, f->path, below, depth + 1);
            else l->scalars.oom = true;
            free(below);
        } else if (logdir_is_event_file(f->name)) {
            take_file(l, f->path, *run ? run : ".", &f->st);
        } else if (bytes_ends(bytes_of(f->name), ".xplane.pb")) {
            take_profile(l, f);
        } else if (bytes_ends(bytes_of(f->name), ".ring")) {
            char *above = run_above(run);
            if (above != NULL) take_ring(l, f->path, above, NULL);
            else l->scalars.oom = true;
            free(above);
        }
    }
    dir_list_free(&in);
}

int logdir_refresh(struct logdir *l, struct ops_err *e) {
    struct stat st;
    if (stat(l->root, &st) != 0) {
        fail(e, OPS_EIO, "cannot open: %s", strerror(errno));
        return fail_in(e, l->root);
    }
    l->folders = 0;
    l->lost = 0;
    if (S_ISDIR(st.st_mode)) {
        search_logdir(l, l->root, "", 0);
    } else {
        take_file(l, l->root, ".", &st);
        take_ring_of(l, l->root);
    }
    for (size_t i = 0; i < l->nfiles; i++) {
        struct logdir_file *f = &l->files[i];
        /* The memory is gone: its contents were written into the file. */
        if (f->rest > 0 && !f->rest_seen) {
            scalars_reset_file(&l->scalars, (uint32_t)i);
            *f = (struct logdir_file){0};
            if (stat(l->scalars.files[i].path, &st) == 0 &&
                S_ISREG(st.st_mode) &&
                logdir_is_event_file(l->scalars.files[i].path))
                read_on(l, (uint32_t)i, &st);
        }
        f->rest_seen = false;
    }
    if (l->scalars.oom) return fail_oom(e);
    if (l->fatal.code != 0 && e != NULL) *e = l->fatal;
    return l->fatal.code;
}

int logdir_open(struct logdir *l, const char *path, struct ops_err *e) {
    *l = (struct logdir){0};
    l->root = strdup(path);
    int rc = l->root && scalars_init(&l->scalars) ? logdir_refresh(l, e)
                                                  : fail_oom(e);
    if (rc == 0 && l->nfiles == 1 &&
        strcmp(l->root, l->scalars.files[0].path) == 0) {
        /* one file, named by the user: it must be what they take it for */
        const struct logdir_file *f = &l->files[0];
        const struct scalar_file *s = &l->scalars.files[0];
        if (f->unreadable) rc = fail(e, OPS_EIO, "%s", f->reason);
        else if (s->records == 0 && f->size > 0)
            rc = fail(e, OPS_EFORMAT,
                      "not an event file: no record's checksum holds");
        if (rc != 0) fail_in(e, path);
    }
    if (rc != 0) logdir_free(l);
    return rc;
}

void logdir_describe(const struct logdir *l, bool follow, struct result *r) {
    const struct scalars *s = &l->scalars;
    size_t other = 0, said = r->nremarks, unreadable = 0, first = 0;
    for (size_t i = 0; i < s->nfiles; i++) {
        const struct scalar_file *f = &s->files[i];
        result_source(r, (struct result_source){
                             .path = f->path,
                             .format = "tfevents",
                             .rank = -1,
                             .epoch_ns = f->any && fabs(f->first_wall) < 9e9
                                             ? (int64_t)(f->first_wall * 1e9)
                                             : 0,
                             .has_epoch = f->any});
        result_note(r, NOTE_RECORD_BAD, f->bad_records);
        result_note(r, NOTE_RECORD_LOST, f->lost_bytes);
        result_note(r, NOTE_BAD_EVENT, f->bad_events);
        result_note(r, NOTE_FILE_CUT, f->cut && !follow);
        result_note(r, NOTE_TAGS_SKIPPED, f->skipped);
        other += f->records == 0 && f->cut && l->files[i].size > 0;
        if (l->files[i].unreadable && unreadable++ == 0) first = i;
    }
    result_note(r, NOTE_SCALARS_LOST, l->lost);
    if (unreadable > 0)
        result_remark_n(r, unreadable,
                        "%zu event file[|s] cannot be read; [it|the first] is "
                        "%.*s: %s",
                        unreadable, CUT(200, s->files[first].path),
                        l->files[first].reason);
    if (other > 0)
        result_remark_n(r, other,
                        "%zu file[ is|s are] named like [an event file|event "
                        "files] but hold[s|] no "
                        "whole record",
                        other);
    uint64_t rest = 0;
    for (size_t i = 0; i < l->nfiles; i++) rest += l->files[i].rest_points;
    if (rest > 0)
        result_remark_n(r, rest,
                        "%" PRIu64
                        " point[ was|s were] taken from the memory of a "
                        "program that ended without writing [it|them]",
                        rest);
    if (l->limited)
        result_remark(r, "the folder is too deep or too large: not all of it "
                         "was searched");
    if (s->nfiles > 0 && s->nseries == 0 && r->nremarks == said && !follow)
        result_remark(r, "the event files hold no scalar: they are empty, or "
                         "have graphs and the like alone");
    if (s->nfiles == 0)
        result_missing(r, "scalars",
                       "no file below this folder has "
                       "\"tfevents\" in its name",
                       "write them with opscope's ops_scalar, PyTorch's "
                       "SummaryWriter, tensorboardX or tf.summary");
}
