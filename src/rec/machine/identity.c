/* SPDX-License-Identifier: Apache-2.0
 * Host and rank; the facts are in identity_facts.c.
 *
 * A launcher counts when both rank and world are there, are whole numbers and
 * fit together: RANK alone may be anybody's variable. Order: who started this
 * very process comes before who started its parent. mpirun inside of a SLURM
 * job starts its daemons with srun, and each process inherits the daemon's
 * SLURM_PROCID: so SLURM stands behind MPI, and needs a variable that only
 * steps (srun) have, since a batch script itself has SLURM_PROCID=0 too. */
#include "rec/machine/identity.h"

#include "rec/machine/identity_env.h"
#include "rec/machine/tf_config.h"
#include "ring/procfile.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VALUE = 4096 }; /* bytes kept of a variable */

/* Names of variables; several, separated by '|': the first that is set. */
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

/* The value of the first variable of "A|B" that is set and not empty. */
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

/* A whole number below 2^31, or -1. "4(x2)", SLURM's way to say 4 on each of
 * two nodes, is 4; "4,3" is no single number. */
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

/* TPU hosts: the worker's number, and a list of all. */
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
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers && !found; i++)
        found = ask_launcher(&launchers[i], id);
    if (fits(rank, world)) {
        /* The local rank is the launcher's, if it means the same process. */
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
    for (char *p = id->host; *p; p++) {
        bool fine = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                    (*p >= '0' && *p <= '9') || strchr("._-", *p);
        if (!fine || (p == id->host && *p == '.')) *p = '_';
    }
}

static void read_env(struct identity *id) {
    size_t n = 0;
    id->env_left_out = 0;
    for (size_t i = 0; identity_env[i]; i++) {
        const char *v = secure_getenv(identity_env[i]);
        if (!v) continue;
        size_t name = strlen(identity_env[i]), value = strnlen(v, VALUE);
        if (n + name + value + 3 > sizeof id->env) {
            id->env_left_out++;
            continue;
        }
        memcpy(id->env + n, identity_env[i], name);
        id->env[n + name] = '=';
        memcpy(id->env + n + name + 1, v, value);
        n += name + 1 + value;
        id->env[n++] = '\0';
    }
    id->env[n] = '\0';
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
    read_env(id);
}

/* clang-format off */
const char *const identity_env[] = {
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
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", NULL,
};
/* clang-format on */
