#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The test runner itself: a failure must never go uncounted.

setup() {
    tree=$BATS_TEST_TMPDIR/tree
    rm -rf "$tree"
    mkdir -p "$tree/tests/golden/fmt/case" "$tree/tests/cli" "$tree/build"
    cp tests/run "$tree/tests/"
    echo some/file >"$tree/tests/golden/fmt/case/in"
    printf '#!/bin/sh\necho "$1 of $2"\n' >"$tree/build/opscope"
    chmod +x "$tree/build/opscope"
}

check() { # LINE...: a Python check that prints these lines, then runs $last
    printf 'print("%s")\n' "$@" >"$tree/tests/golden/check.py"
    echo "${last-}" >>"$tree/tests/golden/check.py"
}

runner() {
    run /usr/bin/python3 "$tree/tests/run" "$@"
    last_line=${lines[${#lines[@]} - 1]}
}

@test "runner: counts passed, failed and skipped cases" {
    check 'ok one' 'not ok two: it broke' 'ok three # skip no device'
    runner checks
    [ "$status" -eq 1 ]
    [ "$last_line" = "1 passed, 1 failed, 1 skipped" ]
    [[ "$output" == *"two: it broke"* ]]
}

@test "runner: all passed is status 0, and no word of skipped" {
    check 'ok one' 'ok two'
    runner checks
    [ "$status" -eq 0 ]
    [ "$last_line" = "2 passed, 0 failed" ]
}

@test "runner: a program that dies after good cases has failed" {
    last='raise SystemExit(3)' check 'ok one'
    runner checks
    [ "$status" -eq 1 ]
    [ "$last_line" = "1 passed, 1 failed" ]
}

@test "runner: a part with nothing in it is skipped and named" {
    runner unit
    [ "$status" -eq 0 ]
    [[ "$output" == *"skipped unit: there are none"* ]]
    [ "$last_line" = "0 passed, 0 failed, 1 skipped" ]
}

@test "runner: golden text is compared exactly and a diff is shown" {
    echo "ops of some/file" >"$tree/tests/golden/fmt/case/ops.txt"
    runner golden
    [ "$last_line" = "1 passed, 0 failed" ]
    echo "ops of another" >"$tree/tests/golden/fmt/case/ops.txt"
    runner golden
    [ "$status" -eq 1 ]
    [ "$last_line" = "0 passed, 1 failed" ]
    [[ "$output" == *"-ops of another"* ]]
    [[ "$output" == *"+ops of some/file"* ]]
}

@test "runner: a golden case may have a command line of its own" {
    echo "steps IN" >"$tree/tests/golden/fmt/case/by-device.args"
    echo "steps of some/file" >"$tree/tests/golden/fmt/case/by-device.txt"
    runner golden
    [ "$last_line" = "1 passed, 0 failed" ]
}
