#!/usr/bin/env bats
# opscope scalars on the command line. The figures themselves are held to
# TensorBoard's by tests/truth/scalars_check.py.

load common

setup() {
    cd "$BATS_TEST_DIRNAME/../.." || return 1
    OPSCOPE=${OPSCOPE:-build/opscope}
    [ -x "$OPSCOPE" ] || skip "no program at $OPSCOPE"
    T=$(mktemp -d "${BATS_TEST_TMPDIR:-${TMPDIR:-/tmp}}/scalars.XXXXXX")
    data=tests/data/tfevents
    x=$(ls $data/tensorboardX/*tfevents*)
}

@test "a folder is searched as TensorBoard does: a run is a folder" {
    run "$OPSCOPE" scalars $data --format csv
    [ "$status" -eq 0 ]
    [ "$(printf '%s\n' "$output" | grep -c '^tensorboardX,')" -eq 4 ]
    printf '%s\n' "$output" | grep -q '^tf1,y_sum,scalar,13,0,12,64,'
    printf '%s\n' "$output" | grep -q '^torch_restart,loss,scalar,24,'
    run "$OPSCOPE" scalars "$x" --format csv
    [ "$(printf '%s\n' "$output" | grep -c '^\.,')" -eq 4 ]
}

@test "text shows the trend, remarks, text and histograms in words" {
    run "$OPSCOPE" scalars $data/torch
    [ "$status" -eq 0 ]
    [[ $output == *"▁▂▃▄x▆▇██xxx"* ]]
    [[ $output == *"sick in . is NaN since step 9 (4 of 12 points are no numbers)"* ]]
    [[ $output == *"later"* ]]
    [[ $output == *"100 values, "*" buckets"* ]]
    LC_ALL=C run "$OPSCOPE" scalars $data/torch --tag sick
    [[ $output == *"_.,-x=+##xxx"* ]]
}

@test "--run and --tag are globs, --steps cuts, --points gives every point" {
    run "$OPSCOPE" scalars $data --run 'torch*' --tag 'l?' --points --steps 10..13 --format csv
    [ "$status" -eq 0 ]
    [ "${#lines[@]}" -eq 5 ]
    [[ ${lines[3]} == torch_restart,lr,12,1700000112,112,0.2* ]]
    run "$OPSCOPE" scalars $data --tag nothing
    [ "$status" -eq 0 ]
    [[ $output == *"no run, tag or step is as asked for"* ]]
}

@test "options that mean nothing here are refused" {
    for o in "--host a" "--rank 1" "--min-us 3" "--min-bytes 1M" "--window -1"; do
        run "$OPSCOPE" scalars $data $o
        [ "$status" -eq 1 ]
        [ "${#lines[@]}" -eq 1 ]
    done
    run "$OPSCOPE" scalars
    [ "$status" -eq 1 ]
    run "$OPSCOPE" scalars $data $data
    [ "$status" -eq 1 ]
}

@test "what is no event file is said in one line; an empty folder is no error" {
    run "$OPSCOPE" scalars README.md
    [ "$status" -eq 2 ]
    [ "${#lines[@]}" -eq 1 ]
    [[ $output == "opscope: README.md: not an event file"* ]]
    run "$OPSCOPE" scalars "$T/nothing"
    [ "$status" -eq 2 ]
    mkdir "$T/empty"
    run "$OPSCOPE" scalars "$T/empty"
    [ "$status" -eq 0 ]
    [[ $output == *'no file below this folder has "tfevents" in its name'* ]]
}

@test "a damaged and a cut file give what is whole, and a note" {
    cp "$x" "$T/events.out.tfevents.1.bad"
    printf 'X' | dd of="$T/events.out.tfevents.1.bad" bs=1 seek=200 conv=notrunc 2>/dev/null
    run "$OPSCOPE" scalars "$T" --format json
    [ "$status" -eq 0 ]
    [[ $output == *'"record-bad", "count": 1'* || $output == *'"record-lost"'* ]]
    rm "$T"/events*
    size=$(stat -c %s "$x")
    head -c $((size - 3)) "$x" > "$T/events.out.tfevents.1.cut"
    run "$OPSCOPE" scalars "$T"
    [ "$status" -eq 0 ]
    [[ $output == *"note: 1 file ends too early"* ]]
}

@test "--follow prints the points that come, whole records only" {
    size=$(stat -c %s "$x")
    f=$T/events.out.tfevents.1.grow
    head -c 400 "$x" > "$f"
    mkdir "$T/out"
    "$OPSCOPE" scalars "$T" --follow --interval 0.1 --format csv \
        > "$T/out/lines" 3>&- &
    pid=$!
    wait_for test -s "$T/out/lines"
    head -c 470 "$x" | tail -c +401 >> "$f"
    sleep 0.5 # half a record lies there, and is looked at
    tail -c +471 "$x" >> "$f"
    wait_for eval '[ "$(wc -l < "$T/out/lines")" -ge 25 ]'
    kill -TERM $pid
    wait $pid
    run cat "$T/out/lines"
    [ "${#lines[@]}" -eq 25 ]
    [[ ${lines[0]} == run,tag,step,wall_time,elapsed_s,value,odd* ]]
    [ "$(printf '%s\n' "$output" | grep -c ',loss,')" -eq 12 ]
    [ "$(printf '%s\n' "$output" | cut -d, -f2,3 | sort | uniq -d | wc -l)" -eq 0 ]
}

@test "Ctrl-C ends --follow with status 0" {
    "$OPSCOPE" scalars $data/tf2 --follow > "$T/out" 2> "$T/err" 3>&- &
    pid=$!
    wait_for test -s "$T/out"
    kill -INT $pid || kill -TERM $pid
    kill -TERM $pid 2>/dev/null || true
    wait $pid
    [ ! -s "$T/err" ]
}

@test "an event file is a profile where there is no other" {
    run "$OPSCOPE" counters "$x" --format csv
    [ "$status" -eq 0 ]
    [[ $output == *"loss,"* ]]
    mkdir -p "$T/plugins/profile/run1"
    cp "$x" "$T/"
    cp tests/data/jax_cpu/vm.xplane.pb "$T/plugins/profile/run1/"
    touch -d 2000-01-01 "$T/plugins/profile/run1/vm.xplane.pb"
    run "$OPSCOPE" info "$T" --format csv
    [ "$status" -eq 0 ]
    [[ $output == *"xspace"* ]]
    [[ $output != *"tfevents"* ]]
}
