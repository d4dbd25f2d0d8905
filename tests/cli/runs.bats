#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What is in a log folder, and who writes it.

load common.bash

setup() {
    cd "$BATS_TEST_DIRNAME/../.." || return 1
    OPSCOPE=$(realpath "${OPSCOPE:-build/opscope}")
    build=$(dirname "$OPSCOPE")
    root=$PWD data=$PWD/tests/data logs=$BATS_TEST_TMPDIR/logs
    for v in $(env | sed -n 's/^\(OPSCOPE_[A-Z_]*\)=.*/\1/p'); do unset "$v"; done
    export LC_ALL=C
    mkdir -p "$logs"
}

teardown() { # what a killed program left in memory
    for ring in "$logs"/plugins/profile/*/*.ring; do
        [ ! -f "$ring" ] || rm -f "$(cat "$ring")"
    done
}

# take NAME FILES...: a run as TensorBoard lays it out.
take() {
    mkdir -p "$logs/plugins/profile/$1"
    cp "${@:2}" "$logs/plugins/profile/$1/"
}

# cells COLUMNS ARGS...: the rows of the table, the columns with blanks between.
cells() {
    "$OPSCOPE" runs "$logs" --format csv --columns "$1" "${@:2}" |
        tail -n +2 | tr -d '\r' | tr ',' ' '
}

@test "runs: the newest first, with what is in them" {
    take 2026_11_15_03_29_38 "$data"/record/*.pb
    take 2026_11_16_03_29_38 "$data"/tf_keras/*.xplane.pb
    take 2025_01_01_00_00_00 "$data"/torch_ddp/*.gz
    [ "$(cells run,formats,files,hosts,ranks,steps,state)" = \
"2026_11_16_03_29_38 xspace 1 1  6 finished
2026_11_15_03_29_38 xspace 2 1 2 8 finished
2025_01_01_00_00_00 kineto 2  2 3 finished" ]
    [ "$(cells taken,bytes --name '2026_11_15*')" = \
        "2026-11-15 03:29:38 $(cat "$data"/record/*.pb | wc -c)" ]
    # what an analysis takes is the first row, and says where the others are
    run "$OPSCOPE" info "$logs"
    [[ "$(tr '\n' ' ' <<<"$output" | tr -s ' ')" == \
        *"this is the newest, 2026_11_16_03_29_38; 'opscope runs' lists them"* ]]
    run "$OPSCOPE" runs "$logs" --width 0
    [[ "$output" == *"2026_11_16_03_29_38 is what an analysis of "* ]]
    # every name is one that --run takes
    for name in $(cells run); do
        "$OPSCOPE" info "$logs" --run "$name" > /dev/null
    done
}

@test "runs: torch's files beside an xplane.pb are profiles; its views are none" {
    cp "$data"/torch_cnn/*.pt.trace.json.gz "$data"/tf_keras/*.xplane.pb "$logs"
    echo '[{"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":5}]' \
        > "$logs/vm.trace.json"
    [ "$(cells formats,files,profiles)" = '"kineto  xspace" 2 2' ]
    run "$OPSCOPE" overview "$logs" --width 0
    [ "$status" -eq 0 ]
    [[ "$output" == *"2 profiles side by side"* ]]
    [[ "$output" == *".pt.trace.json.gz (kineto)"* ]]
    [[ "$output" == *".xplane.pb (xspace)"* ]]
}

@test "runs: text, JSON and CSV, and the options of all tables" {
    take 2026_11_15_03_29_38 "$data"/record/*.pb
    take 2026_11_16_03_29_38 "$data"/tf_keras/*.xplane.pb
    "$OPSCOPE" runs "$logs" --format json | python3 -c '
import json, sys
doc = json.load(sys.stdin)
assert doc["analysis"] == "runs" and len(doc["rows"]) == 2
assert [c["name"] for c in doc["columns"]][:2] == ["run", "taken"]'
    [ "$(cells run --sort bytes | head -1)" = 2026_11_16_03_29_38 ]
    [ "$(cells run --top 1)" = 2026_11_16_03_29_38 ]
    [ "$(cells run --min-bytes 20k | wc -l)" -eq 1 ]
    for o in "--steps 1" "--region x" "--rank 0" "--run x"; do
        run "$OPSCOPE" runs "$logs" $o
        [ "$status" -eq 1 ]
        [[ "$output" == *"runs have no ${o% *}"* ]]
    done
    run "$OPSCOPE" runs
    [ "$status" -eq 1 ]
    run "$OPSCOPE" runs "$logs" "$logs"
    [ "$status" -eq 1 ]
    run "$OPSCOPE" runs "$logs/nothing"
    [ "$status" -eq 2 ]
}

@test "runs: what is not read is not told, and how to have it" {
    take 2026_11_15_03_29_38 "$data"/record/*.pb
    [ "$(cells hosts,ranks,steps,state --read none)" = "   finished" ]
    run "$OPSCOPE" runs "$logs" --read none
    [[ "$output" == *"--read all reads them"* ]]
    # larger than what is read without being asked for
    head -c 9000000 /dev/zero | tr '\0' ' ' > "$logs/pad"
    mkdir "$logs/big"
    { printf '{"traceEvents": ['
      cat "$logs/pad"
      printf '{"ph":"X","cat":"cpu_op","name":"a","ts":1,"dur":2,"pid":1,'
      printf '"tid":1}]}\n'; } > "$logs/big/a.json"
    rm "$logs/pad"
    [ "$(cells run,profiles --name big)" = "big " ]
    [ "$(cells run,profiles --name big --read all)" = "big 1" ]
}

@test "runs: files that are cut, empty, damaged, closed or no profiles" {
    take good "$data"/record/*.pb
    take cut "$data"/tf_keras/*.xplane.pb
    file=$(ls "$logs"/plugins/profile/cut/*)
    truncate -s 60000 "$file"
    take mixed "$data"/record/box_0.xplane.pb
    : > "$logs/plugins/profile/mixed/empty.xplane.pb"
    echo hello > "$logs/notes.txt"
    mkdir "$logs/only_curves"
    cp "$data"/tfevents/torch_restart/* "$logs/only_curves/"
    [ "$(cells run,state | sort)" = "cut cut
good finished
mixed finished" ]
    run "$OPSCOPE" runs "$logs" --width 0
    [ "$status" -eq 0 ]
    [[ "$output" == *"mixed/empty.xplane.pb"*"it is empty"* ]]
    [[ "$output" == *"1 more folder has curves alone"* ]]
}

@test "runs: links are not followed in circles, and ten thousand files are no matter" {
    take good "$data"/record/*.pb
    ln -s .. "$logs/plugins/up"
    ln -s "$logs" "$logs/plugins/profile/good/round"
    ln -s /nowhere "$logs/plugins/profile/good/gone.xplane.pb"
    mkdir "$logs/many"
    (cd "$logs/many" && seq 10000 | sed 's/$/.txt/' | xargs touch)
    (cd "$logs/many" && seq 300 | sed 's/$/.xplane.pb/' | xargs touch)
    mkdir "$logs/runs"
    for i in $(seq 300); do
        mkdir "$logs/runs/r$i"
        ln "$data"/record/box_0.xplane.pb "$logs/runs/r$i/" 2> /dev/null ||
            cp "$data"/record/box_0.xplane.pb "$logs/runs/r$i/"
    done
    [ "$(cells run --top 0 | wc -l)" -eq 301 ]
    [ "$(cells steps --top 0 | sort | uniq -c | tr -s ' ')" = " 301 8" ]
}

@test "runs: a file that somebody has open for writing is running" {
    take good "$data"/record/*.pb
    take other "$data"/record/*.pb
    exec 8>> "$logs/plugins/profile/other/box_0.xplane.pb"
    [ "$(cells run,state | sort)" = "good finished
other running" ]
    exec 8>&-
    [ "$(cells state --name other)" = finished ]
}

@test "runs: a program that records, and is killed" {
    compilers_of "$build"
    cat > "$BATS_TEST_TMPDIR/p.c" <<'END'
#include <opscope/record.h>
#include <stdio.h>
int main(int argc, char **argv) {
    ops_start(argv[1], NULL);
    for (int i = 0; i < 5; i++) {
        ops_step(i);
        OPS_SCOPE("work");
    }
    puts("ready");
    fflush(stdout);
    getchar();
    return argc < 2;
}
END
    lib=$build/libopscope-record.a
    $cc -O1 -I"$root/include" -o "$BATS_TEST_TMPDIR/p" "$BATS_TEST_TMPDIR/p.c" \
        "$lib" -pthread -ldl
    mkfifo "$BATS_TEST_TMPDIR/in"
    "$BATS_TEST_TMPDIR/p" "$logs" < "$BATS_TEST_TMPDIR/in" \
        > "$BATS_TEST_TMPDIR/out" 3>&- &
    pid=$!
    exec 9> "$BATS_TEST_TMPDIR/in"
    wait_for grep -q ready "$BATS_TEST_TMPDIR/out"
    [ "$(cells state)" = running ]
    kill -9 $pid
    wait $pid || true
    exec 9>&-
    [ "$(cells state)" = died ]
    [ "$(cells steps)" = 5 ]
    # after a restart of the machine: nobody knows who wrote it
    rm "$(cat "$logs"/plugins/profile/*/*.ring)"
    [ "$(cells state)" = unfinished ]
    "$BATS_TEST_TMPDIR/p" "$logs" < /dev/null > /dev/null
    [ "$(cells state --top 1)" = finished ]
}

@test "runs: two profiles are stood side by side, and the first line says so" {
    run "$OPSCOPE" ops "$data/torch_cpu" "$data/torch_stack"
    [ "$status" -eq 0 ]
    [[ "${lines[0]}" == "Operations (2 profiles side by side, by the column profile; "* ]]
    run "$OPSCOPE" ops "$data/torch_cpu"
    [ "${lines[0]}" = Operations ]
    # what holds for both is said once, and of none by name
    run "$OPSCOPE" compile "$data/torch_cpu" "$data/torch_stack"
    [ "$(grep -c "nothing was compiled" <<< "$output")" = 1 ]
    grep -q "^nothing was compiled" <<< "$output"
    # what differs has its name
    run "$OPSCOPE" steps "$data/torch_cpu" "$data/torch_stack"
    [ "$(grep -c ": Median step" <<< "$output")" = 2 ]
}
