/* SPDX-License-Identifier: Apache-2.0
 * The facts about program and machine (list: identity.h). Each is read on its
 * own; what cannot be read is left out. Runs once, at the start. */
#include "rec/machine/identity.h"

#include "rec/machine/cgroup.h"
#include "ring/procfile.h"

#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum { VALUE = 4096 };

struct out {
    identity_give *give;
    void *to;
    char value[VALUE + 1];
};

/* How long the UTF-8 character at p is; 0: it is none, or does not print. */
static size_t character(const unsigned char *p) {
    if (p[0] < 0x80) return p[0] >= ' ' && p[0] != 0x7f;
    size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4) return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    /* longer than need be, surrogates, beyond Unicode */
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
        (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
        return 0;
    return n;
}

/* Gives o->value, mended. */
static void give_value(struct out *o, const char *key) {
    unsigned char *p = (unsigned char *)o->value;
    while (*p) {
        size_t n = character(p);
        if (n == 0) {
            *p = *p == '\n' || *p == '\t' ? ' ' : '?';
            n = 1;
        }
        p += n;
    }
    if (o->value[0]) o->give(o->to, key, o->value);
}

__attribute__((format(printf, 3, 4))) static void
give(struct out *o, const char *key, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(o->value, sizeof o->value, fmt, ap);
    va_end(ap);
    give_value(o, key);
}

static void give_environment(struct out *o, const struct identity *id) {
    char key[80];
    for (const char *p = id->env; *p; p += strlen(p) + 1) {
        const char *value = strchr(p, '=');
        if (!value) continue;
        snprintf(key, sizeof key, "env.%.*s", (int)(value - p), p);
        give(o, key, "%s", value + 1);
    }
    if (id->env_left_out > 0) give(o, "env_left_out", "%d", id->env_left_out);
}

/* Appends an argument as a shell would take it; false: no room. */
static bool put_arg(char *out, size_t cap, const char *arg) {
    size_t n = strlen(out);
    bool quote = !*arg || strpbrk(arg, " \t\n'\"\\$`*?;&|<>()[]{}#~!");
    if (n > 0 && n < cap) out[n++] = ' ';
    if (quote && n < cap) out[n++] = '\'';
    for (; *arg && n + 4 < cap; arg++) {
        if (*arg == '\'') {
            memcpy(out + n, "'\\''", 4);
            n += 4;
        } else {
            out[n++] = *arg;
        }
    }
    if (quote && n < cap) out[n++] = '\'';
    if (n >= cap) n = cap - 1;
    out[n] = '\0';
    return !*arg;
}

/* The kernel's copy: the arguments one behind the other, each ended by 0. */
static void give_argv(struct out *o) {
    char raw[VALUE];
    long n = procfile_read("/proc/self/cmdline", raw, sizeof raw);
    bool whole = n >= 0 && n < (long)sizeof raw - 1;
    o->value[0] = '\0';
    for (const char *p = raw; p < raw + n; p += strlen(p) + 1)
        if (!put_arg(o->value, VALUE - 8, p)) {
            whole = false;
            break;
        }
    if (n > 0 && !whole) strcat(o->value, " ...");
    if (n > 0) give_value(o, "argv");
}

static void give_start(struct out *o) {
    char text[1024];
    struct timespec real, boot;
    struct proc_stat st;
    long n = procfile_read("/proc/self/stat", text, sizeof text);
    long hz = sysconf(_SC_CLK_TCK);
    if (n <= 0 || !proc_stat_parse(text, (size_t)n, &st) || hz <= 0) return;
    if (clock_gettime(CLOCK_REALTIME, &real) != 0 ||
        clock_gettime(CLOCK_BOOTTIME, &boot) != 0)
        return;
    int64_t since = (int64_t)boot.tv_sec * 1000000000 + boot.tv_nsec -
                    st.start_ticks * (1000000000 / hz);
    int64_t now = (int64_t)real.tv_sec * 1000000000 + real.tv_nsec;
    give(o, "start_time_unix_ns", "%lld", (long long)(now - since));
}

static void give_process(struct out *o) {
    char text[4096];
    size_t len;
    give_argv(o);
    if (getcwd(o->value, VALUE)) give_value(o, "cwd");
    ssize_t n = readlink("/proc/self/exe", o->value, VALUE);
    if (n > 0) {
        o->value[n] = '\0';
        give_value(o, "executable");
    }
    give(o, "pid", "%d", (int)getpid());
    if (procfile_read("/proc/self/status", text, sizeof text) > 0) {
        const char *ids = procfile_line(text, "NSpid", &len);
        if (ids && len < 200) give(o, "nspid", "%.*s", (int)len, ids);
    }
    give_start(o);
}

/* The name that a hypervisor gives itself; the flag alone: "yes". */
static void give_hypervisor(struct out *o) {
#if defined(__x86_64__)
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 31)) return;
    char name[13] = "";
    __cpuid(0x40000000, a, b, c, d);
    memcpy(name, &b, 4);
    memcpy(name + 4, &c, 4);
    memcpy(name + 8, &d, 4);
    give(o, "hypervisor", "%s", name[0] ? name : "yes");
#else
    (void)o;
#endif
}

static void give_cpus(struct out *o) {
    char text[4096];
    unsigned long mask[256] = {0}; /* 16,384 CPUs */
    size_t len;
    if (procfile_read("/proc/cpuinfo", text, sizeof text) > 0) {
        const char *model = procfile_line(text, "model name", &len);
        if (model && len < 200) give(o, "cpu_model", "%.*s", (int)len, model);
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    if (online > 0) give(o, "cpu_count", "%ld", online);
    if (sched_getaffinity(0, sizeof mask, (cpu_set_t *)mask) == 0) {
        int n = 0;
        for (size_t i = 0; i < sizeof mask / sizeof *mask; i++)
            n += __builtin_popcountl(mask[i]);
        give(o, "cpu_allowed", "%d", n);
    }
    give_hypervisor(o);
}

static void give_limits(struct out *o) {
    struct cgroup g;
    cgroup_self(&g);
    if (g.memory_limit > 0)
        give(o, "cgroup_memory_limit_bytes", "%llu",
             (unsigned long long)g.memory_limit);
    if (g.cpu_limit > 0) {
        /* by integers: the host may have a locale with a decimal comma */
        long milli = (long)(g.cpu_limit * 1000 + 0.5);
        give(o, "cgroup_cpu_limit", "%ld.%03ld", milli / 1000, milli % 1000);
    }
}

static void give_machine(struct out *o) {
    char text[4096];
    struct utsname u;
    uint64_t kib;
    if (procfile_read_line(AT_FDCWD, "/proc/sys/kernel/random/boot_id", text,
                           64) > 0)
        give(o, "boot_id", "%s", text);
    if (uname(&u) == 0)
        give(o, "kernel", "%s %s %s", u.sysname, u.release, u.machine);
    give_cpus(o);
    if (procfile_read("/proc/meminfo", text, sizeof text) > 0 &&
        procfile_u64(text, "MemTotal", &kib))
        give(o, "memory_bytes", "%llu", (unsigned long long)kib * 1024);
    give_limits(o);
#if defined(_CS_GNU_LIBC_VERSION)
    if (confstr(_CS_GNU_LIBC_VERSION, o->value, VALUE) > 0)
        give_value(o, "libc");
#endif
    give(o, "page_bytes", "%ld", sysconf(_SC_PAGESIZE));
}

void identity_facts(const struct identity *id, identity_give *fn, void *to) {
    struct out o = {.give = fn, .to = to};
    if (id->launcher) give(&o, "rank_source", "%s", id->launcher);
    if (id->local_rank >= 0) give(&o, "local_rank", "%d", id->local_rank);
    if (id->local_size > 0) give(&o, "local_world_size", "%d", id->local_size);
    give_environment(&o, id);
    give_process(&o);
    give_machine(&o);
}
