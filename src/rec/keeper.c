/* SPDX-License-Identifier: Apache-2.0
 * The thread that stays with the program. The flusher has descriptors of its
 * own and sees none of the program's; what needs those is done here: calls into
 * tracers and drivers, which may open some, and the end of a program whose main
 * thread has left by pthread_exit(). Such a program ends when its last thread
 * does, and ours must not keep it: when only they are left, exit() is called
 * here, as its last thread would have, while its descriptors are still open.
 *
 * It sleeps until it is asked. */
#include "rec/session.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rec/alone.h"
#include "rec/device.h"
#include "rec/keeper.h"
#include "rec/machine/nvml.h"
#include "rec/threads.h"
#include "ring/open.h"

enum job { NONE, COLLECT, COLLECT_LAST, DROP_TABLE, END_PROGRAM, STOP };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool runs;        /* atomic */
    int tid;          /* atomic */
    int listed;       /* the same as /proc has it; atomic */
    enum job job;     /* asked for; NONE when it is done */
    bool full;        /* a batch waits for the flusher */
    bool away;        /* in the program's exit handlers: it does no job */
    sigset_t signals; /* that the thread which started blocks */
    int status;       /* how the program's main thread left */
    struct nvml nvml;
    bool nvml_ready; /* there is a struct to ask */
} keeper;

void keeper_init(void) {
    memset(&keeper, 0, sizeof keeper);
    pthread_mutex_init(&keeper.lock, NULL);
    pthread_cond_init(&keeper.changed, NULL);
}

/* --- the keeper's side --------------------------------------------------- */

static void close_nvml(void) {
    if (!keeper.nvml_ready) return;
    keeper.nvml_ready = false;
    nvml_close(&keeper.nvml);
}

/* Lets the flusher take the batch, which is full. */
static void hand_over(void) {
    pthread_mutex_lock(&keeper.lock);
    keeper.full = true;
    pthread_cond_broadcast(&keeper.changed);
    while (keeper.full) pthread_cond_wait(&keeper.changed, &keeper.lock);
    pthread_mutex_unlock(&keeper.lock);
}

static void done(void) {
    pthread_mutex_lock(&keeper.lock);
    keeper.job = NONE;
    pthread_cond_broadcast(&keeper.changed);
    pthread_mutex_unlock(&keeper.lock);
}

/* ops_stop() then comes from a destructor, in this thread (keeper_serve). */
static void end_program(void) {
    pthread_mutex_lock(&keeper.lock);
    keeper.away = true;
    pthread_mutex_unlock(&keeper.lock);
    done();
    pthread_sigmask(SIG_SETMASK, &keeper.signals, NULL);
    rec_self.ours = false; /* what its handlers record is the program's */
    if (keeper.status == 0) exit(0);
    ops_stop(); /* it left by the system call: no handler runs */
    _exit(keeper.status >> 8 & 0xff);
}

void keeper_serve(void) {
    for (;;) {
        pthread_mutex_lock(&keeper.lock);
        while (keeper.job == NONE)
            pthread_cond_wait(&keeper.changed, &keeper.lock);
        enum job job = keeper.job;
        pthread_mutex_unlock(&keeper.lock);
        if (job == STOP) return;
        if (job == END_PROGRAM) end_program();
        else if (job == DROP_TABLE) rec_own_table();
        else device_take(job == COLLECT_LAST, hand_over);
        done();
    }
}

static void *keeper_run(void *arg) {
    prctl(PR_SET_NAME, "opscope-keep");
    rec_self.ours = true;
    REC_PUBLISH(&keeper.listed, alone_self());
    REC_PUBLISH(&keeper.tid, (int)syscall(SYS_gettid));
    device_start();
    const struct session *s = arg;
    if (!s->set.o.no_machine && !s->set.child) { /* the parent watches */
        nvml_open(&keeper.nvml, NULL,
                  identity_var(&s->id, "CUDA_VISIBLE_DEVICES"));
        REC_PUBLISH(&keeper.nvml_ready, true);
    }
    keeper_serve();
    close_nvml();
    return NULL;
}

/* --- the others' --------------------------------------------------------- */

int keeper_start(const sigset_t *signals) {
    pthread_attr_t a;
    keeper.job = NONE;
    keeper.full = keeper.away = false;
    keeper.signals = *signals;
    rec_thread_attr(&a);
    int error = pthread_create(&keeper.thread, &a, keeper_run, &rec_session);
    pthread_attr_destroy(&a);
    REC_PUBLISH(&keeper.runs, error == 0);
    return error == 0 ? 0
                      : session_problem("no thread for the recorder", error);
}

/* Asks the keeper to do a job, after the job before. Returns false if the
 * keeper is away and will not do it. */
static bool ask(enum job job) {
    pthread_mutex_lock(&keeper.lock);
    while (keeper.job != NONE && !keeper.away)
        pthread_cond_wait(&keeper.changed, &keeper.lock);
    bool here = !keeper.away;
    if (here) keeper.job = job;
    pthread_cond_broadcast(&keeper.changed);
    pthread_mutex_unlock(&keeper.lock);
    return here;
}

bool keeper_is_me(void) {
    return keeper.runs && pthread_equal(keeper.thread, pthread_self());
}

void keeper_come_back(void) {
    pthread_mutex_lock(&keeper.lock);
    keeper.away = false;
    pthread_mutex_unlock(&keeper.lock);
}

void keeper_leave(void) { ask(STOP); }

void keeper_join(void) {
    if (!keeper.runs) return;
    if (keeper_is_me()) close_nvml(); /* inside of exit() */
    else pthread_join(keeper.thread, NULL);
    keeper.runs = false;
}

void keeper_collect(struct encoder *e, bool last) {
    if (!REC_ACQUIRE(&keeper.runs) || !device_any() ||
        !ask(last ? COLLECT_LAST : COLLECT))
        return;
    pthread_mutex_lock(&keeper.lock);
    while (keeper.job != NONE) {
        if (keeper.full) {
            device_encode(e);
            keeper.full = false;
            pthread_cond_broadcast(&keeper.changed);
        }
        pthread_cond_wait(&keeper.changed, &keeper.lock);
    }
    pthread_mutex_unlock(&keeper.lock);
    device_encode(e);
}

void keeper_end_program(int status) {
    keeper.status = status;
    ask(END_PROGRAM);
}
void keeper_drop_table(void) { ask(DROP_TABLE); }

int keeper_listed(void) { return REC_ACQUIRE(&keeper.listed); }
int keeper_tid(void) { return REC_ACQUIRE(&keeper.tid); }

void keeper_sample(void (*give)(void *, const char *, double), void *to) {
    if (REC_ACQUIRE(&keeper.nvml_ready)) nvml_run(&keeper.nvml, give, to);
}

bool keeper_facts(void (*give)(void *, const char *, const char *), void *to) {
    if (rec_session.set.o.no_machine || rec_session.set.child) return true;
    return REC_ACQUIRE(&keeper.nvml_ready) &&
           nvml_facts(&keeper.nvml, give, to);
}
