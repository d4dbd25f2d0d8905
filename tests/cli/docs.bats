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
        convert) continue ;; # has tests of its own
        allocs) "$OPSCOPE" allocs $p --peak -q > /dev/null ;;
        *) "$OPSCOPE" "$a" $p -q > /dev/null ;;
        esac || { echo "$a"; return 1; }
    done
}

@test "the README's steps are what the program prints" {
    "$OPSCOPE" steps tests/data/torch_cnn --width 100 --color never |
        grep -E '^ +[23] ' > "$BATS_TEST_TMPDIR/now"
    while read -r line; do
        grep -qF "$line" README.md || { echo "$line"; return 1; }
    done < "$BATS_TEST_TMPDIR/now"
}
