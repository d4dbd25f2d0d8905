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

@test "every analysis has a page in one form" {
    for name in $(sed -n 's/^X(\(.*\)).*/\1/p' src/analyze/analyses.def); do
        page=docs/analyses/$name.md
        grep -q "^# $name: .*?\$" "$page" || { echo "$page: title"; return 1; }
        for part in 'How it is computed' 'How to read it' \
                    'Where it can mislead'; do
            grep -q "^## $part" "$page" || { echo "$page: $part"; return 1; }
        done
    done
}

@test "the index knows every page, and every link leads somewhere" {
    for page in docs/*.md docs/recorder/*.md; do
        page=${page#docs/}
        [ "$page" = README.md ] || grep -qF "]($page)" docs/README.md ||
            { echo "$page"; return 1; }
    done
    for page in README.md CONTRIBUTING.md NEWS.md docs/*.md docs/*/*.md; do
        for to in $(grep -o '](\([^)#]*\))' "$page" | sed 's/](//;s/)//' |
                        grep -v '^http'); do
            [ -e "$(dirname "$page")/$to" ] || { echo "$page: $to"; return 1; }
        done
        for to in $(grep -o 'docs/[a-z/-]*\.md' "$page"); do
            [ -e "$to" ] || { echo "$page: $to"; return 1; }
        done
    done
}

@test "every file of the tree that a page names is there" {
    # those that CONTRIBUTING.md makes up are its examples'
    for at in $(grep -ohE '`(src|tests|tools|[a-z]+)(/[a-z_]+)+\.(c|h|def|py)`' \
                    README.md CONTRIBUTING.md docs/*.md docs/*/*.md |
                    tr -d '`' | sort -u); do
        case $at in */threads.c | */spanlog.c | */markdown.c | */test_threads.c) continue ;; esac
        [ -e "$at" ] || [ -e "src/$at" ] || [ -e "include/$at" ] || { echo "$at"; return 1; }
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

@test "opscope help prints the sections of docs/how-to-record.md" {
    page=docs/how-to-record.md
    topics=$(sed -n 's/^<!-- help: \(.*\) -->$/\1/p' $page)
    [ "$(wc -w <<< "$topics")" -eq 5 ]
    for topic in $topics; do
        "$OPSCOPE" help "$topic" > "$BATS_TEST_TMPDIR/$topic"
        # no mark of the page is left, and it fits a terminal
        run grep -nE '^(```|#|\||<!--)|\*\*|.{81}' "$BATS_TEST_TMPDIR/$topic"
        [ "$status" -eq 1 ]
    done
    # every line of code is there, indented, and every other word
    python3 - "$page" "$BATS_TEST_TMPDIR" <<'EOF'
import re, sys
parts = re.split(r"^<!-- help: ([a-z-]+) -->\n", open(sys.argv[1]).read(),
                 flags=re.M)
def words(s):
    s = re.sub(r"^\|[-|]+$", "", s, flags=re.M)
    return re.sub(r"[|#]", " ", s.replace("**", "")).split()
for topic, text in zip(parts[1::2], parts[2::2]):
    shown = open(f"{sys.argv[2]}/{topic}").read()
    for block in re.findall(r"^```.*?\n(.*?)^```", text, re.M | re.S):
        for line in block.splitlines():
            assert not line or f"\n    {line}\n" in shown, (topic, line)
    assert words(re.sub(r"^```.*$", "", text, flags=re.M)) == words(shown), topic
EOF
}

@test "a page of help may have backslashes and quotes" {
    printf '%s\n' '<!-- help: x -->' 'a \ "b" \n' >"$BATS_TEST_TMPDIR/x.md"
    run sh tools/pages.sh "$BATS_TEST_TMPDIR/x.md"
    [ "$status" -eq 0 ]
    [[ $output == *'"a \\ \"b\" \\n\n"'* ]]
}
