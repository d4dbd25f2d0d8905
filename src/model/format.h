/* SPDX-License-Identifier: Apache-2.0
 * What other layers must know of a format: how its arguments are read, and what
 * its rows tell. An importer has one (import/import.h), and every source that
 * it made carries it; no other layer asks which format that is. */
#ifndef MODEL_FORMAT_H
#define MODEL_FORMAT_H

#include "base/bytes.h"
#include "model/ids.h"
#include <stdbool.h>

struct arg; /* model/args.h */
struct source;
struct trace;

/* Receives one argument; returns false to stop. */
typedef bool args_each_fn(void *ctx, struct bytes key, const struct arg *a);

/* What a profile may lack. */
enum missing_what {
    MISSING_DEVICE, /* no device was recorded */
    MISSING_MEMORY, /* no memory events were recorded */
    MISSING_SHAPES, /* no input shapes were recorded */
    MISSING_STACKS, /* no Python stacks were recorded */
    MISSING_KINDS,
};

/* What such a file is beside others in a folder. */
enum format_role {
    ROLE_PROFILE, /* a profile that stands for itself */
    ROLE_CAPTURE, /* a capture of which plain ones beside it are views */
    ROLE_RUNNING, /* what a program that still runs is about to write */
    ROLE_PLAIN,   /* events of any program, which may be a profile */
    ROLE_CURVES,  /* scalars: the profile only where there is nothing else */
    ROLE_MEMORY,  /* memory of a process that another file tells the time of */
};

/* The profiler that writes such files. */
enum format_writer {
    WRITER_ANY,
    WRITER_TORCH,
    WRITER_TF,
    WRITER_XPROF, /* TensorFlow or JAX: the names tell which */
};

struct format {
    const char *name; /* "kineto", as users see it */
    enum format_role role;
    enum format_writer writer;
    /* Gives the arguments of a row that has some; NULL if they are a JSON
     * object. */
    void (*args_each)(const struct trace *t, row_id row, args_each_fn *each,
                      void *ctx);
    /* How to have next time what is not in it, by enum missing_what; NULL: see
     * fix_all. */
    const char *fix[MISSING_KINDS];
    const char *fix_jax[MISSING_KINDS]; /* where JAX wrote it */
    const char *fix_all;
    bool scopes_in_names; /* ops are named by scope: "model/dense/MatMul" */
    bool allocs_name_ops; /* an allocation says which op made it */
    bool has_programs;    /* programs of XLA may be in it */
};

/* Are the source's rows those of torch's own tables? */
bool source_is_torchs(const struct source *s);

#endif
