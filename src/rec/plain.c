/* SPDX-License-Identifier: Apache-2.0
 * The calls as plain functions, for callers that have no C compiler: each macro
 * or inline function of the header once more, with ops_fn_ in its name. Options
 * come as text, so that nobody has to lay out a struct. */
#include "rec/session.h"

#include "base/text/percent.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- options as text ----------------------------------------------------- */

enum form { FORM_TEXT, FORM_FLAG, FORM_INT, FORM_SIZE };

static const struct option {
    const char *name;
    enum form form;
    size_t at; /* in struct ops_options */
} options[] = {
#define ROW(name, form)                                                        \
    { #name, form, offsetof(struct ops_options, name) }
    ROW(steps, FORM_TEXT),        ROW(flight, FORM_FLAG),
    ROW(signal, FORM_INT),        ROW(demand_steps, FORM_INT),
    ROW(demand_ms, FORM_INT),     ROW(ring_bytes, FORM_SIZE),
    ROW(memory_bytes, FORM_SIZE), ROW(rank, FORM_INT),
    ROW(world, FORM_INT),         ROW(host, FORM_TEXT),
    ROW(run, FORM_TEXT),          ROW(no_machine, FORM_FLAG),
    ROW(no_fork, FORM_FLAG),      ROW(no_tsc, FORM_FLAG),
    ROW(as_given, FORM_FLAG),     ROW(no_demand, FORM_FLAG),
#undef ROW
};

/* Puts a value where it belongs. Returns false if it does not have that
 * form. */
static bool put_option(struct ops_options *o, const struct option *row,
                       char *value) {
    char *member = (char *)o + row->at, *end;
    if (row->form == FORM_TEXT) {
        memcpy(member, &value, sizeof value);
        return true;
    }
    errno = 0;
    long long n = strtoll(value, &end, 10);
    if (end == value || *end != 0 || errno != 0 || n < 0) return false;
    if (row->form == FORM_FLAG && n <= 1) {
        bool on = n == 1;
        memcpy(member, &on, sizeof on);
        return true;
    }
    if (row->form == FORM_INT && n <= INT32_MAX) {
        int v = (int)n;
        memcpy(member, &v, sizeof v);
        return true;
    }
    size_t size = (size_t)n;
    if (row->form == FORM_SIZE) memcpy(member, &size, sizeof size);
    return row->form == FORM_SIZE;
}

/* Sets one "name=value". Returns NULL, or what is wrong with it. */
static const char *set_option(struct ops_options *o, char *text) {
    char *value = strchr(text, '=');
    if (value == NULL) return "it has no value";
    *value++ = 0;
    if (!percent_decode(value)) return "'%' must be followed by two hex digits";
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (strcmp(options[i].name, text) == 0)
            return put_option(o, &options[i], value)
                       ? NULL
                       : "that is no value for it";
    return "there is no such option";
}

static int refuse(const char *option, const char *why) {
    char text[OPS_PROBLEM_MAX];
    struct host_state q;
    snprintf(text, sizeof text, "option '%.100s': %s", option, why);
    host_state_save(&q);
    session_problem(text, 0);
    host_state_restore(&q);
    return -1;
}

int ops_fn_start(const char *logdir, const char *text) {
    char copy[4096];
    struct ops_options o = {0};
    if (text == NULL) text = "";
    size_t n = strnlen(text, sizeof copy);
    if (n == sizeof copy) return refuse("...", "the text is too long");
    memcpy(copy, text, n + 1);
    for (char *at = copy; *at != 0;) {
        char *next = at + strcspn(at, "&");
        if (*next != 0) *next++ = 0;
        const char *why = *at != 0 ? set_option(&o, at) : NULL;
        if (why != NULL) return refuse(at, why);
        at = next;
    }
    return ops_start(logdir, &o);
}

/* --- the calls ----------------------------------------------------------- */

/* Returns the kind for a number from outside; OPS_KIND_OP if it is none. */
static uint32_t known(int kind) {
    return kind >= OPS_KIND_OP && kind <= OPS_KIND_PHASE ? (uint32_t)kind
                                                         : OPS_KIND_OP;
}

bool ops_fn_recording(void) { return ops_recording(); }

void ops_fn_step(int64_t number) { ops_step(number); }
void ops_fn_epoch(int64_t number) { ops_epoch(number); }
void ops_fn_step_end(void) { ops_step_end(); }
void ops_fn_epoch_end(void) { ops_epoch_end(); }

void ops_fn_begin(const char *name) { ops_begin(name); }
void ops_fn_begin_as(int kind, const char *name) {
    ops_begin_as(known(kind), name);
}
void ops_fn_end(void) { ops_end(); }

void ops_fn_arg_int(const char *key, int64_t v) { ops_arg_int(key, v); }
void ops_fn_arg_num(const char *key, double v) { ops_arg_num(key, v); }
void ops_fn_arg_text(const char *key, const char *v) { ops_arg_text(key, v); }

void ops_fn_instant(const char *name) { ops_instant(name); }
void ops_fn_counter(const char *name, double v) { ops_counter(name, v); }
void ops_fn_scalar(const char *tag, int64_t step, double v) {
    ops_scalar(tag, step, v);
}

void ops_fn_flow_out(uint64_t id) { ops_flow_out(id); }
void ops_fn_flow_in(uint64_t id) { ops_flow_in(id); }

void ops_fn_alloc(const void *p, uint64_t bytes, const char *tag) {
    ops_alloc(p, bytes, tag);
}
void ops_fn_free(const void *p) { ops_free(p); }

void ops_fn_async_begin(struct ops_async *a, int kind, const char *name) {
    if (a != NULL) *a = ops_async_begin(known(kind), name);
}
void ops_fn_async_end(struct ops_async *a) { ops_async_end(a); }

void ops_fn_device_span(uint32_t track, const char *name, uint64_t t0,
                        uint64_t t1, uint64_t corr) {
    ops_device_span(track, name, t0, t1, corr);
}
uint64_t ops_fn_correlation(void) { return ops_correlation(); }

int ops_fn_device_tracer_add(const struct ops_device_tracer *t, size_t size) {
    return ops_device_tracer_add_(t, size);
}
