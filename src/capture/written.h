/* SPDX-License-Identifier: Apache-2.0
 * The profiles that a program under `opscope record` wrote itself. */
#ifndef CAPTURE_WRITTEN_H
#define CAPTURE_WRITTEN_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct written {
    struct written_file {
        char *path; /* from the working folder, or as the command line has it */
        struct timespec when; /* it was last written */
    } * v;                    /* the newest first */
    size_t n, cap;
};

/* Finds profiles below the working folder, and below folders that the words of
 * argv name, that were written since then; `run` is a folder to leave out. It
 * keeps to a limit, and never fails: what it does not find is not told. The
 * caller frees. */
void written_find(char *const *argv, int64_t since_unix_ns, const char *run,
                  struct written *out);
void written_free(struct written *w);

/* Returns what to open: the file, or the folder that they all lie in (ranks of
 * a job, a run of TensorFlow), else the newest; NULL if there is none, or no
 * memory. The caller frees. */
char *written_place(const struct written *w);

#endif
