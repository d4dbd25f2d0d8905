/* SPDX-License-Identifier: Apache-2.0
 * The table of exporters, the choice of one, and the gzip layer before it. */
#include "export/export.h"

#include "base/io/inflate.h"
#include "base/text/suggest.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define X(name) extern const struct exporter exporter_##name;
#include "export/exporters.def"
#undef X

const struct exporter *const exporters[] = {
#define X(name) &exporter_##name,
#include "export/exporters.def"
#undef X
    NULL,
};

int export_form(const char *path, const char *name, struct export_form *out,
                struct ops_err *e) {
    struct bytes in = bytes_of(path);
    size_t best = 0;
    *out = (struct export_form){.gzip = bytes_ends(in, ".gz")};
    if (name != NULL) {
        struct suggest s = suggest_for(name);
        for (size_t i = 0; exporters[i] != NULL; i++) {
            suggest_try(&s, exporters[i]->name);
            if (strcmp(exporters[i]->name, name) != 0) continue;
            out->exporter = exporters[i];
            return 0;
        }
        const char *near = suggest_best(&s);
        return fail(e, OPS_EUSAGE, "no exporter is called '%s'; %s%s%s", name,
                    near ? "did you mean '"
                         : "'opscope help exports' lists them",
                    near ? near : "", near ? "'?" : "");
    }
    if (out->gzip) in.n -= 3;
    for (size_t i = 0; exporters[i] != NULL; i++) {
        size_t k = strlen(exporters[i]->suffix);
        if (k <= best || !bytes_ends(in, exporters[i]->suffix)) continue;
        best = k;
        out->exporter = exporters[i];
    }
    if (out->exporter != NULL) return 0;
    char known[256] = "";
    size_t n = 0;
    for (size_t i = 0; exporters[i] != NULL; i++) {
        const char *s = exporters[i]->suffix;
        if (n + 2 * strlen(s) + 8 > sizeof known) break;
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%s %s.gz",
                              n ? " " : "", s, s);
    }
    return fail(e, OPS_EUSAGE,
                "%s: the name does not tell which format to "
                "write; known suffixes are %s, or give --to NAME",
                path, known);
}

int export_write(const struct trace *t, struct export_form form, int fd,
                 struct ops_err *e) {
    struct sink file, text;
    bool terminal = isatty(fd);
    int rc;
    if (terminal && form.gzip)
        return fail(e, OPS_EUSAGE, "compressed bytes are not for a terminal");
    if (terminal) sink_screen(&file, fd);
    else sink_fd(&file, fd);
    if (form.gzip) {
        struct gzip *g = gzip_begin(&file, &text);
        if (g == NULL) return fail_oom(e);
        rc = form.exporter->write(t, &text, e);
        struct ops_err later;
        int end = gzip_end(g, &text, rc == 0 ? e : &later);
        if (rc == 0) rc = end;
    } else {
        rc = form.exporter->write(t, &file, e);
    }
    if (rc == 0) rc = sink_flush(&file, e);
    sink_free(&file);
    return rc;
}
