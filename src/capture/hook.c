/* SPDX-License-Identifier: Apache-2.0
 * Finds the package by where this program lies, and reads notes. */
#include "capture/hook.h"

#include "base/array.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    NOTE_LINES = 16,      /* that are shown: more are more of the same */
    NOTE_BYTES = 16384,   /* of a file that are read */
    NOTE_FILES = 1 << 14, /* that are looked at */
};

/* Returns the folder with sitecustomize.py, or NULL. */
static char *site_folder(void) {
    static const char *const beside[] = {
        "/../_site",                              /* in a wheel */
        "/python/opscope/_site",                  /* where it was built */
        "/../lib/opscope/python/opscope/_site",   /* make install */
        "/../share/opscope/python/opscope/_site", /* a package */
    };
    char exe[4096];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (n <= 0) return NULL;
    exe[n] = '\0';
    char *slash = strrchr(exe, '/');
    if (slash == NULL) return NULL;
    *slash = '\0';
    for (size_t i = 0; i < COUNT(beside); i++) {
        char *folder, *file;
        if (asprintf(&folder, "%s%s", exe, beside[i]) < 0) return NULL;
        bool there = asprintf(&file, "%s/sitecustomize.py", folder) >= 0;
        if (there) {
            there = access(file, R_OK) == 0;
            free(file);
        }
        /* a ':' would cut the path in two */
        char *whole = there ? realpath(folder, NULL) : NULL;
        free(folder);
        if (whole != NULL && strchr(whole, ':') == NULL) return whole;
        free(whole);
    }
    return NULL;
}

char *hook_python_path(void) {
    const char *was = getenv("PYTHONPATH");
    char *site = site_folder(), *path = NULL;
    if (site == NULL) return NULL;
    bool more = was != NULL && *was != '\0';
    if (asprintf(&path, "%s%s%s", site, more ? ":" : "", more ? was : "") < 0)
        path = NULL;
    free(site);
    return path;
}

static bool is_python(char *const argv[]) {
    const char *slash = argv[0] != NULL ? strrchr(argv[0], '/') : NULL;
    const char *name = slash != NULL ? slash + 1 : argv[0];
    return name != NULL && strncmp(name, "python", 6) == 0;
}

bool hook_lacks_package(char *const argv[]) {
    if (!is_python(argv)) return false;
    char *site = site_folder();
    bool lacks = site == NULL;
    free(site);
    return lacks;
}

char hook_kept_out(char *const argv[]) {
    if (!is_python(argv)) return 0;
    for (size_t i = 1; argv[i] != NULL && argv[i][0] == '-'; i++) {
        if (argv[i][1] == '-' || argv[i][1] == '\0') break;
        for (const char *p = argv[i] + 1; *p != '\0'; p++) {
            if (strchr("IES", *p) != NULL) return *p;
            if (strchr("cm", *p) != NULL) return 0; /* the program */
            if (strchr("WX", *p) == NULL) continue;
            if (p[1] == '\0' && argv[i + 1] != NULL) i++; /* its value */
            break;
        }
    }
    return 0;
}

/* Sentences that were shown. */
struct shown {
    char *v[NOTE_LINES];
    size_t n;
    bool traced; /* some process of the run was */
};

static void show_line(struct shown *s, const char *line,
                      void (*each)(void *ctx, const char *text), void *ctx) {
    /* launchers and workers import frameworks, too, and have no steps */
    if (*line == '~' && s->traced) return;
    if (*line == '~') line++;
    if (*line == '\0' || s->n == NOTE_LINES) return;
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->v[i], line) == 0) return;
    char *copy = strdup(line);
    if (copy == NULL) return;
    s->v[s->n++] = copy;
    each(ctx, copy);
}

/* Shows the lines of one file and removes it. */
static void take_file(int dir, const char *name, struct shown *s,
                      void (*each)(void *ctx, const char *text), void *ctx) {
    struct stat st;
    char text[NOTE_BYTES + 1];
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return;
    ssize_t n = fstat(fd, &st) == 0 && S_ISREG(st.st_mode)
                    ? read(fd, text, NOTE_BYTES)
                    : -1;
    close(fd);
    if (n < 0) return;
    text[n] = '\0';
    for (char *at = text, *next; at != NULL; at = next) {
        next = strchr(at, '\n');
        if (next != NULL) *next++ = '\0';
        show_line(s, at, each, ctx);
    }
    unlinkat(dir, name, 0);
}

static bool ends_with(const char *name, const char *end) {
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

/* Is it "<host>_<process>.step<N>" with the end of a profile's name? One that
 * was being written when the process died ends otherwise, and a host's name may
 * have ".step" in it. */
static bool is_capture(const char *name) {
    static const char *const ends[] = {".pt.trace.json.gz", ".pt.trace.json",
                                       ".xplane.pb", ".run_metadata.pb",
                                       ".pickle"};
    static const char digits[] = "0123456789", mark[] = ".step";
    bool is_whole = false, has_step = false;
    for (size_t i = 0; i < COUNT(ends); i++)
        is_whole |= ends_with(name, ends[i]);
    for (const char *at = name; (at = strstr(at, mark)) != NULL;) {
        const char *pid = at;
        while (pid > name && strchr(digits, pid[-1]) != NULL) pid--;
        at += sizeof mark - 1;
        has_step |= pid > name && pid[-1] == '_' && strspn(pid, digits) > 0 &&
                    strspn(at, digits) > 0;
    }
    return is_whole && has_step;
}

static bool has_capture(DIR *d) {
    struct dirent *at;
    bool found = false;
    while (!found && (at = readdir(d)) != NULL) found = is_capture(at->d_name);
    rewinddir(d);
    return found;
}

void hook_take_notes(const char *folder,
                     void (*each)(void *ctx, const char *text), void *ctx) {
    static const char suffix[] = ".notes";
    DIR *d = opendir(folder);
    struct dirent *at;
    struct shown s = {0};
    int left = NOTE_FILES;
    if (d == NULL) return;
    s.traced = has_capture(d);
    while (left-- > 0 && (at = readdir(d)) != NULL) {
        size_t n = strlen(at->d_name), m = sizeof suffix - 1;
        /* "<process>.notes" alone is ours */
        if (n <= m || strcmp(at->d_name + n - m, suffix) != 0 ||
            strspn(at->d_name, "0123456789") != n - m)
            continue;
        take_file(dirfd(d), at->d_name, &s, each, ctx);
    }
    closedir(d);
    while (s.n > 0) free(s.v[--s.n]);
}
