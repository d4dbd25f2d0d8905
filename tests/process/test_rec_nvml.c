/* SPDX-License-Identifier: Apache-2.0
 * GPU counters, with a stand-in for the driver's library (tests/fake/nvml.c)
 * that this test builds with the C compiler. */
#include "rec/machine/nvml.h"

#include "fake/nvml.h"
#include "rec/temp.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

extern char **environ;
static char dir[TEMP_MAX];
static char library[TEMP_MAX + 32], old_library[TEMP_MAX + 32];

/* cc -shared -fPIC [-DOLD] -o out tests/fake/nvml.c: 0 when it worked. */
static int build(const char *out, const char *flag) {
    const char *cc = getenv("CC");
    /* clang-format off */
    char *argv[] = {(char *)(cc && *cc ? cc : "cc"), "-shared", "-fPIC",
                    (char *)flag, "-D_GNU_SOURCE", "-o", (char *)out,
                    "tests/fake/nvml.c", NULL};
    /* clang-format on */
    pid_t child;
    int status;
    if (posix_spawnp(&child, argv[0], NULL, NULL, argv, environ) != 0) {
        argv[0] = "cc"; /* $CC may be a command with options */
        if (posix_spawnp(&child, "cc", NULL, NULL, argv, environ) != 0)
            return -1;
    }
    return waitpid(child, &status, 0) == child && status == 0 ? 0 : -1;
}

static int build_fakes(void **state) {
    (void)state;
    if (!mkdtemp(temp_name(dir, "nvml"))) return -1;
    snprintf(library, sizeof library, "%s/libfake.so", dir);
    snprintf(old_library, sizeof old_library, "%s/libold.so", dir);
    return build(library, "-O1") || build(old_library, "-DOLD");
}

static int remove_fakes(void **state) {
    (void)state;
    unlink(library);
    unlink(old_library);
    return rmdir(dir);
}

/* Returns the stand-in's controls, all as in the beginning. */
static struct fake_nvml *controls(void) {
    void *lib = dlopen(library, RTLD_NOW);
    if (!lib) fail_msg("%s", dlerror());
    struct fake_nvml *f = dlsym(lib, "fake_nvml");
    assert_non_null(f);
    memset(f, 0, sizeof *f);
    f->ngpus = 2;
    return f;
}

struct bag {
    int n;
    struct {
        char name[64], text[256];
        double value;
    } got[256];
};

static void keep(void *to, const char *counter, double value) {
    struct bag *b = to;
    int i = 0;
    while (i < b->n && strcmp(b->got[i].name, counter) != 0) i++;
    assert_true(i < 256);
    snprintf(b->got[i].name, sizeof b->got[0].name, "%s", counter);
    b->got[i].value = value;
    if (i == b->n) b->n++;
}

static void keep_fact(void *to, const char *key, const char *value) {
    struct bag *b = to;
    keep(to, key, 0);
    for (int i = 0; i < b->n; i++)
        if (strcmp(b->got[i].name, key) == 0)
            snprintf(b->got[i].text, sizeof b->got[0].text, "%s", value);
}

static double value_of(const struct bag *b, const char *name) {
    for (int i = 0; i < b->n; i++)
        if (strcmp(b->got[i].name, name) == 0) return b->got[i].value;
    return -1;
}

static const char *fact(const struct bag *b, const char *name) {
    for (int i = 0; i < b->n; i++)
        if (strcmp(b->got[i].name, name) == 0) return b->got[i].text;
    return "(none)";
}

static void nap(void) { nanosleep(&(struct timespec){0, 2000000}, NULL); }

static struct bag facts_of(struct nvml *n) {
    struct bag b = {0};
    for (int i = 0; i < 5000 && !nvml_facts(n, keep_fact, &b); i++) nap();
    assert_string_not_equal(fact(&b, "nvml"), "(none)");
    return b;
}

/* Fetches until the counter comes, or the time is over. */
static void fetch(struct nvml *n, struct bag *b, const char *until) {
    for (int i = 0; i < 5000 && value_of(b, until) < 0; i++) {
        nvml_run(n, keep, b);
        nap();
    }
    if (value_of(b, until) < 0) fail_msg("%s does not come", until);
}

static void no_library_is_one_fact(void **state) {
    (void)state;
    static const char *const none[] = {"libopscope-no-such-library.so.1",
                                       "libm.so.6", "/dev/null", ""};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        struct nvml n;
        struct bag b = {0};
        nvml_open(&n, none[i], NULL);
        struct bag f = facts_of(&n);
        assert_string_equal(fact(&f, "nvml"), "not found");
        assert_int_equal(f.n, 1);
        nvml_run(&n, keep, &b);
        assert_int_equal(b.n, 0);
        nvml_close(&n);
        nvml_close(&n); /* a second time does nothing */
        nvml_run(&n, keep, &b);
        assert_int_equal(b.n, 0);
    }
}

static void every_counter_has_its_unit(void **state) {
    (void)state;
    struct fake_nvml *f = controls();
    struct nvml n;
    struct bag b = {0};
    nvml_open(&n, library, NULL);
    fetch(&n, &b, "GPU 0: PCIe sent (bytes/s)");
    fetch(&n, &b, "GPU 1: PCIe sent (bytes/s)"); /* its turn comes later */
    struct bag facts = facts_of(&n);
    nvml_close(&n);
    assert_true(value_of(&b, "GPU 0: memory used (bytes)") == 6442450944.0);
    assert_true(value_of(&b, "GPU 1: memory used (bytes)") == 6442450945.0);
    assert_true(value_of(&b, "GPU 1: utilisation (%)") == 61);
    assert_true(value_of(&b, "GPU 1: memory utilisation (%)") == 23);
    assert_true(value_of(&b, "GPU 0: SM clock (MHz)") == 1980);
    assert_true(value_of(&b, "GPU 0: memory clock (MHz)") == 3201);
    double watts = value_of(&b, "GPU 0: power (W)");
    assert_true(watts > 345.6779 && watts < 345.6781);
    assert_true(value_of(&b, "GPU 0: temperature (C)") == 47);
    assert_true(value_of(&b, "GPU 0: PCIe sent (bytes/s)") == 1234000);
    assert_true(value_of(&b, "GPU 0: PCIe received (bytes/s)") == 5678000);
    assert_int_equal(b.n, 18);
    assert_string_equal(fact(&facts, "nvml"), "driver 999.42");
    assert_string_equal(fact(&facts, "gpu.1.name"), "Fake B");
    assert_string_equal(fact(&facts, "gpu.1.uuid"),
                        "GPU-bbbbbbbb-1111-2222-3333-444444444444");
    assert_string_equal(fact(&facts, "gpu.1.pci"), "00000000:02:00.0");
    assert_string_equal(fact(&facts, "gpu.1.memory_bytes"), "85899345920");
    assert_string_equal(fact(&facts, "gpu.1.nvml_index"), "1");
    assert_string_equal(fact(&facts, "gpu.1.missing"), "(none)");
    assert_int_equal(f->inits, 1);
    assert_int_equal(f->shutdowns, 1);
    assert_int_equal(f->signals_open, 0);
}

static void a_library_that_fails_says_why(void **state) {
    (void)state;
    struct fake_nvml *f = controls();
    struct nvml n;
    f->init_code = 9;
    nvml_open(&n, library, NULL);
    struct bag b = facts_of(&n);
    nvml_close(&n);
    assert_string_equal(fact(&b, "nvml"), "did not start: Driver Not Loaded");
    assert_int_equal(f->shutdowns, 0);
    f = controls();
    f->count_code = 999;
    nvml_open(&n, library, NULL);
    b = facts_of(&n);
    nvml_close(&n);
    assert_string_equal(fact(&b, "nvml"), "no list of GPUs: Unknown Error");
    assert_int_equal(f->shutdowns, 1);
    f = controls();
    f->ngpus = 0;
    nvml_open(&n, library, NULL);
    b = facts_of(&n);
    nvml_close(&n);
    assert_string_equal(fact(&b, "nvml"), "driver 999.42, no GPU is visible");
    assert_int_equal(f->shutdowns, 1);
}

static void what_is_not_supported_is_named(void **state) {
    (void)state;
    struct fake_nvml *f = controls();
    struct nvml n;
    struct bag b = {0};
    f->power_code[1] = 3;
    f->lost[0] = 15;
    nvml_open(&n, library, NULL);
    fetch(&n, &b, "GPU 1: PCIe sent (bytes/s)");
    struct bag facts = facts_of(&n);
    nvml_close(&n);
    assert_true(value_of(&b, "GPU 1: power (W)") == -1);
    assert_true(value_of(&b, "GPU 1: temperature (C)") == 47);
    assert_string_equal(fact(&facts, "gpu.1.missing"),
                        "power (W): Not Supported");
    assert_true(value_of(&b, "GPU 0: memory used (bytes)") == -1);
    assert_non_null(strstr(fact(&facts, "gpu.0.missing"),
                           "memory used (bytes): GPU is lost; util"));
}

static void an_old_driver_lacks_functions(void **state) {
    (void)state;
    struct nvml n;
    struct bag b = {0};
    nvml_open(&n, old_library, NULL);
    fetch(&n, &b, "GPU 1: temperature (C)");
    struct bag facts = facts_of(&n);
    for (int i = 0; i < 5000; i++) {
        if (strstr(fact(&facts, "gpu.0.missing"), "PCIe sent")) break;
        nap();
        facts = facts_of(&n);
    }
    nvml_close(&n);
    assert_string_equal(fact(&facts, "gpu.0.missing"),
                        "power (W): Function Not Found; PCIe received "
                        "(bytes/s): Function Not Found; PCIe sent (bytes/s): "
                        "Function Not Found");
    assert_true(value_of(&b, "GPU 1: memory used (bytes)") == 7516192769.0);
    assert_int_equal(b.n, 12);
}

static void without_the_newer_memory_call_the_older_is_taken(void **state) {
    (void)state;
    struct fake_nvml *f = controls();
    struct nvml n;
    struct bag b = {0};
    f->memory2_code = 25; /* argument version mismatch */
    nvml_open(&n, library, NULL);
    fetch(&n, &b, "GPU 0: memory used (bytes)");
    nvml_close(&n);
    assert_true(value_of(&b, "GPU 0: memory used (bytes)") == 7516192768.0);
}

static void a_passing_error_passes(void **state) {
    (void)state;
    struct fake_nvml *f = controls();
    struct nvml n;
    struct bag b = {0};
    f->ngpus = 1;
    f->clock_fails = 5; /* two clocks: fewer than ten in a row each */
    nvml_open(&n, library, NULL);
    fetch(&n, &b, "GPU 0: SM clock (MHz)");
    nvml_close(&n);
    assert_int_equal(f->clock_fails, 0);
    f = controls();
    f->ngpus = 1;
    f->clock_fails = 1000;
    memset(&b, 0, sizeof b);
    nvml_open(&n, library, NULL);
    struct bag facts = facts_of(&n);
    for (int i = 0; i < 5000; i++) {
        if (strstr(fact(&facts, "gpu.0.missing"), "memory clock")) break;
        nvml_run(&n, keep, &b);
        nap();
        facts = facts_of(&n);
    }
    nvml_close(&n);
    assert_int_equal(f->clock_fails, 1000 - 20); /* and then not asked again */
    assert_true(value_of(&b, "GPU 0: SM clock (MHz)") == -1);
    assert_true(value_of(&b, "GPU 0: power (W)") > 0);
}

static void cuda_visible_devices_chooses_and_orders(void **state) {
    (void)state;
    static const struct {
        const char *visible;
        const char *gpus; /* their names' last letters, in order */
    } cases[] = {
        {"1,0", "BA"},
        {"1", "B"},
        {" 1 , 0 ", "BA"},
        {"GPU-bbbb", "B"},
        {"GPU-bbbb,GPU-aaaa", "BA"},
        {"MIG-cccccccc-1111-2222-3333-444444444444", "C"},
        {"", ""},
        {"-1", ""},
        {"NoDevFiles", ""},
        {"GPU-zzzz", ""},
        {"0,7,1", "A"},
        {"1,-1,0", "B"},
        {"0,,1", "A"},
        {"99999999999999999999", ""},
        {"4294967296", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct nvml n;
        char got[8] = "", key[32];
        controls();
        nvml_open(&n, library, cases[i].visible);
        struct bag b = facts_of(&n);
        nvml_close(&n);
        for (int k = 0; k < 3; k++) {
            snprintf(key, sizeof key, "gpu.%d.name", k);
            const char *name = fact(&b, key);
            if (name[0] == 'F') strncat(got, name + 5, 1);
        }
        if (strcmp(got, cases[i].gpus) != 0)
            fail_msg("'%s' gives %s", cases[i].visible, got);
    }
}

/* Close comes back although the driver does not; the thread cleans up when it
 * is let go. */
static void a_driver_that_hangs_holds_nobody_up(void **state) {
    (void)state;
    struct fake_nvml *f = controls();
    struct nvml n;
    struct bag b = {0};
    f->hang = 1;
    nvml_open(&n, library, NULL);
    while (__atomic_load_n(&f->hanging, __ATOMIC_ACQUIRE) == 0) nap();
    assert_false(nvml_facts(&n, keep_fact, &b));
    nvml_run(&n, keep, &b);
    assert_int_equal(b.n, 0);
    nvml_close(&n);
    assert_int_equal(f->shutdowns, 0);
    __atomic_store_n(&f->hang, 0, __ATOMIC_RELEASE);
    for (int i = 0; i < 5000; i++) {
        if (__atomic_load_n(&f->shutdowns, __ATOMIC_ACQUIRE)) break;
        nap();
    }
    assert_int_equal(f->shutdowns, 1);
    nap();
}

/* Unfetched, the rounds become seldom; a fetch brings them back at once. */
static void nobody_fetches_nobody_asks(void **state) {
    (void)state;
    struct fake_nvml *f = controls();
    struct nvml n;
    struct bag b = {0};
    f->ngpus = 1;
    nvml_open(&n, library, NULL);
    struct bag facts = facts_of(&n);
    assert_string_equal(fact(&facts, "gpu.0.name"), "Fake A");
    for (int i = 0; i < 600; i++) nap(); /* at least 1.2 s */
    int before = __atomic_load_n(&f->calls, __ATOMIC_ACQUIRE);
    for (int i = 0; i < 250; i++) nap();
    int idle = __atomic_load_n(&f->calls, __ATOMIC_ACQUIRE) - before;
    fetch(&n, &b, "GPU 0: temperature (C)");
    before = __atomic_load_n(&f->calls, __ATOMIC_ACQUIRE);
    for (int i = 0; i < 250; i++) {
        nvml_run(&n, keep, &b);
        nap();
    }
    int busy = __atomic_load_n(&f->calls, __ATOMIC_ACQUIRE) - before;
    nvml_close(&n);
    assert_true(busy > idle);
}

static void open_and_close_at_once(void **state) {
    (void)state;
    struct fake_nvml *f = controls();
    for (int i = 0; i < 50; i++) {
        struct nvml n;
        nvml_open(&n, library, NULL);
        nvml_close(&n);
    }
    assert_int_equal(f->shutdowns, f->inits);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_library_is_one_fact),
        cmocka_unit_test(every_counter_has_its_unit),
        cmocka_unit_test(a_library_that_fails_says_why),
        cmocka_unit_test(what_is_not_supported_is_named),
        cmocka_unit_test(an_old_driver_lacks_functions),
        cmocka_unit_test(without_the_newer_memory_call_the_older_is_taken),
        cmocka_unit_test(a_passing_error_passes),
        cmocka_unit_test(cuda_visible_devices_chooses_and_orders),
        cmocka_unit_test(a_driver_that_hangs_holds_nobody_up),
        cmocka_unit_test(nobody_fetches_nobody_asks),
        cmocka_unit_test(open_and_close_at_once),
    };
    return cmocka_run_group_tests(tests, build_fakes, remove_fakes);
}
