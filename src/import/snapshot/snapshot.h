/* SPDX-License-Identifier: Apache-2.0
 * What the files of the snapshot importer share: snapshot.c reads the state at
 * the dump, events.c what led to it. No other code includes this. */
#ifndef IMPORT_SNAPSHOT_SNAPSHOT_H
#define IMPORT_SNAPSHOT_SNAPSHOT_H

#include "import/snapshot/pickle.h"
#include "model/trace.h"

/* One device's allocator. */
struct snap_device {
    bool made; /* there is anything of it */
    uint32_t allocator;
    int64_t reserved;  /* bytes in segments at the dump */
    uint32_t segments; /* the last of its segments, or ROW_NONE */
    struct map active; /* address -> block in use at the dump, in t->blocks */
};

struct snap {
    struct trace *t;
    uint32_t source;
    const struct pickle_value *root;
    bool whole;      /* segments are there, and the file is not cut: the
                           state at the end is known */
    bool clocked;    /* entries have a time */
    int64_t zero_us; /* Unix time of the trace's epoch */
    struct snap_device *devices;
    size_t ndevices;
    uint32_t *chain;
    size_t cap_chain;      /* by segment: the one of the same
                                             device before it, or ROW_NONE */
    bool expandable;       /* segments grow in place: what is left of a block
                              is always split off */
    int64_t max_split;     /* blocks from this size on are never split */
    int64_t divisions[16]; /* roundup_power2_divisions, from 1 MiB on */
    uint32_t *frames;
    size_t cap_frames; /* scratch */
    struct map texts;  /* long texts: where they stand -> string */
    uint64_t events;
};

/* Returns the device of that number; a new one gets its allocator. Returns NULL
 * if no device can have that number, or out of memory. */
struct snap_device *snap_device(struct snap *s, int64_t ordinal);

/* Returns the call stack of an entry, segment or block, or ROW_NONE. */
uint32_t snap_stack(struct snap *s, const struct pickle_value *of);

/* Returns true the first time that a list is asked about. A list may stand in
 * many places of a pickle; what is counted is counted once. */
bool snap_first_visit(const struct pickle_value *list);

/* Does the same for an entry, a segment or a block: a dict that is not empty.
 * One that comes again is a note. */
bool snap_first_entry(struct snap *s, const struct pickle_value *v);

/* Returns a text, interned. The same one may stand in any number of places,
 * however long it is. */
str_id snap_text(struct snap *s, const struct pickle_value *v);

/* Gives the time of an entry in ps from the epoch; its number i serves where
 * entries have no time. Returns false, and adds a note, if there is none. */
bool snap_time(struct snap *s, const struct pickle_value *entry, size_t i,
               int64_t *ts);

/* Returns an address; 0 if v is none. */
uint64_t snap_addr(const struct pickle_value *v);

/* Reads device_traces: every device's allocations, frees and failures. */
void snap_events(struct snap *s);

#endif
