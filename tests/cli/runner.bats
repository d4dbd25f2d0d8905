#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The test runner itself: a failure must never go uncounted.

load common

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

@test "runner: what a test leaves behind is named, a failure, and removed" {
    home=$BATS_TEST_TMPDIR/home tmp=$BATS_TEST_TMPDIR/tmp
    shared=$BATS_TEST_TMPDIR/shared
    mkdir -p "$home" "$tmp" "$shared/tmp" "$shared/shm"
    shm=$shared/shm/opscope-0-left plain=$shared/tmp/opscope-test-left
    perhaps=$shared/tmp/opscope-run # a person may call a recording so
    : >"$shared/tmp/opscope-before"
    cat >"$tree/tests/truth/check.py" <<PY
import os, subprocess, sys, tempfile
open(os.path.expanduser("~/.history"), "w").close()
os.rename(tempfile.mkdtemp(), os.environ["TMPDIR"] + "/folder")
open("$shm", "w").close()
os.mkdir("$plain")
os.mkdir("$perhaps")
open("$shared/tmp/of-others", "w").close()
subprocess.run(["setsid", "-f", "sleep", "987"])
print("ok one")
print("not ok two: it fails as well")
sys.exit(1)
PY
    HOME=$home TMPDIR=$tmp TEST_SHARED=$shared/tmp:$shared/shm runner truth
    [ -z "$(ls -A "$home" "$tmp" | grep -v ':$')" ]
    [ "$(ls "$shared"/*)" = "$shared/shm:

$shared/tmp:
of-others
opscope-before
opscope-run" ]
    ! pgrep -f '^sleep 987$'
    [ "$status" -eq 1 ]
    [ "$last_line" = "1 passed, 7 failed" ]
    by="FAILED left behind by truth: tests/truth/check.py:"
    [[ "$output" == *"$by \$HOME/.history"* ]]
    [[ "$output" == *"$by \$TMPDIR/folder"* ]]
    for what in "a process, sleep 987" "$shm" "$plain" "$perhaps"; do
        [[ "$output" == *"FAILED left behind by a test: $what"* ]]
    done
}

@test "runner: what appears while others work is left where it is" {
    left=/tmp/opscope-of-others-$$
    echo "import os; os.mkdir('$left'); print('ok one')" \
        >"$tree/tests/truth/check.py"
    (cd "$tree" && exec sleep 600) 3>&- &
    other=$!
    runner truth
    kill $other
    rmdir "$left"
    [ "$status" -eq 0 ]
    [[ "$output" == *"not ours, perhaps, and not removed: $left"* ]]
}

@test "runner: stopped, it ends its tests and leaves nothing" {
    tmp=$BATS_TEST_TMPDIR/tmp
    mkdir "$tmp"
    cat >"$tree/tests/truth/check.py" <<PY
import os, time
open(os.environ["TMPDIR"] + "/file", "w").close()
open("$BATS_TEST_TMPDIR/pid", "w").write(str(os.getpid()) + "\n")
time.sleep(600)
PY
    for s in TERM:143 INT:130 HUP:129; do
        rm -f "$BATS_TEST_TMPDIR/pid"
        # a shell's background ignores SIGINT: env gives it back
        TMPDIR=$tmp env --default-signal=INT /usr/bin/python3 \
            "$tree/tests/run" truth >"$BATS_TEST_TMPDIR/out" 2>&1 &
        runner=$!
        wait_for [ -s "$BATS_TEST_TMPDIR/pid" ]
        kill -${s%:*} $runner
        rc=0
        wait $runner || rc=$?
        [ "$rc" -eq ${s#*:} ]
        [ -z "$(ls -A "$tmp")" ]
        [ ! -e "/proc/$(cat "$BATS_TEST_TMPDIR/pid")" ]
    done
}

@test "runner: signals that were ignored on entry are not ignored in tests" {
    cat >"$tree/tests/truth/check.py" <<'PY'
import re
ignored = int(re.search(r"SigIgn:\s*(\w+)", open("/proc/self/status").read())[1],
              16)
ignored &= ~(1 << 12 | 1 << 24) # Python itself ignores SIGPIPE and SIGXFSZ
print("ok one" if ignored == 0 else f"not ok one: {ignored:x}")
PY
    for how in nohup "env --ignore-signal=HUP,INT,QUIT,TERM"; do
        run $how /usr/bin/python3 "$tree/tests/run" truth
        [ "$status" -eq 0 ]
        [[ "$output" == *"1 passed, 0 failed" ]]
    done
}

@test "runner: why cases are skipped stands at the end, with counts" {
    check 'ok one # skip no device' 'ok two # skip no device' 'ok three' \
        '# because it is too slow' 'not ok 4 # SKIP four' \
        'not ok 5 # SKIP five'
    runner truth unit
    [ "$status" -eq 0 ]
    [ "$last_line" = "1 passed, 0 failed, 5 skipped" ]
    [[ "$output" == *"
skipped:
     2  no device
     1  it is too slow
     1  tests/truth/check.py does not say why
     1  unit: there are none
"* ]]
}

@test "runner: programs ask \$TMPDIR, not /tmp" {
    # Allowed: what another user must be able to read, and texts of tests.
    run grep -rnE '["= ]/tmp/' tests --include=*.c --include=*.h \
        --include=*.py --include=*.bats --include=*.sh
    [ "$(grep -cvE '^tests/(package/(deb|wheel).sh|cli/runner.bats)|open=\$\(mktemp -d /tmp/readable-XXXXXX\)|"/tmp/opscope-x"' \
        <<< "$output")" -eq 0 ]
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
