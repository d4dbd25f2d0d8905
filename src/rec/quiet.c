/* SPDX-License-Identifier: Apache-2.0
 * Signals, cancellation and errno, put away and taken out again. */
#include "rec/quiet.h"

#include <errno.h>
#include <pthread.h>

void quiet_begin(struct quiet *q) {
    sigset_t all;
    q->error = errno;
    sigfillset(&all);
    /* a cancellation that is on its way looks at the type only */
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &q->type);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &q->cancel);
    pthread_sigmask(SIG_SETMASK, &all, &q->mask);
}

void quiet_end(const struct quiet *q) {
    pthread_setcancelstate(q->cancel, NULL);
    pthread_setcanceltype(q->type, NULL);
    errno = q->error;
    /* last: a handler that waited may leave from here by a jump */
    pthread_sigmask(SIG_SETMASK, &q->mask, NULL);
}
