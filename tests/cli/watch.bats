#!/usr/bin/env bats
# opscope watch on the command line.

load common

setup() {
    cd "$BATS_TEST_DIRNAME/../.." || return 1
    OPSCOPE=${OPSCOPE:-build/opscope}
    [ -x "$OPSCOPE" ] || skip "no program at $OPSCOPE"
    T=$(mktemp -d "${BATS_TEST_TMPDIR:-${TMPDIR:-/tmp}}/watch.XXXXXX")
    data=tests/data/tfevents
}

teardown() {
    [ -z "$child" ] || kill "$child" 2>/dev/null || true
}

@test "in a pipe: one line, and another only when something is new" {
    run "$OPSCOPE" watch $data/torch_restart --count 5 --interval 0.05
    [ "$status" -eq 0 ]
    [ "${#lines[@]}" -eq 1 ]
    [[ ${lines[0]} == *"step 23  step time 1000 ms  throughput 1 steps/s  loss -0.1251  lr 0.2" ]]
    [[ $output != *$'\033'* ]]
}

@test "new points are new lines" {
    x=$(ls $data/torch_restart/*.1)
    head -c 800 "$x" > "$T/events.out.tfevents.1"
    mkdir "$T/out"
    "$OPSCOPE" watch "$T" --interval 0.1 --tag loss > "$T/out/lines" 3>&- &
    child=$!
    wait_for test -s "$T/out/lines"
    [ "$(wc -l < "$T/out/lines")" -eq 1 ]
    tail -c +801 "$x" >> "$T/events.out.tfevents.1"
    wait_for grep -q 'step 19 .*loss 0.15' "$T/out/lines"
    kill $child
    child=
    [ "$(wc -l < "$T/out/lines")" -ge 2 ]
    [[ $(tail -n 1 "$T/out/lines") == *"step 19 "*"loss 0.15"* ]]
}

@test "JSON and CSV are the result" {
    run "$OPSCOPE" watch $data/tf2 --count 1 --tag loss --format csv
    [ "$status" -eq 0 ]
    [[ ${lines[0]} == metric,run,step,value,unit,trend* ]]
    [[ ${lines[4]} == loss,.,11,0.377* ]]
    "$OPSCOPE" watch $data/tf2 --count 1 --format json | python3 -m json.tool >/dev/null
}

@test "a process is watched until it ends" {
    printf '' > "$T/events.out.tfevents.1.h.1.0"
    for what in process folder; do
        (exec 9>>"$T/events.out.tfevents.1.h.1.0"; exec sleep 600) 3>&- &
        child=$!
        wait_for test -e "/proc/$child/fd/9"
        [ $what = process ] && target=$child || target=$T
        lines=$BATS_TEST_TMPDIR/lines.$what # none from the watcher before it
        "$OPSCOPE" watch "$target" --interval 0.1 > "$lines" \
            3>&- &
        watcher=$!
        wait_for grep -q 'memory .* MiB' "$lines"
        kill $child
        child=
        wait $watcher # by itself, with status 0
        [[ $(head -n 1 "$lines") == *"memory "*" MiB"* ]]
    done
}

@test "on a terminal it draws over itself, and Ctrl-C ends it with status 0" {
    cat > "$T/terminal.py" <<'END'
import os, pty, sys, time
pid, fd = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    os.execv(sys.argv[1], sys.argv[1:])
out = b""
def more():
    global out
    try:
        out += os.read(fd, 65536)
        return True
    except OSError:
        return False
while out.count(b"\033[J") < 3 and more():
    pass
os.write(fd, b"\3")
while more():
    pass
status = os.waitpid(pid, 0)[1]
print("status", status)
print("draws", out.count(b"\033[J"), "ups", out.count(b"A\r\033[J"))
print("wide", max(len(l.decode(errors="replace")) for l in
                  out.replace(b"\r", b"").split(b"\n")) <= 140)
END
    run timeout 30 python3 "$T/terminal.py" "$OPSCOPE" watch $data --interval 0.1
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = "status 0" ]
    [[ ${lines[1]} =~ ^draws\ ([0-9]+)\ ups\ ([0-9]+)$ ]]
    [ "${BASH_REMATCH[1]}" -eq $((BASH_REMATCH[2] + 1)) ]
    [ "${lines[2]}" = "wide True" ]
}

@test "wrong words are refused in one line" {
    for args in "" "a b" "nothing-there" "999999999" \
        "$data --interval 0" "$data --count 0"; do
        run "$OPSCOPE" watch $args
        [ "$status" -eq 1 ] || [ "$status" -eq 2 ]
        [ "${#lines[@]}" -eq 1 ]
    done
}
