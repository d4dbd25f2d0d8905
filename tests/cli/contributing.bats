#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The worked example of CONTRIBUTING.md: one file and one line, taken from the
# page, must make an analysis that is built, run, helped and completed.

profile=tests/data/torch_cnn/torch_cnn.pt.trace.json.gz

# The fenced block after the marker "<!-- example: $1 -->".
example() {
    awk -v want="<!-- example: $1 -->" '
        $0 == want { armed = 1; next }
        armed && /^```/ { if (inside) exit; inside = 1; next }
        inside { print }' CONTRIBUTING.md
}

setup() {
    [ -x build/opscope ] && [ -f "$profile" ] || skip "no build or no profile"
    tree=$BATS_TEST_TMPDIR/tree
    rm -rf "$tree"
    mkdir -p "$tree/build"
    # With its objects and their times: only what changes is compiled.
    cp -a Makefile VERSION src include tools demo "$tree/"
    cp -a build/obj "$tree/build/"
}

@test "contributing: the example analysis takes one file and one line" {
    example src/analyze/report/threads.c >"$tree/src/analyze/report/threads.c"
    example "line in src/analyze/analyses.def" \
        >>"$tree/src/analyze/analyses.def"
    [ "$(wc -l <"$tree/src/analyze/report/threads.c")" -gt 20 ]
    run make -C "$tree" WERROR=1 B=build build/opscope layers
    [ "$status" -eq 0 ] || { echo "$output"; false; }

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
