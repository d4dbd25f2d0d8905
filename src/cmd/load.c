/* SPDX-License-Identifier: Apache-2.0
 * Loading as the command line does it: options, and a progress bar. */
#include "cmd/load.h"

#include "base/opt.h"
#include "cmd/progress.h"
#include "import/import.h"

int profiles_load(const struct opts *o, int argc, char **argv,
                  struct profiles *out, struct ops_err *e) {
    if (argc == 0)
        return fail(e, OPS_EUSAGE,
                    "a PATH is missing: a profile file, a run "
                    "folder or a log folder");
    struct progress bar;
    progress_start(&bar);
    struct import_opts io = {
        .threads = (int)opts_int(o, "threads"),
        .progress = progress_show,
        .progress_ctx = &bar,
    };
    int rc = profiles_open(argv, (size_t)argc, opts_text(o, "run"), &io, out,
                           e);
    progress_end(&bar);
    return rc;
}
