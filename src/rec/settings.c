/* SPDX-License-Identifier: Apache-2.0
 * Reading options and environment, at the start only. In a program that runs
 * with more rights than whoever started it (set-uid and the like) the
 * environment is that user's, and none of it is read: secure_getenv. */
#include "rec/settings.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sized.h"

enum {
    RING_DEFAULT = 8 << 20,
    RING_LEAST = 64 << 10,
    MEMORY_DEFAULT = 512 << 20,
};

static const char *env(const char *name) {
    const char *v = secure_getenv(name);
    return v != NULL && v[0] != 0 ? v : NULL;
}

/* Copies a text into the settings; too_long says that it does not fit. Returns
 * the copy; NULL if there is no text. */
static const char *keep(struct settings *set, char *to, size_t cap,
                        const char *from, const char *too_long) {
    int n = snprintf(to, cap, "%s", from != NULL ? from : "");
    if (n < 0 || (size_t)n >= cap) set->wrong = too_long;
    return from != NULL ? to : NULL;
}

static void env_size(const char *name, size_t *v) {
    const char *t = env(name);
    char *end;
    if (t == NULL) return;
    unsigned long long n = strtoull(t, &end, 10);
    if (*end == 0 && n > 0 && n <= SIZE_MAX / 2) *v = (size_t)n;
}

static bool env_is(const char *name, const char *value) {
    const char *t = env(name);
    return t != NULL && strcmp(t, value) == 0;
}

static void environment(struct settings *set, const char **logdir) {
    struct ops_options *o = &set->o;
    if (!o->as_given) {
        if (env("OPSCOPE_LOGDIR") != NULL) *logdir = env("OPSCOPE_LOGDIR");
        if (env("OPSCOPE_RUN") != NULL) o->run = env("OPSCOPE_RUN");
        if (env("OPSCOPE_STEPS") != NULL) o->steps = env("OPSCOPE_STEPS");
    }
    if (env_is("OPSCOPE_FLIGHT", "1")) o->flight = true;
    if (env_is("OPSCOPE_MACHINE", "0")) o->no_machine = true;
    if (env_is("OPSCOPE_TSC", "0")) o->no_tsc = true;
    if (env_is("OPSCOPE_FORK", "0")) o->no_fork = true;
    if (env_is("OPSCOPE_DEMAND", "0")) o->no_demand = true;
    if (env("OPSCOPE_SIGNAL") != NULL) o->signal = atoi(env("OPSCOPE_SIGNAL"));
    if (env("OPSCOPE_SHM") != NULL)
        keep(set, set->memory, sizeof set->memory, env("OPSCOPE_SHM"),
             "OPSCOPE_SHM is too long");
    if (env("OPSCOPE_LAUNCH") != NULL)
        set->launch = strtoull(env("OPSCOPE_LAUNCH"), NULL, 16);
    env_size("OPSCOPE_RING_BYTES", &o->ring_bytes);
    env_size("OPSCOPE_MEMORY_BYTES", &o->memory_bytes);
}

void settings_read(struct settings *set, const char *logdir,
                   const struct ops_options *o, size_t size) {
    memset(set, 0, sizeof *set);
    copy_sized(&set->o, sizeof set->o, o, size);
    environment(set, &logdir);
    struct ops_options *m = &set->o;
    keep(set, set->logdir, sizeof set->logdir,
         logdir != NULL && logdir[0] != 0 ? logdir : ".",
         "the path of the log folder is too long");
    m->steps = keep(set, set->steps, sizeof set->steps, m->steps,
                    "the steps are too long a text");
    m->run = keep(set, set->run, sizeof set->run, m->run,
                  "the run's name is too long");
    /* of a host's name the beginning will do */
    m->host = keep(set, set->host, sizeof set->host, m->host, set->wrong);
    if (m->ring_bytes == 0) m->ring_bytes = RING_DEFAULT;
    size_t power = RING_LEAST;
    while (power < m->ring_bytes && power < (size_t)1 << 30) power *= 2;
    m->ring_bytes = power;
    if (m->memory_bytes == 0) m->memory_bytes = MEMORY_DEFAULT;
    if (m->demand_steps <= 0) m->demand_steps = 3;
    if (m->demand_ms <= 0) m->demand_ms = 2000;
    set->automatic = settings_automatic();
}

/* The C library keeps some signals for itself, and says so when asked. */
static bool can_be_caught(int sig) {
    struct sigaction now;
    return sig != SIGKILL && sig != SIGSTOP && sigaction(sig, NULL, &now) == 0;
}

const char *settings_wrong(const struct settings *set) {
    const struct ops_options *o = &set->o;
    if (set->wrong != NULL) return set->wrong;
    if (o->signal != 0 && !can_be_caught(o->signal))
        return "the signal is none that a program can catch";
    if (o->world > 0 && (o->rank < 0 || o->rank >= o->world))
        return "the rank is not below the number of ranks (world)";
    return NULL;
}

void settings_child(struct settings *set) {
    set->o.rank = set->o.world = 0;
    set->child = true;
}

bool settings_automatic(void) { return env_is("OPSCOPE", "1"); }
bool settings_forbidden(void) { return env_is("OPSCOPE", "0"); }
