/* SPDX-License-Identifier: Apache-2.0
 * Recordings that lie in several files: parts, devices' files, pointers to
 * shared memory that is there, gone, damaged, or somebody's trap. */
#include "base/facts.h"
#include "import/import.h"
#include "load/runs.h"
#include "load/runs_impl.h"
#include "model/args.h"
#include "opscope/record.h"
#include "rec/temp.h"
#include "ring/ring.h"
#include "unit/ownwrite.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define US INT64_C(1000000)

static char root[TEMP_MAX];

static int remove_one(const char *p, const struct stat *st, int type,
                      struct FTW *w) {
    (void)st;
    (void)type;
    (void)w;
    return remove(p);
}

static int make_root(void **state) {
    (void)state;
    return mkdtemp(temp_name(root, "own")) ? 0 : -1;
}

static int drop_root(void **state) {
    (void)state;
    return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static const char *at(const char *name) {
    static char path[4][256];
    static int turn;
    char *p = path[turn++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", root, name);
    return p;
}

static void put(const char *name, const void *p, size_t n) {
    FILE *f = fopen(at(name), "w");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    fclose(f);
}

static void put_out(const char *name, struct out *o) {
    put(name, o->p, o->n);
    out_free(o);
}

/* Loads everything below a path, as traces. */
static void load(const char *path, struct loaded *l) {
    struct run_list runs;
    const struct run *run;
    struct ops_err e = {0};
    struct import_opts o = {.threads = 1};
    assert_int_equal(runs_find(path, &runs, &e), 0);
    assert_int_equal(runs_pick(&runs, NULL, &run, &e), 0);
    assert_int_equal(run->nskips, 0);
    assert_int_equal(runs_load(run->files, run->n, &o, l, &e), 0);
    runs_free(&runs);
}

static void names_of_files_tell_their_place(void **state) {
    (void)state;
    static const struct {
        const char *path;
        bool own;
        size_t stem;
        uint64_t part, device;
        enum own_form form;
    } v[] = {
        {"d/h_1.xplane.pb", true, 5, 0, 0, OWN_WHOLE},
        {"d/h_1.3.xplane.pb", true, 5, 3, 0, OWN_WHOLE},
        {"d/h_1.xplane.pb.part", true, 5, 0, 0, OWN_PART},
        {"d/h_1.12.device2.xplane.pb.part", true, 5, 12, 2, OWN_PART},
        {"d/h_1.device1.xplane.pb.part", true, 5, 0, 1, OWN_PART},
        {"h_1.ring", true, 3, 0, 0, OWN_RING},
        {"d/10.0.0.1_5.xplane.pb", true, 12, 0, 0, OWN_WHOLE},
        {"d/h_1.json", false, 0, 0, 0, OWN_WHOLE},
        {".ring", false, 0, 0, 0, OWN_WHOLE},
        {"d/.xplane.pb", false, 0, 0, 0, OWN_WHOLE},
    };
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        struct own_file f;
        assert_int_equal(own_file_of(v[i].path, &f), v[i].own);
        if (!v[i].own) continue;
        assert_int_equal(f.stem, v[i].stem);
        assert_int_equal(f.part, v[i].part);
        assert_int_equal(f.device, v[i].device);
        assert_int_equal(f.form, v[i].form);
    }
    assert_true(own_same_stem("d/h_1.ring", "d/h_1.2.xplane.pb"));
    assert_false(own_same_stem("d/h_1.ring", "e/h_1.2.xplane.pb"));
    assert_false(own_same_stem("d/h_1.ring", "d/h_12.xplane.pb"));
}

/* Writes three files of one process: a closed part, the open one, its
 * device's. */
static void put_recording(void) {
    struct own_plane p;
    struct out f = {0}, s = {0};
    own_host(&p);
    own_line(&p, 7, "main/7", 0);
    own_mem(&p, own_name(&p, "MemoryAllocation", NULL), 5 * US, 0x10, 100, "x");
    arg_uint(&p, &s, "flow", 3 << 2 | 2);
    own_event(&p, own_name(&p, "put", "op"), 10 * US, 5 * US, &s);
    own_close(&f, &p);
    own_environment(&f);
    put_out("box_1.xplane.pb", &f);

    own_host(&p);
    own_fact_int(&p, "rank", 2);
    own_line(&p, 7, "main/7", 0);
    own_mem(&p, own_name(&p, "MemoryDeallocation", NULL), 40 * US, 0x10, -1,
            NULL);
    arg_uint(&p, &s, "correlation_id", 9);
    arg_uint(&p, &s, "flow", 3 << 2 | 1);
    arg_int(&p, &s, "layer", 4);
    own_event(&p, own_name(&p, "get", "op"), 30 * US, 5 * US, &s);
    own_event(&p, own_name(&p, "outer", "op"), 2 * US, 90 * US, NULL);
    own_close(&f, &p);
    out_raw(&f, "\x1a\x7f torn", 7); /* not committed yet */
    put_out("box_1.1.xplane.pb.part", &f);

    own_plane(&p, 1, "/device:CUSTOM:npu 0");
    own_fact_int(&p, "start_unix_ns", OWN_START);
    own_line(&p, 1, "q", 31);
    arg_uint(&p, &s, "correlation_id", 9);
    own_event(&p, own_name(&p, "kernel", "kernel"), US, 2 * US, &s);
    own_close(&f, &p);
    put_out("box_1.1.device1.xplane.pb.part", &f);
}

static void check_recording(const struct trace *t) {
    assert_int_equal(t->nprocesses, 1);
    assert_int_equal(t->nsources, 3);
    assert_int_equal(t->sources[0].rank, 2); /* the later file knew it */
    assert_int_equal(t->spans.n, 4);
    assert_int_equal(t->links.n, 1);
    assert_int_equal(t->flows.n, 1);
    assert_int_equal(t->mem.n, 2);
    assert_int_equal(t->mem.bytes[1], -100);
    assert_int_equal(t->notes[NOTE_PART_OPEN], 1);
    assert_int_equal(t->notes[NOTE_FREE_WITHOUT_ALLOC], 0);
    assert_int_equal(t->notes[NOTE_FILE_CUT], 0);
    assert_int_equal(t->notes[NOTE_CLOCK_UNKNOWN], 0);
    row_id get = ROW_NONE, outer = ROW_NONE, put_row = ROW_NONE;
    for (row_id r = 0; r < t->spans.n; r++) {
        if (strcmp(span_name(t, r), "get") == 0) get = r;
        if (strcmp(span_name(t, r), "put") == 0) put_row = r;
        if (strcmp(span_name(t, r), "outer") == 0) outer = r;
    }
    /* a scope that ended in a later part is around what is in an earlier */
    assert_int_equal(t->spans.parent[put_row], outer);
    assert_int_equal(t->links.host[0], get);
    assert_int_equal(t->spans.ts[t->links.device[0]], 31 * 1000 + US);
    struct arg a = args_get(t, get, "layer");
    assert_int_equal(a.i, 4); /* arguments of the second file */
}

static void parts_and_devices_of_one_stem_are_one(void **state) {
    (void)state;
    struct loaded l;
    put_recording();
    load(root, &l);
    assert_int_equal(l.n, 1);
    check_recording(l.v[0]);
    loaded_free(&l);
    /* one file that is not closed stands for all of them */
    load(at("box_1.1.xplane.pb.part"), &l);
    assert_int_equal(l.n, 1);
    check_recording(l.v[0]);
    loaded_free(&l);
    /* a closed one for itself */
    load(at("box_1.xplane.pb"), &l);
    assert_int_equal(l.v[0]->nsources, 1);
    loaded_free(&l);
}

static void ranks_in_parts_are_one_job(void **state) {
    (void)state;
    struct loaded l;
    struct own_plane p;
    struct out f = {0};
    put_recording();
    for (int part = 0; part < 2; part++) {
        own_host(&p);
        own_fact_int(&p, "rank", 0);
        own_line(&p, 7, "main/7", 0);
        struct out s = {0};
        arg_int(&p, &s, "layer", 70 + part);
        own_event(&p, own_name(&p, part ? "later" : "early", "op"),
                  (10 + part * 20) * US, 5 * US, &s);
        own_close(&f, &p);
        own_environment(&f);
        put_out(part ? "box_0.1.xplane.pb" : "box_0.xplane.pb", &f);
    }
    load(root, &l);
    assert_int_equal(l.n, 1);
    const struct trace *t = l.v[0];
    assert_int_equal(t->nprocesses, 2);
    assert_int_equal(t->spans.n, 6);
    for (row_id r = 0; r < t->spans.n; r++) {
        int64_t want = -1;
        if (strcmp(span_name(t, r), "early") == 0) want = 70;
        if (strcmp(span_name(t, r), "later") == 0) want = 71;
        if (strcmp(span_name(t, r), "get") == 0) want = 4;
        assert_int_equal(args_int(t, r, "layer", -1), want);
    }
    loaded_free(&l);
}

/* Writes the file of a process of a family (0: none is told) that runs
 * from..to, so many days later; a file without events if it does not. */
static void put_later(const char *name, int64_t pid, int64_t family,
                      int64_t from, int64_t to, int64_t days) {
    const int64_t start = OWN_START + days * 24 * 3600 * 1000000000;
    struct own_plane p;
    struct out f = {0};
    own_host(&p);
    own_fact_int(&p, "process_id", pid);
    if (family != 0) own_fact_int(&p, "family", family);
    own_line(&p, 7, "main/7", 0);
    if (from < to)
        own_event(&p, own_name(&p, "work", "op"), from * US, (to - from) * US,
                  NULL);
    own_close(&f, &p);
    own_environment_at(&f, start);
    put_out(name, &f);
}

static void put_relative(const char *name, int64_t pid, int64_t family,
                         int64_t from, int64_t to) {
    put_later(name, pid, family, from, to, 0);
}

static void put_process(const char *name, int64_t pid, int64_t from,
                        int64_t to) {
    put_relative(name, pid, 0, from, to);
}

/* Workers come one after the other, and the first has a name that sorts before
 * the program's: each shares time with the program alone. Who began when all
 * was over is a program of its own. */
static void workers_one_after_the_other_are_one_program(void **state) {
    (void)state;
    struct loaded l;
    put_process("box_10001.xplane.pb", 10001, 10, 20);
    put_process("box_10003.xplane.pb", 10003, 50, 60);
    put_process("box_10005.xplane.pb", 10005, 500, 600);
    put_process("box_9999.xplane.pb", 9999, 0, 100);
    load(root, &l);
    assert_int_equal(l.n, 2);
    assert_int_equal(l.v[0]->nprocesses, 3);
    assert_int_equal(l.v[0]->sources[0].pid, 9999);
    assert_int_equal(l.v[1]->nprocesses, 1);
    assert_int_equal(l.v[1]->sources[0].pid, 10005);
    loaded_free(&l);
}

/* Counts the steps of a recording of four, with an instant inside of the last
 * one, and another behind the first. */
static size_t steps_with(const char *tail, const char *anew) {
    struct own_plane p;
    struct out f = {0};
    struct loaded l;
    own_host(&p);
    own_fact_int(&p, "process_id", 5);
    own_line(&p, 7, "main/7", 0);
    int64_t step = own_name(&p, "step", NULL);
    for (int i = 0; i < 4; i++) own_step(&p, step, i + 1, 10 * i * US, 9 * US);
    if (tail) own_event(&p, own_name(&p, tail, "op"), 31 * US, 0, NULL);
    if (anew) own_event(&p, own_name(&p, anew, "op"), 9 * US, 0, NULL);
    own_close(&f, &p);
    own_environment(&f);
    put_out("box_5.xplane.pb", &f);
    load(root, &l);
    size_t n = l.v[0]->nsteps;
    loaded_free(&l);
    return n;
}

static void steps_that_turned_out_as_none(void **state) {
    (void)state;
    assert_int_equal(steps_with(NULL, NULL), 4);
    assert_int_equal(steps_with("other", NULL), 4);
    assert_int_equal(steps_with(SPAN_NO_STEP, NULL), 3);
    assert_int_equal(steps_with(NULL, SPAN_ANEW), 3);
    assert_int_equal(steps_with(SPAN_NO_STEP, SPAN_ANEW), 2);
}

/* Processes that forked each other are one program, whether or not they
 * recorded anything at the same time; another family in between is not. */
static void a_family_is_one_program(void **state) {
    (void)state;
    struct loaded l;
    put_relative("box_1001.xplane.pb", 1001, 77, 0, 0);
    put_relative("box_1002.xplane.pb", 1002, 77, 300, 400);
    put_relative("box_1003.xplane.pb", 1003, 77, 50, 60);
    put_relative("box_1004.xplane.pb", 1004, 78, 150, 160);
    put_relative("box_1005.xplane.pb", 1005, 78, 170, 180);
    put_relative("box_999.xplane.pb", 999, 77, 0, 10);
    load(root, &l);
    assert_int_equal(l.n, 2);
    assert_int_equal(l.v[0]->nsources, 4);
    assert_int_equal(l.v[0]->sources[0].pid, 999);
    assert_int_equal(l.v[1]->nsources, 2);
    assert_int_equal(l.v[1]->sources[0].pid, 1004);
    loaded_free(&l);
}

/* One whose clock says that it ran years away stands on no time line with the
 * others: it is a profile of its own, and they are read all the same. */
static void a_family_that_lies_too_far_apart(void **state) {
    (void)state;
    for (int64_t days = -900; days <= 900; days += 1800) {
        struct loaded l;
        put_later("box_1001.xplane.pb", 1001, 77, 20, 30, days);
        put_later("box_1002.xplane.pb", 1002, 77, 0, 0, days);
        put_relative("box_1003.xplane.pb", 1003, 77, 50, 60);
        put_relative("box_999.xplane.pb", 999, 77, 0, 10);
        load(root, &l);
        size_t sources = 0, largest = 0;
        for (size_t i = 0; i < l.n; i++) {
            sources += l.v[i]->nsources;
            if (l.v[i]->nsources > largest) largest = l.v[i]->nsources;
        }
        assert_int_equal(sources, 4);
        assert_true(l.n >= 2);
        assert_int_equal(largest, 2);
        loaded_free(&l);
    }
}

/* ---- pointers ---- */

static void pointer_to(const char *target) {
    char line[300];
    int n = snprintf(line, sizeof line, "%s\n", target);
    put("box_1.ring", line, (size_t)n);
}

static void expect_note(enum note_id id) {
    struct loaded l;
    load(root, &l);
    assert_int_equal(l.n, 1);
    const struct trace *t = l.v[0];
    assert_int_equal(t->notes[id], 1);
    assert_int_equal(t->notes[NOTE_EMPTY_FILE], 0);
    assert_int_equal(t->spans.n, 4); /* the files are good all the same */
    assert_int_equal(t->nprocesses, 1);
    loaded_free(&l);
}

static void a_ring_that_is_gone_is_a_note(void **state) {
    (void)state;
    put_recording();
    pointer_to(at("opscope-gone"));
    expect_note(NOTE_RING_GONE);
}

static void an_old_pointer_beside_closed_files_is_nothing(void **state) {
    (void)state;
    struct loaded l;
    put_recording();
    pointer_to(at("opscope-gone"));
    assert_int_equal(unlink(at("box_1.1.xplane.pb.part")), 0);
    assert_int_equal(unlink(at("box_1.1.device1.xplane.pb.part")), 0);
    load(root, &l);
    assert_int_equal(l.n, 1);
    assert_int_equal(l.v[0]->nsources, 1);
    assert_int_equal(l.v[0]->notes[NOTE_RING_GONE], 0);
    loaded_free(&l);
}

static void pointers_lead_to_ring_files_only(void **state) {
    (void)state;
    static const char secret[] = "secret secret secret";
    put_recording();
    put("opscope-secret", secret, sizeof secret);
    pointer_to(at("opscope-secret"));
    expect_note(NOTE_RING_DAMAGED);
    /* a link, even to a good one, is not followed */
    assert_int_equal(symlink(at("opscope-secret"), at("opscope-link")), 0);
    pointer_to(at("opscope-link"));
    expect_note(NOTE_RING_DAMAGED);
    assert_int_equal(mkfifo(at("opscope-pipe"), 0600), 0);
    pointer_to(at("opscope-pipe"));
    expect_note(NOTE_RING_DAMAGED);
    assert_int_equal(mkdir(at("opscope-folder"), 0700), 0);
    pointer_to(at("opscope-folder"));
    expect_note(NOTE_RING_DAMAGED);
    pointer_to("/dev/opscope-none/opscope-x");
    expect_note(NOTE_RING_GONE);
}

static void other_texts_are_no_pointers(void **state) {
    (void)state;
    /* clang-format off */
    static const char *const texts[] = {
        "/etc/passwd\n", "opscope-x\n", "/tmp/opscope-x", "/\n", "\n",
        "/a/opscope-x\n/b\n", "/a/opsc\001ope-x\n",
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct out o = {0};
        out_raw(&o, texts[i], strlen(texts[i]));
        struct trace *t = trace_new();
        struct import_opts io = {.threads = 1};
        struct ops_err e = {0};
        assert_int_equal(import_bytes(out_all(&o), "x.ring", t, &io, &e),
                         OPS_EFORMAT);
        trace_free(t);
        out_free(&o);
    }
}

/* Runs a child that records a little and is killed; ring becomes its ring's
 * path. */
static void killed_program(char ring[300]) {
    int ready[2];
    char c;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct ops_options o = {.no_machine = true, .host = "h", .run = "r"};
        setenv("OPSCOPE_SHM", root, 1);
        if (ops_start(root, &o) != 0) _exit(7);
        ops_step(1);
        for (int i = 0; i < 50; i++) {
            OPS_SCOPE_INT("work", "i", i);
        }
        ops_flush();
        for (int i = 50; i < 100; i++) {
            OPS_SCOPE_INT("work", "i", i);
        }
        ops_begin("open");
        if (write(ready[1], "x", 1) != 1) _exit(8);
        for (;;) pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &c, 1), 1);
    close(ready[0]);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    char name[300];
    snprintf(name, sizeof name, "%s/plugins/profile/r/h_%d.ring", root,
             (int)pid);
    FILE *f = fopen(name, "r");
    assert_non_null(f);
    assert_non_null(fgets(ring, 300, f));
    fclose(f);
    ring[strcspn(ring, "\n")] = '\0';
}

/* Loads whatever there is: it must return and be sound. */
static size_t spans_of_root(void) {
    struct loaded l;
    load(root, &l);
    size_t n = 0;
    for (size_t i = 0; i < l.n; i++) n += l.v[i]->spans.n;
    loaded_free(&l);
    return n;
}

static void damaged_rings_do_no_harm(void **state) {
    (void)state;
    char ring[300];
    killed_program(ring);
    assert_int_equal(spans_of_root(), 102);
    int fd = open(ring, O_RDWR);
    struct stat st;
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &st), 0);
    size_t n = (size_t)st.st_size;
    uint8_t *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(p, MAP_FAILED);
    struct rec_head *h = (struct rec_head *)p, saved = *h;
    size_t at_ring = (size_t)h->rings[0].at;
    /* every word of the head and of the first ring's head, set to odd values,
     * then mended */
    static const uint64_t odd[] = {0, 1, UINT64_MAX, UINT64_MAX / 2,
                                   UINT64_C(0x8000000080000000)};
    size_t places[] = {0, at_ring};
    size_t bytes[] = {offsetof(struct rec_head, stem), 512};
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < bytes[k]; i += 8) {
            uint64_t was;
            memcpy(&was, p + places[k] + i, 8);
            for (size_t v = 0; v < sizeof odd / sizeof *odd; v++) {
                memcpy(p + places[k] + i, &odd[v], 8);
                assert_true(spans_of_root() >= 50); /* of the file */
            }
            memcpy(p + places[k] + i, &was, 8);
        }
    for (size_t i = offsetof(struct rec_head, world_rank);
         i < 512 + offsetof(struct rec_head, world_rank); i += 4) {
        uint32_t was, bad = UINT32_MAX;
        memcpy(&was, p + i, 4);
        memcpy(p + i, &bad, 4);
        assert_true(spans_of_root() >= 50);
        memcpy(p + i, &was, 4);
    }
    assert_memory_equal(h, &saved, offsetof(struct rec_head, commit));
    assert_int_equal(spans_of_root(), 102);
    munmap(p, n);
    /* cut at any place */
    for (size_t size = n; size > 0; size /= 3) {
        assert_int_equal(ftruncate(fd, (off_t)size), 0);
        assert_true(spans_of_root() >= 50);
    }
    close(fd);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_root, drop_root)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(names_of_files_tell_their_place),
        TEST(parts_and_devices_of_one_stem_are_one),
        TEST(ranks_in_parts_are_one_job),
        TEST(workers_one_after_the_other_are_one_program),
        TEST(steps_that_turned_out_as_none),
        TEST(a_family_is_one_program),
        TEST(a_family_that_lies_too_far_apart),
        TEST(a_ring_that_is_gone_is_a_note),
        TEST(an_old_pointer_beside_closed_files_is_nothing),
        TEST(pointers_lead_to_ring_files_only),
        TEST(other_texts_are_no_pointers),
        TEST(damaged_rings_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
