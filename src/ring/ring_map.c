/* SPDX-License-Identifier: Apache-2.0
 * Copying and checking a ring file. It is taken for hostile: every offset and
 * count that is used later is checked here, once.
 *
 * A copy and no mapping: what was checked cannot be changed afterwards by a
 * writer that is alive, and a file that is cut, or sparse on a full disk, is no
 * SIGBUS. Of the rings only what is not in the files yet is copied, and only
 * where the file has data: a writer never has slots in a hole, so that a few
 * bytes on disk cannot ask for gigabytes here. */
#include "ring/ring_map.h"
#include "ring/sys.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

size_t rec_layout(struct rec_head *h) {
    h->segs_at = rec_paged(sizeof *h);
    h->asyncs_at = h->segs_at + rec_paged(REC_SEGS * sizeof(struct rec_seg));
    h->names_at = h->asyncs_at +
                  rec_paged(REC_ASYNCS * sizeof(struct rec_async));
    h->text_at = h->names_at + rec_paged(REC_NAMES * sizeof(struct rec_name));
    return h->text_at + REC_TEXT;
}

void ring_map_tables(struct ring_map *map, void *base, size_t bytes) {
    map->head = base;
    map->bytes = bytes;
    map->segs = (struct rec_seg *)((char *)base + map->head->segs_at);
    map->asyncs = (struct rec_async *)((char *)base + map->head->asyncs_at);
    map->names = (struct rec_name *)((char *)base + map->head->names_at);
    map->text = (char *)base + map->head->text_at;
}

static bool terminated(const char *s, size_t cap) {
    return memchr(s, 0, cap) != NULL;
}

static const char *check_head(const struct rec_head *h, size_t bytes) {
    struct rec_head want;
    if (memcmp(h->magic, REC_MAGIC, sizeof h->magic) != 0)
        return "not a ring file";
    if (h->version != REC_VERSION || h->head_bytes != sizeof *h)
        return "a ring file of another version of opscope";
    if (rec_layout(&want) > bytes) return "cut short";
    if (h->segs_at != want.segs_at || h->asyncs_at != want.asyncs_at ||
        h->names_at != want.names_at || h->text_at != want.text_at)
        return "damaged: its tables do not lie where they should";
    if (h->nsegs == 0 || h->nsegs > REC_SEGS || h->nnames > REC_NAMES ||
        h->ntext > REC_TEXT || h->nrings > REC_RINGS ||
        h->ntracks > REC_TRACKS || h->ndevices > REC_DEVICES || h->active > 1)
        return "damaged: a count is out of range";
    if (!terminated(h->stem, sizeof h->stem) ||
        !terminated(h->host, sizeof h->host) ||
        !terminated(h->events, sizeof h->events))
        return "damaged: a text without an end";
    for (uint32_t i = 0; i < REC_DEVICES; i++)
        if (!terminated(h->devices[i].name, sizeof h->devices[i].name))
            return "damaged: a text without an end";
    for (uint32_t i = 0; i < h->ntracks; i++)
        if (!terminated(h->tracks[i].queue, sizeof h->tracks[i].queue) ||
            h->tracks[i].device == 0 || h->tracks[i].device >= REC_FILES)
            return "damaged: a track";
    return NULL;
}

/* --- a copy, for a reader ------------------------------------------------ */

/* Copies bytes [at, at + n) of the file to where they lie in the map. What the
 * file does not have stays 0. */
static void copy_in(void *base, int fd, uint64_t at, uint64_t n) {
    sys_read_all(fd, (char *)base + at, n, at);
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Are these bytes in the file, and not a hole of it? */
static bool has_data(int fd, uint64_t at, uint64_t n) {
    off_t hole = lseek(fd, (off_t)at, SEEK_HOLE);
    return n == 0 || (hole > 0 && (uint64_t)hole >= at + n);
}

/* Copies the slots that a reader looks at: those behind the tail, and the
 * record before the head (encoder_open_scopes). Returns false if the file has
 * no such slots. */
static bool copy_slots(const struct ring_map *map, int fd, uint64_t at,
                       const struct rec_ring *r) {
    uint64_t tail = r->tail[map->head->active], size = sizeof(struct rec_slot);
    uint64_t n = tail < r->head ? r->head - tail : 0;
    n = least(n > REC_SLOT_MAX ? n : REC_SLOT_MAX, r->slots);
    uint64_t ever = least(n, r->head); /* the first round has no slots before */
    uint64_t first = (r->head - ever) & (r->slots - 1);
    uint64_t run = least(ever, r->slots - first), rest = ever - run;
    at += REC_RING_HEAD;
    if (!has_data(fd, at + first * size, run * size) ||
        !has_data(fd, at, rest * size))
        return false;
    copy_in(map->head, fd, at + first * size, run * size);
    copy_in(map->head, fd, at, rest * size);
    return true;
}

/* Looks at what the writer, if it lives, did while we copied. A flight recorder
 * has written over the oldest slots: they are left out, and one record more, as
 * drain_flight does. Of the open scopes those stay that were there before and
 * after. */
static void look_again(const struct ring_map *map, int fd, uint64_t at,
                       struct rec_ring *r) {
    struct rec_ring now;
    if (sys_pread(fd, &now, sizeof now, (off_t)at) != (ssize_t)sizeof now)
        return;
    uint64_t most = r->slots - 2 * REC_SLOT_MAX;
    if (map->head->flight && now.head > r->head &&
        now.head - r->first_slot > most)
        r->first_slot = now.head - most;
    rec_ring_keep_common(r, &now);
}

void rec_ring_keep_common(struct rec_ring *a, const struct rec_ring *b) {
    uint32_t n = a->depth < b->depth ? a->depth : b->depth;
    if (n > REC_FRAMES) n = REC_FRAMES;
    for (uint32_t i = 0; i < n; i++)
        if (a->frames[i].time != b->frames[i].time ||
            a->frames[i].name != b->frames[i].name)
            n = i;
    if (n < a->depth && n < REC_FRAMES) a->args_top = a->frames[n].args;
    a->depth = n;
    a->marks &= b->marks;
    if (a->step_time != b->step_time) a->marks &= ~(uint32_t)REC_IN_STEP;
    if (a->epoch_time != b->epoch_time) a->marks &= ~(uint32_t)REC_IN_EPOCH;
}

bool rec_ring_ended(const struct rec_ring *r, const struct rec_slot *slots,
                    enum rec_kind kind, uint64_t time, uint32_t name) {
    uint64_t mask = r->slots - 1, at = r->head;
    for (int i = 0; i < REC_SLOT_MAX && at > r->first_slot; i++) {
        const struct rec_slot *s = &slots[--at & mask];
        uint64_t rest = REC_LOAD(&s->rest);
        uint32_t k = rec_slot_kind(rest);
        if (k == REC_CONT) continue;
        if (k == REC_SCOPE_X) k = REC_SCOPE;
        return k == (uint32_t)kind && rec_slot_name(rest) == name &&
               REC_LOAD(&s->time) == time;
    }
    return false;
}

/* --- rings --------------------------------------------------------------- */

/* Does ring i lie inside the file, behind the tables and the ring before? *end
 * is where the last one ended. */
static bool ring_fits(const struct ring_map *map, uint32_t i, uint64_t *end) {
    uint64_t at = map->head->rings[i].at, bytes = map->head->rings[i].bytes;
    if (at % REC_PAGE != 0 || at < *end || at > map->bytes ||
        bytes > map->bytes - at || bytes < REC_RING_HEAD)
        return false;
    *end = at + bytes;
    return true;
}

/* Fills map->ring; a ring that is not sound is NULL there, and counted. */
static void copy_rings(struct ring_map *map, int fd) {
    uint64_t end = map->head->text_at + REC_TEXT;
    for (uint32_t i = 0; i < map->nrings; i++) {
        uint64_t at = map->head->rings[i].at;
        map->damaged++;
        if (!ring_fits(map, i, &end) || !has_data(fd, at, sizeof **map->ring))
            continue;
        struct rec_ring *r = (struct rec_ring *)((char *)map->head + at);
        copy_in(map->head, fd, at, sizeof *r);
        uint64_t room = map->head->rings[i].bytes - REC_RING_HEAD;
        if (r->slots < 2 * REC_SLOT_MAX || (r->slots & (r->slots - 1)) != 0 ||
            r->slots > room / sizeof(struct rec_slot))
            continue;
        if (r->state != REC_RING_FREE) {
            if (!copy_slots(map, fd, at, r)) continue;
            if (r->state == REC_RING_LIVE) look_again(map, fd, at, r);
        }
        map->ring[i] = r;
        map->damaged--;
    }
}

int ring_map_copy(struct ring_map *map, int fd, const char **why) {
    struct rec_head want;
    struct stat st;
    memset(map, 0, sizeof *map);
    *why = "cannot be read";
    if (sys_fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) return -1;
    *why = "cut short";
    if (st.st_size < (off_t)rec_layout(&want)) return -1;
    size_t bytes = (size_t)st.st_size;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    *why = "too large";
    if (p == MAP_FAILED) return -1;
    copy_in(p, fd, 0, want.names_at);
    *why = check_head(p, bytes);
    if (*why != NULL) {
        munmap(p, bytes);
        return -1;
    }
    ring_map_tables(map, p, bytes);
    map->nrings = map->head->nrings;
    copy_rings(map, fd);
    /* Names come last, so that those of all records that were copied are
     * there. */
    struct rec_head *h = map->head;
    uint32_t nnames = 0, ntext = 0;
    size_t four = sizeof nnames;
    if (sys_pread(fd, &nnames, four, offsetof(struct rec_head, nnames)) ==
            (ssize_t)four &&
        nnames <= REC_NAMES)
        h->nnames = nnames;
    copy_in(h, fd, h->names_at, h->nnames * sizeof(struct rec_name));
    if (sys_pread(fd, &ntext, four, offsetof(struct rec_head, ntext)) ==
            (ssize_t)four &&
        ntext <= REC_TEXT)
        h->ntext = ntext;
    copy_in(h, fd, h->text_at, h->ntext);
    return 0;
}

void ring_map_free(struct ring_map *map) {
    if (map->head != NULL) munmap(map->head, map->bytes);
    memset(map, 0, sizeof *map);
}

bool rec_part_name(char *out, size_t cap, const char *stem, uint64_t part,
                   unsigned file, bool final) {
    char number[24] = "", device[24] = "";
    if (part > 0)
        snprintf(number, sizeof number, ".%llu", (unsigned long long)part);
    if (file > 0) snprintf(device, sizeof device, ".device%u", file);
    int n = snprintf(out, cap, "%s%s%s.xplane.pb%s", stem, number, device,
                     final ? "" : ".part");
    return n > 0 && (size_t)n < cap;
}
