/* SPDX-License-Identifier: Apache-2.0
 * What a thread of the program has and must find again: its signal mask, its
 * cancellation and its errno. All code of ours that takes a lock or makes a
 * system call in a thread of the program stands between these two calls: no
 * handler runs there (it might call us again), and the thread is not
 * cancelled. */
#ifndef REC_HOST_STATE_H
#define REC_HOST_STATE_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>

struct host_state {
    sigset_t mask;
    int cancel, type, error; /* state and type of cancellation, errno */
};

static inline void host_state_save(struct host_state *h) {
    sigset_t all;
    h->error = errno;
    sigfillset(&all);
    /* a cancellation that is on its way looks only at the type */
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &h->type);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &h->cancel);
    pthread_sigmask(SIG_SETMASK, &all, &h->mask);
}

static inline void host_state_restore(const struct host_state *h) {
    pthread_setcancelstate(h->cancel, NULL);
    pthread_setcanceltype(h->type, NULL);
    errno = h->error;
    /* this comes last: a handler that waited may leave from here by a jump */
    pthread_sigmask(SIG_SETMASK, &h->mask, NULL);
}

#endif
