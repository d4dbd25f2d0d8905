/* SPDX-License-Identifier: Apache-2.0
 * What is in a folder, for searches of folders that may hold anything: links to
 * folders are not followed, and a search keeps to limits. */
#ifndef BASE_IO_DIR_H
#define BASE_IO_DIR_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* How deep below the first folder, and how many folders, a search goes. */
enum { DIR_MAX_DEPTH = 12, DIR_MAX_FOLDERS = 100000 };

struct dir_list {
    struct dir_entry {
        char *path;       /* the folder's own path and the name */
        const char *name; /* in path */
        bool folder;      /* else a regular file, or a link to one */
        struct stat st;   /* of the file that a link leads to */
    } * v;                /* sorted by name */
    size_t n, cap;
};

/* Lists the files and folders in dir whose names do not begin with a point; the
 * caller frees the list. Returns OPS_EIO if dir cannot be opened. */
int dir_list(const char *dir, struct dir_list *out, struct ops_err *e);
void dir_list_free(struct dir_list *l);

/* Returns "dir/name", which the caller frees; NULL if out of memory. */
char *path_join(const char *dir, const char *name);

#endif
