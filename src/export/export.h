/* SPDX-License-Identifier: Apache-2.0
 * A sealed trace becomes a file of another format. There is one exporter per
 * format, listed in exporters.def. Exporters never include each other; what
 * writers of JSON share is base/text/json_text.h. */
#ifndef EXPORT_EXPORT_H
#define EXPORT_EXPORT_H

#include "base/err.h"
#include "base/io/sink.h"
#include "model/trace.h"

struct exporter {
    const char *name;   /* "chrome" */
    const char *suffix; /* ".json": what such files' names end with */
    const char *help;   /* one line: what it writes, who reads it */
    /* Writes all of t. An error of the sink may be left to its flush. */
    int (*write)(const struct trace *t, struct sink *out, struct ops_err *e);
};

/* All exporters; NULL ends the list. */
extern const struct exporter *const exporters[];

/* How a file is to be written. */
struct export_form {
    const struct exporter *exporter;
    bool gzip;
};

/* Finds the form by the exporter's name (NULL: by the path's longest known
 * suffix; ".gz" behind it asks for gzip, with a name, too). The sentence of
 * OPS_EUSAGE lists what there is. */
int export_form(const char *path, const char *name, struct export_form *out,
                struct ops_err *e);

/* Writes t to an open descriptor, which stays the caller's. A terminal gets
 * nothing that could steer it; compressed bytes for one are OPS_EUSAGE. */
int export_write(const struct trace *t, struct export_form form, int fd,
                 struct ops_err *e);

#endif
