/* SPDX-License-Identifier: Apache-2.0
 * Arguments of a span, parsed only when asked for. JSON sources give the args
 * object of the event; XSpace sources give the event's and its metadata's
 * stats; StepStats the node's fields. This is one view over all of them. */
#ifndef MODEL_ARGS_H
#define MODEL_ARGS_H

#include "base/io/sink.h"
#include "model/format.h"
#include "model/trace.h"

enum arg_type {
    ARG_NONE,
    ARG_INT,
    ARG_UINT,
    ARG_FLOAT,
    ARG_TEXT,
    ARG_BOOL,
    ARG_JSON /* a list or object, as JSON text */
};

struct arg {
    enum arg_type type;
    int64_t i; /* ARG_INT, ARG_BOOL; ARG_UINT in u */
    uint64_t u;
    double f;
    struct bytes text; /* ARG_TEXT: raw bytes between the quotes (escapes not
                           undone when escaped is set), ARG_JSON: raw text */
    bool escaped;
};

/* Returns a span's argument by name; ARG_NONE if it has none. O(size of
 * args). */
struct arg args_get(const struct trace *t, row_id row, const char *key);

/* Returns the argument as an integer (also from text and float), or dflt. */
int64_t args_int(const struct trace *t, row_id row, const char *key,
                 int64_t dflt);

/* Calls each(ctx, key, arg) for every argument, in file order, until it returns
 * false. */
void args_each(const struct trace *t, row_id row, args_each_fn *each,
               void *ctx);

/* Are the texts of the row's arguments as they stand in JSON, with escapes? */
bool args_are_json(const struct trace *t, row_id row);

/* Writes the value as JSON that every reader takes; json is args_are_json() of
 * its row. A value that is not JSON becomes a string. */
void args_put_json(struct sink *out, const struct arg *a, bool json);

/* Finds the message whose length stands at the row's arguments, for importers
 * of protobuf. Returns false if there is none. */
bool args_message(const struct trace *t, row_id row, uint32_t *source,
                  struct bytes *out);

#endif
