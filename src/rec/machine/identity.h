/* SPDX-License-Identifier: Apache-2.0
 * Who this process is: host, rank, and the facts about program and machine that
 * a profile keeps. All is read once, at the start, from the environment (named
 * variables only: the rest may hold secrets) and from /proc and /sys. */
#ifndef REC_MACHINE_IDENTITY_H
#define REC_MACHINE_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>

struct identity {
    char host[128];  /* fit for a file's name: letters, digits, '.', '-', '_' */
    int rank, world; /* -1: not known */
    int local_rank, local_size; /* on this host; -1: not known */
    const char *launcher; /* who said so: "torchrun", "SLURM", "options", ...;
                             NULL: nobody */
    /* The kept variables (identity.c) that were set, "NAME=value" and a 0 each,
     * then a 0: later nothing calls getenv, which a setenv would disturb. */
    char env[16384];
    int env_left_out; /* did not fit */
};

/* Finds host and rank. The host is OPSCOPE_HOST, else `host` (NULL or "":
 * none), else gethostname. The rank is that of the arguments when world > 0 and
 * 0 <= rank < world, else that of the first launcher whose variables are
 * complete and make sense. Calls getenv, so only at the start. */
void identity_read(struct identity *id, const char *host, int rank, int world);

/* Returns what a variable was at identity_read; NULL if it was not set or is
 * not kept. A value is cut at 4 KiB. */
const char *identity_var(const struct identity *id, const char *name);

/* Rank and world by TensorFlow's TF_CONFIG:
 *     {"cluster": {"chief": ["host:port"], "worker": ["...", "..."]},
 *      "task": {"type": "worker", "index": 0}}
 * Tasks are counted through chief, master, worker, evaluator, ps. One thread at
 * a time. Returns false if the text is not JSON, or its task is not in its
 * cluster. */
bool tf_config_rank(const char *text, int *rank, int *world);

/* Takes a fact; both texts are valid only during the call. */
typedef void identity_give(void *to, const char *key, const char *value);

/* Gives everything known, each key once; what is not there is not given.
 * Values are cut at 4 KiB (argv then ends in " ..."), and are printable UTF-8,
 * with "?" in place of what is not.
 *     rank_source local_rank local_world_size env_left_out     from id
 *     env.<NAME>                 each variable that is kept, and set
 *     argv cwd executable pid nspid start_time_unix_ns
 *     boot_id kernel hypervisor cpu_model cpu_count cpu_allowed memory_bytes
 *     cgroup_memory_limit_bytes cgroup_cpu_limit    cores, "2.5"
 *     libc page_bytes
 * host_name, rank and world_size are the caller's to write. From any thread,
 * any number of times. */
void identity_facts(const struct identity *id, identity_give *give, void *to);

#endif
