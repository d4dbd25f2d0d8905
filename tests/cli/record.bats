#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# opscope record: the program must not notice it (status, output, signals,
# terminal), and what is written must be what independent sources say.

bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_DIRNAME/../.." || return 1
    OPSCOPE=$(realpath "${OPSCOPE:-build/opscope}")
    [ -x "$OPSCOPE" ] || skip "no program at $OPSCOPE"
    py=/usr/bin/python3
    dir=$BATS_TEST_TMPDIR
    cd "$dir" || return 1
    unset OPSCOPE_LOGDIR
}

rec() { "$OPSCOPE" record -o "$dir/logs" "$@"; }

# The only run's folder.
run_dir() {
    local d=("$dir"/logs/plugins/profile/*)
    [ "${#d[@]}" -eq 1 ]
    echo "${d[0]}"
}

# VALUE of COLUMN of the process called NAME.
figure() {
    "$OPSCOPE" processes "$dir/logs" --format json "${@:3}" | $py -c '
import json, sys
r = json.load(sys.stdin)
c = [x["name"] for x in r["columns"]]
rows = [dict(zip(c, row)) for row in r["rows"]]
print(*[row[sys.argv[2]] for row in rows if row["name"] == sys.argv[1]])
' "$1" "$2"
}

# --- status and signals --------------------------------------------------------

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
                     text=True, start_new_session=True)
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

@test "record: Ctrl-C and Ctrl-\\ reach the program once, and record goes on" {
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
    run $py - "$OPSCOPE" <<'PY'
import os, pty, signal, sys, time
signal.alarm(60)   # a byte that never comes must not hang the tests
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], [sys.argv[1], "record", "-o", "logs", "--",
                           "/usr/bin/python3", "once.py"])
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
assert os.waitstatus_to_exitcode(status) == 41, status
assert b"got 1" in out and b"Overview" in out and b"recorded in" in out
PY
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "record: Ctrl-C ends a program that does not mind it, and is told" {
    run $py - "$OPSCOPE" <<'PY'
import os, pty, signal, sys, time
signal.alarm(60)   # a byte that never comes must not hang the tests
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], [sys.argv[1], "record", "--no-overview", "-o",
                           "logs", "--", "sh", "-c", "echo ready; sleep 30"])
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
assert os.waitstatus_to_exitcode(status) == 130, status
assert b"killed by signal 2" in out, out
PY
    echo "$output"
    [ "$status" -eq 0 ]
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

# --- output and descriptors ------------------------------------------------------

@test "record: stdin and stdout are the program's, ours goes to stderr" {
    $py -c 'import os,sys; sys.stdout.buffer.write(os.urandom(3000000))' > in
    rec -- cat < in > out 2> err
    cmp in out
    grep -q Overview err
    grep -q "recorded in $dir/logs/plugins/profile/" err
    # in a pipe, with a reader that leaves
    run bash -o pipefail -c '"$0" record -q -o logs -- yes | head -n 2' "$OPSCOPE"
    [ "$status" -eq 141 ]
    [ "$output" = $'y\ny' ]
}

@test "record: the program's output is whole when it is huge" {
    rec -q -- $py -c '
import sys
for i in range(400000): print("line", i)
print("end", file=sys.stderr)' > out 2> err
    [ "$(wc -l < out)" -eq 400000 ]
    [ "$(cat err)" = end ]
}

@test "record: closed descriptors stay closed, and ours are not inherited" {
    cat > fds.sh <<'SH'
for i in 0 1 2 3 4 5 6 7 8 9 10 11 12; do
    [ -e /proc/$$/fd/$i ] && printf '%s ' $i >> seen
done
true
SH
    for close in '' '<&-' '>&-' '2>&-' '<&- >&- 2>&-'; do
        : > seen
        eval "sh ./fds.sh $close"
        mv seen want
        : > seen
        eval "rec -q -- sh ./fds.sh $close"
        # sh holds its script open, at the same number in both
        [ "$(cat seen)" = "$(cat want)" ]
    done
    # the overview goes nowhere rather than into a file
    run bash -c '"$0" record -o logs -- true 2>&-' "$OPSCOPE"
    [ "$status" -eq 0 ]
    for f in logs/plugins/profile/*/*_record*.xplane.pb; do
        "$OPSCOPE" info "$f" > /dev/null
    done
}

@test "record: a shell pipeline, and a job in the background" {
    run rec -q -- sh -c 'seq 100 | grep 7 | wc -l'
    [ "$status" -eq 0 ]
    [ "$output" -eq 19 ]
    rec -q -- sh -c 'exit 5' < /dev/null &
    wait $! && false || [ $? -eq 5 ]
}

# --- folders -----------------------------------------------------------------------

@test "record: the environment that the recorder is set up by" {
    run rec -q --steps 'every 50' --flight --host node7 --run first -- \
        sh -c 'env | grep ^OPSCOPE | grep -v ^OPSCOPE_LAUNCH= | sort'
    [ "$output" = "OPSCOPE=1
OPSCOPE_FLIGHT=1
OPSCOPE_HOST=node7
OPSCOPE_LOGDIR=$dir/logs
OPSCOPE_RUN=first
OPSCOPE_STEPS=every 50" ] || [ "$(grep -vc '^OPSCOPE=/' <<< "$output")" -eq 6 ]
    [ -f "$dir/logs/plugins/profile/first/node7_record.xplane.pb" ]
    run env -u OPSCOPE OPSCOPE_RUN=old "$OPSCOPE" record -q -o logs -- \
        sh -c 'echo "${OPSCOPE_STEPS-none} ${OPSCOPE_FLIGHT-none} ${OPSCOPE_HOST-none}"; [ "$OPSCOPE_RUN" != old ]'
    [ "$status" -eq 0 ]
    [ "$output" = "none none none" ]
}

@test "record: the default folder, and the one that the environment names" {
    "$OPSCOPE" record -q -- true
    [ -d opscope-logs/plugins/profile ]
    OPSCOPE_LOGDIR=$dir/env "$OPSCOPE" record -q -- true
    [ -d env/plugins/profile ]
}

@test "record: eight at the same moment into one folder, none overwritten" {
    for i in 1 2 3 4 5 6 7 8; do rec -q -- sh -c "exit $i" & done
    for j in $(jobs -p); do wait "$j" || true; done
    [ "$(ls logs/plugins/profile | wc -l)" -eq 8 ]
    for d in logs/plugins/profile/*; do
        [ "$(ls "$d" | wc -l)" -eq 1 ]
    done
    # and the same run on purpose: the ranks of one host
    for i in 1 2 3; do rec -q --run job -- sh -c "exit $i" & done
    for j in $(jobs -p); do wait "$j" || true; done
    [ "$(ls logs/plugins/profile/job | wc -l)" -eq 3 ]
}

@test "record: the newest of two runs of one second is the second" {
    rec -q -- true
    d=$(run_dir)
    cp -r "$d" "${d}_2"
    cp -r "$d" "${d}_10"
    run "$OPSCOPE" info logs
    [[ $output == *"$(basename "$d")_10/"* ]]
}

@test "record: a folder that cannot be written stops it before the program" {
    echo file > occupied
    run "$OPSCOPE" record -o occupied/logs -- touch made
    [ "$status" -eq 2 ]
    [ ! -e made ]
    run "$OPSCOPE" record -o occupied -- touch made
    [ "$status" -eq 2 ]
    run "$OPSCOPE" record -o /proc/no -- touch made
    [ "$status" -eq 2 ]
    [ ! -e made ]
}

@test "record: a read-only folder stops it before the program" {
    [ "$(id -u)" -ne 0 ] || skip "root may write into a read-only folder"
    mkdir -m 555 locked
    run "$OPSCOPE" record -o locked -- touch made
    [ "$status" -eq 2 ]
    [ ! -e made ]
}

@test "record: a folder that goes away while the program runs" {
    run rec -- sh -c 'rm -rf logs; exit 9'
    [ "$status" -eq 9 ]
    [[ $output == *"cannot be written"* ]]
}

@test "record: a full file system costs the profile, not the program" {
    [ "$(id -u)" -eq 0 ] || skip "needs root for a small tmpfs"
    mkdir full
    mount -t tmpfs -o size=64k none full 2> /dev/null || skip "no mount here"
    run "$OPSCOPE" record -o full -- sh -c \
        'dd if=/dev/zero of=full/fill bs=1k count=200 2> /dev/null; echo out; exit 6'
    umount full
    [ "$status" -eq 6 ]
    [[ $output == *out* ]]
    [[ $output == *"No space left on device"* ]]
}

# --- what was seen ----------------------------------------------------------------

@test "record: CPU time, faults and peak memory are what the kernel says" {
    cat > work.py <<'PY'
import resource, sys, time
keep = bytearray(60 << 20)
for i in range(0, len(keep), 4096): keep[i] = 1
t = time.process_time()
while time.process_time() - t < 0.6: pass
u = resource.getrusage(resource.RUSAGE_SELF)
print(u.ru_utime + u.ru_stime, u.ru_minflt + u.ru_majflt, u.ru_maxrss * 1024)
PY
    rec -q -- $py work.py > own
    read -r cpu faults rss < own
    $py - "$cpu" "$faults" "$rss" "$(figure python3 cpu_us)" \
        "$(figure python3 page_faults)" "$(figure python3 peak_rss_bytes)" \
        "$(figure python3 exact)" "$(figure python3 end)" <<'PY'
import sys
a = sys.argv
cpu, faults, rss = float(a[1]), int(a[2]), int(a[3])
assert a[7] == "True" and a[8] == "exit 0", a
# the program still has to end after it looked at itself; the kernel's figures
# of a living process lag by some pages
assert cpu <= float(a[4]) / 1e6 < cpu + 0.2, a
assert faults <= int(a[5]) < faults + 2000, a
assert abs(int(a[6]) - rss) <= 4 << 20, a
PY
}

@test "record: user and system time agree with the shell's own" {
    cat > mix.sh <<'SH'
i=0; while [ $i -lt 60000 ]; do i=$((i + 1)); done
dd if=/dev/zero of=/dev/null bs=1k count=200000 2> /dev/null
SH
    "$OPSCOPE" record -q -o logs -- bash -c \
        'TIMEFORMAT="%U %S"; time sh ./mix.sh' 2> times
    $py - "$(cat times)" "$("$OPSCOPE" overview logs --format json)" <<'PY'
import json, sys
user, sys_ = map(float, sys.argv[1].split())
r = json.loads(sys.argv[2])
cpu = [row[1] for row in r["rows"] if row[0] == "CPU time"][0] / 1e6
assert user + sys_ <= cpu + 0.002 and cpu < user + sys_ + 0.1, (user, sys_, cpu)
PY
}

@test "record: threads are seen, with names and CPU times that add up" {
    cat > threads.py <<'PY'
import ctypes, threading, time
libc = ctypes.CDLL(None)
def work(name, spin):
    libc.prctl(15, name.encode(), 0, 0, 0)
    t = time.thread_time()
    while time.thread_time() - t < spin: pass
    time.sleep(0.5)
v = [threading.Thread(target=work, args=("loader", 0.3)),
     threading.Thread(target=work, args=("idler", 0))]
for t in v: t.start()
for t in v: t.join()
PY
    rec -q -- $py threads.py
    loader=$(figure loader cpu_us --by thread)
    idler=$(figure idler cpu_us --by thread)
    all=$(figure python3 cpu_us)
    $py -c '
import sys
loader, idler, all = map(float, sys.argv[1:])
assert 0.3e6 <= loader < 0.4e6, loader
assert idler < 0.05e6, idler
assert loader + idler <= all, all' "$loader" "$idler" "$all"
    [ "$(figure python3 threads)" -eq 3 ]
}

@test "record: 200 children and 60 threads, no descendant's time is lost" {
    cat > many.py <<'PY'
import os, resource, sys, threading, time
gate = threading.Event()
wait, go = os.pipe()
v = [threading.Thread(target=gate.wait) for _ in range(60)]
for t in v: t.start()
pids = []
for i in range(200):
    pid = os.fork()
    if pid == 0:
        t = time.process_time()
        while time.process_time() - t < 0.002: pass
        os.read(wait, 1)
        os._exit(i % 7)
    pids.append(pid)
time.sleep(3)    # a look at 261 threads costs a sanitizer's build 5 ms and more
os.write(go, b"x" * 200)
for i, p in enumerate(pids):
    assert os.waitstatus_to_exitcode(os.waitpid(p, 0)[1]) == i % 7
gate.set()
for t in v: t.join()
a, b = (resource.getrusage(k) for k in (resource.RUSAGE_SELF,
                                        resource.RUSAGE_CHILDREN))
print(a.ru_utime + a.ru_stime + b.ru_utime + b.ru_stime)
PY
    rec -q -- $py many.py > own
    "$OPSCOPE" processes logs --format json > got.json
    "$OPSCOPE" overview logs --format json > over.json
    $py - <<'PY'
import json
own = float(open("own").read())
over = json.load(open("over.json"))
cpu = [row[1] for row in over["rows"] if row[0] == "CPU time"][0] / 1e6
assert own <= cpu + 0.001 < own + 0.3, (own, cpu)
r = json.load(open("got.json"))
c = [x["name"] for x in r["columns"]]
rows = [dict(zip(c, row)) for row in r["rows"]]
assert len(rows) == 201, len(rows)     # all of them lived for seconds
first = min(rows, key=lambda x: x["start_us"])
assert first["threads"] == 61, first
parents = {x["parent"] for x in rows if x is not first}
assert parents == {first["pid"]}, (parents, first)
assert sum(x["cpu_us"] for x in rows) <= cpu * 1e6 + 1000
assert all(x["start_us"] >= 0 and x["dur_us"] <= first["dur_us"]
           for x in rows)
PY
}

@test "record: an orphan comes back to us, with its status" {
    # the parent of the second sleep is gone when it ends
    rec -q -- sh -c '(sleep 0.2; exit 3) & sleep 0.6'
    ends=$(figure sh end)
    [ "$ends" = "exit 0 None" ] || [ "$ends" = "None exit 0" ]
    rm -rf logs
    rec -q -- $py -c '
import os, time
if os.fork() == 0:
    if os.fork() == 0:
        time.sleep(0.2)
        os._exit(23)
    os._exit(0)
os.wait()
time.sleep(0.6)'
    figure python3 end | grep -q 'exit 23'
}

@test "record: a daemon that outlives the program is not waited for" {
    start=$SECONDS
    run rec -- sh -c 'setsid tail -f /dev/null > /dev/null 2>&1 < /dev/null & echo $! > pid; sleep 0.1; exit 4'
    [ "$status" -eq 4 ]
    [[ $output == *"1 process of the program still runs"* ]]
    [ $((SECONDS - start)) -lt 30 ]
    kill -0 "$(cat pid)"
    kill "$(cat pid)"
    [ "$(figure tail end)" = alive ]
}

@test "record: what the profile says is protobuf, read by another reader" {
    rec -q -- sh -c 'sleep 0.2; true'
    f=$(run_dir)/*_record.xplane.pb
    $py - $f <<'PY'
import struct, sys
def varint(b, i):
    v = s = 0
    while True:
        v |= (b[i] & 127) << s
        s += 7
        i += 1
        if b[i - 1] < 128: return v, i
def fields(b):
    i, out = 0, []
    while i < len(b):
        k, i = varint(b, i)
        if k & 7 == 0: v, i = varint(b, i)
        elif k & 7 == 1: v, i = struct.unpack("<d", b[i:i + 8])[0], i + 8
        elif k & 7 == 2:
            n, i = varint(b, i)
            v, i = b[i:i + n], i + n
            assert len(v) == n
        else: raise SystemExit(f"wire type {k & 7}")
        out.append((k >> 3, v))
    return out
def one(b, n): return [v for k, v in fields(b) if k == n][0]
planes = [v for k, v in fields(open(sys.argv[1], "rb").read()) if k == 1]
assert [one(p, 2) for p in planes] == [b"/host:CPU", b"Task Environment"]
def names(p, n): return {one(e, 1): one(one(e, 2), 2)
                         for k, e in fields(p) if k == n}
stats, events = names(planes[0], 5), names(planes[0], 4)
def facts(b, n, table):
    out = {}
    for k, s in fields(b):
        if k != n: continue
        (_, key), (_, v) = fields(s)
        out[table[key].decode()] = v
    return out
f = facts(planes[0], 6, stats)
assert f["opscope_view"] == b"processes" and f["argv"] == b"sh -c sleep 0.2; true"
lines = [v for k, v in fields(planes[0]) if k == 3]
seen = {}
for l in lines:
    for k, e in fields(l):
        if k != 4: continue
        name = events[one(e, 1)].decode()
        seen.setdefault(name, []).append((dict(fields(e)), facts(e, 4, stats),
                                          one(l, 3)))
(ev, st, base), = seen["sh"]
assert base == 0 and st["exit_status"] == 0 and st["exact"] == 1
assert ev[3] == f["run_ns"] * 1000 >= 200_000_000_000
(ev, st, base), = seen["sleep"]
assert st["ppid"] == f["process_id"] and ev[3] >= 100_000_000_000
assert 0 <= base < f["run_ns"]
assert all(e[2] <= f["run_ns"] * 1000 + 10**12
           for e, _, _ in seen["rss_bytes"])
assert len(seen["rss_bytes"]) >= 2
t = facts(planes[1], 6, names(planes[1], 5))
assert t["profile_start_time"] == f["start_unix_ns"]
assert t["profile_stop_time"] >= f["start_unix_ns"] + f["run_ns"]
PY
}

@test "record: with no recorder in the program it says what would help" {
    run rec -- true
    [ "$status" -eq 0 ]
    [[ $output == *"no process of the program recorded anything itself"* ]]
    [[ $output == *"<opscope/record.h>"*"-lopscope-record"* ]]
    run rec --no-overview -- true
    [[ $output == "opscope: recorded in "* ]]
    [ "${#lines[@]}" -eq 1 ]
}

@test "record: names and arguments that are no text do no harm" {
    printf '#!/bin/sh\nsleep 0.1\n' > $'od\xff)d (\n'
    chmod +x $'od\xff)d (\n'
    rec -q -- ./$'od\xff)d (\n' $'\x01\xfe' $'two\nlines'
    "$OPSCOPE" processes logs --format json | $py -c '
import json, sys
r = json.loads(sys.stdin.buffer.read().decode("utf-8"))
assert len(r["rows"]) == 2, r["rows"]'
}

# --- programs that record -----------------------------------------------------

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
import os, pty, signal, sys
signal.alarm(60)
pid, fd = pty.fork()
if pid == 0:
    os.environ["HISTFILE"] = "/dev/null"
    os.execv(sys.argv[1], [sys.argv[1], "record", "--no-overview", "-o", "logs",
                           "--", "bash", "--norc", "--noprofile", "-i"])
out = b""
def until(word):
    global out
    while word not in out: out += os.read(fd, 4096)
os.write(fd, b"sh -c 'echo g''o; exec sleep 60'\n")
until(b"go\r\n")
os.write(fd, b"\x03")               # ends sleep, neither bash nor us
os.write(fd, b"echo still $((40 + 2)); exit 6\n")
until(b"still 42")
until(b"recorded in")
_, status = os.waitpid(pid, 0)
assert os.waitstatus_to_exitcode(status) == 6, status
PY
    echo "$output"
    [ "$status" -eq 0 ]
}
