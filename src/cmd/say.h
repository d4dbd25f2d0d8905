/* SPDX-License-Identifier: Apache-2.0
 * What the program says of itself, on stderr: the one way to do it. */
#ifndef CMD_SAY_H
#define CMD_SAY_H

#include <stdarg.h>

/* One line, "opscope: ...". It may quote anything: see base/text/plain.h. */
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void vsay(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));

#endif
