/* SPDX-License-Identifier: Apache-2.0
 * Files that change after they were imported: arguments are read from the
 * mapped file when they are asked for, and by then it may hold anything. What
 * is shown may be wrong then; but nothing is read that is not there, and it
 * takes no longer than it would have. */
#include "tiny.h"

#include "export/export.h"
#include "import/import.h"
#include "present/present.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* A profile whose bytes are ours to change, 64 zeros behind them. */
struct held {
    uint8_t *p;
    size_t n;
    struct trace *t;
};

static struct held hold(const uint8_t *p, size_t n) {
    struct held h = {calloc(1, n + 64), n, trace_new()};
    struct ops_err e = {0};
    struct import_opts o = {.threads = 1};
    assert_non_null(h.p);
    assert_non_null(h.t);
    memcpy(h.p, p, n);
    if (import_bytes((struct bytes){h.p, n}, "mem", h.t, &o, &e) != 0)
        fail_msg("%s", e.text);
    tiny_seal(h.t);
    return h;
}

static void release(struct held *h) {
    trace_free(h->t);
    free(h->p);
}

/* Runs everything that reads arguments, and some more. */
static void ask_all(const struct trace *t) {
    struct ops_err e = {0};
    struct sink s;
    for (size_t i = 0; analyses[i] != NULL; i++) {
        struct result r = tiny_run(t, analyses[i]->name, NULL, NULL);
        sink_memory(&s);
        presenter_json.put(&r, NULL, &s);
        sink_free(&s);
        result_free(&r);
    }
    struct result r = tiny_run(t, "ops", "group", "shapes,stack,module");
    result_free(&r);
    for (size_t i = 0; exporters[i] != NULL; i++) {
        sink_memory(&s);
        exporters[i]->write(t, &s, &e);
        sink_free(&s);
    }
}

/* Changes the bytes in one way. Returns false if there are no more ways. */
static bool change(uint8_t *p, size_t n, int way) {
    static const uint8_t same[] = {0, ' ', '[', '"', '\\', 0x22, 0xff};
    uint32_t seed = (uint32_t)way;
    const int bytes = sizeof same;
    if (way < bytes) memset(p, same[way], n);
    else if (way == bytes) memmove(p + 1, p, n - 1);
    else if (way == bytes + 1) memmove(p, p + n / 3, n - n / 3);
    else if (way > bytes + 3) return false;
    for (size_t i = 0; way > bytes + 1 && i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        if (seed >> 24 < (way == bytes + 2 ? 255u : 4u))
            p[i] = (uint8_t)(seed >> 16);
    }
    return true;
}

static void bytes_may_become_anything(void **state) {
    (void)state;
    static const char *const paths[] = {
        "tests/data/torch_types/torch_types.pt.trace.json.gz",
        "tests/data/torch_gloo4/torch_gloo4_rank0.pt.trace.json.gz",
        "tests/data/jax_mlp_hlo/vm.xplane.pb",
        "tests/data/record/box_0.xplane.pb",
        "tests/data/tf_v1/run_metadata_010.pb",
    };
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct file *f;
        struct ops_err e = {0};
        assert_int_equal(file_open(paths[i], &f, &e), 0);
        struct held h = hold(f->bytes.p, f->bytes.n);
        for (int way = 0; change(h.p, h.n, way); way++) {
            ask_all(h.t);
            memcpy(h.p, f->bytes.p, h.n);
        }
        release(&h);
        file_close(f);
    }
}

/* Returns the text of n kernels with arguments, and the calls that launched
 * them. */
static char *kernels_text(int n) {
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    assert_non_null(f);
    fputs("{\"schemaVersion\":1,\"traceEvents\":[", f);
    for (int i = 0; i < n; i++)
        fprintf(f,
                "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":"
                "\"cudaLaunchKernel\",\"pid\":1,\"tid\":1,\"ts\":%d,\"dur\":1,"
                "\"args\":{\"correlation\":%d}},{\"ph\":\"X\",\"cat\":"
                "\"kernel\",\"name\":\"k%d\",\"pid\":0,\"tid\":7,\"ts\":%d,"
                "\"dur\":2,\"args\":{\"correlation\":%d,\"stream\":7,"
                "\"device\":0,\"grid\":[1,2,3]}},\n",
                10 * i, i, i % 9, 10 * i + 3, i);
    fputs("{}]}", f);
    assert_int_equal(fclose(f), 0);
    return text;
}

static double cpu_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double cost(int n, int fill) {
    char *text = kernels_text(n);
    struct held h = hold((uint8_t *)text, strlen(text));
    free(text);
    memset(h.p, fill, h.n);
    double start = cpu_now();
    struct result r = tiny_run(h.t, "kernels", NULL, NULL);
    double took = cpu_now() - start;
    result_free(&r);
    release(&h);
    return took;
}

/* 8 times the file may take 8 times as long; if every list of arguments went on
 * to the end of the file it would be 64. */
static void an_argument_list_ends_where_it_did(void **state) {
    (void)state;
    enum { FEW = 1000, MANY = 8 * FEW, BOUND = 24, TRIES = 4 };
    static const int fills[] = {0, ' ', '[', '"', '\\'};
    for (size_t k = 0; k < sizeof fills / sizeof *fills; k++) {
        double best = 1e9;
        for (int i = 0; i < TRIES && best > BOUND; i++) {
            double few = cost(FEW, fills[k]) + 0.001;
            double many = cost(MANY, fills[k]);
            if (many / few < best) best = many / few;
        }
        if (best > BOUND)
            fail_msg("all '%c': 8 times the file, %.0f times as long", fills[k],
                     best);
    }
}

static void zeros_are_no_blanks(void **state) {
    (void)state;
    static const char text[] =
        "[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":1},\0\0\0\0\0\0"
        "{\"ph\":\"X\",\"name\":\"b\",\"ts\":2,\"dur\":1}]";
    struct held h = hold((const uint8_t *)text, sizeof text - 1);
    assert_int_not_equal(h.t->notes[NOTE_BAD_EVENT], 0);
    assert_int_equal(h.t->spans.n, 2); /* what follows a hole is still found */
    release(&h);
}

/* Lengths in 8 bits: never too short, and hardly too long. */
static void lengths_are_rounded_up(void **state) {
    (void)state;
    for (size_t n = 0; n < 100000; n++) {
        size_t room = room_of(room_for(n));
        assert_true(room >= n && room - n <= n / 8);
    }
    for (int bit = 17; bit < 33; bit++)
        for (size_t n = ((size_t)1 << bit) - 2; n < ((size_t)1 << bit) + 3;
             n++) {
            size_t room = room_of(room_for(n));
            assert_true(room >= n && room - n <= n / 8);
        }
    assert_true(room_of(room_for((size_t)1 << 40)) == SIZE_MAX);
    assert_true(room_of(room_for(SIZE_MAX)) == SIZE_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_may_become_anything),
        cmocka_unit_test(an_argument_list_ends_where_it_did),
        cmocka_unit_test(zeros_are_no_blanks),
        cmocka_unit_test(lengths_are_rounded_up),
    };
    return cmocka_run_group_tests_name("changed", tests, NULL, NULL);
}
