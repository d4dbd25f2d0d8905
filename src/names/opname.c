/* SPDX-License-Identifier: Apache-2.0
 * name:Type, taken apart. */
#include "names/opname.h"

#include <ctype.h>

static bool name_char(uint8_t c, bool first) {
    if (isalnum(c) || c == '.' || c == '_') return true;
    return !first && c != 0 && strchr("/>-", c) != NULL;
}

static bool type_char(uint8_t c, bool first) {
    if (c == '_' || isupper(c)) return true;
    return !first && isalnum(c);
}

static bool all_of(struct bytes b, bool (*fits)(uint8_t, bool)) {
    for (size_t i = 0; i < b.n; i++)
        if (!fits(b.p[i], i == 0)) return false;
    return b.n > 0;
}

bool name_split_tf(struct bytes full, struct bytes *name, struct bytes *type) {
    if (full.n == 0) return false;
    const uint8_t *colon = memchr(full.p, ':', full.n);
    if (colon == NULL) return false;
    struct bytes left = {full.p, (size_t)(colon - full.p)};
    struct bytes right = {colon + 1, full.n - left.n - 1};
    if (!all_of(left, name_char) || !all_of(right, type_char)) return false;
    *name = left;
    *type = right;
    return true;
}

struct bytes name_op_type(struct bytes full) {
    struct bytes name, type;
    if (name_split_tf(full, &name, &type)) return type;
    if (BYTES_STARTS(full, "Iterator::")) return bytes_of("Dataset");
    return (struct bytes){full.p, 0};
}
