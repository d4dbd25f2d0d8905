/* SPDX-License-Identifier: Apache-2.0
 * Errors of every opscope call: a code for programs, a sentence for people. */
#ifndef OPSCOPE_ERR_H
#define OPSCOPE_ERR_H

enum ops_code {
    OPS_OK = 0,
    OPS_EIO = -1,     /* the system refused: open, read, write */
    OPS_EFORMAT = -2, /* the bytes are not what they claim to be */
    OPS_EUNSUP = -3,  /* understood, but not supported here */
    OPS_EUSAGE = -4,  /* the caller asked for something that is not there */
    OPS_ELIMIT = -5,  /* a limit was hit: memory, size, depth */
    OPS_ECANCEL = -6, /* the caller's own progress() said so */
};

/* The struct keeps this size for ever. */
struct ops_err {
    int code;
    char text[512]; /* one sentence, no newline, always terminated */
};

#endif
