/* SPDX-License-Identifier: Apache-2.0
 * Memory snapshots: hand-made, whole and damaged. Figures of a real one are
 * checked in tests/golden. */
#include "feed.h"
#include "unit/pickles.h"

#define ZERO INT64_C(1790000000000000) /* us */

/* Puts frames: one frame of that line, or with no line none at all. */
static void put_frames(struct pk *o, int64_t line) {
    pk_text(o, "frames");
    pk_list(o);
    if (line > 0) {
        pk_dict(o);
        pk_key_text(o, "name", "f");
        pk_key_text(o, "filename", "a.py");
        pk_key_int(o, "line", line);
        pk_end_dict(o);
    }
    pk_end_list(o);
}

static void put_block(struct pk *o, int64_t addr, int64_t size,
                      const char *state, int64_t line) {
    pk_dict(o);
    pk_key_int(o, "address", addr);
    pk_key_int(o, "size", size);
    pk_key_int(o, "requested_size", size - 12);
    pk_key_text(o, "state", state);
    put_frames(o, line);
    pk_end_dict(o);
}

/* Puts a segment at 0x10000 of 8192 bytes: 1024 from before, 2048 that wait to
 * be freed, 2560 for 2100 that the trace allocates, the rest free. */
static void put_segments(struct pk *o) {
    pk_text(o, "segments");
    pk_list(o);
    pk_dict(o);
    pk_key_int(o, "device", 1);
    pk_key_int(o, "address", 0x10000);
    pk_key_int(o, "total_size", 8192);
    pk_key_int(o, "allocated_size", 1024 + 2560);
    pk_key_int(o, "active_size", 1024 + 2048 + 2560);
    pk_key_int(o, "requested_size", 3000);
    pk_key_int(o, "stream", 0);
    pk_key_text(o, "segment_type", "large");
    pk_text(o, "segment_pool_id");
    pk_bytes(o, "K\x03K\x04\x86", 5);
    pk_text(o, "is_expandable");
    pk_op(o, (char)0x88);
    put_frames(o, 5);
    pk_text(o, "blocks");
    pk_list(o);
    put_block(o, 0x10000, 1024, "active_allocated", 7);
    put_block(o, 0x10400, 2048, "active_pending_free", 0);
    put_block(o, 0x10c00, 2560, "active_allocated", 9);
    put_block(o, 0x11600, 2560, "inactive", 0);
    pk_end_list(o);
    pk_end_dict(o);
    pk_end_list(o);
}

static void put_entry(struct pk *o, const char *action, int64_t addr,
                      int64_t size, int64_t us, int64_t line) {
    pk_dict(o);
    pk_key_text(o, "action", action);
    pk_key_int(o, strcmp(action, "oom") == 0 ? "device_free" : "addr", addr);
    pk_key_int(o, "size", size);
    pk_key_int(o, "stream", 0);
    pk_key_int(o, "time_us", ZERO + us);
    put_frames(o, line);
    pk_end_dict(o);
}

static void put_traces(struct pk *o) {
    pk_text(o, "device_traces");
    pk_list(o);
    pk_op(o, ']'); /* device 0 */
    pk_list(o);
    put_entry(o, "segment_alloc", 0x20000, 4096, 0, 0);
    put_entry(o, "free_requested", 0x20000, 700, 1, 0);
    put_entry(o, "free_completed", 0x20000, 700, 2, 11);
    put_entry(o, "alloc", 0x20000, 100, 3, 12);
    put_entry(o, "alloc", 0x10c00, 2100, 4, 9);
    put_entry(o, "oom", 300, 5000, 5, 13);
    put_entry(o, "free_completed", 0x20000, 100, 6, 0);
    put_entry(o, "segment_free", 0x20000, 4096, 7, 0);
    put_entry(o, "snapshot", 0, 0, 8, 0);
    pk_end_list(o);
    pk_end_list(o);
}

static void put_annotation(struct pk *o, const char *stage, const char *name,
                           int64_t us) {
    pk_dict(o);
    pk_key_text(o, "stage", stage);
    pk_key_text(o, "name", name);
    pk_key_int(o, "device", 1);
    pk_key_int(o, "time_us", ZERO + us);
    pk_end_dict(o);
}

static void put_annotations(struct pk *o) {
    pk_text(o, "external_annotations");
    pk_list(o);
    put_annotation(o, "START", "ProfilerStep#4", 1);
    put_annotation(o, "START", "fwd", 2);
    put_annotation(o, "END", "fwd", 3);
    put_annotation(o, "END", "fwd", 4); /* has no start */
    put_annotation(o, "END", "ProfilerStep#4", 6);
    put_annotation(o, "START", "late", 7); /* has no end */
    pk_end_list(o);
}

static void put_settings(struct pk *o, int64_t divisions) {
    pk_text(o, "allocator_settings");
    pk_dict(o);
    pk_key_text(o, "PYTORCH_CUDA_ALLOC_CONF", "x:1");
    pk_text(o, "expandable_segments");
    pk_op(o, (char)0x88);
    pk_text(o, "roundup_power2_divisions");
    pk_dict(o);
    pk_key_int(o, "1", divisions);
    pk_end_dict(o);
    pk_end_dict(o);
}

static struct pk whole(void) {
    struct pk o = {0};
    pk_start(&o);
    pk_dict(&o);
    put_segments(&o);
    put_traces(&o);
    put_settings(&o, 0);
    put_annotations(&o);
    pk_end_dict(&o);
    pk_stop(&o);
    return o;
}

static struct feed feed_pk(struct pk *o) {
    struct feed f = feed_bytes(o->p, o->n, 1);
    free(o->p);
    if (f.rc != 0) fail_msg("%s", f.e.text);
    return f;
}

static const char *stack(const struct trace *t, uint32_t s) {
    static char buf[100];
    stack_text(t, s, 9, buf, sizeof buf);
    return buf;
}

static void levels_are_counted_back_from_the_segments(void **state) {
    (void)state;
    struct pk o = whole();
    struct feed f = feed_pk(&o);
    const struct mem_events *m = &f.t->mem;
    assert_string_equal(f.t->sources[0].format->name, "snapshot");
    assert_int_equal(f.t->epoch_ns, ZERO * 1000);
    assert_int_equal(m->n, 4);
    /* 1024 + 2048 in the segments and 1024 for 700 were there before */
    static const int64_t bytes[] = {-1024, 512, 2560, -512};
    static const int64_t level[] = {3072, 3584, 6144, 5632};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(m->bytes[i], bytes[i]);
        assert_int_equal(m->allocated[i], level[i]);
        assert_int_equal(m->reserved[i], 8192 + 4096);
        assert_int_equal(m->track[i], ROW_NONE);
    }
    assert_int_equal(m->ts[0], 2 * PS_PER_US);
    assert_int_equal(level[3], f.t->segments[0].active);
    assert_int_equal(f.t->ndevices, 1);
    assert_int_equal(f.t->devices[0].ordinal, 1);
    assert_string_equal(stack(f.t, mem_stack(f.t, 1)), "a.py:12 f");
    assert_string_equal(stack(f.t, mem_stack(f.t, 2)), "a.py:9 f");
    assert_int_equal(mem_stack(f.t, 0), ROW_NONE);
    feed_free(&f);
}

static void blocks_from_before_are_known_one_by_one(void **state) {
    (void)state;
    struct pk o = whole();
    struct feed f = feed_pk(&o);
    assert_int_equal(f.t->nbefore, 3);
    static const uint64_t addr[] = {0x10000, 0x10400, 0x20000};
    static const int64_t bytes[] = {1024, 2048, 1024};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(f.t->before[i].addr, addr[i]);
        assert_int_equal(f.t->before[i].bytes, bytes[i]);
        assert_int_equal(f.t->before[i].ts, TS_NONE);
    }
    assert_string_equal(stack(f.t, f.t->before[0].stack), "a.py:7 f");
    assert_int_equal(f.t->before[1].stack, ROW_NONE);
    feed_free(&f);
}

static void segments_failures_and_settings_are_kept(void **state) {
    (void)state;
    struct pk o = whole();
    struct feed f = feed_pk(&o);
    const struct mem_segment *s = &f.t->segments[0];
    assert_int_equal(f.t->nsegments, 1);
    assert_int_equal(s->bytes, 8192);
    assert_int_equal(s->requested, 3000);
    assert_int_equal(s->pool[0], 3);
    assert_int_equal(s->pool[1], 4);
    assert_true(s->large && s->expandable);
    assert_string_equal(stack(f.t, s->stack), "a.py:5 f");
    assert_int_equal(s->end - s->first, 4);
    assert_int_equal(f.t->blocks[1].state, BLOCK_PENDING_FREE);
    assert_int_equal(f.t->blocks[3].state, BLOCK_FREE);
    assert_int_equal(f.t->blocks[0].requested, 1012);
    assert_int_equal(f.t->nooms, 1);
    assert_int_equal(f.t->ooms[0].bytes, 5000);
    assert_int_equal(f.t->ooms[0].device_free, 300);
    assert_int_equal(f.t->ooms[0].ts, 5 * PS_PER_US);
    assert_string_equal(stack(f.t, f.t->ooms[0].stack), "a.py:13 f");
    assert_string_equal(trace_meta_get(f.t, 0, "allocator.expandable_segments"),
                        "True");
    assert_string_equal(trace_meta_get(f.t, 0,
                                       "allocator.PYTORCH_CUDA_ALLOC_CONF"),
                        "x:1");
    feed_free(&f);
}

static void annotations_become_spans(void **state) {
    (void)state;
    struct pk o = whole();
    struct feed f = feed_pk(&o);
    assert_int_equal(f.t->spans.n, 3);
    feed_check(&f, "ProfilerStep#4", PS_PER_US, 5 * PS_PER_US);
    feed_check(&f, "fwd", 2 * PS_PER_US, PS_PER_US);
    feed_check(&f, "late", 7 * PS_PER_US, 0);
    assert_int_equal(f.t->notes[NOTE_UNMATCHED_END], 1);
    assert_int_equal(f.t->notes[NOTE_UNMATCHED_BEGIN], 1);
    assert_int_equal(f.t->nsteps, 1);
    assert_int_equal(f.t->steps[0].number, 4);
    feed_free(&f);
}

/* Reads a snapshot of that many allocations and nothing else. */
static struct feed sized(int64_t size, int64_t divisions) {
    struct pk o = {0};
    pk_start(&o);
    pk_dict(&o);
    put_settings(&o, divisions);
    pk_text(&o, "device_traces");
    pk_list(&o);
    pk_list(&o);
    put_entry(&o, "alloc", 0x1000, size, 0, 0);
    pk_end_list(&o);
    pk_end_list(&o);
    pk_end_dict(&o);
    pk_stop(&o);
    return feed_pk(&o);
}

static void sizes_are_rounded_as_the_allocator_does(void **state) {
    (void)state;
    static const int64_t v[][3] = {
        {1, 0, 512},       {512, 0, 512},   {513, 0, 1024},
        {3456, 0, 3584},   {1200, 4, 1536}, {100000, 4, 114688},
        {98304, 4, 98304}, {2048, 4, 2048}, {2049, 4, 2560},
        {65536, 4, 65536}, {0, 0, 512},
    };
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        struct feed f = sized(v[i][0], v[i][1]);
        assert_int_equal(f.t->mem.bytes[0], v[i][2]);
        assert_int_equal(f.t->mem.allocated[0], -1); /* no segments told */
        assert_null(f.t->mem.reserved);
        feed_free(&f);
    }
    struct feed f = sized(INT64_MAX, 4);
    assert_int_equal(f.t->mem.n, 0);
    assert_int_equal(f.t->notes[NOTE_BAD_EVENT], 1);
    feed_free(&f);
}

/* A free segment of 8 MiB at the end. In turn: 7.5 MiB of it (what is left is
 * too small: all 8), 6 MiB (split), 3 MiB and behind it 4.5 MiB (what is left
 * of 5), and a small block, which is always split. */
static void what_is_too_small_to_split_belongs_to_the_block(void **state) {
    (void)state;
    enum { MIB = 1 << 20, AT = 256 * MIB };
    static const int64_t v[][4] = {
        /* at, asked, block, freed at once */
        {0, 15 * MIB / 2, 8 * MIB, 1}, {0, 6 * MIB, 6 * MIB, 1},
        {0, 3 * MIB, 3 * MIB, 0},      {3 * MIB, 9 * MIB / 2, 5 * MIB, 1},
        {3 * MIB, MIB, MIB, 1},        {0, 3 * MIB, 3 * MIB, 2},
    };
    struct pk o = {0};
    pk_start(&o);
    pk_dict(&o);
    pk_text(&o, "segments");
    pk_list(&o);
    pk_dict(&o);
    pk_key_int(&o, "address", AT);
    pk_key_int(&o, "total_size", 8 * MIB);
    pk_text(&o, "blocks");
    pk_list(&o);
    put_block(&o, AT, 8 * MIB, "inactive", 0);
    pk_end_list(&o);
    pk_end_dict(&o);
    pk_end_list(&o);
    pk_text(&o, "device_traces");
    pk_list(&o);
    pk_list(&o);
    int64_t us = 0;
    for (size_t i = 0; i < 6; i++) {
        if (v[i][3] != 2)
            put_entry(&o, "alloc", AT + v[i][0], v[i][1], us++, 0);
        if (v[i][3] != 0)
            put_entry(&o, "free_completed", AT + v[i][0], v[i][1], us++, 0);
    }
    pk_end_list(&o);
    pk_end_list(&o);
    pk_end_dict(&o);
    pk_stop(&o);
    struct feed f = feed_pk(&o);
    const struct mem_events *m = &f.t->mem;
    size_t k = 0;
    for (size_t i = 0; i < 6; i++) {
        if (v[i][3] != 2) assert_int_equal(m->bytes[k++], v[i][2]);
        if (v[i][3] != 0) assert_int_equal(m->bytes[k++], -v[i][2]);
    }
    assert_int_equal(m->allocated[k - 1], 0);
    assert_int_equal(f.t->nbefore, 0);
    feed_free(&f);
}

/* One list in many places: counted once, and no more work than it is long. */
static void a_list_that_is_repeated_counts_once(void **state) {
    (void)state;
    enum { MANY = 1000 };
    struct pk o = {0};
    pk_start(&o);
    pk_dict(&o);
    pk_text(&o, "device_traces");
    pk_list(&o);
    pk_list(&o);
    for (int i = 0; i < MANY; i++)
        put_entry(&o, "alloc", 0x1000 * (i + 1), 1, i, 3);
    pk_end_list(&o);
    pk_bytes(&o, "q\x00", 2);
    for (int i = 0; i < MANY; i++) pk_bytes(&o, "h\x00", 2);
    pk_end_list(&o);
    pk_end_dict(&o);
    pk_stop(&o);
    struct feed f = feed_pk(&o);
    assert_int_equal(f.t->mem.n, MANY);
    assert_int_equal(f.t->stacks.n, 1);
    feed_free(&f);
}

static void one_broken_time_does_not_move_the_others(void **state) {
    (void)state;
    struct pk o = {0};
    pk_start(&o);
    pk_dict(&o);
    pk_text(&o, "device_traces");
    pk_list(&o);
    pk_list(&o);
    put_entry(&o, "alloc", 0x1000, 1, -ZERO, 0);
    put_entry(&o, "alloc", 0x2000, 1, 5, 0);
    put_entry(&o, "alloc", 0x3000, 1, 6, 0);
    put_entry(&o, "alloc", 0x4000, 1, ZERO, 0);
    pk_end_list(&o);
    pk_end_list(&o);
    pk_end_dict(&o);
    pk_stop(&o);
    struct feed f = feed_pk(&o);
    assert_int_equal(f.t->mem.n, 2);
    assert_int_equal(f.t->epoch_ns, (ZERO + 5) * 1000);
    assert_int_equal(f.t->mem.ts[1], PS_PER_US);
    assert_int_equal(f.t->notes[NOTE_TIME_OUT_OF_RANGE], 2);
    feed_free(&f);
}

static void an_annotation_of_a_month_is_none(void **state) {
    (void)state;
    const int64_t month = INT64_C(30) * 86400 * 1000000;
    struct pk o = {0};
    pk_start(&o);
    pk_dict(&o);
    pk_text(&o, "segments");
    pk_op(&o, ']');
    pk_text(&o, "external_annotations");
    pk_list(&o);
    put_annotation(&o, "START", "a", 0);
    put_annotation(&o, "START", "b", 0);
    put_annotation(&o, "END", "b", month);
    pk_end_list(&o);
    pk_end_dict(&o);
    pk_stop(&o);
    struct feed f = feed_pk(&o);
    assert_int_equal(f.t->spans.n, 2);
    assert_int_equal(f.t->spans.dur[0], 0);
    assert_int_equal(f.t->spans.dur[1], 0);
    assert_int_equal(f.t->notes[NOTE_DURATION_MISSING], 2);
    feed_free(&f);
}

/* Before 2.1: no times, blocks with a history. */
static void old_snapshots_keep_their_order(void **state) {
    (void)state;
    static const char text[] = "\x80\x02}(X\x0d\x00\x00\x00"
                               "device_traces](](}(X\x06\x00\x00\x00"
                               "actionX\x05\x00\x00\x00"
                               "allocX\x04\x00\x00\x00"
                               "addrM\x00\x20"
                               "X\x04\x00\x00\x00sizeK\x05u}(X\x06\x00\x00\x00"
                               "actionX\x05\x00\x00\x00"
                               "allocX\x04\x00\x00\x00"
                               "addrM\x00\x40"
                               "X\x04\x00\x00\x00sizeK\x05ueeu.";
    struct feed f = feed_bytes(text, sizeof text - 1, 1);
    assert_int_equal(f.rc, 0);
    assert_int_equal(f.t->mem.n, 2);
    assert_int_equal(f.t->mem.ts[1], PS_PER_US);
    assert_false(f.t->sources[0].has_clock);
    assert_int_equal(f.t->notes[NOTE_CLOCK_UNKNOWN], 1);
    feed_free(&f);
}

static void other_pickles_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *p;
        size_t n;
        const char *words;
    } v[] = {
        {"\x80\x02}(X\x08\x00\x00\x00segmentscos\nsystem\nu.", 30,
         "refuses to load \"os.system\""},
        {"\x80\x02]X\x08\x00\x00\x00segmentsa.", 18, "no memory snapshot"},
        {"\x80\x02}X\x01\x00\x00\x00"
         "aK\x01s.",
         14, "no memory snapshot"},
    };
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        struct feed f = feed_bytes(v[i].p, v[i].n, 1);
        assert_int_equal(f.rc, OPS_EFORMAT);
        if (!strstr(f.e.text, v[i].words)) fail_msg("%s", f.e.text);
        feed_free(&f);
    }
}

/* Cut anywhere: an error, or what was there and a note; and then no level is
 * claimed, for what came later is not known. */
static void a_cut_anywhere_keeps_what_came_before(void **state) {
    (void)state;
    struct pk o = whole();
    for (size_t cut = 0; cut < o.n; cut++) {
        struct feed f = feed_bytes(o.p, cut, 1);
        if (f.rc != 0) {
            assert_int_equal(f.rc, OPS_EFORMAT);
            assert_true(f.e.text[0] != '\0');
        } else {
            assert_int_equal(f.t->notes[NOTE_FILE_CUT], 1);
            assert_int_equal(f.t->nbefore, 0);
            for (size_t i = 0; i < f.t->mem.n; i++)
                assert_int_equal(f.t->mem.allocated[i], -1);
        }
        feed_free(&f);
    }
    free(o.p);
}

/* An entry that is named again, by two bytes each time, is still one; and so
 * are a frame that stands for an entry, and an entry that stands for a
 * frame. */
static void an_entry_that_is_repeated_counts_once(void **state) {
    (void)state;
    enum { TIMES = 10000 };
    struct pk o = {0};
    pk_bytes(&o, "\x80\x04}(", 4);
    pk_text(&o, "device_traces");
    pk_list(&o);
    pk_list(&o);
    put_entry(&o, "alloc", 0x1000, 512, 0, 3);
    pk_bytes(&o, "q\x05", 2);
    for (int i = 0; i < TIMES; i++) pk_bytes(&o, "h\x05", 2);
    pk_dict(&o);
    pk_key_text(&o, "action", "alloc");
    pk_key_int(&o, "addr", 0x2000);
    pk_key_int(&o, "size", 512);
    pk_key_int(&o, "time_us", ZERO + 1);
    pk_text(&o, "frames");
    pk_list(&o);
    pk_bytes(&o, "h\x05", 2);
    pk_end_list(&o);
    pk_end_dict(&o);
    pk_end_list(&o);
    pk_end_list(&o);
    pk_bytes(&o, "u.", 2);
    struct feed f = feed_pk(&o);
    assert_int_equal(f.t->mem.n, 2);
    assert_int_equal(f.t->notes[NOTE_ENTRY_REPEATED], TIMES);
    feed_free(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_are_counted_back_from_the_segments),
        cmocka_unit_test(blocks_from_before_are_known_one_by_one),
        cmocka_unit_test(segments_failures_and_settings_are_kept),
        cmocka_unit_test(annotations_become_spans),
        cmocka_unit_test(sizes_are_rounded_as_the_allocator_does),
        cmocka_unit_test(what_is_too_small_to_split_belongs_to_the_block),
        cmocka_unit_test(a_list_that_is_repeated_counts_once),
        cmocka_unit_test(one_broken_time_does_not_move_the_others),
        cmocka_unit_test(an_annotation_of_a_month_is_none),
        cmocka_unit_test(old_snapshots_keep_their_order),
        cmocka_unit_test(other_pickles_are_refused),
        cmocka_unit_test(a_cut_anywhere_keeps_what_came_before),
        cmocka_unit_test(an_entry_that_is_repeated_counts_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
