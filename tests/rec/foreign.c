/* SPDX-License-Identifier: Apache-2.0
 * foreign LIBRARY LOGDIR [OPTIONS]: records through dlopen() and dlsym() alone,
 * as a language without a C compiler does: no header of ours, strict C99. What
 * it records tests/rec/foreign.py records as well, call for call; the test that
 * runs both knows the counts. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *library;

/* A function and an object have pointers of one size here, but C99 has no cast
 * from the one to the other. */
static void find(const char *name, void *to) {
    void *p = dlsym(library, name);
    if (p == NULL) {
        fprintf(stderr, "%s is not there\n", name);
        exit(2);
    }
    memcpy(to, &p, sizeof p);
}

static void (*begin_as)(int, const char *), (*end)(void), (*step)(int64_t);
static void (*begin)(const char *), (*arg_int)(const char *, int64_t);
static void (*arg_num)(const char *, double);
static void (*arg_text)(const char *, const char *), (*instant)(const char *);
static void (*counter)(const char *, double);
static void (*scalar)(const char *, int64_t, double);
static void (*alloc)(const void *, uint64_t, const char *);
static void (*release)(const void *);
static void (*async_begin)(void *, int, const char *), (*async_end)(void *);
static uint64_t (*correlation)(void), (*now)(void);
static uint32_t (*device_track)(const char *, const char *);
static void (*device_span)(uint32_t, const char *, uint64_t, uint64_t,
                           uint64_t);

static void find_calls(void) {
    find("ops_fn_begin", &begin);
    find("ops_fn_begin_as", &begin_as);
    find("ops_fn_end", &end);
    find("ops_fn_step", &step);
    find("ops_fn_arg_int", &arg_int);
    find("ops_fn_arg_num", &arg_num);
    find("ops_fn_arg_text", &arg_text);
    find("ops_fn_instant", &instant);
    find("ops_fn_counter", &counter);
    find("ops_fn_scalar", &scalar);
    find("ops_fn_alloc", &alloc);
    find("ops_fn_free", &release);
    find("ops_fn_async_begin", &async_begin);
    find("ops_fn_async_end", &async_end);
    find("ops_fn_correlation", &correlation);
    find("ops_fn_device_span", &device_span);
    find("ops_now", &now);
    find("ops_device_track", &device_track);
}

static void one_step(int i, uint32_t track) {
    uint64_t handle[3], t0;
    char block;
    step(i);
    async_begin(handle, 0, "prefetch");
    begin_as(1, "next batch"); /* waits for input */
    end();
    begin("matmul");
    arg_int("flops", 1000);
    arg_num("scale", 0.5);
    arg_text("shape", "8x8");
    alloc(&block, 4096, "activations");
    t0 = now();
    device_span(track, "kernel", t0, t0 + 1000, correlation());
    release(&block);
    end();
    instant("mark");
    counter("queue", i);
    scalar("loss", i, 1.0 / (i + 1));
    async_end(handle);
}

int main(int argc, char **argv) {
    int (*start)(const char *, const char *);
    size_t (*problem)(char *, size_t);
    void (*step_end)(void), (*flush)(void), (*stop)(void);
    char why[256];
    if (argc < 3 || (library = dlopen(argv[1], RTLD_NOW)) == NULL) {
        fprintf(stderr, "%s\n",
                argc < 3 ? "foreign LIBRARY LOGDIR" : dlerror());
        return 64;
    }
    find("ops_fn_start", &start);
    find("ops_problem", &problem);
    find("ops_fn_step_end", &step_end);
    find("ops_flush", &flush);
    find("ops_stop", &stop);
    find_calls();
    if (start(argv[2], argc > 3 ? argv[3] : NULL) != 0) {
        problem(why, sizeof why);
        printf("%s\n", why);
        return 1;
    }
    uint32_t track = device_track("npu 0", "queue 0");
    for (int i = 0; i < 10; i++) one_step(i, track);
    step_end();
    flush();
    stop();
    return 0;
}
