/* SPDX-License-Identifier: Apache-2.0
 * Fuzzes event files: the importer and all that follows it, and the store of
 * scalars with its tables, read at once and in two goes.
 *
 * No fuzzer guesses a checksum. The first byte says what the rest is: with bit
 * 0, bodies of records (u16 length, body), which are framed here; without it,
 * the file. With bit 1 it goes through the importer and every analysis, too,
 * which is slow. */
#define FUZZ_IMPORTER          "tfevents"
#define LLVMFuzzerTestOneInput fuzz_file
#include "fuzz_importer.h"
#undef LLVMFuzzerTestOneInput

#include "base/crc32c.h"
#include "scalars/scalar_table.h"
#include "scalars/summary.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void frame(struct sink *out, const uint8_t *p, uint64_t n) {
    uint32_t crc = crc32c_mask(crc32c(&n, 8));
    sink_write(out, &n, 8);
    sink_write(out, &crc, 4);
    sink_write(out, p, n);
    crc = crc32c_mask(crc32c(p, n));
    sink_write(out, &crc, 4);
}

static void frame_all(struct sink *out, const uint8_t *p, size_t n) {
    while (n >= 2) {
        size_t length = p[0] | (size_t)p[1] << 8;
        p += 2;
        n -= 2;
        if (length > n) length = n;
        frame(out, p, length);
        p += length;
        n -= length;
    }
}

/* Prints every table of a store, in all three forms. */
static void show_store(const struct scalars *s) {
    struct ops_err e = {0};
    struct scalar_view v = {.spark = 16, .window = 3};
    struct scalar_cursor seen = {0};
    for (int i = 0; i < 3; i++) {
        struct result r;
        struct sink out;
        int rc = i == 0   ? scalar_table(s, &v, &r, &e)
                 : i == 1 ? scalar_points(s, &v, &r, &e)
                          : scalar_new_points(s, &v, &seen, &r, &e);
        if (rc != 0) abort();
        sink_memory(&out);
        for (size_t k = 0; presenters[k] != NULL; k++)
            presenters[k]->put(&r, &(struct text_style){.width = 80}, &out);
        sink_free(&out);
        result_free(&r);
    }
    scalar_cursor_free(&seen);
}

/* Reads the file in a copy with zeros behind its first n bytes. */
static void read_part(struct scalars *s, struct bytes all, size_t n) {
    uint8_t *copy = calloc(1, n + 64);
    if (copy == NULL) abort();
    memcpy(copy, all.p, n);
    summary_read(s, 0, (struct bytes){copy, n});
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct sink out;
    struct scalars once, twice;
    if (size == 0) return 0;
    sink_memory(&out);
    if (data[0] & 1) frame_all(&out, data + 1, size - 1);
    else sink_write(&out, data + 1, size - 1);
    struct bytes all = {(const uint8_t *)out.buf, out.n};
    if (!scalars_init(&once) || !scalars_init(&twice)) abort();
    scalars_file(&once, "a", "run");
    scalars_file(&twice, "a", "run");
    if (all.n > 0) {
        read_part(&once, all, all.n);
        if (data[0] & 1) {
            read_part(&twice, all, all.n / 2);
            read_part(&twice, all, all.n);
            assert(once.points == twice.points);
            assert(once.files[0].records == twice.files[0].records);
        }
        show_store(&once);
        if (data[0] & 2) fuzz_file(all.p, all.n);
    }
    scalars_free(&once);
    scalars_free(&twice);
    sink_free(&out);
    return 0;
}
