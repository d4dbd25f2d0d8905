/* SPDX-License-Identifier: Apache-2.0
 * Finding the importer for some bytes, and running it. */
#include "import/import.h"

#include "base/io/inflate.h"
#include "model/trace_fill.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define X(name) extern const struct importer importer_##name;
#include "import/importers.def"
#undef X

const struct importer *const importers[] = {
#define X(name) &importer_##name,
#include "import/importers.def"
#undef X
    NULL,
};

/* Returns what bytes that no importer knows look like, for the message. */
static const char *guess(struct bytes b) {
    if (b.n == 0)
        return "the file is empty (0 bytes): the program that wrote "
               "it was stopped before it saved the profile";
    if (b.n > 2 && b.p[0] == 0x80 && b.p[1] >= 2 && b.p[1] <= 5)
        return "a Python pickle, but no memory snapshot: it has neither "
               "\"segments\" nor \"device_traces\"";
    size_t text = 0, n = b.n < 512 ? b.n : 512;
    for (size_t i = 0; i < n; i++)
        text += b.p[i] >= ' ' || b.p[i] == '\n' || b.p[i] == '\r' ||
                b.p[i] == '\t';
    if (text == n && (b.p[0] == '{' || b.p[0] == '['))
        return "JSON, but no trace: it has no \"traceEvents\" list and is no "
               "list of events";
    if (text == n) return "a text file, not a profile";
    return "not a profile of any format that opscope reads";
}

static const struct importer *find_importer(struct bytes b) {
    for (size_t i = 0; importers[i] != NULL; i++)
        if (importers[i]->sniff(b)) return importers[i];
    return NULL;
}

/* What was read so far is not the whole file, so it is thrown away. */
static int cancelled(struct ops_err *e) {
    return fail(e, OPS_ECANCEL, "cancelled while it was read");
}

/* Reads an open file into an empty trace; takes the file. imp may be NULL: all
 * of the bytes then decide who reads them. */
static int read_file(const struct importer *imp, const char *path,
                     struct file *f, struct trace *t,
                     const struct import_opts *o, struct ops_err *e) {
    struct bytes b = f->bytes;
    if (imp == NULL) imp = find_importer(b);
    if (imp == NULL) {
        int rc = fail(e, OPS_EFORMAT,
                      "%s; 'opscope help formats' lists what "
                      "can be read",
                      guess(b));
        file_close(f);
        return rc;
    }
    t->threads = o->threads > 0 ? o->threads
                                : (int)sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t source = trace_source(t, path, &imp->format, f, b);
    if (source == ROW_NONE) return fail_oom(e);
    import_told(o, 0, b.n);
    int rc = import_stopped(o) ? 0 : imp->read(t, source, o, e);
    if (rc == 0) import_told(o, b.n, b.n);
    if (import_stopped(o)) return cancelled(e);
    if (rc != 0) return rc;
    f = t->sources[source].file; /* it may have become another */
    if (f->damaged) trace_note(t, NOTE_GZIP_DAMAGED, 1);
    /* a pointer (ring.c) has no events itself, and says why it led to none */
    if (t->sources[source].events == 0 &&
        t->sources[source].format->role != ROLE_RUNNING)
        trace_note(t, NOTE_EMPTY_FILE, 1);
    if (file_shrank(f)) trace_note(t, NOTE_FILE_SHRANK, 1);
    if (t->oom) return fail_oom(e);
    return 0;
}

int import_redirect(struct trace *t, uint32_t source, struct file *f,
                    const struct import_opts *o, struct ops_err *e) {
    struct source *s = &t->sources[source];
    const struct importer *imp = find_importer(f->bytes);
    trace_source_file(t, source, f);
    if (imp == NULL)
        return fail(e, OPS_EFORMAT, "what it leads to is no profile");
    s->format = &imp->format;
    return imp->read(t, source, o, e);
}

/* Adds a file. The first one goes straight into t; a later one into a trace of
 * its own, which is then appended: its times may count from another zero. */
static int add_file(const struct importer *imp, const char *path,
                    struct file *f, struct trace *t,
                    const struct import_opts *o, struct ops_err *e) {
    assert(!t->sealed);
    if (t->nsources == 0) return read_file(imp, path, f, t, o, e);
    struct trace *own = trace_new();
    if (own == NULL) {
        file_close(f);
        return fail_oom(e);
    }
    int rc = read_file(imp, path, f, own, o, e);
    if (rc != 0) {
        trace_free(own);
        return rc;
    }
    return trace_append(t, own, e);
}

bool import_sniff(const char *path, const struct importer **out, bool *maybe) {
    enum { HEAD_BYTES = 1 << 16 };
    uint8_t *head = malloc(HEAD_BYTES + 64);
    *out = NULL;
    *maybe = true;
    if (head == NULL) return false;
    errno = 0;
    struct bytes b = {head, file_head(path, head, HEAD_BYTES)};
    bool ok = b.n > 0 || errno != ENOMEM;
    if (b.n > 0) *out = find_importer(b);
    size_t i = 0;
    while (i < b.n && (b.p[i] == ' ' || b.p[i] == '\n' || b.p[i] == '\r' ||
                       b.p[i] == '\t' || b.p[i] > 0x7f))
        i++;
    *maybe = b.n < HEAD_BYTES || b.p[i] == '{' || b.p[i] == '[' ||
             inflate_sniff(b) != PACKING_NONE; /* packed twice */
    free(head);
    return ok;
}

int import_file(const char *path, struct trace *t, const struct import_opts *o,
                struct ops_err *e) {
    return import_file_by(NULL, path, t, o, e);
}

int import_file_by(const struct importer *imp, const char *path,
                   struct trace *t, const struct import_opts *o,
                   struct ops_err *e) {
    struct file *f;
    bool maybe = true; /* without memory to look, all of the file tells */
    if (!import_told(o, 0, 0)) return cancelled(e);
    if (imp == NULL) import_sniff(path, &imp, &maybe);
    if (imp == NULL && !maybe)
        return fail(e, OPS_EFORMAT,
                    "not a profile of any format that opscope "
                    "reads; 'opscope help formats' lists them");
    TRY(file_open(path, &f, e));
    return add_file(imp, path, f, t, o, e);
}

int import_bytes(struct bytes b, const char *path, struct trace *t,
                 const struct import_opts *o, struct ops_err *e) {
    struct file *f;
    TRY(file_from_bytes(b, &f, e));
    return add_file(NULL, path, f, t, o, e);
}
