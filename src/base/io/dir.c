/* SPDX-License-Identifier: Apache-2.0
 * Listing a folder. */
#include "base/io/dir.h"

#include "base/vec.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

char *path_join(const char *dir, const char *name) {
    char *p;
    size_t n = strlen(dir);
    const char *slash = n > 0 && dir[n - 1] == '/' ? "" : "/";
    return asprintf(&p, "%s%s%s", dir, slash, name) < 0 ? NULL : p;
}

void dir_list_free(struct dir_list *l) {
    for (size_t i = 0; i < l->n; i++) free(l->v[i].path);
    free(l->v);
    *l = (struct dir_list){0};
}

static int entry_by_name(const void *a, const void *b) {
    const struct dir_entry *x = a, *y = b;
    return strcmp(x->name, y->name);
}

int dir_list(const char *dir, struct dir_list *out, struct ops_err *e) {
    *out = (struct dir_list){0};
    DIR *d = opendir(dir);
    if (d == NULL && errno == ENOMEM) return fail_oom(e);
    if (d == NULL)
        return fail(e, OPS_EIO, "cannot open the folder: %s", strerror(errno));
    bool ok = true;
    for (struct dirent *x; ok && (x = readdir(d)) != NULL;) {
        if (x->d_name[0] == '.') continue;
        struct dir_entry f = {.path = path_join(dir, x->d_name)};
        ok = f.path != NULL && VEC_ROOM(out->v, out->n, out->cap);
        bool there = ok && lstat(f.path, &f.st) == 0;
        f.folder = there && S_ISDIR(f.st.st_mode);
        if (there && S_ISLNK(f.st.st_mode)) there = stat(f.path, &f.st) == 0;
        if (f.folder || (there && S_ISREG(f.st.st_mode))) {
            f.name = f.path + strlen(f.path) - strlen(x->d_name);
            out->v[out->n++] = f;
        } else {
            free(f.path);
        }
    }
    closedir(d);
    if (!ok) {
        dir_list_free(out);
        return fail_oom(e);
    }
    if (out->n > 1) qsort(out->v, out->n, sizeof *out->v, entry_by_name);
    return 0;
}
