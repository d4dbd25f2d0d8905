/* SPDX-License-Identifier: Apache-2.0
 * `opscope watch`: a running program, look by look, until it or the user
 * ends. */
#include "cmd/command.h"
#include "cmd/until_signal.h"
#include "cmd/watch_draw.h"
#include "cmd/watch_profile.h"
#include "cmd/watch_target.h"
#include "scalars/logdir.h"
#include "scalars/scalar_table.h"
#include "scalars/watch_table.h"
#include <langinfo.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct watch {
    struct watch_target target;
    struct watch_profile profile;
    struct logdir logs;     /* when has_logs */
    struct scalars nothing; /* when not */
    bool has_logs;
    struct watch_line rss;
    double cpu_s, at_s; /* of the last look; at_s 0: none yet */
    struct watch_draw draw;
};

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void free_watch(struct watch *w) {
    if (w->has_logs) logdir_free(&w->logs);
    scalars_free(&w->nothing);
    watch_profile_free(&w->profile);
    watch_target_free(&w->target);
    watch_draw_free(&w->draw);
}

/* Sums over the processes; processor time as a share of the time since the last
 * look. */
static struct watch_facts facts_of(struct watch *w) {
    struct watch_facts f = {.processes = w->target.nprocs,
                            .cpu_pct = NAN,
                            .profile = w->profile.steps,
                            .rss = &w->rss};
    double cpu = 0, now = now_s();
    for (size_t i = 0; i < w->target.nprocs; i++) {
        f.rss_bytes += w->target.procs[i].rss_bytes;
        f.threads += w->target.procs[i].threads;
        cpu += w->target.procs[i].cpu_s;
    }
    if (f.processes > 0) watch_line_add(&w->rss, (double)f.rss_bytes);
    if (w->at_s > 0 && now > w->at_s && cpu >= w->cpu_s)
        f.cpu_pct = 100 * (cpu - w->cpu_s) / (now - w->at_s);
    w->cpu_s = cpu;
    w->at_s = now;
    return f;
}

static void title_of(const struct watch *w, char *buf, size_t cap) {
    const struct watch_target *t = &w->target;
    char who[120] = "no program writes here now";
    if (t->nprocs == 1)
        snprintf(who, sizeof who, "%.60s (pid %lld)", t->procs[0].name,
                 (long long)t->procs[0].pid);
    else if (t->nprocs > 1)
        snprintf(who, sizeof who, "%zu processes of %.60s", t->nprocs,
                 t->procs[0].name);
    else if (t->ended) snprintf(who, sizeof who, "the program has ended");
    snprintf(buf, cap, "%.300s  %s",
             t->logdir ? t->logdir : "no log folder is known", who);
}

/* Reads what is new. A folder that is gone shows what was there. */
static int look(struct watch *w, const struct opts *o, struct ops_err *e) {
    struct ops_err gone;
    char title[512];
    struct result r;
    int rc = 0;
    watch_target_look(&w->target);
    if (w->has_logs) rc = logdir_refresh(&w->logs, &gone);
    else if (w->target.logdir != NULL)
        rc = logdir_open(&w->logs, w->target.logdir, &gone);
    if (rc == 0 && w->target.logdir != NULL) w->has_logs = true;
    if (rc == OPS_ELIMIT) {
        *e = gone;
        return rc;
    }
    if (w->target.logdir != NULL)
        watch_profile_look(&w->profile, w->target.logdir);
    struct watch_facts f = facts_of(w);
    struct scalar_view v = {
        .run = opts_text(o, "run"),
        .tag = opts_text(o, "tag"),
        .ascii = strcmp(opts_text(o, "format"), "text") == 0 &&
                 strcmp(nl_langinfo(CODESET), "UTF-8") != 0,
    };
    TRY(watch_table(&f, w->has_logs ? &w->logs.scalars : &w->nothing, &v, &r,
                    e));
    if (w->has_logs) logdir_describe(&w->logs, true, &r);
    title_of(w, title, sizeof title);
    rc = watch_draw(&w->draw, title, &r, o, e);
    result_free(&r);
    return rc;
}

static int run(const struct opts *o, int argc, char **argv, struct ops_err *e) {
    struct watch w = {0};
    struct until_signal turns;
    if (argc != 1)
        return fail(e, OPS_EUSAGE,
                    "watch needs one log folder or the number "
                    "of a process");
    TRY(until_signal_start(&turns, o, e));
    TRY(watch_target_open(&w.target, argv[0], e));
    watch_draw_init(&w.draw, o);
    int rc = scalars_init(&w.nothing) ? 0 : fail_oom(e);
    if (rc == 0) rc = look(&w, o, e);
    while (rc == 0 && !w.target.ended && until_signal_wait(&turns))
        rc = look(&w, o, e);
    free_watch(&w);
    return rc;
}

static const struct opt watch_opts[] = {
    {"tag", 0, OPT_TEXT, "GLOB", NULL,
     "only scalars whose tag matches; --run likewise"},
    {"interval", 0, OPT_FLOAT, "S", "1", "look every S seconds"},
    {"count", 0, OPT_INT, "N", NULL, "stop after N looks"},
    {0},
};

const struct command command_watch = {
    .name = "watch",
    .args = "LOGDIR|PID",
    .help = "a running program: step time, memory, loss, live in the terminal",
    .more = "Draws over itself on a terminal; in a pipe it prints a line when "
            "something is new. Ends with Ctrl-C, or when the program that "
            "writes into LOGDIR has ended. Columns of JSON and CSV: metric, "
            "run, step, value, unit, trend.",
    .opts = watch_opts,
    .run = run,
};
