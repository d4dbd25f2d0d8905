#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Windows by name, as people ask for them.

setup() {
    OPSCOPE=${OPSCOPE:-build/opscope}
    record=tests/data/record
}

# column NAME ARGS...: a column of a table, one value a line.
column() {
    local name=$1
    shift
    "$OPSCOPE" "$@" --format csv | python3 -c '
import csv, sys
for row in csv.DictReader(sys.stdin):
    print(row[sys.argv[1]])' "$name"
}

@test "region: each instance is a step, on every rank" {
    [ "$(column step steps $record --region forward | sort -n | uniq -c |
        awk '{print $1, $2}' | tr '\n' ' ')" = \
        "$(for i in 0 1 2 3 4 5 6 7; do printf '2 %d ' $i; done)" ]
    [ "$(column step steps $record --region forward --rank 1 \
        --instance 2..3 | tr '\n' ' ')" = "2 3 " ]
}

@test "region: one inside another, by nesting" {
    all=$(column name trace $record --region forward | sort | uniq -c)
    [ "$all" = "$(column name trace $record --region 'epoch ?/step/forward' |
        sort | uniq -c)" ]
    run "$OPSCOPE" steps $record --region 'backward/forward'
    [ "$status" -eq 1 ]
}

@test "region: every analysis takes it, and its steps are told" {
    for a in $(sed -n 's/^X(\([a-z_]*\).*/\1/p' src/analyze/analyses.def); do
        run "$OPSCOPE" "$a" $record --region forward --instance 1..
        [ "$status" -eq 0 ]
        [[ "$(tr '\n' ' ' <<<"$output" | tr -s ' ')" == \
            *"Only what lies in region 'forward' counts"* ]]
    done
    run "$OPSCOPE" info $record --region forward
    [[ "$output" == *"the instances of --region are the steps"* ]]
}

@test "region: together with steps of the program" {
    [ "$(column step steps $record --region forward --rank 0 --steps 3..4 |
        tr '\n' ' ')" = "3 4 " ]
    run "$OPSCOPE" steps $record --region forward --steps 77
    [ "$status" -eq 1 ]
    [[ "$output" == *"no instance of the region is in --steps 77"* ]]
}

@test "region: no such name: exit 1, and the names that there are" {
    run "$OPSCOPE" ops $record --region forwrad
    [ "$status" -eq 1 ]
    [ "${#lines[@]}" -eq 1 ]
    [[ "$output" == *"no region matches 'forwrad'; there are "* ]]
    [[ "$output" == *"forward (16)"* ]]
    run "$OPSCOPE" ops $record --region forward --instance 8
    [ "$status" -eq 1 ]
    [[ "$output" == *"it has instances 0..7"* ]]
    run "$OPSCOPE" ops $record --instance 0
    [ "$status" -eq 1 ]
    [[ "$output" == *"it needs --region"* ]]
}

@test "region: several profiles, each with its own" {
    run "$OPSCOPE" steps tests/data/torch_stack tests/data/torch_cnn \
        --region 'forward*' --format csv
    [ "$status" -eq 0 ]
    [ "$(cut -d, -f1 <<<"$output" | sort | uniq -c | wc -l)" -eq 3 ]
}
