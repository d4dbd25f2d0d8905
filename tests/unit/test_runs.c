/* SPDX-License-Identifier: Apache-2.0
 * Folders become runs, files become traces: by content, host, rank and time. */
#include "feed.h"

#include "load/runs.h"
#include "rec/temp.h"
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[TEMP_MAX];

static int unlink_one(const char *p, const struct stat *st, int type,
                      struct FTW *w) {
    (void)st;
    (void)type;
    (void)w;
    return remove(p);
}

static int make_root(void **state) {
    (void)state;
    return mkdtemp(temp_name(root, "runs")) ? 0 : -1;
}

static int drop_root(void **state) {
    (void)state;
    return nftw(root, unlink_one, 8, FTW_DEPTH | FTW_PHYS);
}

static const char *at(const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

/* Writes a file below the root and makes its folders. */
static void put(const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s", at(name));
    for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        mkdir(path, 0777);
        *p = '/';
    }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

#define TORCH(base, rank, ts)                                                  \
    "{\"schemaVersion\":1,\"baseTimeNanoseconds\":" base                       \
    ",\"distributedInfo\":{\"rank\":" rank "},\"traceEvents\":[{\"ph\":\"X\"," \
    "\"cat\":\"cpu_op\",\"name\":\"op\",\"pid\":1,\"tid\":1,\"ts\":" ts        \
    ",\"dur\":100}]}"
#define CHROME                                                                 \
    "[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":1,\"pid\":1,\"tid\":1}]"

static void a_folder_with_nothing_says_what_was_looked_for(void **state) {
    (void)state;
    put("notes.txt", "hello");
    struct run_list l;
    struct ops_err e;
    assert_int_equal(runs_find(root, &l, &e), OPS_EFORMAT);
    assert_non_null(strstr(e.text, ".xplane.pb"));
    assert_non_null(strstr(e.text, "1 file"));
    assert_int_equal(runs_find(at("none"), &l, &e), OPS_EIO);
}

static void content_decides_not_the_name(void **state) {
    (void)state;
    put("strange.bin", TORCH("1790857026000000000", "0", "1"));
    put("fake.pt.trace.json", "not json at all");
    struct run_list l;
    struct ops_err e;
    assert_int_equal(runs_find(root, &l, &e), 0);
    assert_int_equal(l.n, 1);
    assert_int_equal(l.v[0].n, 1);
    assert_non_null(strstr(l.v[0].files[0].path, "strange.bin"));
    runs_free(&l);
}

static void the_newest_run_is_picked_or_the_one_named(void **state) {
    (void)state;
    const char *run = TORCH("1790857026000000000", "0", "1");
    put("train/plugins/profile/2026_11_15_03_29_38/h.json", run);
    put("train/plugins/profile/2026_11_14_23_59_59/h.json", run);
    struct run_list l;
    struct ops_err e;
    const struct run *r;
    assert_int_equal(runs_find(root, &l, &e), 0);
    assert_int_equal(l.n, 2);
    assert_int_equal(runs_pick(&l, NULL, &r, &e), 0);
    assert_string_equal(r->name, "train/2026_11_15_03_29_38");
    assert_int_equal(runs_pick(&l, "2026_11_14_23_59_59", &r, &e), 0);
    assert_string_equal(r->name, "train/2026_11_14_23_59_59");
    assert_int_equal(runs_pick(&l, "yesterday", &r, &e), OPS_EUSAGE);
    assert_non_null(strstr(e.text, "2026_11_15_03_29_38"));
    runs_free(&l);
}

static void a_run_of_the_year_9999_is_the_newest(void **state) {
    (void)state;
    const char *run = TORCH("1790857026000000000", "0", "1");
    put("a/9999_01_01_00_00_00/h.json", run);
    put("b/2026_11_15_03_29_38/h.json", run);
    put("c/2290_01_01_00_00_00/h.json", run);
    struct run_list l;
    struct ops_err e;
    assert_int_equal(runs_find(root, &l, &e), 0);
    assert_int_equal(l.n, 3);
    assert_string_equal(l.v[0].name, "b/2026_11_15_03_29_38");
    runs_free(&l);
}

static void other_tools_json_is_the_last_resort(void **state) {
    (void)state;
    put("a/trace.json", CHROME);
    put("z/old.pt.trace.json", TORCH("1790857026000000000", "0", "1"));
    struct run_list l;
    struct ops_err e;
    const struct run *r;
    put("b/trace.json", CHROME); /* newer than the torch run */
    assert_int_equal(runs_find(root, &l, &e), 0);
    assert_int_equal(l.n, 3);
    assert_int_equal(runs_pick(&l, NULL, &r, &e), 0);
    assert_string_equal(r->name, "z");
    runs_free(&l);
}

static void links_in_a_circle_and_fifos_do_no_harm(void **state) {
    (void)state;
    put("sub/x.json", CHROME);
    assert_int_equal(symlink(root, at("sub/loop")), 0);
    assert_int_equal(mkfifo(at("sub/pipe"), 0600), 0);
    struct run_list l;
    struct ops_err e;
    assert_int_equal(runs_find(root, &l, &e), 0);
    assert_int_equal(l.n, 1);
    assert_int_equal(l.v[0].n, 1);
    runs_free(&l);
}

/* Loads files of the root, sorted out by runs_load. */
static void load(const char *a, const char *b, struct loaded *out) {
    char pa[256], pb[256];
    snprintf(pa, sizeof pa, "%s", at(a));
    snprintf(pb, sizeof pb, "%s", at(b));
    struct run_file files[] = {{pa, NULL}, {pb, NULL}};
    struct import_opts o = {.threads = 1};
    struct ops_err e;
    if (runs_load(files, 2, &o, out, &e) != 0) fail_msg("%s", e.text);
}

static void ranks_of_one_job_are_one_trace(void **state) {
    (void)state;
    struct loaded l;
    put("r0.json", TORCH("1790857026000000000", "0", "10"));
    put("r1.json", TORCH("1790857026000050000", "1", "10"));
    load("r0.json", "r1.json", &l);
    assert_int_equal(l.n, 1);
    assert_int_equal(l.v[0]->nsources, 2);
    assert_int_equal(l.v[0]->sources[1].rank, 1);
    assert_int_equal(l.v[0]->spans.ts[1] - l.v[0]->spans.ts[0], 50 * PS_PER_US);
    loaded_free(&l);
}

static void the_rank_may_stand_in_the_name(void **state) {
    (void)state;
    struct loaded l;
    put("x_rank0.json", TORCH("1790857026000000000", "-1", "10"));
    put("x_rank_12.json", TORCH("1790857026000000000", "-1", "10"));
    load("x_rank0.json", "x_rank_12.json", &l);
    assert_int_equal(l.n, 1);
    assert_int_equal(l.v[0]->sources[1].rank, 12);
    loaded_free(&l);
}

static void what_does_not_belong_together_stays_apart(void **state) {
    (void)state;
    struct loaded l;
    put("r0.json", TORCH("1790857026000000000", "0", "10"));
    put("again.json", TORCH("1790857026000000000", "0", "20"));
    put("later.json", TORCH("1790857029000000000", "1", "10"));
    put("odd.json", TORCH("-9000000000000000000", "1", "10"));
    put("plain.json", CHROME);
    load("r0.json", "again.json", &l); /* the same rank twice */
    assert_int_equal(l.n, 2);
    loaded_free(&l);
    load("r0.json", "later.json", &l); /* not at the same time */
    assert_int_equal(l.n, 2);
    loaded_free(&l);
    load("r0.json", "odd.json", &l); /* centuries apart */
    assert_int_equal(l.n, 2);
    loaded_free(&l);
    load("r0.json", "plain.json", &l); /* no clock */
    assert_int_equal(l.n, 2);
    loaded_free(&l);
}

static void an_unreadable_file_is_named(void **state) {
    (void)state;
    put("good.json", CHROME);
    put("bad.json", "nothing");
    char good[256], bad[256];
    snprintf(good, sizeof good, "%s", at("good.json"));
    snprintf(bad, sizeof bad, "%s", at("bad.json"));
    struct run_file files[] = {{good, NULL}, {bad, NULL}};
    struct import_opts o = {.threads = 1};
    struct loaded l;
    struct ops_err e;
    assert_int_equal(runs_load(files, 2, &o, &l, &e), OPS_EFORMAT);
    assert_non_null(strstr(e.text, "bad.json"));
    assert_int_equal(l.n, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_root, drop_root)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_folder_with_nothing_says_what_was_looked_for),
        TEST(content_decides_not_the_name),
        TEST(the_newest_run_is_picked_or_the_one_named),
        TEST(a_run_of_the_year_9999_is_the_newest),
        TEST(other_tools_json_is_the_last_resort),
        TEST(links_in_a_circle_and_fifos_do_no_harm),
        TEST(ranks_of_one_job_are_one_trace),
        TEST(the_rank_may_stand_in_the_name),
        TEST(what_does_not_belong_together_stays_apart),
        TEST(an_unreadable_file_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
