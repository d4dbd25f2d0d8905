/* SPDX-License-Identifier: Apache-2.0
 * Of opscope's own recording that counts which was inside of a capture, at
 * least in part. */
#include "tiny.h"

#include "load/runs_impl.h"
#include <stdio.h>

enum { CAPTURES = 7, SPANS = 60 };

/* us; they overlap, touch, lie in each other, and are not in order */
static const int64_t captures[CAPTURES][2] = {{50, 58}, {10, 20}, {18, 25},
                                              {12, 14}, {30, 32}, {32, 33},
                                              {45, 45}};

static bool is_inside(int64_t ts, int64_t dur) {
    for (int i = 0; i < CAPTURES; i++)
        if (ts < captures[i][1] && ts + dur > captures[i][0]) return true;
    return false;
}

static void what_lies_in_a_capture_counts(void **state) {
    (void)state;
    for (int64_t dur = 0; dur < 12; dur++) {
        struct loaded_file v[CAPTURES + 1];
        char paths[CAPTURES + 1][40] = {"h_1.xplane.pb"};
        struct ops_err e;
        for (int i = 0; i <= CAPTURES; i++) {
            v[i] = (struct loaded_file){.t = tiny_new(false, false),
                                        .path = paths[i]};
            /* each has an epoch of its own, some us behind */
            trace_epoch(v[i].t, 0, 1000000 - 1000 * i, true);
            v[i].t->sources[0].pid = 1;
            if (i == 0) continue;
            snprintf(paths[i], sizeof *paths, "h_1.step%d.pt.trace.json.gz", i);
            v[i].lo = (captures[i - 1][0] + i) * US;
            v[i].hi = (captures[i - 1][1] + i) * US;
        }
        v[0].t->sources[0].by_opscope = true;
        v[0].hi = SPANS * US;
        uint32_t thread = tiny_thread(v[0].t, 9);
        for (int64_t i = 0; i < SPANS; i++)
            tiny_span(v[0].t, thread, SPAN_OP,
                      is_inside(i, dur) ? "inside" : "outside", i, dur);
        assert_int_equal(join_all_traced(v, CAPTURES + 1, &e), 0);
        size_t n = 0;
        for (int k = 1; k <= CAPTURES; k++) {
            const struct trace *t = v[k].t;
            for (row_id r = 0; t != NULL && r < t->spans.n; r++, n++) {
                bool aside = t->tracks[t->spans.track[r]].kind == TRACK_OTHER;
                const char *name = strs_text(&t->strs, t->spans.name[r]);
                assert_string_equal(name, aside ? "outside" : "inside");
            }
            trace_free(v[k].t);
        }
        assert_int_equal(n, SPANS);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_lies_in_a_capture_counts),
    };
    return cmocka_run_group_tests_name("traced", tests, NULL, NULL);
}
