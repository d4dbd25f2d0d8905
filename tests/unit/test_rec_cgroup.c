/* SPDX-License-Identifier: Apache-2.0
 * Control groups: trees of version 1 and 2 as containers have them, made in a
 * folder of the test. */
#include "rec/machine/cgroup.h"
#include "rec/temp.h"
#include "ring/procfile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ftw.h>

#include <cmocka.h>

static int remove_one(const char *path, const struct stat *st, int flag,
                      struct FTW *ftw) {
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

static int make_root(void **state) {
    char name[TEMP_MAX];
    if (!mkdtemp(temp_name(name, "cgroup"))) return -1;
    *state = strdup(name);
    return 0;
}

static int remove_root(void **state) {
    nftw(*state, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(*state);
    return 0;
}

/* Writes root/path, making the folders on the way. */
static void put(const char *root, const char *path, const char *text) {
    char full[512];
    snprintf(full, sizeof full, "%s/%s", root, path);
    for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        mkdir(full, 0700);
        *p = '/';
    }
    FILE *f = fopen(full, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void version_2_takes_the_tightest_level(void **state) {
    const char *root = *state;
    struct cgroup g;
    put(root, "pod/memory.current", "700\n");
    put(root, "pod/memory.max", "1000000\n");
    put(root, "pod/cpu.max", "150000 100000\n");
    put(root, "pod/cpu.stat", "usage_usec 5\nnr_throttled 7\n");
    put(root, "pod/box/memory.current", "500\n");
    put(root, "pod/box/memory.max", "max\n");
    put(root, "pod/box/cpu.max", "max 100000\n");
    cgroup_find(&g, "0::/pod/box\n", root);
    assert_true(g.memory_limit == 1000000);
    assert_true(g.cpu_limit == 1.5);
    assert_true(g.memory_v2 && g.cpu_v2);
    char text[64];
    int fd = cgroup_open_memory(&g);
    assert_true(procfile_reread(fd, text, sizeof text) == 4);
    assert_string_equal(text, "500\n");
    close(fd);
    fd = cgroup_open_cpu(&g); /* the quota is the pod's, so is the throttling */
    uint64_t n = 0;
    assert_true(procfile_reread(fd, text, sizeof text) > 0);
    assert_true(procfile_u64(text, "nr_throttled", &n) && n == 7);
    close(fd);
}

static void version_1_has_a_tree_for_each(void **state) {
    const char *root = *state;
    struct cgroup g;
    put(root, "memory/docker/x/memory.usage_in_bytes", "500\n");
    put(root, "memory/docker/x/memory.limit_in_bytes", "9000\n");
    put(root, "memory/memory.usage_in_bytes", "77777\n");
    put(root, "memory/memory.limit_in_bytes", "9223372036854771712\n");
    put(root, "cpu/cpu.cfs_quota_us", "-1\n");
    put(root, "cpu/cpu.cfs_period_us", "100000\n");
    cgroup_find(&g, "5:cpu,cpuacct:/\n4:memory:/docker/x\n0::/y\n", root);
    assert_true(g.memory_limit == 9000);
    assert_false(g.memory_v2 || g.cpu_v2);
    assert_true(g.cpu_limit == 0);
    assert_string_equal(g.cpu, "");
    assert_int_equal(cgroup_open_cpu(&g), -1);
    put(root, "cpu/cpu.cfs_quota_us", "50000\n");
    cgroup_find(&g, "5:cpu,cpuacct:/\n4:memory:/docker/x\n", root);
    assert_true(g.cpu_limit == 0.5);
}

/* Copies of files go when memory is needed: a container that is full of them
 * has room. */
static void copies_of_files_are_room(void **state) {
    const char *root = *state;
    struct cgroup g;
    put(root, "memory/a/memory.usage_in_bytes", "9990\n");
    put(root, "memory/a/memory.limit_in_bytes", "10000\n");
    cgroup_find(&g, "4:memory:/a\n", root);
    assert_true(cgroup_memory_left(&g) == 10);
    put(root, "memory/a/memory.stat",
        "cache 8000\nshmem 900\ninactive_file 1\nactive_file 2\n"
        "total_inactive_file 6000\ntotal_active_file 1000\n");
    assert_true(cgroup_memory_left(&g) == 7010);
    put(root, "memory/a/memory.usage_in_bytes", "20000\n");
    assert_true(cgroup_memory_left(&g) == 0);
    put(root, "memory/a/memory.usage_in_bytes", "5000\n");
    assert_true(cgroup_memory_left(&g) == 10000);
    put(root, "b/memory.current", "10000\n");
    put(root, "b/memory.max", "10000\n");
    put(root, "b/memory.stat",
        "anon 5000\nfile 4500\nshmem 500\ninactive_file 3000\n"
        "active_file 1000\nworkingset_refault_file 7\n");
    cgroup_find(&g, "0::/b\n", root);
    assert_true(cgroup_memory_left(&g) == 4000);
    put(root, "b/memory.max", "max\n");
    cgroup_find(&g, "0::/b\n", root);
    assert_true(cgroup_memory_left(&g) == UINT64_MAX);
}

/* Without a namespace of its own a container sees the host's path, and its own
 * group as the mount's root. */
static void a_path_of_the_host_falls_back_to_the_mount(void **state) {
    const char *root = *state;
    struct cgroup g;
    put(root, "memory/memory.usage_in_bytes", "123\n");
    put(root, "memory/memory.limit_in_bytes", "4096\n");
    cgroup_find(&g, "4:memory:/kubepods/burstable/pod1/abc\n", root);
    assert_true(g.memory_limit == 4096);
    assert_int_equal(strlen(g.memory), strlen(root) + strlen("/memory"));
}

static void nothing_there_is_no_limit(void **state) {
    const char *root = *state;
    /* clang-format off */
    static const char *const texts[] = {
        "", "\n", "0::\n", "0::/\n", "junk", "4:memory", "4:memory:",
        "4:memory:relative\n", "::::\n", "0::/../../etc\n", "4:memor:/x\n",
    };
    /* clang-format on */
    struct cgroup g;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        cgroup_find(&g, texts[i], root);
        assert_true(g.memory_limit == 0 && g.cpu_limit == 0);
        assert_int_equal(cgroup_open_memory(&g), -1);
    }
    char *deep = malloc(5000);
    memset(deep, 'a', 4999);
    memcpy(deep, "0::/", 4);
    deep[4999] = '\0';
    cgroup_find(&g, deep, root);
    assert_string_equal(g.memory, "");
    free(deep);
    put(root, "memory.current", "");
    put(root, "memory.max", "12x\n");
    put(root, "cpu.max", "5 0\n");
    cgroup_find(&g, "0::/\n", root);
    assert_true(g.memory_limit == 0 && g.cpu_limit == 0);
}

static void lines_are_found_by_their_key(void **state) {
    (void)state;
    const char *text = "VmPeakX: 1\nVmPeak:\t 3060 kB\nrchar: 7\nlast 9";
    uint64_t n = 0;
    assert_true(procfile_u64(text, "VmPeak", &n) && n == 3060);
    assert_true(procfile_u64(text, "rchar", &n) && n == 7);
    assert_true(procfile_u64(text, "last", &n) && n == 9);
    assert_false(procfile_u64(text, "char", &n));
    assert_false(procfile_u64("", "x", &n));
    assert_false(procfile_u64("x", "x", &n));
    assert_false(procfile_u64("x 99999999999999999999", "x", &n));
    int64_t v;
    assert_true(procfile_whole("0", &v) && v == 0);
    assert_false(procfile_whole("", &v) || procfile_whole("-1", &v) ||
                 procfile_whole("1 ", &v) || procfile_whole("+1", &v));
}

int main(void) {
#define IN_ROOT(f) cmocka_unit_test_setup_teardown(f, make_root, remove_root)
    const struct CMUnitTest tests[] = {
        IN_ROOT(version_2_takes_the_tightest_level),
        IN_ROOT(version_1_has_a_tree_for_each),
        IN_ROOT(copies_of_files_are_room),
        IN_ROOT(a_path_of_the_host_falls_back_to_the_mount),
        IN_ROOT(nothing_there_is_no_limit),
        cmocka_unit_test(lines_are_found_by_their_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
