/* SPDX-License-Identifier: Apache-2.0
 * The recorder's system calls on descriptors go through syscall(), past the C
 * library's own functions. A test that includes this has a look at each before
 * it is made, and may answer in its place. Only in the program's own file. */
#ifndef TESTS_REC_SYSCALLS_H
#define TESTS_REC_SYSCALLS_H

#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Returns true if *result is the answer (and errno): the call is then not
 * made. */
static bool look_at_syscall(long number, const long arg[6], long *result);

static long real_syscall(long number, const long a[6]) {
    static long (*real)(long, ...);
    if (real == NULL) real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* This reads six arguments, whether or not there are as many. */
__attribute__((visibility("default"), no_sanitize("address", "undefined"))) long
syscall(long number, ...) {
    long a[6], result = -1;
    va_list ap;
    va_start(ap, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(ap, long);
    va_end(ap);
    if (look_at_syscall(number, a, &result)) return result;
    return real_syscall(number, a);
}

#endif
