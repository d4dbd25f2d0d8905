/* SPDX-License-Identifier: Apache-2.0
 * comm: every collective once, its message and rate by the books, exposed and
 * waiting parts by hand-made jobs with known answers. */
#include "job.h"

#include "analyze/comm/collective.h"

static void nothing_recorded_is_said(void **state) {
    (void)state;
    for (int spans = 0; spans < 2; spans++) {
        struct trace *t = tiny_new(true, false);
        if (spans) tiny_span(t, tiny_thread(t, 1), SPAN_OP, "aten::mm", 0, 10);
        tiny_seal(t);
        struct result r = tiny_run(t, "comm", NULL, NULL);
        assert_int_equal(r.nrows, 0);
        assert_true(job_says(&r, "No collective"));
        result_free(&r);
        trace_free(t);
    }
}

/* What belongs to another source (what opscope record saw of the processes) is
 * no member of a job, even if a broken file has collectives in it. */
static void what_belongs_to_another_is_no_member(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    tiny_span(t, tiny_thread(t, 1), SPAN_OP, "gloo:all_reduce", 0, 10);
    uint32_t s = trace_source(t, "seen", format_named("xspace"), NULL,
                              (struct bytes){0});
    t->sources[s].companion_of = 0;
    tiny_span(t, trace_track(t, s, TRACK_THREAD, 2, 2), SPAN_OP,
              "gloo:all_reduce", 5, 10);
    tiny_seal(t);
    struct collectives c;
    struct ops_err e;
    assert_int_equal(collectives_init(&c, t, &e), 0);
    assert_int_equal(c.n, 1);
    assert_int_equal(c.nmembers, 1);
    collectives_free(&c);
    trace_free(t);
}

static void every_spelling_has_its_kind(void **state) {
    (void)state;
    static const struct {
        const char *name;
        enum coll_kind kind;
    } v[] = {
        {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", COLL_ALL_REDUCE},
        {"ncclKernel_AllGather_RING_LL_Sum_int8_t(x)", COLL_ALL_GATHER},
        {"ncclDevKernel_ReduceScatter_Sum_bf16_RING", COLL_REDUCE_SCATTER},
        {"ncclDevKernel_Broadcast_RING_LL", COLL_BROADCAST},
        {"ncclDevKernel_SendRecv(x)", COLL_SEND_RECV},
        {"ncclDevKernel_Generic_1(ncclAllReduceArgs)", COLL_OTHER},
        {"gloo:all_reduce", COLL_ALL_REDUCE},
        {"gloo:recv", COLL_RECV},
        {"gloo:barrier", COLL_BARRIER},
        {"c10d::_allgather_base_", COLL_ALL_GATHER},
        {"c10d::_reduce_scatter_base_", COLL_REDUCE_SCATTER},
        {"MPI_Allreduce", COLL_ALL_REDUCE},
        {"MPI_Bcast", COLL_BROADCAST},
        {"MPI_Isend", COLL_SEND},
        {"MPI_Alltoallv", COLL_ALL_TO_ALL},
        {"MPI_Gather", COLL_GATHER},
        {"MPI_Scatterv", COLL_SCATTER},
        {"MPI_Reduce", COLL_REDUCE},
        {"MPI_Comm_rank", COLL_OTHER},
        {"CollectiveReduceV2", COLL_ALL_REDUCE},
        {"CollectiveGatherV2", COLL_ALL_GATHER},
        {"CollectiveReduceScatterV2", COLL_REDUCE_SCATTER},
        {"CollectiveBcastRecv", COLL_BROADCAST},
        {"NcclAllReduce", COLL_ALL_REDUCE},
        {"HorovodAllreduce_grad", COLL_ALL_REDUCE},
        {"all-reduce-start.3", COLL_ALL_REDUCE},
        {"collective-permute.1", COLL_PERMUTE},
        {"ragged-all-to-all", COLL_ALL_TO_ALL},
        {"psum.4", COLL_ALL_REDUCE},
        {"psum_scatter.1", COLL_REDUCE_SCATTER},
        {"ppermute", COLL_PERMUTE},
        {"all_to_allv", COLL_ALL_TO_ALL},
        {"cross_device_reduce_1stage", COLL_ALL_REDUCE},
        {"", COLL_OTHER},
    };
    for (size_t i = 0; i < sizeof v / sizeof *v; i++)
        if (coll_kind_of(bytes_of(v[i].name)) != v[i].kind)
            fail_msg("%s is %s", v[i].name,
                     coll_kind_name(coll_kind_of(bytes_of(v[i].name))));
}

/* The factors of nccl-tests' performance page. */
static void bus_factors_are_the_usual_ones(void **state) {
    (void)state;
    assert_true(coll_bus_factor(COLL_ALL_REDUCE, 4) == 1.5);
    assert_true(coll_bus_factor(COLL_ALL_GATHER, 4) == 0.75);
    assert_true(coll_bus_factor(COLL_REDUCE_SCATTER, 8) == 0.875);
    assert_true(coll_bus_factor(COLL_ALL_TO_ALL, 2) == 0.5);
    assert_true(coll_bus_factor(COLL_BROADCAST, 8) == 1);
    assert_true(coll_bus_factor(COLL_SEND, 2) == 1);
    assert_true(coll_bus_factor(COLL_ALL_REDUCE, -1) < 0);
}

static void messages_are_whole(void **state) {
    (void)state;
    struct coll_facts f = coll_facts_none();
    assert_int_equal(coll_bytes(&f), -1);
    f.dtype = bytes_of("Float");
    f.in_elems = 10;
    f.kind = COLL_ALL_GATHER;
    assert_int_equal(coll_bytes(&f), -1); /* of how many ranks? */
    f.group_size = 4;
    assert_int_equal(coll_bytes(&f), 160);
    f.out_elems = 50; /* the recorded one decides */
    assert_int_equal(coll_bytes(&f), 200);
    f.kind = COLL_REDUCE_SCATTER;
    assert_int_equal(coll_bytes(&f), 40);
    f.in_elems = INT64_MAX; /* hostile */
    assert_int_equal(coll_bytes(&f), INT64_MAX);
}

/* c10d op, record_param_comms, annotation, launch and kernel: one. */
static void four_spans_are_one_collective(void **state) {
    (void)state;
    struct job j = job_new();
    job_rank(&j, 0, 4, true, NULL);
    job_step(&j, 1, 0, 1000);
    job_span(&j, "cpu_op", "c10d::allreduce_", 1, 90, 60, NULL);
    job_span(&j, "cpu_op", "record_param_comms", 1, 91, 50, NULL);
    job_span(&j, "user_annotation", "nccl:all_reduce", 1, 92, 40, NULL);
    job_nccl(&j, 100, 200, 7, "0");
    job_kernel(&j, "gemm", 0, 7, 50, 100, NULL);  /* hides 100..150 */
    job_kernel(&j, "gemm", 0, 8, 120, 100, NULL); /* and to 220 */
    job_kernel(&j, "gemm", 1, 7, 0, 900, NULL);   /* another device */
    job_end(&j);
    tiny_seal(j.t);
    struct result r = tiny_run(j.t, "comm", NULL, NULL);
    assert_int_equal(r.nrows, 1);
    assert_int_equal(tiny_cell(&r, 0, "calls")->i, 1);
    assert_string_equal(tiny_cell(&r, 0, "kind")->s, "all_reduce");
    assert_int_equal(tiny_cell(&r, 0, "bytes")->i, 4000000);
    assert_int_equal(tiny_cell(&r, 0, "total_us")->i, 200 * US);
    assert_int_equal(tiny_cell(&r, 0, "exposed_us")->i, 80 * US);
    assert_int_equal(tiny_cell(&r, 0, "overlapped_us")->i, 120 * US);
    /* 4 MB in 200 us: 20 GB/s, times 2 x 3 / 4 */
    assert_float_equal(tiny_cell(&r, 0, "algo_gb_per_s")->f, 20, 1e-9);
    assert_float_equal(tiny_cell(&r, 0, "bus_gb_per_s")->f, 30, 1e-9);
    assert_string_equal(tiny_cell(&r, 0, "process_group")->s, "0");
    assert_true(tiny_cell(&r, 0, "wait_us")->null);
    assert_true(tiny_misses(&r, "waiting"));
    result_free(&r);
    job_free(&j);
}

/* Before 2.2 kernels carried nothing: the ops around the launch do. */
static void the_launching_op_tells_what_the_kernel_does_not(void **state) {
    (void)state;
    struct job j = job_new();
    job_rank(&j, 0, 8, true, NULL);
    job_span(&j, "cpu_op", "record_param_comms", 1, 90, 50,
             "\"Collective name\":\"all_to_all\",\"In msg nelems\":512,"
             "\"Out msg nelems\":512,\"dtype\":\"BFloat16\","
             "\"Group size\":2,\"Process Group Name\":\"7\"");
    job_kernel(&j, "ncclDevKernel_SendRecv(x)", 0, 20, 100, 10, NULL);
    job_end(&j);
    tiny_seal(j.t);
    struct result r = tiny_run(j.t, "comm", NULL, NULL);
    assert_int_equal(r.nrows, 1);
    assert_string_equal(tiny_cell(&r, 0, "kind")->s, "all_to_all");
    assert_int_equal(tiny_cell(&r, 0, "bytes")->i, 1024);
    assert_string_equal(tiny_cell(&r, 0, "process_group")->s, "7");
    assert_int_equal(tiny_cell(&r, 0, "group_size")->i, 2);
    result_free(&r);
    job_free(&j);
}

/* Without a device the calls are all there is; the outermost counts. */
static void calls_stand_in_where_nothing_else_was_recorded(void **state) {
    (void)state;
    struct job j = job_new();
    job_rank(&j, 0, 2, false, NULL);
    job_span(&j, "cpu_op", "c10d::allreduce_", 1, 90, 60, NULL);
    job_span(&j, "cpu_op", "record_param_comms", 1, 91, 50,
             "\"In msg nelems\":8,\"dtype\":\"Int\"");
    job_span(&j, "user_annotation", "nccl:all_reduce", 1, 92, 40, NULL);
    job_end(&j);
    tiny_seal(j.t);
    struct result r = tiny_run(j.t, "comm", NULL, NULL);
    assert_int_equal(r.nrows, 1);
    assert_string_equal(tiny_cell(&r, 0, "name")->s, "c10d::allreduce_");
    assert_int_equal(tiny_cell(&r, 0, "bytes")->i, 32);
    assert_int_equal(tiny_cell(&r, 0, "total_us")->i, 60 * US);
    result_free(&r);
    job_free(&j);
}

/* Rank 0 comes at 100, rank 1 at 160; the bandwidth is that of the shorter.
 * Rank 1's window lacks the first: numbers match all the same. */
static void numbers_match_across_ranks(void **state) {
    (void)state;
    struct job j = job_new();
    job_rank(&j, 1, 2, true, NULL);
    job_nccl(&j, 160, 40, 8, "0");
    job_end(&j);
    job_rank(&j, 0, 2, true, NULL);
    job_nccl(&j, 20, 40, 7, "0");
    job_nccl(&j, 100, 100, 8, "0");
    job_end(&j);
    tiny_seal(j.t);
    struct result r = tiny_run(j.t, "comm", NULL, NULL);
    assert_int_equal(r.nrows, 1);
    assert_int_equal(tiny_cell(&r, 0, "calls")->i, 3);
    assert_int_equal(tiny_cell(&r, 0, "matched")->i, 2);
    assert_int_equal(tiny_cell(&r, 0, "wait_us")->i, 60 * US);
    assert_int_equal(tiny_cell(&r, 0, "move_us")->i, 120 * US);
    assert_float_equal(tiny_cell(&r, 0, "algo_gb_per_s")->f, 100, 1e-9);
    assert_true(job_says(&r, "1 of 3 calls"));
    result_free(&r);
    r = tiny_run(j.t, "comm", "rank", "1..1"); /* matched before it is cut */
    assert_int_equal(tiny_cell(&r, 0, "calls")->i, 1);
    assert_int_equal(tiny_cell(&r, 0, "wait_us")->i, 0);
    result_free(&r);
    job_free(&j);
}

/* Groups of the same collective do not mix. */
static void groups_are_apart(void **state) {
    (void)state;
    struct job j = job_new();
    for (int rank = 0; rank < 4; rank++) {
        job_rank(&j, rank, 4, true, NULL);
        job_nccl(&j, 100 + 10 * rank, 100, 1, rank < 2 ? "tp0" : "tp1");
        job_end(&j);
    }
    tiny_seal(j.t);
    struct result r = tiny_run(j.t, "comm", NULL, NULL);
    assert_int_equal(r.nrows, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(tiny_cell(&r, i, "ranks")->i, 2);
        assert_int_equal(tiny_cell(&r, i, "wait_us")->i, 10 * US);
    }
    result_free(&r);
    job_free(&j);
}

/* Two steps of gloo, one rank has the first step only by half; the k-th of a
 * step is the k-th of that step. */
static void gloo_matches_by_step_and_order(void **state) {
    (void)state;
    struct job j = job_new();
    job_rank(&j, 0, 2, false, NULL);
    for (int s = 0; s < 4; s++) {
        job_step(&j, s, 1000 * s, 990);
        job_gloo(&j, "gloo:all_reduce", 5, 1000 * s + 100, 200, 64);
        job_gloo(&j, "gloo:all_reduce", 6, 1000 * s + 400, 100, 64);
    }
    job_end(&j);
    job_rank(&j, 1, 2, false, NULL);
    for (int s = 1; s < 4; s++) {
        job_step(&j, s, 1000 * s, 990);
        job_gloo(&j, "gloo:all_reduce", 9, 1000 * s + 150, 150, 64);
        job_gloo(&j, "gloo:all_reduce", 9, 1000 * s + 390, 110, 64);
    }
    job_end(&j);
    tiny_seal(j.t);
    struct result r = tiny_run(j.t, "comm", NULL, NULL);
    assert_int_equal(r.nrows, 1);
    assert_int_equal(tiny_cell(&r, 0, "calls")->i, 14);
    assert_int_equal(tiny_cell(&r, 0, "matched")->i, 12);
    /* rank 0 waits 50, rank 1 10 in each of three steps */
    assert_int_equal(tiny_cell(&r, 0, "wait_us")->i, 180 * US);
    assert_int_equal(tiny_cell(&r, 0, "bytes")->i, 14 * 256);
    result_free(&r);
    r = tiny_run(j.t, "comm", "steps", "2..2");
    assert_int_equal(tiny_cell(&r, 0, "calls")->i, 4);
    assert_int_equal(tiny_cell(&r, 0, "wait_us")->i, 60 * US);
    result_free(&r);
    job_free(&j);
}

/* Nobody leaves a barrier early: two groups that only look alike. */
static void what_cannot_be_one_is_not(void **state) {
    (void)state;
    struct job j = job_new();
    for (int rank = 0; rank < 2; rank++) {
        job_rank(&j, rank, 4, false,
                 ",\"pg_config\":[{\"pg_name\":\"0\"},{\"pg_name\":\"1\"}]");
        for (int k = 0; k < 6; k++) {
            job_gloo(&j, "gloo:all_reduce", 5, 1000 * k + 500, 100, 8);
            job_gloo(&j, "gloo:all_reduce", 6, 1000 * k + 100 + 300 * rank, 50,
                     3);
        }
        job_end(&j);
    }
    tiny_seal(j.t);
    struct result r = tiny_run(j.t, "comm", NULL, NULL);
    assert_int_equal(r.nrows, 1);
    assert_int_equal(tiny_cell(&r, 0, "matched")->i, 12);
    assert_true(tiny_cell(&r, 0, "group_size")->null);
    assert_true(tiny_cell(&r, 0, "bus_gb_per_s")->null);
    assert_true(job_says(&r, "12 calls"));
    result_free(&r);
    job_free(&j);
}

static void sends_meet_their_receives(void **state) {
    (void)state;
    struct job j = job_new();
    for (int rank = 0; rank < 2; rank++) {
        char args[256];
        job_rank(&j, rank, 2, true, NULL);
        snprintf(args, sizeof args,
                 "\"Collective name\":\"%s\",\"In msg nelems\":250,\"dtype\":"
                 "\"Float\",\"Group size\":2,\"Process Group Name\":\"0\","
                 "\"%s Rank\":%d,\"Seq\":%d",
                 rank ? "recv" : "send", rank ? "Src" : "Dst", 1 - rank,
                 3 + rank);
        job_kernel(&j, "ncclDevKernel_SendRecv(x)", 0, 20, 100 + 30 * rank,
                   60 - 30 * rank, args);
        job_end(&j);
    }
    tiny_seal(j.t);
    struct result r = tiny_run(j.t, "comm", NULL, NULL);
    assert_int_equal(r.nrows, 2);
    for (size_t i = 0; i < 2; i++) {
        bool send = strcmp(tiny_cell(&r, i, "kind")->s, "send") == 0;
        assert_int_equal(tiny_cell(&r, i, "bytes")->i, 1000);
        assert_int_equal(tiny_cell(&r, i, "wait_us")->i, send ? 30 * US : 0);
    }
    result_free(&r);
    job_free(&j);
}

/* XLA: start and done are one, from the one to the other; what runs between
 * hides it. Two devices of one process are two that wait for each other. */
static void hlo_start_and_done_are_one(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    for (int d = 0; d < 2; d++) {
        uint32_t s = tiny_stream(t, d, 1);
        int64_t at = 100 + 20 * d;
        tiny_span(t, s, SPAN_KERNEL, "all-reduce-start.3", at, 5);
        tiny_span(t, s, SPAN_KERNEL, "fusion.1", at + 10, 40);
        tiny_span(t, s, SPAN_KERNEL, "all-reduce-done.3", 180, 20);
        tiny_span(t, s, SPAN_KERNEL, "all-gather.1", 300, 10);
    }
    tiny_seal(t);
    struct result r = tiny_run(t, "comm", NULL, NULL);
    assert_int_equal(r.nrows, 2);
    assert_int_equal(tiny_int(&r, "all-reduce", "calls"), 2);
    assert_int_equal(tiny_us(&r, "all-reduce", "total_us"), 180);
    assert_int_equal(tiny_us(&r, "all-reduce", "overlapped_us"), 80);
    assert_int_equal(tiny_us(&r, "all-reduce", "wait_us"), 20);
    assert_int_equal(tiny_int(&r, "all-reduce", "ranks"), 2);
    assert_true(tiny_null(&r, "all-reduce", "bytes"));
    assert_int_equal(tiny_us(&r, "all-gather.1", "wait_us"), 0);
    result_free(&r);
    trace_free(t);
}

/* More open starts than anybody has, and dones without one. */
static void hlo_halves_stand_alone(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t s = tiny_stream(t, 0, 1);
    for (int i = 0; i < 100; i++) {
        char name[40];
        snprintf(name, sizeof name, "all-reduce-start.%d", i);
        tiny_span(t, s, SPAN_KERNEL, name, 10 * i, 5);
    }
    tiny_span(t, s, SPAN_KERNEL, "all-gather-done.1", 2000, 5);
    tiny_seal(t);
    struct result r = tiny_run(t, "comm", NULL, NULL);
    int64_t calls = 0, total = 0;
    for (size_t i = 0; i < r.nrows; i++) {
        calls += tiny_cell(&r, i, "calls")->i;
        total += tiny_cell(&r, i, "total_us")->i;
    }
    assert_int_equal(calls, 101);
    assert_int_equal(total, 101 * 5 * US);
    result_free(&r);
    trace_free(t);
}

/* Gloo under an op of the step's thread is hidden, as the steps have it; two
 * at once count once. */
static void host_collectives_hide_behind_ops(void **state) {
    (void)state;
    struct job j = job_new();
    job_rank(&j, 0, 2, false, ",\"pg_config\":[{\"pg_name\":\"pg\"}]");
    job_step(&j, 0, 0, 1000);
    job_gloo(&j, "gloo:broadcast", 5, 100, 200, 3);
    job_gloo(&j, "gloo:broadcast", 6, 150, 250, 3);
    job_span(&j, "cpu_op", "aten::mm", 1, 350, 100, NULL);
    job_end(&j);
    tiny_seal(j.t);
    struct result r = tiny_run(j.t, "comm", NULL, NULL);
    assert_int_equal(tiny_us(&r, "gloo:broadcast", "total_us"), 300);
    assert_int_equal(tiny_us(&r, "gloo:broadcast", "exposed_us"), 250);
    assert_string_equal(tiny_cell(&r, 0, "process_group")->s, "pg");
    struct result s = tiny_run(j.t, "steps", NULL, NULL);
    assert_int_equal(tiny_cell(&s, 0, "comm_us")->i, 250 * US);
    result_free(&s);
    result_free(&r);
    job_free(&j);
}

/* Shapes of all sorts, none of which may overflow or mislead. */
static void odd_shapes_are_survived(void **state) {
    (void)state;
    static const struct {
        const char *args;
        int64_t bytes; /* -1: null */
    } v[] = {
        {"\"Input Dims\":[[2,3],[4]],\"Input type\":[\"float\",\"long int\"]",
         56},
        {"\"Input Dims\":[[[2,3],[4]]],\"Input type\":[\"TensorList\"]", -1},
        {"\"Input Dims\":[[],[]],\"Input type\":[\"float\",\"Scalar\"]", 4},
        {"\"Input Dims\":[[9223372036854775807,9]],\"Input type\":[\"float\"]",
         -1},
        {"\"Input Dims\":[[-5]],\"Input type\":[\"float\"]", -1},
        {"\"Input Dims\":7,\"Input type\":[\"float\"]", -1},
        {"\"Input Dims\":[\"x\",{\"a\":1}],\"Input type\":[\"float\"]", -1},
        {"\"Input Dims\":[[3]]", -1},
        {"\"In msg nelems\":\"12\",\"dtype\":\"Half\"", 24},
        {"\"In msg nelems\":-3,\"dtype\":\"Half\"", -1},
    };
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        struct job j = job_new();
        job_rank(&j, 0, 2, false, NULL);
        job_span(&j, "user_annotation", "gloo:all_reduce", 5, 0, 10, v[i].args);
        job_end(&j);
        tiny_seal(j.t);
        struct result r = tiny_run(j.t, "comm", NULL, NULL);
        struct cell *c = tiny_cell(&r, 0, "bytes");
        if (c->null != (v[i].bytes < 0) || (!c->null && c->i != v[i].bytes))
            fail_msg("%s: %lld", v[i].args, c->null ? -1LL : (long long)c->i);
        result_free(&r);
        job_free(&j);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_recorded_is_said),
        cmocka_unit_test(what_belongs_to_another_is_no_member),
        cmocka_unit_test(every_spelling_has_its_kind),
        cmocka_unit_test(bus_factors_are_the_usual_ones),
        cmocka_unit_test(messages_are_whole),
        cmocka_unit_test(four_spans_are_one_collective),
        cmocka_unit_test(the_launching_op_tells_what_the_kernel_does_not),
        cmocka_unit_test(calls_stand_in_where_nothing_else_was_recorded),
        cmocka_unit_test(numbers_match_across_ranks),
        cmocka_unit_test(groups_are_apart),
        cmocka_unit_test(gloo_matches_by_step_and_order),
        cmocka_unit_test(what_cannot_be_one_is_not),
        cmocka_unit_test(sends_meet_their_receives),
        cmocka_unit_test(hlo_start_and_done_are_one),
        cmocka_unit_test(hlo_halves_stand_alone),
        cmocka_unit_test(host_collectives_hide_behind_ops),
        cmocka_unit_test(odd_shapes_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
