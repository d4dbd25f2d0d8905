/* SPDX-License-Identifier: Apache-2.0
 * `opscope record [options] -- PROGRAM ARGS`: runs a program, records it and
 * shows the overview. The program's output stays what it is: all that is ours
 * goes to stderr, as with time(1). The exit status is the program's. */
#include "analyze/analyze.h"
#include "api/run.h"
#include "base/text/cut.h"
#include "capture/hook.h"
#include "capture/launch.h"
#include "capture/tree.h"
#include "capture/written.h"
#include "cmd/command.h"
#include "load/profiles.h"
#include "present/present.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEFAULT_DIR "opscope-logs"

/* The exit codes that shells have. */
enum { EXIT_CANNOT_RUN = 126, EXIT_NOT_FOUND = 127, EXIT_BY_SIGNAL = 128 };

/* Says a line that -q leaves out. */
static void tell(const struct opts *o, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void tell(const struct opts *o, const char *fmt, ...) {
    va_list ap;
    if (opts_flag(o, "quiet")) return;
    va_start(ap, fmt);
    vsay(fmt, ap);
    va_end(ap);
}

/* Is there a file of that name in a folder of PATH? Where a folder may not be
 * looked into, exec says that the program may not be run. */
static bool in_path(const char *program) {
    const char *p = getenv("PATH");
    while (p != NULL && *p != '\0') {
        size_t n = strcspn(p, ":");
        char *file;
        if (asprintf(&file, "%.*s%s%s", (int)n, p, n > 0 ? "/" : "", program) <
            0)
            return true;
        bool there = access(file, F_OK) == 0;
        free(file);
        if (there) return true;
        p += n + (p[n] == ':');
    }
    return false;
}

/* Says why the program could not be started. Returns the shell's code. */
static int not_started(const struct rundir *dir, const char *program, int why) {
    rundir_unmake(dir);
    bool plain = strchr(program, '/') == NULL;
    bool there = !plain && access(program, F_OK) == 0;
    if (plain && why == EACCES && !in_path(program)) why = ENOENT;
    const char *word = strerror(why);
    if (why == ENOENT && there) word = "its interpreter is missing";
    else if (why == ENOENT && plain) word = "command not found";
    say("%s: cannot be run: %s", program, word);
    return (why == ENOENT || why == ENOTDIR) && !there ? EXIT_NOT_FOUND
                                                       : EXIT_CANNOT_RUN;
}

static int exit_status(const struct opts *o, const char *program, int status) {
    if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
    int sig = WTERMSIG(status);
    tell(o, "%s was killed by signal %d (%s)%s", program, sig, strsignal(sig),
         WCOREDUMP(status) ? ", core dumped" : "");
    return EXIT_BY_SIGNAL + sig;
}

static const char *plural(uint64_t n) { return n == 1 ? "" : "s"; }

/* Writes the overview of the run to stderr. */
static int overview(const struct opts *o, char *path, struct ops_err *e) {
    static const char *const handed[] = {"format", "color", "width", "threads",
                                         "verbose"};
    const struct analysis *a = analysis_find("overview");
    struct opts own;
    struct profiles p;
    struct result r;
    opts_init(&own, program_opts, analysis_common_opts, a->opts);
    for (size_t i = 0; i < sizeof handed / sizeof *handed; i++)
        if (opts_given(o, handed[i]))
            TRY(opts_set(&own, handed[i],
                         opts_find(o, handed[i])->type == OPT_FLAG
                             ? NULL
                             : opts_text(o, handed[i]),
                         e));
    TRY(profiles_load(&own, 1, &path, &p, e));
    int rc = profiles_run(&p, a, &own, show_as(&own)->top, &r, e);
    if (rc == 0) {
        rc = show_result_on(STDERR_FILENO, &r, &own, e);
        result_free(&r);
    }
    profiles_free(&p);
    return rc;
}

/* Names the profiles that were written where the program ran, by a framework's
 * profiler: they know more of it than we saw from outside. Nobody can tell that
 * it was this program, and nobody claims it. */
static void tell_written(const struct opts *o, const struct run_spec *l,
                         const struct launch_end *end,
                         const struct rundir *dir) {
    struct written w;
    if (opts_flag(o, "quiet")) return;
    written_find(l->argv, end->unix_ns, dir->path, &w);
    char *place = written_place(&w);
    if (place != NULL && w.n == 1)
        tell(o, "a profile was written meanwhile: opscope overview %s", place);
    else if (place != NULL)
        tell(o, "%zu profiles were written meanwhile: opscope overview %s", w.n,
             place);
    free(place);
    written_free(&w);
}

/* Shows what the hooks inside of a Python program have to say. */
static void tell_note(void *ctx, const char *text) {
    const struct opts *o = ctx;
    tell(o, "%s", text);
}

/* Does what comes after the program: no failure here changes its status. */
static void finish(const struct opts *o, const struct run_spec *l,
                   const struct tree *tree, const struct launch_end *end,
                   const struct rundir *dir) {
    struct ops_err e = {0};
    struct run_recovered got = end->got;
    char *path;
    if (end->recording > 0)
        tell(o,
             "%zu process%s of the program still record%s, after %.1f s of "
             "waiting (--wait): look at the folder again when it is done",
             end->recording, end->recording == 1 ? "" : "es",
             end->recording == 1 ? "s" : "", (double)end->waited / 1e9);
    else if (end->left > 0)
        tell(o,
             "%zu process%s of the program still run%s; what is not over is "
             "seen up to here",
             end->left, end->left == 1 ? "" : "es", end->left == 1 ? "s" : "");
    recover_run_all(dir->path, tree, l->alone, &got);
    bool seen = profile_write(tree, l, end, dir, &path, &e) == 0;
    if (!seen) say("%s", e.text);
    free(path);
    if (!seen && got.profiles == 0) {
        rundir_unmake(dir);
        return;
    }
    hook_take_notes(dir->path, tell_note, (void *)(uintptr_t)o);
    if (hook_kept_out(l->argv) != 0)
        tell(o,
             "python -%c leaves opscope out, which comes by PYTHONPATH: no "
             "framework was looked at",
             hook_kept_out(l->argv));
    else if (hook_lacks_package(l->argv))
        tell(o, "opscope's Python package is not beside this program: no "
                "framework was looked at (`make python` builds it, `pip "
                "install .` installs both)");
    tell(o, "recorded in %s", dir->path);
    bool show = !opts_flag(o, "quiet") && !opts_flag(o, "no-overview");
    if (show && overview(o, dir->path, &e) != 0 && e.text[0] != '\0')
        say("%s", e.text);
    if (got.saved > 0)
        tell(o,
             "%zu process%s ended without closing %s recording: saved, %" PRIu64
             " event%s, %" PRIu64 " of them from shared memory; %" PRIu64
             " dropped",
             got.saved, got.saved == 1 ? "" : "es",
             got.saved == 1 ? "its" : "their", got.events, plural(got.events),
             got.rest, got.drops);
    if (got.failed > 0)
        tell(o,
             "%zu recording%s of processes that died could not be finished: "
             "%s",
             got.failed, plural(got.failed), got.why);
    tell_written(o, l, end, dir);
}

/* Returns the log folder: -o, else what the environment says already. */
static const char *log_folder(const struct opts *o) {
    const char *given = opts_text(o, "output"), *env = getenv("OPSCOPE_LOGDIR");
    if (given != NULL) return given;
    return env != NULL && *env != '\0' ? env : DEFAULT_DIR;
}

/* Finds which steps are to be recorded: --steps, or what tutorials write for
 * it, --profile_options=profile_steps=1,10,100. */
static int steps_of(const struct opts *o, const char **out, struct ops_err *e) {
    static const char key[] = "profile_steps=";
    const char *other = opts_text(o, "profile_options");
    *out = opts_text(o, "steps");
    if (other == NULL) return 0;
    if (strncmp(other, key, sizeof key - 1) != 0)
        return fail(e, OPS_EUSAGE,
                    "--profile_options '%.*s': it takes profile_steps=STEPS, "
                    "as in profile_steps=1,10,100; --memory, --shapes and "
                    "--stacks ask for more",
                    CUT(200, other));
    if (*out != NULL)
        return fail(e, OPS_EUSAGE,
                    "--steps and --profile_options both say which steps");
    *out = other + sizeof key - 1;
    return 0;
}

/* Lists what a framework's tracer is to record besides; NULL: nothing. */
static const char *traced_of(const struct opts *o, char room[32]) {
    static const char *const names[] = {"memory", "shapes", "stacks"};
    room[0] = '\0';
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!opts_flag(o, names[i])) continue;
        if (room[0] != '\0') strcat(room, ",");
        strcat(room, names[i]); /* 20 bytes at most */
    }
    return room[0] != '\0' ? room : NULL;
}

static int record_run(const struct opts *o, int argc, char **argv,
                      struct ops_err *e) {
    if (argc == 0)
        return fail(e, OPS_EUSAGE,
                    "record takes a program: opscope record -- "
                    "PROGRAM ARGS");
    char traced[32];
    /* clang-format off */
    struct run_spec l = {
        .argv = argv, .traced = traced_of(o, traced),
        .seconds = opts_given(o, "seconds") ? opts_text(o, "seconds") : NULL,
        .host = opts_text(o, "host"), .flight = opts_flag(o, "flight"),
        .alone = !opts_given(o, "run"), .linger_ms = opts_int(o, "wait") * 1000,
    };
    /* clang-format on */
    struct rundir dir;
    struct tree tree = {0};
    struct launch_end end;
    TRY(steps_of(o, &l.steps, e));
    TRY(launch_check_steps(l.steps, e));
    /* A descriptor 0, 1 or 2 that is closed would be given to a file of ours,
     * and what is printed would go into that file. The program still finds it
     * closed. */
    int fd;
    while ((fd = open("/dev/null", O_RDWR | O_CLOEXEC)) >= 0 &&
           fd <= STDERR_FILENO)
        continue;
    if (fd >= 0) close(fd);
    TRY(rundir_make(log_folder(o), opts_text(o, "run"), &dir, e));
    int rc = launch_run(&l, &dir, &tree, &end, e);
    if (rc == 0 && end.errnum != 0) {
        rc = not_started(&dir, argv[0], end.errnum);
    } else if (rc == 0) {
        rc = exit_status(o, argv[0], end.status);
        finish(o, &l, &tree, &end, &dir);
    }
    tree_free(&tree);
    rundir_free(&dir);
    return rc;
}

static const struct opt record_opts[] = {
    {"output", 'o', OPT_TEXT, "DIR", NULL,
     .help = "the log folder (else OPSCOPE_LOGDIR, or ./" DEFAULT_DIR ")"},
    {"steps", 0, OPT_TEXT, "WHICH", NULL,
     .help = "which steps to record: 100..102, 1,10,100, every 50, 10s..20s, "
             "demand; else, of a Python program, a few when they are even"},
    {"seconds", 0, OPT_FLOAT, "N", NULL,
     .help = "let a framework's tracer run no longer than N seconds"},
    {"memory", 0, OPT_FLAG, NULL, NULL,
     .help = "have the framework's tracer record memory, too"},
    {"shapes", 0, OPT_FLAG, NULL, NULL,
     .help = "have the framework's tracer record shapes, too"},
    {"stacks", 0, OPT_FLAG, NULL, NULL,
     .help = "have Python's functions recorded, too"},
    {"profile_options", 0, OPT_TEXT, "profile_steps=WHICH", NULL,
     .help = "the same as --steps WHICH"},
    {"flight", 0, OPT_FLAG, NULL, NULL,
     .help = "keep only the last events, write them at a crash or on demand"},
    {"host", 0, OPT_TEXT, "NAME", NULL,
     .help = "the host's name in the profiles"},
    {"wait", 0, OPT_INT, "SECONDS", "10",
     .help =
         "how long to wait for children that still record after the program",
     .limits = {0, INT32_MAX}},
    {"no-overview", 0, OPT_FLAG, NULL, NULL,
     .help = "do not show the overview"},
    {0},
};

const struct command command_record = {
    .name = "record",
    .args = "-- PROGRAM ARGS",
    .help = "run a program, record it and show the overview",
    .more = "Works on any program. One in Python stays as it is: its steps are "
            "recognised where it trains with PyTorch, TensorFlow, Keras or "
            "JAX, some are traced by the framework's own tracer, all are "
            "timed. One that calls opscope (record.h) records its steps, ops "
            "and memory; of any other, processes, threads, CPU and memory are "
            "seen from outside. The program's output and exit status stay its "
            "own (128 + n when signal n killed it, 126 and 127 when it cannot "
            "be run); what record prints goes to stderr.",
    .opts = record_opts,
    .program = true,
    .run = record_run,
};
