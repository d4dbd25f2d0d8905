/* SPDX-License-Identifier: Apache-2.0
 * Which profiles did the program write itself? A framework's profiler puts its
 * files where the program says: mostly below the working folder, or in a folder
 * that the command line names. Both are looked through when the program is
 * over, folders near the top first and no further than a limit, for files that
 * are named like profiles, are as new as the program, and are profiles. */
#include "capture/written.h"

#include "base/io/dir.h"
#include "base/vec.h"
#include "capture/launch.h"
#include "import/import.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    ENTRIES = 20000,     /* names that are looked at: some 10 ms */
    SNIFFED = 200,       /* files that are opened */
    SLACK_NS = 20000000, /* by which times of files lag behind the clock */
};

struct search {
    struct written *out;
    int64_t since;   /* Unix ns */
    struct stat own; /* the folder of the run: what is there is ours */
    char **queue;    /* folders to look through, [next, n) */
    size_t next, n, cap;
    size_t entries, sniffed;
    bool oom;
};

static void enqueue(struct search *s, char *path) {
    if (path == NULL || !VEC_ROOM(s->queue, s->n, s->cap)) {
        free(path);
        s->oom = true;
        return;
    }
    s->queue[s->n++] = path;
}

static bool ends_with(const char *name, const char *end) {
    size_t n = strlen(name), k = strlen(end);
    return n > k && memcmp(name + n - k, end, k) == 0;
}

/* What `opscope record` saw of another program is none of this one's. */
static bool named_like_one(const char *name) {
    if (strstr(name, "_record.xplane.pb") || strstr(name, "_record_"))
        return false;
    static const char *const ends[] = {".xplane.pb", ".json", ".json.gz",
                                       ".json.zst", ".pickle"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (ends_with(name, ends[i])) return true;
    return false;
}

/* Was it written since then? A file may name a year that no count of ns
 * holds. */
static bool is_since(const struct timespec *when, int64_t unix_ns) {
    const int64_t second = 1000000000;
    if (when->tv_sec != unix_ns / second)
        return when->tv_sec > unix_ns / second;
    return when->tv_nsec >= unix_ns % second;
}

/* Takes the file if it is a profile of this run; else frees its path. */
static void look_at_file(struct search *s, char *path) {
    struct stat st;
    const struct importer *imp = NULL;
    bool maybe;
    if (path == NULL || stat(path, &st) != 0 || !S_ISREG(st.st_mode) ||
        !is_since(&st.st_mtim, s->since) || s->sniffed >= SNIFFED) {
        free(path);
        return;
    }
    s->sniffed++;
    if (!import_sniff(path, &imp, &maybe)) s->oom = true;
    struct written *w = s->out;
    if (imp == NULL || !VEC_ROOM(w->v, w->n, w->cap)) {
        free(path);
        return;
    }
    w->v[w->n++] = (struct written_file){path, st.st_mtim};
}

/* Looks through one folder; those in it wait for their turn. */
static void look_into(struct search *s, const char *dir) {
    struct stat st;
    DIR *d = opendir(dir);
    if (d == NULL) return;
    bool ours = fstat(dirfd(d), &st) != 0 ||
                (st.st_dev == s->own.st_dev && st.st_ino == s->own.st_ino);
    for (struct dirent *x; !ours && (x = readdir(d)) != NULL;) {
        if (x->d_name[0] == '.') continue;
        if (++s->entries > ENTRIES) break;
        bool folder = x->d_type == DT_DIR;
        if (x->d_type == DT_UNKNOWN)
            folder = fstatat(dirfd(d), x->d_name, &st, AT_SYMLINK_NOFOLLOW) ==
                         0 &&
                     S_ISDIR(st.st_mode);
        if (!folder && !named_like_one(x->d_name)) continue;
        char *path = strcmp(dir, ".") == 0 ? strdup(x->d_name)
                                           : path_join(dir, x->d_name);
        if (folder) enqueue(s, path);
        else look_at_file(s, path);
    }
    closedir(d);
}

/* Puts the folder on the list if there is one of that name that is not the
 * working folder, and that does not lie in it. */
static void add_named(struct search *s, const char *word) {
    struct stat st;
    char *real, *here;
    if (*word == '\0' || stat(word, &st) != 0 || !S_ISDIR(st.st_mode)) return;
    real = realpath(word, NULL);
    here = realpath(".", NULL);
    size_t n = here != NULL ? strlen(here) : 0;
    if (real != NULL && here != NULL &&
        (strncmp(real, here, n) != 0 || (real[n] != '/' && real[n] != '\0')))
        enqueue(s, strdup(word));
    free(real);
    free(here);
}

static int by_age(const void *a, const void *b) {
    const struct written_file *x = a, *y = b;
    if (x->when.tv_sec != y->when.tv_sec)
        return x->when.tv_sec > y->when.tv_sec ? -1 : 1;
    if (x->when.tv_nsec != y->when.tv_nsec)
        return x->when.tv_nsec > y->when.tv_nsec ? -1 : 1;
    return strcmp(x->path, y->path);
}

void written_find(char *const *argv, int64_t since_unix_ns, const char *run,
                  struct written *out) {
    *out = (struct written){0};
    struct search s = {.out = out, .since = since_unix_ns - SLACK_NS};
    if (stat(run, &s.own) != 0) memset(&s.own, 0, sizeof s.own);
    for (size_t i = 1; argv[0] != NULL && argv[i] != NULL; i++) {
        const char *value = strchr(argv[i], '=');
        add_named(&s, value != NULL ? value + 1 : argv[i]);
    }
    enqueue(&s, strdup("."));
    while (s.next < s.n && s.entries <= ENTRIES && !s.oom)
        look_into(&s, s.queue[s.next++]);
    for (size_t i = 0; i < s.n; i++) free(s.queue[i]);
    free(s.queue);
    if (out->n > 1) qsort(out->v, out->n, sizeof *out->v, by_age);
}

void written_free(struct written *w) {
    for (size_t i = 0; i < w->n; i++) free(w->v[i].path);
    free(w->v);
    *w = (struct written){0};
}

char *written_place(const struct written *w) {
    if (w->n == 0) return NULL;
    const char *slash = strrchr(w->v[0].path, '/');
    size_t dir = slash != NULL ? (size_t)(slash - w->v[0].path) : 0;
    for (size_t i = 1; i < w->n; i++) {
        const char *p = w->v[i].path, *at = strrchr(p, '/');
        if (at == NULL || (size_t)(at - p) != dir ||
            memcmp(p, w->v[0].path, dir) != 0)
            dir = 0;
    }
    return w->n > 1 && dir > 0 ? strndup(w->v[0].path, dir)
                               : strdup(w->v[0].path);
}
