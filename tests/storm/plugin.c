/* SPDX-License-Identifier: Apache-2.0
 * Instrumented code that is loaded and unloaded. Built twice: with the
 * recorder's archive inside, and without, so that the program's is used. */
#include <opscope/record.h>
#include <stdio.h>

void storm_plugin(uint32_t act, int64_t n, const char *dir,
                  void (*tried)(uint32_t, unsigned, uint64_t),
                  void (*done)(uint32_t, unsigned, uint64_t));

static void one(const char *name, int64_t i) {
    OPS_SCOPE_INT(name, "round", i);
    ops_counter("of a plugin", (double)i);
}

#ifdef OWN
static void ready(const char *dir) {
    struct ops_options o = {.run = "storm"};
    ops_start(dir, &o);
}
#else
static void ready(const char *dir) { (void)dir; }
#endif

/* Somebody may stop the program's recorder meanwhile: then only that it was
 * tried is known. */
void storm_plugin(uint32_t act, int64_t n, const char *dir,
                  void (*tried)(uint32_t, unsigned, uint64_t),
                  void (*done)(uint32_t, unsigned, uint64_t)) {
    char name[24];
    snprintf(name, sizeof name, "s%u.0", act);
    ready(dir);
    for (int64_t i = 1; i <= n; i++) {
        bool on = ops_recording();
        tried(act, 0, 1);
        one(name, i);
#ifdef OWN
        if (on && ops_recording()) done(act, 0, 1);
#else
        (void)on;
        (void)done;
#endif
    }
}
