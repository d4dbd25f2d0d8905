/* SPDX-License-Identifier: Apache-2.0
 * `opscope convert IN OUT`: a profile in another format. OUT appears whole or
 * not at all: it is written under another name beside it, then renamed. */
#include "cmd/command.h"
#include "cmd/load.h"
#include "export/export.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Writes t to a new file beside out and gives it out's name. */
static int write_file(const struct trace *t, struct export_form form,
                      const char *out, bool force, struct ops_err *e) {
    char *tmp;
    if (asprintf(&tmp, "%s.XXXXXX", out) < 0) return fail_oom(e);
    int fd = mkostemp(tmp, O_CLOEXEC);
    if (fd < 0) {
        int rc = fail(e, OPS_EIO, "%s: cannot be made: %s", out,
                      strerror(errno));
        free(tmp);
        return rc;
    }
    mode_t mask = umask(0); /* mkostemp makes it the owner's alone */
    umask(mask);
    fchmod(fd, 0666 & ~mask);
    int rc = export_write(t, form, fd, e);
    if (close(fd) != 0 && rc == 0)
        rc = fail(e, OPS_EIO, "cannot write: %s", strerror(errno));
    /* link() leaves a file alone that came in the meantime; where it is not
     * to be had (some network file systems), rename() must do */
    if (rc == 0 && !force && link(tmp, out) == 0) unlink(tmp);
    else if (rc == 0 && !force && errno == EEXIST)
        rc = fail(e, OPS_EUSAGE, "exists already; --force replaces it");
    else if (rc == 0 && rename(tmp, out) != 0)
        rc = fail(e, OPS_EIO, "cannot be renamed: %s", strerror(errno));
    if (rc != 0) {
        unlink(tmp);
        rc = fail_in(e, "%s", out);
    }
    free(tmp);
    return rc;
}

/* May OUT be written? A device or a folder is never replaced. */
static int check_out(const char *out, bool force, struct ops_err *e) {
    struct stat st;
    if (lstat(out, &st) != 0) return 0;
    if (stat(out, &st) == 0 && !S_ISREG(st.st_mode))
        return fail(e, OPS_EUSAGE, "%s: is not a file; '-' with --to NAME "
                    "writes to standard output", out);
    if (force) return 0;
    return fail(e, OPS_EUSAGE, "%s: exists already; --force replaces it", out);
}

/* The one trace that IN stands for. */
static int one_trace(const struct profiles *p, const char *path,
                     struct ops_err *e) {
    if (p->n == 1) return 0;
    return fail(e, OPS_EUSAGE, "%s: %zu profiles that are not ranks of one "
                "job; convert them one by one", path, p->n);
}

static int run(const struct opts *o, int argc, char **argv,
               struct ops_err *e) {
    if (argc != 2)
        return fail(e, OPS_EUSAGE, "convert takes two paths: IN OUT");
    const char *out = argv[1];
    bool to_stdout = strcmp(out, "-") == 0, force = opts_flag(o, "force");
    struct export_form form;
    if (to_stdout && !opts_given(o, "to"))
        return fail(e, OPS_EUSAGE, "writing to standard output needs --to "
                    "NAME; 'opscope help exports' lists them");
    TRY(export_form(out, opts_text(o, "to"), &form, e));
    if (!to_stdout) TRY(check_out(out, force, e));
    struct profiles p;
    TRY(profiles_load(o, 1, argv, &p, e));
    int rc = one_trace(&p, argv[0], e);
    if (rc == 0 && to_stdout)
        rc = export_write(p.v[0].trace, form, STDOUT_FILENO, e);
    else if (rc == 0)
        rc = write_file(p.v[0].trace, form, out, force, e);
    profiles_free(&p);
    return rc;
}

static const struct opt convert_opts[] = {
    {"to", 0, OPT_TEXT, "NAME", NULL,
     "the format to write, where OUT's suffix does not tell"},
    {"force", 0, OPT_FLAG, NULL, NULL, "replace OUT if it is there"},
    {.name = NULL},
};

extern const struct command command_convert;
const struct command command_convert = {
    .name = "convert",
    .args = "IN OUT",
    .help = "a profile in another format",
    .more = "OUT's longest known suffix picks the format, .gz behind it "
            "compresses; a dash writes to standard output and needs --to. "
            "'opscope help exports' lists the formats.",
    .opts = convert_opts,
    .run = run,
};
