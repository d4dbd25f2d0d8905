/* SPDX-License-Identifier: Apache-2.0
 * Arguments on demand: the source's format knows how its bytes are read. */
#include "model/args.h"

#include "base/pb.h"
#include "base/text/json.h"
#include "base/text/json_text.h"
#include "base/text/number.h"
#include <inttypes.h>
#include <math.h>

/* Is it digits alone that fit 64 bits, of which a double would keep 53? */
static bool is_uint(struct bytes b, uint64_t *out) {
    uint64_t v = 0;
    for (size_t i = 0; i < b.n; i++) {
        if (b.p[i] < '0' || b.p[i] > '9' || __builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(b.p[i] - '0'), &v))
            return false;
    }
    *out = v;
    return b.n > 0;
}

/* Reads a JSON value as an argument; the reader moves on. */
static struct arg json_arg(struct json *j) {
    struct arg a = {0};
    uint8_t c = json_peek(j);
    const uint8_t *start = j->p;
    struct json_str s;
    if (c == '"' && json_string(j, &s)) {
        a.type = ARG_TEXT;
        a.text = s.raw;
        a.escaped = s.escaped;
        return a;
    }
    if (c == '-' || (c >= '0' && c <= '9')) {
        struct json_num n = json_number(j);
        a.text = (struct bytes){start, (size_t)(j->p - start)};
        if (n.kind == JSON_EXACT && n.scale == 0) {
            a.type = ARG_INT;
            a.i = n.digits;
        } else if (n.kind == JSON_FLOAT && is_uint(a.text, &a.u)) {
            a.type = ARG_UINT;
        } else if (n.kind != JSON_NAN) {
            a.type = ARG_FLOAT;
            a.f = json_to_double(&n);
        }
        return a;
    }
    json_skip(j);
    a.text = (struct bytes){start, (size_t)(j->p - start)};
    if (c == '{' || c == '[') a.type = ARG_JSON;
    else if (c == 't' || c == 'f') {
        a.type = ARG_BOOL;
        a.i = c == 't';
    }
    return a;
}

/* Gives the args object of a Chrome event. */
static void json_each(struct bytes b, args_each_fn *each, void *ctx) {
    struct json j = json_reader(b);
    struct json_str key;
    /* the object's own end: a list in it that is not closed ends there, too */
    json_skip(&j);
    j = json_reader((struct bytes){b.p, (size_t)(j.p - b.p)});
    if (!json_enter(&j, '{')) return;
    while (json_key(&j, &key)) {
        struct arg a = json_arg(&j);
        if (j.bad || !each(ctx, key.raw, &a)) return;
    }
}

void args_each(const struct trace *t, row_id row, args_each_fn *each,
               void *ctx) {
    uint32_t source;
    struct bytes b = trace_args(t, row, &source);
    if (b.n == 0) return;
    const struct format *format = t->sources[source].format;
    if (format->args_each != NULL) format->args_each(t, row, each, ctx);
    else json_each(b, each, ctx);
}

struct wanted {
    const char *key;
    size_t n;
    struct arg found;
};

static bool take(void *ctx, struct bytes key, const struct arg *a) {
    struct wanted *w = ctx;
    if (!bytes_eq(key, w->key, w->n)) return true;
    w->found = *a;
    return false;
}

struct arg args_get(const struct trace *t, row_id row, const char *key) {
    struct wanted w = {.key = key, .n = strlen(key)};
    args_each(t, row, take, &w);
    return w.found;
}

int64_t args_int(const struct trace *t, row_id row, const char *key,
                 int64_t dflt) {
    struct arg a = args_get(t, row, key);
    switch (a.type) {
    case ARG_INT:
    case ARG_BOOL: return a.i;
    case ARG_UINT: return a.u <= INT64_MAX ? (int64_t)a.u : dflt;
    case ARG_FLOAT: return a.f > -9.2e18 && a.f < 9.2e18 ? (int64_t)a.f : dflt;
    case ARG_TEXT: {
        /* text in a file has bytes behind it that end a number */
        struct json j = json_reader(a.text);
        struct json_num n = json_number(&j);
        int64_t v;
        return n.kind != JSON_NAN && json_to_int(&n, &v) ? v : dflt;
    }
    case ARG_NONE:
    case ARG_JSON: break;
    }
    return dflt;
}

bool args_are_json(const struct trace *t, row_id row) {
    uint32_t source = t->tracks[t->spans.track[row]].source;
    return t->sources[source].format->args_each == NULL;
}

void args_put_json(struct sink *out, const struct arg *a, bool json) {
    char num[NUMBER_MAX];
    switch (a->type) {
    case ARG_INT: sink_int(out, a->i); break;
    case ARG_UINT: sink_printf(out, "%" PRIu64, a->u); break;
    case ARG_BOOL: sink_puts(out, a->i ? "true" : "false"); break;
    case ARG_TEXT:
        if (json) json_put_raw(out, a->text);
        else json_put(out, a->text);
        break;
    case ARG_FLOAT:
        sink_puts(out, isfinite(a->f) ? number_float(a->f, num) : "null");
        break;
    case ARG_JSON: json_put_value(out, a->text); break;
    case ARG_NONE: sink_puts(out, "null"); break;
    }
}

bool args_message(const struct trace *t, row_id row, uint32_t *source,
                  struct bytes *out) {
    struct bytes b = trace_args(t, row, source);
    uint64_t n;
    if (b.n == 0) return false;
    const uint8_t *p = pb_varint(b.p, b.p + b.n, &n);
    if (p == NULL || n > (size_t)(b.p + b.n - p)) return false;
    *out = (struct bytes){p, (size_t)n};
    return true;
}
