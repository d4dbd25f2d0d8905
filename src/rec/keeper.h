/* SPDX-License-Identifier: Apache-2.0
 * The thread that stays with the program: it shares the program's descriptors,
 * keeps them open when the program's last thread has ended, and does what must
 * be done with them. */
#ifndef REC_KEEPER_H
#define REC_KEEPER_H

#include <signal.h>
#include <stdbool.h>

struct encoder;

/* Starts it. All signals of the caller are blocked by now; `signals` are those
 * that the caller blocks itself. Returns 0; -1, and ops_problem(). */
int keeper_start(const sigset_t *signals);
/* From the flusher, at its end: the keeper ends too. Then it is joined. */
void keeper_leave(void);
void keeper_join(void);
/* Once in a process, and in each child of a fork. */
void keeper_init(void);
/* When the program was ended by the keeper, ops_stop() runs in it: then it
 * serves the flusher until that is done. */
bool keeper_is_me(void);
void keeper_come_back(void);
void keeper_serve(void);
/* From the flusher. Lets the devices' tracers hand over what they have, for the
 * last time where told. */
void keeper_collect(struct encoder *e, bool last);
/* The program has no thread any more: ends it, as its last one would have
 * (status: of the main thread). */
void keeper_end_program(int status);
int keeper_tid(void);    /* 0: it does not run yet */
int keeper_listed(void); /* the same as /proc has it */
/* Nobody else has the keeper's table any more: it holds nothing open. */
void keeper_drop_table(void);
/* Counters of GPUs, when there are any. */
void keeper_sample(void (*give)(void *, const char *, double), void *to);
bool keeper_facts(void (*give)(void *, const char *, const char *), void *to);

#endif
