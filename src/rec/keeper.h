/* SPDX-License-Identifier: Apache-2.0
 * The keeper, a thread that stays with the program: it shares the program's
 * descriptors, keeps them open when the program's last thread has ended, and
 * does what must be done with them. */
#ifndef REC_KEEPER_H
#define REC_KEEPER_H

#include <signal.h>
#include <stdbool.h>

struct encoder;

/* Starts the keeper. All signals of the caller are blocked by now; `signals`
 * are those that the caller blocks itself. Returns 0; -1, and ops_problem(). */
int keeper_start(const sigset_t *signals);
/* The flusher tells the keeper to end, at its own end; then it is joined. */
void keeper_leave(void);
void keeper_join(void);
/* Is called once in a process, and in each child of a fork. */
void keeper_init(void);
/* Is the calling thread the keeper? When the keeper ends the program,
 * ops_stop() runs in the keeper, which then serves the flusher until that is
 * done. */
bool keeper_is_me(void);
void keeper_come_back(void);
void keeper_serve(void);
/* Lets the devices' tracers hand over what they have, for the last time if last
 * is set. The flusher calls it. */
void keeper_collect(struct encoder *e, bool last);
/* Ends the program, which has no thread any more, as its last thread would
 * have. status is that of the main thread. */
void keeper_end_program(int status);
int keeper_tid(void);    /* 0: it does not run yet */
int keeper_listed(void); /* the same as /proc has it */
/* Leaves the keeper's table, which nobody else has any more, so that it holds
 * nothing open. */
void keeper_drop_table(void);
/* Gives the counters of GPUs, when there are any. */
void keeper_sample(void (*give)(void *, const char *, double), void *to);
bool keeper_facts(void (*give)(void *, const char *, const char *), void *to);

#endif
