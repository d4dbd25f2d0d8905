/* SPDX-License-Identifier: Apache-2.0
 * The runs of a log folder. What a run is, when it was taken and who writes it
 * is known from its files without reading them; hosts, ranks and steps are
 * inside. A folder may have thousands of runs: only small ones are read unless
 * the user wants more. */
#include "load/run_table.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/sort.h"
#include "base/vec.h"
#include "import/import.h"
#include "load/runs.h"
#include "load/runs_impl.h"
#include "model/result.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What is read without being asked for: about a second's work, also where a
 * byte of the file is twenty of JSON. */
#define SMALL_RUN  (INT64_C(8) << 20)
#define SMALL_RUNS (INT64_C(32) << 20)

enum { NAMED = 5 }; /* files and folders that cannot be read and are named */

/* What reading a run tells; -1 and NULL: it does not. */
struct run_facts {
    int64_t hosts, ranks, steps, step;
    int64_t profiles;
    const char *state;
};

static const struct column cols[] = {
    {"run", NULL, NULL, "Its name, as --run takes it.", COL_TEXT, COL_KEY},
    {"taken", NULL, NULL,
     "When: the time in its name, else when its newest file was written (UTC).",
     COL_TEXT, 0},
    {"formats", NULL, NULL, "What its files are: `help formats` lists them.",
     COL_TEXT, 0},
    {"files", NULL, NULL, "How many files it has.", COL_INT, 0},
    {"bytes", NULL, "bytes", "Their size on disk.", COL_BYTES, COL_SIZE},
    {"hosts", NULL, NULL, "Hosts that its files name.", COL_INT, 0},
    {"ranks", NULL, NULL, "Ranks that its files are of.", COL_INT, 0},
    {"steps", NULL, NULL,
     "Steps that were recorded, of the rank that has most; null where they "
     "cannot be told.",
     COL_INT, 0},
    {"step_us", "step time", "us", "The median step.", COL_TIME, 0},
    {"state", NULL, NULL,
     "finished: nobody here writes it and, as far as it was read, it is whole; "
     "running: a program writes it; died: its program ended without closing "
     "it; unfinished: it was not closed, and its program is not on this "
     "machine; cut: a file ends too early; unreadable.",
     COL_TEXT, 0},
    {"profiles", NULL, NULL,
     "Profiles that its files make: those of one job are one.", COL_INT,
     COL_DETAIL},
    {"taken_unix_s", NULL, "s", "The column taken, as Unix time.", COL_INT,
     COL_DETAIL},
};

/* Returns what the files themselves say of who writes the run. */
static const char *state_of(const struct run *run,
                            const struct run_table_ask *ask, struct result *r) {
    bool dead = false, part = false;
    const char *slash = strrchr(run->files[0].path, '/');
    size_t n = slash != NULL ? (size_t)(slash - run->files[0].path) : 0;
    char *folder = arena_fmt(&r->arena, "%.*s", (int)n, run->files[0].path);
    if (n == 0) folder = arena_str(&r->arena, slash != NULL ? "/" : ".");
    if (folder == NULL) r->oom = true;
    for (size_t i = 0; i < run->n; i++) {
        const struct run_file *f = &run->files[i];
        struct own_file own;
        enum import_writer w = f->importer && f->importer->writer
                                   ? f->importer->writer(f->path)
                                   : WRITER_UNKNOWN;
        if (w == WRITER_ALIVE) return "running";
        dead |= w == WRITER_DEAD;
        part |= own_file_of(f->path, &own) && own.form == OWN_PART;
    }
    if (folder && ask->is_written && ask->is_written(ask->ctx, folder))
        return "running";
    return dead ? "died" : part ? "unfinished" : "finished";
}

/* Counts the ranks and hosts of traces. Returns false if out of memory. */
static bool count_places(const struct loaded *l, struct run_facts *f) {
    struct map hosts = {0}, ranks = {0};
    bool ok = true;
    f->hosts = f->ranks = 0;
    for (size_t i = 0; i < l->n; i++)
        for (size_t k = 0; ok && k < l->v[i]->nsources; k++) {
            const struct source *s = &l->v[i]->sources[k];
            struct bytes host = strs_bytes(&l->v[i]->strs, s->host);
            if (s->host != 0) {
                uint32_t *at = map_at(&hosts, hash_bytes(host.p, host.n));
                ok = at != NULL;
                if (ok && *at == MAP_NONE) *at = (uint32_t)++f->hosts;
            }
            if (ok && s->rank >= 0) {
                uint32_t *at = map_at(&ranks, (uint64_t)s->rank);
                ok = at != NULL;
                if (ok && *at == MAP_NONE) *at = (uint32_t)++f->ranks;
            }
        }
    map_free(&hosts);
    map_free(&ranks);
    if (f->hosts == 0) f->hosts = -1;
    if (f->ranks == 0) f->ranks = -1;
    return ok;
}

/* Counts the steps of traces, and finds the median one. */
static bool count_steps(const struct loaded *l, struct run_facts *f) {
    uint64_t *durs = NULL;
    size_t n = 0, cap = 0;
    bool ok = true;
    for (size_t i = 0; i < l->n; i++)
        for (size_t k = 0; ok && k < l->v[i]->nsources; k++) {
            const struct source *s = &l->v[i]->sources[k];
            int64_t have = (int64_t)(s->step_end - s->step_first);
            if (have == 0 || s->step_rule == STEPS_WHOLE) continue;
            if (have > f->steps) f->steps = have;
            for (size_t x = s->step_first; ok && x < s->step_end; x++) {
                ok = VEC_ROOM(durs, n, cap);
                if (ok) durs[n++] = (uint64_t)l->v[i]->steps[x].dur;
            }
        }
    ok = ok && sort_numbers(durs, n);
    if (ok && n > 0) f->step = (int64_t)durs[(n - 1) / 2];
    free(durs);
    return ok;
}

/* Reads a run. What cannot be read is no failure: the table says so. */
static int read_run(const struct run *run, const struct run_table_ask *ask,
                    struct run_facts *f, struct result *r, struct ops_err *e) {
    struct loaded l;
    struct ops_err why = {0};
    int rc = runs_load(run->files, run->n, ask->io, &l, &why);
    if (rc == OPS_ECANCEL || err_is_oom(&why))
        return fail(e, rc, "%s", why.text);
    if (rc != 0) {
        f->state = "unreadable";
        result_missing(r, run->name, why.text, NULL);
        return 0;
    }
    bool cut = false;
    f->profiles = (int64_t)l.n;
    for (size_t i = 0; i < l.n; i++)
        cut |= l.v[i]->notes[NOTE_FILE_CUT] > 0 ||
               l.v[i]->notes[NOTE_GZIP_DAMAGED] > 0 ||
               l.v[i]->notes[NOTE_FILE_SHRANK] > 0;
    if (cut && strcmp(f->state, "finished") == 0) f->state = "cut";
    bool ok = count_places(&l, f) && count_steps(&l, f);
    loaded_free(&l);
    return ok ? 0 : fail_oom(e);
}

/* Puts the formats of a run's files, each once, in the order of the files. */
static void put_formats(struct result *r, const struct run *run) {
    char text[256] = "";
    size_t used = 0, n = 0;
    const struct importer *seen[16];
    for (size_t i = 0; i < run->n && n < COUNT(seen); i++) {
        const struct importer *imp = run->files[i].importer;
        size_t k = 0;
        while (k < n && seen[k] != imp) k++;
        if (imp == NULL || k < n) continue;
        seen[n++] = imp;
        int len = snprintf(text + used, sizeof text - used, "%s%s",
                           used > 0 ? ", " : "", imp->format.name);
        if (len < 0 || (size_t)len >= sizeof text - used) break;
        used += (size_t)len;
    }
    if (n > 0) cell_text(r, "formats", text);
}

static void put_count(struct result *r, const char *col, int64_t v) {
    if (v >= 0) cell_int(r, col, v);
}

static void put_run(struct result *r, const struct run *run,
                    const struct run_facts *f) {
    char when[64];
    time_t s = (time_t)(run->time / 1000000000);
    struct tm tm;
    result_row(r);
    cell_text(r, "run", run->name);
    if (gmtime_r(&s, &tm) != NULL &&
        strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &tm) > 0)
        cell_text(r, "taken", when);
    put_formats(r, run);
    cell_int(r, "files", (int64_t)run->n);
    cell_int(r, "bytes", run->bytes);
    put_count(r, "hosts", f->hosts);
    put_count(r, "ranks", f->ranks);
    put_count(r, "steps", f->steps);
    put_count(r, "step_us", f->step);
    cell_text(r, "state", f->state);
    put_count(r, "profiles", f->profiles);
    cell_int(r, "taken_unix_s", (int64_t)s);
}

/* Says what lies in the folder and is in no row. */
static void say_rest(struct result *r, const char *path,
                     const struct run_list *l, size_t unread) {
    size_t lost = 0;
    if (l->n > 1)
        result_remark(r,
                      "%s is what an analysis of %s takes without --run: the "
                      "newest.",
                      l->v[l->n - 1].name, path);
    if (l->curves > 0)
        result_remark(r,
                      "%zu more folder%s curves alone: 'opscope scalars' "
                      "shows them.",
                      l->curves, l->curves == 1 ? " has" : "s have");
    if (unread > 0) {
        char what[96];
        snprintf(what, sizeof what, "hosts, ranks and steps of %zu run%s",
                 unread, unread == 1 ? "" : "s");
        result_missing(r, what, "these were not read", "--read all reads them");
    }
    for (size_t i = 0; i < l->n; i++)
        for (size_t k = 0; k < l->v[i].nskips; k++) {
            const struct run_skip *s = &l->v[i].skips[k];
            if (lost++ < NAMED) result_missing(r, s->path, s->why, s->fix);
        }
    for (size_t i = 0; i < l->nshut; i++)
        if (lost++ < NAMED)
            result_missing(r, l->shut[i].path, l->shut[i].why, l->shut[i].fix);
    if (lost > NAMED)
        result_remark_n(r, lost - NAMED,
                        "%zu more [file or folder|files and folders] "
                        "cannot be read, or hold[s|] nothing.",
                        lost - NAMED);
}

static int fill(const char *path, const struct run_list *l,
                const struct run_table_ask *ask, struct result *r,
                struct ops_err *e) {
    int64_t left = SMALL_RUNS;
    size_t unread = 0;
    for (size_t i = l->n; i-- > 0;) {
        const struct run *run = &l->v[i];
        struct run_facts f = {-1, -1, -1, -1, -1, state_of(run, ask, r)};
        bool small = run->bytes <= SMALL_RUN && run->bytes <= left;
        if (ask->reading == READ_ALL || (ask->reading == READ_SMALL && small)) {
            left -= small ? run->bytes : 0;
            TRY(read_run(run, ask, &f, r, e));
        } else {
            unread++;
        }
        put_run(r, run, &f);
    }
    say_rest(r, path, l, unread);
    return result_done(r, e);
}

int run_table(const char *path, const struct run_table_ask *ask,
              struct result *out, struct ops_err *e) {
    struct run_list l;
    *out = (struct result){0};
    if (runs_find(path, &l, e) != 0) return fail_in(e, path);
    for (size_t i = 0; i < l.n; i++) /* a file that was named itself */
        for (size_t k = 0; k < l.v[i].n; k++) {
            struct run_file *f = &l.v[i].files[k];
            bool maybe;
            if (f->importer == NULL &&
                !import_sniff(f->path, &f->importer, &maybe)) {
                runs_free(&l);
                return fail_oom(e);
            }
        }
    result_init(out, "runs", "Runs");
    result_cols(out, cols, COUNT(cols));
    out->in_order = true;
    int rc = fill(path, &l, ask, out, e);
    runs_free(&l);
    if (rc != 0) result_free(out);
    return rc;
}
