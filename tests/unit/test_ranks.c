/* SPDX-License-Identifier: Apache-2.0
 * ranks: lateness by hand-made jobs and by a count that knows nothing of
 * intervals; clocks; and what makes a straggler. */
#include "job.h"

enum { STEPS = 5, STEP = 1000 };

/* Writes rank r's NCCL job: in step s it comes to its all_reduce at when[s];
 * all leave 20 after the last one. The clock is ahead by `ahead`. */
static void write_rank(struct job *j, int rank, int ranks, int steps,
                       const int *when, const int *leave, int64_t ahead) {
    job_rank(j, rank, ranks, true, NULL);
    j->clock = ahead;
    for (int s = 0; s < steps; s++) {
        job_step(j, s, STEP * s, STEP - 10);
        job_kernel(j, "gemm", 0, 7, STEP * s + 10, 50, NULL);
        job_nccl(j, STEP * s + when[s], leave[s] - when[s], s, "0");
    }
    job_end(j);
}

static void leaves(int ranks, int steps, int when[][STEPS], int *leave) {
    for (int s = 0; s < steps; s++) {
        leave[s] = 0;
        for (int r = 0; r < ranks; r++)
            if (when[r][s] + 20 > leave[s]) leave[s] = when[r][s] + 20;
    }
}

/* Writes a job of that many ranks, files in the given order. */
static struct job write_job(int ranks, int steps, int when[][STEPS],
                            const int *order, const int64_t *ahead) {
    struct job j = job_new();
    int leave[STEPS];
    leaves(ranks, steps, when, leave);
    for (int i = 0; i < ranks; i++) {
        int r = order ? order[i] : i;
        write_rank(&j, r, ranks, steps, when[r], leave, ahead ? ahead[r] : 0);
    }
    tiny_seal(j.t);
    return j;
}

static bool flag(const struct result *r, size_t row) {
    struct cell *c = tiny_cell(r, row, "straggler");
    assert_false(c->null);
    return c->i;
}

static int64_t late(const struct result *r, size_t row) {
    return tiny_cell(r, row, "late_us")->i;
}

static void one_rank_asks_for_the_others(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    tiny_seal(t);
    struct result r = tiny_run(t, "ranks", NULL, NULL);
    assert_true(tiny_misses(&r, "lateness"));
    result_free(&r);
    trace_free(t);
    int when[1][STEPS] = {{100, 100, 100, 100, 100}};
    struct job j = write_job(1, STEPS, when, NULL, NULL);
    r = tiny_run(j.t, "ranks", NULL, NULL);
    assert_int_equal(r.nrows, 1);
    assert_int_equal(tiny_cell(&r, 0, "rank")->i, 0);
    assert_true(tiny_cell(&r, 0, "late_us")->null);
    assert_true(tiny_cell(&r, 0, "straggler")->null);
    assert_false(tiny_cell(&r, 0, "step_mean_us")->null);
    assert_true(tiny_misses(&r, "lateness"));
    result_free(&r);
    job_free(&j);
}

/* Rank 2 comes 300 after rank 1, which comes 10 after rank 0. */
static int slow[3][STEPS] = {{100, 100, 100, 100, 100},
                             {110, 110, 110, 110, 110},
                             {410, 410, 410, 410, 410}};

static void the_last_is_late_by_the_last_but_one(void **state) {
    (void)state;
    static const int orders[3][3] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}};
    for (int o = 0; o < 3; o++) {
        struct job j = write_job(3, STEPS, slow, orders[o], NULL);
        struct result r = tiny_run(j.t, "ranks", NULL, NULL);
        assert_int_equal(r.nrows, 3);
        for (size_t i = 0; i < 3; i++) {
            assert_int_equal(tiny_cell(&r, i, "rank")->i, i);
            assert_int_equal(late(&r, i), i == 2 ? 300 * US : 0);
            assert_int_equal(flag(&r, i), i == 2);
            int64_t wait = i == 0 ? 310 : i == 1 ? 300 : 0;
            assert_int_equal(tiny_cell(&r, i, "wait_us")->i, wait * US);
        }
        assert_int_equal(tiny_cell(&r, 2, "came_last")->i, STEPS);
        assert_true(job_says(&r, "Rank 2 is the straggler"));
        assert_true(job_says(&r, "nothing that was recorded"));
        result_free(&r);
        r = tiny_run(j.t, "ranks", "steps", "1..2");
        assert_int_equal(tiny_cell(&r, 2, "steps")->i, 2);
        assert_int_equal(late(&r, 2), 300 * US);
        result_free(&r);
        job_free(&j);
    }
}

/* The remark says what kept it: a kernel, an op of its thread. */
static void what_kept_it_is_named(void **state) {
    (void)state;
    int leave[STEPS];
    leaves(3, STEPS, slow, leave);
    for (int device = 0; device < 2; device++) {
        struct job j = job_new();
        for (int r = 0; r < 3; r++) {
            job_rank(&j, r, 3, true, NULL);
            for (int s = 0; s < STEPS; s++) {
                int64_t at = STEP * s;
                job_step(&j, s, at, STEP - 10);
                if (r == 2 && device)
                    job_kernel(&j, "slow_gemm", 0, 7, at + 60, 345, NULL);
                if (r == 2 && !device)
                    job_span(&j, "cpu_op", "aten::slow", 1, at + 60, 340, NULL);
                job_nccl(&j, at + slow[r][s], leave[s] - slow[r][s], s, "0");
            }
            job_end(&j);
        }
        tiny_seal(j.t);
        struct result r = tiny_run(j.t, "ranks", NULL, NULL);
        assert_true(job_says(&r, device ? "it computed" : "host ops"));
        assert_true(job_says(&r, device ? "slow_gemm" : "aten::slow"));
        result_free(&r);
        job_free(&j);
    }
}

/* Clocks apart by any offset: found, removed, nothing else changes. */
static void clocks_do_not_matter(void **state) {
    (void)state;
    static const int64_t ahead[][3] = {{0, 0, 0},
                                       {0, 0, 5000},
                                       {0, -7000, 123},
                                       {40000, 0, 0}};
    for (size_t k = 0; k < 4; k++) {
        struct job j = write_job(3, STEPS, slow, NULL, ahead[k]);
        struct result r = tiny_run(j.t, "ranks", NULL, NULL);
        for (size_t i = 0; i < 3; i++) {
            assert_int_equal(late(&r, i), i == 2 ? 300 * US : 0);
            assert_int_equal(tiny_cell(&r, i, "clock_offset_us")->i,
                             (ahead[k][i] - ahead[k][0]) * US);
            assert_true(tiny_cell(&r, i, "clock_error_us")->i <= US);
        }
        assert_int_equal(job_says(&r, "Clocks of the ranks"), k > 0);
        result_free(&r);
        job_free(&j);
    }
}

/* Ends that differ by chance are no offset. */
static void an_offset_below_its_error_is_none(void **state) {
    (void)state;
    struct job j = job_new();
    static const int jitter[2][6] = {{0, 9, 2, 7, 4, 1}, {8, 0, 9, 1, 2, 9}};
    for (int rank = 0; rank < 2; rank++) {
        job_rank(&j, rank, 2, true, NULL);
        for (int s = 0; s < 6; s++) {
            job_step(&j, s, STEP * s, STEP - 10);
            job_nccl(&j, STEP * s + 100, 100 + jitter[rank][s], s, "0");
        }
        job_end(&j);
    }
    tiny_seal(j.t);
    struct result r = tiny_run(j.t, "ranks", NULL, NULL);
    assert_int_equal(tiny_cell(&r, 1, "clock_offset_us")->i, 0);
    assert_int_equal(tiny_cell(&r, 1, "clock_error_us")->i, 10 * US);
    assert_int_equal(late(&r, 0), 0);
    assert_int_equal(late(&r, 1), 0);
    result_free(&r);
    job_free(&j);
}

static void chance_is_no_straggler(void **state) {
    (void)state;
    /* by turns; one hiccup; always the same but by little */
    int turns[2][STEPS] = {{100, 400, 100, 400, 100},
                           {400, 100, 400, 100, 400}};
    int hiccup[2][STEPS] = {{100, 100, 100, 100, 100},
                            {100, 100, 800, 100, 100}};
    int little[2][STEPS] = {{100, 100, 100, 100, 100},
                            {130, 130, 130, 130, 130}};
    int(*all[])[STEPS] = {turns, hiccup, little};
    for (int k = 0; k < 3; k++) {
        struct job j = write_job(2, STEPS, all[k], NULL, NULL);
        struct result r = tiny_run(j.t, "ranks", NULL, NULL);
        assert_false(flag(&r, 0));
        assert_false(flag(&r, 1));
        assert_true(job_says(&r, "No straggler"));
        result_free(&r);
        job_free(&j);
    }
}

/* Two collectives at once: the time for which a rank is late counts once. */
static void late_twice_at_once_is_late_once(void **state) {
    (void)state;
    struct job j = job_new();
    for (int rank = 0; rank < 2; rank++) {
        job_rank(&j, rank, 2, false, NULL);
        for (int s = 0; s < 3; s++) {
            int64_t at = STEP * s + 300 * rank;
            job_step(&j, s, STEP * s, STEP - 10);
            job_gloo(&j, "gloo:broadcast", 5, at + 100, 350 - 300 * rank, 8);
            job_gloo(&j, "gloo:broadcast", 6, at + 120, 340 - 300 * rank, 9);
        }
        job_end(&j);
    }
    tiny_seal(j.t);
    struct result r = tiny_run(j.t, "ranks", NULL, NULL);
    assert_int_equal(late(&r, 1), 320 * US); /* 100..420, not 600 */
    assert_int_equal(tiny_cell(&r, 0, "wait_us")->i, 320 * US);
    result_free(&r);
    job_free(&j);
}

/* Random arrivals against a count in the open: each collective apart, so that
 * sums are unions. */
static void lateness_is_what_a_count_says(void **state) {
    (void)state;
    uint64_t seed = 1;
    for (int round = 0; round < 20; round++) {
        enum { RANKS = 6 };
        int when[RANKS][STEPS];
        int64_t want_late[RANKS] = {0}, want_wait[RANKS] = {0};
        for (int r = 0; r < RANKS; r++)
            for (int s = 0; s < STEPS; s++) {
                seed = seed * 6364136223846793005u + 1442695040888963407u;
                when[r][s] = 100 + (int)(seed >> 33) % 500;
            }
        for (int s = 0; s < STEPS; s++) {
            int last = 0, second = -1;
            for (int r = 1; r < RANKS; r++)
                if (when[r][s] > when[last][s]) last = r;
            for (int r = 0; r < RANKS; r++)
                if (r != last && (second < 0 || when[r][s] > second))
                    second = when[r][s];
            want_late[last] += when[last][s] - second;
            for (int r = 0; r < RANKS; r++)
                want_wait[r] += when[last][s] - when[r][s];
        }
        struct job j = write_job(RANKS, STEPS, when, NULL, NULL);
        struct result r = tiny_run(j.t, "ranks", NULL, NULL);
        for (int i = 0; i < RANKS; i++) {
            assert_int_equal(late(&r, (size_t)i), want_late[i] * US / STEPS);
            assert_int_equal(tiny_cell(&r, (size_t)i, "wait_us")->i,
                             want_wait[i] * US / STEPS);
        }
        result_free(&r);
        job_free(&j);
    }
}

/* Ranks that share no group but through others get their clocks by way of
 * them. */
static void clocks_go_from_group_to_group(void **state) {
    (void)state;
    static const int64_t ahead[3] = {0, 700, -900};
    struct job j = job_new();
    for (int rank = 0; rank < 3; rank++) {
        job_rank(&j, rank, 3, true, NULL);
        j.clock = ahead[rank];
        for (int s = 0; s < 6; s++) {
            job_step(&j, s, STEP * s, STEP - 10);
            if (rank < 2) job_nccl(&j, STEP * s + 100, 50, s, "a");
            if (rank > 0) job_nccl(&j, STEP * s + 300, 50, s, "b");
        }
        job_end(&j);
    }
    tiny_seal(j.t);
    struct result r = tiny_run(j.t, "ranks", NULL, NULL);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(tiny_cell(&r, i, "clock_offset_us")->i, ahead[i] * US);
        assert_int_equal(late(&r, i), 0);
    }
    result_free(&r);
    job_free(&j);
}

/* Hundreds of ranks cost hundreds, not tens of thousands. */
static void many_ranks_are_possible(void **state) {
    (void)state;
    enum { MANY = 400 };
    struct job j = job_new();
    for (int r = 0; r < MANY; r++) {
        int when[2] = {100 + r % 7, 100 + r % 5}, leave[2] = {520, 520};
        if (r == 77) when[0] = when[1] = 500;
        write_rank(&j, r, MANY, 2, when, leave, 0);
    }
    tiny_seal(j.t);
    struct result r = tiny_run(j.t, "ranks", NULL, NULL);
    assert_int_equal(r.nrows, MANY);
    assert_true(flag(&r, 77));
    assert_int_equal(late(&r, 77), (394 + 396) * US / 2);
    assert_true(job_says(&r, "Rank 77 is the straggler"));
    assert_true(job_says(&r, "so few steps"));
    result_free(&r);
    job_free(&j);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_rank_asks_for_the_others),
        cmocka_unit_test(the_last_is_late_by_the_last_but_one),
        cmocka_unit_test(what_kept_it_is_named),
        cmocka_unit_test(clocks_do_not_matter),
        cmocka_unit_test(an_offset_below_its_error_is_none),
        cmocka_unit_test(chance_is_no_straggler),
        cmocka_unit_test(late_twice_at_once_is_late_once),
        cmocka_unit_test(lateness_is_what_a_count_says),
        cmocka_unit_test(clocks_go_from_group_to_group),
        cmocka_unit_test(many_ranks_are_possible),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
