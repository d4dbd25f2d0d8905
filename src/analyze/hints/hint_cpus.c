/* SPDX-License-Identifier: Apache-2.0
 * oversubscribed: more threads compute than there are CPUs, so that they take
 * turns on them. The signs are counters that opscope's recorder samples: the
 * program has all of its CPUs, and the system takes threads off them again and
 * again. What fewer threads would give is in no trace: no saving is told. */
#include "analyze/hints/hint.h"

#include "base/facts.h"
#include "base/sum.h"
#include "model/trace.h"
#include <math.h>
#include <stdio.h>

/* Returns the mean of a counter's samples in the source; -1: there are none. */
static double counter_mean(const struct hint_case *c, const char *name) {
    const struct trace *t = c->t;
    str_id id = strs_find(&t->strs, bytes_of(name));
    double mean = -1;
    size_t n = 0;
    for (size_t i = 0; id != STR_NONE && i < t->samples.n; i++) {
        const struct counter *k = &t->counters[t->samples.counter[i]];
        if (k->name != id || k->source != c->source ||
            !isfinite(t->samples.value[i]))
            continue;
        double x = t->samples.value[i];
        mean = n == 0 ? x : mean_step(mean, x, (double)(n + 1));
        n++;
    }
    return mean;
}

static void find_turns(const struct hint_case *c, struct hint_step *s,
                       struct hint_found *f) {
    double cpus = (double)c->cpus;
    if (c->cpus <= 0 || s != &c->steps[0] ||
        !c->t->sources[c->source].by_opscope)
        return;
    double switches = counter_mean(c, COUNTER_INVOLUNTARY);
    if (counter_mean(c, COUNTER_THREADS) <= cpus ||
        counter_mean(c, COUNTER_CPU) < cpus * HINT_CPUS_BUSY_PERCENT ||
        switches < cpus * HINT_SWITCHES)
        return;
    f->told = true;
    hint_saw(f, ROW_NONE, 0);
}

static void say_turns(const struct hint_case *c, const struct hint_found *f,
                      struct hint_words *w) {
    (void)f;
    snprintf(w->title, sizeof w->title,
             "more threads compute than there are CPUs (%lld)",
             (long long)c->cpus);
    snprintf(w->evidence, sizeof w->evidence,
             "%.0f threads; the program has %.0f %% of one CPU, all it may "
             "have, and threads are taken off their CPU %.0f times a second",
             counter_mean(c, COUNTER_THREADS), counter_mean(c, COUNTER_CPU),
             counter_mean(c, COUNTER_INVOLUNTARY));
}

const struct hint_rule hint_oversubscribed = {
    .id = "oversubscribed",
    .effort = EFFORT_PLACE,
    .confidence = "assumed",
    .assumes = "what it gives is in no trace: time the program with as many "
               "threads as CPUs",
    .see = "counters",
    .advice[FW_OTHER] =
        "as many threads as CPUs, over all pools together: OMP_NUM_THREADS, "
        "MKL_NUM_THREADS, torch.set_num_threads(n), "
        "tf.config.threading.set_intra_op_parallelism_threads(n); with several "
        "processes each its share",
    .repair = find_turns,
    .say = say_turns,
};
