#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# opscope record, of programs that record themselves: all they recorded is in
# the run, however they end.

load record

# A program of the recorder's users, $dir/own: HOW [CHILD]. 30 steps, then it
# ends as HOW says; a child, if any, ends as CHILD says.
build_own() {
    lib=$(dirname "$OPSCOPE")/libopscope-record.a
    [ -f "$lib" ] || skip "no recorder at $lib"
    cat > own.c <<'C'
#include <opscope/record.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static int end_as(const char *how) {
    if (strcmp(how, "kill") == 0) kill(getpid(), SIGKILL);
    if (strcmp(how, "abort") == 0) abort();
    if (strcmp(how, "_exit") == 0) _exit(3);
    return 5;
}
static void turns(const char *name, int n) {
    for (int i = 0; i < n; i++) {
        ops_step(i);
        ops_begin(name);
        usleep(1000);
        ops_end();
    }
    ops_step_end();
}
int main(int argc, char **argv) {
    if (argc > 2 && fork() == 0) {
        if (strcmp(argv[2], "late") == 0) setsid();
        turns("child", strcmp(argv[2], "late") == 0 ? 800 : 30);
        return end_as(argv[2]);
    }
    turns("forward", 30);
    if (argc > 2 && strcmp(argv[2], "late") != 0) wait(NULL);
    return end_as(argv[1]);
}
C
    cc -I"$BATS_TEST_DIRNAME/../../include" -o own own.c "$lib" -pthread -ldl \
        -lm 2> cc.err || skip "own.c cannot be linked with this recorder"
}

# Spans called NAME in the profiles of the run, and .ring files left.
count_spans() {
    local n=0 f k
    for f in "$(run_dir)"/*.xplane.pb; do
        [[ $f == *_record*.xplane.pb ]] && continue
        k=$("$OPSCOPE" trace "$f" --format csv --name "$1" | tail -n +2 | wc -l)
        n=$((n + k))
    done
    echo "$n"
}

@test "record: a program that never calls ops_start records into the run" {
    build_own
    run rec -- ./own end
    [ "$status" -eq 5 ]
    [[ $output != *"recorded anything itself"* ]]
    [ "$(ls "$(run_dir)" | wc -l)" -eq 2 ]
    [ "$(count_spans forward)" -eq 30 ]
}

@test "record: what dead processes recorded is saved, however they died" {
    build_own
    for how in kill abort _exit; do
        rm -rf logs
        run rec --no-overview -- bash -c "ulimit -c 0; exec ./own $how"
        case $how in
            kill) [ "$status" -eq 137 ] ;;
            abort) [ "$status" -eq 134 ] ;;
            _exit) [ "$status" -eq 3 ] ;;
        esac
        [[ $output == *"1 process ended without closing its recording: saved, "* ]]
        [ "$(count_spans forward)" -eq 30 ]
        d=$(run_dir)
        [ -z "$(ls "$d" | grep -E '\.(ring|part)$')" ]
    done
    rm -rf logs
    run rec --no-overview -- ./own kill kill
    [ "$status" -eq 137 ]
    [[ $output == *"2 processes ended without closing their recording: saved, "* ]]
    [ "$(count_spans forward)" -eq 30 ]
    [ "$(count_spans child)" -eq 30 ]
}

@test "record: a child that still records is waited for, not for ever" {
    build_own
    run rec --no-overview -- ./own end late
    [ "$status" -eq 5 ]
    [ "$(count_spans child)" -eq 800 ]
    [ -z "$(ls "$(run_dir)" | grep -E '\.(ring|part)$')" ]
    rm -rf logs
    run rec --no-overview --wait 0 -- ./own end late
    [ "$status" -eq 5 ]
    [[ $output == *"of the program still r"* ]]
    [[ $output != *"could not be finished"* ]]
}

@test "record: which steps is told to the recorder, and checked before" {
    build_own
    run rec --steps 'sometimes' -- ./own end
    [ "$status" -eq 1 ]
    [[ $output == *"--steps 'sometimes'"* ]]
    [ ! -e logs ]
    rec -q --steps 10..12 -- ./own end || true
    [ "$(count_spans forward)" -eq 3 ]
}

@test "record: in a shared run others' rings are left alone" {
    build_own
    mkdir -p logs/plugins/profile/job
    echo /dev/shm/no-such-ring-of-another-host > logs/plugins/profile/job/n9_1.ring
    run rec --no-overview --run job -- ./own kill
    [ "$status" -eq 137 ]
    [[ $output == *"1 process ended"* ]]
    [[ $output != *"could not be"* ]]
    [ -f logs/plugins/profile/job/n9_1.ring ]
}

@test "record: in a shared run children too short to be seen are gathered" {
    build_own
    cat > short.c <<'C'
#include <opscope/record.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    ops_instant("parent");
    for (int i = 0; i < 30; i++) {
        if (fork() == 0) { ops_instant("child"); _exit(0); }
        wait(0);
    }
    execl("/bin/true", "true", (char *)0); /* it gathers none of them itself */
}
C
    cc -I"$BATS_TEST_DIRNAME/../../include" -o short short.c "$lib" -pthread \
        -ldl -lm
    mkdir -p logs/plugins/profile/job
    rec -q --run job -- ./short
    [ "$(count_spans child)" -eq 30 ]
    [ -z "$(find logs -name '*.ring')" ]
}

@test "record: children that we had before are not the program's" {
    bash -c 'sleep 0.2 & exec "$0" record -q -o logs -- sh -c "sleep 0.5; exit 3"' \
        "$OPSCOPE" || [ $? -eq 3 ]
    "$OPSCOPE" processes logs --format csv > rows
    [ "$(grep -c '^sleep' rows)" -eq 1 ]
    [ "$(figure sh end)" = "exit 3" ]
}

@test "record: a shell with job control takes the terminal and gives it back" {
    run $py - "$OPSCOPE" <<'PY'
import os, pty, select, signal, sys
signal.alarm(60)
pid, fd = pty.fork()
if pid == 0:
    os.environ["HISTFILE"] = "/dev/null"
    signal.signal(signal.SIGINT, signal.SIG_DFL) # ours may be ignored
    os.execv(sys.argv[1], [sys.argv[1], "record", "--no-overview", "-o", "logs",
                           "--", "bash", "--norc", "--noprofile", "-i"])
out = b""
def until(word, again=b""):
    global out
    while word not in out:
        if select.select([fd], [], [], 2)[0]: out += os.read(fd, 4096)
        else: os.write(fd, again)
until(b"bash-")                     # its prompt: what is typed before may be lost
os.write(fd, b"sh -c 'echo g''o; exec sleep 60'\n")
until(b"go\r\n")
os.write(fd, b"\x03")               # ends sleep, neither bash nor us
line = b"echo still $((40 + 2)); exit 6\n"
os.write(fd, line)
until(b"still 42", line)            # the shell may forget it with the interrupt
until(b"recorded in")
_, status = os.waitpid(pid, 0)
assert os.waitstatus_to_exitcode(status) == 6, status
PY
    echo "$output"
    [ "$status" -eq 0 ]
}
