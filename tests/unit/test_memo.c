/* SPDX-License-Identifier: Apache-2.0
 * What a trace keeps for several analyses: made once whoever asks, tried again
 * when it could not be made, dropped with the trace. */
#include "tiny.h"

#include <pthread.h>
#include <stdlib.h>

static int made, dropped;
static bool no_memory;

static void *make(const struct trace *t) {
    made++;
    if (no_memory) return NULL;
    size_t *n = malloc(sizeof *n);
    assert_non_null(n);
    *n = t->spans.n;
    return n;
}

static void drop(void *v) {
    dropped++;
    free(v);
}

static const size_t *ask(const struct trace *t) {
    return trace_memo(t, MEMO_PHASES, make, drop);
}

static void *ask_often(void *t) {
    const size_t *first = ask(t);
    for (int i = 0; i < 1000; i++)
        if (ask(t) != first) return NULL;
    return (void *)first;
}

static struct trace *sealed(void) {
    struct trace *t = tiny_new(false, false);
    tiny_span(t, tiny_thread(t, 1), SPAN_OP, "op", 0, 1);
    tiny_seal(t);
    made = dropped = 0;
    no_memory = false;
    return t;
}

static void it_is_made_once_for_all_threads(void **state) {
    (void)state;
    struct trace *t = sealed();
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_often, t), 0);
    for (int i = 0; i < 4; i++) {
        void *got;
        pthread_join(threads[i], &got);
        assert_ptr_equal(got, ask(t));
    }
    assert_int_equal(*ask(t), 1);
    assert_int_equal(made, 1);
    trace_free(t);
    assert_int_equal(dropped, 1);
}

static void what_failed_is_tried_again(void **state) {
    (void)state;
    struct trace *t = sealed();
    no_memory = true;
    assert_null(ask(t));
    no_memory = false;
    assert_non_null(ask(t));
    assert_int_equal(made, 2);
    trace_free(t);
    assert_int_equal(dropped, 1);
}

static void what_nobody_asked_for_is_not_dropped(void **state) {
    (void)state;
    trace_free(sealed());
    assert_int_equal(made, 0);
    assert_int_equal(dropped, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_made_once_for_all_threads),
        cmocka_unit_test(what_failed_is_tried_again),
        cmocka_unit_test(what_nobody_asked_for_is_not_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
