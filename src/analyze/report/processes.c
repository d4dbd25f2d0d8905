/* SPDX-License-Identifier: Apache-2.0
 * processes: what `opscope record` saw of a program from outside: each process
 * (or each thread), how long it lived and what it used. The figures are the
 * stats of its span: see capture/profile.c, which writes them. */
#include "analyze/analyze.h"

#include "analyze/report/facts.h"
#include "base/array.h"
#include "base/facts.h"
#include "model/args.h"

/* clang-format off */
static const struct column cols[] = {
    {"name", NULL, NULL, "The process's (or thread's) name.", COL_TEXT,
     COL_KEY},
    {"host", NULL, NULL, "The machine.", COL_TEXT, COL_DETAIL},
    {"pid", NULL, NULL, "The process's number.", COL_INT, 0},
    {"parent", NULL, NULL, "Its parent's number (threads: null).", COL_INT,
     COL_DETAIL},
    {"tid", NULL, NULL, "The thread's number (processes: null).", COL_INT,
     COL_DETAIL},
    {"start_us", "start", "us", "When it began.", COL_TIME, COL_STAMP},
    {"dur_us", "lived", "us", "From its begin to its end, or the last time it "
     "was seen.", COL_TIME, 0},
    {"cpu_us", "cpu", "us", "Time on a CPU, of all its threads.", COL_TIME,
     COL_MAIN},
    {"user_us", "user", "us", "Of it in the program's own code, to the "
     "kernel's tick.", COL_TIME, COL_DETAIL},
    {"sys_us", "sys", "us", "Of it in the kernel, to the kernel's tick.",
     COL_TIME, COL_DETAIL},
    {"cores", NULL, NULL, "cpu / lived: how many CPUs it kept busy.",
     COL_FLOAT, 0},
    {"cpu_wait_us", "waiting for cpu", "us", "Ready to run, but no CPU was "
     "free; of the threads that were seen.", COL_TIME, 0},
    {"peak_rss_bytes", "peak rss", "bytes", "The most memory it had resident.",
     COL_BYTES, 0},
    {"page_faults", "faults", NULL, "Page faults, minor and major.", COL_INT,
     0},
    {"major_faults", NULL, NULL, "Of them those that read from disk.", COL_INT,
     COL_DETAIL},
    {"switches", NULL, NULL, "How often its threads were put on a CPU; of "
     "those that were seen.", COL_INT, COL_DETAIL},
    {"disk_read_bytes", "read", "bytes", "Read from disks (not from the page "
     "cache).", COL_BYTES, COL_DETAIL},
    {"disk_write_bytes", "written", "bytes", "Written to disks, or on its way.",
     COL_BYTES, COL_DETAIL},
    {"threads", NULL, NULL, "How many of its threads were seen.", COL_INT, 0},
    {"end", NULL, NULL, "How it ended: exit 0, signal 9; alive: it outlived "
     "the recording; null: its parent knows.", COL_TEXT, 0},
    {"exact", NULL, NULL, "The figures are those at its end, not at the last "
     "look before.", COL_BOOL, COL_DETAIL},
    {"command", NULL, NULL, "Its command line.", COL_TEXT, COL_DETAIL},
};
/* clang-format on */

/* The columns that are an argument of the span; those in ns become ps. */
static const struct {
    const char *col, *key;
    int64_t unit;
} figures[] = {
    {"pid", FACT_PID, 1},
    {"parent", FACT_PPID, 1},
    {"tid", "tid", 1},
    {"cpu_us", FACT_CPU_NS, PS_PER_NS},
    {"user_us", FACT_USER_NS, PS_PER_NS},
    {"sys_us", FACT_SYS_NS, PS_PER_NS},
    {"cpu_wait_us", FACT_CPU_WAIT_NS, PS_PER_NS},
    {"peak_rss_bytes", FACT_PEAK_RSS_BYTES, 1},
    {"page_faults", FACT_PAGE_FAULTS, 1},
    {"major_faults", FACT_MAJOR_FAULTS, 1},
    {"switches", FACT_SWITCHES, 1},
    {"disk_read_bytes", FACT_DISK_READ_BYTES, 1},
    {"disk_write_bytes", FACT_DISK_WRITE_BYTES, 1},
    {"threads", FACT_THREADS, 1},
};

static void process_row(struct result *r, const struct trace *t, row_id row,
                        uint32_t source) {
    int64_t dur = t->spans.dur[row], exact = args_int(t, row, FACT_EXACT, -1);
    struct arg argv = args_get(t, row, FACT_ARGV);
    result_row(r);
    cell_str(r, "name", strs_bytes(&t->strs, t->spans.name[row]));
    cell_text(r, "host", label_source(r, t, source));
    cell_int(r, "start_us", t->spans.ts[row]);
    cell_int(r, "dur_us", dur);
    for (size_t i = 0; i < COUNT(figures); i++) {
        int64_t v = args_int(t, row, figures[i].key, -1);
        if (v < 0 || __builtin_mul_overflow(v, figures[i].unit, &v)) continue;
        cell_int(r, figures[i].col, v);
        if (strcmp(figures[i].col, "cpu_us") == 0 && dur > 0)
            cell_float(r, "cores", (double)v / (double)dur);
    }
    int64_t status = args_int(t, row, FACT_EXIT_STATUS, -1);
    int64_t sig = args_int(t, row, FACT_SIGNAL, -1);
    if (args_int(t, row, FACT_UNFINISHED, 0) != 0) cell_text(r, "end", "alive");
    else if (sig >= 0 || status >= 0)
        cell_text(r, "end",
                  arena_fmt(&r->arena, "%s %lld", sig >= 0 ? "signal" : "exit",
                            (long long)(sig >= 0 ? sig : status)));
    if (exact >= 0) cell_bool(r, "exact", exact != 0);
    if (argv.type == ARG_TEXT) cell_str(r, "command", argv.text);
}

/* Is the row wanted? Threads have a number of their own, processes a parent's.
 * A process that had one thread all its life has no span for it. */
static bool is_wanted(const struct trace *t, row_id row, bool threads) {
    bool thread = args_int(t, row, "tid", -1) >= 0;
    if (!threads) return !thread && args_int(t, row, FACT_PPID, -1) >= 0;
    return thread || args_int(t, row, FACT_THREADS, -1) == 1;
}

static int processes_run(const struct trace *t, const struct opts *o,
                         struct result *r, struct ops_err *e) {
    struct selection s;
    TRY(select_init(&s, t, o, e));
    bool threads = strcmp(opts_text(o, "by"), "thread") == 0, any = false;
    result_init(r, "processes", threads ? "Threads" : "Processes");
    result_from_trace(r, t);
    result_cols(r, cols, COUNT(cols));
    for (size_t k = 0; k < t->ntracks; k++) {
        const struct track *tr = &t->tracks[k];
        if (!t->sources[tr->source].process_view || !s.source_in[tr->source])
            continue;
        for (row_id i = tr->first; i < tr->end; i++)
            if (is_wanted(t, i, threads)) process_row(r, t, i, tr->source);
    }
    for (uint32_t i = 0; i < t->nsources; i++) {
        any |= t->sources[i].process_view;
        if (!t->sources[i].process_view || !s.source_in[i]) continue;
        int64_t unseen = facts_told(t, i, FACT_UNSEEN_CPU_US);
        int64_t all = facts_told(t, i, FACT_CPU_US);
        if (unseen > 0 && all > 0 && unseen >= all / 100)
            result_remark(r,
                          "%.3f s of %.3f s of CPU time belong to no row: "
                          "processes that lived between two looks, and what "
                          "others used after the last one.",
                          (double)unseen / 1e6, (double)all / 1e6);
    }
    if (!any)
        result_missing(r, "processes",
                       "nobody watched the program from outside",
                       "run it with opscope record -- PROGRAM");
    select_free(&s);
    return result_done(r, e);
}

static const struct opt opts[] = {
    {"by", 0, OPT_CHOICE, "process|thread", "process", .help = "what a row is"},
    {.name = NULL},
};

const struct analysis analysis_processes = {
    .name = "processes",
    .help = "processes and threads seen from outside: CPU, memory, how they "
            "ended",
    .row = "one process (or thread) of a program that opscope record ran",
    .opts = opts,
    .run = processes_run,
};
