#!/usr/bin/env bats
# Memory snapshots on the command line: nothing in a pickle is ever run, and a
# snapshot beside its trace is one profile with it.

load common

setup() {
    cd "$BATS_TEST_DIRNAME/../.." || return 1
    OPSCOPE=${OPSCOPE:-build/opscope}
    [ -x "$OPSCOPE" ] || skip "no program at $OPSCOPE"
    T=$BATS_TEST_TMPDIR
    cnn=tests/data/torch_cnn/torch_cnn
    snaps=tests/data/torch_snapshots
}

# Fails quickly, with one line that has these words.
refused() {
    run limited 5 "$OPSCOPE" info "$1"
    [ "$status" -eq 2 ]
    [ "${#lines[@]}" -eq 1 ]
    [[ ${lines[0]} == "opscope: $1: "*"$2"* ]]
}

@test "a pickle that would run a program is refused by name" {
    printf '\x80\x04}(\x8c\x08segments\x8c\x02os\x8c\x06system\x93\x8c\x20touch %s/ran\x85Ru.' \
        "$T" > "$T/evil.pickle"
    refused "$T/evil.pickle" 'refuses to load "os.system"'
    [ ! -e "$T/ran" ]
    printf '\x80\x02}(X\x08\x00\x00\x00segmentscbuiltins\neval\n(X\x01\x00\x00\x001tRu.' \
        > "$T/evil2.pickle"
    refused "$T/evil2.pickle" 'refuses to load "builtins.eval"'
}

@test "a text of ten gigabytes and a deep nest are refused" {
    printf '\x80\x04}(\x8c\x08segments\x8d\x00\xe4\x0bT\x02\x00\x00\x00x' \
        > "$T/long.pickle"
    refused "$T/long.pickle" 'a text of 10000000000 bytes at offset 14'
    { printf '\x80\x04}(\x8c\x08segments'; head -c 100000 /dev/zero |
        tr '\0' ']'; head -c 99999 /dev/zero | tr '\0' 'a'; printf 'u.'; } \
        > "$T/deep.pickle"
    refused "$T/deep.pickle" 'inside each other'
}

@test "another pickle is no profile" {
    printf '\x80\x04]\x94.' > "$T/list.pickle"
    refused "$T/list.pickle" 'no memory snapshot'
}

@test "a snapshot beside its trace is one profile, in any order" {
    for a in memory segments steps kernels; do
        "$OPSCOPE" $a $cnn.pt.trace.json.gz $cnn.snapshot.pickle.gz > "$T/1"
        "$OPSCOPE" $a $cnn.snapshot.pickle.gz $cnn.pt.trace.json.gz > "$T/2"
        "$OPSCOPE" $a tests/data/torch_cnn > "$T/3"
        cmp "$T/1" "$T/2"
        cmp "$T/1" "$T/3"
        run grep -c '^profile ' "$T/1"
        [ "$output" -eq 0 ]
    done
}

@test "snapshots of other runs stay apart, each with its own trace" {
    run "$OPSCOPE" memory $snaps --format csv
    [ "$status" -eq 0 ]
    # expandable, late, ring: one row each; oom, streams: device and host
    [ "${#lines[@]}" -eq 8 ]
    run "$OPSCOPE" memory $cnn.pt.trace.json.gz $snaps/oom.snapshot.pickle.gz \
        --format csv
    [ "${#lines[@]}" -eq 4 ]
    [[ $output == *oom* ]]
}

@test "the result is the same with one thread and with two" {
    "$OPSCOPE" allocs tests/data/torch_cnn --threads 1 --format csv > "$T/1"
    "$OPSCOPE" allocs tests/data/torch_cnn --threads 2 --format csv > "$T/2"
    cmp "$T/1" "$T/2"
}
