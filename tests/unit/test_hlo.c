/* SPDX-License-Identifier: Apache-2.0
 * Programs of XLA in a profile: hand-made modules, whole and damaged; kernels
 * of graphs that get their instruction back. Real ones are checked in
 * tests/truth/hlo_check.py. */
#include "import/import.h"
#include "model/hlo/hlo.h"
#include "model/trace_fill.h"
#include "unit/formats.h"
#include "unit/pbwrite.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

extern const struct importer importer_xspace;

enum { F32 = 11, BF16 = 16, S8 = 2, PRED = 1 };

static struct trace *load(struct bytes b, int threads) {
    struct ops_err e = {0};
    struct import_opts o = {.threads = threads};
    struct trace *t = trace_new();
    assert_non_null(t);
    uint32_t s = trace_source(t, "test", format_named("xspace"), NULL, b);
    assert_int_equal(importer_xspace.read(t, s, &o, &e), 0);
    assert_int_equal(trace_seal(t, &e), 0);
    return t;
}

/* ---- building ---- */

static struct out shape2(int type, int64_t a, int64_t b) {
    struct out s = {0};
    out_int(&s, 2, type);
    if (a > 0) out_int(&s, 3, a);
    if (b > 0) out_int(&s, 3, b);
    return s;
}

/* An instruction: ids of operands and callees end with 0. */
struct in {
    const char *name, *opcode;
    int64_t id, ops[4], calls[3];
    int type;
    int64_t a, b;
};

static struct out instr(const struct in *i) {
    struct out o = {0}, s = shape2(i->type ? i->type : F32, i->a, i->b);
    out_text(&o, 1, i->name);
    out_text(&o, 2, i->opcode);
    out_msg(&o, 3, &s);
    out_int(&o, 35, i->id);
    for (int k = 0; i->ops[k]; k++) out_int(&o, 36, i->ops[k]);
    for (int k = 0; i->calls[k]; k++) out_int(&o, 38, i->calls[k]);
    return o;
}

static void meta(struct out *o, const char *op, const char *file,
                 int64_t line) {
    struct out m = {0};
    out_text(&m, 2, op);
    out_text(&m, 3, file);
    out_int(&m, 4, line);
    out_msg(o, 7, &m);
}

static void add(struct out *comp, struct in i) {
    struct out o = instr(&i);
    out_msg(comp, 2, &o);
}

static void end_comp(struct out *module, struct out *comp, const char *name,
                     int64_t id, int64_t root) {
    out_text(comp, 1, name);
    out_int(comp, 5, id);
    out_int(comp, 6, root);
    out_msg(module, 3, comp);
}

/* Writes the order of a computation: ids until 0. */
static void order(struct out *module, int64_t comp, const int64_t *ids) {
    struct out seq = {0}, entry = {0}, schedule = {0}, list = {0};
    for (; *ids; ids++) out_varint(&list, (uint64_t)*ids);
    out_bytes(&seq, 1, list.p, list.n);
    free(list.p);
    out_int(&entry, 1, comp);
    out_msg(&entry, 2, &seq);
    out_msg(&schedule, 1, &entry);
    out_msg(module, 7, &schedule);
}

static void name_entry(struct out *plane, uint32_t num, int64_t id,
                       const char *name) {
    struct out m = {0}, e = {0};
    out_int(&m, 1, id);
    out_text(&m, 2, name);
    out_int(&e, 1, id);
    out_msg(&e, 2, &m);
    out_msg(plane, num, &e);
}

/* Writes /host:metadata with one module. */
static void metadata(struct out *space, const char *label, struct out *module) {
    struct out p = {0}, m = {0}, e = {0}, s = {0}, proto = {0};
    out_msg(&proto, 1, module);
    out_text(&p, 2, "/host:metadata");
    name_entry(&p, 5, 1, "Hlo Proto");
    out_int(&s, 1, 1);
    out_msg(&s, 6, &proto);
    out_int(&m, 1, 1);
    out_text(&m, 2, label);
    out_msg(&m, 5, &s);
    out_int(&e, 1, 1);
    out_msg(&e, 2, &m);
    out_msg(&p, 4, &e);
    out_msg(space, 1, &p);
}

enum { S_CORR = 1, S_HLO, S_MODULE, S_PROGRAM, S_KERNEL, S_COPY };

static void stat_text(struct out *event, int64_t id, const char *v) {
    struct out s = {0};
    out_int(&s, 1, id);
    out_text(&s, 5, v);
    out_msg(event, 4, &s);
}

static void stat_int(struct out *event, int64_t id, int64_t v) {
    struct out s = {0};
    out_int(&s, 1, id);
    out_int(&s, 4, v);
    out_msg(event, 4, &s);
}

/* Writes a GPU with these kernels, one behind the other: one launch for each
 * NULL-terminated list, all with that HLO op; "memset" is a fill. */
static void gpu(struct out *space, const char *hlo_op, const char *const *names,
                int launches) {
    struct out p = {0}, l = {0};
    out_text(&p, 2, "/device:GPU:0");
    out_int(&l, 1, 7);
    out_text(&l, 2, "Stream #7(Compute)");
    int64_t ts = 1000000, n = 0;
    for (; names[n]; n++) name_entry(&p, 4, n + 1, names[n]);
    for (int k = 0; k < launches; k++)
        for (int64_t i = 0; i < n; i++, ts += 1000000) {
            struct out e = {0};
            out_int(&e, 1, i + 1);
            out_int(&e, 2, ts);
            out_int(&e, 3, 500000);
            stat_int(&e, S_CORR, 100 + k);
            stat_text(&e, S_HLO, hlo_op);
            stat_text(&e, S_MODULE, "jit_f");
            stat_int(&e, S_PROGRAM, 5);
            if (strcmp(names[i], "memset") == 0) stat_text(&e, S_COPY, "x:1");
            else stat_text(&e, S_KERNEL, "regs:1 grid:1,1,1 block:1,1,1");
            out_msg(&l, 4, &e);
        }
    out_msg(&p, 3, &l);
    name_entry(&p, 5, S_CORR, "correlation_id");
    name_entry(&p, 5, S_HLO, "hlo_op");
    name_entry(&p, 5, S_MODULE, "hlo_module");
    name_entry(&p, 5, S_PROGRAM, "program_id");
    name_entry(&p, 5, S_KERNEL, "kernel_details");
    name_entry(&p, 5, S_COPY, "Memset_details");
    out_msg(space, 1, &p);
}

/* x -> gemm -> fill -> fusion -> fusion.1 (an equal one): a program whose file
 * order is not that of its schedule. */
static struct out program(void) {
    struct out m = {0}, c = {0}, o;
    out_text(&m, 1, "jit_f");
    out_int(&m, 5, 5);
    out_int(&m, 6, 9);
    add(&c, (struct in){"p0", "parameter", 1, {0}, {0}, 0, 8, 4});
    add(&c, (struct in){"e", "exponential", 2, {1}, {0}, 0, 8, 4});
    add(&c, (struct in){"r", "add", 3, {2, 1}, {0}, 0, 8, 4});
    out_int(&c, 7, 1);
    end_comp(&m, &c, "fused", 1, 3);
    add(&c, (struct in){"k", "constant", 14, {0}, {0}, 0, 0, 0});
    add(&c, (struct in){"z", "broadcast", 15, {14}, {0}, 0, 8, 4});
    out_int(&c, 7, 1);
    end_comp(&m, &c, "filled", 2, 15);
    add(&c, (struct in){"x", "parameter", 21, {0}, {0}, 0, 8, 16});
    add(&c, (struct in){"w", "parameter", 22, {0}, {0}, 0, 16, 4});
    struct in f1 = {"fusion.1", "fusion", 26, {25}, {1}, 0, 8, 4};
    add(&c, f1);
    struct in f = {"fusion", "fusion", 25, {23}, {1}, 0, 8, 4};
    o = instr(&f);
    out_text(&o, 11, "kLoop");
    meta(&o, "jit(f)/layer(a/b)/exp", "train.py", 12);
    out_msg(&c, 2, &o);
    add(&c, (struct in){"wrapped_fill", "fusion", 24, {0}, {2}, 0, 8, 4});
    struct in g = {"custom-call.3", "custom-call", 23, {21, 22}, {0}, 0, 8, 4};
    o = instr(&g);
    out_text(&o, 28, "__cublas$gemm");
    out_text(&o, 43,
             "{\"gemm_backend_config\":{\"dot_dimension_numbers\":"
             "{\"lhs_contracting_dimensions\":[\"1\"]}}}");
    out_msg(&c, 2, &o);
    end_comp(&m, &c, "main", 9, 26);
    order(&m, 9, (int64_t[]){21, 22, 23, 24, 25, 26, 0});
    return m;
}

static const struct hlo_instr *find(const struct trace *t, const char *name) {
    assert_non_null(t->hlo);
    for (size_t i = 0; i < t->hlo->ninstrs; i++)
        if (strcmp(strs_text(&t->strs, t->hlo->instrs[i].name), name) == 0)
            return &t->hlo->instrs[i];
    return NULL;
}

static const char *op_of(const struct trace *t, row_id r) {
    const struct hlo_instr *i = hlo_of_span(t, r);
    return i ? strs_text(&t->strs, i->name) : NULL;
}

/* ---- tests ---- */

static void instructions_cost_what_they_do(void **state) {
    (void)state;
    struct out x = {0}, m = program();
    metadata(&x, "jit_f(5)", &m);
    struct trace *t = load((struct bytes){x.p, x.n}, 1);
    const struct hlo_instr *g = find(t, "custom-call.3");
    assert_int_equal(g->flops, 2 * 8 * 4 * 16);
    assert_int_equal(g->read_bytes, (8 * 16 + 16 * 4) * 4);
    assert_int_equal(g->written_bytes, 8 * 4 * 4);
    assert_int_equal(g->launch, HLO_LAUNCHES_LIBRARY);
    assert_true(g->matrix && g->math == DTYPE_FP32);
    const struct hlo_instr *f = find(t, "fusion");
    assert_int_equal(f->flops, 2 * 8 * 4);
    assert_int_equal(f->read_bytes, 8 * 4 * 4);
    assert_int_equal(f->launch, HLO_LAUNCHES_ONE);
    assert_string_equal(strs_text(&t->strs, f->shape), "f32[8,4]");
    assert_string_equal(strs_text(&t->strs, f->category), "loop fusion");
    assert_int_equal(find(t, "wrapped_fill")->launch, HLO_LAUNCHES_MAYBE);
    assert_null(find(t, "e")); /* inside of a fusion */
    char text[64];
    assert_int_equal(hlo_source_text(t, f, text, sizeof text), 11);
    assert_string_equal(text, "train.py:12");
    assert_int_equal(hlo_source_text(t, f, text, 6), 5);
    trace_free(t);
    free(x.p);
}

static void the_schedule_is_the_order(void **state) {
    (void)state;
    struct out x = {0}, m = program();
    metadata(&x, "jit_f(5)", &m);
    struct trace *t = load((struct bytes){x.p, x.n}, 1);
    assert_int_equal(t->hlo->nmodules, 1);
    assert_int_equal(t->hlo->modules[0].program, 5);
    const struct hlo_comp *c = &t->hlo->comps[t->hlo->modules[0].entry];
    static const char *const want[] = {
        "x", "w", "custom-call.3", "wrapped_fill", "fusion", "fusion.1"};
    assert_int_equal(c->end - c->first, 6);
    for (uint32_t i = 0; i < 6; i++)
        assert_string_equal(strs_text(&t->strs,
                                      t->hlo->instrs[c->first + i].name),
                            want[i]);
    trace_free(t);
    free(x.p);
}

static void kernels_of_a_graph_find_their_instructions(void **state) {
    (void)state;
    struct out x = {0}, m = program();
    static const char *const ks[] = {"sm90_gemm", "splitKreduce_kernel",
                                     "memset",    "fusion",
                                     "fusion",    NULL};
    static const char *const want[] = {"custom-call.3", "custom-call.3",
                                       "wrapped_fill", "fusion", "fusion.1"};
    gpu(&x, "command_buffer", ks, 3);
    metadata(&x, "jit_f(5)", &m);
    for (int threads = 1; threads <= 2; threads++) {
        struct trace *t = load((struct bytes){x.p, x.n}, threads);
        assert_int_equal(t->spans.n, 15);
        for (row_id r = 0; r < 15; r++)
            assert_string_equal(op_of(t, r), want[r % 5]);
        assert_int_equal(t->notes[NOTE_GRAPH_KERNEL_PLACED], 12);
        assert_int_equal(t->notes[NOTE_GRAPH_KERNEL_UNPLACED], 0);
        const struct hlo_instr *g = find(t, "custom-call.3");
        assert_true(hlo_is_first(t, 0, g));
        assert_false(hlo_is_first(t, 1, g));
        struct launch l;
        assert_true(launch_of_cat(t, span_cat(t, 3), &l));
        assert_true(BYTES_IS(l.hlo_op, "fusion"));
        assert_true(BYTES_IS(l.module, "jit_f(5)"));
        trace_free(t);
    }
    free(x.p);
}

static void contradictions_are_counted_and_left(void **state) {
    (void)state;
    struct out x = {0}, m = program();
    static const char *const ks[] = {"fusion", "sm90_gemm", "fusion", NULL};
    gpu(&x, "command_buffer", ks, 2);
    metadata(&x, "jit_f(5)", &m);
    struct trace *t = load((struct bytes){x.p, x.n}, 1);
    for (row_id r = 0; r < 6; r++) assert_null(op_of(t, r));
    assert_int_equal(t->notes[NOTE_GRAPH_KERNEL_UNPLACED], 6);
    trace_free(t);
    free(x.p);
}

static void kernels_in_another_order_are_known_by_name(void **state) {
    (void)state;
    struct out x = {0}, m = program();
    static const char *const ks[] = {"fusion_1", "sm90_gemm", "wrapped_fill",
                                     "fusion", NULL};
    static const char *const want[] = {"fusion.1", NULL, "wrapped_fill",
                                       "fusion"};
    gpu(&x, "command_buffer", ks, 1);
    metadata(&x, "jit_f(5)", &m);
    struct trace *t = load((struct bytes){x.p, x.n}, 1);
    for (row_id r = 0; r < 4; r++) {
        if (want[r]) assert_string_equal(op_of(t, r), want[r]);
        else assert_null(op_of(t, r));
    }
    assert_int_equal(t->notes[NOTE_GRAPH_KERNEL_UNPLACED], 1);
    trace_free(t);
    free(x.p);
}

static void a_named_instruction_needs_no_graph(void **state) {
    (void)state;
    struct out x = {0}, m = program();
    static const char *const ks[] = {"whatever", NULL};
    gpu(&x, "fusion.1", ks, 1);
    metadata(&x, "jit_f(5)", &m);
    struct trace *t = load((struct bytes){x.p, x.n}, 1);
    assert_string_equal(op_of(t, 0), "fusion.1");
    trace_free(t);
    free(x.p);
    /* of another program nothing is known */
    x = (struct out){0};
    m = program();
    gpu(&x, "fusion.1", ks, 1);
    metadata(&x, "jit_f(6)", &m);
    t = load((struct bytes){x.p, x.n}, 1);
    assert_null(op_of(t, 0));
    trace_free(t);
    free(x.p);
}

/* A TPU's ops: what is known of them stands with their names. */
static void ops_of_a_tpu_find_their_instructions(void **state) {
    (void)state;
    struct out x = {0}, mod = program(), p = {0}, l = {0}, e = {0};
    struct out m = {0}, s = {0}, entry = {0};
    out_text(&p, 2, "/device:TPU:0");
    out_int(&l, 1, 1);
    out_text(&l, 2, "XLA Ops");
    out_int(&e, 1, 1);
    out_int(&e, 2, 1000);
    out_int(&e, 3, 500);
    out_msg(&l, 4, &e);
    out_msg(&p, 3, &l);
    out_int(&s, 1, 1);
    out_int(&s, 3, 5);
    out_int(&m, 1, 1);
    out_text(&m, 2, "%fusion.1 = f32[8,4] fusion(...)");
    out_text(&m, 4, "fusion.1");
    out_msg(&m, 5, &s);
    out_int(&entry, 1, 1);
    out_msg(&entry, 2, &m);
    out_msg(&p, 4, &entry);
    name_entry(&p, 5, 1, "program_id");
    out_msg(&x, 1, &p);
    metadata(&x, "jit_f(5)", &mod);
    struct trace *t = load((struct bytes){x.p, x.n}, 1);
    assert_int_equal(t->spans.n, 1);
    assert_string_equal(op_of(t, 0), "fusion.1");
    assert_string_equal(span_name(t, 0), "fusion.1");
    trace_free(t);
    free(x.p);
}

/* Loops and branches are run, their bodies are kept; who calls himself or what
 * is not there is nobody's trouble. */
static void bodies_of_loops_are_kept(void **state) {
    (void)state;
    struct out x = {0}, m = {0}, c = {0};
    out_text(&m, 1, "loop");
    out_int(&m, 6, 3);
    add(&c, (struct in){"t", "tanh", 1, {0}, {0}, BF16, 4, 4});
    add(&c, (struct in){"self", "call", 2, {1}, {1}, 0, 4, 4});
    end_comp(&m, &c, "body", 1, 2);
    add(&c, (struct in){"lt", "compare", 4, {0}, {0}, PRED, 0, 0});
    end_comp(&m, &c, "test", 2, 4);
    add(&c, (struct in){"while", "while", 5, {77}, {1, 2}, 0, 4, 4});
    add(&c, (struct in){"lost", "fusion", 6, {5}, {99}, 0, 4, 4});
    add(&c, (struct in){"dot", "dot", 7, {88}, {0}, 0, 4, 4});
    end_comp(&m, &c, "main", 3, 5);
    metadata(&x, "loop(1)", &m);
    struct trace *t = load((struct bytes){x.p, x.n}, 1);
    const struct hlo_instr *w = find(t, "while");
    assert_int_equal(w->ncalled, 2);
    assert_int_equal(w->launch, HLO_LAUNCHES_BODY);
    assert_int_equal(w->flops, -1);
    const struct hlo_instr *body = find(t, "t");
    assert_int_equal(body->comp, t->hlo->called[w->called]);
    assert_int_equal(body->flops, 16);
    assert_int_equal(body->math, DTYPE_BF16);
    assert_int_equal(body->written_bytes, 32);
    assert_int_equal(find(t, "self")->ncalled, 0);
    assert_int_equal(find(t, "lost")->flops, -1);
    assert_int_equal(find(t, "dot")->flops, -1);
    trace_free(t);
    free(x.p);
}

static void figures_too_large_stop_at_the_largest(void **state) {
    (void)state;
    struct out x = {0}, m = {0}, c = {0};
    out_int(&m, 6, 1);
    add(&c, (struct in){"a", "add", 1, {1, 1}, {0}, 0, INT64_MAX, INT64_MAX});
    add(&c, (struct in){"b", "sort", 2, {1}, {0}, 0, INT64_MAX, 2});
    add(&c, (struct in){"n", "add", 3, {1}, {0}, 0, -5, 2});
    end_comp(&m, &c, "main", 1, 1);
    metadata(&x, "big(1)", &m);
    struct trace *t = load((struct bytes){x.p, x.n}, 1);
    assert_int_equal(find(t, "a")->flops, INT64_MAX);
    assert_int_equal(find(t, "a")->read_bytes, INT64_MAX);
    assert_int_equal(find(t, "b")->flops, INT64_MAX);
    assert_true(find(t, "n")->flops >= 0);
    trace_free(t);
    free(x.p);
}

static void nested_tuples_have_a_limit(void **state) {
    (void)state;
    struct out x = {0}, m = {0}, c = {0}, s = shape2(S8, 3, 0);
    for (int i = 0; i < 40; i++) {
        struct out around = {0};
        out_int(&around, 2, 13);
        out_msg(&around, 4, &s);
        s = around;
    }
    struct out o = {0};
    out_text(&o, 1, "deep");
    out_text(&o, 2, "tuple");
    out_msg(&o, 3, &s);
    out_msg(&c, 2, &o);
    out_int(&m, 6, 1);
    end_comp(&m, &c, "main", 1, 0);
    metadata(&x, "deep(1)", &m);
    struct trace *t = load((struct bytes){x.p, x.n}, 1);
    assert_non_null(find(t, "deep"));
    trace_free(t);
    free(x.p);
}

static void a_file_cut_anywhere_is_read(void **state) {
    (void)state;
    struct out x = {0}, m = program();
    static const char *const ks[] = {"sm90_gemm", "fusion", "fusion", NULL};
    gpu(&x, "command_buffer", ks, 1);
    metadata(&x, "jit_f(5)", &m);
    for (size_t n = 0; n < x.n; n++) {
        uint8_t *copy = calloc(n + 64, 1);
        memcpy(copy, x.p, n);
        trace_free(load((struct bytes){copy, n}, 1));
        free(copy);
    }
    free(x.p);
}

static void any_byte_may_be_wrong(void **state) {
    (void)state;
    struct out x = {0}, m = program();
    static const char *const ks[] = {"sm90_gemm", "fusion", "fusion", NULL};
    gpu(&x, "command_buffer", ks, 1);
    metadata(&x, "jit_f(5)", &m);
    for (size_t i = 0; i < x.n; i++)
        for (unsigned v = 1; v < 256; v = v * 3 + 1) {
            uint8_t old = x.p[i];
            x.p[i] = (uint8_t)(old ^ v);
            trace_free(load((struct bytes){x.p, x.n}, 1));
            x.p[i] = old;
        }
    free(x.p);
}

static void scopes_of_a_name(void **state) {
    (void)state;
    struct bytes s, rest = bytes_of("jit(f)/layer(a/b)/x[c/d];jit(g)/y");
    assert_true(hlo_scope_next(&rest, &s) && BYTES_IS(s, "jit(f)"));
    assert_true(hlo_scope_next(&rest, &s) && BYTES_IS(s, "layer(a/b)"));
    assert_true(hlo_scope_next(&rest, &s) && BYTES_IS(s, "x[c/d]"));
    assert_false(hlo_scope_next(&rest, &s));
    rest = bytes_of("");
    assert_false(hlo_scope_next(&rest, &s));
    rest = bytes_of("a//b)/");
    assert_true(hlo_scope_next(&rest, &s) && BYTES_IS(s, "a"));
    assert_true(hlo_scope_next(&rest, &s) && s.n == 0);
    assert_true(hlo_scope_next(&rest, &s) && BYTES_IS(s, "b)"));
    assert_false(hlo_scope_next(&rest, &s));
}

/* Two hosts of a job: each has its own copy of the program. */
static void programs_of_two_files_stay_apart(void **state) {
    (void)state;
    struct ops_err e = {0};
    static const char *const ks[] = {"sm90_gemm", "fusion", "fusion", NULL};
    struct out x[2] = {{0}, {0}};
    struct trace *t[2];
    for (int i = 0; i < 2; i++) {
        struct out m = program();
        gpu(&x[i], "command_buffer", ks, 1);
        metadata(&x[i], "jit_f(5)", &m);
        struct import_opts o = {.threads = 1};
        t[i] = trace_new();
        uint32_t s = trace_source(t[i], "test", format_named("xspace"), NULL,
                                  (struct bytes){x[i].p, x[i].n});
        assert_int_equal(importer_xspace.read(t[i], s, &o, &e), 0);
    }
    assert_int_equal(trace_append(t[0], t[1], &e), 0);
    assert_int_equal(trace_seal(t[0], &e), 0);
    assert_int_equal(t[0]->hlo->nmodules, 2);
    assert_int_equal(t[0]->hlo->modules[1].source, 1);
    for (row_id r = 0; r < 6; r++) {
        const struct hlo_instr *i = hlo_of_span(t[0], r);
        assert_non_null(i);
        assert_int_equal(i->module, t[0]->tracks[t[0]->spans.track[r]].source);
    }
    trace_free(t[0]);
    free(x[0].p);
    free(x[1].p);
}

/* ---- programs that cost more than they weigh ---- */

/* 32 computations, each a loop that runs the one before it eight times: 8 to
 * the 31st ways through them, and none that launches anything. */
static struct out endless_program(void) {
    enum { LEVELS = 32, CALLS = 8 };
    struct out m = {0}, c = {0};
    out_text(&m, 1, "jit_f");
    out_int(&m, 5, 5);
    out_int(&m, 6, LEVELS);
    for (int64_t i = 1; i <= LEVELS; i++) {
        struct in w = {"w", i == 1 ? "parameter" : "while", i, {0}, {0}, 0, 4,
                       4};
        struct out o = instr(&w);
        for (int k = 0; i > 1 && k < CALLS; k++) out_int(&o, 38, i - 1);
        out_msg(&c, 2, &o);
        end_comp(&m, &c, "c", i, i);
    }
    return m;
}

static void calls_of_calls_have_an_end(void **state) {
    (void)state;
    struct out x = {0}, m = endless_program();
    static const char *const ks[] = {"k1", "k2", NULL};
    gpu(&x, "command_buffer", ks, 3);
    metadata(&x, "jit_f(5)", &m);
    alarm(300); /* it would take years */
    struct trace *t = load((struct bytes){x.p, x.n}, 1);
    alarm(0);
    assert_int_equal(t->notes[NOTE_PROGRAM_CUT], 1);
    assert_int_equal(t->notes[NOTE_GRAPH_KERNEL_UNPLACED], 6);
    trace_free(t);
    free(x.p);
}

static void the_largest_sizes_stay_in_range(void **state) {
    (void)state;
    struct out x = {0}, m = {0}, c = {0};
    out_text(&m, 1, "big");
    out_int(&m, 6, 1);
    add(&c, (struct in){"p", "parameter", 1, {0}, {0}, 0, INT64_MAX, 9});
    add(&c, (struct in){"e", "exponential", 2, {1, 1}, {0}, 0, INT64_MAX, 9});
    end_comp(&m, &c, "main", 1, 2);
    metadata(&x, "big(1)", &m);
    struct trace *t = load((struct bytes){x.p, x.n}, 1);
    const struct hlo_instr *e = find(t, "e");
    assert_int_equal(e->read_bytes, INT64_MAX);
    assert_int_equal(e->written_bytes, INT64_MAX);
    assert_int_equal(hlo_bytes(e), INT64_MAX);
    trace_free(t);
    free(x.p);
}

/* n fusions of one body that has n parameters, all used; and n computations of
 * one number, whose order has n entries. */
static struct out shared_program(int64_t n) {
    struct out m = {0}, c = {0};
    out_text(&m, 1, "shared");
    out_int(&m, 6, 2);
    int64_t *ids = calloc((size_t)n + 1, sizeof *ids);
    assert_non_null(ids);
    for (int64_t i = 1; i <= n; i++) {
        ids[i - 1] = i;
        add(&c, (struct in){"p", "parameter", i, {0}, {0}, 0, 4, 4});
        add(&c, (struct in){"e", "slice", n + i, {i}, {0}, 0, 2, 2});
    }
    end_comp(&m, &c, "fused", 1, 2 * n);
    for (int64_t i = 1; i <= n; i++)
        add(&c, (struct in){"f", "fusion", 2 * n + i, {0}, {1}, 0, 4, 4});
    end_comp(&m, &c, "main", 2, 2 * n + 1);
    for (int64_t i = 1; i <= n; i++) end_comp(&m, &c, "again", 3, 0);
    order(&m, 3, ids);
    free(ids);
    return m;
}

static double cpu_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double shared_cost(int64_t n) {
    struct out x = {0}, m = shared_program(n);
    metadata(&x, "shared(1)", &m);
    double start = cpu_now();
    struct trace *t = load((struct bytes){x.p, x.n}, 1);
    double took = cpu_now() - start;
    /* each slice is what a fusion reads of a parameter */
    assert_int_equal(find(t, "f")->read_bytes, n * 2 * 2 * 4);
    trace_free(t);
    free(x.p);
    return took;
}

/* 8 times the program may take 8 times as long, or somewhat more; the square
 * would be 64. */
static void what_is_shared_is_worked_out_once(void **state) {
    (void)state;
    enum { FEW = 1000, MANY = 8 * FEW, BOUND = 24, TRIES = 4 };
    double best = 1e9;
    for (int i = 0; i < TRIES && best > BOUND; i++) {
        double few = shared_cost(FEW) + 0.0005, many = shared_cost(MANY);
        if (many / few < best) best = many / few;
    }
    if (best > BOUND) fail_msg("8 times the size: %.0f times as long", best);
}

/* n fusions of one body, whose op and file have names of n bytes and more. */
static void long_names_that_many_share_are_read_once(void **state) {
    (void)state;
    enum { MANY = 60000, LONG = 20 * MANY };
    struct out x = {0}, m = {0}, c = {0};
    char *op = malloc(LONG + 1), *file = malloc(LONG + 1);
    assert_non_null(op);
    assert_non_null(file);
    memset(op, 'o', LONG);
    memset(file, 'f', LONG);
    op[LONG] = file[LONG] = '\0';
    struct in e = {"e", "add", 1, {0}, {0}, 0, 4, 4};
    struct out o = instr(&e);
    out_text(&m, 1, "names");
    out_int(&m, 6, 2);
    meta(&o, op, file, 7);
    out_msg(&c, 2, &o);
    end_comp(&m, &c, "fused", 1, 1);
    for (int64_t i = 0; i < MANY; i++)
        add(&c, (struct in){"f", "fusion", 2 + i, {0}, {1}, 0, 4, 4});
    end_comp(&m, &c, "main", 2, 2);
    metadata(&x, "names(1)", &m);
    alarm(300);
    struct trace *t = load((struct bytes){x.p, x.n}, 1);
    alarm(0);
    assert_int_equal(t->hlo->ninstrs, MANY);
    for (size_t i = 0; i < MANY; i++) {
        const struct hlo_instr *f = &t->hlo->instrs[i];
        assert_int_equal(f->op_name, t->hlo->instrs[0].op_name);
        assert_int_equal(f->file, t->hlo->instrs[0].file);
        assert_int_equal(f->line, 7);
    }
    assert_string_equal(strs_text(&t->strs, t->hlo->instrs[0].op_name), op);
    assert_string_equal(strs_text(&t->strs, t->hlo->instrs[0].file), file);
    trace_free(t);
    free(x.p);
    free(op);
    free(file);
}

/* A convolution over one dimension with the largest window there is. */
static void add_conv(struct out *c, int64_t id) {
    struct in i = {"conv", "convolution", id, {1, 2}, {0}, 0, 0, 0};
    struct out o = instr(&i), w = {0}, d = {0}, n = {0}, s = {0};
    out_int(&d, 1, 4096);
    out_int(&d, 2, 1);
    out_int(&d, 5, 1);
    out_int(&d, 6, 4096);
    out_msg(&w, 1, &d);
    out_msg(&o, 15, &w);
    out_int(&n, 11, 0);
    out_int(&n, 12, 0);
    out_msg(&o, 16, &n);
    out_int(&s, 2, F32);
    for (int k = 0; k < 3; k++) out_int(&s, 3, 4096);
    out_msg(&o, 3, &s);
    out_msg(c, 2, &o);
}

static void windows_have_a_budget(void **state) {
    (void)state;
    struct out x = {0}, m = {0}, c = {0};
    out_text(&m, 1, "convs");
    out_int(&m, 6, 1);
    add(&c, (struct in){"a", "parameter", 1, {0}, {0}, 0, 4096, 4096});
    add(&c, (struct in){"b", "parameter", 2, {0}, {0}, 0, 4096, 4096});
    for (int64_t i = 0; i < 1000; i++) add_conv(&c, 3 + i);
    end_comp(&m, &c, "main", 1, 3);
    metadata(&x, "convs(1)", &m);
    struct trace *t = load((struct bytes){x.p, x.n}, 1);
    assert_in_range(t->notes[NOTE_WINDOW_SKIPPED], 900, 1000);
    trace_free(t);
    free(x.p);
}

/* One budget for all modules: as many as there are do not multiply it. */
static void windows_of_many_modules_share_a_budget(void **state) {
    (void)state;
    enum { MODULES = 200, EACH = 2 };
    struct out x = {0};
    for (int64_t k = 0; k < MODULES; k++) {
        struct out m = {0}, c = {0};
        out_text(&m, 1, "convs");
        out_int(&m, 6, 1);
        add(&c, (struct in){"a", "parameter", 1, {0}, {0}, 0, 4096, 4096});
        add(&c, (struct in){"b", "parameter", 2, {0}, {0}, 0, 4096, 4096});
        for (int64_t i = 0; i < EACH; i++) add_conv(&c, 3 + i);
        end_comp(&m, &c, "main", 1, 3);
        metadata(&x, "convs(1)", &m);
    }
    struct trace *t = load((struct bytes){x.p, x.n}, 1);
    assert_int_equal(t->hlo->nmodules, MODULES);
    assert_in_range(t->notes[NOTE_WINDOW_SKIPPED], MODULES * EACH - 16,
                    MODULES * EACH);
    trace_free(t);
    free(x.p);
}

/* An instruction of eight bytes takes a hundred times as much while it is
 * read: of such only so many as real ones would have room for. */
static void instructions_too_small_to_be_real(void **state) {
    (void)state;
    enum { MANY = 30000 };
    static const char tiny[] = "\012\001a\022\001b";
    struct out x = {0}, m = {0}, c = {0};
    out_text(&m, 1, "tiny");
    for (int i = 0; i < MANY; i++) out_bytes(&c, 2, tiny, sizeof tiny - 1);
    end_comp(&m, &c, "main", 1, 1);
    size_t size = m.n;
    metadata(&x, "tiny(1)", &m);
    struct trace *t = load((struct bytes){x.p, x.n}, 1);
    assert_in_range(t->hlo->ninstrs, size / 24, size / 24 + 5000);
    assert_int_equal(t->notes[NOTE_INSTR_SKIPPED], MANY - t->hlo->ninstrs);
    trace_free(t);
    free(x.p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instructions_cost_what_they_do),
        cmocka_unit_test(the_schedule_is_the_order),
        cmocka_unit_test(kernels_of_a_graph_find_their_instructions),
        cmocka_unit_test(contradictions_are_counted_and_left),
        cmocka_unit_test(kernels_in_another_order_are_known_by_name),
        cmocka_unit_test(a_named_instruction_needs_no_graph),
        cmocka_unit_test(ops_of_a_tpu_find_their_instructions),
        cmocka_unit_test(bodies_of_loops_are_kept),
        cmocka_unit_test(figures_too_large_stop_at_the_largest),
        cmocka_unit_test(nested_tuples_have_a_limit),
        cmocka_unit_test(a_file_cut_anywhere_is_read),
        cmocka_unit_test(any_byte_may_be_wrong),
        cmocka_unit_test(scopes_of_a_name),
        cmocka_unit_test(programs_of_two_files_stay_apart),
        cmocka_unit_test(calls_of_calls_have_an_end),
        cmocka_unit_test(the_largest_sizes_stay_in_range),
        cmocka_unit_test(what_is_shared_is_worked_out_once),
        cmocka_unit_test(long_names_that_many_share_are_read_once),
        cmocka_unit_test(windows_have_a_budget),
        cmocka_unit_test(windows_of_many_modules_share_a_budget),
        cmocka_unit_test(instructions_too_small_to_be_real),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
