/* SPDX-License-Identifier: Apache-2.0
 * Pickles: plain data of every protocol is read, everything else refused, each
 * with its sentence, and quickly. */
#include "import/snapshot/pickle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "unit/pickles.h"

static struct pickle good(const char *p, size_t n) {
    struct pickle k;
    struct ops_err e = {0};
    if (pickle_read(&k, (struct bytes){(const uint8_t *)p, n}, &e) != 0)
        fail_msg("%s", e.text);
    assert_false(k.cut);
    return k;
}
#define GOOD(lit) good(lit, sizeof(lit) - 1)

/* Checks that it is refused with these words, without a loop that grows with
 * what the file claims. */
static void refused(const char *p, size_t n, const char *words) {
    struct pickle k;
    struct ops_err e = {0};
    clock_t start = clock();
    int rc = pickle_read(&k, (struct bytes){(const uint8_t *)p, n}, &e);
    assert_int_equal(rc, OPS_EFORMAT);
    if (!strstr(e.text, words)) fail_msg("'%s' not in '%s'", words, e.text);
    if (!strstr(e.text, "offset")) fail_msg("no offset in '%s'", e.text);
    /* a second of the processor's time is a thousand times what it takes */
    assert_true(clock() - start < CLOCKS_PER_SEC);
    assert_null(k.root);
}
#define REFUSED(lit, words) refused(lit, sizeof(lit) - 1, words)

static void plain_values_of_every_protocol(void **state) {
    (void)state;
    /* pickle.dumps([None, True, False, 1, -2, 70000, 2**40, -2**40, 1.5,
     *               "abc", b"xy", (), (1,), {"k": 2}], protocol=p) */
    struct pickle v[] = {
        GOOD("(lp0\nNaI01\naI00\naI1\naI-2\naI70000\naI1099511627776\n"
             "aI-1099511627776\naF1.5\naVabc\np1\naS'xy'\na(ta(I1\ntp5\na(dp6\n"
             "Vk\np7\nI2\nsa."),
        GOOD("]q\x00(NI01\nI00\nK\x01J\xfe\xff\xff\xffJp\x11\x01\x00"
             "L1099511627776L\nL-1099511627776L\n"
             "G?\xf8\x00\x00\x00\x00\x00\x00X\x03\x00\x00\x00"
             "abcq\x01U\x02xyq\x02)(K\x01tq\x06}q\x07X\x01\x00\x00\x00"
             "kq\x08K\x02se."),
        GOOD("\x80\x02]q\x00(N\x88\x89K\x01J\xfe\xff\xff\xffJp\x11\x01\x00"
             "\x8a\x06\x00\x00\x00\x00\x00\x01\x8a\x06\x00\x00\x00\x00\x00\xff"
             "G?\xf8\x00\x00\x00\x00\x00\x00X\x03\x00\x00\x00"
             "abcq\x01U\x02xyq\x02)K\x01\x85q\x06}q\x07X\x01\x00\x00\x00"
             "kq\x08K\x02se."),
        GOOD("\x80\x05\x95K\x00\x00\x00\x00\x00\x00\x00]\x94(N\x88\x89K\x01"
             "J\xfe\xff\xff\xffJp\x11\x01\x00\x8a\x06\x00\x00\x00\x00\x00\x01"
             "\x8a\x06\x00\x00\x00\x00\x00\xffG?\xf8\x00\x00\x00\x00\x00\x00"
             "\x8c\x03"
             "abc\x94\x43\x02xy\x94)K\x01\x85\x94}\x94\x8c\x01k\x94K\x02se."),
    };
    static const int64_t ints[] = {1, -2, 70000, INT64_C(1) << 40,
                                   -(INT64_C(1) << 40)};
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        const struct pickle_value *r = v[i].root;
        assert_int_equal(pickle_count(r), 14);
        assert_int_equal(pickle_item(r, 0)->type, PICKLE_NONE);
        assert_int_equal(pickle_item(r, 1)->type, PICKLE_BOOL);
        assert_int_equal(pickle_item(r, 1)->i, 1);
        assert_int_equal(pickle_item(r, 2)->i, 0);
        for (int k = 0; k < 5; k++) {
            assert_int_equal(pickle_item(r, 3 + (size_t)k)->type, PICKLE_INT);
            assert_true(pickle_int(pickle_item(r, 3 + (size_t)k), 0) ==
                        ints[k]);
        }
        assert_true(pickle_item(r, 8)->f == 1.5);
        assert_true(BYTES_IS(pickle_text(pickle_item(r, 9)), "abc"));
        assert_true(BYTES_IS(pickle_text(pickle_item(r, 10)), "xy"));
        assert_int_equal(pickle_count(pickle_item(r, 11)), 0);
        assert_int_equal(pickle_count(pickle_item(r, 12)), 1);
        assert_int_equal(pickle_int(pickle_get(pickle_item(r, 13), "k"), 0), 2);
        pickle_free(&v[i]);
    }
}

static void what_is_shared_stays_shared(void **state) {
    (void)state;
    struct pickle k = GOOD("\x80\x02](}q\x00X\x01\x00\x00\x00"
                           "aK\x07sh\x00h\x00j\x00\x00\x00\x00"
                           "e.");
    assert_int_equal(pickle_count(k.root), 4);
    for (size_t i = 0; i < 4; i++)
        assert_ptr_equal(pickle_item(k.root, i)->box,
                         pickle_item(k.root, 0)->box);
    pickle_free(&k);
}

static void what_would_load_or_call_is_refused_by_name(void **state) {
    (void)state;
    REFUSED("cos\nsystem\n(S'id'\ntR.", "refuses to load \"os.system\"");
    REFUSED("\x80\x04\x8c\x02os\x8c\x06system\x93.",
            "refuses to load \"os.system\"");
    REFUSED("(S'id'\nios\nsystem\n.", "refuses to load \"os.system\"");
    REFUSED("\x80\x02](cnumpy.core.multiarray\n_reconstruct\ne.",
            "refuses to load \"numpy.core.multiarray._reconstruct\"");
    REFUSED("c\x1b[31m\nx y\n.", "refuses to load \"?[31m.x?y\"");
    REFUSED("K\x01K\x02R.", "REDUCE");
    REFUSED("}}b.", "BUILD");
    REFUSED("(K\x01o.", "OBJ");
    REFUSED("K\x01)\x81.", "NEWOBJ");
    REFUSED("K\x01)}\x92.", "NEWOBJ_EX");
    REFUSED("P123\n.", "PERSID");
    REFUSED("K\x01Q.", "BINPERSID");
    REFUSED("\x82\x01.", "EXT1");
    REFUSED("\x8f.", "EMPTY_SET");
    REFUSED("\x97.", "NEXT_BUFFER");
    REFUSED("\x93.", "STACK_GLOBAL");
    REFUSED("\xff.", "0xff at offset 0 is no instruction");
    REFUSED("\x80\x09N.", "protocol newer than 5");
}

static void lists_that_contain_themselves_are_refused(void **state) {
    (void)state;
    REFUSED("]q\x00h\x00"
            "a.",
            "contains itself");
    REFUSED("]q\x00(h\x00"
            "e.",
            "contains itself");
    REFUSED("}q\x00K\x01h\x00s.", "contains itself");
    REFUSED("]q\x00(h\x00\x85"
            "e.",
            "contains itself");
    REFUSED("]q\x00(]q\x01(h\x00"
            "eh\x01"
            "e.",
            "contains itself");
    /* a in b, then b in a */
    REFUSED("(]q\x00]q\x01h\x00"
            "ah\x00h\x01"
            "al.",
            "changes after it");
}

static void deep_nesting_is_refused(void **state) {
    (void)state;
    enum { DEEP = 1000000 };
    char *p = malloc(2 * DEEP + 1);
    memset(p, ']', DEEP);
    memset(p + DEEP, 'a', DEEP - 1);
    p[2 * DEEP - 1] = '.';
    refused(p, 2 * DEEP, "inside each other");
    memset(p, '(', DEEP);
    memset(p + DEEP, 't', DEEP);
    refused(p, 2 * DEEP, "inside each other");
    for (int i = 0; i < DEEP; i++) p[i] = i ? (char)0x85 : ')';
    refused(p, DEEP, "inside each other");
    struct pickle k;
    struct ops_err e;
    memset(p, ']', 100);
    memset(p + 100, 'a', 99);
    p[199] = '.';
    assert_int_equal(pickle_read(&k, (struct bytes){(uint8_t *)p, 200}, &e), 0);
    pickle_free(&k);
    free(p);
}

static void huge_numbers_are_refused(void **state) {
    (void)state;
    REFUSED("\x8b\x00\x00\x00\x80N.", "an integer of 2147483648 bytes");
    REFUSED("\x8b\xff\xff\xff\x7fN.", "an integer of 2147483647 bytes");
    REFUSED("\x8a\x0a\1\1\1\1\1\1\1\1\1\1.", "an integer of 10 bytes");
    REFUSED("\x8a\x09\1\1\1\1\1\1\1\1\1.", "more than 64 bits");
    REFUSED("I99999999999999999999999\n.", "cannot be read");
    REFUSED("I1x\n.", "cannot be read");
    REFUSED("I\n.", "too long");
    REFUSED("F1.5.5\n.", "cannot be read");
    struct pickle k = GOOD("\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00.");
    assert_int_equal(k.root->type, PICKLE_UINT);
    assert_true((uint64_t)k.root->i == UINT64_MAX);
    pickle_free(&k);
    k = GOOD("\x8a\x00.");
    assert_int_equal(pickle_int(k.root, 9), 0);
    pickle_free(&k);
}

static void long_texts_are_refused(void **state) {
    (void)state;
    /* ten gigabytes, and all that eight bytes can say */
    REFUSED("\x8d\x00\xe4\x0bT\x02\x00\x00\x00"
            "abc.",
            "a text of 10000000000 bytes at offset 0");
    REFUSED("\x8d\xff\xff\xff\xff\xff\xff\xff\xff"
            "abc.",
            "a text of 18446744073709551615 bytes");
    REFUSED("X\xff\xff\xff\xff"
            "abc.",
            "a text of 4294967295 bytes");
    REFUSED("\x96\x00\x00\x00\x00\x01\x00\x00\x00.", "a text of 4294967296");
}

static void the_stack_cannot_be_taken_below_its_marks(void **state) {
    (void)state;
    REFUSED("a.", "the stack is empty");
    REFUSED("K\x01"
            "a.",
            "the stack is empty");
    REFUSED("](K\x01"
            "a.",
            "the stack is empty");
    REFUSED("K\x01\x87.", "the stack is empty");
    REFUSED("e.", "no mark");
    REFUSED("t.", "no mark");
    REFUSED("(e.", "the stack is empty");
    REFUSED("K\x01(K\x02"
            "e.",
            "no list");
    REFUSED("](K\x02u.", "no dict");
    REFUSED("}(K\x02u.", "a key without a value");
    REFUSED("(K\x01"
            "d.",
            "a key without a value");
    REFUSED("(.", "before the data are complete");
    REFUSED("K\x01K\x02.", "before the data are complete");
    REFUSED(".", "before the data are complete");
    REFUSED("", "nothing was read");
    REFUSED("\x94.", "the stack is empty");
    REFUSED("h\x00.", "nothing is stored in memo slot 0");
    REFUSED("NrP\x00\x00\x00h\x05.", "nothing is stored in memo slot 5");
    REFUSED("Nr\xff\xff\xff\xff.", "memo slot 4294967295");
    REFUSED("Np18446744073709551615\n.", "memo slot 18446744073709551615");
    REFUSED("g-1\n.", "no memo slot");
}

/* A million marks, values or references cost what they take in the file. */
static void the_work_is_linear(void **state) {
    (void)state;
    enum { MANY = 4000000 };
    struct pickle k;
    struct ops_err e;
    clock_t start = clock();
    char *p = malloc(MANY);
    memset(p, '(', MANY);
    assert_int_equal(pickle_read(&k, (struct bytes){(uint8_t *)p, MANY}, &e),
                     OPS_EFORMAT);
    /* a list of one list, referred to many times */
    memcpy(p, "](]q\x00Na", 7);
    size_t n = 7;
    while (n + 4 < MANY) {
        memcpy(p + n, "h\x00", 2);
        n += 2;
    }
    memcpy(p + n, "e.", 2);
    assert_int_equal(pickle_read(&k, (struct bytes){(uint8_t *)p, n + 2}, &e),
                     0);
    assert_true(pickle_count(k.root) > MANY / 2 - 10);
    pickle_free(&k);
    assert_true(clock() - start < 3 * CLOCKS_PER_SEC);
    free(p);
}

/* What is there of a cut one is what was there: never more. */
static void a_cut_keeps_what_came_before(void **state) {
    (void)state;
    struct pk o = {0};
    pk_start(&o);
    pk_dict(&o);
    pk_text(&o, "a");
    pk_list(&o);
    for (int i = 0; i < 5; i++) {
        pk_dict(&o);
        pk_key_int(&o, "n", i);
        pk_end_dict(&o);
    }
    pk_end_list(&o);
    pk_key_int(&o, "b", 7);
    pk_end_dict(&o);
    pk_stop(&o);
    size_t most = 0;
    for (size_t cut = 0; cut < o.n; cut++) {
        struct pickle k;
        struct ops_err e = {0};
        int rc = pickle_read(&k, (struct bytes){o.p, cut}, &e);
        if (rc != 0) {
            assert_int_equal(rc, OPS_EFORMAT);
            assert_true(cut <= 3);
            continue;
        }
        assert_true(k.cut);
        size_t n = pickle_count(pickle_get(k.root, "a"));
        assert_true(n >= most && n <= 5);
        most = n;
        pickle_free(&k);
    }
    assert_int_equal(most, 5);
    free(o.p);
}

/* A byte that makes a list takes fifty of memory: a file of nothing else is no
 * snapshot. */
static void what_weighs_too_much_is_refused(void **state) {
    (void)state;
    enum { MANY = 1000000 };
    char *p = malloc(MANY + 4);
    struct pickle k;
    struct ops_err e = {0};
    for (int i = 0; i < 2; i++) {
        memset(p, i ? '}' : ']', MANY);
        memcpy(p, "](", 2);
        memcpy(p + MANY, "e.", 2);
        int rc = pickle_read(&k, (struct bytes){(uint8_t *)p, MANY + 2}, &e);
        assert_int_equal(rc, OPS_ELIMIT);
        assert_non_null(strstr(e.text, "bytes of memory"));
        assert_null(k.root);
    }
    free(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_values_of_every_protocol),
        cmocka_unit_test(what_is_shared_stays_shared),
        cmocka_unit_test(what_would_load_or_call_is_refused_by_name),
        cmocka_unit_test(lists_that_contain_themselves_are_refused),
        cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(huge_numbers_are_refused),
        cmocka_unit_test(long_texts_are_refused),
        cmocka_unit_test(the_stack_cannot_be_taken_below_its_marks),
        cmocka_unit_test(the_work_is_linear),
        cmocka_unit_test(a_cut_keeps_what_came_before),
        cmocka_unit_test(what_weighs_too_much_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
