/* SPDX-License-Identifier: Apache-2.0
 * The protobuf writer against the encoding's own examples, a byte-by-byte
 * encoder and the reader in base/pb.h. */
#include "base/pb.h"
#include "base/pbw.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* The definition: seven bits a byte, lowest first. */
static size_t slow_varint(uint8_t *p, uint64_t v) {
    size_t n = 0;
    do {
        p[n] = (uint8_t)(v & 0x7f);
        v >>= 7;
        if (v != 0) p[n] |= 0x80;
        n++;
    } while (v != 0);
    return n;
}

static void check_varint(uint64_t v) {
    uint8_t want[10], got[16];
    memset(got, 0xee, sizeof got);
    size_t n = slow_varint(want, v);
    assert_int_equal(pbw_varint(got, v) - got, n);
    assert_int_equal(pbw_varint_size(v), n);
    assert_memory_equal(got, want, n);
    for (size_t i = PBW_VARINT_ROOM; i < sizeof got; i++)
        assert_int_equal(got[i], 0xee);
}

static void varints_of_all_lengths(void **state) {
    (void)state;
    check_varint(0);
    for (int bit = 0; bit < 64; bit++) {
        uint64_t v = (uint64_t)1 << bit;
        check_varint(v);
        check_varint(v - 1);
        check_varint(v | 1);
        check_varint(v | 0x5555555555555555 >> (63 - bit));
        check_varint(UINT64_MAX >> bit);
    }
    uint64_t seed = 11;
    for (int i = 0; i < 100000; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        check_varint(seed >> (i % 64));
    }
}

static void padded_varints_fill_their_width_and_no_more(void **state) {
    (void)state;
    static const uint64_t values[] = {0, 1, 127, 128, 300, 16383};
    for (size_t k = 0; k < sizeof values / sizeof *values; k++)
        for (size_t width = pbw_varint_size(values[k]); width <= 10; width++) {
            uint8_t b[16];
            uint64_t v;
            memset(b, 0xee, sizeof b);
            assert_ptr_equal(pbw_padded(b + 2, values[k], width),
                             b + 2 + width);
            assert_int_equal(b[1], 0xee);
            assert_int_equal(b[2 + width], 0xee);
            assert_ptr_equal(pb_varint(b + 2, b + sizeof b, &v), b + 2 + width);
            assert_int_equal(v, values[k]);
        }
    uint8_t b[10];
    uint64_t v;
    pbw_padded(b, UINT64_MAX, 10);
    assert_int_equal(b[9], 1);
    assert_ptr_equal(pb_varint(b, b + 10, &v), b + 10);
    assert_true(v == UINT64_MAX);
}

/* The examples of the encoding's documentation: field 1 = 150; field 2 =
 * "testing"; field 3 = a message with field 1 = 150. */
static void documented_examples(void **state) {
    (void)state;
    uint8_t b[64];
    static const uint8_t want[] = {0x08, 0x96, 0x01, 0x12, 0x07, 't',
                                   'e',  's',  't',  'i',  'n',  'g',
                                   0x1a, 0x03, 0x08, 0x96, 0x01};
    uint8_t *p = pbw_uint(b, 1, 150);
    p = pbw_bytes(p, 2, "testing", 7);
    p = pbw_len(p, 3, pbw_uint_size(1, 150));
    p = pbw_uint(p, 1, 150);
    assert_int_equal(p - b, sizeof want);
    assert_memory_equal(b, want, sizeof want);
    assert_int_equal(pbw_bytes_size(2, 7), 9);
    assert_int_equal(pbw_uint_size(16, 128), 4);
}

static struct pb_field next(struct pb *r, uint32_t num, uint32_t wire) {
    struct pb_field f;
    assert_true(pb_next(r, &f));
    assert_int_equal(f.num, num);
    assert_int_equal(f.wire, wire);
    return f;
}

static void every_kind_of_field_is_read_back(void **state) {
    (void)state;
    uint8_t b[256], *len;
    uint8_t *p = pbw_int(b, 1, -5);
    p = pbw_double(p, 2, -0.1);
    p = pbw_float(p, 3, 1.5f);
    p = pbw_fixed64(p, 4, 0x0123456789abcdef);
    p = pbw_fixed32(p, 536870911, 0xdeadbeef); /* the largest field number */
    p = pbw_bytes(p, 5, NULL, 0);
    p = pbw_len_later(p, 6, 4, &len);
    uint8_t *body = p;
    p = pbw_uint(p, 1, UINT64_MAX);
    p = pbw_bytes(p, 2, "abc", 3);
    pbw_padded(len, (uint64_t)(p - body), 4);

    struct pb r = pb_reader((struct bytes){b, (size_t)(p - b)});
    assert_true((int64_t)next(&r, 1, PB_VARINT).value == -5);
    assert_true(pb_double(next(&r, 2, PB_FIXED64).value) == -0.1);
    uint32_t bits = (uint32_t)next(&r, 3, PB_FIXED32).value;
    float f;
    memcpy(&f, &bits, 4);
    assert_true(f == 1.5f);
    assert_true(next(&r, 4, PB_FIXED64).value == 0x0123456789abcdef);
    assert_int_equal(next(&r, 536870911, PB_FIXED32).value, 0xdeadbeef);
    assert_int_equal(next(&r, 5, PB_BYTES).bytes.n, 0);
    struct pb in = pb_reader(next(&r, 6, PB_BYTES).bytes);
    assert_true(next(&in, 1, PB_VARINT).value == UINT64_MAX);
    assert_true(BYTES_IS(next(&in, 2, PB_BYTES).bytes, "abc"));
    struct pb_field end;
    assert_false(pb_next(&in, &end));
    assert_false(in.bad);
    assert_false(pb_next(&r, &end));
    assert_false(r.bad);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(varints_of_all_lengths),
        cmocka_unit_test(padded_varints_fill_their_width_and_no_more),
        cmocka_unit_test(documented_examples),
        cmocka_unit_test(every_kind_of_field_is_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
