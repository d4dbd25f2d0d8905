/* SPDX-License-Identifier: Apache-2.0
 * Searching folders for runs. Links to folders are not followed, depth and
 * number are bounded: a log folder may be anything. */
#include "load/runs.h"

#include "base/io/dir.h"
#include "base/sum.h"
#include "base/vec.h"
#include "import/import.h"
#include "load/runs_impl.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct search {
    struct run_list *out;
    size_t root_len; /* of the path that was searched, with its slash */
};

static void free_run(struct run *r) {
    for (size_t i = 0; i < r->n; i++) free(r->files[i].path);
    for (size_t i = 0; i < r->nskips; i++) free(r->skips[i].path);
    free(r->skips);
    free(r->files);
    free(r->name);
}

void runs_free(struct run_list *l) {
    for (size_t i = 0; i < l->n; i++) free_run(&l->v[i]);
    for (size_t i = 0; i < l->nshut; i++) free(l->shut[i].path);
    free(l->shut);
    free(l->v);
    free(l->bad);
    *l = (struct run_list){0};
}

/* Turns seconds into ns; years that do not fit become the nearest that do. */
static int64_t to_ns(time_t s) {
    int64_t ns;
    if (!__builtin_mul_overflow((int64_t)s, 1000000000, &ns)) return ns;
    return s < 0 ? INT64_MIN : INT64_MAX;
}

/* Returns the time, in ns, in a name that ends like 2026_11_15_03_29_38, or -1;
 * with "_2" behind it, it is the second run of that second. Files may have been
 * copied since, so the name tells more than their times. */
static int64_t time_in_name(const char *name) {
    const char *last = strrchr(name, '/');
    struct tm tm = {0};
    last = last ? last + 1 : name;
    size_t n = strlen(last), more = n > 20 ? n - 20 : 0;
    if (n < 19) return -1;
    if (n != 19 && (last[19] != '_' || more == 0 || more > 5 ||
                    strspn(last + 20, "0123456789") != more))
        return -1;
    for (int i = 0; i < 19; i++) {
        bool sep = i == 4 || i == 7 || i == 10 || i == 13 || i == 16;
        if (sep ? last[i] != '_' : last[i] < '0' || last[i] > '9') return -1;
    }
    if (strptime(last, "%Y_%m_%d_%H_%M_%S", &tm) == NULL) return -1;
    return sat_add(to_ns(timegm(&tm)), more ? atol(last + 20) : 0);
}

static const char no_permission[] = "it may not be read";
static const char ask_for_it[] = "ask its owner for the permission";

/* Remembers a file that is named like a profile and cannot be one. */
static bool skip_file(struct run *run, const struct dir_entry *f) {
    if (!strstr(f->name, ".xplane.pb") && !strstr(f->name, ".trace.json"))
        return true;
    if (!VEC_ROOM(run->skips, run->nskips, run->cap_skips)) return false;
    char *copy = strdup(f->path);
    if (copy == NULL) return false;
    bool shut = access(f->path, R_OK) != 0;
    run->skips[run->nskips++] = (struct run_skip){
        copy,
        shut                 ? no_permission
        : f->st.st_size == 0 ? "it is empty"
                             : "its contents are of no format that can be read",
        shut ? ask_for_it
             : "its program was probably stopped before it had saved"};
    return true;
}

static bool add_file(struct run *run, const char *path,
                     const struct importer *imp) {
    if (!VEC_ROOM(run->files, run->n, run->cap)) return false;
    char *copy = strdup(path);
    if (copy != NULL) run->files[run->n++] = (struct run_file){copy, imp};
    return copy != NULL;
}

/* Is a file of that role of use in a folder that has others? Plain events
 * beside a capture say the same once more; event files are the profile only
 * where there is nothing else. */
static bool is_wanted(enum format_role role, bool capture, bool profile) {
    if (role == ROLE_CURVES) return !profile;
    return !capture || role != ROLE_PLAIN;
}

/* Keeps the profiles among a folder's files. Returns false if out of memory. */
static bool take_files(struct search *s, const struct dir_list *l,
                       struct run *run) {
    const struct importer **imp = calloc(l->n + 1, sizeof *imp);
    bool capture = false, profile = false, maybe, ok = imp != NULL;
    run->plain = true;
    for (size_t i = 0; ok && i < l->n; i++) {
        if (l->v[i].folder) continue;
        ok = import_sniff(l->v[i].path, &imp[i], &maybe);
        s->out->files++;
        capture |= imp[i] && imp[i]->format.role == ROLE_CAPTURE;
        profile |= imp[i] && imp[i]->format.role != ROLE_CURVES;
    }
    run->scalars = !profile;
    for (size_t i = 0; ok && i < l->n; i++) {
        const struct dir_entry *f = &l->v[i];
        if (imp[i] == NULL) ok = f->folder || skip_file(run, f);
        if (!imp[i] || !is_wanted(imp[i]->format.role, capture, profile))
            continue;
        ok = add_file(run, f->path, imp[i]);
        run->bytes = sat_add(run->bytes, f->st.st_size);
        int64_t m = sat_add(to_ns(f->st.st_mtim.tv_sec), f->st.st_mtim.tv_nsec);
        if (m > run->time) run->time = m;
        if (imp[i]->format.role != ROLE_PLAIN && profile) run->plain = false;
    }
    free(imp);
    return ok;
}

/* Remembers a folder that may not be read. */
static bool skip_folder(struct run_list *l, const char *path) {
    char *copy = VEC_ROOM(l->shut, l->nshut, l->cap_shut) ? strdup(path) : NULL;
    if (copy == NULL) return false;
    l->shut[l->nshut++] = (struct run_skip){copy, no_permission, ask_for_it};
    return true;
}

/* Searches one folder and all below it. */
static int search_folder(struct search *s, const char *dir, int depth,
                         struct ops_err *e) {
    struct dir_list l;
    if (++s->out->folders > DIR_MAX_FOLDERS || depth > DIR_MAX_DEPTH) return 0;
    TRY(dir_list(dir, &l, e));
    struct run run = {0};
    bool ok = take_files(s, &l, &run);
    if (ok && run.n > 0) {
        /* The run's name: the folder below the root, "plugins/profile/" left
         * out. */
        const char *below = strlen(dir) > s->root_len ? dir + s->root_len : "";
        if (*below == '\0') {
            const char *last = strrchr(dir, '/');
            below = last && last[1] ? last + 1 : dir;
        }
        run.name = strdup(below);
        char *mid = run.name ? strstr(run.name, "plugins/profile/") : NULL;
        if (mid != NULL && mid[16] != '\0')
            memmove(mid, mid + 16, strlen(mid + 16) + 1);
        int64_t named = run.name ? time_in_name(run.name) : -1;
        if (named >= 0) run.time = named;
        ok = run.name && VEC_ROOM(s->out->v, s->out->n, s->out->cap);
        if (ok) s->out->v[s->out->n++] = run;
    }
    if (ok && run.n == 0 && run.nskips > 0 && s->out->bad == NULL)
        s->out->bad = strdup(run.skips[0].path);
    if (!ok || run.n == 0) free_run(&run);
    int rc = ok ? 0 : fail_oom(e);
    for (size_t i = 0; i < l.n && rc != OPS_ELIMIT; i++) {
        struct ops_err below; /* a folder that cannot be read is no profile */
        if (!l.v[i].folder) continue;
        rc = search_folder(s, l.v[i].path, depth + 1, &below);
        if (rc == OPS_EIO && access(l.v[i].path, R_OK) != 0 &&
            !skip_folder(s->out, l.v[i].path))
            rc = fail_oom(&below);
        if (rc == OPS_ELIMIT && e != NULL) *e = below;
    }
    dir_list_free(&l);
    return rc == OPS_ELIMIT ? rc : 0;
}

/* Puts plain runs first, then older before newer ones. */
static int by_age(const void *a, const void *b) {
    const struct run *x = a, *y = b;
    if (x->plain != y->plain) return x->plain ? -1 : 1;
    if (x->time != y->time) return x->time < y->time ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Adds the files beside one of a recording that is not closed: it lies in
 * several files, and naming one means all. */
static bool add_siblings(struct run *run, const char *path) {
    struct own_file f;
    struct dir_list l;
    if (!own_file_of(path, &f) || f.form == OWN_WHOLE) return true;
    const char *slash = strrchr(path, '/');
    char *dir = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    if (dir == NULL) return false;
    int rc = dir_list(dir, &l, NULL);
    bool ok = rc != OPS_ELIMIT;
    for (size_t i = 0; ok && i < l.n; i++) {
        const char *name = slash ? l.v[i].path : l.v[i].name;
        if (!l.v[i].folder && strcmp(name, path) != 0 &&
            own_same_stem(name, path))
            ok = add_file(run, name, NULL);
    }
    dir_list_free(&l);
    free(dir);
    return ok;
}

int runs_find(const char *path, struct run_list *out, struct ops_err *e) {
    *out = (struct run_list){0};
    struct stat st;
    if (stat(path, &st) != 0)
        return fail(e, OPS_EIO, "cannot open: %s", strerror(errno));
    if (!S_ISDIR(st.st_mode)) {
        /* The run has the one file that was named. */
        struct run run = {.name = strdup(path),
                          .time = sat_add(to_ns(st.st_mtim.tv_sec),
                                          st.st_mtim.tv_nsec),
                          .bytes = st.st_size};
        bool ok = run.name && add_file(&run, path, NULL) &&
                  add_siblings(&run, path) &&
                  VEC_ROOM(out->v, out->n, out->cap);
        if (ok) {
            out->v[out->n++] = run;
            return 0;
        }
        free_run(&run);
        return fail_oom(e);
    }
    size_t n = strlen(path);
    struct search s = {
        .out = out,
        .root_len = n + (n > 0 && path[n - 1] != '/'),
    };
    int rc = search_folder(&s, path, 0, e);
    if (rc == 0 && out->n == 0 && out->bad != NULL)
        rc = fail(e, OPS_EFORMAT,
                  "no profile in this folder: %s is named like "
                  "one, but empty, damaged or not readable",
                  out->bad);
    else if (rc == 0 && out->n == 0)
        rc = fail(e, OPS_EFORMAT,
                  "no profile in this folder: looked at %zu "
                  "files in %zu folders for *.xplane.pb (in plugins/profile/"
                  "<run>/), *.pt.trace.json[.gz], Chrome JSON and RunMetadata",
                  out->files, out->folders);
    if (rc != 0) {
        runs_free(out);
        return rc;
    }
    /* The curves beside the profiles of a log folder are no run to choose
     * from. */
    size_t kept = 0, profiles = 0;
    for (size_t i = 0; i < out->n; i++) profiles += !out->v[i].scalars;
    for (size_t i = 0; i < out->n && profiles > 0; i++) {
        if (out->v[i].scalars) free_run(&out->v[i]);
        else out->v[kept++] = out->v[i];
    }
    out->curves = profiles > 0 ? out->n - profiles : 0;
    if (profiles > 0) out->n = kept;
    if (out->n > 1) qsort(out->v, out->n, sizeof *out->v, by_age);
    return 0;
}

int runs_pick(const struct run_list *l, const char *name,
              const struct run **out, struct ops_err *e) {
    *out = NULL;
    if (name == NULL && l->n > 0) *out = &l->v[l->n - 1];
    for (size_t i = 0; name != NULL && i < l->n; i++) {
        const char *last = strrchr(l->v[i].name, '/');
        if (strcmp(l->v[i].name, name) == 0 ||
            (last != NULL && strcmp(last + 1, name) == 0))
            *out = &l->v[i];
    }
    if (*out != NULL) return 0;
    char list[256] = "";
    size_t used = 0;
    for (size_t i = l->n; i-- > 0 && used + 1 < sizeof list;) {
        int k = snprintf(list + used, sizeof list - used, "%s%s",
                         used ? ", " : "", l->v[i].name);
        if (k < 0) break;
        used += (size_t)k;
    }
    bool cut = used >= sizeof list;
    return fail(e, OPS_EUSAGE, "no run called '%s' here; there are %zu: %s%s",
                name ? name : "", l->n, list,
                cut ? "... ('opscope runs' lists them)" : "");
}
