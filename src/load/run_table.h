/* SPDX-License-Identifier: Apache-2.0
 * The runs of a log folder as a table. */
#ifndef LOAD_RUN_TABLE_H
#define LOAD_RUN_TABLE_H

#include <stdbool.h>
#include <stddef.h>

struct import_opts;
struct ops_err;
struct result;

struct run_table_ask {
    /* Which runs are read, for their hosts, ranks and steps: the newest ones,
     * as long as they are small; all; or none. */
    enum run_reading { READ_SMALL, READ_ALL, READ_NONE } reading;
    const struct import_opts *io;
    /* Does a program have a file of that folder open for writing? NULL: nobody
     * knows. */
    bool (*is_written)(void *ctx, const char *folder);
    void *ctx;
};

/* Lists the runs at or below path, the newest first. Fails as runs_find does.
 * On success out is the caller's to free. */
int run_table(const char *path, const struct run_table_ask *ask,
              struct result *out, struct ops_err *e);

#endif
