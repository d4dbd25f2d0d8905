/* SPDX-License-Identifier: Apache-2.0
 * Mapping and checking a ring file. A reader takes it for hostile: every
 * offset and count that is used later is checked here, once. */
#include "rec/view.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { PAGE = 4096 };

static uint64_t paged(uint64_t n) {
    return (n + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

size_t rec_layout(struct rec_head *h) {
    h->segs_at = paged(sizeof *h);
    h->asyncs_at = h->segs_at + paged(REC_SEGS * sizeof(struct rec_seg));
    h->names_at = h->asyncs_at + paged(REC_ASYNCS * sizeof(struct rec_async));
    h->text_at = h->names_at + paged(REC_NAMES * sizeof(struct rec_name));
    return h->text_at + REC_TEXT;
}

void rec_view_tables(struct rec_view *v, void *base, size_t bytes) {
    v->head = base;
    v->bytes = bytes;
    v->segs = (struct rec_seg *)((char *)base + v->head->segs_at);
    v->asyncs = (struct rec_async *)((char *)base + v->head->asyncs_at);
    v->names = (struct rec_name *)((char *)base + v->head->names_at);
    v->text = (char *)base + v->head->text_at;
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

/* A ring that lies inside of the file and is sound in itself, else NULL. */
static struct rec_ring *check_ring(const struct rec_view *v, uint32_t i) {
    uint64_t at = v->head->rings[i].at, bytes = v->head->rings[i].bytes;
    if (at % PAGE != 0 || at > v->bytes || bytes > v->bytes - at ||
        bytes < REC_RING_HEAD)
        return NULL;
    struct rec_ring *r = (struct rec_ring *)((char *)v->head + at);
    uint64_t slots = r->slots;
    if (slots < 2 * REC_SLOT_MAX || (slots & (slots - 1)) != 0 ||
        slots > (bytes - REC_RING_HEAD) / sizeof(struct rec_slot))
        return NULL;
    return r;
}

int rec_view_open(struct rec_view *v, int fd, bool writable, const char **why) {
    struct stat st;
    memset(v, 0, sizeof *v);
    *why = "cannot be read";
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) return -1;
    *why = "cut short";
    if (st.st_size < (off_t)sizeof(struct rec_head)) return -1;
    size_t bytes = (size_t)st.st_size;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                   writable ? MAP_SHARED : MAP_PRIVATE, fd, 0);
    *why = "cannot be mapped";
    if (p == MAP_FAILED) return -1;
    *why = check_head(p, bytes);
    if (*why != NULL) {
        munmap(p, bytes);
        return -1;
    }
    rec_view_tables(v, p, bytes);
    v->nrings = v->head->nrings;
    for (uint32_t i = 0; i < v->nrings; i++) v->ring[i] = check_ring(v, i);
    return 0;
}

void rec_view_close(struct rec_view *v) {
    if (v->head != NULL) munmap(v->head, v->bytes);
    memset(v, 0, sizeof *v);
}

bool rec_part_path(char *out, size_t cap, const char *stem, uint64_t part,
                   unsigned file, bool final) {
    char number[24] = "", device[24] = "";
    if (part > 0)
        snprintf(number, sizeof number, ".%llu", (unsigned long long)part);
    if (file > 0) snprintf(device, sizeof device, ".device%u", file);
    int n = snprintf(out, cap, "%s%s%s.xplane.pb%s", stem, number, device,
                     final ? "" : ".part");
    return n > 0 && (size_t)n < cap;
}
