/* SPDX-License-Identifier: Apache-2.0
 * An open-addressed table that only grows. A writer (one at a time) fills the
 * entry, then publishes its number in the table (release): a reader that finds
 * a number finds the entry whole. */
#include "rec/names.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "opscope/record.h"
#include "rec/host_state.h"
#include "rec/memory.h"
#include "ring/text.h"

enum {
    TABLE = 1 << 19, /* at most half full */
    NAME_MAX_BYTES = 1024,
    DENIED_RETRY = 4096,
    FIRST = 2,
    GROW = 4 << 10,
};

static struct {
    pthread_mutex_t lock;
    uint32_t *table;    /* TABLE numbers; 0: free */
    struct rec_name *v; /* REC_NAMES */
    char *text;         /* REC_TEXT */
    uint32_t n, ntext;
    bool full;       /* no name will ever be added */
    uint32_t denied; /* there was no memory for one, so many uses ago */
    struct ring_map *session;
    uint64_t names_to, text_to; /* what the session's file has memory for */
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint32_t hash(const char *s, size_t n, uint32_t kind) {
    uint64_t h = 0xcbf29ce484222325u ^ kind;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)s[i]) * 0x100000001b3u;
    return (uint32_t)(h ^ h >> 29);
}

/* Returns the number, or 0; *slot becomes where it stands or belongs. */
static uint32_t names_find(const char *s, size_t n, uint32_t kind,
                           uint32_t *slot) {
    uint32_t *table = REC_ACQUIRE(&all.table);
    *slot = 0;
    if (table == NULL) return 0;
    for (uint32_t i = hash(s, n, kind) % TABLE;; i = (i + 1) % TABLE) {
        uint32_t id = REC_ACQUIRE(&table[i]);
        const struct rec_name *e = &all.v[id];
        *slot = i;
        if (id == 0) return 0;
        if (e->bytes == n && e->kind == kind &&
            memcmp(all.text + e->at, s, n) == 0)
            return id;
    }
}

static void *reserve(size_t bytes) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static bool make_tables(void) {
    if (all.table != NULL) return true;
    if (all.v == NULL) all.v = reserve(REC_NAMES * sizeof *all.v);
    if (all.text == NULL) all.text = reserve(REC_TEXT);
    uint32_t *t = all.v != NULL && all.text != NULL ? reserve(TABLE * sizeof *t)
                                                    : NULL;
    if (t == NULL) return false;
    static const char other[] = "(names beyond the limit)";
    memcpy(all.text, other, sizeof other - 1);
    all.v[0] = all.v[1] = (struct rec_name){0, sizeof other - 1, OPS_KIND_OP};
    all.n = FIRST;
    all.ntext = sizeof other - 1;
    REC_PUBLISH(&all.table, t);
    return true;
}

/* Makes sure that [0, to) of a table of the session's file has memory; it gets
 * an eighth more than it had, so that many names ask seldom. */
static bool backed(void *table, uint64_t most, uint64_t *have, uint64_t to) {
    if (*have >= to) return true;
    uint64_t want = *have + *have / 8 + GROW;
    if (want < to) want = to;
    want = (want + GROW - 1) / GROW * GROW;
    if (want > most) want = most;
    if (!memory_back((char *)table + *have, want - *have)) return false;
    *have = want;
    return true;
}

/* Writes the session's copy of names [from, all.n). */
static bool copy_out(uint32_t from) {
    struct ring_map *v = all.session;
    if (v == NULL) return true;
    struct rec_head *h = v->head;
    if (!backed(v->names, REC_NAMES * sizeof *all.v, &all.names_to,
                all.n * sizeof *all.v) ||
        !backed(v->text, REC_TEXT, &all.text_to, all.ntext))
        return false;
    uint32_t at = from > 0 ? all.v[from].at : 0;
    memcpy(v->names + from, all.v + from, (all.n - from) * sizeof *all.v);
    memcpy(v->text + at, all.text + at, all.ntext - at);
    h->ntext = all.ntext;
    REC_PUBLISH(&h->nnames, all.n);
    return true;
}

/* Counts the use of a name that is not kept; full: no name ever will be. */
static uint32_t no_name(bool full) {
    struct rec_losses *l = memory_losses();
    if (OPS_STATE_() != 0)
        __atomic_fetch_add(full ? &l->names : &l->names_memory, 1,
                           __ATOMIC_RELAXED);
    return 1;
}

static uint32_t names_add(const char *s, size_t n, uint32_t kind) {
    uint32_t slot, id;
    if (!make_tables()) return 0;
    if ((id = names_find(s, n, kind, &slot)) != 0) return id;
    if (all.n == REC_NAMES || all.ntext + NAME_MAX_BYTES > REC_TEXT) {
        REC_PUT(&all.full, true);
        return no_name(true);
    }
    memcpy(all.text + all.ntext, s, n);
    all.v[all.n] = (struct rec_name){all.ntext, (uint16_t)n, (uint16_t)kind};
    all.n++;
    all.ntext += (uint32_t)n;
    if (!copy_out(all.n - 1)) {
        all.n--;
        all.ntext -= (uint32_t)n;
        REC_PUT(&all.denied, 1);
        return no_name(false);
    }
    REC_PUT(&all.denied, 0);
    REC_PUBLISH(&all.table[slot], all.n - 1);
    return all.n - 1;
}

/* Would the long way only fail again? */
static bool hopeless(void) {
    if (REC_LOAD(&all.full)) return true;
    return REC_LOAD(&all.denied) != 0 &&
           __atomic_add_fetch(&all.denied, 1, __ATOMIC_RELAXED) %
                   DENIED_RETRY !=
               0;
}

uint32_t names_intern(const char *name, uint32_t kind) {
    if (name == NULL) name = "(null)";
    size_t n = strnlen(name, NAME_MAX_BYTES + 1);
    n = text_cut(name, n, NAME_MAX_BYTES);
    uint32_t slot, id = names_find(name, n, kind, &slot);
    if (id != 0) return id;
    if (hopeless()) return no_name(REC_LOAD(&all.full));
    struct host_state q;
    host_state_save(&q);
    pthread_mutex_lock(&all.lock);
    id = names_add(name, n, kind);
    pthread_mutex_unlock(&all.lock);
    host_state_restore(&q);
    return id;
}

bool names_session(struct ring_map *v) {
    pthread_mutex_lock(&all.lock);
    all.session = v;
    all.names_to = all.text_to = 0;
    REC_PUT(&all.denied, 0);
    bool ok = v == NULL || (make_tables() && copy_out(0));
    if (!ok) all.session = NULL;
    pthread_mutex_unlock(&all.lock);
    return ok;
}

void names_fork_lock(void) { pthread_mutex_lock(&all.lock); }
void names_fork_unlock(void) { pthread_mutex_unlock(&all.lock); }

uint32_t ops_intern_(const char *name, uint32_t kind) {
    return names_intern(name, kind);
}
