/* SPDX-License-Identifier: Apache-2.0
 * See nvml_calls.h. */
#include "rec/machine/nvml_calls.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#define CALL(field) offsetof(struct nvml_calls, field)
static const struct {
    const char *symbol;
    size_t at;
    bool must;
} table[] = {
    {"nvmlInit_v2", CALL(init), true},
    {"nvmlShutdown", CALL(shutdown), true},
    {"nvmlErrorString", CALL(error), false},
    {"nvmlSystemGetDriverVersion", CALL(driver), false},
    {"nvmlDeviceGetCount_v2", CALL(count), true},
    {"nvmlDeviceGetHandleByIndex_v2", CALL(by_index), true},
    {"nvmlDeviceGetHandleByUUID", CALL(by_uuid), false},
    {"nvmlDeviceGetName", CALL(name), false},
    {"nvmlDeviceGetUUID", CALL(uuid), false},
    {"nvmlDeviceGetPciInfo_v3", CALL(pci), false},
    {"nvmlDeviceGetMemoryInfo", CALL(memory), false},
    {"nvmlDeviceGetMemoryInfo_v2", CALL(memory2), false},
    {"nvmlDeviceGetUtilizationRates", CALL(use), false},
    {"nvmlDeviceGetClockInfo", CALL(clock), false},
    {"nvmlDeviceGetPowerUsage", CALL(power), false},
    {"nvmlDeviceGetTemperature", CALL(temperature), false},
    {"nvmlDeviceGetPcieThroughput", CALL(pcie), false},
};

bool nvml_load(struct nvml_calls *c, const char *library) {
    memset(c, 0, sizeof *c);
    void *lib = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
    if (!lib) return false;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        void *f = dlsym(lib, table[i].symbol);
        if (!f && table[i].must) return false;
        /* ISO C has no cast from an object's pointer to a function's. */
        memcpy((char *)c + table[i].at, &f, sizeof f);
    }
    return true;
}

int nvml_ask_memory(const struct nvml_calls *c, void *gpu,
                    struct nvml_memory *out) {
    if (c->memory2) {
        struct nvml_memory2 m = {.version = NVML_MEMORY2};
        int code = c->memory2(gpu, &m);
        if (code == NVML_OK)
            *out = (struct nvml_memory){m.total, m.free, m.used};
        if (code != NVML_NOT_SUPPORTED && code != NVML_FUNCTION_NOT_FOUND &&
            code != NVML_OTHER_VERSION)
            return code;
    }
    return c->memory ? c->memory(gpu, out) : NVML_FUNCTION_NOT_FOUND;
}

const char *nvml_error(const struct nvml_calls *c, int code) {
    const char *text = c->error ? c->error(code) : NULL;
    return text ? text : "unknown error";
}
