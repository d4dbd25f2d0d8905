/* SPDX-License-Identifier: Apache-2.0
 * cpu-fallback: data is copied out of the device, worked on by the CPU and
 * copied back. Repaired, the op runs on the device: both copies, the waiting
 * and the CPU's time go. */
#include "analyze/hints/hint.h"

#include "analyze/shared/kernel_args.h"
#include "base/sum.h"
#include "model/trace.h"
#include <stdio.h>

/* Does the op copy in that direction? */
static bool copies(const struct hint_step *s, const struct top *p,
                   enum copy_kind kind) {
    if (p->copies == 0) return false;
    for (uint32_t w = p->work; w < p->work_end; w++)
        if (s->copies[w].kind == kind) return true;
    return false;
}

/* What follows a copy out, up to the copy back. */
struct detour {
    size_t end;   /* the top that ends it ... */
    bool back;    /* ... by a copy back; else kernels or the step's end do */
    int64_t cpu;  /* ps of the host before that */
    uint32_t row; /* the op that takes most of it, or ROW_NONE */
};

static struct detour find_back(const struct hint_step *s, size_t out) {
    struct detour d = {.end = out + 1, .row = ROW_NONE};
    int64_t most = -1;
    for (; d.end < s->ntops; d.end++) {
        const struct top *p = &s->tops[d.end];
        if (p->kernels > 0 || p->input) return d;
        d.back = copies(s, p, COPY_H2D);
        if (d.back) return d;
        int64_t host = hint_host(s, p->first, p->end);
        sum_add(&d.cpu, host);
        if (p->row != ROW_NONE && host > most) {
            most = host;
            d.row = p->row;
        }
    }
    return d;
}

static void repair(const struct hint_case *c, struct hint_step *s,
                   struct hint_found *f) {
    /* an exchange by the host takes data out and back, too */
    if (c->host_exchange) return;
    for (size_t i = 0; i < s->ntops; i++) {
        const struct top *out = &s->tops[i];
        if (out->lead || out->row == ROW_NONE ||
            c->t->spans.kind[out->row] != SPAN_OP || !copies(s, out, COPY_D2H))
            continue;
        struct detour d = find_back(s, i);
        if (d.back && d.cpu >= HINT_PAUSE_US * PS_PER_US) {
            hint_remove(s, out->first, s->tops[d.end].end, true);
            hint_saw(f, d.row != ROW_NONE ? d.row : out->row, d.cpu);
            i = d.end;
        } else {
            i = d.end - 1; /* a later copy out would end there, too */
        }
    }
}

static void say(const struct hint_case *c, const struct hint_found *f,
                struct hint_words *w) {
    char a[48], n[48], where[HINT_TEXT];
    snprintf(w->title, sizeof w->title,
             "data leaves the device, is worked on by the CPU and comes back");
    snprintf(w->evidence, sizeof w->evidence,
             "%s, %s of CPU time a step between the copy out and the copy "
             "back, most in %.100s%s",
             hint_count(c, f->count, "time", "times", n),
             hint_time(c, f->time, a), hint_name(c, f->row),
             hint_where(c, f, where));
    snprintf(w->repair, sizeof w->repair,
             "keep the tensor on the device and use the device's op for it "
             "(no .cpu() or .numpy() inside the step)");
}

const struct hint_rule hint_cpu_fallback = {
    .id = "cpu-fallback",
    .in_place = true,
    .confidence = "simulated",
    .assumes = "on the device the work takes no time worth counting",
    .see = "ops",
    .repair = repair,
    .say = say,
};
