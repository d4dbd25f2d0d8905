/* SPDX-License-Identifier: Apache-2.0
 * What planes say beside their events: names, kinds, facts. */
#include <stdio.h>
#include <string.h>

#include "opscope/record.h"
#include "ring/encode_impl.h"

enum { TEXT_MAX = 4096, META_ROOM = TEXT_MAX + 256 };

/* clang-format off */
static const char *const stat_names[ENC_STATS] = {
    [ENC_STAT_STEP] = "step_num", [ENC_STAT_ROOT] = "_r",
    [ENC_STAT_EPOCH] = "epoch_num", [ENC_STAT_UNFINISHED] = "unfinished",
    [ENC_STAT_ADDR] = "addr", [ENC_STAT_ALLOCATION] = "allocation_bytes",
    [ENC_STAT_REQUESTED] = "requested_bytes",
    [ENC_STAT_ALLOCATOR] = "allocator_name", [ENC_STAT_TF_OP] = "tf_op",
    [ENC_STAT_PROGRAM] = "program", [ENC_STAT_COUNTER] = "counter_value",
    [ENC_STAT_CORRELATION] = "correlation_id", [ENC_STAT_FLOW] = "flow",
    [ENC_STAT_ASYNC] = "_a", [ENC_STAT_BYTES] = "bytes",
    [ENC_STAT_KIND] = "opscope_kind", [ENC_STAT_COUNT] = "count",
    [ENC_STAT_WHY] = "why", [ENC_STAT_UNKNOWN] = "argument",
};
/* clang-format on */

static const char *const kind_names[] = {
    [OPS_KIND_OP] = "op",     [OPS_KIND_INPUT] = "input",
    [OPS_KIND_COMM] = "comm", [OPS_KIND_COPY] = "copy",
    [OPS_KIND_WAIT] = "wait", [OPS_KIND_PHASE] = "phase",
};

const char *enc_device_kind(uint32_t kind) {
    static const char *const names[] = {
        [OPS_DEVICE_KERNEL] = "kernel",
        [OPS_DEVICE_COPY] = "copy",
        [OPS_DEVICE_SET] = "set",
        [OPS_DEVICE_SYNC] = "sync",
    };
    return kind < sizeof names / sizeof *names ? names[kind] : "kernel";
}

/* An entry of a map<int64, metadata>: {1: id, 2: {1: id, 2: name, more}}. */
static void entry(struct encoder *e, unsigned file, uint32_t field, uint64_t id,
                  const char *name, size_t n, const uint8_t *more, size_t m) {
    uint8_t buf[META_ROOM], *p = buf;
    n = text_cut(name, n, TEXT_MAX);
    size_t body = pbw_uint_size(1, id) + pbw_bytes_size(2, n) + m;
    p = pbw_len(p, field, pbw_uint_size(1, id) + pbw_bytes_size(2, body));
    p = pbw_uint(p, 1, id);
    p = pbw_len(p, 2, body);
    p = pbw_uint(p, 1, id);
    p = text_field(p, 2, name, n);
    if (m > 0) memcpy(p, more, m);
    enc_write(e, file, buf, (size_t)(p + m - buf));
}

static void stat_name(struct encoder *e, unsigned file, uint64_t id,
                      const char *name, size_t n) {
    entry(e, file, 5, id, name, n, NULL, 0);
}

/* Metadata of an event, with what kind it is: stats are field 5 there. */
static void event_name(struct encoder *e, unsigned file, uint64_t id,
                       const char *name, size_t n, const char *kind) {
    uint8_t more[96], *p = more;
    if (kind != NULL) {
        size_t k = strlen(kind);
        p = pbw_len(p, 5,
                    pbw_uint_size(1, ENC_STAT_KIND) + pbw_bytes_size(5, k));
        p = pbw_uint(p, 1, ENC_STAT_KIND);
        p = pbw_bytes(p, 5, kind, k);
    }
    entry(e, file, 4, id, name, n, more, (size_t)(p - more));
}

static void own_names(struct encoder *e, unsigned file) {
    static const struct {
        uint32_t id;
        const char *name;
    } events[] = {
        {ENC_META_STEP, "step"},
        {ENC_META_EPOCH, "epoch"},
        {ENC_META_ALLOC, "MemoryAllocation"},
        {ENC_META_FREE, "MemoryDeallocation"},
        {ENC_META_DROPPED, "opscope: dropped"},
        {ENC_META_NO_NAME, "(name not recorded)"},
    };
    for (uint32_t i = 1; i < ENC_STATS; i++)
        stat_name(e, file, i, stat_names[i], strlen(stat_names[i]));
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        event_name(e, file, events[i].id, events[i].name,
                   strlen(events[i].name), NULL);
}

void encode_plane(struct encoder *e, unsigned file) {
    char name[128] = "/host:CPU";
    uint8_t buf[192], *p = buf;
    if (file > 0)
        snprintf(name, sizeof name, "/device:CUSTOM:%.63s",
                 e->v->head->devices[file - 1].name);
    p = pbw_int(p, 1, file);
    p = text_field(p, 2, name, strlen(name));
    enc_write(e, file, buf, (size_t)(p - buf));
    own_names(e, file);
    /* A device's plane is a file of its own while it is written; the host's
     * has this among its other facts. */
    if (file > 0)
        encode_fact_int(e, file, "start_unix_ns", e->v->head->start_unix_ns);
}

/* The stat of a plane (field 6) under a name of its own. */
static void fact(struct encoder *e, unsigned file, const char *key,
                 const uint8_t *value, size_t n) {
    uint8_t buf[PBW_FIELD_ROOM * 2], *p = buf;
    uint64_t id = ENC_STAT_FACTS + e->facts++;
    stat_name(e, file, id, key, strlen(key));
    p = pbw_len(p, 6, pbw_uint_size(1, id) + n);
    p = pbw_uint(p, 1, id);
    enc_write(e, file, buf, (size_t)(p - buf));
    enc_write(e, file, value, n);
}

void encode_fact(struct encoder *e, unsigned file, const char *key,
                 const char *value) {
    uint8_t buf[META_ROOM];
    size_t n = text_cut(value, strnlen(value, TEXT_MAX + 1), TEXT_MAX);
    uint8_t *p = text_field(buf, 5, value, n);
    fact(e, file, key, buf, (size_t)(p - buf));
}

void encode_fact_int(struct encoder *e, unsigned file, const char *key,
                     int64_t value) {
    uint8_t buf[PBW_FIELD_ROOM], *p = pbw_int(buf, 4, value);
    fact(e, file, key, buf, (size_t)(p - buf));
}

void encode_head_facts(struct encoder *e) {
    const struct rec_head *h = e->v->head;
    encode_fact(e, 0, "opscope_version", OPS_VERSION);
    encode_fact_int(e, 0, "process_id", h->pid);
    encode_fact(e, 0, "host_name", h->host);
    encode_fact(e, 0, "clock", h->tsc ? "tsc" : "monotonic");
    encode_fact_int(e, 0, "clock_resolution_ps",
                    (int64_t)h->clock_resolution_ps);
    encode_fact_int(e, 0, "start_unix_ns", h->start_unix_ns);
    encode_fact_int(e, 0, "start_monotonic_ns", (int64_t)h->start_mono_ns);
}

static void program_name(struct encoder *e, unsigned file, uint32_t id) {
    const struct rec_name *n = &e->v->names[id];
    if (n->at > REC_TEXT || n->bytes > REC_TEXT - n->at) return;
    const char *s = e->v->text + n->at;
    if (n->kind == OPS_KEY_ || n->kind == OPS_TAG_)
        stat_name(e, file, ENC_STAT_KEYS + id, s, n->bytes);
    else if (n->kind == OPS_COUNT_) event_name(e, file, id, s, n->bytes, NULL);
    else
        event_name(e, file, id, s, n->bytes,
                   file > 0                    ? "kernel"
                   : n->kind <= OPS_KIND_PHASE ? kind_names[n->kind]
                                               : NULL);
}

void encode_names(struct encoder *e, unsigned file, uint64_t from,
                  uint64_t to) {
    if (to > REC_NAMES) to = REC_NAMES;
    for (uint64_t i = from > 0 ? from : 1; i < to; i++)
        program_name(e, file, (uint32_t)i);
}

size_t encode_environment(const struct rec_head *h, uint64_t end_ps,
                          uint8_t *out) {
    static const char plane[] = "Task Environment";
    static const char *const keys[] = {"profile_start_time",
                                       "profile_stop_time"};
    uint64_t at[] = {(uint64_t)h->start_unix_ns,
                     (uint64_t)h->start_unix_ns + end_ps / 1000};
    uint8_t body[192], *p = pbw_bytes(body, 2, plane, sizeof plane - 1);
    for (uint64_t i = 0; i < 2; i++) {
        size_t n = strlen(keys[i]);
        size_t m = pbw_uint_size(1, i + 1) + pbw_bytes_size(2, n);
        p = pbw_len(p, 5, pbw_uint_size(1, i + 1) + pbw_bytes_size(2, m));
        p = pbw_uint(p, 1, i + 1);
        p = pbw_len(p, 2, m);
        p = pbw_uint(p, 1, i + 1);
        p = pbw_bytes(p, 2, keys[i], n);
        p = pbw_len(p, 6, pbw_uint_size(1, i + 1) + pbw_uint_size(3, at[i]));
        p = pbw_uint(pbw_uint(p, 1, i + 1), 3, at[i]);
    }
    uint8_t *q = pbw_len(out, 1, (size_t)(p - body));
    memcpy(q, body, (size_t)(p - body));
    return (size_t)(q - out) + (size_t)(p - body);
}
