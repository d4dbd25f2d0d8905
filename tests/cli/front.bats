#!/usr/bin/env bats
# The front: usage errors, suggestions, help, version, completions, man page.

setup() {
    cd "$BATS_TEST_DIRNAME/../.." || return 1
    OPSCOPE=${OPSCOPE:-build/opscope}
    [ -x "$OPSCOPE" ] || skip "no program at $OPSCOPE"
}

# The names in a table file: X(name) lines.
table() {
    sed -n 's/^X(\([a-z0-9_]*\).*/\1/p' "$1"
}

@test "opscope alone prints a short help with examples" {
    run "$OPSCOPE"
    [ "$status" -eq 0 ]
    [[ $output == *"Examples:"* ]]
}

@test "--version prints the version, wherever it stands" {
    run "$OPSCOPE" --version
    [ "$status" -eq 0 ]
    [ "$output" = "opscope $(cat VERSION)" ]
    run "$OPSCOPE" info --version
    [ "$output" = "opscope $(cat VERSION)" ]
}

@test "a mistyped command suggests the nearest and exits 1" {
    run "$OPSCOPE" inof x
    [ "$status" -eq 1 ]
    [ "$output" = "opscope: unknown command 'inof'; did you mean 'info'?" ]
    run "$OPSCOPE" banana
    [ "$status" -eq 1 ]
    [ "$output" = "opscope: unknown command 'banana'; 'opscope help' lists them" ]
}

@test "a path in place of a command says what to type" {
    run "$OPSCOPE" VERSION
    [ "$status" -eq 1 ]
    [[ $output == *"did you mean 'opscope "*" VERSION'?" ]]
}

@test "a mistyped option suggests the nearest and exits 1" {
    run "$OPSCOPE" info --tpo 3 x
    [ "$status" -eq 1 ]
    [ "$output" = "opscope: unknown option '--tpo'; did you mean '--top'?" ]
    run "$OPSCOPE" info -z
    [ "$status" -eq 1 ]
}

@test "a number out of range is refused with the range, exit 1" {
    local option
    for option in '--width -1' '--width 100001' '--threads -1' \
                  '--threads 4294967297' '--top -1' '--min-us -1'; do
        run "$OPSCOPE" ops x $option
        [ "$status" -eq 1 ]
        [[ $output == *"option '${option% *}': '${option#* }' is not a "* ]]
        [[ $output == *" from 0 to "[0-9]* || $output == *" of 0 or more" ]]
    done
    run "$OPSCOPE" memory x --by time --points 1
    [ "$status" -eq 1 ]
    [[ $output == *"a whole number of 2 or more" ]]
    run "$OPSCOPE" scalars x --window -1
    [ "$status" -eq 1 ]
    run "$OPSCOPE" watch x --interval 0 --count 0
    [ "$status" -eq 1 ]
    [[ $output == *"a number from 0.01 to 86400" ]]
    run "$OPSCOPE" record --wait -1 -- true
    [ "$status" -eq 1 ]
    [[ $output == *"a whole number from 0 to 2147483647" ]]
}

@test "a bad value says what is allowed" {
    run "$OPSCOPE" info x --format yaml
    [ "$status" -eq 1 ]
    [[ $output == *"'yaml' is not one of text|json|csv"* ]]
    run "$OPSCOPE" info x --top
    [ "$status" -eq 1 ]
    run "$OPSCOPE" info x --top=many
    [ "$status" -eq 1 ]
    run "$OPSCOPE" info x --steps 7..3
    [ "$status" -eq 1 ]
}

@test "an analysis without a path is wrong usage" {
    for verb in $(table src/analyze/analyses.def); do
        run "$OPSCOPE" "$verb"
        [ "$status" -eq 1 ]
    done
}

@test "a file that is not there exits 2 with one line that names it" {
    run "$OPSCOPE" info /nonexistent/profile.json
    [ "$status" -eq 2 ]
    [ "${#lines[@]}" -eq 1 ]
    [[ $output == "opscope: /nonexistent/profile.json: "* ]]
}

@test "options may stand before the command, and -- ends them" {
    run "$OPSCOPE" --format json -q info --top=3 -- /nonexistent/--top
    [ "$status" -eq 2 ]
    [[ $output == "opscope: /nonexistent/--top: "* ]]
}

@test "help lists every analysis, command, importer, option and note" {
    run "$OPSCOPE" help
    [ "$status" -eq 0 ]
    all=$output
    for verb in $(table src/analyze/analyses.def) $(table src/cmd/commands.def); do
        grep -q "^  $verb " <<<"$all"
    done
    for option in --top --sort --columns --name --steps --region --instance \
        --host --rank --min-us \
        --min-bytes --format --run --color --threads; do
        grep -q -e "^  $option " <<<"$all"
    done
    run "$OPSCOPE" help formats
    for importer in $(table src/import/importers.def); do
        grep -q "^  $importer " <<<"$output"
    done
    run "$OPSCOPE" help notes
    for note in $(sed -n 's/^X([A-Z0-9_]*, "\([a-z0-9-]*\)".*/\1/p' src/model/notes.def); do
        grep -q "^  $note" <<<"$output"
    done
    run "$OPSCOPE" help exit
    [[ $output == *"2   the input cannot be read"* ]]
}

@test "every analysis has a page: what a row is, its columns, an example" {
    for verb in $(table src/analyze/analyses.def); do
        run "$OPSCOPE" "$verb" --help
        [ "$status" -eq 0 ]
        [[ $output == *"A row is "* ]]
        [[ $output == *"Columns:"* ]]
        [[ $output == *"Example:"* ]]
        # Every column is explained.
        ! sed -n '/^Columns:/,/^$/p' <<<"$output" | grep -qE '^  [a-z_0-9]+ *$'
        [ "$("$OPSCOPE" help "$verb")" = "$output" ]
    done
}

@test "--columns chooses columns by name or heading, in every analysis and form" {
    profile=tests/data/torch_cpu
    for verb in $(table src/analyze/analyses.def); do
        names=$("$OPSCOPE" "$verb" "$profile" --format csv | head -1 | tr -d '\r')
        last=${names##*,} first=${names%%,*}
        run "$OPSCOPE" "$verb" "$profile" --columns "$last,$first" --format csv
        [ "$status" -eq 0 ]
        [ "${lines[0]}" = "$last,$first"$'\r' ]
        run "$OPSCOPE" "$verb" "$profile" --columns "$last,nothing"
        [ "$status" -eq 1 ]
        [[ $output == *"has no column 'nothing'; "*" has $first"* ]]
    done
    run "$OPSCOPE" ops "$profile" --columns 'calls,Host Self ms' --top 2 --sort 'host mean us'
    [ "$status" -eq 0 ]
    [[ ${lines[1]} =~ ^calls\ +host\ self ]]
    run "$OPSCOPE" ops "$profile" --sort nothing
    [ "$status" -eq 1 ]
    [[ $output == *"'ops' has no column 'nothing'; "*"it has name, calls, host_us"* ]]
    # two profiles: whose row it is stays
    run "$OPSCOPE" steps "$profile" tests/data/jax_cpu --columns dur_us --format csv
    [ "${lines[0]}" = profile,dur_us$'\r' ]
}

@test "every command has a page" {
    for verb in $(table src/cmd/commands.def); do
        run "$OPSCOPE" help "$verb"
        [ "$status" -eq 0 ]
        [[ $output == "opscope $verb "* ]]
    done
}

@test "help on an unknown topic suggests the nearest" {
    run "$OPSCOPE" help formts
    [ "$status" -eq 1 ]
    [ "$output" = "opscope: no help on 'formts'; did you mean 'formats'?" ]
}

@test "no help line is wider than 80 columns" {
    for topic in "" $(table src/analyze/analyses.def) options formats notes exit paths; do
        # shellcheck disable=SC2086
        run "$OPSCOPE" help $topic
        for line in "${lines[@]}"; do [ "${#line}" -le 80 ]; done
    done
}

@test "completion scripts parse in their shells" {
    for shell in bash zsh fish; do
        "$OPSCOPE" completion "$shell" >"$BATS_TEST_TMPDIR/c.$shell"
        [ -s "$BATS_TEST_TMPDIR/c.$shell" ]
        command -v "$shell" >/dev/null || continue
        "$shell" -n "$BATS_TEST_TMPDIR/c.$shell"
    done
    run "$OPSCOPE" completion tcsh
    [ "$status" -eq 1 ]
}

@test "bash completes commands, options and choices" {
    "$OPSCOPE" completion bash >"$BATS_TEST_TMPDIR/c"
    complete_words() {
        bash -c 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
            _opscope; echo "${COMPREPLY[@]}"' "$BATS_TEST_TMPDIR/c" "$@"
    }
    [ "$(complete_words opscope inf)" = info ]
    [ "$(complete_words opscope info --format js)" = json ]
    [ "$(complete_words opscope info --min-u)" = --min-us ]
    [ "$(complete_words opscope completion fi)" = fish ]
}

@test "the manual page names every verb and is sound roff" {
    "$OPSCOPE" help --man >"$BATS_TEST_TMPDIR/opscope.1"
    for verb in $(table src/analyze/analyses.def) $(table src/cmd/commands.def); do
        grep -q "opscope $verb" "$BATS_TEST_TMPDIR/opscope.1"
    done
    if command -v mandoc >/dev/null; then
        run mandoc -T lint -W error "$BATS_TEST_TMPDIR/opscope.1"
        [ "$status" -eq 0 ]
    fi
    if command -v man >/dev/null; then
        MANWIDTH=80 man -l "$BATS_TEST_TMPDIR/opscope.1" | grep -q SYNOPSIS
    fi
}

@test "a reader that leaves early is no error" {
    run bash -c '"$1" help notes 2>&1 >/dev/full' - "$OPSCOPE"
    [ "$status" -eq 2 ]
    [[ $output == "opscope: cannot write: "* ]]
    run bash -c 'set -o pipefail; for i in 1 2 3; do
        { sleep 0.05; "$1" help --man; } | head -c 0 || exit 1; done' - "$OPSCOPE"
    [ "$status" -eq 0 ]
    [ -z "$output" ]
}

@test "overview: what is the same of several runs in a file is said once" {
    run "$OPSCOPE" overview tests/data/tfevents/tf1/events.out.* --width 0
    [ "$status" -eq 0 ]
    [ "$(grep -c '^memory peak' <<< "$output")" -eq 1 ]
}
