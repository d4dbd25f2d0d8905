#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The recorder in programs of their own: under sanitizers, loaded and unloaded,
# in C++, with a clock that is set. tests/process/ has the rest.

bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_DIRNAME/../.." || return 1
    root=$PWD
    build=${BUILD:-$root/build}
    dir=$BATS_TEST_TMPDIR/crash
    rm -rf "$dir"
    mkdir -p "$dir"
    logs=$dir/logs
    for v in $(env | sed -n 's/^\(OPSCOPE_[A-Z_]*\)=.*/\1/p'); do unset "$v"; done
    export LC_ALL=C
}

# A sanitizer's build has programs of that build only.
plain() {
    case ${build##*/} in
    *-address* | *-thread* | *-undefined*) skip "the plain build does this" ;;
    esac
}

cc_flags="-std=gnu11 -g -D_GNU_SOURCE -pthread"

# storm SANITIZER: the recorder's own sources, compiled with it.
storm() {
    plain
    echo 'int main(void) { return 0; }' > "$dir/try.c"
    gcc -fsanitize="$1" -o "$dir/try" "$dir/try.c" 2> /dev/null &&
        "$dir/try" || skip "no -fsanitize=$1 here"
    gcc $cc_flags -O1 -Werror -fsanitize="$1" -fno-sanitize-recover=all \
        -Isrc -Iinclude -DOPS_VERSION='"0"' -o "$dir/storm" \
        tests/rec/storm.c src/ring/*.c src/rec/*.c src/rec/machine/*.c \
        src/base/text/json.c src/base/text/utf8.c -ldl
}

@test "crash: eight threads write while others start, stop and dump (tsan)" {
    storm thread
    for how in "" flight small; do
        run "$dir/storm" "$logs" 3 $how
        [ "$status" -eq 0 ] || { echo "$output"; false; }
        [[ $output == *" sessions" ]]
    done
}

@test "crash: the same under the address and undefined sanitizers" {
    storm address,undefined
    for how in "" flight small; do
        run "$dir/storm" "$logs" 2 $how
        [ "$status" -eq 0 ] || { echo "$output"; false; }
    done
}

# The profile that is there: one, closed.
profile() {
    local all=("$logs"/plugins/profile/*/*.xplane.pb)
    [ "${#all[@]}" -eq 1 ] && [ -f "${all[0]}" ]
    [ -z "$(find "$logs" -name '*.part' -o -name '*.ring')" ]
    gcc $cc_flags -o "$dir/count" tests/rec/count.c
    echo "${all[0]}"
}

count() { "$dir/count" "$@"; }

@test "crash: instrumented code is loaded and unloaded fifty times" {
    plain
    [ -f "$build/libopscope-record.so" ] || skip "no shared library"
    gcc $cc_flags -shared -fPIC -Iinclude -o "$dir/plugin.so" tests/rec/plugin.c \
        "$build/libopscope-record.so"
    gcc $cc_flags -DSELF -Iinclude -o "$dir/loader" tests/rec/loader.c \
        "$build/libopscope-record.so" -ldl
    so=libopscope-record.so.$(cut -d. -f1 VERSION)
    ln -s "$build/libopscope-record.so" "$dir/$so"
    LD_LIBRARY_PATH=$dir run "$dir/loader" "$dir/plugin.so" "$logs" 50
    [ "$status" -eq 0 ] || { echo "$output"; false; }
    [ "$output" = "loaded 50 times" ]
    p=$(profile)
    run count "$p" plugin "in a table of the plugin" "plugin counter" dropped
    [ "$output" = "plugin 100
in a table of the plugin 100
plugin counter 100
dropped 0" ]
}

@test "crash: the recorder itself is loaded by dlopen" {
    plain
    [ -f "$build/libopscope-record.so" ] || skip "no shared library"
    gcc $cc_flags -shared -fPIC -Iinclude -o "$dir/plugin.so" tests/rec/plugin.c \
        "$build/libopscope-record.so"
    gcc $cc_flags -o "$dir/loader" tests/rec/loader.c -ldl
    ln -s "$build/libopscope-record.so" \
        "$dir/libopscope-record.so.$(cut -d. -f1 VERSION)"
    LD_LIBRARY_PATH=$dir run "$dir/loader" "$dir/plugin.so" "$logs" 20
    [ "$status" -eq 0 ] || { echo "$output"; false; }
    p=$(profile)
    run count "$p" plugin dropped
    [ "$output" = "plugin 40
dropped 0" ]
}

@test "crash: exceptions of C++ close what they leave" {
    plain
    command -v g++ > /dev/null || skip "no g++"
    g++ -std=c++11 -Wall -Wextra -Werror -g -pthread -Iinclude \
        -o "$dir/throws" tests/rec/throws.cc "$build/libopscope-record.a" -ldl
    run "$dir/throws" "$logs"
    [ "$status" -eq 0 ]
    [ "$output" = "caught all" ]
    p=$(profile)
    run count "$p" try deeper destructor caught dropped
    [ "$output" = "try 200
deeper 1000
destructor 1000
caught 200
dropped 0" ]
}

# steady [VARIABLE=VALUE...]: a second, recorded.
steady() {
    plain
    gcc $cc_flags -Iinclude -o "$dir/steady" tests/rec/steady.c \
        "$build/libopscope-record.a" -ldl
    env "$@" "$dir/steady" "$logs"
    p=$(profile)
    us=$(count "$p" span)
    us=${us#span }
    [ "$us" -ge 1000000 ] # a hundred times 10 ms at least
    [ "$us" -lt 60000000 ]
}

@test "crash: a wall clock that is set again and again moves nothing" {
    gcc $cc_flags -shared -fPIC -o "$dir/stepping.so" tests/rec/stepping.c
    steady LD_PRELOAD="$dir/stepping.so"
    [ "$(count "$p" steady)" = "steady 100" ]
}

@test "crash: without the CPU's counter the clock is the system's" {
    steady OPSCOPE_TSC=0
    [ "$(count "$p" steady)" = "steady 100" ]
    grep -aq monotonic "$p"
}

@test "crash: a plugin that holds the recorder itself is unloaded" {
    plain
    gcc $cc_flags -shared -fPIC -Iinclude -o "$dir/alone.so" \
        tests/rec/plugin_alone.c "$build/libopscope-record.a"
    gcc $cc_flags -o "$dir/unloaded" tests/rec/unloaded.c -ldl
    for i in 1 2 3; do
        rm -rf "$logs"
        run "$dir/unloaded" "$dir/alone.so" "$logs"
        [ "$status" -eq 9 ] || { echo "$status: $output"; false; }
        [ "$output" = closed ]
        p=$(profile)
        run count "$p" "in the plugin" dropped
        [ "$output" = "in the plugin 4000
dropped 0" ]
    done
}

# A program with more rights than whoever starts it obeys nobody's variables.
@test "crash: nothing is read from the environment of a set-uid program" {
    plain
    [ "$(id -u)" -eq 0 ] || skip "only root can make one"
    command -v setpriv > /dev/null || skip "no setpriv"
    place=$(mktemp -d)
    chmod 755 "$place"
    cat > "$dir/plain.c" << 'END'
#include <opscope/record.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
    OPS_SCOPE("work");
    printf("%d\n", geteuid() != getuid());
    return 0;
}
END
    gcc $cc_flags -Iinclude -o "$place/plain" "$dir/plain.c" \
        "$build/libopscope-record.a"
    chmod 4755 "$place/plain"
    run setpriv --reuid=65534 --clear-groups env OPSCOPE=1 \
        OPSCOPE_LOGDIR="$place/logs" OPSCOPE_RUN=r "$place/plain"
    found=$(ls "$place")
    mine=$(OPSCOPE=1 OPSCOPE_LOGDIR="$place/logs" "$place/plain" &&
        find "$place/logs" -name '*.pb' | wc -l)
    rm -rf "$place"
    [ "$output" = 1 ] || skip "set-uid programs do not run here: $output"
    [ "$found" = plain ]
    [ "$mine" = "0
1" ] # the same program, started by its owner, does record
}

# A folder of a memory controller that may be limited; else skipped.
memory_group() {
    group=
    for at in /sys/fs/cgroup/memory /sys/fs/cgroup; do
        [ -w "$at" ] || continue
        group=$at/opscope-test-$$-$RANDOM
        mkdir "$group" 2> /dev/null || { group=; continue; }
        for file in memory.limit_in_bytes memory.max; do
            echo "$1" 2> /dev/null > "$group/$file" && return 0
        done
        rmdir "$group"
        group=
    done
    skip "no memory controller to use"
}

@test "crash: workers that leave by _exit do not fill a container's memory" {
    plain
    gcc $cc_flags -O2 -Iinclude -o "$dir/children" tests/rec/children.c \
        "$build/libopscope-record.a"
    memory_group 100000000
    run bash -c "echo \$\$ > '$group/cgroup.procs' &&
        exec '$dir/children' '$logs' 400 100"
    for i in 1 2 3 4 5; do
        rmdir "$group" 2> /dev/null && break
        sleep 0.2
    done
    [ "$status" -eq 7 ] || { echo "$status: $output"; false; }
    [ "$output" = done ]
    # The last look at what the workers left has its limit in time: where the
    # machine is busy it leaves some to whoever reads.
    closed=$(find "$logs" -name '*.xplane.pb' | wc -l)
    left=$(find "$logs" -name '*.ring' | wc -l)
    echo "$closed closed, $left left"
    # Each worker's scope is there or was counted as lost: by the worker, or by
    # the program for a worker that could not be recorded at all. Workers that
    # ran at the same time are one profile, so that rows are no count.
    "$build/opscope" ops "$logs" --name child --format json > "$dir/ops.json"
    /usr/bin/python3 - "$dir/ops.json" $((closed + left)) << 'PY'
import json, sys
t, files = json.load(open(sys.argv[1])), int(sys.argv[2])
calls = [c["name"] for c in t["columns"]].index("calls")
there = sum(row[calls] for row in t["rows"])
lost = sum(n["count"] for n in t["notes"]
           if n["id"] in ("recorder-dropped", "process-not-recorded"))
print(there, "scopes there,", lost, "lost")
sys.exit(not (there + lost == 400 and 401 - lost <= files <= 401))
PY
}
