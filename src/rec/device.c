/* SPDX-License-Identifier: Apache-2.0
 * Devices that the program or an accelerator's tracer reports on: their names
 * and queues, and the tracers' records, whose ticks become host time by two
 * readings of both clocks: one when tracing begins, one at each collection.
 *
 * Tracers are called in the keeper, which has the program's descriptors: they
 * may open some. The files are the flusher's. Between the two stands a batch of
 * records, filled by the one while the other waits, and the other way round. */
#include "rec/session.h"

#include <stdio.h>
#include <string.h>

#include "base/facts.h"
#include "base/sized.h"
#include "rec/device.h"
#include "rec/memory.h"
#include "rec/names.h"
#include "ring/clock.h"

enum { TRACERS = REC_DEVICES, BATCH = 4096 };

/* What a tracer gave: work of a device, or a sample of a counter. */
struct given {
    bool counter;
    double value;
    struct encoder_device d; /* of a counter: name and start */
};

struct tracer {
    const struct ops_device_tracer *key; /* the program's own; NULL: none */
    struct ops_device_tracer t;
    bool running;
    uint64_t dev0, host0; /* ticks and ns at the start */
    uint64_t width0;      /* ns that both readings took then */
    double ns_per_tick;   /* 0: its ticks are ns of ops_now() */
    double error;         /* at most, of ns_per_tick */
    uint64_t lost;
    uint32_t gen; /* of the session that it runs in */
};

/* `tables` guards the session's lists of devices and queues: the flusher adds
 * to them too, and may not wait for the session's own lock, whose holder may be
 * waiting for the flusher. */
static struct {
    pthread_mutex_t lock, tables;
    struct tracer v[TRACERS];
    struct given batch[BATCH];
    uint32_t n; /* in the batch */
    void (*full)(void);
} all = {.lock = PTHREAD_MUTEX_INITIALIZER,
         .tables = PTHREAD_MUTEX_INITIALIZER};

/* --- names of devices and queues ----------------------------------------- */

/* Returns the device's number; 0 if there are too many. `tables` is held. */
static uint32_t device_number(struct rec_head *h, const char *name) {
    for (uint32_t i = 0; i < h->ndevices; i++)
        if (strncmp(h->devices[i].name, name, sizeof h->devices[i].name - 1) ==
            0)
            return i + 1;
    if (h->ndevices == REC_DEVICES) return 0;
    snprintf(h->devices[h->ndevices].name, sizeof h->devices[0].name, "%s",
             name);
    REC_PUBLISH(&h->ndevices, h->ndevices + 1);
    return h->ndevices;
}

static uint32_t track_find(struct rec_head *h, const char *device,
                           const char *queue) {
    uint32_t dev = device_number(h, device);
    if (dev == 0 ||
        (h->ntracks == 0 && !memory_back(h->tracks, sizeof h->tracks)))
        return 0;
    for (uint32_t i = 0; i < h->ntracks; i++)
        if (h->tracks[i].device == dev &&
            strncmp(h->tracks[i].queue, queue, sizeof h->tracks[i].queue - 1) ==
                0)
            return i + 1;
    if (h->ntracks == REC_TRACKS) return 0;
    struct rec_track *t = &h->tracks[h->ntracks];
    t->device = dev;
    snprintf(t->queue, sizeof t->queue, "%s", queue);
    REC_PUBLISH(&h->ntracks, h->ntracks + 1);
    return h->ntracks;
}

static uint32_t track_number(struct rec_head *h, const char *device,
                             const char *queue) {
    pthread_mutex_lock(&all.tables);
    uint32_t n = track_find(h, device, queue);
    pthread_mutex_unlock(&all.tables);
    return n;
}

uint32_t ops_device_track(const char *device, const char *queue) {
    struct session *s = &rec_session;
    struct host_state q;
    if (device == NULL) device = "(null)";
    if (queue == NULL) queue = "(null)";
    if (OPS_STATE_() & OPS_PENDING_BIT_) session_child();
    if (OPS_STATE_() == 0) return 0;
    session_lock(&q);
    uint32_t n = s->gen == 0 ? 0 : track_number(s->map.head, device, queue);
    session_unlock(&q);
    return n;
}

/* --- tracers ------------------------------------------------------------- */

static const char *device_name(const struct ops_device_tracer *t) {
    return t->device != NULL ? t->device : "(null)";
}

/* A tracer without the calls that it must have is refused. Members that the
 * caller's struct does not have yet are 0. */
int ops_device_tracer_add_(const struct ops_device_tracer *t, size_t size) {
    struct host_state q;
    int result = -1;
    struct ops_device_tracer own = {0};
    copy_sized(&own, sizeof own, t, size);
    if (own.start == NULL || own.stop == NULL || own.collect == NULL) return -1;
    host_state_save(&q);
    pthread_mutex_lock(&all.lock);
    for (int i = 0; i < TRACERS && result != 0; i++) {
        if (all.v[i].key != NULL) continue;
        memset(&all.v[i], 0, sizeof all.v[i]);
        all.v[i].key = t;
        all.v[i].t = own;
        result = 0;
    }
    pthread_mutex_unlock(&all.lock);
    host_state_restore(&q);
    return result;
}

/* After this returns no call into the tracer is going on or will come. */
void ops_device_tracer_remove(const struct ops_device_tracer *t) {
    struct host_state q;
    if (t == NULL) return;
    if (OPS_STATE_() >> OPS_GEN_SHIFT_ != 0) ops_flush();
    host_state_save(&q);
    pthread_mutex_lock(&all.lock);
    for (int i = 0; i < TRACERS; i++) {
        struct tracer *x = &all.v[i];
        if (x->key != t) continue;
        if (x->running) x->t.stop(x->t.self);
        x->key = NULL;
    }
    pthread_mutex_unlock(&all.lock);
    host_state_restore(&q);
}

/* Reads both clocks at one moment: the device's between two reads of ours.
 * Returns how far apart those were. */
static uint64_t both_clocks(const struct ops_device_tracer *t, uint64_t *dev,
                            uint64_t *host) {
    uint64_t width = UINT64_MAX;
    for (int i = 0; i < 5; i++) {
        uint64_t a = rec_mono_ns(), d = t->clock(t->self), b = rec_mono_ns();
        if (b - a >= width) continue;
        width = b - a;
        *dev = d;
        *host = a + (b - a) / 2;
    }
    return width;
}

static void tracer_begin(struct tracer *x) {
    x->gen = rec_session.gen;
    x->running = x->t.start(x->t.self) == 0;
    x->ns_per_tick = 0;
    if (x->running && x->t.clock != NULL)
        x->width0 = both_clocks(&x->t, &x->dev0, &x->host0);
}

void device_forget(void) {
    pthread_mutex_init(&all.lock, NULL);
    pthread_mutex_init(&all.tables, NULL);
    memset(all.v, 0, sizeof all.v);
}

bool device_any(void) {
    bool any = false;
    pthread_mutex_lock(&all.lock);
    for (int i = 0; i < TRACERS; i++) any |= all.v[i].key != NULL;
    pthread_mutex_unlock(&all.lock);
    return any;
}

void device_start(void) {
    pthread_mutex_lock(&all.lock);
    for (int i = 0; i < TRACERS; i++)
        if (all.v[i].key != NULL) tracer_begin(&all.v[i]);
    pthread_mutex_unlock(&all.lock);
}

/* Finds the rate over the whole time since the start: the longer, the better. A
 * reading that was interrupted tells less than the one before, and would move
 * the work of one collection against that of the next. */
static void measure(struct tracer *x) {
    uint64_t dev = x->dev0, host = x->host0;
    if (x->t.clock == NULL) return;
    uint64_t width = both_clocks(&x->t, &dev, &host);
    if (dev <= x->dev0 || host <= x->host0) return;
    double ticks = (double)(dev - x->dev0);
    double error = (double)(width + x->width0) / 2 / ticks;
    if (x->ns_per_tick != 0 && error > x->error) return;
    x->ns_per_tick = (double)(host - x->host0) / ticks;
    x->error = error;
}

static uint64_t to_ps(const struct tracer *x, uint64_t tick) {
    const struct rec_head *h = rec_session.map.head;
    if (x->t.clock == NULL) return rec_ps_of_ns(h, tick);
    double ns = x->ns_per_tick * (tick >= x->dev0 ? (double)(tick - x->dev0)
                                                  : -(double)(x->dev0 - tick));
    double ps = ((double)(int64_t)(x->host0 - h->start_mono_ns) + ns) * 1000;
    return ps > 0 ? (uint64_t)ps : 0;
}

/* Takes one record; its struct may be longer or shorter than ours. */
static void tracer_take(void *to, const struct ops_device_record *theirs,
                        size_t size) {
    struct tracer *x = to;
    struct rec_head *h = rec_session.map.head;
    struct ops_device_record r = {0};
    copy_sized(&r, sizeof r, theirs, size);
    uint64_t a = to_ps(x, r.t0), b = to_ps(x, r.t1);
    struct given g = {.counter = r.what == OPS_DEVICE_COUNTER,
                      .value = r.value};
    g.d = (struct encoder_device){.kind = r.what,
                                  .start_ps = a,
                                  .dur_ps = b > a ? b - a : 0,
                                  .corr = r.corr,
                                  .bytes = r.bytes};
    if (!g.counter && theirs != NULL)
        g.d.track = track_number(h, device_name(&x->t),
                                 r.queue != NULL ? r.queue : "queue");
    if (!g.counter && g.d.track == 0) {
        x->lost++;
        return;
    }
    g.d.name = names_intern(r.name, g.counter ? OPS_COUNT_ : OPS_KIND_OP);
    if (all.n == BATCH) all.full();
    all.batch[all.n++] = g;
}

void device_take(bool last, void (*full)(void)) {
    pthread_mutex_lock(&all.lock);
    all.full = full;
    for (int i = 0; i < TRACERS; i++) {
        struct tracer *x = &all.v[i];
        if (x->key == NULL) continue;
        if (x->gen != rec_session.gen) tracer_begin(x);
        if (!x->running) continue;
        if (last) x->t.stop(x->t.self);
        measure(x);
        x->lost += x->t.collect(x->t.self, tracer_take, x);
        if (last) x->running = false;
    }
    pthread_mutex_unlock(&all.lock);
}

void device_encode(struct encoder *e) {
    e->nnames = REC_NAMES; /* names were interned meanwhile */
    for (uint32_t i = 0; i < all.n; i++) {
        const struct given *g = &all.batch[i];
        if (g->counter) encoder_counter(e, g->d.name, g->value, g->d.start_ps);
        else encoder_device(e, &g->d);
    }
    all.n = 0;
}

static void tracer_facts(struct tracer *x, struct encoder *e) {
    struct rec_head *h = rec_session.map.head;
    pthread_mutex_lock(&all.tables);
    uint32_t file = device_number(h, device_name(&x->t));
    pthread_mutex_unlock(&all.tables);
    if (file == 0) return;
    for (const char *const *f = x->t.facts; f != NULL && f[0] != NULL; f += 2)
        encoder_fact(e, file, f[0], f[1] != NULL ? f[1] : "");
    if (x->lost > 0) encoder_fact_int(e, file, FACT_DROPPED, (int64_t)x->lost);
}

void device_facts(struct encoder *e) {
    e->nnames = REC_NAMES;
    pthread_mutex_lock(&all.lock);
    for (int i = 0; i < TRACERS; i++) {
        if (all.v[i].key != NULL && all.v[i].gen == rec_session.gen)
            tracer_facts(&all.v[i], e);
        all.v[i].gen = 0;
    }
    pthread_mutex_unlock(&all.lock);
}
