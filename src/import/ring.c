/* SPDX-License-Identifier: Apache-2.0
 * "<stem>.ring": one line of text, the path of the shared memory that a
 * recording program writes into (ring/ring.h). What its files do not hold yet
 * stands there, after a kill as well: ring/recover.h joins the two, event for
 * event, and the result is read as the XSpace that it is.
 *
 * No error comes from here but want of memory: what the pointer leads to may
 * be gone, damaged or somebody else's, and the files beside it are good all
 * the same. It is noted. */
#include "import/import.h"

#include "model/trace_fill.h"
#include "ring/recover.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Returns the path in the line, its end taken off; NULL if it is no such line.
 * Ring files are named "opscope-..." in shared memory, "<stem>.rings"
 * elsewhere. */
static const char *target(struct bytes b, char out[PATH_MAX]) {
    if (b.n < 3 || b.n >= PATH_MAX || b.p[0] != '/' || b.p[b.n - 1] != '\n')
        return NULL;
    for (size_t i = 0; i + 1 < b.n; i++)
        if (b.p[i] < ' ' || b.p[i] == 0x7f) return NULL;
    memcpy(out, b.p, b.n - 1);
    out[b.n - 1] = '\0';
    const char *base = strrchr(out, '/') + 1;
    size_t n = strlen(base);
    bool named = strncmp(base, "opscope-", 8) == 0 ||
                 (n > 6 && strcmp(base + n - 6, ".rings") == 0);
    return named ? out : NULL;
}

static bool sniff(struct bytes all) {
    char text[PATH_MAX];
    return target(all, text) != NULL;
}

/* Says, as a note and in words, why the pointer's recording cannot be read. */
static int lost(struct trace *t, uint32_t source, enum note_id id,
                const char *why) {
    trace_note(t, id, 1);
    trace_meta(t, source, "warning", bytes_of(why));
    return 0;
}

static int read_ring(struct trace *t, uint32_t source,
                     const struct import_opts *o, struct ops_err *e) {
    char text[PATH_MAX], why[256] = "";
    struct stat st;
    const char *ring = target(t->sources[source].bytes, text);
    t->sources[source].by_opscope = true;
    t->sources[source].decimals = 6;
    if (ring == NULL)
        return lost(t, source, NOTE_RING_DAMAGED, "not a pointer to a ring");
    if (lstat(ring, &st) != 0 && errno == ENOENT)
        return lost(t, source, NOTE_RING_GONE, "the shared memory is gone");
    struct recovered *rest = calloc(1, sizeof *rest);
    if (rest == NULL) return fail_oom(e);
    int rc = 0;
    struct file *f;
    int got = recover_read(t->sources[source].path, rest, why, sizeof why);
    if (got == RECOVER_NO_MEMORY) {
        rc = fail_oom(e);
    } else if (got != 0) {
        rc = lost(t, source, NOTE_RING_DAMAGED, why);
    } else if (rest->p != NULL) { /* else the files are whole */
        rc = file_from_mapping((struct bytes){rest->p, rest->n}, rest->mapped,
                               &f, e);
        if (rc == 0) rc = import_redirect(t, source, f, o, e);
        if (rest->file[0] != '\0')
            trace_meta(t, source, "includes", bytes_of(rest->file));
        trace_note(t, NOTE_RING_READ, rest->ring_events);
        if (rc == 0 && rest->damaged > 0)
            rc = lost(t, source, NOTE_RING_DAMAGED,
                      "rings of some threads are damaged: they are left out");
    }
    free(rest);
    return rc;
}

static enum import_writer writer(const char *path) {
    struct recover_look look;
    if (!recover_look_path(path, &look)) return WRITER_UNKNOWN;
    return look.alive ? WRITER_ALIVE : WRITER_DEAD;
}

const struct importer importer_ring = {
    .format =
        {
            .name = "ring",
            .role = ROLE_RUNNING,
        },
    .help = "what a program that records is about to write, or left when it "
            "was killed (.ring)",
    .sniff = sniff,
    .read = read_ring,
    .writer = writer,
};
