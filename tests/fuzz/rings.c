/* SPDX-License-Identifier: Apache-2.0
 * rings: where everything in a ring file lies, for a program that is not C.
 *
 *     rings layout       "NAME OFFSET SIZE [COUNT STRIDE]" for each field, then
 *                        "NAME = VALUE" for each constant. Fields of a table
 *                        are at their offset in the first entry
 *     rings record DIR   records into DIR, with its rings beside it, and is
 *                        killed in the middle of it */
#include "opscope/record.h"
#include "ring/ring_map.h"
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIELD(where, type, field)                                              \
    printf(where "." #field " %zu %zu\n", offsetof(struct type, field),        \
           sizeof((struct type *)0)->field)
#define TABLE(where, type, field)                                              \
    printf(where "." #field " %zu %zu %zu %zu\n",                              \
           offsetof(struct type, field), sizeof((struct type *)0)->field[0],   \
           sizeof((struct type *)0)->field /                                   \
               sizeof((struct type *)0)->field[0],                             \
           sizeof((struct type *)0)->field[0])
#define NUMBER(name) printf(#name " = %lld\n", (long long)(name))

static void layout_head(void) {
    FIELD("head", rec_head, magic);
    FIELD("head", rec_head, version);
    FIELD("head", rec_head, head_bytes);
    FIELD("head", rec_head, pid);
    FIELD("head", rec_head, gen);
    FIELD("head", rec_head, file_bytes);
    FIELD("head", rec_head, segs_at);
    FIELD("head", rec_head, asyncs_at);
    FIELD("head", rec_head, names_at);
    FIELD("head", rec_head, text_at);
    FIELD("head", rec_head, stem);
    FIELD("head", rec_head, host);
    FIELD("head", rec_head, events);
    FIELD("head", rec_head, world_rank);
    FIELD("head", rec_head, flight);
    FIELD("head", rec_head, tsc);
    FIELD("head", rec_head, start_tick);
    FIELD("head", rec_head, start_mono_ns);
    FIELD("head", rec_head, start_unix_ns);
    FIELD("head", rec_head, clock_resolution_ps);
    FIELD("head", rec_head, cost_ps);
    FIELD("head", rec_head, last_tick);
    FIELD("head", rec_head, nsegs);
    FIELD("head", rec_head, nnames);
    FIELD("head", rec_head, ntext);
    FIELD("head", rec_head, nrings);
    FIELD("head", rec_head, ntracks);
    FIELD("head", rec_head, ndevices);
    FIELD("head", rec_head, active);
    FIELD("head", rec_head, done);
    FIELD("head", rec_head, lost.no_ring);
    FIELD("head", rec_head, lost.names);
    FIELD("head", rec_head, drops_write);
    FIELD("head", rec_head, commit[0].part);
    TABLE("head", rec_head, commit[0].bytes);
    TABLE("head", rec_head, commit[0].names);
    FIELD("head", rec_head, commit[0].events);
    FIELD("head", rec_head, commit[0].scalar_bytes);
    FIELD("head", rec_head, commit[0].closed);
    TABLE("head", rec_head, commit);
    TABLE("head", rec_head, devices);
    TABLE("head", rec_head, tracks);
    FIELD("track", rec_track, device);
    FIELD("track", rec_track, queue);
    TABLE("head", rec_head, rings);
    FIELD("head", rec_head, rings[0].at);
    FIELD("head", rec_head, rings[0].bytes);
}

static void layout_ring(void) {
    FIELD("ring", rec_ring, head);
    FIELD("ring", rec_ring, write_limit);
    FIELD("ring", rec_ring, depth);
    FIELD("ring", rec_ring, args_top);
    FIELD("ring", rec_ring, marks);
    FIELD("ring", rec_ring, step);
    FIELD("ring", rec_ring, epoch);
    FIELD("ring", rec_ring, step_time);
    FIELD("ring", rec_ring, epoch_time);
    TABLE("ring", rec_ring, lost);
    TABLE("ring", rec_ring, tail);
    FIELD("ring", rec_ring, reusable_to);
    TABLE("ring", rec_ring, reported);
    FIELD("ring", rec_ring, first_slot);
    FIELD("ring", rec_ring, slots);
    FIELD("ring", rec_ring, backed_slots);
    FIELD("ring", rec_ring, state);
    FIELD("ring", rec_ring, tid);
    FIELD("ring", rec_ring, thread);
    FIELD("ring", rec_ring, died);
    FIELD("ring", rec_ring, name);
    TABLE("ring", rec_ring, frames);
    TABLE("ring", rec_ring, args);
    FIELD("frame", rec_frame, time);
    FIELD("frame", rec_frame, name);
    FIELD("frame", rec_frame, args);
}

static void layout_tables(void) {
    struct rec_head h = {0};
    FIELD("seg", rec_seg, tick);
    FIELD("seg", rec_seg, ps);
    FIELD("seg", rec_seg, mult);
    FIELD("async", rec_async, time);
    FIELD("async", rec_async, name);
    FIELD("name", rec_name, at);
    FIELD("name", rec_name, bytes);
    FIELD("name", rec_name, kind);
    FIELD("slot", rec_slot, time);
    FIELD("slot", rec_slot, rest);
    size_t first_ring = rec_layout(&h);
    NUMBER(first_ring);
    NUMBER(h.segs_at);
    NUMBER(h.asyncs_at);
    NUMBER(h.names_at);
    NUMBER(h.text_at);
    NUMBER(sizeof(struct rec_head));
    NUMBER(sizeof(struct rec_ring));
    NUMBER(sizeof(struct rec_seg));
    NUMBER(sizeof(struct rec_async));
    NUMBER(sizeof(struct rec_name));
    NUMBER(sizeof(struct rec_slot));
}

static int layout(void) {
    layout_head();
    layout_ring();
    layout_tables();
    NUMBER(REC_VERSION);
    NUMBER(REC_PAGE);
    NUMBER(REC_RINGS);
    NUMBER(REC_SEGS);
    NUMBER(REC_ASYNCS);
    NUMBER(REC_NAMES);
    NUMBER(REC_TEXT);
    NUMBER(REC_RING_HEAD);
    NUMBER(REC_CONT_BYTES);
    NUMBER(REC_KINDS);
    NUMBER(REC_CONT);
    NUMBER(REC_SCOPE);
    NUMBER(REC_SCOPE_X);
    NUMBER(REC_STEP);
    NUMBER(REC_EPOCH);
    NUMBER(REC_INSTANT);
    NUMBER(REC_COUNTER);
    NUMBER(REC_ALLOC);
    NUMBER(REC_FREE);
    NUMBER(REC_ASYNC);
    NUMBER(REC_DEVICE);
    NUMBER(REC_SCALAR);
    NUMBER(REC_ARG_INT);
    NUMBER(REC_RING_LIVE);
    NUMBER(REC_RING_ENDED);
    NUMBER(REC_IN_STEP);
    NUMBER(REC_IN_EPOCH);
    NUMBER(OPS_KIND_OP);
    NUMBER(OPS_KEY_);
    NUMBER(OPS_COUNT_);
    NUMBER(OPS_TAG_);
    printf("REC_MAGIC = %s\n", REC_MAGIC);
    return 0;
}

/* --- a program that is killed ------------------------------------------- */

static void *load(void *none) {
    (void)none;
    ops_thread_name("loader");
    for (int i = 0; i < 40; i++) {
        OPS_SCOPE_AS(OPS_KIND_INPUT, "read");
        usleep(500);
    }
    return NULL;
}

static int record(const char *dir) {
    pthread_t t;
    void *p = malloc(4096);
    if (ops_start(dir, NULL) != 0) return 1;
    if (pthread_create(&t, NULL, load, NULL) != 0) return 1;
    for (int i = 0; i < 30; i++) {
        ops_step(i);
        OPS_SCOPE("work");
        ops_arg_int("size", i);
        ops_alloc(p, 4096, "weights");
        ops_scalar("loss", i, 1.0 / (i + 1));
        usleep(8000);
        ops_free(p);
    }
    OPS_SCOPE("open");
    ops_alloc(p, 4096, "activations");
    pthread_join(t, NULL);
    kill(getpid(), SIGKILL);
    return 1;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "layout") == 0) return layout();
    if (argc == 3 && strcmp(argv[1], "record") == 0) return record(argv[2]);
    fprintf(stderr, "usage: rings layout | rings record DIR\n");
    return 2;
}
