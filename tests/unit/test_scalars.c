/* SPDX-License-Identifier: Apache-2.0
 * Event files into the store, and the store into curves: every form of a
 * scalar, damage, cuts, growth, restarts. tests/truth/scalars_check.py holds
 * the same to TensorBoard's answers about real files. */
#include "scalars/scalars.h"
#include "scalars/summary.h"

#include "event_build.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Makes a store with one file that has these bytes, read. */
static void read_into(struct scalars *s, const struct out *o) {
    assert_true(scalars_init(s));
    assert_int_equal(scalars_file(s, "f", "."), 0);
    summary_read(s, 0, (struct bytes){o->p, o->n});
    assert_false(s->oom);
}

static const struct series *find(const struct scalars *s, const char *tag) {
    for (size_t i = 0; i < s->nseries; i++)
        if (strcmp(strs_text(&s->strs, s->series[i].tag), tag) == 0)
            return &s->series[i];
    return NULL;
}

/* Puts a tensor's message: type, [shape], and one list or content. */
static void put_tensor(struct out *file, const char *tag, int dtype,
                       uint32_t field, const void *p, size_t n) {
    struct out t = {0}, v = {0}, shape = {0};
    out_int(&t, 1, dtype);
    out_msg(&t, 2, &shape);
    out_bytes(&t, field, p, n);
    out_msg(&v, 8, &t);
    put_summary(file, tag, 1, &v);
    free(t.p);
    free(shape.p);
}

static void every_form_of_a_scalar_is_read(void **state) {
    (void)state;
    struct out f = {0};
    struct scalars s;
    const float fl = 1.5f;
    const double d = -2.25;
    const int64_t i64 = -7;
    const int16_t i16 = -300;
    const uint8_t u8 = 200;
    put_version(&f);
    put_simple(&f, "simple", 1, 0.5f);
    put_tensor(&f, "float content", 1, 4, &fl, 4);
    put_tensor(&f, "float list", 1, 5, &fl, 4);
    put_tensor(&f, "double content", 2, 4, &d, 8);
    put_tensor(&f, "double list", 2, 6, &d, 8);
    put_tensor(&f, "int64 content", 9, 4, &i64, 8);
    put_tensor(&f, "int16 content", 5, 4, &i16, 2);
    put_tensor(&f, "uint8 content", 4, 4, &u8, 1);
    put_tensor(&f, "int32 list", 3, 7, "\xac\x02", 2); /* 300 */
    put_tensor(&f, "int64 list", 9, 10,
               "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10); /* -1 */
    put_tensor(&f, "uint64 list", 23, 17,
               "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10);
    put_tensor(&f, "bool list", 10, 11, "\x01", 1);
    put_tensor(&f, "half content", 19, 4, "\x00\x3e", 2);   /* 1.5 */
    put_tensor(&f, "half list", 19, 13, "\x80\xbc\x01", 3); /* 0x5e00: 384 */
    put_tensor(&f, "half tiny", 19, 4, "\x01\x00", 2);      /* 2^-24 */
    put_tensor(&f, "half inf", 19, 4, "\x00\xfc", 2);       /* -infinity */
    put_tensor(&f, "bfloat16", 14, 4, "\xc0\x3f", 2);       /* 1.5 */
    put_tensor(&f, "zero", 1, 5, "", 0); /* zeros need not be written */
    read_into(&s, &f);
    static const struct {
        const char *tag;
        double value;
    } want[] = {
        {"simple", 0.5},
        {"float content", 1.5},
        {"float list", 1.5},
        {"double content", -2.25},
        {"double list", -2.25},
        {"int64 content", -7},
        {"int16 content", -300},
        {"uint8 content", 200},
        {"int32 list", 300},
        {"int64 list", -1},
        {"uint64 list", 18446744073709551615.0},
        {"bool list", 1},
        {"half content", 1.5},
        {"half list", 384},
        {"half tiny", 1.0 / (1 << 24)},
        {"half inf", -INFINITY},
        {"bfloat16", 1.5},
        {"zero", 0},
    };
    size_t n = sizeof want / sizeof *want;
    assert_int_equal(s.nseries, n);
    for (size_t i = 0; i < n; i++) {
        const struct series *v = find(&s, want[i].tag);
        assert_non_null(v);
        assert_int_equal(v->kind, SERIES_SCALAR);
        assert_int_equal(v->n, 1);
        assert_int_equal(v->step[0], 1);
        assert_true(v->wall[0] == 1001);
        if (v->value[0] != want[i].value) fail_msg("%s", want[i].tag);
    }
    assert_int_equal(s.files[0].bad_events, 0);
    scalars_free(&s);
    free(f.p);
}

/* Histograms in both forms: values 1 x 2, 3 x 6 in [0,2) and [2,4). */
static void histograms_of_both_kinds(void **state) {
    (void)state;
    struct out f = {0}, h = {0}, v = {0}, t = {0}, shape = {0}, dim = {0};
    struct scalars s;
    const double edges[2] = {2, 4}, counts[2] = {2, 6};
    const double rows[6] = {0, 2, 2, 2, 4, 6};
    out_double(&h, 1, 1);
    out_double(&h, 2, 3);
    out_double(&h, 3, 8);
    out_double(&h, 4, 20);
    out_double(&h, 5, 56);
    out_bytes(&h, 6, edges, 16);
    out_bytes(&h, 7, counts, 16);
    out_msg(&v, 5, &h);
    put_summary(&f, "old", 1, &v);
    out_int(&dim, 1, 2);
    out_msg(&shape, 2, &dim);
    out_int(&dim, 1, 3);
    out_msg(&shape, 2, &dim);
    out_int(&t, 1, 2);
    out_msg(&t, 2, &shape);
    out_bytes(&t, 4, rows, sizeof rows);
    out_msg(&v, 8, &t);
    put_summary(&f, "new", 1, &v);
    read_into(&s, &f);
    const struct series *old = find(&s, "old"), *new = find(&s, "new");
    assert_true(old && old->kind == SERIES_HISTOGRAM);
    assert_true(old->value[0] == 2.5 && old->last.num == 8);
    assert_int_equal(old->last.buckets, 2);
    assert_true(new &&new->kind == SERIES_HISTOGRAM);
    assert_true(new->value[0] == (2 * 1 + 6 * 3) / 8.0);
    assert_true(new->min == 0 && new->max == 4 && new->last.num == 8);
    scalars_free(&s);
    free(f.p);
    free(h.p);
    free(t.p);
    free(shape.p);
    free(dim.p);
}

/* Text says so by its plugin; the second has no plugin and is known by now. */
static void text_keeps_its_last_entry(void **state) {
    (void)state;
    struct out f = {0};
    struct scalars s;
    put_tensor(&f, "note", 7, 8, "first", 5);
    put_tensor(&f, "note", 7, 8, "second\nline\0end", 15);
    read_into(&s, &f);
    const struct series *v = find(&s, "note");
    assert_true(v && v->kind == SERIES_TEXT);
    assert_int_equal(v->n, 2);
    assert_string_equal(v->text, "second\nline end");
    scalars_free(&s);
    free(f.p);
}

static void put_many(struct out *f, int n) {
    put_version(f);
    for (int i = 0; i < n; i++) put_simple(f, "loss", i, (float)i);
}

static void every_cut_gives_what_was_before_it(void **state) {
    (void)state;
    struct out f = {0};
    put_many(&f, 4);
    size_t before = 0;
    for (size_t n = 0; n <= f.n; n++) {
        struct out cut = {0};
        struct scalars s;
        out_raw(&cut, f.p, n);
        read_into(&s, &cut);
        const struct scalar_file *x = &s.files[0];
        assert_int_equal(x->bad_records + x->lost_bytes + x->bad_events, 0);
        assert_true(x->offset <= n);
        assert_int_equal(x->cut, x->offset < n);
        assert_true(s.points >= before);
        before = s.points;
        scalars_free(&s);
        free(cut.p);
    }
    assert_int_equal(before, 4);
    free(f.p);
}

static void reading_on_gives_what_reading_at_once_gives(void **state) {
    (void)state;
    struct out f = {0};
    put_many(&f, 20);
    for (size_t piece = 1; piece < 90; piece += 11) {
        struct scalars s;
        assert_true(scalars_init(&s));
        assert_int_equal(scalars_file(&s, "f", "."), 0);
        for (size_t n = 0; n < f.n;) {
            n = n + piece < f.n ? n + piece : f.n;
            /* what a mapping of the file would show: zeros behind its end */
            struct out now = {0};
            out_raw(&now, f.p, n);
            summary_read(&s, 0, (struct bytes){now.p, now.n});
            free(now.p);
        }
        assert_int_equal(s.points, 20);
        assert_int_equal(s.files[0].records, 21);
        assert_false(s.files[0].cut);
        for (int i = 0; i < 20; i++)
            assert_true(s.series[0].step[i] == i && s.series[0].value[i] == i);
        scalars_free(&s);
    }
    free(f.p);
}

/* Any one byte changed: at most the record it is in is lost. */
static void damage_costs_one_record_and_is_counted(void **state) {
    (void)state;
    struct out f = {0};
    put_many(&f, 6);
    for (size_t at = 0; at < f.n; at++) {
        struct scalars s;
        f.p[at] ^= 0x5a;
        read_into(&s, &f);
        const struct scalar_file *x = &s.files[0];
        assert_true(x->records == 6);
        assert_true(s.points == 5 || s.points == 6);
        assert_true(x->bad_records == 1 || x->lost_bytes > 0 || x->cut);
        scalars_free(&s);
        f.p[at] ^= 0x5a;
    }
    free(f.p);
}

static void what_is_no_event_is_counted(void **state) {
    (void)state;
    struct out f = {0}, junk = {0};
    struct scalars s;
    out_raw(&junk, "\xff\xff\xff\xff", 4);
    put_record(&f, &junk);
    put_simple(&f, "loss", 1, 1);
    read_into(&s, &f);
    assert_int_equal(s.files[0].bad_events, 1);
    assert_int_equal(s.points, 1);
    scalars_free(&s);
    free(f.p);
    free(junk.p);
}

/* Run metadata and graphs stay where they are. */
static void messages_inside_are_found_in_place(void **state) {
    (void)state;
    struct out f = {0}, m = {0};
    struct scalars s;
    out_text(&m, 1, "step3");
    out_text(&m, 2, "the run metadata");
    put_event(&f, 1003, 3, 8, &m);
    out_raw(&m, "graph", 5);
    put_event(&f, 1004, 4, 4, &m);
    read_into(&s, &f);
    assert_int_equal(s.nblobs, 2);
    assert_int_equal(s.blobs[0].kind, BLOB_RUN_METADATA);
    assert_string_equal(strs_text(&s.strs, s.blobs[0].tag), "step3");
    assert_int_equal(s.blobs[0].step, 3);
    assert_memory_equal(f.p + s.blobs[0].at, "the run metadata", s.blobs[0].n);
    assert_int_equal(s.blobs[1].kind, BLOB_GRAPH);
    assert_memory_equal(f.p + s.blobs[1].at, "graph", 5);
    scalars_free(&s);
    free(f.p);
    free(m.p);
}

/* One curve of one tag "loss" over these files' points (step, wall). */
struct planned {
    int file;
    int64_t step;
    double wall;
    bool start; /* not a point: the program starts again at that step */
};

static void plan(struct scalars *s, const struct planned *p, size_t n) {
    assert_true(scalars_init(s));
    for (size_t i = 0; i < n; i++) {
        char path[8] = {'a' + (char)p[i].file, 0};
        while (s->nfiles <= (size_t)p[i].file) scalars_file(s, path, "run");
        if (p[i].start) {
            scalars_restart(s, (uint32_t)p[i].file, p[i].step);
            continue;
        }
        struct series *v = scalars_series(s, (uint32_t)p[i].file,
                                          bytes_of("loss"), SERIES_SCALAR);
        assert_non_null(v);
        scalars_point(s, v, p[i].step, p[i].wall, p[i].wall);
    }
}

static void check_curve(const struct planned *p, size_t n, const int64_t *steps,
                        size_t want, size_t replaced) {
    struct scalars s;
    struct curves c;
    struct ops_err e;
    plan(&s, p, n);
    assert_int_equal(scalars_curves(&s, &c, &e), 0);
    assert_int_equal(c.n, 1);
    assert_int_equal(c.v[0].n, want);
    for (size_t i = 0; i < want; i++)
        assert_int_equal(c.v[0].step[i], steps[i]);
    assert_int_equal(c.v[0].replaced, replaced);
    curves_free(&c);
    scalars_free(&s);
}

#define N(v) (sizeof(v) / sizeof *(v))

static void files_join_in_order_of_time(void **state) {
    (void)state;
    const struct planned later_first[] = {{0, 10, 110, 0},
                                          {0, 11, 111, 0},
                                          {1, 1, 101, 0},
                                          {1, 2, 102, 0}};
    const int64_t steps[] = {1, 2, 10, 11};
    check_curve(later_first, N(later_first), steps, 4, 0);
}

static void a_new_file_replaces_the_steps_it_does_again(void **state) {
    (void)state;
    const struct planned p[] = {{0, 1, 101, 0}, {0, 2, 102, 0}, {0, 3, 103, 0},
                                {1, 2, 202, 0}, {1, 3, 203, 0}, {1, 4, 204, 0}};
    const int64_t steps[] = {1, 2, 3, 4};
    check_curve(p, N(p), steps, 4, 2);
}

static void a_restart_inside_a_file_replaces_too(void **state) {
    (void)state;
    const struct planned p[] = {{0, 1, 101, 0}, {0, 5, 105, 0},
                                {0, 9, 109, 0}, {0, 5, 0, true},
                                {0, 6, 206, 0}, {0, 3, 0, true},
                                {0, 4, 304, 0}};
    const int64_t steps[] = {1, 4};
    check_curve(p, N(p), steps, 2, 3);
}

static void a_restart_at_the_head_of_a_file_counts(void **state) {
    (void)state;
    /* clang-format off */
    const struct planned p[] = {{0, 1, 101, 0}, {0, 5, 105, 0}, {0, 9, 109, 0},
                                {1, 5, 0, true}, {1, 20, 220, 0}};
    /* clang-format on */
    const int64_t steps[] = {1, 20};
    check_curve(p, N(p), steps, 2, 2);
}

static void files_written_at_once_are_merged_and_kept(void **state) {
    (void)state;
    /* clang-format off */
    const struct planned p[] = {{0, 1, 101, 0}, {0, 2, 103, 0}, {0, 3, 105, 0},
                                {1, 1, 102, 0}, {1, 2, 104, 0}};
    /* clang-format on */
    const int64_t steps[] = {1, 1, 2, 2, 3};
    check_curve(p, N(p), steps, 5, 0);
}

/* Steps that go back inside one file, with nobody saying "restart", are what
 * the program did: threads log out of order. */
static void unordered_steps_are_kept(void **state) {
    (void)state;
    const struct planned p[] = {{0, 1, 101, 0},
                                {0, 4, 102, 0},
                                {0, 3, 103, 0},
                                {0, 5, 104, 0}};
    const int64_t steps[] = {1, 4, 3, 5};
    check_curve(p, N(p), steps, 4, 0);
}

static void a_file_written_anew_is_read_anew(void **state) {
    (void)state;
    struct scalars s;
    const struct planned p[] = {{0, 1, 101, 0}, {0, 2, 102, 0}};
    plan(&s, p, 2);
    scalars_reset_file(&s, 0);
    struct curves c;
    struct ops_err e;
    assert_int_equal(scalars_curves(&s, &c, &e), 0);
    assert_int_equal(c.n, 0);
    curves_free(&c);
    scalars_free(&s);
}

static void event_files_are_told_from_others(void **state) {
    (void)state;
    struct out f = {0}, junk = {0};
    put_many(&f, 1);
    assert_true(summary_sniff((struct bytes){f.p, f.n}));
    assert_true(summary_sniff((struct bytes){f.p, 20}));
    assert_false(summary_sniff((struct bytes){f.p, 11}));
    assert_false(summary_sniff((struct bytes){f.p + 1, f.n - 1}));
    /* records of something else: a TFRecord dataset's examples */
    out_text(&junk, 77, "no event has such a field");
    f.n = 0;
    put_record(&f, &junk);
    assert_false(summary_sniff((struct bytes){f.p, f.n}));
    free(f.p);
    free(junk.p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_of_a_scalar_is_read),
        cmocka_unit_test(histograms_of_both_kinds),
        cmocka_unit_test(text_keeps_its_last_entry),
        cmocka_unit_test(every_cut_gives_what_was_before_it),
        cmocka_unit_test(reading_on_gives_what_reading_at_once_gives),
        cmocka_unit_test(damage_costs_one_record_and_is_counted),
        cmocka_unit_test(what_is_no_event_is_counted),
        cmocka_unit_test(messages_inside_are_found_in_place),
        cmocka_unit_test(files_join_in_order_of_time),
        cmocka_unit_test(a_new_file_replaces_the_steps_it_does_again),
        cmocka_unit_test(a_restart_inside_a_file_replaces_too),
        cmocka_unit_test(a_restart_at_the_head_of_a_file_counts),
        cmocka_unit_test(files_written_at_once_are_merged_and_kept),
        cmocka_unit_test(unordered_steps_are_kept),
        cmocka_unit_test(a_file_written_anew_is_read_anew),
        cmocka_unit_test(event_files_are_told_from_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
