/* SPDX-License-Identifier: Apache-2.0
 * The field numbers of XSpace, the protobuf message in .xplane.pb files. Those
 * who write such files (the recorder, `opscope record`) and those who read them
 * (import/xspace) use these names and no bare number. Below them: how the
 * writers put what both of them write, by pbw.h and so with libc only. */
#ifndef BASE_XSPACE_H
#define BASE_XSPACE_H

#include "base/pbw.h"

enum xspace_field {
    XSPACE_PLANES = 1,
    XSPACE_ERRORS = 2,
    XSPACE_WARNINGS = 3,
    XSPACE_HOSTNAMES = 4,
};

enum xplane_field {
    XPLANE_ID = 1,
    XPLANE_NAME = 2,
    XPLANE_LINES = 3,
    XPLANE_EVENT_METADATA = 4, /* map<int64, XEventMetadata> */
    XPLANE_STAT_METADATA = 5,  /* map<int64, XStatMetadata> */
    XPLANE_STATS = 6,
};

enum xline_field {
    XLINE_ID = 1,
    XLINE_NAME = 2,
    XLINE_TIMESTAMP_NS = 3,
    XLINE_EVENTS = 4,
    XLINE_DURATION_PS = 9,
    XLINE_DISPLAY_ID = 10,
    XLINE_DISPLAY_NAME = 11,
};

enum xevent_field {
    XEVENT_METADATA_ID = 1,
    XEVENT_OFFSET_PS = 2,
    XEVENT_DURATION_PS = 3,
    XEVENT_STATS = 4,
    XEVENT_NUM_OCCURRENCES = 5, /* instead of OFFSET_PS: a sum */
};

enum xstat_field {
    XSTAT_METADATA_ID = 1,
    XSTAT_DOUBLE = 2,
    XSTAT_UINT64 = 3,
    XSTAT_INT64 = 4,
    XSTAT_STR = 5,
    XSTAT_BYTES = 6,
    XSTAT_REF = 7, /* its text is the name of that stat metadata */
};

enum xevent_metadata_field {
    XEVENTMETA_ID = 1,
    XEVENTMETA_NAME = 2,
    XEVENTMETA_METADATA = 3,
    XEVENTMETA_DISPLAY_NAME = 4,
    XEVENTMETA_STATS = 5,
    XEVENTMETA_CHILD_ID = 6,
};

enum xstat_metadata_field {
    XSTATMETA_ID = 1,
    XSTATMETA_NAME = 2,
    XSTATMETA_DESCRIPTION = 3,
};

enum xspace_map_field { XSPACE_MAP_KEY = 1, XSPACE_MAP_VALUE = 2 };

/* Names that readers of XSpace know. */
#define XSPACE_HOST_PLANE    "/host:CPU"
#define XSPACE_ENVIRONMENT   "Task Environment" /* a plane: when it was taken */
#define XSPACE_START_TIME    "profile_start_time"
#define XSPACE_STOP_TIME     "profile_stop_time"
#define XSPACE_COUNTERS_LINE "_counters_"

/* --- writing ------------------------------------------------------------- */

/* The room for a stat of a number, and for the head of any stat. */
enum { XSPACE_STAT_ROOM = 64, XSPACE_META_ROOM = 128 };

/* Writes the head of a stat whose value, its tag included, has n bytes and is
 * written next. field: XEVENT_STATS, XPLANE_STATS or XEVENTMETA_STATS. */
static inline uint8_t *xspace_stat_head(uint8_t *p, uint32_t field, uint64_t id,
                                        size_t n) {
    p = pbw_len(p, field, pbw_uint_size(XSTAT_METADATA_ID, id) + n);
    return pbw_uint(p, XSTAT_METADATA_ID, id);
}

static inline uint8_t *xspace_stat_uint(uint8_t *p, uint32_t field, uint64_t id,
                                        uint64_t v) {
    p = xspace_stat_head(p, field, id, pbw_uint_size(XSTAT_UINT64, v));
    return pbw_uint(p, XSTAT_UINT64, v);
}

static inline uint8_t *xspace_stat_int(uint8_t *p, uint32_t field, uint64_t id,
                                       int64_t v) {
    p = xspace_stat_head(p, field, id, pbw_uint_size(XSTAT_INT64, (uint64_t)v));
    return pbw_int(p, XSTAT_INT64, v);
}

static inline uint8_t *xspace_stat_num(uint8_t *p, uint32_t field, uint64_t id,
                                       double v) {
    p = xspace_stat_head(p, field, id, 9);
    return pbw_double(p, XSTAT_DOUBLE, v);
}

static inline uint8_t *xspace_stat_ref(uint8_t *p, uint32_t field, uint64_t id,
                                       uint64_t ref) {
    p = xspace_stat_head(p, field, id, pbw_uint_size(XSTAT_REF, ref));
    return pbw_uint(p, XSTAT_REF, ref);
}

/* Writes the head of a stat whose value is a text of n bytes, which are written
 * next. */
static inline uint8_t *xspace_stat_text(uint8_t *p, uint32_t field, uint64_t id,
                                        size_t n) {
    p = xspace_stat_head(p, field, id, pbw_bytes_size(XSTAT_STR, n));
    return pbw_len(p, XSTAT_STR, n);
}

/* Writes the head of an entry of a map<int64, metadata>; field:
 * XPLANE_EVENT_METADATA or XPLANE_STAT_METADATA. A name of n bytes and `more`
 * bytes of further fields are written next. Room: XSPACE_META_ROOM. */
static inline uint8_t *xspace_meta_head(uint8_t *p, uint32_t field, uint64_t id,
                                        size_t n, size_t more) {
    size_t body = pbw_uint_size(XSTATMETA_ID, id) +
                  pbw_bytes_size(XSTATMETA_NAME, n) + more;
    p = pbw_len(p, field,
                pbw_uint_size(XSPACE_MAP_KEY, id) +
                    pbw_bytes_size(XSPACE_MAP_VALUE, body));
    p = pbw_uint(p, XSPACE_MAP_KEY, id);
    p = pbw_len(p, XSPACE_MAP_VALUE, body);
    p = pbw_uint(p, XSTATMETA_ID, id);
    return pbw_len(p, XSTATMETA_NAME, n);
}

/* Writes the plane that says when the profile was taken, in Unix ns, as a field
 * of the XSpace. Room: 256. */
static inline uint8_t *xspace_environment(uint8_t *p, uint64_t start_ns,
                                          uint64_t stop_ns) {
    static const char *const keys[] = {XSPACE_START_TIME, XSPACE_STOP_TIME};
    uint64_t at[] = {start_ns, stop_ns};
    uint8_t body[224], *b = pbw_bytes(body, XPLANE_NAME, XSPACE_ENVIRONMENT,
                                      sizeof XSPACE_ENVIRONMENT - 1);
    for (unsigned i = 0; i < 2; i++) {
        size_t n = strlen(keys[i]);
        b = xspace_meta_head(b, XPLANE_STAT_METADATA, i + 1, n, 0);
        memcpy(b, keys[i], n);
        b = xspace_stat_uint(b + n, XPLANE_STATS, i + 1, at[i]);
    }
    return pbw_bytes(p, XSPACE_PLANES, body, (size_t)(b - body));
}

#endif
