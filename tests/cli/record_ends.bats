#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# opscope record: the program must not notice it: its status, its options, the
# signals that it gets, the terminal.

load record

@test "record: the program's exit status is ours, 0 to 255" {
    for n in 0 1 2 3 4 42 125 126 127 128 254 255; do
        run -"$n" rec -q -- sh -c "exit $n"
        [ -z "$output" ]
    done
}

@test "record: a program killed by a signal gives 128 + n, and a line" {
    for s in TERM:15 SEGV:11 ABRT:6 KILL:9; do
        run rec --no-overview -- sh -c "ulimit -c 0; kill -${s%:*} \$\$"
        [ "$status" -eq $((128 + ${s#*:})) ]
        [[ $output == *"sh was killed by signal ${s#*:} ("* ]]
    done
    run rec -q -- sh -c 'kill -KILL $$'
    [ "$status" -eq 137 ]
    [ -z "$output" ]
}

@test "record: a program that is not there is 127, one that cannot run 126" {
    run -127 rec -- no-such-program-here
    [ "$output" = "opscope: no-such-program-here: cannot be run: command not found" ]
    run -127 rec -- ./missing/program
    echo 'not executable' > plain
    run rec -- ./plain
    [ "$status" -eq 126 ]
    [[ $output == "opscope: ./plain: cannot be run: "* ]]
    mkdir folder
    run rec -- ./folder
    [ "$status" -eq 126 ]
    printf '#!/no/such/interpreter\n' > script
    chmod +x script
    run rec -- ./script
    [ "$status" -eq 126 ]
    [[ $output == *"its interpreter is missing"* ]]
    # a folder of PATH that may not be looked into changes nothing
    PATH=/proc/1/cwd:$PATH run -127 rec -- no-such-program-here
    # and leaves nothing behind
    [ ! -e "$dir/logs" ]
}

@test "record: wrong usage is told before anything runs" {
    run "$OPSCOPE" record
    [ "$status" -eq 1 ]
    [[ $output == *"record takes a program"* ]]
    run rec --no-such-option -- touch made
    [ "$status" -eq 1 ]
    run rec --run a/b -- touch made
    [ "$status" -eq 1 ]
    run rec --run .. -- touch made
    [ "$status" -eq 1 ]
    [ ! -e made ]
}

@test "record: the program's own options are not ours to read" {
    run rec -q echo --steps 3 -q -- x --help
    [ "$status" -eq 0 ]
    [ "$output" = "--steps 3 -q -- x --help" ]
    run rec -q -- echo -- -v
    [ "$output" = "-- -v" ]
    # argv ends where it should
    run rec -q -- sh -c 'echo "$# $0"' zero one two
    [ "$output" = "2 zero" ]
}

@test "record: signals that are sent to record alone reach the program" {
    cat > trap.py <<'PY'
import os, signal, sys, time
def on(sig, frame):
    os.write(1, signal.Signals(sig).name.encode() + b"\n")
    if sig == signal.SIGTERM: sys.exit(33)
for s in ("SIGHUP", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGTERM"):
    signal.signal(getattr(signal, s), on)
os.write(1, b"ready\n")
while True: time.sleep(0.05)
PY
    # a group of its own for record and the program, signals to record's pid
    run $py - "$OPSCOPE" <<'PY'
import os, signal, subprocess, sys
signal.alarm(60)
p = subprocess.Popen([sys.argv[1], "record", "-q", "-o", "logs", "--",
                      "/usr/bin/python3", "trap.py"], stdout=subprocess.PIPE,
                     text=True, start_new_session=True, preexec_fn=lambda: [
                         signal.signal(s, signal.SIG_DFL) # ours may be ignored
                         for s in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)])
assert p.stdout.readline() == "ready\n"
for s in ("SIGHUP", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGTERM"):
    os.kill(p.pid, getattr(signal, s))
    line = p.stdout.readline()
    assert line == s + "\n", (s, line)
assert p.stdout.read() == ""   # each of them once
assert p.wait() == 33, p.returncode
PY
    echo "$output"
    [ "$status" -eq 0 ]
}

# opscope record ARGS on a terminal of its own, where Ctrl-C is pressed as soon
# as the program has said "ready". Prints what the terminal showed; the exit
# status is that of opscope record.
rec_interrupted() {
    $py - "$OPSCOPE" record -o "$dir/logs" "$@" <<'PY'
import os, pty, signal, sys
signal.alarm(60)   # a byte that never comes must not hang the tests
pid, fd = pty.fork()
if pid == 0:
    signal.signal(signal.SIGINT, signal.SIG_DFL) # ours may be ignored
    os.execv(sys.argv[1], sys.argv[1:])
out = b""
while b"ready" not in out: out += os.read(fd, 4096)
os.write(fd, b"\x03")
try:
    while True:
        b = os.read(fd, 4096)
        if not b: break
        out += b
except OSError: pass
_, status = os.waitpid(pid, 0)
print(out.decode())
sys.exit(os.waitstatus_to_exitcode(status))
PY
}

@test "record: Ctrl-C reaches the program once, and record goes on" {
    cat > once.py <<'PY'
import signal, sys, time
n = 0
def on(sig, frame):
    global n
    n += 1
signal.signal(signal.SIGINT, on)
print("ready", flush=True)
t = time.time()
while n == 0 and time.time() - t < 20: time.sleep(0.02)
time.sleep(0.3)          # a second one would come now
print("got", n, flush=True)
sys.exit(40 + n)
PY
    run -41 rec_interrupted -- $py once.py
    [[ $output == *"got 1"* ]]
    [[ $output == *Overview* ]]
    [[ $output == *"recorded in"* ]]
}

@test "record: Ctrl-C ends a program that does not mind it, and is told" {
    run -130 rec_interrupted --no-overview -- sh -c "echo ready; sleep 30"
    [[ $output == *"killed by signal 2"* ]]
}

@test "record: the program reads the terminal, and stops with us on Ctrl-Z" {
    run $py - "$OPSCOPE" <<'PY'
import os, pty, signal, sys, time
signal.alarm(60)   # a byte that never comes must not hang the tests
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], [sys.argv[1], "record", "-q", "-o", "logs", "--",
                           "sh", "-c", 'test -t 0 && test -t 1 && test -t 2 && '
                           'echo terminal; read x; echo "read $x"; read y; '
                           'echo "then $y"'])
def until(word):
    out = b""
    while word not in out: out += os.read(fd, 4096)
until(b"terminal")
os.write(fd, b"one\n")
until(b"read one")
# no shell is there to give job control, so a stop is sent to the group
os.killpg(pid, 19)
_, status = os.waitpid(pid, os.WUNTRACED)
assert os.WIFSTOPPED(status)
os.killpg(pid, 18)
os.write(fd, b"two\n")
until(b"then two")
_, status = os.waitpid(pid, 0)
assert os.waitstatus_to_exitcode(status) == 0
PY
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "record: masks and dispositions of signals are what they were" {
    cat > look.py <<'PY'
import re
s = open("/proc/self/status").read()
for k in ("SigBlk", "SigIgn", "SigPnd", "ShdPnd"):
    print(k, re.search(k + r":\s*(\w+)", s).group(1))
PY
    # Python itself ignores SIGPIPE and SIGXFSZ: sh looks instead
    cat > look.sh <<'SH'
while read -r k v; do case $k in Sig[BI]*|S*Pnd:) echo "$k $v";; esac; done < /proc/$$/status
SH
    cat > by.py <<'PY'
import os, signal, subprocess, sys
how, cmd = sys.argv[1], sys.argv[2:]
def pre():
    for s in (signal.SIGPIPE, signal.SIGXFSZ): signal.signal(s, signal.SIG_DFL)
    if how == "odd":
        for s in (signal.SIGPIPE, signal.SIGCHLD, signal.SIGHUP,
                  signal.SIGINT): signal.signal(s, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1,
                                                  signal.SIGTERM])
p = subprocess.run(cmd, preexec_fn=pre, restore_signals=False)
sys.exit(p.returncode)
PY
    for how in plain odd; do
        $py by.py $how sh look.sh > want
        run $py by.py $how "$OPSCOPE" record -q -o logs -- sh look.sh
        [ "$status" -eq 0 ]
        [ "$output" = "$(cat want)" ]
    done
    grep -q 'SigIgn: 0*[1-9a-f]' want
}
