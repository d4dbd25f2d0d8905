/* SPDX-License-Identifier: Apache-2.0
 * Bytes become a trace. There is one importer per format, listed in
 * importers.def; the first whose sniff() says yes reads the file: its content
 * decides, not its name. Importers never include each other; what JSON formats
 * share is events.h. */
#ifndef IMPORT_IMPORT_H
#define IMPORT_IMPORT_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/io/file.h"
#include "model/format.h"
#include "model/trace.h"

struct import_opts {
    int threads; /* at most so many; 0: as many as pay */
    /* Is told how far the file is, in one thread at a time; 0 of 0: a file is
     * about to be opened. Returns false to stop reading. May be NULL. */
    bool (*progress)(void *ctx, uint64_t done, uint64_t all);
    void *progress_ctx;
    bool *stop; /* atomic: progress said so. Or NULL, and nothing stops */
};

/* Is reading to stop? Every thread that reads asks now and then; import.c makes
 * the error. o may be NULL. */
static inline bool import_stopped(const struct import_opts *o) {
    return o != NULL && o->stop != NULL &&
           __atomic_load_n(o->stop, __ATOMIC_RELAXED);
}

/* Tells how far reading is, unless progress has said no already. Returns false
 * if reading is to stop. */
static inline bool import_told(const struct import_opts *o, uint64_t done,
                               uint64_t all) {
    if (o != NULL && o->progress != NULL && !import_stopped(o) &&
        !o->progress(o->progress_ctx, done, all) && o->stop != NULL)
        __atomic_store_n(o->stop, true, __ATOMIC_RELAXED);
    return !import_stopped(o);
}

/* What is known of the program that writes a file. */
enum import_writer {
    WRITER_UNKNOWN, /* it may be on another machine, or long gone */
    WRITER_ALIVE,
    WRITER_DEAD, /* it ended without closing the file */
};

struct importer {
    struct format format;
    const char *help; /* one line: what it reads */
    /* Is this file mine? Gets all bytes, and looks at the first 64 KiB. */
    bool (*sniff)(struct bytes all);
    /* Reads everything into t under the source already made for it. Of a cut or
     * damaged file it reads what it can and adds a note. Returns OPS_EFORMAT
     * only when nothing at all can be made of the file. */
    int (*read)(struct trace *t, uint32_t source, const struct import_opts *o,
                struct ops_err *e);
    /* Looks for the program that is about to write; it reads nothing else.
     * NULL: files of this format do not lead to it. */
    enum import_writer (*writer)(const char *path);
};

/* All importers, in sniffing order; NULL ends the list. */
extern const struct importer *const importers[];

/* Finds the importer for a file by its first bytes, before anybody inflates it:
 * gigabytes of zeros may hide in a small file. *out is NULL if none knows them;
 * *maybe then tells whether all of the file might be a profile all the same
 * (JSON may have its events far behind a header). Returns false if out of
 * memory. */
bool import_sniff(const char *path, const struct importer **out, bool *maybe);

/* Opens path and adds it to an unsealed trace. */
int import_file(const char *path, struct trace *t, const struct import_opts *o,
                struct ops_err *e);

/* Does the same by the importer that import_sniff found; imp is NULL where
 * import_sniff was not asked. */
int import_file_by(const struct importer *imp, const char *path,
                   struct trace *t, const struct import_opts *o,
                   struct ops_err *e);

/* Does the same for bytes at hand, which have 64 zero bytes behind them and
 * which the caller keeps alive as long as the trace. */
int import_bytes(struct bytes b, const char *path, struct trace *t,
                 const struct import_opts *o, struct ops_err *e);

/* Serves an importer whose bytes only say where the profile is: the source's
 * file becomes f (taken), and whoever knows its bytes reads them. The source
 * must be the trace's only one. */
int import_redirect(struct trace *t, uint32_t source, struct file *f,
                    const struct import_opts *o, struct ops_err *e);

#endif
