#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The layer check must catch what it is there to catch: each case is a small
# source tree with one thing wrong.

setup() {
    tree=$BATS_TEST_TMPDIR/tree
    rm -rf "$tree"
    mkdir -p "$tree/tools" "$tree"/src/base "$tree"/src/model \
        "$tree"/src/import "$tree"/src/analyze "$tree"/src/cmd
    cp tools/layers.py "$tree/tools/"
    printf 'X(one)\nX(two)\nX(overview)\n' >"$tree/src/analyze/analyses.def"
    file base/leaf.h 'int leaf(void);'
    file import/import.h 'int import_file(void);'
    file analyze/one.h 'int one(void);'
}

# file NAME LINE...: a source file with the head that every file has.
file() {
    local name=$1
    shift
    mkdir -p "$(dirname "$tree/src/$name")"
    printf '/* SPDX-License-Identifier: Apache-2.0\n * A file. */\n' \
        >"$tree/src/$name"
    printf '%s\n' "$@" >>"$tree/src/$name"
}

layers() { run /usr/bin/python3 "$tree/tools/layers.py"; }

refused() {
    layers
    [ "$status" -eq 1 ]
    [[ "$output" == *"$1"* ]] || { echo "$output"; false; }
}

@test "layers: a clean tree passes in silence" {
    file analyze/two.c '#include "base/leaf.h"' 'static const int k = 1;' \
        'int two(int (*f)(void));' 'int two(int (*f)(void)) {' \
        '    return f() + k;' '}'
    layers
    [ "$status" -eq 0 ]
    [ -z "$output" ]
}

@test "layers: an analysis may not include an importer" {
    file analyze/two.c '#include "import/import.h"'
    refused "analyze may not include import/import.h"
}

@test "layers: base may not include model" {
    file model/trace.h 'int x(void);'
    file base/two.c '#include "model/trace.h"'
    refused "base may not include model/trace.h"
}

@test "layers: analyses may not include each other, overview may" {
    file analyze/report/overview.c '#include "analyze/one.h"'
    layers
    [ "$status" -eq 0 ]
    file analyze/two.c '#include "analyze/one.h"'
    refused "may not include analyze/one.h"
}

@test "layers: what is in a room is private, but for what is shared or named" {
    file analyze/comm/lateness.h 'int lateness(void);'
    file analyze/comm/two.c '#include "analyze/comm/lateness.h"'
    layers
    [ "$status" -eq 0 ] || { echo "$output"; false; }
    file analyze/steps/three.c '#include "analyze/comm/lateness.h"'
    refused "may not include analyze/comm/lateness.h, which is private to"
    file analyze/steps/three.c '#include "analyze/cost/op_cost.h"'
    file analyze/cost/op_cost.h 'int flops(void);'
    layers
    [ "$status" -eq 0 ] || { echo "$output"; false; }
    rm "$tree/src/analyze/steps/three.c"
    refused "op_cost.h: no other room uses it"
}

@test "layers: a format is known to its importer alone" {
    printf 'X(kineto)\n' >"$tree/src/import/importers.def"
    file import/kineto.c 'static const char *const name = "kineto";'
    file analyze/two.c '/* not "kineto" */' 'int two(void);'
    layers
    [ "$status" -eq 0 ] || { echo "$output"; false; }
    file analyze/two.c 'static const char *const name = "kineto";'
    refused 'two.c:3: "kineto" is a format'"'"'s name'
}

@test "layers: what an op's name means is said in names/" {
    file names/ops.c 'static const char *const t = "aten::t";'
    file analyze/cost/cost.c 'static const char *const t = "aten::t";'
    file analyze/two.c '/* not "aten::t" */' 'int two(void);'
    layers
    [ "$status" -eq 0 ] || { echo "$output"; false; }
    file analyze/two.c 'static const char *const t = "aten::t";'
    refused "two.c:3: an op's name: ask what it means"
}

@test "layers: what only one room uses is not shared" {
    file analyze/shared/own.h 'int own(void);'
    file analyze/steps/a.c '#include "analyze/shared/own.h"'
    refused "own.h: only analyze/steps/ uses it"
    file analyze/ops/b.c '#include "analyze/shared/own.h"'
    layers
    [ "$status" -eq 0 ] || { echo "$output"; false; }
}

@test "layers: a room of 36 files" {
    for i in $(seq 36); do file "base/io/f$i.c" 'int x(void);'; done
    refused "src/base/io: 36 files (limit 35)"
}

@test "layers: an include that is not there" {
    file cmd/a.c '#include "leaf.h"'
    refused '"leaf.h" is not under src/'
}

@test "layers: a folder without a rule" {
    mkdir "$tree/src/stray"
    file stray/a.c 'int x(void);'
    refused "no rule for folder src/stray"
}

@test "layers: includes nested too deep" {
    file base/a.h '#include "base/leaf.h"'
    for pair in b:a c:b d:c e:d f:e; do
        file "base/${pair%:*}.h" "#include \"base/${pair#*:}.h\""
    done
    file base/x.c '#include "base/f.h"'
    refused "src/base/x.c: includes 7 deep"
}

@test "layers: output goes by a screen, in cmd too, and exit is main's" {
    file analyze/two.c 'void f(void) {' '    printf("x");' '}'
    refused "two.c:4: printf() prints what it is given"
    file analyze/two.c 'int two(void);'
    for call in 'fprintf(stderr, "x")' 'fputs("x", f)' 'perror("x")' \
        'fputc(1, f)' 'dprintf(1, "x")' 'putc_unlocked(1, f)' \
        'vfprintf(f, s, ap)' 'fwrite(p, 1, 2, f)' 'psignal(1, "x")'; do
        file cmd/two.c 'void f(void) {' "    $call;" '}'
        refused "two.c:4: ${call%%(*}() prints what it is given"
    done
    for call in 'write(1, p, n)' 'sink_fd(&s, 1)' 'sink_control(&s, p)'; do
        file cmd/two.c 'void f(void) {' "    $call;" '}'
        refused "two.c:4: ${call%%(*}() goes around the screen"
    done
    rm "$tree/src/cmd/two.c"
    file cmd/info.c 'void f(void) {' '    exit(1);' '}'
    refused "info.c:4: exit() outside main()"
}

@test "layers: a printf in a comment or a text is no call" {
    file analyze/two.c '/* printf(x) */' \
        'static const char *const s = "exit(1)";'
    layers
    [ "$status" -eq 0 ]
}

@test "layers: globals that can change" {
    for line in 'static int n;' 'static const char *s[] = {"a"};' \
        'static int (*hook)(void);' 'static _Thread_local int n = 3;'; do
        file analyze/two.c "$line"
        refused "two.c:3: global that can change"
    done
    file analyze/two.c 'int f(void) {' '    static int n;' '    return n++;' '}'
    refused "static inside a function"
}

@test "layers: a line of 81 columns, a tab, a missing head, unfinished work" {
    file base/a.c "/* $(printf 'x%.0s' {1..75}) */"
    refused "81 columns"
    file base/a.c "$(printf '\tint x;')"
    refused "tab or space"
    file base/a.c '/* FIX''ME later */'
    refused "finish it"
    echo 'int f(void);' >"$tree/src/base/a.c"
    refused "SPDX"
}

@test "layers: a function of 121 lines, a file of 1,201" {
    { echo 'int f(void) {'; printf '    f();\n%.0s' {1..119}; echo '}'; } \
        >"$tree/body"
    file base/a.c "$(cat "$tree/body")"
    refused "f() has 121 lines"
    file base/a.c "$(printf '/* x */\n%.0s' {1..1199})"
    refused "1201 lines"
}

@test "layers: the recorder opens nothing past its own calls" {
    mkdir -p "$tree/src/rec"
    file rec/bad.c 'int x(void);' 'int x(void) { return open("/x", 0); }'
    refused "src/rec/bad.c:4: open() in a program that is not ours"
    file rec/bad.c 'char *y(void);' 'char *y(void) { return getenv("X"); }'
    refused "getenv() in a program that is not ours"
}

@test "layers: make does without Python, make check begins with the layers" {
    run make -nB all PYTHON=nobody
    [ "$status" -eq 0 ]
    [[ "$output" == *libopscope.so* && "$output" != *nobody* ]]
    [[ "$output" != *tools/layers* ]]
    run make -n check PYTHON=nobody
    [ "$status" -eq 0 ]
    [[ "$output" == *"nobody tools/layers.py"*"nobody tests/run"* ]]
}

@test "layers: a precision that may cut a letter in two is found" {
    file analyze/two.c '/* "%.80s" in a comment */' \
        'static const char k[] = "%.*s %5.2f %s";'
    layers
    [ "$status" -eq 0 ]
    file analyze/two.c 'static const char k[] = "the longest %.80s";'
    refused "a precision may cut a letter in two"
}

@test "layers: make check stops at a violation, before any test" {
    file analyze/two.c '#include "import/import.h"'
    cp Makefile VERSION "$tree/"
    mkdir "$tree/demo"
    : >"$tree/demo/demo.mk"
    run make -C "$tree" check
    [ "$status" -ne 0 ]
    [[ "$output" == *"analyze may not include import/import.h"* ]]
    [[ "$output" != *compile* ]]
}

@test "layers: the plan of ./dev test has them" {
    run env PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 - <<'EOF'
import types
run = types.ModuleType("run")
run.__file__ = "tests/run"
exec(open(run.__file__).read(), run.__dict__)
# nothing is built, nothing runs
run.Run.work = lambda self, running: print(
    *(" ".join(j.argv[3:]) for j in self.jobs if j.part == "build"), sep="\n")
run.plan("quick", run.Tally())
EOF
    [ "$status" -eq 0 ]
    [ "$(grep -cx layers <<< "$output")" -eq 1 ]
    [ "$(grep -c 'tests/fuzz/fuzz.mk objects .*fuzz' <<< "$output")" -eq 1 ]
}
