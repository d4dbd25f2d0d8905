/* SPDX-License-Identifier: Apache-2.0
 * One fact of a profile, found without reading its events. */
#include "scalars/profile_loss.h"

#include "base/facts.h"
#include "base/io/file.h"
#include "base/pb.h"
#include "base/xspace.h"
#include <stdio.h>

/* Returns the last field of that number in a message, which may be none itself
 * (p is NULL); its num is 0 if there is none. */
static struct pb_field field_of(struct bytes b, uint32_t num) {
    struct pb_field f, found = {0};
    if (b.p == NULL) return found;
    struct pb r = pb_reader(b);
    while (pb_next(&r, &f))
        if (f.num == num) found = f;
    return found;
}

/* A fact's name comes before the fact, and where it comes again the last one
 * holds. */
static uint64_t plane_lost(struct bytes plane) {
    struct pb r = pb_reader(plane);
    struct pb_field f;
    uint64_t id = 0, lost = 0;
    while (pb_next(&r, &f)) {
        if (f.num == XPLANE_STAT_METADATA) {
            struct pb_field meta = field_of(f.bytes, XSPACE_MAP_VALUE);
            struct pb_field name = field_of(meta.bytes, XSTATMETA_NAME);
            if (BYTES_IS(name.bytes, FACT_SCALARS_LOST))
                id = field_of(f.bytes, XSPACE_MAP_KEY).value;
        } else if (f.num == XPLANE_STATS && id != 0 &&
                   field_of(f.bytes, XSTAT_METADATA_ID).value == id) {
            lost = field_of(f.bytes, XSTAT_INT64).value;
        }
    }
    return lost > INT64_MAX ? 0 : lost;
}

/* Others' profiles may be compressed, and would be inflated for nothing. */
static bool begins_with_plane(const char *path) {
    FILE *in = fopen(path, "rb");
    if (in == NULL) return false;
    bool yes = getc(in) == (XSPACE_PLANES << 3 | PB_BYTES);
    fclose(in);
    return yes;
}

uint64_t profile_scalars_lost(const char *path) {
    struct file *open;
    struct ops_err e = {0};
    struct pb_field f;
    uint64_t lost = 0;
    if (!begins_with_plane(path) || file_open(path, &open, &e) != 0) return 0;
    struct pb r = pb_reader(open->bytes);
    while (pb_next(&r, &f))
        if (f.num == XSPACE_PLANES) lost += plane_lost(f.bytes);
    file_close(open);
    return lost;
}
