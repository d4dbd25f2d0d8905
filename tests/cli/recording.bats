#!/usr/bin/env bats
# Recordings that are not closed, as people meet them: a log folder of a program
# that was killed, that still runs, that was moved, whose memory is gone.

load common

setup() {
    cd "$BATS_TEST_DIRNAME/../.." || return 1
    : "${OPSCOPE:=build/opscope}"
    case $OPSCOPE in /*) ;; *) OPSCOPE=$PWD/$OPSCOPE ;; esac
    export OPSCOPE
    lib=$(dirname "$OPSCOPE")/libopscope-record.a
    cd "$BATS_TEST_TMPDIR" || return 1
    cat > prog.c <<'C'
#include <opscope/record.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int n = atoi(argv[1]);
    (void)argc;
    ops_start("logs", &(struct ops_options){.no_machine = true, .run = "r"});
    for (int i = 0; i < n; i++) {
        ops_step(i);
        OPS_SCOPE("work");
        ops_counter("i", i);
    }
    if (argv[2][0] == 'k') {
        ops_step(n);
        ops_begin("last words");
        kill(getpid(), SIGKILL);
    }
    if (argv[2][0] == 'e') {
        ops_step(n);
        OPS_SCOPE("last words");
        exit(0);
    }
    if (argv[2][0] == 'w') {
        ops_flush();
        if (write(1, "x\n", 2) != 2) return 1;
        pause();
    }
    return 0;
}
C
    compilers_of "${OPSCOPE%/opscope}"
    $cc -I"$OLDPWD/include" prog.c -o prog "$lib" -pthread
    # what a kill leaves must not stay behind the test
    OPSCOPE_SHM=$BATS_TEST_TMPDIR
    export OPSCOPE_SHM
}

steps() { # PATH: how many steps, by CSV
    "$OPSCOPE" steps "$1" --format csv | tail -n +2 | wc -l
}

@test "a program that returns from main closes its profile" {
    ./prog 100 x
    [ "$(ls logs/plugins/profile/r)" = "$(basename logs/plugins/profile/r/*.xplane.pb)" ]
    [ "$(steps logs)" -eq 100 ]
    "$OPSCOPE" info logs > out
    ! grep -q not-closed out
}

@test "after kill -9 every step is there, and the open scope is marked" {
    run ./prog 1000 kill
    [ "$status" -eq 137 ]
    ls logs/plugins/profile/r/*.ring
    [ "$(steps logs)" -eq 1001 ]
    "$OPSCOPE" trace logs --name 'last words' --format csv | grep -q 'last words'
    "$OPSCOPE" info logs | tr '\n' ' ' | grep -q '2 scopes were still open'
    # reading changes nothing
    [ "$(steps logs)" -eq 1001 ]
}

@test "exit() in a scope: its step is open too, and nobody is said to be killed" {
    ./prog 10 exit
    [ "$(steps logs)" -eq 11 ]
    "$OPSCOPE" overview logs > out
    grep -q 'open at the end .*: step > last words' out
    tr '\n' ' ' < out | grep -q '2 scopes were still open'
    ! grep -q 'kill' out
}

@test "any file of it stands for all of it, and it may be moved" {
    run ./prog 1000 kill
    mv logs moved
    [ "$(steps moved)" -eq 1001 ]
    [ "$(steps moved/plugins/profile/r/*.part)" -eq 1001 ]
    [ "$(steps moved/plugins/profile/r/*.ring)" -eq 1001 ]
    cd moved/plugins/profile/r
    [ "$(steps ./*.ring)" -eq 1001 ]
    [ "$(steps "$(ls ./*.part | sed 's|./||')")" -eq 1001 ]
}

@test "memory that is gone is a note, and what was flushed is read" {
    ./prog 500 wait > ready &
    pid=$!
    wait_for test -s ready
    kill -9 $pid
    wait $pid || true
    rm -f opscope-*
    "$OPSCOPE" info logs > out
    tr '\n' ' ' < out | grep -q 'its shared memory is *gone'
    # the last step was open and stood in the memory alone
    [ "$(steps logs)" -eq 499 ]
}

@test "a program that still runs can be looked at" {
    ./prog 500 wait > ready &
    pid=$!
    wait_for test -s ready
    [ "$(steps logs)" -eq 500 ]
    [ "$("$OPSCOPE" counters logs --format csv | tail -n +2 | wc -l)" -eq 1 ]
    kill -9 $pid
    wait $pid || true
}

@test "a step ends with its window, not where the next window begins" {
    cat > windows.c <<'C'
#include <opscope/record.h>
#include <unistd.h>
int main(void) {
    ops_start("logs", &(struct ops_options){.steps = "1,20,21"});
    for (int i = 0; i < 30; i++) {
        ops_step(i);
        OPS_SCOPE("work");
        usleep(2000);
    }
    return 0;
}
C
    $cc -I"$OLDPWD/include" windows.c -o windows \
        "$lib" -pthread
    ./windows
    "$OPSCOPE" steps logs --format csv > out.csv
    # the step is its marker: 18 steps that were not recorded are in none
    python3 - out.csv <<'PY'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
assert [int(r["step"]) for r in rows] == [1, 20, 21], rows
for r in rows:
    assert r["dur_us"] == r["marker_us"], r
PY
}

@test "a program and the workers that it forks are one profile" {
    ! sanitized "$(dirname "$OPSCOPE")" ||
        skip "under sanitizers: forks of a threaded program"
    cat > pool.c <<'C'
#include <opscope/record.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    int p[2];
    char b = 1;
    if (pipe(p) != 0) return 1;
    ops_start("logs", &(struct ops_options){.no_machine = true, .run = "r"});
    for (int c = 0; c < 2; c++) {
        if (fork() != 0) continue;
        for (int i = 0; i < 5; i++) {
            OPS_SCOPE_AS(OPS_KIND_INPUT, "make batch");
            usleep(2000);
            if (write(p[1], &b, 1) != 1) exit(1);
        }
        exit(0);
    }
    for (int i = 0; i < 10; i++) {
        ops_step(i);
        OPS_SCOPE_AS(OPS_KIND_INPUT, "next batch");
        if (read(p[0], &b, 1) != 1) return 1;
    }
    ops_step_end();
    while (wait(NULL) > 0) {}
    return 0;
}
C
    $cc -I"$OLDPWD/include" pool.c -o pool "$lib" -pthread
    ./pool
    [ "$(ls logs/plugins/profile/r/*.xplane.pb | wc -l)" -eq 3 ]
    # the program's steps only, and the workers' work as work behind it
    [ "$(steps logs)" -eq 10 ]
    "$OPSCOPE" input logs --format csv > input.csv
    grep '^make batch,10,' input.csv | grep -q background
    grep -q '^next batch,10,' input.csv
}

@test "what a killed program was in the middle of is said" {
    run ./prog 10 kill
    "$OPSCOPE" overview logs > out
    grep -q '^open at the end  *prog/[0-9]*: step > last words' out
}
