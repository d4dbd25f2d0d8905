/* SPDX-License-Identifier: Apache-2.0
 * A line at a time, in one write: lines of two processes do not mix. */
#include "cmd/say.h"

#include "base/plain.h"
#include "base/sink.h"
#include <unistd.h>

void vsay(const char *fmt, va_list ap) {
    struct sink line, out;
    sink_memory(&line);
    sink_puts(&line, "opscope: ");
    sink_vprintf(&line, fmt, ap);
    sink_screen(&out, STDERR_FILENO);
    /* a line feed in a name is none of ours */
    sink_write(&out, line.buf, plain_clean(line.buf, line.n, PLAIN_LINE));
    sink_putc(&out, '\n');
    sink_flush(&out, NULL);
    sink_free(&out);
    sink_free(&line);
}

void say(const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsay(fmt, ap);
    va_end(ap);
}
