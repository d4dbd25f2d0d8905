#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# opscope record: the program must not notice it: what it reads and writes, its
# descriptors; and the folders that are written to.

bats_require_minimum_version 1.5.0
load record

@test "record: stdin and stdout are the program's, ours goes to stderr" {
    $py -c 'import os,sys; sys.stdout.buffer.write(os.urandom(3000000))' > in
    rec -- cat < in > out 2> err
    cmp in out
    grep -q Overview err
    grep -q "recorded in $dir/logs/plugins/profile/" err
    # in a pipe, with a reader that leaves
    run bash -o pipefail -c '"$0" record -q -o logs -- yes | head -n 2' "$OPSCOPE"
    [ "$status" -eq 141 ]
    [ "$output" = $'y\ny' ]
}

@test "record: the program's output is whole when it is huge" {
    rec -q -- $py -c '
import sys
for i in range(400000): print("line", i)
print("end", file=sys.stderr)' > out 2> err
    [ "$(wc -l < out)" -eq 400000 ]
    [ "$(cat err)" = end ]
}

@test "record: Python without the package beside the program is told" {
    cp "$OPSCOPE" alone
    run -0 --separate-stderr ./alone record -o logs -- $py -c 'print(1)'
    [ "$output" = 1 ]
    [[ "$stderr" == *"Python package is not beside this program"* ]]
    run -0 --separate-stderr ./alone record -o logs -- true
    [[ "$stderr" != *"Python package"* ]]
}

@test "record: closed descriptors stay closed, and ours are not inherited" {
    cat > fds.sh <<'SH'
for i in 0 1 2 3 4 5 6 7 8 9 10 11 12; do
    [ -e /proc/$$/fd/$i ] && printf '%s ' $i >> seen
done
true
SH
    for close in '' '<&-' '>&-' '2>&-' '<&- >&- 2>&-'; do
        : > seen
        eval "sh ./fds.sh $close"
        mv seen want
        : > seen
        eval "rec -q -- sh ./fds.sh $close"
        # sh holds its script open, at the same number in both
        [ "$(cat seen)" = "$(cat want)" ]
    done
    # the overview goes nowhere rather than into a file
    run bash -c '"$0" record -o logs -- true 2>&-' "$OPSCOPE"
    [ "$status" -eq 0 ]
    for f in logs/plugins/profile/*/*_record*.xplane.pb; do
        "$OPSCOPE" info "$f" > /dev/null
    done
}

@test "record: a shell pipeline, and a job in the background" {
    run rec -q -- sh -c 'seq 100 | grep 7 | wc -l'
    [ "$status" -eq 0 ]
    [ "$output" -eq 19 ]
    rec -q -- sh -c 'exit 5' < /dev/null &
    wait $! && false || [ $? -eq 5 ]
}

# --- folders -------------------------------------------------------------------

@test "record: the environment that the recorder is set up by" {
    run rec -q --steps 'every 50' --flight --host node7 --run first -- \
        sh -c 'env | grep ^OPSCOPE | grep -v ^OPSCOPE_LAUNCH= | sort'
    [ "$output" = "OPSCOPE=1
OPSCOPE_FLIGHT=1
OPSCOPE_HOST=node7
OPSCOPE_LOGDIR=$dir/logs
OPSCOPE_RUN=first
OPSCOPE_STEPS=every 50" ]
    [ -f "$dir/logs/plugins/profile/first/node7_record.xplane.pb" ]
    run env -u OPSCOPE OPSCOPE_RUN=old "$OPSCOPE" record -q -o logs -- \
        sh -c 'echo "${OPSCOPE_STEPS-none} ${OPSCOPE_FLIGHT-none} ${OPSCOPE_HOST-none}"; [ "$OPSCOPE_RUN" != old ]'
    [ "$status" -eq 0 ]
    [ "$output" = "none none none" ]
}

@test "record: the default folder, and the one that the environment names" {
    "$OPSCOPE" record -q -- true
    [ -d opscope-logs/plugins/profile ]
    OPSCOPE_LOGDIR=$dir/env "$OPSCOPE" record -q -- true
    [ -d env/plugins/profile ]
}

@test "record: eight at the same moment into one folder, none overwritten" {
    for i in 1 2 3 4 5 6 7 8; do rec -q -- sh -c "exit $i" & done
    for j in $(jobs -p); do wait "$j" || true; done
    [ "$(ls logs/plugins/profile | wc -l)" -eq 8 ]
    for d in logs/plugins/profile/*; do
        [ "$(ls "$d" | wc -l)" -eq 1 ]
    done
    # and the same run on purpose: the ranks of one host
    for i in 1 2 3; do rec -q --run job -- sh -c "exit $i" & done
    for j in $(jobs -p); do wait "$j" || true; done
    [ "$(ls logs/plugins/profile/job | wc -l)" -eq 3 ]
}

@test "record: the newest of two runs of one second is the second" {
    rec -q -- true
    d=$(run_dir)
    cp -r "$d" "${d}_2"
    cp -r "$d" "${d}_10"
    run "$OPSCOPE" info logs
    [[ $output == *"$(basename "$d")_10/"* ]]
}

@test "record: a folder that cannot be written stops it before the program" {
    echo file > occupied
    run "$OPSCOPE" record -o occupied/logs -- touch made
    [ "$status" -eq 2 ]
    [ ! -e made ]
    run "$OPSCOPE" record -o occupied -- touch made
    [ "$status" -eq 2 ]
    run "$OPSCOPE" record -o /proc/no -- touch made
    [ "$status" -eq 2 ]
    [ ! -e made ]
}

@test "record: a read-only folder stops it before the program" {
    [ "$(id -u)" -ne 0 ] || skip "root may write into a read-only folder"
    mkdir -m 555 locked
    run "$OPSCOPE" record -o locked -- touch made
    [ "$status" -eq 2 ]
    [ ! -e made ]
}

@test "record: a folder that goes away while the program runs" {
    run rec -- sh -c 'rm -rf logs; exit 9'
    [ "$status" -eq 9 ]
    [[ $output == *"cannot be written"* ]]
}

@test "record: a full file system costs the profile, not the program" {
    [ "$(id -u)" -eq 0 ] || skip "needs root for a small tmpfs"
    mkdir full
    mount -t tmpfs -o size=64k none full 2> /dev/null || skip "no mount here"
    run "$OPSCOPE" record -o full -- sh -c \
        'dd if=/dev/zero of=full/fill bs=1k count=200 2> /dev/null; echo out; exit 6'
    umount full
    [ "$status" -eq 6 ]
    [[ $output == *out* ]]
    [[ $output == *"No space left on device"* ]]
}

@test "record: a profile that the program wrote itself is named" {
    # a profile, and what is none: an old one, another JSON, one of a run of ours
    trace=$BATS_TEST_DIRNAME/../data/torch_cnn/torch_cnn.pt.trace.json.gz
    mkdir -p work elsewhere
    cp "$trace" work/old.pt.trace.json.gz
    touch -d '1 hour ago' work/old.pt.trace.json.gz
    cd work
    run rec --no-overview -- sh -c 'mkdir -p log/a; echo "{}" > log/b.json'
    [ "$status" -eq 0 ]
    [[ $output != *"meanwhile"* ]]
    run rec --no-overview -- sh -c 'cat "$0" > log/a/x.pt.trace.json.gz' "$trace"
    [ "$status" -eq 0 ]
    told="opscope: a profile was written meanwhile: opscope overview "
    [[ $output == *"$told"log/a/x.pt.trace.json.gz* ]]
    "$OPSCOPE" ${output##*: opscope } >screen
    grep -q Overview screen
    # a clock that is wrong by centuries
    run rec --no-overview -- touch -d 2400-01-01 log/a/x.pt.trace.json.gz
    [[ $output == *"$told"log/a/x.pt.trace.json.gz* ]]
    # not a word of it with -q; none of ours is taken for one
    run rec -q -- sh -c 'cat "$0" > log/a/x.pt.trace.json.gz' "$trace"
    [ -z "$output" ]
    rm log/a/*
    run "$OPSCOPE" record -o . --no-overview -- true
    [[ $output != *"meanwhile"* ]]
    # ranks, in a folder that the command line names
    run rec --no-overview -- sh -c 'for r in 0 1; do
        cat "$0" > "${1#*=}/rank$r.json.gz"; done' "$trace" --logdir=../elsewhere
    told="opscope: 2 profiles were written meanwhile: opscope overview "
    [[ $output == *"$told"../elsewhere ]]
}
