/* SPDX-License-Identifier: Apache-2.0
 * The turns of a program's loop, where no marker tells them: what repeats on
 * the thread that drives it. They are told only where several signs agree. */
#ifndef MODEL_TURNS_H
#define MODEL_TURNS_H

#include "model/trace.h"

struct turns {
    struct turn {
        int64_t ts, end;
    } * v; /* one behind the other, without a gap */
    size_t n, cap;
    uint32_t thread;     /* the track that drives the loop */
    enum turn_sign sign; /* what ends a turn */
    double alike;        /* the share of turns that do the same */
};

/* Finds the turns of one source; rows are sorted, nested and classified. None
 * where the signs do not agree: v is then NULL. Returns false if out of
 * memory. */
bool turns_find(const struct trace *t, uint32_t source, struct turns *out);
void turns_free(struct turns *turns);

#endif
