/* SPDX-License-Identifier: Apache-2.0
 * Hashes: names and ids that were made to fall into one slot do not, and what
 * a profile says does not hang on the secrets of the process. */
#include "tiny.h"

#include "base/hash.h"
#include "base/map.h"
#include "import/import.h"
#include "model/strs.h"
#include "present/present.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* How much longer the made-up ones may take than others: the square of their
 * number would be some hundreds. */
enum { COUNT = 20000, BOUND = 20, TRIES = 3 };

static double cpu_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Bytes of which a name is kept as it is. */
static bool is_plain(uint64_t w) {
    for (; w != 0; w >>= 8)
        if ((w & 0xff) < ' ' || (w & 0xff) > '~') return false;
    return true;
}

/* Names of 16 bytes, the next from *at on. Of those that are made up, the
 * second half is what a hash with known numbers has reached after the first:
 * one that xors it in forgets all before it. */
static void make_name(uint8_t name[16], uint64_t *at, bool made_up) {
    uint64_t first, second;
    do {
        uint64_t i = ++*at;
        first = 0x2020202020202020u;
        for (int k = 0; k < 64; k += 8, i >>= 4) first += (i & 15) << k;
        second = fixed_pair(0x2545f4914f6cdd1du ^ 16, first);
    } while (made_up && !is_plain(second));
    if (!made_up) second = ~first & 0x3f3f3f3f3f3f3f3fu;
    memcpy(name, &first, 8);
    memcpy(name + 8, &second, 8);
}

static double intern_all(bool made_up) {
    static uint8_t names[COUNT][16];
    struct strs s;
    uint64_t at = 0;
    for (size_t i = 0; i < COUNT; i++) make_name(names[i], &at, made_up);
    assert_true(strs_init(&s));
    double start = cpu_now();
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(strs_intern(&s, (struct bytes){names[i], 16}), i + 1);
    double took = cpu_now() - start;
    strs_free(&s);
    return took;
}

/* What a mix of shifts and products makes of x, undone: all have their low 24
 * bits equal behind it. */
static uint64_t unmix(uint64_t x) {
    const uint64_t inverse = 0xcfee444d8b59a89bu;
    x ^= x >> 32;
    x *= inverse;
    x ^= x >> 32;
    x *= inverse;
    return x ^ x >> 32;
}

static double map_all(bool made_up) {
    struct map m = {0};
    double start = cpu_now();
    for (uint64_t i = 1; i <= COUNT; i++)
        assert_true(map_set(&m, made_up ? unmix(i << 24) : i * 977, 1));
    double took = cpu_now() - start;
    assert_int_equal(m.n, COUNT);
    map_free(&m);
    return took;
}

static void check_bound(double (*all)(bool made_up)) {
    double best = 1e9;
    for (int i = 0; i < TRIES && best > BOUND; i++) {
        double plain = all(false) + 0.0005, made_up = all(true);
        if (made_up / plain < best) best = made_up / plain;
    }
    if (best > BOUND) fail_msg("%.0f times as long", best);
}

static void names_made_to_share_a_slot_do_not(void **state) {
    (void)state;
    check_bound(intern_all);
}

static void ids_made_to_share_a_slot_do_not(void **state) {
    (void)state;
    assert_int_equal((0xd6e8feb86659fd93u * 0xcfee444d8b59a89bu), 1);
    check_bound(map_all);
}

/* Texts of every length that differ in one bit, or only in their length. */
static void every_byte_counts(void **state) {
    (void)state;
    uint8_t text[80] = {0};
    for (size_t n = 0; n < sizeof text; n++) {
        uint64_t whole = hash_bytes(text, n);
        assert_int_not_equal(whole, hash_bytes(text, n + 1));
        for (size_t i = 0; i < n; i++) {
            text[i] ^= 0x10;
            assert_int_not_equal(whole, hash_bytes(text, n));
            text[i] ^= 0x10;
        }
    }
    assert_int_equal(hash_bytes(NULL, 0), hash_bytes("", 0));
    assert_int_not_equal(hash_pair(1, 2), hash_pair(2, 1));
}

static void another_seed_is_another_hash(void **state) {
    (void)state;
    hash_seed(1);
    uint64_t text = hash_bytes("aten::mm", 8), id = hash_u64(7);
    hash_seed(2);
    assert_int_not_equal(text, hash_bytes("aten::mm", 8));
    assert_int_not_equal(id, hash_u64(7));
    assert_int_equal(fixed_bytes("aten::mm", 8), 0x42038a8e8fab301du);
}

/* Everything that every analysis says of these files, as JSON. */
static void say_all(const char *const *paths, struct sink *out) {
    struct trace *t = trace_new();
    struct ops_err e = {0};
    struct import_opts o = {.threads = 2};
    assert_non_null(t);
    for (; *paths != NULL; paths++)
        if (import_file(*paths, t, &o, &e) != 0) fail_msg("%s", e.text);
    tiny_seal(t);
    for (size_t i = 0; analyses[i] != NULL; i++) {
        struct result r = tiny_run(t, analyses[i]->name, NULL, NULL);
        presenter_json.put(&r, NULL, out);
        result_free(&r);
    }
    trace_free(t);
}

static void results_do_not_hang_on_the_seed(void **state) {
    (void)state;
    static const char *const cases[][3] = {
        {"tests/data/torch_ddp/torch_ddp_rank0.pt.trace.json.gz",
         "tests/data/torch_ddp/torch_ddp_rank1.pt.trace.json.gz", NULL},
        {"tests/data/torch_gloo4/torch_gloo4_rank0.pt.trace.json.gz",
         "tests/data/torch_gloo4/torch_gloo4_rank1.pt.trace.json.gz", NULL},
        {"tests/data/torch_stack/torch_stack.pt.trace.json.gz", NULL},
        {"tests/data/torch_snapshots/oom.snapshot.pickle.gz", NULL},
        {"tests/data/compile/torch.pt.trace.json.gz", NULL},
        {"tests/data/jax_mlp_hlo/vm.xplane.pb", NULL},
        {"tests/data/tf_custom/vm.xplane.pb", NULL},
        {"tests/data/tf_v1/run_metadata_010.pb", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sink first = {0};
        for (uint64_t seed = 1; seed <= 4; seed++) {
            struct sink s;
            sink_memory(&s);
            hash_seed(seed * 0x12345);
            say_all(cases[i], &s);
            assert_int_equal(s.broken, 0);
            if (seed == 1) {
                first = s;
                continue;
            }
            if (s.n != first.n || memcmp(s.buf, first.buf, s.n) != 0)
                fail_msg("%s: another seed, another result", cases[i][0]);
            sink_free(&s);
        }
        sink_free(&first);
    }
}

/* Text in place of numbers for threads and processes gets numbers that are
 * shown, and that are the same in every process. */
static void shown_numbers_do_not_hang_on_the_seed(void **state) {
    (void)state;
    static const char text[] =
        "{\"traceEvents\":[{\"ph\":\"X\",\"name\":\"a\",\"pid\":\"main\","
        "\"tid\":\"loader\",\"ts\":1,\"dur\":2},{\"ph\":\"b\",\"cat\":\"io\","
        "\"name\":\"r\",\"id\":7,\"pid\":\"main\",\"tid\":1,\"ts\":1},"
        "{\"ph\":\"e\",\"cat\":\"io\",\"name\":\"r\",\"id\":7,"
        "\"pid\":\"main\",\"tid\":1,\"ts\":3}]}";
    int64_t pid[2], tid[2], async[2];
    for (uint64_t k = 0; k < 2; k++) {
        char buf[sizeof text + 64] = {0};
        struct trace *t = trace_new();
        struct import_opts o = {.threads = 1};
        struct ops_err e = {0};
        hash_seed(k + 1);
        memcpy(buf, text, sizeof text);
        assert_int_equal(import_bytes(bytes_of(buf), "mem", t, &o, &e), 0);
        tiny_seal(t);
        assert_int_equal(t->ntracks, 2);
        pid[k] = t->tracks[0].pid;
        tid[k] = t->tracks[0].tid;
        async[k] = t->tracks[1].tid;
        trace_free(t);
    }
    assert_int_equal(pid[0], pid[1]);
    assert_int_equal(tid[0], tid[1]);
    assert_int_equal(async[0], async[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_made_to_share_a_slot_do_not),
        cmocka_unit_test(ids_made_to_share_a_slot_do_not),
        cmocka_unit_test(every_byte_counts),
        cmocka_unit_test(another_seed_is_another_hash),
        cmocka_unit_test(results_do_not_hang_on_the_seed),
        cmocka_unit_test(shown_numbers_do_not_hang_on_the_seed),
    };
    return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
