/* SPDX-License-Identifier: Apache-2.0
 * Chrome's trace event format, for Perfetto, chrome://tracing and every tool
 * that reads PyTorch's files; and back into opscope with nothing lost that
 * counts.
 *
 *     {"opscope": {...}, <facts under PyTorch's keys>, "traceEvents": [
 *     {"ph":"M", ...}   names of processes and threads
 *     {"ph":"X", ...}   spans          {"ph":"b"/"e", ...}  those that overlap
 *     {"ph":"i", ...}   instants       {"ph":"s"/"f", ...}  arrows
 *     {"ph":"C", ...}   counters and memory in use
 *     ]}
 *
 * Viewers pass over keys that they do not know. Three of ours make the way
 * back exact: "kind" in an event (kind_name), "kind" in a thread's name, and
 * correlation_id in args, which here is one number per launching call. */
#include "export/export.h"

#include "base/array.h"
#include "base/text/json_text.h"
#include "base/text/number.h"
#include "export/places.h"
#include "model/args.h"
#include "model/format.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

struct writer {
    const struct trace *t;
    struct sink *out;
    struct places places;
    bool any;           /* an event stands before this one */
    uint64_t long_left; /* bytes that long texts may still have */
};

/* Writes picoseconds as microseconds, with as many decimals as it takes. */
static void put_us(struct writer *w, int64_t ps) {
    char buf[NUMBER_MAX];
    number_us(ps, 6, buf);
    size_t n = strlen(buf);
    while (buf[n - 1] == '0') n--;
    if (buf[n - 1] == '.') n--;
    sink_write(w->out, buf, n);
}

/* Sources may share a text among any number of events; here each event has its
 * own. A long text is written whole as long as all of them together stay in
 * proportion to what was read; after that only its beginning is, and an
 * ellipsis. */
enum { SHORT_TEXT = 1024, ANY_LONG = 1 << 26, LONG_PER_BYTE = 16 };

/* Returns as much of a text as is to be written. */
static struct bytes fitting(struct writer *w, struct bytes b) {
    size_t n = SHORT_TEXT;
    if (b.n <= SHORT_TEXT) return b;
    if (b.n <= w->long_left) {
        w->long_left -= b.n;
        return b;
    }
    /* no character is cut in two */
    while (n > SHORT_TEXT - 4 && (b.p[n] & 0xc0) == 0x80) n--;
    return (struct bytes){b.p, n};
}

static void put_text(struct writer *w, struct bytes b) {
    char cut[SHORT_TEXT + 4];
    struct bytes part = fitting(w, b);
    if (part.n < b.n) {
        memcpy(cut, part.p, part.n);
        memcpy(cut + part.n, "\xe2\x80\xa6", 3);
        part = (struct bytes){(uint8_t *)cut, part.n + 3};
    }
    json_put(w->out, part);
}

static void put_str(struct writer *w, str_id id) {
    put_text(w, strs_bytes(&w->t->strs, id));
}

/* Writes a key with its punctuation, such as ",\"pid\":", and a whole
 * number. */
static void put_field(struct writer *w, const char *key, int64_t v) {
    sink_puts(w->out, key);
    sink_int(w->out, v);
}

static void event_begin(struct writer *w, const char *ph) {
    sink_puts(w->out, w->any ? ",\n{\"ph\":\"" : "\n{\"ph\":\"");
    sink_puts(w->out, ph);
    sink_putc(w->out, '"');
    w->any = true;
}

/* Writes the process and time of an event that belongs to no thread. */
static void put_when(struct writer *w, int64_t pid, int64_t ts) {
    put_field(w, ",\"pid\":", pid);
    sink_puts(w->out, ",\"ts\":");
    put_us(w, ts);
}

static void put_track(struct writer *w, uint32_t track, int64_t ts) {
    put_when(w, places_pid(&w->places, track), ts);
    put_field(w, ",\"tid\":", w->places.tracks[track].tid);
}

/* The arguments of one span on their way out. */
struct arg_writer {
    struct writer *w;
    bool json; /* the source is JSON: texts are escaped already */
    bool any;
    bool step; /* step_num is written by us, or means nothing here */
    struct json_keys keys;
};

static void next_arg(struct arg_writer *a) {
    sink_puts(a->w->out, a->any ? "," : ",\"args\":{");
    a->any = true;
}

static bool put_arg(void *ctx, struct bytes key, const struct arg *v) {
    struct arg_writer *a = ctx;
    if (a->step && BYTES_IS(key, "step_num")) return true;
    bool correlation = BYTES_IS(key, "correlation_id");
    if (correlation && a->json) return true; /* such a number as ours */
    /* JSON shares nothing: each text stands in the file each time */
    if (!a->json) key = fitting(a->w, key);
    next_arg(a);
    json_put_key(a->w->out, &a->keys,
                 correlation ? bytes_of("correlation") : key, a->json);
    sink_putc(a->w->out, ':');
    if (v->type == ARG_TEXT && !a->json) put_text(a->w, v->text);
    /* a number with more digits than a double holds keeps them */
    else if (v->type == ARG_FLOAT && a->json && json_is_strict(v->text))
        sink_write(a->w->out, v->text.p, v->text.n);
    else args_put_json(a->w->out, v, a->json);
    return !a->w->out->broken;
}

/* Returns the number of the step that the row marks, or -1. */
static int64_t step_of(const struct trace *t, row_id row) {
    uint32_t k = t->spans.step[row];
    if (k == ROW_NONE || t->steps[k].marker != row) return -1;
    const struct source *s = &t->sources[t->steps[k].source];
    return s->step_rule == STEPS_BY_MARKER ? t->steps[k].number : -1;
}

static void put_args(struct writer *w, row_id row, int64_t step) {
    const struct trace *t = w->t;
    struct arg_writer a = {
        .w = w,
        .step = step >= 0,
        .json = args_are_json(t, row),
    };
    args_each(t, row, put_arg, &a);
    /* the launching call: that of a device span, or the row itself */
    row_id launch = trace_launch_of(t, row);
    size_t first;
    if (launch == ROW_NONE && trace_links_from(t, row, &first) > first)
        launch = row;
    if (launch != ROW_NONE) {
        next_arg(&a);
        put_field(w, "\"correlation_id\":", (int64_t)launch + 1);
    }
    if (step >= 0) {
        next_arg(&a);
        put_field(w, "\"step_num\":", step);
    }
    if (a.any) sink_putc(w->out, '}');
}

/* Writes the category. Spans whose source gave them none have PyTorch's word
 * for their kind, which other tools know. */
static void put_cat(struct writer *w, row_id row) {
    /* clang-format off */
    static const char *const words[SPAN_KINDS] = {
        [SPAN_OTHER] = "other",       [SPAN_OP] = "cpu_op",
        [SPAN_ANNOTATION] = "user_annotation", [SPAN_API] = "cuda_runtime",
        [SPAN_PYTHON] = "python_function", [SPAN_RUNTIME] = "runtime",
        [SPAN_KERNEL] = "kernel",     [SPAN_COPY] = "gpu_memcpy",
        [SPAN_MEMSET] = "gpu_memset", [SPAN_SYNC] = "cuda_sync",
        [SPAN_OVERHEAD] = "overhead",
    };
    /* clang-format on */
    const struct trace *t = w->t;
    str_id cat = t->cats[span_cat(t, row)].text;
    uint8_t kind = t->spans.kind[row];
    sink_puts(w->out, ",\"cat\":");
    if (strs_bytes(&t->strs, cat).n > 0) put_str(w, cat);
    else
        json_put(w->out,
                 bytes_of(words[kind < SPAN_KINDS ? kind : SPAN_OTHER]));
}

/* Writes how a kernel was launched (struct launch), for readers of ours. */
static void put_launch(struct writer *w, row_id row) {
    struct launch l;
    if (!launch_of_cat(w->t, span_cat(w->t, row), &l)) return;
    const struct bytes facts[] = {l.hlo_op, l.tf_op, l.details, l.module};
    sink_puts(w->out, ",\"launch\":");
    for (size_t i = 0; i < COUNT(facts); i++) {
        sink_putc(w->out, i == 0 ? '[' : ',');
        put_text(w, facts[i]);
    }
    sink_putc(w->out, ']');
}

static void put_span(struct writer *w, row_id row) {
    const struct spans *s = &w->t->spans;
    bool async = s->flags[row] & SPAN_ASYNC;
    bool instant = s->flags[row] & SPAN_INSTANT;
    int64_t step = step_of(w->t, row);
    event_begin(w, async ? (instant ? "n" : "b") : instant ? "i" : "X");
    put_cat(w, row);
    sink_puts(w->out, ",\"name\":");
    put_str(w, s->name[row]);
    put_track(w, s->track[row], s->ts[row]);
    if (async) {
        put_field(w, ",\"id\":", row);
    } else if (instant) {
        sink_puts(w->out, ",\"s\":\"t\"");
    } else {
        sink_puts(w->out, ",\"dur\":");
        put_us(w, s->dur[row]);
    }
    uint8_t flags = w->t->spans.flags[row];
    if (step >= 0) flags |= SPAN_STEPMARK;
    sink_puts(w->out, ",\"kind\":\"");
    sink_puts(w->out, kind_name(w->t->spans.kind[row]));
    for (unsigned i = 0; i < 8; i++) {
        if (!(flags & 1u << i) || flag_name(i) == NULL) continue;
        sink_putc(w->out, ' ');
        sink_puts(w->out, flag_name(i));
    }
    sink_putc(w->out, '"');
    put_launch(w, row);
    put_args(w, row, step);
    sink_putc(w->out, '}');
    if (!async || instant) return;
    event_begin(w, "e"); /* the end of one that may overlap others */
    put_cat(w, row);
    put_field(w, ",\"id\":", row);
    sink_puts(w->out, ",\"name\":");
    put_str(w, s->name[row]);
    put_track(w, s->track[row], span_end(w->t, row));
    sink_putc(w->out, '}');
}

/* Writes one end of an arrow, at the start of a span. */
static void put_arrow(struct writer *w, const char *ph, const char *cat,
                      size_t id, row_id row) {
    const struct spans *s = &w->t->spans;
    event_begin(w, ph);
    sink_puts(w->out, ",\"cat\":\"");
    sink_puts(w->out, cat);
    sink_puts(w->out, "\",\"name\":\"");
    sink_puts(w->out, cat);
    put_field(w, "\",\"id\":", (int64_t)id);
    put_track(w, s->track[row], s->ts[row]);
    sink_puts(w->out, *ph == 'f' ? ",\"bp\":\"e\"}" : "}");
}

/* Returns the number of a device in the file: the ranks of a job each have a
 * GPU 0. */
static int64_t device_number(const struct trace *t, uint32_t device) {
    return t->nprocesses > 1 ? device : t->devices[device].ordinal;
}

/* Writes an allocation, a free, or (failed) an allocation that failed, as
 * PyTorch writes it, and what more the source said. All are a mem_oom here,
 * which has the members of the others. */
static void put_memory_instant(struct writer *w, const struct mem_oom *m,
                               bool failed, uint64_t addr, str_id what) {
    const struct allocator *a = &w->t->allocators[m->allocator];
    bool thread = m->track != ROW_NONE;
    event_begin(w, "i");
    sink_puts(w->out, ",\"cat\":\"cpu_instant_event\",\"name\":\"");
    sink_puts(w->out, failed ? "[OutOfMemory]\"" : "[memory]\"");
    if (thread) put_track(w, m->track, m->ts);
    else put_when(w, places_pid_of(&w->places, a->source, a->device), m->ts);
    sink_puts(w->out, thread ? ",\"s\":\"t\"" : ",\"s\":\"p\"");
    /* PyTorch's numbers for kinds of device */
    enum { C10_CPU = 0, C10_CUDA = 1, C10_XLA = 9 };
    put_field(w, ",\"args\":{\"Device Type\":",
              a->device == ROW_NONE                         ? C10_CPU
              : w->t->devices[a->device].kind == DEVICE_TPU ? C10_XLA
                                                            : C10_CUDA);
    put_field(w, ",\"Device Id\":",
              a->device == ROW_NONE ? -1 : device_number(w->t, a->device));
    put_field(w, ",\"Bytes\":", m->bytes);
    /* it is signed: readers keep 63 bits of a number */
    if (addr != 0) put_field(w, ",\"Addr\":", (int64_t)addr);
    if (m->allocated >= 0) put_field(w, ",\"Total Allocated\":", m->allocated);
    if (m->allocated == MEM_APART) put_field(w, ",\"Total Allocated\":", 0);
    if (m->reserved >= 0) put_field(w, ",\"Total Reserved\":", m->reserved);
    if (m->device_free >= 0) put_field(w, ",\"Device Free\":", m->device_free);
    sink_puts(w->out, ",\"Allocator\":");
    put_str(w, a->name);
    if (what != 0) {
        sink_puts(w->out, ",\"What\":");
        put_str(w, what);
    }
    sink_puts(w->out, "}}");
}

/* Writes the curve of memory in use, for viewers; readers have the instants. */
static void put_memory_curve(struct writer *w, const struct mem_oom *m) {
    const struct allocator *a = &w->t->allocators[m->allocator];
    if (m->allocated < 0 && m->reserved < 0) return;
    event_begin(w, "C");
    sink_puts(w->out, ",\"cat\":\"[memory]\",\"name\":");
    put_str(w, a->name);
    put_when(w, places_pid_of(&w->places, a->source, a->device), m->ts);
    sink_puts(w->out, ",\"args\":{");
    if (m->allocated >= 0) put_field(w, "\"allocated\":", m->allocated);
    if (m->allocated >= 0 && m->reserved >= 0) sink_putc(w->out, ',');
    if (m->reserved >= 0) put_field(w, "\"reserved\":", m->reserved);
    sink_puts(w->out, "}}");
}

static void put_memory(struct writer *w) {
    const struct mem_events *m = &w->t->mem;
    for (size_t i = 0; i < m->n && !w->out->broken; i++) {
        const struct mem_oom event = {
            .ts = m->ts[i],
            .bytes = m->bytes[i],
            .device_free = -1,
            .allocated = m->allocated[i],
            .reserved = mem_reserved(w->t, i),
            .track = m->track[i],
            .allocator = m->allocator[i],
        };
        put_memory_instant(w, &event, false, m->addr[i], m->what[i]);
        put_memory_curve(w, &event);
    }
    for (size_t i = 0; i < w->t->nooms && !w->out->broken; i++)
        put_memory_instant(w, &w->t->ooms[i], true, 0, 0);
}

/* Writes a sample. The reader names a counter "name: series". */
static void put_sample(struct writer *w, size_t i, int64_t pid) {
    const struct samples *s = &w->t->samples;
    const struct counter *c = &w->t->counters[s->counter[i]];
    struct bytes name = strs_bytes(&w->t->strs, c->name);
    struct bytes series = {name.p, 0};
    for (size_t k = name.n; k-- > 1;) {
        if (name.p[k] != ' ' || name.p[k - 1] != ':') continue;
        series = (struct bytes){name.p + k + 1, name.n - k - 1};
        name.n = k - 1;
        break;
    }
    char num[NUMBER_MAX];
    event_begin(w, "C");
    sink_puts(w->out, ",\"name\":");
    put_text(w, name);
    put_when(w, pid, s->ts[i]);
    sink_puts(w->out, ",\"args\":{");
    put_text(w, series);
    sink_putc(w->out, ':');
    sink_puts(w->out, number_float(s->value[i], num));
    sink_puts(w->out, "}}");
}

/* Returns where a counter is drawn: the process that it counts in, if that has
 * a track; else one of its own, so that equal names stay apart. */
static int64_t counter_pid(const struct writer *w, uint32_t i) {
    const struct trace *t = w->t;
    const struct counter *c = &t->counters[i];
    if (c->pid == NO_PID || c->device != ROW_NONE)
        return places_pid_of(&w->places, c->source, c->device);
    for (uint32_t k = 0; k < t->ntracks; k++)
        if (t->tracks[k].source == c->source && t->tracks[k].pid == c->pid &&
            t->tracks[k].device == ROW_NONE)
            return places_pid(&w->places, k);
    return (int64_t)w->places.next_pid + i;
}

/* Writes "host rank 0 ", as far as it is known. */
static void put_owner(struct sink *out, const struct trace *t,
                      const struct source *s) {
    if (s->host != 0) sink_printf(out, "%s ", strs_text(&t->strs, s->host));
    if (s->rank >= 0) sink_printf(out, "rank %" PRId64 " ", s->rank);
}

/* Writes "/device:GPU:0", and behind another colon the name that the program
 * gave it. Two ranks may give theirs the same name: then the owner is written,
 * too. */
static void put_device_name(struct sink *out, const struct trace *t,
                            uint32_t device) {
    static const char *const kinds[] = {"GPU", "TPU", "CPU", "OTHER"};
    const struct device *d = &t->devices[device];
    sink_printf(out, "/device:%s:%" PRId64, kinds[d->kind],
                device_number(t, device));
    if (!d->labelled) return;
    sink_putc(out, ':');
    if (t->nprocesses > 1) put_owner(out, t, &t->sources[d->source]);
    sink_puts(out, strs_text(&t->strs, d->label));
}

/* Writes "host rank 0 /device:GPU:0"; readers know devices by the part behind
 * the last blank. */
static void put_process(struct writer *w, const struct process *p) {
    const struct trace *t = w->t;
    struct sink name;
    sink_memory(&name);
    put_owner(&name, t, &t->sources[p->source]);
    if (p->device != ROW_NONE) put_device_name(&name, t, p->device);
    else if (p->pid < 0) /* had a name for a number: the profiler's own */
        sink_puts(&name, "profiler");
    else sink_printf(&name, "process %" PRId64, p->pid);
    event_begin(w, "M");
    put_field(w, ",\"name\":\"process_name\",\"pid\":", p->pid);
    sink_puts(w->out, ",\"args\":{\"name\":");
    put_text(w, (struct bytes){(uint8_t *)name.buf, name.n});
    sink_puts(w->out, "}}");
    if (name.broken) w->out->broken = name.broken;
    sink_free(&name);
}

static void put_thread(struct writer *w, uint32_t track) {
    const struct track *tr = &w->t->tracks[track];
    /* a word for kinds of track that a reader could not tell by itself */
    const char *word = tr->kind == TRACK_STREAM    ? "stream"
                       : tr->kind == TRACK_DERIVED ? "derived"
                       : tr->kind == TRACK_OTHER   ? "other"
                                                   : NULL;
    if (tr->kind == TRACK_ASYNC || tr->kind == TRACK_PYTHON) return;
    if (!tr->named && word == NULL) return;
    event_begin(w, "M");
    put_field(w, ",\"name\":\"thread_name\",\"pid\":",
              places_pid(&w->places, track));
    put_field(w, ",\"tid\":", w->places.tracks[track].tid);
    sink_puts(w->out, ",\"args\":{\"name\":");
    put_str(w, tr->name);
    if (word != NULL) sink_printf(w->out, ",\"kind\":\"%s\"", word);
    sink_puts(w->out, "}}");
}

/* Writes a key of the file's frame. */
static void put_key(struct writer *w, const char *key) {
    sink_puts(w->out, ",\n");
    json_put(w->out, bytes_of(key));
    sink_puts(w->out, ": ");
}

/* Writes what is known of a device, under PyTorch's keys and two more. */
static void put_device(struct writer *w, uint32_t device) {
    const struct device *d = &w->t->devices[device];
    const struct {
        const char *key;
        int64_t v;
    } facts[] = {
        {", \"totalGlobalMem\":", d->memory_bytes},
        {", \"numSms\":", d->units},
        {", \"computeMajor\":", d->cc_major},
        {", \"computeMinor\":", d->cc_minor},
        {", \"maxThreadsPerMultiprocessor\":", d->threads_per_unit},
        {", \"clockHz\":", d->clock_hz},
        {", \"bandwidthBytesPerSecond\":", d->bandwidth_bytes_per_s},
    };
    put_field(w, "{\"id\":", device_number(w->t, device));
    if (d->model != 0) {
        sink_puts(w->out, ", \"name\": ");
        put_str(w, d->model);
    }
    for (size_t i = 0; i < COUNT(facts); i++)
        if (facts[i].v != 0) put_field(w, facts[i].key, facts[i].v);
    sink_putc(w->out, '}');
}

/* Does the key stand for something here? The source's own must not repeat
 * it. */
static bool is_reserved(struct bytes key) {
    static const char *const words[] = {
        "opscope",         "traceEvents",      "baseTimeNanoseconds",
        "displayTimeUnit", "deviceProperties", "host_name",
        "distributedInfo", "profile_memory",   "record_shapes",
        "with_stack",
    };
    for (size_t i = 0; i < COUNT(words); i++)
        if (bytes_eq(key, words[i], strlen(words[i]))) return true;
    return false;
}

/* Writes a key that the source gave, once: "key", then "key 2", "key 3". */
static void put_meta_key(struct writer *w, struct map *seen, str_id key) {
    uint32_t *times = map_at(seen, key);
    const char *text = strs_text(&w->t->strs, key);
    if (times == NULL) {
        w->out->broken = ENOMEM;
        return;
    }
    if (*times == MAP_NONE) *times = 0;
    if (++*times == 1) {
        put_key(w, text);
        return;
    }
    struct sink name;
    sink_memory(&name);
    sink_printf(&name, "%s %" PRIu32, text, *times);
    sink_putc(&name, '\0');
    if (name.broken) w->out->broken = name.broken;
    else put_key(w, name.buf);
    sink_free(&name);
}

/* Writes all that stands before the events. "opscope" comes first: it tells
 * readers whose file this is. */
static void put_head(struct writer *w) {
    const struct trace *t = w->t;
    bool clock = false, memory = false, shapes = false, stacks = false;
    int decimals = 0;
    int64_t slack = 0;
    for (size_t i = 0; i < t->nsources; i++) {
        const struct source *s = &t->sources[i];
        clock |= s->has_clock;
        memory |= s->has_memory;
        shapes |= s->has_shapes;
        stacks |= s->has_stacks;
        if (s->decimals > decimals) decimals = s->decimals;
        if (s->rounding_ps > slack) slack = s->rounding_ps;
    }
    sink_puts(w->out, "{\"opscope\": {\"version\": \"" OPS_VERSION "\"");
    put_field(w, ", \"decimals\":", decimals);
    put_field(w, ", \"slack_ps\":", slack);
    sink_puts(w->out, "},\n\"displayTimeUnit\": \"ms\"");
    if (clock) {
        put_key(w, "baseTimeNanoseconds");
        sink_int(w->out, t->epoch_ns);
    }
    if (memory) sink_puts(w->out, ",\n\"profile_memory\": 1");
    if (shapes) sink_puts(w->out, ",\n\"record_shapes\": 1");
    if (stacks) sink_puts(w->out, ",\n\"with_stack\": 1");
    /* This is what the reader of this file would want to know of its only
     * source. */
    if (t->nprocesses == 1) {
        const struct source *s = &t->sources[0];
        if (s->host != 0) {
            put_key(w, "host_name");
            put_str(w, s->host);
        }
        if (s->rank >= 0) {
            put_key(w, "distributedInfo");
            put_field(w, "{\"rank\":", s->rank);
            if (s->world_size >= 0)
                put_field(w, ", \"world_size\":", s->world_size);
            sink_putc(w->out, '}');
        }
    }
    size_t n = 0;
    for (size_t i = 0; i < t->ndevices; i++) {
        if (t->devices[i].kind != DEVICE_GPU) continue;
        if (n++ == 0) put_key(w, "deviceProperties");
        sink_puts(w->out, n == 1 ? "[" : ", ");
        put_device(w, (uint32_t)i);
    }
    if (n > 0) sink_putc(w->out, ']');
    /* This is what else the only source said of itself. */
    struct map seen = {0};
    for (size_t i = 0; i < t->nmeta && t->nprocesses == 1; i++) {
        if (is_reserved(strs_bytes(&t->strs, t->meta[i].key))) continue;
        put_meta_key(w, &seen, t->meta[i].key);
        json_put_value(w->out, strs_bytes(&t->strs, t->meta[i].value));
    }
    map_free(&seen);
}

static int chrome_write(const struct trace *t, struct sink *out,
                        struct ops_err *e) {
    struct writer w = {.t = t, .out = out, .long_left = ANY_LONG};
    for (size_t i = 0; i < t->nsources; i++)
        w.long_left += LONG_PER_BYTE * (uint64_t)t->sources[i].bytes.n;
    if (!places_init(&w.places, t)) {
        places_free(&w.places);
        return fail_oom(e);
    }
    put_head(&w);
    put_key(&w, "traceEvents");
    sink_putc(out, '[');
    for (size_t i = 0; i < w.places.n; i++)
        put_process(&w, &w.places.processes[i]);
    for (size_t i = 0; i < t->ntracks; i++) put_thread(&w, (uint32_t)i);
    for (size_t i = 0; i < t->spans.n && !out->broken; i++)
        put_span(&w, (row_id)i);
    /* Launches become arrows that viewers draw, as do the source's own. */
    const struct links *l = &t->links;
    const struct flows *f = &t->flows;
    for (size_t i = 0; i < l->n && !out->broken; i++) {
        put_arrow(&w, "s", "launch", i, l->host[i]);
        put_arrow(&w, "f", "launch", i, l->device[i]);
    }
    for (size_t i = 0; i < f->n && !out->broken; i++) {
        put_arrow(&w, "s", "flow", i, f->from[i]);
        put_arrow(&w, "f", "flow", i, f->to[i]);
    }
    put_memory(&w);
    const struct samples *s = &t->samples;
    int64_t pid = 0;
    for (size_t i = 0; i < s->n && !out->broken; i++) {
        if (i == 0 || s->counter[i] != s->counter[i - 1])
            pid = counter_pid(&w, s->counter[i]);
        if (isfinite(s->value[i])) put_sample(&w, i, pid);
    }
    sink_puts(out, "\n]}\n");
    places_free(&w.places);
    return 0;
}

const struct exporter exporter_chrome = {
    .name = "chrome",
    .suffix = ".json",
    .help = "Chrome trace event JSON: Perfetto, chrome://tracing, TensorBoard",
    .write = chrome_write,
};
