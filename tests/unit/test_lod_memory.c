/* SPDX-License-Identifier: Apache-2.0
 * Tiles when memory runs out: each allocation of the index fails once. What was
 * asked for is refused, nothing is lost (the sanitizers look), and who asks
 * again gets it. The sources are compiled here with allocators that fail. */
#include "tiny.h"

#include "base/array.h"
#include "base/err.h"
#include "base/sort.h"
#include "base/vec.h"
#include "model/lod.h"
#include <pthread.h>
#include <stdlib.h>

static int until_failure = -1; /* -1: none fails */

static bool fails(void) { return until_failure >= 0 && until_failure-- == 0; }

/* cmocka makes a macro of it */
#undef fail

#define calloc(n, size)     (fails() ? NULL : calloc((n), (size)))
#define vec_alloc(n, size)  (fails() ? NULL : vec_alloc((n), (size)))
#define vec_zeroed(n, size) (fails() ? NULL : vec_zeroed((n), (size)))
#define sort_keys(v, n)     (!fails() && sort_keys((v), (n)))
#include "model/lod.c"
#include "model/lod_index.c"

static struct trace *more_lanes_than_few(void) {
    struct trace *t = tiny_new(true, false);
    uint32_t track = tiny_thread(t, 1);
    for (int64_t i = 0; i < 3 * LOD_BLOCK; i++)
        tiny_span(t, track, SPAN_OP, "op", i, 100);
    tiny_seal(t);
    return t;
}

static int ask(const struct trace *t, struct lod_tile *out) {
    struct ops_err e = {0};
    struct lod_query q = {.lane = LOD_ALL, .level = 30};
    int rc = lod_tile(t, &q, out, &e);
    if (rc != 0) assert_true(err_is_oom(&e));
    return rc;
}

static void every_allocation_fails_once(void **state) {
    (void)state;
    struct lod_tile tile;
    int n = 0;
    for (bool hit = true; hit; n++) {
        struct trace *t = more_lanes_than_few();
        until_failure = n;
        int rc = ask(t, &tile);
        hit = until_failure < 0;
        assert_int_equal(rc, hit ? OPS_ELIMIT : 0);
        until_failure = -1;
        assert_int_equal(ask(t, &tile), 0);
        assert_true(tile.lanes > LOD_LANES_FEW);
        assert_true(tile.busy == (3 * LOD_BLOCK + 99) * (uint64_t)US);
        trace_free(t);
    }
    assert_true(n > 10);
}

static void of_the_extent_too(void **state) {
    (void)state;
    struct trace *t = more_lanes_than_few();
    struct lod_extent x;
    struct lod_track track;
    struct ops_err e = {0};
    uint32_t lane;
    until_failure = 0;
    assert_int_equal(lod_extent(t, &x, &e), OPS_ELIMIT);
    until_failure = 1;
    assert_int_equal(lod_track(t, 0, &track, &e), OPS_ELIMIT);
    until_failure = 0;
    assert_int_equal(lod_lane(t, 0, &lane, &e), OPS_ELIMIT);
    until_failure = -1;
    assert_int_equal(lod_lane(t, 1, &lane, &e), 0);
    assert_int_equal(lane, 1);
    trace_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_fails_once),
        cmocka_unit_test(of_the_extent_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
