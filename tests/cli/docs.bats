#!/usr/bin/env bats
# The documents that are printed from the tables, and the README's commands.

setup() {
    cd "$BATS_TEST_DIRNAME/../.." || return 1
    : "${OPSCOPE:=build/opscope}"
    export OPSCOPE
}

@test "docs/reference.md is what the tables print" {
    sh tools/reference.sh "$OPSCOPE" > "$BATS_TEST_TMPDIR/reference.md"
    diff -u docs/reference.md "$BATS_TEST_TMPDIR/reference.md"
}

@test "every analysis and command of the tables has a page" {
    for name in $(sed -n 's/^X(\(.*\)).*/\1/p' src/analyze/analyses.def \
                      src/cmd/commands.def); do
        grep -q "^## $name\$" docs/reference.md || { echo "$name"; return 1; }
    done
}

@test "the README's analyses run on a real profile" {
    p=tests/data/torch_cnn/torch_cnn.pt.trace.json.gz
    for a in $(sed -n 's/^    opscope \([a-z]*\) .*/\1/p' README.md | sort -u)
    do
        case $a in
        convert | record | watch | scalars) continue ;; # have their own tests
        allocs) "$OPSCOPE" allocs $p --peak -q > /dev/null ;;
        *) "$OPSCOPE" "$a" $p -q > /dev/null ;;
        esac || { echo "$a"; return 1; }
    done
}

@test "the README's hint is what the program prints" {
    "$OPSCOPE" hints tests/data/faults/sync.pt.trace.json.gz --width 100 \
        --color never > "$BATS_TEST_TMPDIR/now"
    sed -n '/^    \$ opscope hints/,/^    \.\.\.$/p' README.md |
        sed '1d;$d;s/^    //' > "$BATS_TEST_TMPDIR/said"
    [ -s "$BATS_TEST_TMPDIR/said" ]
    while IFS= read -r line; do
        grep -qxF -- "$line" "$BATS_TEST_TMPDIR/now" || {
            echo "$line"
            return 1
        }
    done < "$BATS_TEST_TMPDIR/said"
}
