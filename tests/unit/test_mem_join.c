/* SPDX-License-Identifier: Apache-2.0
 * A memory snapshot and the trace of the same process become one trace: by
 * hand, and with the real pair of tests/data. */
#include "tiny.h"

#include "base/io/sink.h"
#include "export/export.h"
#include "import/import.h"
#include "load/runs.h"
#include <stdlib.h>

#define GPU_ADDR UINT64_C(0x7f0000000000)

struct side {
    struct trace *t;
    uint16_t gpu;
};

/* Makes an empty trace or snapshot whose times count from that many us after 1
 * s. */
static struct side new_side(const char *format, int64_t us) {
    struct side s = {.t = trace_new()};
    trace_source(s.t, format, format_named(format), NULL, (struct bytes){0});
    trace_epoch(s.t, 0, 1000000000 + us * 1000, true);
    uint32_t d = trace_device(s.t, 0, DEVICE_GPU, 0);
    s.gpu = trace_allocator(s.t, 0, bytes_of("GPU 0"), d);
    return s;
}

static void event(struct side *s, int64_t ts, int64_t addr, int64_t bytes,
                  int32_t line) {
    row_id m = trace_mem(s->t,
                         &(struct mem_in){.ts = ts * US,
                                          .bytes = bytes,
                                          .addr = GPU_ADDR + (uint64_t)addr,
                                          .allocated = -1,
                                          .reserved = -1,
                                          .track = ROW_NONE,
                                          .allocator = s->gpu});
    if (line == 0) return;
    uint32_t f = trace_frame(s->t, trace_str(s->t, bytes_of("f")),
                             trace_str(s->t, bytes_of("a.py")), line);
    trace_mem_stack(s->t, m, trace_stack(s->t, &f, 1));
}

static void before(struct side *s, int64_t addr, int64_t bytes, int32_t line) {
    uint32_t f = trace_frame(s->t, trace_str(s->t, bytes_of("f")),
                             trace_str(s->t, bytes_of("a.py")), line);
    trace_before(s->t, &(struct mem_before){.addr = GPU_ADDR + (uint64_t)addr,
                                            .bytes = bytes,
                                            .ts = TS_NONE,
                                            .allocator = s->gpu,
                                            .stack = trace_stack(s->t, &f, 1)});
}

static void join(struct side *a, struct side *b) {
    struct ops_err e;
    assert_int_equal(trace_join_memory(a->t, 0, b->t, &e), 0);
    tiny_seal(a->t);
}

static int line_of(const struct trace *t, uint32_t stack) {
    if (stack == ROW_NONE) return 0;
    return t->stacks.frames[t->stacks.items[t->stacks.first[stack]]].line;
}

static const struct mem_before *find_before(const struct trace *t,
                                            int64_t addr) {
    for (size_t i = 0; i < t->nbefore; i++)
        if (t->before[i].addr == GPU_ADDR + (uint64_t)addr)
            return &t->before[i];
    return NULL;
}

/* The trace begins 10,000 us after the snapshot. The snapshot's clock is 5 us
 * behind. Address 1 is handed out twice in the window. */
static void events_of_both_count_once(void **state) {
    (void)state;
    struct side a = new_side("kineto", 10000), b = new_side("snapshot", 0);
    event(&a, 100, 1, 512, 0);
    event(&a, 150, 1, -512, 0);
    event(&a, 160, 1, 1024, 0);
    event(&a, 200, 2, -2048, 0); /* from before */
    event(&a, 300, 9, 512, 0);   /* the snapshot does not have it */
    before(&b, 3, 4096, 30);     /* stays all the time */
    before(&b, 4, 4096, 40);     /* is freed before the trace begins */
    event(&b, 10, 2, 1536, 20);
    event(&b, 20, 4, -4096, 0);
    event(&b, 30, 5, 512, 50);
    event(&b, 10095, 1, 512, 10);
    event(&b, 10145, 1, -512, 0);
    event(&b, 10155, 1, 1024, 11);
    event(&b, 10195, 2, -1536, 0);
    join(&a, &b);
    const struct trace *t = a.t;
    assert_int_equal(t->nallocators, 1);
    assert_int_equal(t->ndevices, 1);
    assert_int_equal(t->mem.n, 5);
    assert_int_equal(line_of(t, mem_stack(t, 0)), 10);
    assert_int_equal(line_of(t, mem_stack(t, 1)), 0);
    assert_int_equal(line_of(t, mem_stack(t, 2)), 11);
    assert_int_equal(line_of(t, mem_stack(t, 3)), 20);
    assert_int_equal(line_of(t, mem_stack(t, 4)), 0);
    assert_int_equal(t->notes[NOTE_ALLOC_NOT_IN_SNAPSHOT], 1);
    assert_int_equal(t->notes[NOTE_ALLOC_NOT_IN_TRACE], 0);
    assert_int_equal(t->nbefore, 3);
    assert_int_equal(find_before(t, 2)->bytes, 2048); /* as the trace says */
    assert_int_equal(find_before(t, 2)->ts, -9990 * US);
    assert_int_equal(line_of(t, find_before(t, 2)->stack), 20);
    assert_int_equal(find_before(t, 3)->ts, TS_NONE);
    assert_int_equal(line_of(t, find_before(t, 3)->stack), 30);
    assert_null(find_before(t, 4));
    assert_int_equal(line_of(t, find_before(t, 5)->stack), 50);
    assert_int_equal(t->sources[1].companion_of, 0);
    assert_int_equal(t->nprocesses, 1);
    trace_free(a.t);
}

static void an_allocation_too_far_away_is_another(void **state) {
    (void)state;
    struct side a = new_side("kineto", 0), b = new_side("snapshot", 0);
    event(&a, 100, 1, 512, 0);
    event(&a, 90000, 2, 512, 0);
    event(&b, 5100, 1, 512, 10);  /* 5 ms late */
    event(&b, 40000, 7, 512, 70); /* in the window, but not in the trace */
    size_t common = 9;
    struct ops_err e;
    assert_int_equal(trace_shared_allocs(a.t, b.t, &common, &e), 0);
    assert_int_equal(common, 0);
    join(&a, &b);
    assert_int_equal(a.t->mem.n, 2);
    assert_int_equal(mem_stack(a.t, 0), ROW_NONE);
    assert_int_equal(a.t->notes[NOTE_ALLOC_NOT_IN_SNAPSHOT], 2);
    assert_int_equal(a.t->notes[NOTE_ALLOC_NOT_IN_TRACE], 2);
    trace_free(a.t);
}

static void a_trace_without_memory_gets_the_snapshots(void **state) {
    (void)state;
    struct side a = new_side("kineto", 10000), b = new_side("snapshot", 0);
    uint32_t cpu = trace_allocator(a.t, 0, bytes_of("CPU"), ROW_NONE);
    tiny_mem(a.t, cpu, ROW_NONE, 1, 1, 64, -1);
    before(&b, 3, 4096, 30);
    event(&b, 10, 2, 1536, 20);
    event(&b, 20, 2, -1536, 0);
    join(&a, &b);
    const struct trace *t = a.t;
    assert_int_equal(t->mem.n, 3);
    assert_int_equal(t->nbefore, 1);
    assert_true(t->sources[0].has_memory);
    assert_int_equal(t->allocators[t->mem.allocator[0]].source, 0);
    assert_int_equal(t->mem.ts[0], -9990 * US);
    assert_int_equal(line_of(t, mem_stack(t, 0)), 20);
    trace_free(a.t);
}

static void a_failure_that_both_saw_is_one(void **state) {
    (void)state;
    struct side a = new_side("kineto", 0), b = new_side("snapshot", 0);
    struct mem_oom o = {.bytes = 7,
                        .device_free = -1,
                        .allocated = 5,
                        .reserved = 6,
                        .track = ROW_NONE,
                        .stack = ROW_NONE,
                        .allocator = a.gpu};
    for (int i = 0; i < 2; i++) {
        o.ts = (100 + 5000 * i) * US;
        trace_oom(a.t, &o);
    }
    struct mem_oom p = o;
    p.allocated = p.reserved = -1;
    p.device_free = 3;
    p.ts = 5090 * US;
    trace_oom(b.t, &p);
    p.ts = 9000 * US;
    trace_oom(b.t, &p);
    join(&a, &b);
    assert_int_equal(a.t->nooms, 3);
    assert_int_equal(a.t->ooms[0].device_free, -1);
    assert_int_equal(a.t->ooms[1].device_free, 3);
    assert_int_equal(a.t->ooms[1].allocated, 5);
    assert_int_equal(a.t->ooms[2].allocated, -1);
    trace_free(a.t);
}

static const char trace_file[] =
    "tests/data/torch_cnn/torch_cnn.pt.trace.json.gz";
static const char snapshot_file[] =
    "tests/data/torch_cnn/torch_cnn.snapshot.pickle.gz";

static struct loaded load(const char *a, const char *b) {
    struct run_file files[] = {{(char *)a, NULL}, {(char *)b, NULL}};
    struct import_opts o = {.threads = 1};
    struct loaded l;
    struct ops_err e;
    if (runs_load(files, b ? 2 : 1, &o, &l, &e) != 0) fail_msg("%s", e.text);
    assert_int_equal(l.n, 1);
    return l;
}

/* Returns the text of a stack, to compare between traces. */
static const char *text(const struct trace *t, uint32_t stack, char *buf) {
    stack_text(t, stack, 1000, buf, 1 << 16);
    return buf;
}

/* Returns the snapshot's allocation of that address nearest in time, looked for
 * one by one. */
static size_t nearest(const struct trace *snap, uint64_t addr,
                      int64_t unix_ps) {
    size_t best = SIZE_MAX;
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < snap->mem.n; i++) {
        int64_t ts = snap->mem.ts[i] - unix_ps;
        if (snap->mem.addr[i] != addr || snap->mem.bytes[i] < 0) continue;
        if (llabs(ts) >= least) continue;
        least = llabs(ts);
        best = i;
    }
    assert_true(least < 10 * US);
    return best;
}

static void the_real_pair_agrees_one_by_one(void **state) {
    (void)state;
    struct loaded both = load(trace_file, snapshot_file);
    struct loaded alone = load(snapshot_file, NULL);
    const struct trace *t = both.v[0], *s = alone.v[0];
    int64_t shift = (s->epoch_ns - t->epoch_ns) * PS_PER_NS;
    char *a = malloc(1 << 16), *b = malloc(1 << 16);
    size_t allocs = 0;
    for (size_t i = 0; i < t->mem.n; i++) {
        if (t->allocators[t->mem.allocator[i]].device == ROW_NONE) {
            assert_int_equal(mem_stack(t, i), ROW_NONE);
            continue;
        }
        if (t->mem.bytes[i] < 0) continue;
        size_t k = nearest(s, t->mem.addr[i], t->mem.ts[i] - shift);
        assert_string_equal(text(t, mem_stack(t, i), a),
                            text(s, mem_stack(s, k), b));
        assert_true(a[0] != '\0');
        assert_int_equal(s->mem.bytes[k], t->mem.bytes[i]);
        allocs++;
    }
    assert_int_equal(allocs, 644);
    /* 38 blocks from before the trace are freed in it: they have a stack */
    size_t frees = 0;
    for (size_t i = 0; i < t->mem.n; i++)
        frees += t->mem.bytes[i] < 0 && mem_stack(t, i) != ROW_NONE;
    assert_int_equal(frees, 38);
    assert_int_equal(t->notes[NOTE_ALLOC_NOT_IN_SNAPSHOT], 0);
    assert_int_equal(t->notes[NOTE_ALLOC_NOT_IN_TRACE], 0);
    free(a);
    free(b);
    loaded_free(&both);
    loaded_free(&alone);
}

/* What was there before the trace adds up to its own first level. */
static void what_the_real_trace_began_with_is_known(void **state) {
    (void)state;
    struct loaded both = load(snapshot_file, trace_file);
    const struct trace *t = both.v[0];
    size_t first = 0;
    while (t->allocators[t->mem.allocator[first]].device == ROW_NONE) first++;
    int64_t base = t->mem.allocated[first] - t->mem.bytes[first], sum = 0;
    for (size_t i = 0; i < t->nbefore; i++) {
        sum += t->before[i].bytes;
        assert_int_not_equal(t->before[i].stack, ROW_NONE);
        assert_int_not_equal(t->before[i].ts, TS_NONE);
    }
    assert_int_equal(sum, base);
    loaded_free(&both);
}

/* Of two failures one lies in the trace's window. */
static void a_real_failure_is_told_by_both(void **state) {
    (void)state;
    struct loaded both =
        load("tests/data/torch_snapshots/oom.pt.trace.json.gz",
             "tests/data/torch_snapshots/oom.snapshot.pickle.gz");
    const struct trace *t = both.v[0];
    char a[4096];
    assert_int_equal(t->nooms, 2);
    assert_int_equal(t->ooms[0].bytes, INT64_C(1) << 42);
    assert_true(t->ooms[0].allocated > 0 && t->ooms[1].allocated < 0);
    assert_int_not_equal(t->ooms[0].track, ROW_NONE);
    for (size_t i = 0; i < 2; i++) {
        assert_true(t->ooms[i].device_free > INT64_C(1) << 36);
        stack_text(t, t->ooms[i].stack, 1, a, sizeof a);
        assert_non_null(strstr(a, " oom"));
    }
    loaded_free(&both);
}

/* Exported and read again, failures are what they were. */
static void failures_survive_an_export(void **state) {
    (void)state;
    static const char zeros[64];
    struct loaded both =
        load("tests/data/torch_snapshots/oom.pt.trace.json.gz",
             "tests/data/torch_snapshots/oom.snapshot.pickle.gz");
    struct export_form form;
    struct ops_err e;
    struct sink out;
    sink_memory(&out);
    assert_int_equal(export_form("a.json", NULL, &form, &e), 0);
    assert_int_equal(form.exporter->write(both.v[0], &out, &e), 0);
    sink_write(&out, zeros, sizeof zeros);
    struct trace *t = trace_new();
    struct import_opts o = {.threads = 1};
    struct bytes b = {(uint8_t *)out.buf, out.n - sizeof zeros};
    assert_int_equal(import_bytes(b, "a.json", t, &o, &e), 0);
    tiny_seal(t);
    assert_int_equal(t->nooms, 2);
    for (size_t i = 0; i < 2; i++) {
        const struct mem_oom *x = &both.v[0]->ooms[i], *y = &t->ooms[i];
        assert_int_equal(y->bytes, x->bytes);
        assert_int_equal(y->device_free, x->device_free);
        assert_int_equal(y->allocated, x->allocated);
        assert_int_equal(y->track == ROW_NONE, x->track == ROW_NONE);
    }
    trace_free(t);
    sink_free(&out);
    loaded_free(&both);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_of_both_count_once),
        cmocka_unit_test(an_allocation_too_far_away_is_another),
        cmocka_unit_test(a_trace_without_memory_gets_the_snapshots),
        cmocka_unit_test(a_failure_that_both_saw_is_one),
        cmocka_unit_test(the_real_pair_agrees_one_by_one),
        cmocka_unit_test(a_real_failure_is_told_by_both),
        cmocka_unit_test(failures_survive_an_export),
        cmocka_unit_test(what_the_real_trace_began_with_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
