/* SPDX-License-Identifier: Apache-2.0
 * Fuzzes the reading of a killed program's shared memory. A ring file is a
 * hundred megabytes of mostly nothing, so that the input is not the file but
 * changes to a good one: records of 12 bytes, where (in the head, in the
 * ring, in its slots, in the names) and what. What comes out is an XSpace,
 * read and sealed. */
#include "../rec/temp.h"
#include "import/import.h"
#include "model/trace.h"
#include "opscope/record.h"
#include "ring/recover.h"
#include "ring/ring_map.h"
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

enum { SLOTS = 1024, CHANGES = 64, CHANGE = 12 };

static struct {
    char folder[TEMP_MAX], ring[TEMP_MAX + 32], pointer[TEMP_MAX + 32];
    uint8_t *p;   /* the ring file, mapped */
    size_t n, at; /* its size; where the ring begins */
} f;

/* --- a good ring ---------------------------------------------------------- */

static void put_name(struct ring_map *v, const char *name, uint16_t kind) {
    struct rec_head *h = v->head;
    size_t n = strlen(name);
    memcpy(v->text + h->ntext, name, n);
    v->names[h->nnames++] = (struct rec_name){h->ntext, (uint16_t)n, kind};
    h->ntext += (uint32_t)n;
}

static void put_slot(struct rec_ring *r, uint64_t time, uint64_t rest) {
    struct rec_slot *s = (struct rec_slot *)((char *)r + REC_RING_HEAD);
    s[r->head++ % SLOTS] = (struct rec_slot){time, rest};
}

static void put_record(struct rec_ring *r, enum rec_kind k, uint32_t name,
                       uint64_t time, const void *p, uint32_t n) {
    put_slot(r, time, rec_rest(k, name, n));
    for (uint32_t at = 0; at < n; at += REC_CONT_BYTES) {
        uint8_t part[REC_CONT_BYTES + 4] = {0};
        uint32_t len = n - at < REC_CONT_BYTES ? n - at : REC_CONT_BYTES;
        uint64_t t;
        uint32_t aux;
        memcpy(part, (const uint8_t *)p + at, len);
        memcpy(&t, part, 8);
        memcpy(&aux, part + 8, 4);
        put_slot(r, t, rec_rest(REC_CONT, 0, aux));
    }
}

/* Puts one of each kind of record, open scopes, an open async. */
static void put_records(struct ring_map *v, struct rec_ring *r) {
    uint64_t two[3] = {50, 7, 3};
    uint8_t args[64] = {0};
    uint32_t key = 3;
    uint64_t len = 90;
    memcpy(args, &len, 8);
    memcpy(args + 8, &key, 4);
    args[12] = REC_ARG_INT;
    args[13] = 8;
    for (uint64_t i = 0; i < 20; i++) {
        put_slot(r, 1000 + i * 100, rec_rest(REC_SCOPE, 2, 60));
        put_record(r, REC_SCOPE_X, 2, 1010 + i * 100, args, 22);
    }
    put_record(r, REC_STEP, 0, 900, two, 16);
    put_record(r, REC_EPOCH, 0, 800, two, 16);
    put_record(r, REC_INSTANT, 2, 4000, NULL, 0);
    put_record(r, REC_COUNTER, 4, 4001, two, 8);
    put_record(r, REC_ALLOC, 5, 4002, two, 16);
    put_record(r, REC_FREE, 0, 4003, two, 8);
    put_record(r, REC_ASYNC, 2, 4004, two, 8);
    put_record(r, REC_DEVICE, 2, 4005, two, 20);
    put_record(r, REC_SCALAR, 5, 4006, two, 16);
    r->depth = 2;
    r->frames[0] = (struct rec_frame){.time = 5000, .name = 2, .args = 0};
    r->frames[1] = (struct rec_frame){.time = 5010, .name = 2, .args = 14};
    memcpy(r->args, args + 8, 14);
    r->args_top = 14;
    r->marks = REC_IN_STEP | REC_IN_EPOCH;
    r->step_time = 4500;
    r->epoch_time = 4400;
    r->lost[0] = 3;
    v->asyncs[5] = (struct rec_async){4600, 2};
}

static void fill(void) {
    struct rec_head *h = (struct rec_head *)f.p;
    struct ring_map v = {0};
    memcpy(h->magic, REC_MAGIC, sizeof h->magic);
    h->version = REC_VERSION;
    h->head_bytes = sizeof *h;
    rec_layout(h);
    h->file_bytes = f.n;
    h->pid = 4711;
    snprintf(h->stem, sizeof h->stem, "%s/box_1", f.folder);
    strcpy(h->host, "box");
    h->start_unix_ns = INT64_C(1790000000000000000);
    h->start_tick = 100;
    h->last_tick = 6000;
    h->nsegs = 1;
    h->nnames = 2;
    h->nrings = 1;
    h->ntracks = h->ndevices = 1;
    strcpy(h->devices[0].name, "npu 0");
    h->tracks[0] = (struct rec_track){1, "queue 0"};
    h->tracks[2] = (struct rec_track){1, "queue 2"};
    h->rings[0].at = f.at;
    h->rings[0].bytes = f.n - f.at;
    ring_map_tables(&v, f.p, f.n);
    v.segs[0] = (struct rec_seg){100, 0, UINT64_C(1000) << 32};
    put_name(&v, "work", OPS_KIND_OP);
    put_name(&v, "key", OPS_KEY_);
    put_name(&v, "count", OPS_COUNT_);
    put_name(&v, "tag", OPS_TAG_);
    struct rec_ring *r = (struct rec_ring *)(f.p + f.at);
    r->slots = SLOTS;
    r->write_limit = SLOTS - REC_SLOT_MAX;
    r->state = REC_RING_LIVE;
    r->tid = 4711;
    strcpy(r->name, "main");
    put_records(&v, r);
}

static void tidy(void) {
    unlink(f.ring);
    unlink(f.pointer);
    rmdir(f.folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    struct rec_head h = {0};
    (void)argc;
    (void)argv;
    if (mkdtemp(temp_name(f.folder, "fuzz")) == NULL) abort();
    snprintf(f.ring, sizeof f.ring, "%s/opscope-ring", f.folder);
    snprintf(f.pointer, sizeof f.pointer, "%s/box_1.ring", f.folder);
    atexit(tidy);
    f.at = rec_paged(rec_layout(&h));
    f.n = f.at + REC_RING_HEAD + SLOTS * sizeof(struct rec_slot);
    int fd = open(f.ring, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)f.n) != 0) abort();
    f.p = mmap(NULL, f.n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    FILE *to = fopen(f.pointer, "w");
    if (f.p == MAP_FAILED || to == NULL) abort();
    fprintf(to, "%s\n", f.ring);
    fclose(to);
    fill();
    return 0;
}

/* --- one input ------------------------------------------------------------- */

/* Returns the byte that a change means: its first byte says of what. */
static size_t place(const uint8_t *c) {
    const struct rec_head *h = (const struct rec_head *)f.p;
    uint32_t off = (uint32_t)(c[1] | c[2] << 8 | c[3] << 16);
    struct {
        size_t at, n;
    } areas[] = {
        {0, offsetof(struct rec_head, devices)},
        {offsetof(struct rec_head, devices), 8192},
        {offsetof(struct rec_head, rings), 64},
        {f.at, sizeof(struct rec_ring)},
        {f.at + REC_RING_HEAD, SLOTS * sizeof(struct rec_slot)},
        {sizeof *h, 4096 * 16},
    };
    size_t k = c[0] % (sizeof areas / sizeof *areas);
    return areas[k].at + off % (areas[k].n - 8); /* 8 bytes go there */
}

static void read_it(void) {
    struct trace *t = trace_new();
    struct import_opts o = {.threads = 1};
    struct ops_err e = {0};
    if (t == NULL) abort();
    int rc = import_file(f.pointer, t, &o, &e);
    if (rc == 0) rc = trace_seal(t, &e);
    assert(rc == 0 || (e.code == rc && e.text[0] != '\0'));
    trace_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t n = size / CHANGE < CHANGES ? size / CHANGE : CHANGES;
    uint64_t was[CHANGES];
    for (size_t i = 0; i < n; i++) {
        uint8_t *at = f.p + place(data + i * CHANGE);
        memcpy(&was[i], at, 8);
        memcpy(at, data + i * CHANGE + 4, 8);
    }
    read_it();
    for (size_t i = n; i-- > 0;)
        memcpy(f.p + place(data + i * CHANGE), &was[i], 8);
    return 0;
}
