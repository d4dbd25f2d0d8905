/* SPDX-License-Identifier: Apache-2.0
 * A stand-in for NVIDIA's management library, with the prototypes of its
 * documentation: three GPUs that say what the test wants. Built by the test
 * into a shared library; -DOLD leaves out what old drivers do not have. */
#include "nvml.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef int nvmlReturn_t;
typedef struct device *nvmlDevice_t;
struct device {
    int number;
};
typedef struct {
    unsigned long long total, free, used;
} nvmlMemory_t;
typedef struct {
    unsigned int version;
    unsigned long long total, reserved, free, used;
} nvmlMemory_v2_t;
typedef struct {
    unsigned int gpu, memory;
} nvmlUtilization_t;
typedef struct {
    char busIdLegacy[16];
    unsigned int domain, bus, device, pciDeviceId, pciSubSystemId;
    char busId[32];
} nvmlPciInfo_t;

struct fake_nvml fake_nvml = {.ngpus = 2};
static struct device devices[FAKE_GPUS] = {{0}, {1}, {2}};
static const char *const uuids[FAKE_GPUS] = {
    "GPU-aaaaaaaa-1111-2222-3333-444444444444",
    "GPU-bbbbbbbb-1111-2222-3333-444444444444",
    "MIG-cccccccc-1111-2222-3333-444444444444", /* only found by name */
};

#define GET(x) __atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define ADD(x) __atomic_add_fetch(&(x), 1, __ATOMIC_ACQ_REL)

/* Counts the call. Returns the code that it has to fail with, or 0. */
static nvmlReturn_t enter(nvmlDevice_t d) {
    sigset_t set;
    ADD(fake_nvml.calls);
    pthread_sigmask(SIG_SETMASK, NULL, &set);
    if (!sigismember(&set, SIGINT) || !sigismember(&set, SIGUSR1))
        ADD(fake_nvml.signals_open);
    if (GET(fake_nvml.inits) == 0) return 1; /* not initialised */
    return d ? GET(fake_nvml.lost[d->number]) : 0;
}

nvmlReturn_t nvmlInit_v2(void) {
    if (fake_nvml.init_code == 0) ADD(fake_nvml.inits);
    return fake_nvml.init_code;
}

nvmlReturn_t nvmlShutdown(void) {
    ADD(fake_nvml.shutdowns);
    return 0;
}

const char *nvmlErrorString(nvmlReturn_t code) {
    return code == 3    ? "Not Supported"
           : code == 9  ? "Driver Not Loaded"
           : code == 13 ? "Function Not Found"
           : code == 15 ? "GPU is lost"
                        : "Unknown Error";
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *out, unsigned int n) {
    snprintf(out, n, "999.42");
    return enter(NULL);
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *n) {
    *n = fake_nvml.ngpus;
    return fake_nvml.count_code ? fake_nvml.count_code : enter(NULL);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int i, nvmlDevice_t *d) {
    if (i >= fake_nvml.ngpus) return 2;
    *d = &devices[i];
    return enter(NULL);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *d) {
    for (int i = 0; i < FAKE_GPUS; i++)
        if (strcmp(uuid, uuids[i]) == 0) {
            *d = &devices[i];
            return enter(NULL);
        }
    return 6; /* not found */
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t d, char *out, unsigned int n) {
    snprintf(out, n, "Fake %c", 'A' + d->number);
    return enter(NULL);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t d, char *out, unsigned int n) {
    snprintf(out, n, "%s", uuids[d->number]);
    return enter(NULL);
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t d, nvmlPciInfo_t *p) {
    memset(p, 0x55, sizeof *p);
    snprintf(p->busId, sizeof p->busId, "00000000:0%d:00.0", d->number + 1);
    return enter(NULL);
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t d, nvmlMemory_t *m) {
    nvmlReturn_t code = enter(d);
    while (GET(fake_nvml.hang)) {
        ADD(fake_nvml.hanging);
        usleep(1000);
    }
    if (code) return code;
    m->total = 80ull << 30;
    m->used = (7ull << 30) + (unsigned)d->number;
    m->free = m->total - m->used;
    return 0;
}

#ifndef OLD
/* The call above counts as used what the driver reserves; this one does not. */
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t d, nvmlMemory_v2_t *m) {
    nvmlMemory_t all;
    if (fake_nvml.memory2_code) return fake_nvml.memory2_code;
    if (m->version != 0x02000028) return 25; /* argument version mismatch */
    nvmlReturn_t code = nvmlDeviceGetMemoryInfo(d, &all);
    m->total = all.total;
    m->reserved = 1ull << 30;
    m->free = all.free;
    m->used = all.used - m->reserved;
    return code;
}
#endif

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t d,
                                           nvmlUtilization_t *u) {
    u->gpu = 61;
    u->memory = 23;
    return d->number == 2 ? 3 : enter(d); /* no such figure for MIG */
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t d, int type,
                                    unsigned int *mhz) {
    if (GET(fake_nvml.clock_fails) > 0) {
        __atomic_sub_fetch(&fake_nvml.clock_fails, 1, __ATOMIC_ACQ_REL);
        return 999;
    }
    *mhz = type == 1 ? 1980 : type == 2 ? 3201 : 7;
    return enter(d);
}

#ifndef OLD
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t d, unsigned int *mw) {
    *mw = 345678;
    return fake_nvml.power_code[d->number] ? fake_nvml.power_code[d->number]
                                           : enter(d);
}

nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t d, int counter,
                                         unsigned int *kbs) {
    *kbs = counter == 0 ? 1234 : 5678; /* 0: sent by the GPU */
    return enter(d);
}
#endif

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t d, int sensor,
                                      unsigned int *c) {
    *c = sensor == 0 ? 47 : 0;
    return enter(d);
}
