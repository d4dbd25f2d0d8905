/* SPDX-License-Identifier: Apache-2.0
 * A line at a time, in one write: lines of two processes do not mix. No memory
 * is asked for: there may be none, which is then what is said. */
#include "cmd/say.h"

#include "base/io/sink.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void vsay(const char *fmt, va_list ap) {
    char line[8192] = "opscope: ";
    size_t n = strlen(line), room = sizeof line - n - 1; /* the line feed */
    int k = vsnprintf(line + n, room, fmt, ap);
    if (k > 0) n += (size_t)k < room ? (size_t)k : room - 1;
    sink_line(STDERR_FILENO, line, n);
}

void say(const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsay(fmt, ap);
    va_end(ap);
}
