/* SPDX-License-Identifier: Apache-2.0
 * Trains a small language model, and records itself doing so. All that
 * opscope asks of a program stands in this file (start, epoch, step, phases,
 * loss); the ops, the loader and the ranks name what they do themselves. */
#include "loader.h"
#include "model.h"
#include "ranks.h"
#include "text.h"

#include <getopt.h>
#include <malloc.h>
#include <opscope/record.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct options {
    int steps, batch, ranks;
    const char *logdir; /* NULL: nothing is recorded */
    char run[32];       /* the same for all ranks */
    int slow_input, leak, small_ops, straggler, own_blas, quiet; /* 0 or 1 */
};

static const char usage[] =
    "usage: demo [OPTION...]\n"
    "Trains a small transformer on sentences that it makes itself.\n\n"
    "  --steps N       batches to train on (100)\n"
    "  --batch N       sequences in a batch, of all ranks together (16)\n"
    "  --ranks N       processes that share the batch (1)\n"
    "  --logdir DIR    record into DIR, for opscope and TensorBoard\n"
    "  --own-blas      do not look for OpenBLAS\n"
    "  --quiet         only the last line\n\n"
    "Faults, for `opscope hints` to find:\n"
    "  --slow-input    the data comes from a slow disk\n"
    "  --leak          attention maps are kept, step after step\n"
    "  --small-ops     a call for every token instead of one for all\n"
    "  --straggler     the last rank evaluates while the others wait\n";

/* The lot of things that one rank trains with. */
struct trainer {
    const struct options *o;
    struct ranks *ranks;
    struct model model;
    struct loader loader;
    struct batch held_out; /* for the rank that evaluates */
    real **maps;           /* one for each step: the leak */
    double *losses, *ms;   /* of each step */
};

enum { CONTEXT = 64, EPOCH_STEPS = 25, EVALUATIONS = 2 };

static struct shape shape_of(const struct options *o) {
    return (struct shape){.batch = o->batch / o->ranks,
                          .context = CONTEXT,
                          .vocabulary = text_vocabulary(),
                          .width = 96,
                          .heads = 4,
                          .layers = 2};
}

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* --- one step -------------------------------------------------------------- */

/* The fault of --leak: kept for a picture that nobody draws. */
static void keep_map(struct trainer *t, int step) {
    const struct shape *s = &t->model.shape;
    size_t n = model_look_size(s);
    t->maps[step] = tensor_new(n, "attention maps");
    memcpy(t->maps[step], t->model.layers[s->layers - 1].kept.look,
           n * sizeof(real));
}

/* The fault of --straggler: the others wait meanwhile. */
static void evaluate(struct trainer *t, int step) {
    OPS_SCOPE_AS(OPS_KIND_PHASE, "evaluate");
    double loss = 0;
    for (int i = 0; i < EVALUATIONS; i++) {
        loss += model_forward(&t->model, t->held_out.tokens,
                              t->held_out.targets) /
                EVALUATIONS;
        model_forget(&t->model);
    }
    ops_scalar("held-out loss", step, loss);
}

static double train_step(struct trainer *t, int step) {
    struct model *m = &t->model;
    struct batch b = loader_next(&t->loader);
    double loss;
    {
        OPS_SCOPE_AS(OPS_KIND_PHASE, "forward");
        loss = model_forward(m, b.tokens, b.targets);
    }
    if (t->o->leak) keep_map(t, step);
    {
        OPS_SCOPE_AS(OPS_KIND_PHASE, "backward");
        model_backward(m, b.tokens);
    }
    batch_free(&b);
    if (t->held_out.tokens != NULL) evaluate(t, step);
    m->gradients[m->size] = (real)loss;
    all_reduce(t->ranks, m->gradients);
    loss = m->gradients[m->size];
    {
        OPS_SCOPE_AS(OPS_KIND_PHASE, "optimizer");
        struct adamw how = {.rate = 3e-3,
                            .decay = 0.01,
                            .beta1 = 0.9,
                            .beta2 = 0.99,
                            .tiny = 1e-8,
                            .step = step + 1};
        model_update(m, &how);
    }
    ops_scalar("loss", step, loss);
    return loss;
}

/* --- all steps -------------------------------------------------------------- */

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The mean of the last tenth: single batches differ. */
static double last_loss(const double *losses, int n) {
    int some = n / 10 > 0 ? n / 10 : 1;
    double sum = 0;
    for (int i = n - some; i < n; i++) sum += losses[i];
    return sum / some;
}

static void train(struct trainer *t) {
    const struct options *o = t->o;
    bool talk = t->ranks->rank == 0;
    for (int i = 0; i < o->steps; i++) {
        double start = now_ms();
        if (i % EPOCH_STEPS == 0) ops_epoch(i / EPOCH_STEPS);
        ops_step(i);
        t->losses[i] = train_step(t, i);
        t->ms[i] = now_ms() - start;
        if (talk && !o->quiet && i % 10 == 0)
            printf("step %4d  loss %.4f  %7.2f ms\n", i, t->losses[i],
                   t->ms[i]);
    }
    ops_epoch_end();
    qsort(t->ms, (size_t)o->steps, sizeof *t->ms, by_value);
    if (talk)
        printf("loss %.4f -> %.4f in %d steps, median step %.2f ms, %s\n",
               t->losses[0], last_loss(t->losses, o->steps), o->steps,
               t->ms[o->steps / 2], blas_name(&t->model.how.blas));
}

/* What one rank does, from start to end. */
static int rank_main(struct ranks *r, void *arg) {
    const struct options *o = arg;
    struct trainer *t = calloc(1, sizeof *t);
    if (t == NULL) return 1;
    struct ops_options record = {.run = o->run};
    char why[OPS_PROBLEM_MAX];
    if (o->logdir != NULL && ops_start(o->logdir, &record) != 0 &&
        ops_problem(why, sizeof why) != 0)
        fprintf(stderr, "demo: %s\n", why);
    t->o = o;
    t->ranks = r;
    t->losses = calloc((size_t)o->steps, sizeof *t->losses);
    t->ms = calloc((size_t)o->steps, sizeof *t->ms);
    t->maps = calloc((size_t)o->steps, sizeof *t->maps);

    struct shape shape = shape_of(o);
    struct how how = {.one_by_one = o->small_ops};
    struct loader_options load = {.steps = o->steps,
                                  .sequences = shape.batch,
                                  .context = shape.context,
                                  .rank = r->rank,
                                  .world = r->world,
                                  .slow = o->slow_input};
    blas_open(&how.blas, o->own_blas);
    model_open(&t->model, &shape, how);
    if (o->straggler && r->rank == r->world - 1)
        t->held_out = batch_held_out(&load);
    bool ok = t->losses && t->ms && t->maps && loader_open(&t->loader, &load);
    if (ok) {
        train(t);
        loader_close(&t->loader);
    }
    if (t->held_out.tokens != NULL) batch_free(&t->held_out);
    model_close(&t->model);
    blas_close(&how.blas);
    ops_stop();
    /* only now: the profile shall show the leak, the system need not have it */
    for (int i = 0; t->maps != NULL && i < o->steps; i++) free(t->maps[i]);
    free(t->maps);
    free(t->ms);
    free(t->losses);
    free(t);
    return ok ? 0 : 1;
}

/* --- the command line -------------------------------------------------------- */

static int wrong(const char *what) {
    fprintf(stderr, "demo: %s\n%s", what, usage);
    return 1;
}

/* A whole number of at least 1, or 0. */
static int count_of(const char *text) {
    char *end;
    long n = strtol(text, &end, 10);
    return *end == '\0' && n > 0 && n <= 1000000 ? (int)n : 0;
}

/* 0: go on; else what to end with, and why was said. */
static int read_options(struct options *o, int argc, char **argv) {
    const struct option known[] = {
        {"steps", required_argument, NULL, 's'},
        {"batch", required_argument, NULL, 'b'},
        {"ranks", required_argument, NULL, 'r'},
        {"logdir", required_argument, NULL, 'd'},
        {"own-blas", no_argument, &o->own_blas, 1},
        {"quiet", no_argument, &o->quiet, 1},
        {"slow-input", no_argument, &o->slow_input, 1},
        {"leak", no_argument, &o->leak, 1},
        {"small-ops", no_argument, &o->small_ops, 1},
        {"straggler", no_argument, &o->straggler, 1},
        {0},
    };
    for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        switch (c) {
        case 's': o->steps = count_of(optarg); break;
        case 'b': o->batch = count_of(optarg); break;
        case 'r': o->ranks = count_of(optarg); break;
        case 'd': o->logdir = optarg; break;
        case '?': return wrong("what is wrong stands above");
        }
    }
    if (optind < argc) return wrong("takes options only");
    if (o->steps == 0 || o->batch == 0 || o->ranks == 0)
        return wrong("--steps, --batch and --ranks take a number from 1 on");
    if (o->batch % o->ranks != 0)
        return wrong("--batch has to be a multiple of --ranks");
    if (o->straggler && o->ranks == 1)
        return wrong("--straggler needs --ranks 2: alone nobody waits");
    return 0;
}

int main(int argc, char **argv) {
    struct options o = {.steps = 100, .batch = 16, .ranks = 1};
    if (argc == 2 && strcmp(argv[1], "--help") == 0)
        return fputs(usage, stdout) < 0;
    if (read_options(&o, argc, argv) != 0) return 1;
    /* Activations come and go in every step: keep their memory, or the system
     * takes it away and hands it out again page by page. */
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    time_t now = time(NULL);
    strftime(o.run, sizeof o.run, "%Y_%m_%d_%H_%M_%S", localtime(&now));
    struct shape shape = shape_of(&o);
    struct ranks ranks;
    if (!ranks_open(&ranks, o.ranks, model_size(&shape) + 1))
        return wrong("no shared memory for so many ranks");
    int status = ranks_run(&ranks, rank_main, &o);
    ranks_close(&ranks);
    return status;
}
