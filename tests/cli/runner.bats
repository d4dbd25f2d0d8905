#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The test runner itself: a failure must never go uncounted.

setup() {
    tree=$BATS_TEST_TMPDIR/tree
    rm -rf "$tree"
    mkdir -p "$tree/tests/golden/fmt/case" "$tree/tests/cli" \
        "$tree/tests/truth" "$tree/tests/unit" "$tree/build/unit"
    cp tests/run "$tree/tests/"
    echo some/file >"$tree/tests/golden/fmt/case/in"
    printf '#!/bin/sh\necho "$1 of $2"\n' >"$tree/build/opscope"
    chmod +x "$tree/build/opscope"
}

check() { # LINE...: a Python check that prints these lines, then runs $last
    printf 'print("%s")\n' "$@" >"$tree/tests/truth/check.py"
    echo "${last-}" >>"$tree/tests/truth/check.py"
}

runner() {
    run /usr/bin/python3 "$tree/tests/run" "$@"
    last_line=${lines[${#lines[@]} - 1]}
}

@test "runner: counts passed, failed and skipped cases" {
    check 'ok one' 'not ok two: it broke' 'ok three # skip no device'
    runner truth
    [ "$status" -eq 1 ]
    [ "$last_line" = "1 passed, 1 failed, 1 skipped" ]
    [[ "$output" == *"two: it broke"* ]]
}

@test "runner: all passed is status 0, and no word of skipped" {
    check 'ok one' 'ok two'
    runner truth
    [ "$status" -eq 0 ]
    [ "$last_line" = "2 passed, 0 failed" ]
}

@test "runner: a program that dies after good cases has failed" {
    last='raise SystemExit(3)' check 'ok one'
    runner truth
    [ "$status" -eq 1 ]
    [ "$last_line" = "1 passed, 1 failed" ]
}

@test "runner: a part with nothing in it is skipped and named" {
    runner unit
    [ "$status" -eq 0 ]
    [[ "$output" == *"skipped unit: there are none"* ]]
    [ "$last_line" = "0 passed, 0 failed, 1 skipped" ]
}

@test "runner: a program that prints no case has failed, whatever its status" {
    check 'nothing of use'
    runner truth
    [ "$status" -eq 1 ]
    [ "$last_line" = "0 passed, 1 failed" ]
    [[ "$output" == *"it printed no case at all"* ]]
    : >"$tree/tests/truth/check.py"
    runner truth
    [ "$last_line" = "0 passed, 1 failed" ]
    # a skipped case is a case
    check 'ok one # skip no device'
    runner truth
    [ "$status" -eq 0 ]
    [ "$last_line" = "0 passed, 0 failed, 1 skipped" ]
}

@test "runner: HOME, the temporary folder and the processes are left alone" {
    mkdir "$BATS_TEST_TMPDIR/home" "$BATS_TEST_TMPDIR/tmp"
    cat >"$tree/tests/truth/check.py" <<'PY'
import os, subprocess, tempfile
open(os.path.expanduser("~/.history"), "w").close()
tempfile.mkdtemp()
p = subprocess.Popen(["setsid", "-f", "sleep", "987"])
p.wait()
print("ok one")
PY
    HOME=$BATS_TEST_TMPDIR/home TMPDIR=$BATS_TEST_TMPDIR/tmp runner truth
    [ -z "$(ls -A "$BATS_TEST_TMPDIR/home" "$BATS_TEST_TMPDIR/tmp" |
        grep -v ':$')" ]
    # what still runs is ended, and is a fault
    [ "$status" -eq 1 ]
    [ "$last_line" = "1 passed, 1 failed" ]
    [[ "$output" == *"left running: sleep 987"* ]]
    ! pgrep -f '^sleep 987$'
}

@test "runner: lists parts, programs and cases without running them" {
    check 'ok one'
    echo 'int main(void) { const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_first), cmocka_unit_test(a_second)}; }' \
        >"$tree/tests/unit/test_it.c"
    printf '@test "it works" {\n    false\n}\n' >"$tree/tests/cli/it.bats"
    runner --list unit truth cli
    [ "$status" -eq 0 ]
    [ "$output" = "unit: 1 programs, 2 cases
    test_it
        a_first
        a_second
truth: 1 programs
    tests/truth/check.py
cli: 1 programs, 1 cases
    tests/cli/it.bats
        it works" ]
}

@test "runner: the slowest programs are named, with their seconds" {
    last='import time; time.sleep(0.3)' check 'ok one'
    echo 'print("ok two")' >"$tree/tests/truth/other.py"
    runner truth
    [ "$status" -eq 0 ]
    slow=$(grep -A 2 '^slowest:' <<< "$output")
    [[ $slow == *" s of a core  truth: tests/truth/check.py"* ]]
    [ "$(grep -c 'of a core' <<< "$slow")" -eq 2 ]
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
