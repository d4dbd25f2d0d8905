#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The worked examples of CONTRIBUTING.md: one file and one line, taken from the
# page, must make an analysis, an importer and a presenter that are built, run,
# helped and completed.

profile=tests/data/torch_cnn/torch_cnn.pt.trace.json.gz

# The fenced block after the marker "<!-- example: $1 -->".
example() {
    awk -v want="<!-- example: $1 -->" '
        $0 == want { armed = 1; next }
        armed && /^```/ { if (inside) exit; inside = 1; next }
        inside { print }' CONTRIBUTING.md
}

setup() {
    : "${BUILD:=build}"
    [ -x "$BUILD/opscope" ] && [ -f "$profile" ] ||
        skip "no build or no profile"
    tree=$BATS_TEST_TMPDIR/tree
    rm -rf "$tree"
    mkdir -p "$tree/build"
    # With its objects and their times: only what changes is compiled.
    cp -a Makefile VERSION src include tools demo "$tree/"
    mkdir "$tree/docs"
    cp -a docs/how-to-record.md "$tree/docs/" # help prints it
    cp -a "$BUILD/obj" "$tree/build/"
    find "$tree/build" -name '*.d' \
        -exec sed -i 's,^[^ ]*/obj/,build/obj/,' {} +
}

# add_example FILE TABLE: builds the tree with the page's file and its line in
# that table.
add_example() {
    example "$1" >"$tree/$1"
    example "line in $2" >>"$tree/$2"
    [ "$(wc -l <"$tree/$1")" -gt 20 ]
    run make -C "$tree" WERROR=1 B=build build/opscope layers
    [ "$status" -eq 0 ] || { echo "$output"; false; }
}

@test "contributing: the example analysis takes one file and one line" {
    add_example src/analyze/report/threads.c src/analyze/analyses.def

    run "$tree/build/opscope" threads "$profile" --format csv
    [ "$status" -eq 0 ]
    [ "${lines[0]%$'\r'}" = "thread,spans,busy_us" ] # lines end in CRLF
    [ "${#lines[@]}" -gt 1 ]

    run "$tree/build/opscope" threads "$profile" --format json --top 1
    [[ "$output" == *'"analysis": "threads"'* || \
        "$output" == *'"analysis":"threads"'* ]]

    run "$tree/build/opscope" help threads
    [ "$status" -eq 0 ]
    [[ "$output" == *"how busy each host thread was"* ]]

    run "$tree/build/opscope" completion bash
    [[ "$output" == *threads* ]]
}

@test "contributing: the example importer takes one file and one line" {
    add_example src/import/spanlog.c src/import/importers.def

    printf '#spanlog\nload 0 10\nload 20 30\nstep 5 7\nbroken\n' \
        >"$tree/log.spanlog"
    run "$tree/build/opscope" ops "$tree/log.spanlog" --format csv
    [ "$status" -eq 0 ]
    [[ "$output" == *$'\n'"load,2,40"* ]] || { echo "$output"; false; }
    [[ "$output" == *$'\n'"step,1,7"* ]]

    run "$tree/build/opscope" info "$tree/log.spanlog"
    [[ "$output" == *spanlog* ]]
    [[ "$output" == *"1 event could not be understood"* ]]

    run "$tree/build/opscope" help formats
    [[ "$output" == *"lines of a span each"* ]]
    # nothing else knows of it, and every analysis takes it
    for verb in $(sed -n 's/^X(\(.*\)).*/\1/p' src/analyze/analyses.def); do
        run "$tree/build/opscope" "$verb" "$tree/log.spanlog"
        [ "$status" -eq 0 ] || { echo "$verb: $output"; false; }
    done
}

@test "contributing: the example presenter takes one file and one line" {
    add_example src/present/markdown.c src/present/presenters.def

    for verb in $(sed -n 's/^X(\(.*\)).*/\1/p' src/analyze/analyses.def); do
        run "$tree/build/opscope" "$verb" "$profile" --format markdown --top 3
        [ "$status" -eq 0 ] || { echo "$verb: $output"; false; }
        [[ "${lines[1]}" == "| --- "*"|" ]]
        # names, a rule and three rows, with the same columns each
        [ "${#lines[@]}" -le 5 ]
    done
    run "$tree/build/opscope" ops "$profile" --format markdown
    [ "${#lines[@]}" -eq 22 ]
    run "$tree/build/opscope" ops "$profile" --format xml
    [[ "$output" == *"text|json|csv|markdown"* ]]
    run "$tree/build/opscope" completion bash
    [[ "$output" == *markdown* ]]
}
