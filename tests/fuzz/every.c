/* SPDX-License-Identifier: Apache-2.0
 * every: a profile through every command that reads, in one process.
 *
 * A mutated profile is worth a hundred command lines, and starting a hundred
 * processes takes longer than what they do. So this program starts once and
 * forks for each profile: the child loads it as the command line does, runs
 * all that it is asked for, and writes what comes out of each run behind the
 * other into one file, with a line of an index for each.
 *
 *     every list              verbs and their options, a line each
 *     every serve OUT INDEX   descriptors of two files, which are cut for
 *                             each request; requests on stdin
 *     every zstd LEVEL        stdin, packed by libzstd, to stdout
 *
 * A request is lines, each of them a query string:
 *
 *     path=logs%2Fa.json      what to load; may come again
 *     threads=1               for the first reading
 *     again=2                 threads of a second one, whose results must be
 *                             the same; 0: none
 *     limit=10                seconds of processor time for each run
 *     leaks=1                 look for leaks at the end, which takes long
 *     do=ops&in=json,csv&top=3
 *                             an analysis or a command, formats, its options
 *     go                      that was it
 *
 * The answer is a line: the status that wait() gave. A line of the index is
 *
 *     PASS TASK FORMAT CODE MICROSECONDS PEAK_BYTES START END
 *
 * and before each run "? PASS TASK FORMAT", so that who reads it knows what
 * killed the child. TASK counts the lines with do=; -1 is the loading. CODE is
 * 0 or the error, whose sentence is then the output. PASS "back": the export
 * was read again; "again": the second reading gave something else. */
#include "analyze/analyze.h"
#include "api/query.h"
#include "api/run.h"
#include "base/io/file.h"
#include "cmd/command.h"
#include "export/export.h"
#include "import/import.h"
#include "load/profiles.h"
#include "present/present.h"
#include "ring/sanitized.h"
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zstd.h>

enum { PATHS = 4096, TASKS = 1024, WALL = 6 };

struct task {
    char *text; /* the line, taken apart */
    const char *verb, *formats;
    char *options; /* "" where there are none */
    uint64_t hash; /* of its JSON in the first pass */
    bool has_hash;
};

struct request {
    char *paths[PATHS];
    size_t npaths;
    struct task tasks[TASKS];
    size_t ntasks;
    char *texts[PATHS]; /* what paths point into */
    size_t ntexts;
    int threads, again, limit;
    bool leaks;
};

struct child {
    struct request *q;
    struct profiles p;
    bool loaded;
    int out, index;
    const char *pass;
    int64_t began_us; /* of the run that is going on: processor time */
    off_t start;
};

/* --- memory ----------------------------------------------------------------
 * Under a sanitizer pages tell nothing: freed memory is kept back, and each
 * byte has a shadow. There what malloc() gave out is counted. */

#if SANITIZED_ADDRESS || SANITIZED_THREAD
/* gcc has the functions, but not the header */
int __sanitizer_install_malloc_and_free_hooks(
    void (*on_malloc)(const volatile void *, size_t),
    void (*on_free)(const volatile void *));
size_t __sanitizer_get_allocated_size(const volatile void *p);

static int64_t live_bytes, peak_bytes;

static void on_malloc(const volatile void *p, size_t n) {
    int64_t now = __atomic_add_fetch(&live_bytes, (int64_t)n, __ATOMIC_RELAXED);
    (void)p;
    if (now > __atomic_load_n(&peak_bytes, __ATOMIC_RELAXED))
        __atomic_store_n(&peak_bytes, now, __ATOMIC_RELAXED);
}

static void on_free(const volatile void *p) {
    if (p == NULL) return;
    size_t n = __sanitizer_get_allocated_size(p);
    __atomic_sub_fetch(&live_bytes, (int64_t)n, __ATOMIC_RELAXED);
}

static void memory_start(void) {
    __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
}

static void memory_reset(void) { peak_bytes = live_bytes; }

static int64_t memory_peak(void) { return peak_bytes; }
#else
static void memory_start(void) {}

/* Starts the high-water mark of resident pages anew. */
static void memory_reset(void) {
    FILE *f = fopen("/proc/self/clear_refs", "w");
    if (f == NULL) return;
    fputs("5", f);
    fclose(f);
}

static int64_t memory_peak(void) {
    char line[256];
    long long kb = 0;
    FILE *f = fopen("/proc/self/status", "r");
    if (f == NULL) return 0;
    while (fgets(line, sizeof line, f) != NULL)
        if (sscanf(line, "VmHWM: %lld", &kb) == 1) break;
    fclose(f);
    return kb * 1024;
}
#endif

/* --- one run ------------------------------------------------------------ */

/* This is not clock_gettime(): while a timer runs, that counts ticks. */
static int64_t cpu_us(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (int64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000 +
           u.ru_utime.tv_usec + u.ru_stime.tv_usec;
}

/* Ends the process when a run takes longer: by processor time, or, where it
 * waits for something, by the clock. */
static void set_limit(int seconds) {
    struct itimerval v = {.it_value = {.tv_sec = seconds}};
    setitimer(ITIMER_PROF, &v, NULL);
    alarm((unsigned)(seconds * WALL));
}

static void run_begin(struct child *c, long task, const char *format) {
    dprintf(c->index, "? %s %ld %s\n", c->pass, task, format);
    set_limit(c->q->limit);
    memory_reset();
    c->start = lseek(c->out, 0, SEEK_CUR);
    c->began_us = cpu_us();
}

/* Ends a run; if it failed, the error's sentence is its output. */
static void run_end(struct child *c, long task, const char *format, int rc,
                    const struct ops_err *e) {
    int64_t us = cpu_us() - c->began_us, peak = memory_peak();
    if (rc != 0) dprintf(c->out, "%s", e->text);
    dprintf(c->index, "%s %ld %s %d %lld %lld %lld %lld\n", c->pass, task,
            format, rc, (long long)us, (long long)peak, (long long)c->start,
            (long long)lseek(c->out, 0, SEEK_CUR));
}

/* Returns all that the run wrote, with 64 zero bytes behind it; the caller
 * frees. */
static char *output(const struct child *c, size_t *n) {
    off_t end = lseek(c->out, 0, SEEK_CUR);
    char *p = calloc(1, (size_t)(end - c->start) + 64);
    if (p == NULL) abort();
    *n = 0;
    while (c->start + (off_t)*n < end) {
        ssize_t got = pread(c->out, p + *n, (size_t)(end - c->start) - *n,
                            c->start + (off_t)*n);
        if (got <= 0) abort();
        *n += (size_t)got;
    }
    return p;
}

static uint64_t hash_output(const struct child *c) {
    size_t n;
    char *p = output(c, &n);
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < n; i++) h = (h ^ (uint8_t)p[i]) * 1099511628211u;
    free(p);
    return h;
}

static int task_opts(const struct verb *v, char *text, const char *format,
                     struct opts *o, struct ops_err *e) {
    char *name, *value;
    int more;
    *o = (struct opts){0};
    verb_opts(v, o);
    if (opts_find(o, "format") != NULL) TRY(opts_set(o, "format", format, e));
    while ((more = query_next(&text, &name, &value, e)) > 0)
        TRY(opts_set(o, name, value, e));
    return more;
}

static int run_verb(struct child *c, const struct task *k, const char *format,
                    struct ops_err *e) {
    struct verb v;
    struct opts o;
    struct result r;
    if (!verb_find(k->verb, &v))
        return fail(e, OPS_EUSAGE, "no verb '%s'", k->verb);
    char *text = strdup(k->options);
    if (text == NULL) abort();
    int rc = task_opts(&v, text, format, &o, e);
    if (rc == 0 && v.analysis == NULL) {
        char *argv[PATHS + 1];
        for (size_t i = 0; i < c->q->npaths; i++) argv[i] = c->q->paths[i];
        argv[c->q->npaths] = NULL;
        rc = v.command->run(&o, (int)c->q->npaths, argv, e);
    } else if (rc == 0) {
        o.brief = show_as(&o)->brief && !opts_flag(&o, "verbose");
        rc = profiles_run(&c->p, v.analysis, &o, show_as(&o)->top, &r, e);
        if (rc == 0) {
            rc = show_result_on(c->out, &r, &o, e);
            result_free(&r);
        }
    }
    free(text);
    return rc;
}

/* Is there anything to run it on? */
static bool can_run(const struct child *c, const struct task *k) {
    struct verb v;
    return c->loaded || !verb_find(k->verb, &v) || v.analysis == NULL;
}

/* --- there and back ----------------------------------------------------- */

static int back(struct child *c, struct trace *u, char *text, size_t n,
                struct ops_err *e) {
    const struct trace *t = c->p.v[0].trace;
    struct import_opts o = {.threads = 1};
    TRY(import_bytes((struct bytes){(uint8_t *)text, n}, "a.json", u, &o, e));
    TRY(trace_seal(u, e));
    if (u->spans.n == t->spans.n && u->links.n == t->links.n &&
        u->mem.n == t->mem.n && u->nooms == t->nooms)
        return 0;
    return fail(e, OPS_EFORMAT,
                "%zu spans, %zu links, %zu memory events and "
                "%zu failed allocations come back as %zu, %zu, %zu and %zu",
                t->spans.n, t->links.n, t->mem.n, t->nooms, u->spans.n,
                u->links.n, u->mem.n, u->nooms);
}

/* Writes the trace as every export there is, and reads each again. */
static void convert(struct child *c, long task) {
    struct ops_err e = {0};
    if (!c->loaded || c->p.n != 1) return;
    for (size_t i = 0; exporters[i] != NULL; i++) {
        struct export_form form = {.exporter = exporters[i]};
        run_begin(c, task, exporters[i]->name);
        int rc = export_write(c->p.v[0].trace, form, c->out, &e);
        run_end(c, task, exporters[i]->name, rc, &e);
        if (rc != 0 || strcmp(exporters[i]->name, "chrome") != 0) continue;
        size_t n;
        char *text = output(c, &n);
        const char *pass = c->pass;
        struct trace *u = trace_new();
        if (u == NULL) abort();
        c->pass = "back";
        run_begin(c, task, "chrome");
        run_end(c, task, "chrome", back(c, u, text, n, &e), &e);
        c->pass = pass;
        trace_free(u);
        free(text);
    }
}

/* --- one profile -------------------------------------------------------- */

static int load(struct child *c, int threads) {
    struct ops_err e = {0};
    struct import_opts io = {.threads = threads};
    run_begin(c, -1, "load");
    int rc = profiles_open(c->q->paths, c->q->npaths, NULL, &io, &c->p, &e);
    c->loaded = rc == 0;
    run_end(c, -1, "load", rc, &e);
    return rc;
}

static void run_task(struct child *c, size_t i) {
    struct task *k = &c->q->tasks[i];
    char formats[64], *rest = formats;
    if (!can_run(c, k)) return;
    snprintf(formats, sizeof formats, "%s", k->formats);
    for (char *f; (f = strsep(&rest, ",")) != NULL;) {
        struct ops_err e = {0};
        run_begin(c, (long)i, f);
        int rc = run_verb(c, k, f, &e);
        run_end(c, (long)i, f, rc, &e);
        if (strcmp(f, "json") != 0) continue;
        k->hash = hash_output(c);
        k->has_hash = true;
    }
}

/* Runs each analysis again and keeps nothing of what is the same. */
static void run_again(struct child *c, size_t i) {
    struct task *k = &c->q->tasks[i];
    struct ops_err e = {0};
    struct verb v;
    if (!k->has_hash || !verb_find(k->verb, &v) || v.analysis == NULL ||
        !can_run(c, k))
        return;
    run_begin(c, (long)i, "json");
    int rc = run_verb(c, k, "json", &e);
    if (rc != 0) dprintf(c->out, "%s", e.text);
    uint64_t hash = hash_output(c);
    if (hash != k->hash) run_end(c, (long)i, "json", 0, &e);
    else lseek(c->out, c->start, SEEK_SET);
}

static void run_child(struct child *c) {
    struct rlimit none = {0, 0}, space = {4ull << 30, 4ull << 30};
    setrlimit(RLIMIT_CORE, &none);
#if !SANITIZED_ADDRESS && !SANITIZED_THREAD
    setrlimit(RLIMIT_AS, &space);
#else
    (void)space;
#endif
    memory_start();
    dup2(c->out, STDOUT_FILENO); /* commands print there */
    c->pass = "once";
    load(c, c->q->threads);
    for (size_t i = 0; i < c->q->ntasks; i++) {
        if (strcmp(c->q->tasks[i].verb, "convert") == 0) convert(c, (long)i);
        else run_task(c, i);
    }
    profiles_free(&c->p);
    if (c->q->again > 0) {
        c->pass = "again";
        load(c, c->q->again);
        for (size_t i = 0; i < c->q->ntasks; i++) run_again(c, i);
        profiles_free(&c->p);
    }
    set_limit(c->q->limit); /* a look for leaks takes its time */
}

/* --- requests ----------------------------------------------------------- */

static void request_free(struct request *q) {
    for (size_t i = 0; i < q->ntexts; i++) free(q->texts[i]);
    for (size_t i = 0; i < q->ntasks; i++) free(q->tasks[i].text);
    free(q);
}

static _Noreturn void bad_request(const char *line) {
    fprintf(stderr, "every: no such request: %s\n", line);
    exit(2);
}

static void read_line(struct request *q, const char *line) {
    char *text = strdup(line), *at = text, *name, *value;
    struct ops_err e;
    if (text == NULL || query_next(&at, &name, &value, &e) != 1 ||
        value == NULL || q->ntexts == PATHS || q->ntasks == TASKS)
        bad_request(line);
    if (strcmp(name, "do") == 0) {
        struct task *k = &q->tasks[q->ntasks++];
        *k = (struct task){.text = text, .verb = value};
        if (query_next(&at, &name, &value, &e) != 1 ||
            strcmp(name, "in") != 0 || value == NULL)
            bad_request(line);
        k->formats = value;
        k->options = at;
        return;
    }
    q->texts[q->ntexts++] = text;
    if (strcmp(name, "path") == 0) q->paths[q->npaths++] = value;
    else if (strcmp(name, "threads") == 0) q->threads = atoi(value);
    else if (strcmp(name, "again") == 0) q->again = atoi(value);
    else if (strcmp(name, "limit") == 0) q->limit = atoi(value);
    else if (strcmp(name, "leaks") == 0) q->leaks = atoi(value) != 0;
    else bad_request(line);
}

/* Returns NULL if there are no more. */
static struct request *read_request(char **line, size_t *cap) {
    struct request *q = calloc(1, sizeof *q);
    if (q == NULL) abort();
    q->limit = 10;
    for (ssize_t n; (n = getline(line, cap, stdin)) > 0;) {
        if ((*line)[n - 1] == '\n') (*line)[n - 1] = '\0';
        if (strcmp(*line, "go") == 0) return q;
        read_line(q, *line);
    }
    request_free(q);
    return NULL;
}

static int serve(int out, int index) {
    char *line = NULL;
    size_t cap = 0;
    struct request *q;
    while ((q = read_request(&line, &cap)) != NULL) {
        int status = -1;
        if (ftruncate(out, 0) != 0 || ftruncate(index, 0) != 0) abort();
        lseek(out, 0, SEEK_SET);
        lseek(index, 0, SEEK_SET);
        pid_t pid = fork();
        if (pid == 0) {
            struct child *c = calloc(1, sizeof *c);
            if (c == NULL) abort();
            *c = (struct child){.q = q, .out = out, .index = index};
            run_child(c);
            free(c);
            if (!q->leaks) _exit(0);
            request_free(q);
            free(line);
            exit(0);
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid) abort();
        printf("%d\n", status);
        fflush(stdout);
        request_free(q);
    }
    free(line);
    return 0;
}

/* --- what there is ------------------------------------------------------ */

static void list_opts(const char *verb, const struct opt *o) {
    static const char *const types[] = {"flag",   "int",   "float", "text",
                                        "choice", "bytes", "us",    "range"};
    for (; o != NULL && o->name != NULL; o++)
        printf("opt\t%s\t%s\t%s\t%s\n", verb, o->name, types[o->type],
               o->arg ? o->arg : "");
}

static int list(void) {
    struct verb v;
    for (size_t i = 0; verb_at(i, &v); i++) {
        printf("verb\t%s\t%s\t%s\n", v.name,
               v.analysis ? "analysis" : "command", v.args);
        list_opts(v.name, v.opts);
        if (v.filters) list_opts(v.name, analysis_common_opts);
    }
#if SANITIZED_ADDRESS || SANITIZED_THREAD
    printf("sanitized\n");
#endif
    return 0;
}

/* Packs standard input. */
static int zstd(int level) {
    size_t n = 0, cap = 64 << 20;
    char *in = malloc(cap), *out = malloc(ZSTD_compressBound(cap));
    if (in == NULL || out == NULL) abort();
    for (size_t got; (got = fread(in + n, 1, cap - n, stdin)) > 0;) n += got;
    size_t packed = ZSTD_compress(out, ZSTD_compressBound(cap), in, n, level);
    if (ZSTD_isError(packed)) abort();
    fwrite(out, 1, packed, stdout);
    free(in);
    free(out);
    return 0;
}

int main(int argc, char **argv) {
    setlocale(LC_CTYPE, "");
    file_guard();
    if (argc == 2 && strcmp(argv[1], "list") == 0) return list();
    if (argc == 4 && strcmp(argv[1], "serve") == 0)
        return serve(atoi(argv[2]), atoi(argv[3]));
    if (argc == 3 && strcmp(argv[1], "zstd") == 0) return zstd(atoi(argv[2]));
    fprintf(stderr, "usage: every list | serve OUT INDEX | zstd LEVEL\n");
    return 2;
}
