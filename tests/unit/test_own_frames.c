/* SPDX-License-Identifier: Apache-2.0
 * Python frames of opscope's own hooks are the profiler's cost; the program's,
 * also those called through a function that stands in, stay what they are. */
#include "tiny.h"

#include "base/facts.h"
#include "feed.h"

#define FRAME(name, ts, dur)                                                   \
    "{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"" name               \
    "\",\"pid\":1,\"tid\":1,\"ts\":" #ts ",\"dur\":" #dur "},"
#define HOOKS "/x/opscope/_capture/"

static const char by_path[] =
    "{\"schemaVersion\":1,\"traceEvents\":[" FRAME("train.py(1): main", 0, 1000)
        FRAME(HOOKS "stand_ins.py(40): step", 100, 300) FRAME("sgd.py(9): step",
                                                              110, 100)
            FRAME(HOOKS "torch_driver.py(7): _optimizer_stepped", 250, 100)
                FRAME("contextlib.py(3): __enter__", 260, 40)
                    FRAME(HOOKS "stand_ins.py(9): told", 310, 20)
                        FRAME("copy.py(1): copy", 315, 10)
                            FRAME("/home/opscope/_captured/core.py(1): mine",
                                  500, 100)
                                FRAME("not_opscope/_capture/core.py(1): mine",
                                      700, 100) "{}]}";

static uint8_t kind_of(const struct feed *f, const char *name) {
    return f->t->spans.kind[feed_row(f, name)];
}

static void frames_are_told_by_the_folder(void **state) {
    (void)state;
    struct feed f = feed_text(by_path);
    static const char *const own[] = {
        HOOKS "stand_ins.py(40): step",
        HOOKS "torch_driver.py(7): _optimizer_stepped",
        "contextlib.py(3): __enter__", HOOKS "stand_ins.py(9): told",
        "copy.py(1): copy"}; /* called inside of ours */
    static const char *const theirs[] = {
        "train.py(1): main", "sgd.py(9): step",
        "/home/opscope/_captured/core.py(1): mine",
        "not_opscope/_capture/core.py(1): mine"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        assert_int_equal(kind_of(&f, own[i]), SPAN_OVERHEAD);
    for (size_t i = 0; i < sizeof theirs / sizeof *theirs; i++)
        assert_int_equal(kind_of(&f, theirs[i]), SPAN_PYTHON);
    feed_free(&f);
}

static void their_time_is_nobodys(void **state) {
    (void)state;
    struct feed f = feed_text(by_path);
    struct result r = tiny_run(f.t, "python", NULL, NULL);
    assert_int_equal(r.nrows, 4);
    /* 1000, less 300 with the optimizer's step in it and two of 100 */
    assert_int_equal(tiny_int(&r, "main", "self_us"), 500 * PS_PER_US);
    assert_int_equal(tiny_int(&r, "step", "self_us"), 100 * PS_PER_US);
    assert_non_null(strstr(r.remarks[r.nremarks - 1], "200.0"));
    result_free(&r);
    feed_free(&f);
}

/* Another file of the program's own is called core.py, too. */
static void a_list_tells_where_there_are_no_folders(void **state) {
    (void)state;
    struct feed f = feed_text(
        "{\"traceEvents\":[" FRAME(
            "$train.py:1 main", 0,
            1000) "{\"ph\":\"X\",\"name\":\"" SPAN_OWN_FRAMES
                  "\",\"pid\":1,\"tid\":1,"
                  "\"ts\":5,\"dur\":1,\"args\":{\"" OWN_FRAMES_ARG "\":"
                  "\"$core.py:7 begins|$none.py:1 f|$stand_ins.py:3 "
                  "again\"}}," FRAME("$core.py:7 begins", 100, 100)
                      FRAME("$time perf_counter_ns", 110, 10)
                          FRAME("$stand_ins.py:3 again", 300, 200)
                              FRAME("$model.py:3 forward", 310, 100)
                                  FRAME("$core.py:8 begins", 600, 100) "{}]}");
    assert_int_equal(kind_of(&f, "$core.py:7 begins"), SPAN_OVERHEAD);
    assert_int_equal(kind_of(&f, "$time perf_counter_ns"), SPAN_OVERHEAD);
    assert_int_equal(kind_of(&f, "$stand_ins.py:3 again"), SPAN_OVERHEAD);
    assert_int_equal(kind_of(&f, "$model.py:3 forward"), SPAN_PYTHON);
    assert_int_equal(kind_of(&f, "$core.py:8 begins"), SPAN_PYTHON);
    struct result r = tiny_run(f.t, "ops", NULL, NULL);
    assert_false(tiny_has_row(&r, SPAN_OWN_FRAMES));
    result_free(&r);
    feed_free(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_told_by_the_folder),
        cmocka_unit_test(their_time_is_nobodys),
        cmocka_unit_test(a_list_tells_where_there_are_no_folders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
