/* SPDX-License-Identifier: Apache-2.0
 * Host and rank, by the launchers' variables; then the facts about program and
 * machine, each read on its own: what cannot be read is left out.
 *
 * A launcher counts when both rank and world are there, are whole numbers and
 * fit together: RANK alone may be anybody's variable. The launcher that started
 * this very process comes before the one that started its parent. mpirun inside
 * a SLURM job starts its daemons with srun, and each process inherits the
 * daemon's SLURM_PROCID: so SLURM stands behind MPI, and needs a variable that
 * only steps (srun) have, since a batch script itself has SLURM_PROCID=0
 * too. */
#include "rec/machine/identity.h"

#include "base/array.h"
#include "base/facts.h"
#include "base/text/json.h"
#include "base/text/utf8.h"
#include "rec/machine/cgroup.h"
#include "ring/procfile.h"
#include "ring/text.h"

#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum { VALUE = 4096 }; /* bytes kept of a variable or fact */

/* Names of variables; of several, joined by '|', the first that is set
 * counts. */
static const struct launcher {
    const char *name, *rank, *world, *local_rank, *local_size;
    const char *needs; /* must be set as well; NULL: nothing */
} launchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", NULL},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", NULL},
    {"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID|PALS_LOCAL_RANKID",
     "MPI_LOCALNRANKS", NULL},
    {"MVAPICH2", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE",
     "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE", NULL},
    {"jsrun", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE",
     "JSM_NAMESPACE_LOCAL_RANK", "JSM_NAMESPACE_LOCAL_SIZE", NULL},
    {"Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID", "", NULL},
    {"Horovod", "HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK",
     "HOROVOD_LOCAL_SIZE", NULL},
    {"SLURM", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS|SLURM_NTASKS",
     "SLURM_LOCALID",
     "SLURM_STEP_TASKS_PER_NODE|SLURM_NTASKS_PER_NODE|SLURM_TASKS_PER_NODE",
     "SLURM_STEP_ID|SLURM_STEPID|SLURM_STEP_NODELIST"},
    {"JAX", "JAX_PROCESS_ID", "JAX_NUM_PROCESSES", "", "", NULL},
};

/* The variables of the environment that a profile keeps: those of launchers, of
 * visible devices and of thread pools. */
/* clang-format off */
static const char *const kept_variables[] = {
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK",
    "ROLE_RANK", "CROSS_RANK", "MASTER_ADDR", "MASTER_PORT",
    "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT",
    "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE",
    "SLURM_TASKS_PER_NODE", "SLURM_STEP_NUM_TASKS",
    "SLURM_STEP_TASKS_PER_NODE", "SLURM_NODEID", "SLURM_JOB_ID",
    "SLURM_STEP_ID", "SLURM_STEPID", "SLURM_STEP_NODELIST", "SLURMD_NODENAME",
    "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
    "OMPI_COMM_WORLD_NODE_RANK", "PMIX_RANK", "PMIX_NAMESPACE",
    "PMIX_HOSTNAME", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID",
    "MPI_LOCALNRANKS", "PALS_LOCAL_RANKID", "PALS_RANKID", "ALPS_APP_PE",
    "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
    "MV2_COMM_WORLD_LOCAL_SIZE", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE",
    "JSM_NAMESPACE_LOCAL_RANK", "JSM_NAMESPACE_LOCAL_SIZE", "LSB_JOBID",
    "FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID", "FLUX_JOB_ID",
    "HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK",
    "HOROVOD_LOCAL_SIZE", "HOROVOD_CROSS_RANK", "HOROVOD_CROSS_SIZE",
    "HOROVOD_HOSTNAME", "TF_CONFIG", "JAX_PROCESS_ID", "JAX_NUM_PROCESSES",
    "JAX_COORDINATOR_ADDRESS", "JAX_LOCAL_DEVICE_IDS", "JAX_PARTITION_INDEX",
    "TPU_WORKER_ID", "TPU_WORKER_HOSTNAMES", "TPU_PROCESS_ADDRESSES",
    "MEGASCALE_SLICE_ID", "MEGASCALE_NUM_SLICES", "JOB_COMPLETION_INDEX",
    "POD_NAME", "NODE_NAME", "HOSTNAME",
    "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK",
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS",
};
/* clang-format on */

/* Returns the value of the first variable of "A|B" that is not empty. */
static const char *env_first(const char *list) {
    char name[64];
    while (*list) {
        size_t n = strcspn(list, "|");
        if (n < sizeof name) {
            memcpy(name, list, n);
            name[n] = '\0';
            const char *v = secure_getenv(name);
            if (v && *v) return v;
        }
        list += n;
        if (*list) list++;
    }
    return NULL;
}

/* Returns a whole number below 2^31, or -1. "4(x2)", SLURM's way to say 4 on
 * each of two nodes, is 4; "4,3" is no single number. */
static int small(const char *text) {
    char copy[16];
    int64_t n;
    if (!text) return -1;
    size_t len = strcspn(text, "(");
    const char *tail = text + len;
    if (*tail) {
        size_t k = strlen(tail);
        if (strncmp(tail, "(x", 2) != 0 || k < 4 || tail[k - 1] != ')' ||
            strspn(tail + 2, "0123456789") != k - 3)
            return -1;
    }
    if (len >= sizeof copy) return -1;
    memcpy(copy, text, len);
    copy[len] = '\0';
    return procfile_whole(copy, &n) && n <= INT32_MAX ? (int)n : -1;
}

static bool fits(int rank, int world) {
    return rank >= 0 && world > 0 && rank < world;
}

static bool ask_launcher(const struct launcher *l, struct identity *id) {
    if (l->needs && !env_first(l->needs)) return false;
    int rank = small(env_first(l->rank)), world = small(env_first(l->world));
    if (!fits(rank, world)) return false;
    int local = small(env_first(l->local_rank));
    int size = small(env_first(l->local_size));
    if (size < 1 || size > world) size = -1;
    if (local >= (size > 0 ? size : world)) local = -1;
    id->rank = rank;
    id->world = world;
    id->local_rank = local;
    id->local_size = size;
    id->launcher = l->name;
    return true;
}

/* --- TF_CONFIG, the one launcher's variable that is JSON ----------------- */

enum { TF_JOBS = 5 };
static const char *const tf_jobs[TF_JOBS] = {"chief", "master", "worker",
                                             "evaluator", "ps"};

/* Returns the number of a job; -1 if it is none. */
static int tf_job(const struct json_str *name) {
    for (int i = 0; i < TF_JOBS; i++)
        if (bytes_eq(name->raw, tf_jobs[i], strlen(tf_jobs[i]))) return i;
    return -1;
}

/* Counts the tasks of each job of the cluster. */
static void read_cluster(struct json *j, int tasks[TF_JOBS]) {
    struct json_str key;
    if (!json_enter(j, '{')) j->bad = true;
    while (!j->bad && json_key(j, &key)) {
        int job = tf_job(&key);
        if (job < 0) {
            json_skip(j);
        } else if (!json_enter(j, '[')) {
            j->bad = true;
        } else {
            for (tasks[job] = 0; json_item(j) && !j->bad; tasks[job]++)
                json_skip(j);
        }
    }
}

/* Finds which task of which job this process is; -1 where it is not said. */
static void read_task(struct json *j, int *job, int64_t *index) {
    struct json_str key, type;
    if (!json_enter(j, '{')) j->bad = true;
    while (!j->bad && json_key(j, &key)) {
        if (BYTES_IS(key.raw, "type") && json_string(j, &type)) {
            *job = tf_job(&type);
        } else if (BYTES_IS(key.raw, "index") && json_peek(j) != '-') {
            struct json_num n = json_number(j);
            *index = n.kind == JSON_EXACT && n.scale == 0 ? n.digits : -1;
        } else {
            json_skip(j);
        }
    }
}

bool tf_config_rank(const char *text, int *rank, int *world) {
    enum { MOST = 64 << 10, BEHIND = 64 }; /* zeros that the reader wants */
    static char copy[MOST + BEHIND];       /* at the start only: one thread */
    int tasks[TF_JOBS] = {0}, job = -1;
    int64_t index = -1;
    struct json_str key;
    size_t n = strnlen(text, MOST);
    if (n == MOST) return false;
    memcpy(copy, text, n);
    memset(copy + n, 0, BEHIND);
    struct json j = json_reader((struct bytes){(const uint8_t *)copy, n});
    if (!json_enter(&j, '{')) return false;
    while (!j.bad && json_key(&j, &key)) {
        if (BYTES_IS(key.raw, "cluster")) read_cluster(&j, tasks);
        else if (BYTES_IS(key.raw, "task")) read_task(&j, &job, &index);
        else json_skip(&j);
    }
    if (j.bad || j.mended > 0 || json_peek(&j) != 0 || j.p != j.end ||
        job < 0 || index < 0 || index >= tasks[job])
        return false;
    *rank = (int)index;
    *world = 0;
    for (int i = 0; i < TF_JOBS; i++) {
        if (i < job) *rank += tasks[i];
        *world += tasks[i];
    }
    return true;
}

/* --- host and rank ------------------------------------------------------- */

/* Asks the variables of TPU hosts: the worker's number, and a list of all. */
static bool ask_tpu(int *rank, int *world) {
    const char *hosts = env_first("TPU_WORKER_HOSTNAMES");
    *rank = small(env_first("TPU_WORKER_ID"));
    if (!hosts) return false;
    for (*world = 1; (hosts = strchr(hosts, ',')); hosts++) ++*world;
    return fits(*rank, *world);
}

static void read_rank(struct identity *id, int rank, int world) {
    id->rank = id->world = id->local_rank = id->local_size = -1;
    id->launcher = NULL;
    bool found = false;
    for (size_t i = 0; i < COUNT(launchers) && !found; i++)
        found = ask_launcher(&launchers[i], id);
    if (fits(rank, world)) {
        /* The local rank is the launcher's, if it is about the same process. */
        if (id->rank != rank || id->world != world)
            id->local_rank = id->local_size = -1;
        id->launcher = "options";
    } else if (!found) {
        const char *json = env_first("TF_CONFIG");
        if (json && tf_config_rank(json, &rank, &world) && fits(rank, world))
            id->launcher = "TF_CONFIG";
        else if (ask_tpu(&rank, &world)) id->launcher = "TPU";
        else return;
    } else {
        return;
    }
    id->rank = rank;
    id->world = world;
}

static void read_host(struct identity *id, const char *host) {
    char own[sizeof id->host] = "";
    const char *env = secure_getenv("OPSCOPE_HOST");
    if (env && *env) host = env;
    if (!host || !*host) {
        if (gethostname(own, sizeof own) != 0) own[0] = '\0';
        own[sizeof own - 1] = '\0';
        host = own;
    }
    snprintf(id->host, sizeof id->host, "%s", *host ? host : "localhost");
    text_file_name(id->host);
    if (id->host[0] == '.') id->host[0] = '_';
}

const char *identity_var(const struct identity *id, const char *name) {
    size_t n = strlen(name);
    for (const char *p = id->env; *p; p += strlen(p) + 1)
        if (strncmp(p, name, n) == 0 && p[n] == '=') return p + n + 1;
    return NULL;
}

void identity_read(struct identity *id, const char *host, int rank, int world) {
    read_rank(id, rank, world);
    read_host(id, host);
    size_t n = 0;
    id->env_left_out = 0;
    for (size_t i = 0; i < COUNT(kept_variables); i++) {
        const char *v = secure_getenv(kept_variables[i]);
        if (!v) continue;
        int len = snprintf(id->env + n, sizeof id->env - n - 1, "%s=%.*s",
                           kept_variables[i], VALUE, v);
        if (len >= 0 && (size_t)len < sizeof id->env - n - 1)
            n += (size_t)len + 1;
        else id->env_left_out++;
        id->env[n] = '\0';
    }
    id->env[n] = '\0';
}

/* --- facts --------------------------------------------------------------- */

struct out {
    identity_give *give;
    void *to;
    char value[VALUE + 1];
};

/* Gives o->value; bytes that do not print are mended. */
static void give_value(struct out *o, const char *key) {
    uint8_t *p = (uint8_t *)o->value;
    for (size_t n; *p != 0; p += n) {
        n = *p < ' ' || *p == 0x7f ? 0 : utf8_len(p, strlen((char *)p));
        if (n > 0) continue;
        *p = *p == '\n' || *p == '\t' ? ' ' : '?';
        n = 1;
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

/* Appends an argument as a shell would take it; false if there is no room. */
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

static void give_process(struct out *o) {
    char text[4096];
    size_t len;
    /* This is the kernel's copy: the arguments one behind the other, each ended
     * by 0. */
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
    if (n > 0) give_value(o, FACT_ARGV);
    if (getcwd(o->value, VALUE)) give_value(o, "cwd");
    n = readlink("/proc/self/exe", o->value, VALUE);
    if (n > 0) {
        o->value[n] = '\0';
        give_value(o, "executable");
    }
    give(o, "pid", "%d", (int)getpid());
    if (procfile_read("/proc/self/status", text, sizeof text) > 0) {
        const char *ids = procfile_line(text, "NSpid", &len);
        if (ids && len < 200) give(o, "nspid", "%.*s", (int)len, ids);
    }
    struct timespec real, boot;
    struct proc_stat st;
    n = procfile_read("/proc/self/stat", text, sizeof text);
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
        for (size_t i = 0; i < COUNT(mask); i++)
            n += __builtin_popcountl(mask[i]);
        give(o, FACT_CPU_ALLOWED, "%d", n);
    }
    /* This is the name that a hypervisor gives itself; "yes" if there is only
     * the flag. */
#if defined(__x86_64__)
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 31)) return;
    char name[13] = "";
    __cpuid(0x40000000, a, b, c, d);
    memcpy(name, &b, 4);
    memcpy(name + 4, &c, 4);
    memcpy(name + 8, &d, 4);
    give(o, "hypervisor", "%s", name[0] ? name : "yes");
#endif
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
    struct cgroup g;
    cgroup_self(&g);
    if (g.memory_limit > 0)
        give(o, "cgroup_memory_limit_bytes", "%llu",
             (unsigned long long)g.memory_limit);
    if (g.cpu_limit > 0) {
        /* it is written by integers: the host may have a locale with a decimal
         * comma */
        long milli = (long)(g.cpu_limit * 1000 + 0.5);
        give(o, "cgroup_cpu_limit", "%ld.%03ld", milli / 1000, milli % 1000);
    }
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
    char key[80];
    for (const char *p = id->env; *p; p += strlen(p) + 1) {
        const char *value = strchr(p, '=');
        if (!value) continue;
        snprintf(key, sizeof key, "env.%.*s", (int)(value - p), p);
        give(&o, key, "%s", value + 1);
    }
    if (id->env_left_out > 0) give(&o, "env_left_out", "%d", id->env_left_out);
    give_process(&o);
    give_machine(&o);
}
