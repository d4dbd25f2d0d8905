/* SPDX-License-Identifier: Apache-2.0
 * The field numbers of XSpace, the protobuf message in .xplane.pb files. Those
 * who write such files (the recorder, `opscope record`) and those who read them
 * (import/xspace) use these names and no bare number. */
#ifndef BASE_XSPACE_H
#define BASE_XSPACE_H

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

#endif
