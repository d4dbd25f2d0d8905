/* SPDX-License-Identifier: Apache-2.0
 * `opscope convert IN OUT`: a profile in another format. OUT appears whole or
 * not at all: it is written into a file beside it that has no name yet (or
 * another name, where the file system has no nameless files) and gets its name
 * when it is whole. */
#include "cmd/command.h"
#include "export/export.h"
#include "load/profiles.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* OUT while it is written. */
struct draft {
    const char *out;
    char *tmp; /* "OUT.XXXXXX", the name that it has if named */
    bool named;
    int fd;
};

static int draft_open(struct draft *d, const char *out, struct ops_err *e) {
    const char *slash = strrchr(out, '/');
    char *dir = slash == NULL  ? strdup(".")
                : slash == out ? strdup("/")
                               : strndup(out, (size_t)(slash - out));
    *d = (struct draft){.out = out, .fd = -1};
    if (dir == NULL || asprintf(&d->tmp, "%s.XXXXXX", out) < 0) {
        free(dir);
        return fail_oom(e);
    }
    d->fd = open(dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    free(dir);
    if (d->fd >= 0) return 0;
    d->fd = mkostemp(d->tmp, O_CLOEXEC);
    d->named = d->fd >= 0;
    if (d->named) {
        mode_t mask = umask(0); /* mkostemp makes it the owner's alone */
        umask(mask);
        fchmod(d->fd, 0666 & ~mask);
        return 0;
    }
    int rc = fail(e, OPS_EIO, "cannot be made: %s", strerror(errno));
    free(d->tmp);
    return rc;
}

/* Gives a file without a name one. Returns 0 or -1, as link() does. */
static int draft_link(const struct draft *d, const char *name) {
    char fd[64];
    snprintf(fd, sizeof fd, "/proc/self/fd/%d", d->fd);
    return linkat(AT_FDCWD, fd, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

/* Finds any free name beside out for rename(), which alone replaces. */
static bool draft_name(struct draft *d) {
    for (int i = 0; i < 100 && !d->named; i++) {
        size_t n = strlen(d->tmp);
        unsigned number = ((unsigned)getpid() + (unsigned)i) % 1000000;
        snprintf(d->tmp + n - 6, 7, "%06u", number);
        d->named = draft_link(d, d->tmp) == 0;
        if (!d->named && errno != EEXIST) break;
    }
    return d->named;
}

/* Makes the draft OUT. link() leaves alone a file that came in the meantime;
 * where it is not to be had (some network file systems), rename() must do. */
static int draft_publish(struct draft *d, bool force, struct ops_err *e) {
    if (!force &&
        (d->named ? link(d->tmp, d->out) : draft_link(d, d->out)) == 0) {
        if (d->named) unlink(d->tmp);
        return 0;
    }
    if (!force && errno == EEXIST)
        return fail(e, OPS_EUSAGE, "exists already; --force replaces it");
    if (!draft_name(d) || rename(d->tmp, d->out) != 0)
        return fail(e, OPS_EIO, "cannot be renamed: %s", strerror(errno));
    return 0;
}

/* Writes t to a new file beside out and gives it out's name. */
static int write_file(const struct trace *t, struct export_form form,
                      const char *out, bool force, struct ops_err *e) {
    struct draft d;
    if (draft_open(&d, out, e) != 0) return fail_in(e, out);
    int rc = export_write(t, form, d.fd, e);
    /* close() tells what a network could not write; but when its descriptor
     * closes, a file without a name is gone */
    int again = rc == 0 ? dup(d.fd) : -1;
    if (again >= 0 && close(again) != 0)
        rc = fail(e, OPS_EIO, "cannot write: %s", strerror(errno));
    if (rc == 0) rc = draft_publish(&d, force, e);
    if (rc != 0 && d.named) unlink(d.tmp);
    close(d.fd);
    free(d.tmp);
    return rc == 0 ? 0 : fail_in(e, out);
}

/* May OUT be written? A device or a folder is never replaced. */
static int check_out(const char *out, bool force, struct ops_err *e) {
    struct stat st;
    if (lstat(out, &st) != 0) return 0;
    if (stat(out, &st) == 0 && !S_ISREG(st.st_mode))
        fail(e, OPS_EUSAGE,
             "is not a file; '-' with --to NAME writes to standard output");
    else if (force) return 0;
    else fail(e, OPS_EUSAGE, "exists already; --force replaces it");
    return fail_in(e, out);
}

static int convert_run(const struct opts *o, int argc, char **argv,
                       struct ops_err *e) {
    if (argc != 2)
        return fail(e, OPS_EUSAGE, "convert takes two paths: IN OUT");
    const char *out = argv[1];
    bool to_stdout = strcmp(out, "-") == 0, force = opts_flag(o, "force");
    struct export_form form;
    if (to_stdout && !opts_given(o, "to"))
        return fail(e, OPS_EUSAGE,
                    "writing to standard output needs --to "
                    "NAME; 'opscope help exports' lists them");
    TRY(export_form(out, opts_text(o, "to"), &form, e));
    if (!to_stdout) TRY(check_out(out, force, e));
    struct profiles p;
    TRY(profiles_load(o, 1, argv, &p, e));
    int rc;
    if (p.n != 1)
        rc = fail(e, OPS_EUSAGE,
                  "%s: %zu profiles that are not ranks of one "
                  "job; convert them one by one",
                  argv[0], p.n);
    else if (to_stdout) rc = export_write(p.v[0].trace, form, STDOUT_FILENO, e);
    else rc = write_file(p.v[0].trace, form, out, force, e);
    profiles_free(&p);
    return rc;
}

static const struct opt convert_opts[] = {
    {"to", 0, OPT_TEXT, "NAME", NULL,
     .help = "the format to write, where OUT's suffix does not tell"},
    {"force", 0, OPT_FLAG, NULL, NULL, .help = "replace OUT if it is there"},
    {0},
};

const struct command command_convert = {
    .name = "convert",
    .args = "IN OUT",
    .help = "a profile in another format",
    .more = "OUT's longest known suffix picks the format, .gz behind it "
            "compresses; a dash writes to standard output and needs --to. "
            "'opscope help exports' lists the formats. A text of more than "
            "1 KiB that very many events share is cut there once such texts "
            "have taken 64 MiB and 16 times the size of IN.",
    .opts = convert_opts,
    .run = convert_run,
};
