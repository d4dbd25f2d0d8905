/* SPDX-License-Identifier: Apache-2.0
 * What a test tells the stand-in for libnvidia-ml.so.1, and what that one
 * tells the test. Find it with dlsym(lib, "fake_nvml"). */
#ifndef FAKE_NVML_H
#define FAKE_NVML_H

enum { FAKE_GPUS = 3 };

struct fake_nvml {
    /* set by the test, before nvml_open */
    int init_code, count_code;
    unsigned ngpus;
    int power_code[FAKE_GPUS];
    int lost[FAKE_GPUS]; /* not 0: every call about it fails so */
    int clock_fails;     /* so many calls fail with 999, then no more */
    int memory2_code;    /* the newer memory call fails so */
    int hang;            /* the memory call waits while this is not 0 */
    /* set by the library */
    int inits, shutdowns, hanging;
    int calls;
    int signals_open; /* a call came with SIGINT or SIGUSR1 not blocked */
};

#endif
