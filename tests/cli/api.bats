#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The reading interface from outside: a program that has nothing but the
# header, the library and the flags of opscope.pc.

profile=tests/data/torch_cpu/torch_cpu.pt.trace.json.gz

# The program in a header's first comment, as it stands there.
example() {
    awk 'sub(/^ \*     /, "") { print; if ($0 == "}") exit }
         /^ \*$/ { print "" }' "include/opscope/$1"
}

load common

setup() {
    : "${BUILD:=$PWD/build}"
    [ -x "$BUILD/opscope" ] && [ -f "$profile" ] ||
        skip "no build or no profile"
    compilers_of "$BUILD"
    dir=$BATS_TEST_TMPDIR
    # fail and sink_write are names inside the library, too
    cat > "$dir/rows.c" <<'C'
#include <opscope/opscope.h>
#include <stdio.h>
int sink_write = 1;
static int fail(const char *s) { puts(s); return 1; }
int main(int argc, char **argv) {
    struct ops_err err;
    struct ops_profile *p;
    struct ops_result *r;
    if (argc < 2 || ops_open(&p, argv[1], &err)) return fail(err.text);
    if (ops_run(p, "ops", "top=3&sort=calls", &r, &err)) return fail(err.text);
    ops_close(p);
    for (size_t i = 0; i < ops_result_rows(r); i++)
        printf("%s %lld\n", ops_result_cell_text(r, i, 0), (long long)
               ops_result_cell_int(r, i, ops_result_find_col(r, "calls")));
    ops_result_free(r);
    return 0;
}
C
    "$BUILD"/opscope ops "$profile" --format csv --top 3 --sort calls |
        awk -F, 'NR > 1 { print $1, $2 }' > "$dir/want"
    [ "$(wc -l < "$dir/want")" -eq 3 ]
}

@test "api: a program builds with the shared library and prints rows" {
    [ -f "$BUILD"/libopscope.so ] || skip "no shared library"
    ln -sf "$BUILD/libopscope.so" "$dir/libopscope.so.$(cut -d. -f1 VERSION)"
    cc -Wall -Wextra -Werror -Iinclude -o "$dir/rows" "$dir/rows.c" \
        "$BUILD"/libopscope.so
    LD_LIBRARY_PATH=$dir "$dir/rows" "$profile" | diff "$dir/want" -
}

@test "api: a program builds with the static library" {
    libs=$(sed -n 's/^Libs.private: //p' "$BUILD"/opscope.pc)
    $cc -Wall -Wextra -Werror -Iinclude -o "$dir/rows" "$dir/rows.c" \
        "$BUILD"/libopscope.a $libs
    "$dir/rows" "$profile" | diff "$dir/want" -
    run "$dir/rows" /nonexistent
    [ "$status" -eq 1 ]
    [[ $output == "/nonexistent: "* ]]
}

@test "api: the example in opscope.h is a program, with a good and a bad path" {
    libs=$(sed -n 's/^Libs.private: //p' "$BUILD"/opscope.pc)
    example opscope.h > "$dir/example.c"
    grep -q 'int main' "$dir/example.c"
    $cc -Wall -Wextra -Werror -Iinclude -o "$dir/example" "$dir/example.c" \
        "$BUILD"/libopscope.a $libs
    "$dir/example" "$profile" > "$dir/got"
    "$BUILD"/opscope ops "$profile" --format csv --top 20 |
        awk -F, 'NR > 1 { print $1 }' | diff - "$dir/got"
    run "$dir/example" /nonexistent
    [ "$status" -eq 1 ]
    [[ $output == "/nonexistent: "* ]]
}

@test "api: the header is C++ too, and both libraries show ops_ alone" {
    command -v c++ > /dev/null || skip "no C++ compiler"
    echo '#include <opscope/opscope.h>
        int main() { return ops_version() == nullptr; }' > "$dir/a.cc"
    c++ -Wall -Wextra -Werror -Iinclude -fsyntax-only "$dir/a.cc"
    run sh -c "nm -g --defined-only '$BUILD'/libopscope.a | awk 'NF == 3 {print \$3}' | grep -v '^ops_'"
    [ -z "$output" ]
}

@test "api: scopes of any name, several on a line, in C and in C++" {
    cat > "$dir/scopes.c" <<'C'
#include <opscope/record.h>
static void layer(const char *name) { OPS_SCOPE(name); }
int main(int argc, char **argv) {
    struct ops_device_record r = {"q", "k", OPS_DEVICE_KERNEL, 0, 0, 0, 0, 0};
    (void)r, (void)argc;
    ops_start(argv[1], 0);
    { OPS_SCOPE_AS(OPS_KIND_PHASE, "outer"); OPS_SCOPE_INT("inner", "i", 1); }
    layer("one"); layer("two"); layer("two");
    return 0;
}
C
    cp "$dir/scopes.c" "$dir/scopes.cc"
    for f in c cc; do
        if [ $f = cc ]; then compiler=$cxx; else compiler=$cc; fi
        command -v ${compiler%% *} > /dev/null || continue
        $compiler -Wall -Wextra -Werror -Iinclude -o "$dir/scopes" "$dir/scopes.$f" \
            "$BUILD"/libopscope-record.a -pthread
        rm -rf "$dir/logs"
        "$dir/scopes" "$dir/logs"
        "$BUILD"/opscope ops "$dir/logs" --format csv | cut -d, -f1,2 |
            tail -n +2 | LC_ALL=C sort > "$dir/got"
        printf '%s\n' inner,1 one,1 outer,1 two,2 | diff - "$dir/got"
    done
}

@test "api: a scope with an argument is one declaration" {
    cat > "$dir/args.c" <<'C'
#include <opscope/record.h>
static int evaluated;
static int once(void) { return ++evaluated; }
int main(int argc, char **argv) {
    { OPS_SCOPE_INT("off", "i", once()); }
    if (evaluated != 0 || argc < 2) return 1;
    ops_start(argv[1], 0);
    for (int i = 0; i < 3; i++) {
        OPS_SCOPE("outer");
        OPS_SCOPE_INT("int", "i", once()); OPS_SCOPE_NUM("num", "x", 0.5);
        OPS_SCOPE_TEXT("text", "t", "words");
    }
#ifdef BARE
    if (argc > 5) BARE;
#endif
    return evaluated != 3;
}
C
    cp "$dir/args.c" "$dir/args.cc"
    for f in c cc; do
        if [ $f = cc ]; then compiler=$cxx; else compiler=$cc; fi
        command -v ${compiler%% *} > /dev/null || continue
        $compiler -Wall -Wextra -Werror -Iinclude -o "$dir/args" "$dir/args.$f" \
            "$BUILD"/libopscope-record.a -pthread
        rm -rf "$dir/logs"
        "$dir/args" "$dir/logs"
        "$BUILD"/opscope trace "$dir/logs" --format csv > "$dir/got"
        for want in 'outer,0,[012],"{""opscope_kind' 'int,.*""i"": *[123]' \
                    'num,.*""x"": *0.5' 'text,.*""t"": *""words""'; do
            tr -d '\r' < "$dir/got" > "$dir/lines"
            [ "$(grep -c ",$want" "$dir/lines")" -eq 3 ] ||
                { echo "$want"; cat "$dir/lines"; false; }
        done
    done
    for each in gcc clang; do
        command -v $each > /dev/null || continue
        $each '-DBARE=(void)0' -Iinclude -fsyntax-only "$dir/args.c"
        for bare in 'OPS_SCOPE("a")' 'OPS_SCOPE_INT("a","i",1)'; do
            run $each "-DBARE=$bare" -Iinclude -fsyntax-only "$dir/args.c"
            [ "$status" -ne 0 ]
        done
    done
}

@test "api: the example in record.h is a program, with a good and a bad path" {
    example record.h > "$dir/example.c"
    grep -q 'int main' "$dir/example.c"
    $cc -Wall -Wextra -Werror -Iinclude -o "$dir/example" "$dir/example.c" \
        "$BUILD"/libopscope-record.a -pthread
    run "$dir/example" "$dir/logs"
    [ "$status" -eq 0 ]
    [ -z "$output" ]
    [ "$("$BUILD"/opscope ops "$dir/logs" --format csv | cut -d, -f1,2 |
        tail -n 1)" = forward,100 ]
    [ "$("$BUILD"/opscope steps "$dir/logs" --format csv | wc -l)" -eq 101 ]
    run "$dir/example" /dev/null/logs
    [ "$status" -eq 0 ]
    [[ $output == "not recorded: "* ]]
}

@test "api: a program of another ABI is told so, and nothing else happens" {
    mkdir -p "$dir/other/opscope"
    cp include/opscope/*.h "$dir/other/opscope"
    sed -i 's/define OPS_RECORD_ABI .*/define OPS_RECORD_ABI 77/' \
        "$dir/other/opscope/record.h"
    example record.h > "$dir/example.c"
    $cc -Wall -Wextra -Werror -I"$dir/other" -o "$dir/example" \
        "$dir/example.c" "$BUILD"/libopscope-record.a -pthread
    run "$dir/example" "$dir/logs"
    [ "$status" -eq 0 ]
    [[ $output == "not recorded: "*"ABI 77"*"compile it again" ]]
    [ ! -e "$dir/logs" ]
    # started by the environment before the program could say what it is
    OPSCOPE=1 OPSCOPE_LOGDIR=$dir/logs run "$dir/example" "$dir/logs"
    [ "$status" -eq 0 ]
    [[ $output == "not recorded: "*"ABI 77"* ]]
    [ -z "$(find "$dir/logs" -name '*.ring' -o -name '*.part')" ]
}

# What tests/rec/foreign.* recorded into this folder, to the last call.
check_foreign() {
    "$BUILD"/opscope ops "$1" --format csv | cut -d, -f1,2 | tail -n +2 |
        LC_ALL=C sort > "$dir/got"
    printf '%s\n' mark,10 matmul,10 'next batch,10' prefetch,10 step,10 |
        diff - "$dir/got"
    "$BUILD"/opscope steps "$1" --format csv | tail -n +2 | cut -d, -f2 |
        tr '\n' ' ' | diff - <(printf '%s ' 0 1 2 3 4 5 6 7 8 9)
    "$BUILD"/opscope trace "$1" --format csv --name matmul > "$dir/got"
    [ "$(grep -c '""flops"": *1000,' "$dir/got")" -eq 10 ]
    [ "$(grep -c '""scale"": *0.5' "$dir/got")" -eq 10 ]
    [ "$(grep -c '""shape"": *""8x8""' "$dir/got")" -eq 10 ]
    [ "$("$BUILD"/opscope trace "$1" --format csv --name prefetch |
        tail -n +2 | wc -l)" -eq 10 ]
    [ "$("$BUILD"/opscope kernels "$1" --format csv \
        --columns name,device,op,calls,total_us,mean_us | tail -n +2 |
        tr -d "\r")" = \
        "kernel,npu 0,matmul,10,10.000000,1.000000" ]
    [ "$("$BUILD"/opscope memory "$1" --format csv | cut -d, -f1,2,6,7,8 |
        tail -n +2)" = host,4096,10,10,0 ]
    "$BUILD"/opscope counters "$1" --format csv --name queue | tail -n +2 |
        tr -d '\r' > "$dir/got"
    [[ $(cat "$dir/got") == queue,*,0,*,9,9,,10, ]] || { cat "$dir/got"; false; }
    [ "$("$BUILD"/opscope scalars "$1" --format csv | cut -d, -f2-6 |
        tail -n +2)" = loss,scalar,10,0,9 ]
    [[ $("$BUILD"/opscope input "$1" --format csv) == *"next batch"* ]]
}

@test "api: a program with dlopen alone, and Python's ctypes, record exactly" {
    [ -f "$BUILD"/libopscope-record.so ] || skip "no shared library"
    cc -std=c99 -pedantic -Wall -Wextra -Werror -o "$dir/foreign" \
        tests/rec/foreign.c -ldl
    lib=$BUILD/libopscope-record.so
    "$dir/foreign" "$lib" "$dir/c"
    check_foreign "$dir/c"
    python3 tests/rec/foreign.py "$lib" "$dir/py"
    check_foreign "$dir/py"
}

@test "api: the Python program of docs/recorder/library.md runs" {
    [ -f "$BUILD"/libopscope-record.so ] || skip "no shared library"
    awk '/^```$/ { on = 0 } on; /^```python$/ { on = 1 }' docs/recorder/library.md \
        > "$dir/train.py"
    [ -s "$dir/train.py" ]
    soname=libopscope-record.so.$(cut -d. -f1 VERSION)
    grep -q "$soname" "$dir/train.py"
    ln -sf "$BUILD/libopscope-record.so" "$dir/$soname"
    (cd "$dir" && LD_LIBRARY_PATH=$dir python3 train.py)
    "$BUILD"/opscope ops "$dir/logs" --format csv | cut -d, -f1,2 | tail -n +2 |
        LC_ALL=C sort > "$dir/got"
    printf '%s\n' forward,7 'next batch,7' step,7 | diff - "$dir/got"
    [ "$("$BUILD"/opscope scalars "$dir/logs" --format csv | cut -d, -f2-6 |
        tail -n +2)" = loss,scalar,10,0,9 ]
}

@test "api: the plain start takes every option as text, and names a wrong one" {
    [ -f "$BUILD"/libopscope-record.so ] || skip "no shared library"
    cc -std=c99 -o "$dir/foreign" tests/rec/foreign.c -ldl
    lib=$BUILD/libopscope-record.so
    "$dir/foreign" "$lib" "$dir/logs" \
        'steps=3..5&run=first+tr%79&host=h1&rank=2&world=4&no_machine=1&&'
    [ -f "$dir/logs/plugins/profile/first try/h1_2.xplane.pb" ] ||
        { find "$dir/logs"; false; }
    "$BUILD"/opscope steps "$dir/logs" --format csv | cut -d, -f2 | tail -n +2 |
        tr '\n' ' ' | diff - <(printf '%s ' 3 4 5)
    # every member of the struct has its row
    for o in $(awk '/^struct ops_options/,/^}/' include/opscope/record.h |
               sed 's|/\*.*||; s| __attribute__.*;|;|' |
               sed -n 's/^    [a-z].* \**\(.*\);.*/\1/p' |
               tr -d ',') demand_steps rank; do
        run "$dir/foreign" "$lib" "$dir/x" "$o=-1x"
        case $o in
        steps | run | host) ;;
        *) [ "$status" -eq 1 ]
           [ "$output" = "option '$o': that is no value for it" ] ;;
        esac
    done
    for bad in nothing=1 flight=2 flight signal=x run=%0 run=%00; do
        run "$dir/foreign" "$lib" "$dir/x" "$bad"
        [ "$status" -eq 1 ]
        [[ $output == "option '${bad%%=*}': "* ]]
    done
    run "$dir/foreign" "$lib" "$dir/x" \
        "run=$(head -c 5000 /dev/zero | tr '\0' x)"
    [ "$status" -eq 1 ]
    [[ $output == *"too long"* ]]
}

@test "api: every macro and inline call of record.h is a plain function, too" {
    [ -f "$BUILD"/libopscope-record.so ] || skip "no shared library"
    nm -D --defined-only "$BUILD"/libopscope-record.so | awk '{ print $3 }' |
        LC_ALL=C sort > "$dir/have"
    sed -n 's/^#define \(ops_[a-z_]*\)(.*/\1/p
        s/^static inline .*\(ops_[a-z_]*[a-z]\)(.*;.*/\1/p' \
        include/opscope/record.h | sort -u > "$dir/calls"
    [ "$(wc -l < "$dir/calls")" -ge 20 ]
    while read -r call; do
        grep -qx "ops_fn_${call#ops_}" "$dir/have" ||
            { echo "no ops_fn_${call#ops_}"; false; }
    done < "$dir/calls"
    # and nothing but ours is visible
    [ -z "$(grep -v '^ops_' "$dir/have")" ]
}

@test "api: debian/*.symbols name what the shared libraries export" {
    for package in libopscope libopscope-record; do
        [ -f "$BUILD/$package.so" ] || skip "no shared library"
        nm -D --defined-only "$BUILD/$package.so" | awk '{ print $3 }' |
            LC_ALL=C sort > "$dir/have"
        [ -s "$dir/have" ]
        sed -n 's/^ \([^@]*\)@Base .*/\1/p' "debian/${package}0.symbols" |
            LC_ALL=C sort | diff - "$dir/have"
    done
}

@test "api: every public header is in one Debian package" {
    (cd include && find . -name '*.h') | sed 's|^\.|usr/include|' |
        LC_ALL=C sort > "$dir/have"
    [ -s "$dir/have" ]
    grep -h '^usr/include/' debian/*.install | LC_ALL=C sort | diff - "$dir/have"
}

@test "api: an installed opscope.pc gives flags that work" {
    command -v pkg-config > /dev/null || skip "no pkg-config"
    [ -f "$BUILD"/libopscope.so ] || skip "no shared library"
    make -s B="${BUILD#"$PWD"/}" install DESTDIR= PREFIX="$dir/inst" > /dev/null
    export PKG_CONFIG_PATH=$dir/inst/lib/pkgconfig
    cc -o "$dir/rows" "$dir/rows.c" $(pkg-config --cflags --libs opscope)
    LD_LIBRARY_PATH=$dir/inst/lib "$dir/rows" "$profile" | diff "$dir/want" -
}
