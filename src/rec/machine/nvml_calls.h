/* SPDX-License-Identifier: Apache-2.0
 * The functions of libnvidia-ml.so.1 that are used, with the layouts they
 * fill in (a stable C interface: only names with a higher _vN ever change). */
#ifndef REC_MACHINE_NVML_CALLS_H
#define REC_MACHINE_NVML_CALLS_H

#include <stdbool.h>

enum {
    NVML_OK = 0,
    NVML_INVALID_ARGUMENT = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_NO_PERMISSION = 4,
    NVML_FUNCTION_NOT_FOUND = 13,
    NVML_GPU_IS_LOST = 15,
    NVML_OTHER_VERSION = 25
};
enum { NVML_CLOCK_SM = 1, NVML_CLOCK_MEMORY = 2 };
enum { NVML_PCIE_TX = 0, NVML_PCIE_RX = 1 };

struct nvml_memory {
    unsigned long long total, free, used; /* bytes */
};
/* Here "used" is without what the driver reserves, as in nvidia-smi. The
 * caller sets version: the struct's size and its number. */
struct nvml_memory2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};
#define NVML_MEMORY2 ((unsigned)sizeof(struct nvml_memory2) | 2u << 24)
struct nvml_use {
    unsigned gpu, memory; /* % of the time */
};
struct nvml_pci {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char bus_id[32];
};

/* NULL: this driver does not have it. */
struct nvml_calls {
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error)(int);
    int (*driver)(char *, unsigned);
    int (*count)(unsigned *);
    int (*by_index)(unsigned, void **);
    int (*by_uuid)(const char *, void **);
    int (*name)(void *, char *, unsigned);
    int (*uuid)(void *, char *, unsigned);
    int (*pci)(void *, struct nvml_pci *);
    int (*memory)(void *, struct nvml_memory *);
    int (*memory2)(void *, struct nvml_memory2 *);
    int (*use)(void *, struct nvml_use *);
    int (*clock)(void *, int, unsigned *);       /* MHz */
    int (*power)(void *, unsigned *);            /* mW */
    int (*temperature)(void *, int, unsigned *); /* degrees C */
    int (*pcie)(void *, int, unsigned *);        /* KB/s, over 20 ms */
};

/* Loads the library; false: not there, or not NVML. It stays loaded: the
 * driver's libraries do not like to be taken out. */
bool nvml_load(struct nvml_calls *c, const char *library);

/* The memory of a GPU, by the newer call if the driver has it. */
int nvml_ask_memory(const struct nvml_calls *c, void *gpu,
                    struct nvml_memory *out);

/* The driver's words for an error. */
const char *nvml_error(const struct nvml_calls *c, int code);

#endif
