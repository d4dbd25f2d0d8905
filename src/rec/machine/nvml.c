/* SPDX-License-Identifier: Apache-2.0
 * See nvml.h. The thread and its owner share a struct in a mapping of its own;
 * the last of both to leave unmaps it. So the owner can go while the thread is
 * stuck in the driver. The lock is held for copying only, never during a call
 * into the driver. */
#include "rec/machine/nvml.h"

#include "base/array.h"
#include "ring/clock.h"
#include "ring/procfile.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* --- the library --------------------------------------------------------- */

/* The functions of libnvidia-ml.so.1 that are used, with the layouts they fill
 * in: a stable C interface, in which only names with a higher _vN change. */
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

/* A call is NULL if this driver does not have it. */
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

/* Loads the library. Returns false if it is not there, or not NVML. It stays
 * loaded: the driver's libraries do not like to be taken out. */
static bool nvml_load(struct nvml_calls *c, const char *library) {
    memset(c, 0, sizeof *c);
    void *lib = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
    if (!lib) return false;
    for (size_t i = 0; i < COUNT(table); i++) {
        void *f = dlsym(lib, table[i].symbol);
        if (!f && table[i].must) return false;
        /* ISO C has no cast from an object's pointer to a function's. */
        memcpy((char *)c + table[i].at, &f, sizeof f);
    }
    return true;
}

/* Asks for the memory of a GPU, by the newer call if the driver has it. */
static int nvml_ask_memory(const struct nvml_calls *c, void *gpu,
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

/* Returns the driver's words for an error. */
static const char *nvml_error(const struct nvml_calls *c, int code) {
    const char *text = c->error ? c->error(code) : NULL;
    return text ? text : "unknown error";
}

/* --- what is asked ------------------------------------------------------- */

enum { GPUS = 16, TRIES = 10, STACK = 1 << 20 };

/* What is asked; PCIe comes last, since it is asked less often. */
enum metric {
    MEMORY,
    USE,
    USE_MEMORY,
    CLOCK,
    CLOCK_MEMORY,
    POWER,
    TEMPERATURE,
    PCIE_RX,
    PCIE_TX,
    METRICS
};

static const char *const names[METRICS] = {
    [MEMORY] = "memory used (bytes)",
    [USE] = "utilisation (%)",
    [USE_MEMORY] = "memory utilisation (%)",
    [CLOCK] = "SM clock (MHz)",
    [CLOCK_MEMORY] = "memory clock (MHz)",
    [POWER] = "power (W)",
    [TEMPERATURE] = "temperature (C)",
    [PCIE_RX] = "PCIe received (bytes/s)",
    [PCIE_TX] = "PCIe sent (bytes/s)",
};

struct gpu {
    void *handle;
    char name[96], uuid[96], pci[32];
    int index; /* NVML's; -1: a part of a GPU (MIG) */
    unsigned long long memory;
    struct {
        double value;
        uint64_t at; /* ns: when it was last made fresh */
        bool fresh;  /* not fetched yet */
        bool off;    /* not asked any more */
        int failed;  /* times in a row */
        int code;    /* of the last failure */
    } m[METRICS];
};

enum state { STARTING, ON, OFF };

struct nvml_work {
    pthread_mutex_t lock;
    pthread_cond_t wake, left;
    pthread_t thread;
    int owners;       /* atomic: who still uses this */
    bool alone;       /* there is no driver, and no thread */
    bool stop;        /* atomic */
    bool done;        /* the thread is about to end */
    bool idle;        /* nobody fetches: it asks seldom */
    uint64_t fetched; /* ns: when somebody last did */
    enum state state;
    char say[160]; /* the fact "nvml" */
    char library[512], visible[1024];
    bool choose; /* CUDA_VISIBLE_DEVICES is set */
    struct nvml_calls calls;
    int ngpus;
    struct gpu gpus[GPUS];
};

static struct timespec at_ns(uint64_t ns) {
    return (struct timespec){(time_t)(ns / 1000000000),
                             (long)(ns % 1000000000)};
}

static bool stopping(struct nvml_work *w) { return REC_ACQUIRE(&w->stop); }

static void leave(struct nvml_work *w) {
    if (__atomic_sub_fetch(&w->owners, 1, __ATOMIC_ACQ_REL) == 0)
        munmap(w, sizeof *w);
}

__attribute__((format(printf, 3, 4))) static void
set_state(struct nvml_work *w, enum state state, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    pthread_mutex_lock(&w->lock);
    vsnprintf(w->say, sizeof w->say, fmt, ap);
    w->state = state;
    pthread_mutex_unlock(&w->lock);
    va_end(ap);
}

/* --- which GPUs ---------------------------------------------------------- */

static void add_gpu(struct nvml_work *w, void *handle, int index) {
    const struct nvml_calls *c = &w->calls;
    struct nvml_memory m;
    struct nvml_pci pci;
    if (w->ngpus == GPUS) return;
    struct gpu *g = &w->gpus[w->ngpus++];
    g->handle = handle;
    g->index = index;
    if (!c->name || c->name(handle, g->name, sizeof g->name) != NVML_OK)
        g->name[0] = '\0';
    if (!c->uuid || c->uuid(handle, g->uuid, sizeof g->uuid) != NVML_OK)
        g->uuid[0] = '\0';
    if (c->pci && c->pci(handle, &pci) == NVML_OK)
        snprintf(g->pci, sizeof g->pci, "%.31s", pci.bus_id);
    if (nvml_ask_memory(c, handle, &m) == NVML_OK) g->memory = m.total;
    g->name[sizeof g->name - 1] = g->uuid[sizeof g->uuid - 1] = '\0';
}

/* Adds one entry of CUDA_VISIBLE_DEVICES: a number, or the beginning of a UUID,
 * or the UUID of a MIG device. Returns false if there is no such GPU: as in
 * CUDA the entries behind it do not count either. */
static bool add_visible(struct nvml_work *w, const char *entry, unsigned n) {
    const struct nvml_calls *c = &w->calls;
    char uuid[96];
    void *handle;
    int64_t k;
    if (procfile_whole(entry, &k)) {
        if (k >= n || c->by_index((unsigned)k, &handle) != NVML_OK)
            return false;
        add_gpu(w, handle, (int)k);
        return true;
    }
    if (strncmp(entry, "MIG-", 4) == 0) {
        if (!c->by_uuid || c->by_uuid(entry, &handle) != NVML_OK) return false;
        add_gpu(w, handle, -1);
        return true;
    }
    if (strncmp(entry, "GPU-", 4) != 0 || !c->uuid) return false;
    for (unsigned i = 0; i < n; i++) {
        if (c->by_index(i, &handle) != NVML_OK ||
            c->uuid(handle, uuid, sizeof uuid) != NVML_OK ||
            strncmp(uuid, entry, strlen(entry)) != 0)
            continue;
        add_gpu(w, handle, (int)i);
        return true;
    }
    return false;
}

static void add_gpus(struct nvml_work *w, unsigned n) {
    char entry[96];
    void *handle;
    if (!w->choose) {
        for (unsigned i = 0; i < n; i++)
            if (w->calls.by_index(i, &handle) == NVML_OK)
                add_gpu(w, handle, (int)i);
        return;
    }
    for (const char *p = w->visible; *p;) {
        p += strspn(p, " ");
        size_t len = strcspn(p, ",");
        if (len >= sizeof entry) return;
        memcpy(entry, p, len);
        entry[len] = '\0';
        while (len > 0 && entry[len - 1] == ' ') entry[--len] = '\0';
        if (!add_visible(w, entry, n)) return;
        p += strcspn(p, ",");
        if (*p) p++;
    }
}

/* --- asking -------------------------------------------------------------- */

/* Asks one metric of one GPU. Returns NVML's code; *v becomes the value. */
static int ask(const struct nvml_calls *c, void *h, enum metric m, double *v) {
    struct nvml_memory memory;
    struct nvml_use use;
    unsigned n = 0;
    double unit = 1;
    int code = NVML_FUNCTION_NOT_FOUND;
    switch (m) {
    case MEMORY:
        code = nvml_ask_memory(c, h, &memory);
        if (code == NVML_OK) *v = (double)memory.used;
        return code;
    case USE:
    case USE_MEMORY:
        if (c->use) code = c->use(h, &use);
        if (code == NVML_OK) *v = m == USE ? use.gpu : use.memory;
        return code;
    case CLOCK:
        if (c->clock) code = c->clock(h, NVML_CLOCK_SM, &n);
        break;
    case CLOCK_MEMORY:
        if (c->clock) code = c->clock(h, NVML_CLOCK_MEMORY, &n);
        break;
    case POWER:
        if (c->power) code = c->power(h, &n);
        unit = 1e-3;
        break;
    case TEMPERATURE:
        if (c->temperature) code = c->temperature(h, 0, &n);
        break;
    case PCIE_RX:
    case PCIE_TX:
        if (c->pcie)
            code = c->pcie(h, m == PCIE_RX ? NVML_PCIE_RX : NVML_PCIE_TX, &n);
        unit = 1e3;
        break;
    case METRICS: break;
    }
    if (code == NVML_OK) *v = n * unit;
    return code;
}

static void ask_gpu(struct nvml_work *w, struct gpu *g, enum metric from,
                    enum metric to) {
    for (enum metric m = from; m < to && !stopping(w); m++) {
        double v = 0;
        if (g->m[m].off) continue;
        int code = ask(&w->calls, g->handle, m, &v);
        uint64_t now = rec_mono_ns();
        pthread_mutex_lock(&w->lock);
        if (code != NVML_OK) {
            g->m[m].code = code;
            /* to ask again does not mend the first five */
            if (code == NVML_NOT_SUPPORTED || code == NVML_FUNCTION_NOT_FOUND ||
                code == NVML_NO_PERMISSION || code == NVML_INVALID_ARGUMENT ||
                code == NVML_GPU_IS_LOST || ++g->m[m].failed == TRIES)
                g->m[m].off = true;
        } else {
            g->m[m].failed = 0;
            if (g->m[m].at == 0 || g->m[m].value != v ||
                now - g->m[m].at >= 1000000000) {
                g->m[m].value = v;
                g->m[m].at = now;
                g->m[m].fresh = true;
            }
        }
        pthread_mutex_unlock(&w->lock);
    }
}

/* Sleeps until the next round: `pause` after the begin of this one, and longer
 * while nobody fetches; the first fetch ends it. */
static void rest(struct nvml_work *w, uint64_t begin, uint64_t pause) {
    pthread_mutex_lock(&w->lock);
    bool idle = w->idle = rec_mono_ns() - w->fetched > 1000000000;
    if (idle && pause < 1000000000) pause = 1000000000;
    struct timespec t = at_ns(begin + pause);
    while (!stopping(w) && rec_mono_ns() < begin + pause && w->idle == idle)
        pthread_cond_timedwait(&w->wake, &w->lock, &t);
    pthread_mutex_unlock(&w->lock);
}

/* Does all from loading to the first GPU. Returns false if there is nothing to
 * watch. */
static bool nvml_begin(struct nvml_work *w) {
    const struct nvml_calls *c = &w->calls;
    char version[80] = "";
    unsigned n = 0;
    if (!nvml_load(&w->calls, w->library)) {
        set_state(w, OFF, "not found");
        return false;
    }
    int code = c->init();
    if (code != NVML_OK) {
        set_state(w, OFF, "did not start: %s", nvml_error(c, code));
        return false;
    }
    code = c->count(&n);
    if (code == NVML_OK && !stopping(w)) add_gpus(w, n);
    if (!c->driver || c->driver(version, sizeof version) != NVML_OK)
        version[0] = '\0';
    version[sizeof version - 1] = '\0';
    if (code != NVML_OK)
        set_state(w, OFF, "no list of GPUs: %s", nvml_error(c, code));
    else
        set_state(w, w->ngpus ? ON : OFF, "driver %s%s",
                  version[0] ? version : "(version not told)",
                  w->ngpus ? "" : ", no GPU is visible");
    if (w->ngpus == 0) c->shutdown();
    return w->ngpus > 0;
}

static void *thread_main(void *arg) {
    struct nvml_work *w = arg;
    pthread_setname_np(pthread_self(), "opscope-nvml");
    if (nvml_begin(w)) {
        uint64_t pcie_at = rec_mono_ns();
        int turn = 0;
        while (!stopping(w)) {
            uint64_t begin = rec_mono_ns();
            for (int i = 0; i < w->ngpus; i++)
                ask_gpu(w, &w->gpus[i], MEMORY, PCIE_RX);
            uint64_t took = rec_mono_ns() - begin;
            if (rec_mono_ns() >= pcie_at) {
                ask_gpu(w, &w->gpus[turn++ % w->ngpus], PCIE_RX, METRICS);
                pcie_at = begin + 1000000000;
            }
            uint64_t pause = took * 10 > 100000000 ? took * 10 : 100000000;
            rest(w, begin, pause);
        }
        w->calls.shutdown();
    }
    pthread_mutex_lock(&w->lock);
    w->done = true;
    pthread_cond_signal(&w->left);
    pthread_mutex_unlock(&w->lock);
    leave(w);
    return NULL;
}

/* --- the owner's side ---------------------------------------------------- */

/* Starts the thread with signals blocked: they are for the program's
 * threads. */
static int start_thread(struct nvml_work *w) {
    sigset_t all, before;
    pthread_attr_t attr;
    if (pthread_attr_init(&attr) != 0) return -1;
    pthread_attr_setstacksize(&attr, STACK);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&w->thread, &attr, thread_main, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return failed ? -1 : 0;
}

static int init_waits(struct nvml_work *w) {
    pthread_condattr_t attr;
    if (pthread_condattr_init(&attr) != 0) return -1;
    int failed = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) ||
                 pthread_cond_init(&w->wake, &attr) ||
                 pthread_cond_init(&w->left, &attr) ||
                 pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_destroy(&attr);
    return failed ? -1 : 0;
}

void nvml_open(struct nvml *n, const char *library, const char *visible) {
    n->work = NULL;
    struct nvml_work *w = mmap(NULL, sizeof *w, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (w == MAP_FAILED) return;
    snprintf(w->library, sizeof w->library, "%s",
             library ? library : "libnvidia-ml.so.1");
    snprintf(w->visible, sizeof w->visible, "%s", visible ? visible : "");
    w->choose = visible != NULL;
    w->fetched = rec_mono_ns();
    /* Loading a library opens files with the program's numbers, for an instant:
     * it is not done where there is no driver for it to talk to. */
    w->alone = library == NULL && access("/proc/driver/nvidia", F_OK) != 0 &&
               access("/dev/nvidiactl", F_OK) != 0 &&
               access("/dev/dxg", F_OK) != 0;
    w->owners = w->alone ? 1 : 2;
    if (init_waits(w) != 0 || (!w->alone && start_thread(w) != 0)) {
        munmap(w, sizeof *w);
        return;
    }
    if (w->alone) set_state(w, OFF, "not found");
    n->work = w;
}

void nvml_run(struct nvml *n, nvml_give *give, void *to) {
    struct nvml_work *w = n->work;
    char name[64];
    if (!w || pthread_mutex_trylock(&w->lock) != 0) return;
    w->fetched = rec_mono_ns();
    if (w->idle) {
        w->idle = false;
        pthread_cond_signal(&w->wake);
    }
    for (int i = 0; w->state == ON && i < w->ngpus; i++) {
        for (int m = 0; m < METRICS; m++) {
            if (!w->gpus[i].m[m].fresh) continue;
            w->gpus[i].m[m].fresh = false;
            snprintf(name, sizeof name, "GPU %d: %s", i, names[m]);
            give(to, name, w->gpus[i].m[m].value);
        }
    }
    pthread_mutex_unlock(&w->lock);
}

static void give_gpu(const struct nvml_work *w, int i, nvml_fact *give,
                     void *to) {
    const struct gpu *g = &w->gpus[i];
    char index[16], memory[32], missing[512];
    snprintf(index, sizeof index, "%d", g->index);
    snprintf(memory, sizeof memory, "%llu", g->memory);
    size_t n = 0;
    missing[0] = '\0';
    for (int m = 0; m < METRICS && n + 1 < sizeof missing; m++) {
        if (!g->m[m].off) continue;
        int k = snprintf(missing + n, sizeof missing - n, "%s%s: %s",
                         n ? "; " : "", names[m],
                         nvml_error(&w->calls, g->m[m].code));
        if (k > 0) n += (size_t)k;
    }
    const struct {
        const char *key, *value;
    } facts[] = {
        {"name", g->name},
        {"uuid", g->uuid},
        {"pci", g->pci},
        {"memory_bytes", g->memory ? memory : ""},
        {"nvml_index", g->index >= 0 ? index : ""},
        {"missing", missing},
    };
    for (size_t k = 0; k < COUNT(facts); k++) {
        char key[40];
        if (!facts[k].value[0]) continue;
        snprintf(key, sizeof key, "gpu.%d.%s", i, facts[k].key);
        give(to, key, facts[k].value);
    }
}

bool nvml_facts(struct nvml *n, nvml_fact *give, void *to) {
    struct nvml_work *w = n->work;
    if (!w) {
        give(to, "nvml", "no thread for it");
        return true;
    }
    if (pthread_mutex_trylock(&w->lock) != 0) return false;
    bool known = w->state != STARTING;
    if (known) give(to, "nvml", w->say);
    for (int i = 0; w->state == ON && i < w->ngpus; i++)
        give_gpu(w, i, give, to);
    pthread_mutex_unlock(&w->lock);
    return known;
}

void nvml_close(struct nvml *n) {
    struct nvml_work *w = n->work;
    if (!w) return;
    n->work = NULL;
    if (w->alone) {
        leave(w);
        return;
    }
    struct timespec until = at_ns(rec_mono_ns() + 200000000);
    int late = 0;
    pthread_mutex_lock(&w->lock);
    REC_PUBLISH(&w->stop, true);
    pthread_cond_signal(&w->wake);
    while (!w->done && !late)
        late = pthread_cond_timedwait(&w->left, &w->lock, &until);
    bool done = w->done;
    pthread_t thread = w->thread;
    pthread_mutex_unlock(&w->lock);
    if (done) pthread_join(thread, NULL);
    else pthread_detach(thread);
    leave(w);
}
