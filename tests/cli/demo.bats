#!/usr/bin/env bats
# The demo: a training program that is right (gradients, loss, ranks), and
# whose seeded faults `hints` finds in what it records of itself. Nothing here
# depends on how fast the machine is; where another program may disturb a run,
# two of three must show the fault, unless the load is above four for each core.
# In a healthy run it is never found.

load common

STEPS=12 # 4 under a sanitizer, where a step takes a second

setup_file() {
    cd "$BATS_TEST_DIRNAME/../.." || return 1
    export OPSCOPE=${OPSCOPE:-build/opscope}
    export B=${OPSCOPE%/opscope}
    if sanitized "$B"; then
        export SAN=yes # the demo is built there
    else
        export SAN=
        # a path below the tree, as the files of dependencies have it
        make -s B="${B#"$PWD"/}" demo
    fi
}

setup() {
    cd "$BATS_TEST_DIRNAME/../.." || return 1
    demo=$B/demo/demo
    logs=$BATS_TEST_TMPDIR/logs
    [ -z "$SAN" ] || STEPS=4
}

# The number behind a word of the last line: loss 3.6 -> 1.9 in 30 steps ...
first_loss() { awk '/^loss/ { print $2 }' <<< "$output"; }
last_loss() { awk '/^loss/ { print $4 }' <<< "$output"; }

# holds EXPRESSION: by awk's arithmetic.
holds() { awk "BEGIN { exit !($1) }"; }

# Ids of the hints of what the demo records with these options.
hints_of() {
    rm -rf "$logs"
    "$demo" --quiet --steps $STEPS --logdir "$logs" "$@" > /dev/null &&
        "$OPSCOPE" hints "$logs" --format csv | sed '1d;s/,.*//'
}

# Is the machine so busy that a fault of a few milliseconds is none any more?
drowned() {
    read -r load _ < /proc/loadavg
    [ "${load%.*}" -gt $((4 * $(nproc))) ]
}

# finds ID OPTION...: it is the first hint, in two of three runs.
finds() {
    id=$1
    shift
    [ -z "$SAN" ] || skip "times under a sanitizer tell nothing"
    found=0
    for _ in 1 2 3; do
        hints=$(hints_of "$@")
        echo "first: ${hints%%$'\n'*}"
        [ "${hints%%$'\n'*}" != "$id" ] || found=$((found + 1))
    done
    echo "# $id: $found of 3 runs" | tee /dev/fd/3
    [ "$found" -ge 2 ] || ! drowned || skip "$found of 3, load $load: too busy"
    [ "$found" -ge 2 ]
}

@test "its gradients are what finite differences say" {
    run "$B/demo/check"
    echo "$output"
    [ "$status" -eq 0 ]
    # 22 weights, two ways to call the ops; 4 products
    [ "$(grep -c 'worst error' <<< "$output")" -eq 48 ]
    [[ $output == *"gradients are right"* ]]
}

@test "it learns: the loss falls below 0.6 of what it was" {
    run "$demo" --quiet --steps 60 --batch 8
    echo "$output"
    [ "$status" -eq 0 ]
    holds "$(last_loss) < 0.6 * $(first_loss)"
}

@test "ranks that share a batch train what one rank trains" {
    run "$demo" --quiet --steps $STEPS
    one=$(last_loss)
    for ranks in 2 4; do
        run "$demo" --quiet --steps $STEPS --ranks $ranks
        echo "$output, alone $one"
        [ "$status" -eq 0 ]
        holds "($(last_loss) - $one) ^ 2 < 1e-6"
    done
}

@test "faults, BLAS and recording change nothing about the training" {
    run "$demo" --quiet --steps $STEPS
    one=$(last_loss)
    for o in --own-blas --slow-input --leak --small-ops \
        "--ranks 2 --straggler" "--logdir $logs"; do
        # shellcheck disable=SC2086 # words
        run "$demo" --quiet --steps $STEPS $o
        echo "$o: $output, without $one"
        [ "$status" -eq 0 ]
        holds "($(last_loss) - $one) ^ 2 < 1e-6"
    done
}

@test "what it recorded is all there" {
    "$demo" --quiet --steps $STEPS --logdir "$logs"
    run "$OPSCOPE" steps "$logs" --format csv
    [ "$(sed 1d <<< "$output" | wc -l)" -eq $STEPS ]
    # custom op: 3 FLOPs for each of tokens x width, in every layer and step
    run "$OPSCOPE" ops "$logs" --name bias_relu2 --format csv
    echo "$output"
    [[ $output == *",$((3 * 16 * 64 * 4 * 96 * 2 * STEPS)),"* ]]
    run "$OPSCOPE" trace "$logs" --name make_batch --format csv
    echo "$output"
    [ "$(grep -c loader/ <<< "$output")" -eq $STEPS ]
    run "$OPSCOPE" counters "$logs" --format csv
    [[ $output == *"queue depth"* ]]
    run "$OPSCOPE" memory "$logs" --by category --format csv
    for c in parameter gradient optimizer activation input; do
        [[ $output == *$c* ]]
    done
}

@test "hints finds none of the faults in a healthy run" {
    [ -z "$SAN" ] || skip "times under a sanitizer tell nothing"
    clean=0
    for _ in 1 2 3; do
        hints=$(hints_of)
        echo "$hints"
        [ -n "$hints" ] || clean=$((clean + 1))
    done
    echo "# healthy: $clean of 3 runs are clean" | tee /dev/fd/3
    [ "$clean" -eq 3 ]
}

@test "hints finds --slow-input" { finds input-bound --slow-input; }
@test "hints finds --leak" { finds memory-leak --leak; }
@test "hints finds --small-ops" { finds launch-bound --small-ops; }
@test "hints finds --straggler" { finds straggler --ranks 2 --straggler; }

@test "wrong usage is said and exits 1" {
    for o in --bogus "--steps 0" "--steps x" "--batch 3 --ranks 2" \
        --straggler "--ranks 99 --batch 99" more; do
        # shellcheck disable=SC2086 # words
        run "$demo" $o
        echo "$o: $output"
        [ "$status" -eq 1 ]
        [[ $output == *"usage: demo"* ]]
    done
}

# child_of PID: $child is one of its children.
child_of() {
    child=$(grep -lsx "PPid:[[:space:]]*$1" /proc/[0-9]*/status |
        cut -d / -f 3 | head -n 1)
    [ -n "$child" ]
}

@test "a rank that dies takes the others with it" {
    "$demo" --quiet --steps 100000 --ranks 2 3>&- &
    parent=$!
    wait_for child_of $parent
    kill -KILL "$child"
    status=0
    wait $parent || status=$?
    [ "$status" -eq 1 ]
    ! kill -0 "$parent"
}
