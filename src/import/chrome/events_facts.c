/* SPDX-License-Identifier: Apache-2.0
 * What PyTorch's files, and those that opscope writes in the same words, say
 * beside their spans: allocations, and the keys next to the events. */
#include "import/chrome/events.h"
#include "model/trace_fill.h"

#include "base/array.h"
#include <stdio.h>

/* What a memory instant carries. */
struct memory {
    int64_t device_type, device, addr, bytes, allocated, reserved;
    int64_t device_free; /* these three opscope writes */
    struct json_str allocator, what;
};

static int64_t *memory_field(struct memory *m, struct bytes key) {
    struct {
        const char *key;
        int64_t *to;
    } f[] = {
        {"Device Type", &m->device_type},
        {"Device Id", &m->device},
        {"Addr", &m->addr},
        {"Bytes", &m->bytes},
        {"Total Allocated", &m->allocated},
        {"Total Reserved", &m->reserved},
        {"Device Free", &m->device_free},
    };
    for (size_t i = 0; i < COUNT(f); i++)
        if (bytes_eq(key, f[i].key, strlen(f[i].key))) return f[i].to;
    return NULL;
}

/* Returns false, and adds a note, if there are no arguments at all. */
static bool read_memory(struct chrome_reader *r, const struct event *ev,
                        struct memory *m) {
    *m = (struct memory){.device_type = -1,
                         .device = -1,
                         .allocated = -1,
                         .reserved = -1,
                         .device_free = -1};
    struct json args;
    struct json_str key;
    if (!reader_args(ev, &args)) {
        trace_note(r->t, NOTE_BAD_EVENT, 1);
        return false;
    }
    while (json_key(&args, &key)) {
        struct json_str *text = BYTES_IS(key.raw, "Allocator") ? &m->allocator
                                : BYTES_IS(key.raw, "What")    ? &m->what
                                                               : NULL;
        if (text != NULL && json_string(&args, text)) continue;
        int64_t *to = memory_field(m, key.raw);
        if (to == NULL) json_skip(&args);
        else *to = reader_int(&args, *to); /* no number: not recorded */
    }
    return true;
}

static uint32_t memory_allocator(struct chrome_reader *r,
                                 const struct memory *m) {
    /* c10's device types: the first three have no memory of their own */
    enum { C10_CPU = 0, C10_MKLDNN = 5, C10_IDEEP = 7, C10_XLA = 9 };
    int64_t type = m->device_type;
    uint32_t device = ROW_NONE;
    if (type != C10_CPU && type != C10_MKLDNN && type != C10_IDEEP)
        device = trace_device(r->t, r->source,
                              type == C10_XLA ? DEVICE_TPU : DEVICE_GPU,
                              m->device < 0 ? 0 : m->device);
    struct bytes name = device == ROW_NONE
                            ? bytes_of("CPU")
                            : strs_bytes(&r->t->strs,
                                         r->t->devices[device].label);
    if (m->allocator.raw.n > 0)
        name = strs_bytes(&r->t->strs, reader_str(r, m->allocator));
    return trace_allocator(r->t, r->source, name, device);
}

bool reader_memory(struct chrome_reader *r, const struct event *ev) {
    bool failed = BYTES_IS(ev->name.raw, "[OutOfMemory]");
    struct memory m;
    if (!failed && !BYTES_IS(ev->name.raw, "[memory]")) return false;
    if (!read_memory(r, ev, &m)) return true;
    uint32_t track = ROW_NONE;
    if (ev->has_tid)
        track = reader_track(r, TRACK_THREAD, ev->pid.v, ev->tid.v);
    uint32_t allocator = memory_allocator(r, &m);
    r->t->sources[r->source].has_memory = true;
    if (failed)
        trace_oom(r->t, &(struct mem_oom){.ts = ev->ts,
                                          .bytes = m.bytes,
                                          .device_free = m.device_free,
                                          .allocated = m.allocated,
                                          .reserved = m.reserved,
                                          .track = track,
                                          .stack = ROW_NONE,
                                          .allocator = allocator});
    else
        trace_mem(r->t,
                  &(struct mem_in){
                      .ts = ev->ts,
                      .bytes = mem_told(m.bytes),
                      .addr = (uint64_t)m.addr,
                      .allocated = m.allocated,
                      .reserved = m.reserved,
                      .track = track,
                      .allocator = allocator,
                      .what = m.what.raw.n > 0 ? reader_str(r, m.what) : 0,
                  });
    return true;
}

/* Reads one GPU of deviceProperties; in 2021 some keys had CUDA's own names. */
static void read_device(struct chrome_reader *r) {
    struct json_str key, model = {0};
    struct device d = {.ordinal = -1};
    int64_t major = 0, minor = 0;
    const struct {
        const char *key;
        int64_t *to;
    } f[] = {
        {"id", &d.ordinal},
        {"totalGlobalMem", &d.memory_bytes},
        {"numSms", &d.units},
        {"maxComputeUnits", &d.units},
        {"multiProcessorCount", &d.units},
        {"computeMajor", &major},
        {"computeMinor", &minor},
        {"major", &major},
        {"minor", &minor},
        {"maxThreadsPerMultiprocessor", &d.threads_per_unit},
        {"maxThreadsPerMultiProcessor", &d.threads_per_unit},
        {"clockHz", &d.clock_hz},
        {"bandwidthBytesPerSecond", &d.bandwidth_bytes_per_s},
    };
    while (json_key(&r->j, &key)) {
        size_t i = 0;
        while (i < COUNT(f) && !bytes_eq(key.raw, f[i].key, strlen(f[i].key)))
            i++;
        if (i < COUNT(f)) *f[i].to = reader_int(&r->j, i == 0 ? -1 : 0);
        else if (!BYTES_IS(key.raw, "name") || !json_string(&r->j, &model))
            json_skip(&r->j);
        if (r->j.bad) return;
    }
    d.cc_major = (int)major;
    d.cc_minor = (int)minor;
    if (d.ordinal < 0) return;
    uint32_t k = trace_device(r->t, r->source, DEVICE_GPU, d.ordinal);
    if (k == ROW_NONE) return;
    d.source = r->source;
    d.label = r->t->devices[k].label;
    d.model = reader_str(r, model);
    r->t->devices[k] = d;
    r->t->sources[r->source].has_device = true;
}

/* Reads pg_config: the process groups of this rank. Where there is only one,
 * every collective belongs to it, also those that do not say so (gloo). */
static void read_groups(struct chrome_reader *r) {
    struct json_str key, name = {{0}, false};
    int64_t n = 0;
    if (!json_enter(&r->j, '[')) {
        json_skip(&r->j);
        return;
    }
    while (json_item(&r->j)) {
        n++;
        if (!json_enter(&r->j, '{')) json_skip(&r->j);
        else
            while (json_key(&r->j, &key))
                if (!BYTES_IS(key.raw, "pg_name") || !json_string(&r->j, &name))
                    json_skip(&r->j);
        if (r->j.bad) return;
    }
    char count[24];
    snprintf(count, sizeof count, "%lld", (long long)n);
    if (n == 1) trace_meta(r->t, r->source, "process_group", name.raw);
    if (n > 1) trace_meta(r->t, r->source, "process_groups", bytes_of(count));
}

/* Reads distributedInfo: rank and world size, as text in some versions. */
static void read_distributed(struct chrome_reader *r) {
    struct source *src = &r->t->sources[r->source];
    struct json_str key;
    if (!json_enter(&r->j, '{')) {
        json_skip(&r->j);
        return;
    }
    while (json_key(&r->j, &key)) {
        if (BYTES_IS(key.raw, "rank")) src->rank = reader_int(&r->j, -1);
        else if (BYTES_IS(key.raw, "world_size"))
            src->world_size = reader_int(&r->j, -1);
        else if (BYTES_IS(key.raw, "pg_config")) read_groups(r);
        else json_skip(&r->j);
        if (r->j.bad) return;
    }
}

/* Are these the lines that Kineto logged while it recorded? What it only
 * tells of its own doings says nothing about the program. */
static bool is_log(struct bytes key) {
    return BYTES_IS(key, "INFO") || BYTES_IS(key, "VERBOSE") ||
           BYTES_IS(key, "STAGE");
}

/* Is this the list of devices? Files of 2021 call it computeProperties. */
static bool is_devices(struct bytes key) {
    return BYTES_IS(key, "deviceProperties") ||
           BYTES_IS(key, "computeProperties");
}

bool reader_top(struct chrome_reader *r, struct bytes key) {
    struct source *src = &r->t->sources[r->source];
    if (is_log(key) && json_peek(&r->j) == '[') {
        json_skip(&r->j);
    } else if (is_devices(key) && json_enter(&r->j, '[')) {
        while (json_item(&r->j)) {
            if (json_enter(&r->j, '{')) read_device(r);
            else json_skip(&r->j);
            if (r->j.bad) break;
        }
    } else if (BYTES_IS(key, "distributedInfo")) {
        read_distributed(r);
    } else if (BYTES_IS(key, "baseTimeNanoseconds")) {
        r->base_ns = reader_int(&r->j, 0);
        r->has_base = r->base_ns != 0;
    } else if (BYTES_IS(key, "host_name")) {
        struct json_str s;
        if (json_string(&r->j, &s)) src->host = reader_str(r, s);
        else json_skip(&r->j);
    } else if (BYTES_IS(key, "profile_memory")) {
        src->has_memory |= reader_int(&r->j, 0) != 0;
    } else if (BYTES_IS(key, "record_shapes")) {
        src->has_shapes = reader_int(&r->j, 0) != 0;
    } else if (BYTES_IS(key, "with_stack")) {
        src->has_stacks = reader_int(&r->j, 0) != 0;
    } else {
        /* it is a converted recording of ours; the version is kept as a fact */
        src->by_opscope |= BYTES_IS(key, "opscope_version");
        return false;
    }
    return true;
}
