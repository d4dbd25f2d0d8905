/* SPDX-License-Identifier: Apache-2.0
 * Rank and host from environments as launchers make them; facts against what
 * the system says by other ways. Each environment is set from scratch. */
#include "rec/machine/identity.h"

#include <gnu/libc-version.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* Sets only "A=1 B=2"; values hold no spaces. */
static void set_env(const char *pairs) {
    char text[1024], *save, *p;
    clearenv();
    snprintf(text, sizeof text, "%s", pairs);
    for (p = strtok_r(text, " ", &save); p; p = strtok_r(NULL, " ", &save)) {
        char *eq = strchr(p, '=');
        assert_non_null(eq);
        *eq = '\0';
        setenv(p, eq + 1, 1);
    }
}

static void launchers_in_order_of_trust(void **state) {
    (void)state;
    static const struct {
        const char *env;
        int rank, world, local, size;
        const char *who;
    } cases[] = {
        {"", -1, -1, -1, -1, NULL},
        {"RANK=3 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2", 3, 8, 1, 2,
         "torchrun"},
        {"RANK=3 WORLD_SIZE=8", 3, 8, -1, -1, "torchrun"},
        {"RANK=0 WORLD_SIZE=1", 0, 1, -1, -1, "torchrun"},
        /* not complete, or no sense */
        {"RANK=3", -1, -1, -1, -1, NULL},
        {"WORLD_SIZE=3", -1, -1, -1, -1, NULL},
        {"RANK= WORLD_SIZE=8", -1, -1, -1, -1, NULL},
        {"RANK=8 WORLD_SIZE=8", -1, -1, -1, -1, NULL},
        {"RANK=-1 WORLD_SIZE=8", -1, -1, -1, -1, NULL},
        {"RANK=+1 WORLD_SIZE=8", -1, -1, -1, -1, NULL},
        {"RANK=1x WORLD_SIZE=8", -1, -1, -1, -1, NULL},
        {"RANK=0x1 WORLD_SIZE=8", -1, -1, -1, -1, NULL},
        {"RANK=1 WORLD_SIZE=99999999999", -1, -1, -1, -1, NULL},
        {"RANK=1 WORLD_SIZE=99999999999999999999", -1, -1, -1, -1, NULL},
        {"RANK=1 WORLD_SIZE=8 LOCAL_RANK=9 LOCAL_WORLD_SIZE=4", 1, 8, -1, 4,
         "torchrun"},
        {"RANK=1 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=9", 1, 8, 1, -1,
         "torchrun"},
        /* srun; a batch script by itself is no rank */
        {"SLURM_PROCID=5 SLURM_NTASKS=16 SLURM_LOCALID=1 SLURM_STEP_ID=0 "
         "SLURM_TASKS_PER_NODE=4(x4)",
         5, 16, 1, 4, "SLURM"},
        {"SLURM_PROCID=5 SLURM_NTASKS=16 SLURM_LOCALID=1 SLURM_STEP_ID=0 "
         "SLURM_TASKS_PER_NODE=8(x1),4(x2)",
         5, 16, 1, -1, "SLURM"},
        {"SLURM_PROCID=5 SLURM_NTASKS=16 SLURM_STEP_ID=0 "
         "SLURM_NTASKS_PER_NODE=8",
         5, 16, -1, 8, "SLURM"},
        {"SLURM_PROCID=0 SLURM_NTASKS=16 SLURM_JOB_ID=7", -1, -1, -1, -1, NULL},
        {"SLURM_PROCID=0 SLURM_NTASKS=2(y SLURM_STEP_ID=0", -1, -1, -1, -1,
         NULL},
        /* mpirun in a SLURM job: each process has its daemon's SLURM_PROCID */
        {"SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_STEP_ID=0 "
         "OMPI_COMM_WORLD_RANK=6 OMPI_COMM_WORLD_SIZE=8 "
         "OMPI_COMM_WORLD_LOCAL_RANK=2 OMPI_COMM_WORLD_LOCAL_SIZE=4",
         6, 8, 2, 4, "Open MPI"},
        /* torchrun on each node under srun */
        {"SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_STEP_ID=0 RANK=9 WORLD_SIZE=16",
         9, 16, -1, -1, "torchrun"},
        {"RANK=oops WORLD_SIZE=2 PMI_RANK=1 PMI_SIZE=2", 1, 2, -1, -1, "PMI"},
        {"PMI_RANK=1 PMI_SIZE=4 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2", 1, 4, 1,
         2, "PMI"},
        {"PMI_RANK=3 PMI_SIZE=4 PALS_LOCAL_RANKID=0", 3, 4, 0, -1, "PMI"},
        {"MV2_COMM_WORLD_RANK=2 MV2_COMM_WORLD_SIZE=3", 2, 3, -1, -1,
         "MVAPICH2"},
        {"JSM_NAMESPACE_RANK=2 JSM_NAMESPACE_SIZE=6 "
         "JSM_NAMESPACE_LOCAL_RANK=2",
         2, 6, 2, -1, "jsrun"},
        {"FLUX_TASK_RANK=1 FLUX_JOB_SIZE=4 FLUX_TASK_LOCAL_ID=1", 1, 4, 1, -1,
         "Flux"},
        {"HOROVOD_RANK=1 HOROVOD_SIZE=4 HOROVOD_LOCAL_RANK=1 "
         "HOROVOD_LOCAL_SIZE=4",
         1, 4, 1, 4, "Horovod"},
        {"JAX_PROCESS_ID=1 JAX_NUM_PROCESSES=2", 1, 2, -1, -1, "JAX"},
        {"TPU_WORKER_ID=2 TPU_WORKER_HOSTNAMES=a,b,c", 2, 3, -1, -1, "TPU"},
        {"TPU_WORKER_ID=3 TPU_WORKER_HOSTNAMES=a,b,c", -1, -1, -1, -1, NULL},
        {"PMIX_RANK=3", -1, -1, -1, -1, NULL},
        {"JOB_COMPLETION_INDEX=3", -1, -1, -1, -1, NULL},
        {"TF_CONFIG={\"cluster\":{\"worker\":[\"a:1\",\"b:1\"]},"
         "\"task\":{\"type\":\"worker\",\"index\":1}}",
         1, 2, -1, -1, "TF_CONFIG"},
        {"RANK=0 WORLD_SIZE=4 TF_CONFIG={\"cluster\":{\"worker\":[\"a:1\"]},"
         "\"task\":{\"type\":\"worker\",\"index\":0}}",
         0, 4, -1, -1, "torchrun"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct identity id;
        set_env(cases[i].env);
        identity_read(&id, NULL, 0, 0);
        if (id.rank != cases[i].rank || id.world != cases[i].world ||
            id.local_rank != cases[i].local || id.local_size != cases[i].size ||
            !id.launcher != !cases[i].who ||
            (id.launcher && strcmp(id.launcher, cases[i].who) != 0))
            fail_msg("%s: %d of %d, local %d of %d, %s", cases[i].env, id.rank,
                     id.world, id.local_rank, id.local_size,
                     id.launcher ? id.launcher : "nobody");
    }
}

static void options_come_first(void **state) {
    (void)state;
    struct identity id;
    set_env("RANK=3 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2");
    identity_read(&id, NULL, 5, 6);
    assert_int_equal(id.rank, 5);
    assert_int_equal(id.world, 6);
    assert_int_equal(id.local_rank, -1);
    assert_string_equal(id.launcher, "options");
    identity_read(&id, NULL, 3, 8); /* the same process: local rank holds */
    assert_int_equal(id.local_rank, 1);
    identity_read(&id, NULL, 6, 6); /* no rank of 6 */
    assert_int_equal(id.rank, 3);
    assert_string_equal(id.launcher, "torchrun");
}

static void host_names_fit_file_names(void **state) {
    (void)state;
    struct identity id;
    char own[256];
    set_env("");
    gethostname(own, sizeof own);
    identity_read(&id, NULL, 0, 0);
    assert_int_equal(strlen(id.host), strlen(own) < 127 ? strlen(own) : 127);
    identity_read(&id, "node-7.rack_2", 0, 0);
    assert_string_equal(id.host, "node-7.rack_2");
    identity_read(&id, "../etc/pass wd:1", 0, 0);
    assert_string_equal(id.host, "_._etc_pass_wd_1");
    identity_read(&id, "caf\xc3\xa9", 0, 0);
    assert_string_equal(id.host, "caf__");
    setenv("OPSCOPE_HOST", "other", 1);
    identity_read(&id, "node", 0, 0);
    assert_string_equal(id.host, "other");
    setenv("OPSCOPE_HOST", "", 1);
    identity_read(&id, "node", 0, 0);
    assert_string_equal(id.host, "node");
    char lengthy[1000];
    memset(lengthy, 'x', sizeof lengthy);
    lengthy[999] = '\0';
    identity_read(&id, lengthy, 0, 0);
    assert_int_equal(strlen(id.host), sizeof id.host - 1);
}

static void tf_config_is_counted_chief_first(void **state) {
    (void)state;
    static const struct {
        const char *json;
        int rank, world;
    } cases[] = {
        {"{\"cluster\": {\"worker\": [\"a:1\", \"b:2\"], \"ps\": [\"p:1\"], "
         "\"chief\": [\"c:1\"]}, \"task\": {\"type\": \"worker\", "
         "\"index\": 1}}",
         2, 4},
        {"{\"task\":{\"index\":0,\"type\":\"chief\"},\"cluster\":{\"worker\":"
         "[\"a\"],\"chief\":[\"c\"]}}",
         0, 2},
        {"{\"task\":{\"index\":0,\"type\":\"ps\"},\"cluster\":{\"worker\":"
         "[\"a\"],\"ps\":[\"c\"]},\"x\":[{\"y\":[1,2.5e3,null]},\"\\\"\"]}",
         1, 2},
        {" { \"task\" : { \"type\" : \"worker\" , \"index\" : \"1\" } ,\n"
         "\"cluster\" : { \"worker\" : [ \"a\" , \"b\" ] } } ",
         1, 2},
        {"{\"cluster\":{\"worker\":[\"a\"]},\"task\":{\"type\":\"worker\","
         "\"index\":1}}",
         -1, -1}, /* not in the cluster */
        {"{\"cluster\":{\"worker\":[]},\"task\":{\"type\":\"worker\","
         "\"index\":0}}",
         -1, -1},
        {"{\"cluster\":{\"worker\":[\"a\"]},\"task\":{\"type\":\"evaluator\","
         "\"index\":0}}",
         -1, -1},
        {"{\"cluster\":{\"worker\":[\"a\"]},\"task\":{\"type\":\"worker\"}}",
         -1, -1},
        {"{\"cluster\":{\"worker\":[\"a\"]}}", -1, -1},
        {"{}", -1, -1},
        {"", -1, -1},
        {"[]", -1, -1},
        {"{\"cluster\":{\"worker\":[\"a\"]},\"task\":{\"type\":\"worker\","
         "\"index\":-0}}",
         -1, -1},
        {"{\"cluster\":{\"worker\":[\"a\"]},\"task\":{\"type\":\"worker\","
         "\"index\":99999999999}}",
         -1, -1},
        {"{\"cluster\":{\"worker\":[\"a\"]},\"task\":{\"type\":\"worker\","
         "\"index\":0}} x",
         -1, -1},
        {"{\"cluster\":{\"worker\":\"a\"},\"task\":{\"type\":\"worker\","
         "\"index\":0}}",
         -1, -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int rank = -1, world = -1;
        bool found = tf_config_rank(cases[i].json, &rank, &world);
        if (rank != cases[i].rank || world != cases[i].world ||
            found != (rank >= 0))
            fail_msg("%s: %d of %d", cases[i].json, rank, world);
    }
}

/* Every cut and every changed byte of a good one: it returns, and a rank that
 * it finds is one of the world's. */
static void hostile_tf_config_is_survived(void **state) {
    (void)state;
    const char *good = "{\"cluster\":{\"worker\":[\"a\\\"\",[{\"b\":1}]],"
                       "\"ps\":[1]},\"task\":{\"type\":\"worker\","
                       "\"index\":1},\"e\":{}}";
    static const char with[] = "\"\\{}[]:,0x \xff";
    int rank, world;
    assert_true(tf_config_rank(good, &rank, &world));
    size_t n = strlen(good);
    for (size_t i = 0; i < n; i++) {
        char *cut = strndup(good, i);
        assert_false(tf_config_rank(cut, &rank, &world));
        free(cut);
        for (size_t k = 0; k < sizeof with - 1; k++) {
            char *odd = strdup(good);
            odd[i] = with[k];
            if (tf_config_rank(odd, &rank, &world))
                assert_true(rank >= 0 && rank < world);
            free(odd);
        }
    }
    char deep[5000];
    memset(deep, '[', sizeof deep);
    memcpy(deep, "{\"x\":", 5);
    deep[sizeof deep - 1] = '\0';
    assert_false(tf_config_rank(deep, &rank, &world));
}

struct bag {
    int n;
    char key[200][80];
    char value[200][4200];
};

static void keep(void *to, const char *key, const char *value) {
    struct bag *b = to;
    assert_true(b->n < 200);
    for (int i = 0; i < b->n; i++) assert_string_not_equal(b->key[i], key);
    assert_true(strlen(value) <= 4096);
    snprintf(b->key[b->n], sizeof b->key[0], "%s", key);
    snprintf(b->value[b->n++], sizeof b->value[0], "%s", value);
}

static const char *fact(const struct bag *b, const char *key) {
    for (int i = 0; i < b->n; i++)
        if (strcmp(b->key[i], key) == 0) return b->value[i];
    return "(none)";
}

static struct bag *facts(void) {
    struct bag *b = calloc(1, sizeof *b);
    struct identity id;
    assert_non_null(b);
    identity_read(&id, NULL, 0, 0);
    identity_facts(&id, keep, b);
    return b;
}

static void facts_are_what_the_system_says(void **state) {
    (void)state;
    set_env("RANK=1 WORLD_SIZE=4 LOCAL_RANK=1 CUDA_VISIBLE_DEVICES=2,3 "
            "OMP_NUM_THREADS=6 HOME=/root AWS_SECRET_ACCESS_KEY=hush");
    struct bag *b = facts();
    char text[4096];
    struct utsname u;
    struct sysinfo si;
    uname(&u);
    sysinfo(&si);
    snprintf(text, sizeof text, "%d", (int)getpid());
    assert_string_equal(fact(b, "pid"), text);
    assert_string_equal(fact(b, "cwd"), getcwd(text, sizeof text));
    assert_non_null(strstr(fact(b, "kernel"), u.release));
    snprintf(text, sizeof text, "glibc %s", gnu_get_libc_version());
    assert_string_equal(fact(b, "libc"), text);
    snprintf(text, sizeof text, "%d", get_nprocs());
    assert_string_equal(fact(b, "cpu_count"), text);
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    assert_int_equal(atoi(fact(b, "cpu_allowed")), CPU_COUNT(&set));
    assert_true(strtoull(fact(b, "memory_bytes"), NULL, 10) ==
                (unsigned long long)si.totalram * si.mem_unit);
    assert_int_equal(strlen(fact(b, "boot_id")), 36);
    assert_int_equal(atol(fact(b, "page_bytes")), sysconf(_SC_PAGESIZE));
    assert_non_null(strstr(fact(b, "executable"), "identity"));
    assert_non_null(strstr(fact(b, "argv"), "identity"));
    assert_string_equal(fact(b, "rank_source"), "torchrun");
    assert_string_equal(fact(b, "local_rank"), "1");
    assert_string_equal(fact(b, "env.RANK"), "1");
    assert_string_equal(fact(b, "env.CUDA_VISIBLE_DEVICES"), "2,3");
    assert_string_equal(fact(b, "env.OMP_NUM_THREADS"), "6");
    for (int i = 0; i < b->n; i++) assert_null(strstr(b->value[i], "hush"));
    assert_string_equal(fact(b, "env.HOME"), "(none)");
    free(b);
}

static void the_environment_is_kept_from_the_start(void **state) {
    (void)state;
    struct identity id;
    struct bag *b = calloc(1, sizeof *b);
    char big[5000];
    set_env("RANK=1 CUDA_VISIBLE_DEVICES= HOME=/x");
    identity_read(&id, NULL, 0, 0);
    set_env("RANK=7 WORLD_SIZE=9");
    identity_facts(&id, keep, b);
    assert_string_equal(fact(b, "env.RANK"), "1");
    assert_string_equal(fact(b, "env.WORLD_SIZE"), "(none)");
    assert_string_equal(identity_var(&id, "RANK"), "1");
    assert_string_equal(identity_var(&id, "CUDA_VISIBLE_DEVICES"), "");
    assert_null(identity_var(&id, "WORLD_SIZE"));
    assert_null(identity_var(&id, "HOME"));
    assert_null(identity_var(&id, "RAN"));
    memset(big, 'v', sizeof big);
    big[4999] = '\0';
    static const char *const names[] = {"RANK",      "TF_CONFIG", "POD_NAME",
                                        "NODE_NAME", "HOSTNAME",  "LSB_JOBID"};
    for (int i = 0; i < 6; i++) setenv(names[i], big, 1);
    identity_read(&id, NULL, 0, 0);
    assert_int_equal(id.env_left_out, 3); /* three of 4 KiB, and WORLD_SIZE */
    assert_int_equal(strlen(identity_var(&id, "RANK")), 4096);
    assert_string_equal(identity_var(&id, "WORLD_SIZE"), "9");
    b->n = 0;
    identity_facts(&id, keep, b);
    assert_string_equal(fact(b, "env_left_out"), "3");
    free(b);
}

/* A child that waits a moment before it looks was started a moment ago. */
static void the_start_is_the_process_own(void **state) {
    (void)state;
    struct timespec before, after;
    set_env("");
    clock_gettime(CLOCK_REALTIME, &before);
    pid_t child = fork();
    if (child == 0) {
        nanosleep(&(struct timespec){0, 60000000}, NULL);
        struct bag *b = facts();
        long long t = atoll(fact(b, "start_time_unix_ns"));
        long long t0 = before.tv_sec * 1000000000LL + before.tv_nsec;
        clock_gettime(CLOCK_REALTIME, &after);
        long long t1 = after.tv_sec * 1000000000LL + after.tv_nsec;
        /* in ticks of 10 ms, and 60 ms have passed */
        _exit(t > t0 - 20000000 && t < t1 - 30000000 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void odd_values_become_printable(void **state) {
    (void)state;
    char lengthy[9000];
    memset(lengthy, 'y', sizeof lengthy);
    lengthy[sizeof lengthy - 1] = '\0';
    set_env("");
    setenv("POD_NAME", "caf\xc3\xa9 \xff\xc3- \xed\xa0\x80\x1b[31m\n\xf0\x9f",
           1);
    setenv("NODE_NAME", lengthy, 1);
    struct bag *b = facts();
    assert_string_equal(fact(b, "env.POD_NAME"), "caf\xc3\xa9 ?"
                                                 "?- ?"
                                                 "?"
                                                 "?"
                                                 "?[31m ?"
                                                 "?");
    assert_int_equal(strlen(fact(b, "env.NODE_NAME")), 4096);
    free(b);
}

/* This program again, with these arguments: prints its fact. */
static void print_argv(void *to, const char *key, const char *value) {
    (void)to;
    if (strcmp(key, "argv") == 0) fputs(value, stdout);
}

static void argv_of(const char *a, const char *b, char *out, size_t cap) {
    int p[2];
    assert_int_equal(pipe(p), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(p[1], 1);
        close(p[0]);
        close(p[1]);
        execl("/proc/self/exe", "argv", a, b, (char *)NULL);
        _exit(9);
    }
    close(p[1]);
    size_t n = 0;
    ssize_t got;
    while ((got = read(p[0], out + n, cap - 1 - n)) > 0) n += (size_t)got;
    out[n] = '\0';
    close(p[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void argv_reads_as_a_command_line(void **state) {
    (void)state;
    char out[8192], lengthy[6000];
    argv_of("--lr=0.1", "", out, sizeof out);
    assert_string_equal(out, "argv --lr=0.1 ''");
    argv_of("two words", "it's", out, sizeof out);
    assert_string_equal(out, "argv 'two words' 'it'\\''s'");
    argv_of("-c", "a\nb", out, sizeof out);
    assert_string_equal(out, "argv -c 'a b'");
    memset(lengthy, '\'', sizeof lengthy);
    lengthy[sizeof lengthy - 1] = '\0';
    argv_of(lengthy, "end", out, sizeof out);
    assert_true(strlen(out) <= 4096);
    assert_string_equal(out + strlen(out) - 4, " ...");
    memset(lengthy, 'z', sizeof lengthy - 1);
    argv_of("a", lengthy, out, sizeof out);
    assert_true(strlen(out) <= 4096 && strlen(out) > 4000);
    assert_string_equal(out + strlen(out) - 4, " ...");
}

int main(int argc, char **argv) {
    if (argc > 0 && strcmp(argv[0], "argv") == 0) {
        struct identity id;
        identity_read(&id, NULL, 0, 0);
        identity_facts(&id, print_argv, NULL);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launchers_in_order_of_trust),
        cmocka_unit_test(options_come_first),
        cmocka_unit_test(host_names_fit_file_names),
        cmocka_unit_test(tf_config_is_counted_chief_first),
        cmocka_unit_test(hostile_tf_config_is_survived),
        cmocka_unit_test(facts_are_what_the_system_says),
        cmocka_unit_test(the_environment_is_kept_from_the_start),
        cmocka_unit_test(the_start_is_the_process_own),
        cmocka_unit_test(odd_values_become_printable),
        cmocka_unit_test(argv_reads_as_a_command_line),
    };
    /* the form of the output is told by a variable, which does not last */
    const char *form = getenv("CMOCKA_MESSAGE_OUTPUT");
    if (form != NULL && strcmp(form, "TAP") == 0)
        cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
