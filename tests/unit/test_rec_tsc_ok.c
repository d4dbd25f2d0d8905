/* SPDX-License-Identifier: Apache-2.0
 * The rule for the TSC, and its parts on this machine against what the kernel
 * prints in /proc/cpuinfo. */
#include "rec/temp.h"
#include "ring/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include <cmocka.h>

static void the_rule(void **state) {
    (void)state;
    char why[80];
    assert_true(tsc_trusted(true, true, "tsc", why, sizeof why));
    assert_string_equal(why, "");
    assert_false(tsc_trusted(false, true, "tsc", why, sizeof why));
    assert_non_null(strstr(why, "constant rate"));
    assert_false(tsc_trusted(true, true, "kvm-clock", why, sizeof why));
    assert_non_null(strstr(why, "kvm-clock"));
    assert_false(tsc_trusted(true, true, "", why, sizeof why));
    assert_non_null(strstr(why, "does not say"));
    assert_false(tsc_trusted(true, false, "tsc", why, sizeof why));
    assert_non_null(strstr(why, "forbidden"));
    memset(why, '#', sizeof why);
    assert_false(tsc_trusted(true, true, "hpet", why, 4));
    assert_int_equal(strlen(why), 3);
    assert_int_equal(why[4], '#');
}

#if defined(__x86_64__)
/* Reads the kernel's own words: the flags of the first CPU, and its clock. */
static bool kernel_says(void) {
    char line[8192], source[64] = "";
    bool flags = false;
    FILE *f = fopen("/proc/cpuinfo", "r");
    if (!f) return false;
    while (!flags && fgets(line, sizeof line, f))
        flags = strncmp(line, "flags", 5) == 0 &&
                strstr(line, " constant_tsc") && strstr(line, " nonstop_tsc");
    fclose(f);
    f = fopen("/sys/devices/system/clocksource/clocksource0/"
              "current_clocksource",
              "r");
    if (!f) return false;
    if (!fgets(source, sizeof source, f)) source[0] = '\0';
    fclose(f);
    return flags && strcmp(source, "tsc\n") == 0;
}

static void this_machine_as_the_kernel_says(void **state) {
    (void)state;
    char why[80];
    assert_int_equal(tsc_usable(why, sizeof why), kernel_says());
    assert_int_equal(why[0] == '\0', kernel_says());
}

static void a_forbidden_tsc_is_not_read(void **state) {
    (void)state;
    char why[80];
    if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV) != 0)
        skip_because("the time stamp counter cannot be forbidden here");
    bool usable = tsc_usable(why, sizeof why);
    assert_int_equal(prctl(PR_SET_TSC, PR_TSC_ENABLE), 0);
    assert_false(usable);
    assert_string_equal(why, "reading the TSC is forbidden");
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rule),
#if defined(__x86_64__)
        cmocka_unit_test(this_machine_as_the_kernel_says),
        cmocka_unit_test(a_forbidden_tsc_is_not_read),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
