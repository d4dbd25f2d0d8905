/* SPDX-License-Identifier: Apache-2.0
 * live LOGDIR DIARY [hold]: a program that records everything that can be
 * recorded, from several threads and two devices, and writes down by itself
 * what it did (diary.h). rec_diary.py and test_xprof.py compare.
 *
 * hold: before it stops it flushes, prints "flushed" and waits for a line. */
#include <pthread.h>
#include <stdbool.h>

#include "diary.h"
#include "opscope/record.h"
#include "soft_device.h"

enum {
    EPOCHS = 2,
    STEPS = 12,
    TINY = 8000,
    ITEMS = 64,
    DEEP = 40,
    BURST = 3 * SOFT_RECORDS,
    BURSTS = 200
};

/* What goes from the loader to the writer, one at a time. */
struct item {
    uint64_t flow;
    void *memory;
    struct ops_async span;
    size_t note; /* of the span, in the loader's diary */
};
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct item item;
    bool full;
} belt = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .changed = PTHREAD_COND_INITIALIZER};

static struct diary trainer, loader, writer;
static struct soft_device *device;

/* --- each call with its note -------------------------------------------- */

#define BEGIN_AS(d, kind_, word, name_)                                        \
    size_t note_ = diary_note(d, "scope", name_, word);                        \
    (d)->v[note_].t[0] = diary_now();                                          \
    ops_begin_as(kind_, name_);                                                \
    (d)->v[note_].t[1] = diary_now()
#define BEGIN(d, name_) BEGIN_AS(d, OPS_KIND_OP, "op", name_)
#define END(d)                                                                 \
    do {                                                                       \
        (d)->v[note_].t[2] = diary_now();                                      \
        ops_end();                                                             \
        (d)->v[note_].t[3] = diary_now();                                      \
    } while (0)
/* Notes more about the scope that is open. */
#define TELL(d, ...)                                                           \
    do {                                                                       \
        char *at_ = (d)->v[note_].more;                                        \
        size_t n_ = strlen(at_);                                               \
        snprintf(at_ + n_, sizeof(d)->v->more - n_, __VA_ARGS__);              \
    } while (0)
/* Makes a call that is over when it returns. */
#define CALL(d, what_, name_, call, ...)                                       \
    do {                                                                       \
        size_t at_ = diary_note(d, what_, name_, "");                          \
        snprintf((d)->v[at_].more, sizeof(d)->v->more, __VA_ARGS__);           \
        (d)->v[at_].t[0] = diary_now();                                        \
        call;                                                                  \
        (d)->v[at_].t[1] = diary_now();                                        \
    } while (0)

static _Thread_local volatile double sink;

static void work(void *arg) {
    const uint64_t *rounds = arg;
    double x = 1;
    for (uint64_t i = 0; i < *rounds; i++) x = x * 1.0000001 + 1e-9;
    sink = x;
}

static const uint64_t small_work = 200, some_work = 20000;

static void busy(uint64_t rounds) { work(&rounds); }

/* --- the trainer ---------------------------------------------------------*/

/* This is the macro's form, with its own cleanup. */
static void layer(int i) {
    size_t note_ = diary_note(&trainer, "scope", "layer", "op");
    trainer.v[note_].t[0] = diary_now();
    {
        OPS_SCOPE_INT("layer", "index", i);
        ops_arg_num("loss", 1.0 / (i + 3));
        ops_arg_text("shape", "f32[8,\"128\"]");
        trainer.v[note_].t[1] = diary_now();
        TELL(&trainer,
             ", \"args\": {\"index\": %d, \"loss\": %.17g, "
             "\"shape\": \"f32[8,\\\"128\\\"]\"}",
             i, 1.0 / (i + 3));
        busy(500);
        trainer.v[note_].t[2] = diary_now();
    }
    trainer.v[note_].t[3] = diary_now();
}

/* Launches on the device and waits for it, as a runtime would. */
static void launch(const char *name, unsigned queue, struct soft_work w) {
    BEGIN(&trainer, name);
    w.corr = ops_correlation();
    TELL(&trainer, ", \"corr\": %llu", (unsigned long long)w.corr);
    soft_launch(device, queue, w);
    END(&trainer);
}

static void device_part(void) {
    struct soft_work kernel = {.name = "soft_kernel",
                               .run = work,
                               .arg = (void *)(uintptr_t)&some_work,
                               .what = OPS_DEVICE_KERNEL,
                               .bytes = -1};
    struct soft_work copy = {.name = "soft_copy",
                             .run = work,
                             .arg = (void *)(uintptr_t)&small_work,
                             .what = OPS_DEVICE_COPY,
                             .bytes = 4096};
    for (int i = 0; i < 3; i++) {
        launch("launchKernel", 0, kernel);
        launch("launchCopy", 1, copy);
    }
    BEGIN_AS(&trainer, OPS_KIND_WAIT, "wait", "synchronize");
    soft_wait(device, 0);
    soft_wait(device, 1);
    END(&trainer);
}

/* Launches more at once than the device keeps records of, until some were
 * lost. */
static void overrun(void) {
    struct soft_work w = {.name = "soft_burst",
                          .run = work,
                          .arg = (void *)(uintptr_t)&small_work,
                          .what = OPS_DEVICE_KERNEL,
                          .bytes = -1};
    static struct soft_fate fate[1 << 14];
    bool lost = false;
    for (int k = 0; k < BURSTS && !lost; k++) {
        for (int i = 0; i < BURST; i++) soft_launch(device, 0, w);
        soft_wait(device, 0);
        unsigned n = soft_fates(device, fate, 1 << 14);
        for (unsigned i = 0; i < n; i++) lost |= fate[i].lost;
    }
}

/* Hands in the program's own times of another device's work. */
static void own_device(uint32_t track, int i) {
    uint64_t t0 = ops_now();
    busy(2000);
    uint64_t t1 = ops_now();
    size_t note_ = diary_note(&trainer, "device", "npu_op", "kernel");
    snprintf(trainer.v[note_].more, sizeof trainer.v->more,
             ", \"device\": \"npu 1\", \"queue\": \"queue 0\", \"corr\": %d",
             i % 2 ? 0 : 1000000 + i);
    trainer.v[note_].t[0] = trainer.v[note_].t[1] = t0;
    trainer.v[note_].t[2] = trainer.v[note_].t[3] = t1;
    ops_device_span(track, "npu_op", t0, t1,
                    (uint64_t)(i % 2 ? 0 : 1000000 + i));
}

static void deep(int levels) {
    BEGIN(&trainer, "deep");
    ops_arg_int("level", levels);
    TELL(&trainer, ", \"args\": {\"level\": %d}", levels);
    if (levels > 1) deep(levels - 1);
    END(&trainer);
}

static void tiny(void) {
    for (int i = 0; i < TINY; i++) {
        BEGIN(&trainer, "tiny");
        END(&trainer);
    }
}

/* Records bytes that are no text, and texts that have to be cut. */
static void odd_text(void) {
    static const char name[] = "not \xff\xc3 UTF-8";
    char text[400];
    BEGIN(&trainer, name);
    TELL(&trainer, ", \"args\": {\"long\": \"");
    text[0] = 'x';
    for (int i = 0; i < 150; i++) memcpy(text + 1 + 2 * i, "\xc3\xa9", 3);
    ops_arg_text("long", text);
    TELL(&trainer, "LONG\", \"bytes\": %lld, \"least\": %lld}",
         (long long)INT64_MAX, (long long)INT64_MIN);
    ops_arg_int("bytes", INT64_MAX);
    ops_arg_int("least", INT64_MIN);
    END(&trainer);
}

static void train(void) {
    uint32_t track = ops_device_track("npu 1", "queue 0");
    for (int e = 0; e < EPOCHS; e++) {
        size_t epoch = diary_note(&trainer, "epoch", "epoch", "");
        snprintf(trainer.v[epoch].more, sizeof trainer.v->more,
                 ", \"number\": %d", e);
        trainer.v[epoch].t[0] = diary_now();
        ops_epoch(e);
        trainer.v[epoch].t[1] = diary_now();
        for (int s = 0; s < STEPS; s++) {
            size_t step = diary_note(&trainer, "step", "step", "");
            int number = e * STEPS + s;
            snprintf(trainer.v[step].more, sizeof trainer.v->more,
                     ", \"number\": %d", number);
            trainer.v[step].t[0] = diary_now();
            ops_step(number);
            trainer.v[step].t[1] = diary_now();
            {
                BEGIN_AS(&trainer, OPS_KIND_PHASE, "phase", "forward");
                for (int i = 0; i < 4; i++) layer(i);
                device_part();
                END(&trainer);
            }
            own_device(track, number);
            double loss = 2.5 / (number + 1);
            CALL(&trainer, "counter", "loss", ops_counter("loss", loss),
                 ", \"value\": %.17g", loss);
            if (s % 4 == 3)
                CALL(&trainer, "instant", "checkpoint",
                     ops_instant("checkpoint"), "%s", "");
            ops_scalar("loss", number, loss);
            trainer.v[step].t[2] = diary_now();
            ops_step_end();
            trainer.v[step].t[3] = diary_now();
        }
        trainer.v[epoch].t[2] = diary_now();
        ops_epoch_end();
        trainer.v[epoch].t[3] = diary_now();
    }
    deep(DEEP);
    odd_text();
    tiny();
    overrun();
}

/* --- the loader and the writer -------------------------------------------*/

static void *load(void *arg) {
    (void)arg;
    ops_thread_name("loader");
    diary_open(&loader, "loader");
    for (int i = 0; i < ITEMS; i++) {
        struct item it = {.flow = ops_flow_new(), .memory = malloc(64)};
        BEGIN_AS(&loader, OPS_KIND_INPUT, "input", "load");
        ops_arg_int("bytes", 1000 + i);
        ops_flow_out(it.flow);
        TELL(&loader, ", \"args\": {\"bytes\": %d}, \"flow_out\": %llu",
             1000 + i, (unsigned long long)it.flow);
        busy(3000);
        END(&loader);
        CALL(&loader, "alloc", "",
             ops_alloc(it.memory, 1000 + (size_t)i, "activations"),
             ", \"addr\": %llu, \"bytes\": %d, \"tag\": \"activations\"",
             (unsigned long long)(uintptr_t)it.memory, 1000 + i);
        CALL(&loader, "counter", "queue", ops_counter("queue", i % 3),
             ", \"value\": %d", i % 3);
        it.note = diary_note(&loader, "async", "on its way", "comm");
        loader.v[it.note].t[0] = diary_now();
        it.span = ops_async_begin(OPS_KIND_COMM, "on its way");
        loader.v[it.note].t[1] = diary_now();
        pthread_mutex_lock(&belt.lock);
        while (belt.full) pthread_cond_wait(&belt.changed, &belt.lock);
        belt.item = it;
        belt.full = true;
        pthread_cond_broadcast(&belt.changed);
        pthread_mutex_unlock(&belt.lock);
    }
    return NULL;
}

static void *write_items(void *arg) {
    static uint64_t ends[ITEMS][2];
    (void)arg;
    ops_thread_name("writer");
    diary_open(&writer, "writer");
    for (int i = 0; i < ITEMS; i++) {
        pthread_mutex_lock(&belt.lock);
        while (!belt.full) pthread_cond_wait(&belt.changed, &belt.lock);
        struct item it = belt.item;
        belt.full = false;
        pthread_cond_broadcast(&belt.changed);
        pthread_mutex_unlock(&belt.lock);
        /* the loader's diary grows meanwhile: its notes wait for its end */
        ends[i][0] = diary_now();
        ops_async_end(&it.span);
        ends[i][1] = diary_now();
        BEGIN_AS(&writer, OPS_KIND_COPY, "copy", "write");
        ops_flow_in(it.flow);
        TELL(&writer, ", \"flow_in\": %llu", (unsigned long long)it.flow);
        busy(1000);
        END(&writer);
        CALL(&writer, "free", "", ops_free(it.memory), ", \"addr\": %llu",
             (unsigned long long)(uintptr_t)it.memory);
        free(it.memory);
    }
    return ends;
}

static uint64_t cpu_ns(clockid_t of) {
    struct timespec t;
    clock_gettime(of, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Takes CPU time that is not the recorder's but might be taken for it. */
static void burn(void) {
    while (cpu_ns(CLOCK_THREAD_CPUTIME_ID) < 100000000) busy(10000);
}

/* --- the whole -----------------------------------------------------------*/

static void print_fates(FILE *f) {
    static struct soft_fate fate[1 << 14];
    unsigned n = soft_fates(device, fate, 1 << 14);
    for (unsigned i = 0; i < n; i++)
        fprintf(f,
                "{\"what\": \"soft\", \"name\": \"%s\", \"kind\": \"%s\", "
                "\"queue\": \"%s\", \"corr\": %llu, \"bytes\": %lld, "
                "\"lost\": %s, \"traced\": %s}\n",
                fate[i].work.name,
                fate[i].work.what == OPS_DEVICE_COPY ? "copy" : "kernel",
                soft_queue_name(fate[i].queue),
                (unsigned long long)fate[i].work.corr,
                (long long)fate[i].work.bytes, fate[i].lost ? "true" : "false",
                fate[i].traced ? "true" : "false");
}

static void finish_async(const uint64_t (*ends)[2]) {
    for (size_t i = 0, k = 0; i < loader.n; i++) {
        if (strcmp(loader.v[i].what, "async") != 0) continue;
        loader.v[i].t[2] = ends[k][0];
        loader.v[i].t[3] = ends[k][1];
        k++;
    }
}

int main(int argc, char **argv) {
    struct ops_options o = {.run = "live", .host = "testhost"};
    if (argc < 3) return 64;
    FILE *f = fopen(argv[2], "w");
    burn();
    device = soft_open("soft 0");
    if (f == NULL || device == NULL) return 66;
    ops_device_tracer_add(soft_tracer(device));
    if (ops_start(argv[1], &o) != 0) {
        char why[OPS_PROBLEM_MAX];
        ops_problem(why, sizeof why);
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    ops_thread_name("trainer");
    diary_open(&trainer, "trainer");
    pthread_t a, b;
    void *ends;
    pthread_create(&a, NULL, load, NULL);
    pthread_create(&b, NULL, write_items, NULL);
    train();
    pthread_join(a, NULL);
    pthread_join(b, &ends);
    finish_async((const uint64_t(*)[2])ends);
    if (argc > 3) {
        ops_flush();
        puts("flushed");
        fflush(stdout);
        if (getchar() == EOF) return 2;
    }
    uint64_t mine = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
    ops_stop();
    fprintf(f, "{\"what\": \"cpu\", \"name\": \"\", \"most\": %llu}\n",
            (unsigned long long)(cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - mine));
    ops_device_tracer_remove(soft_tracer(device));
    diary_print(&trainer, f);
    diary_print(&loader, f);
    diary_print(&writer, f);
    print_fates(f);
    soft_close(device);
    return fclose(f) == 0 ? 0 : 1;
}
