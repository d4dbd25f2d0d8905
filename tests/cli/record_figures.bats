#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# opscope record: what is written must be what independent sources say.

load record

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
r, w = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        os.write(w, b"%d" % os.getpid())
        time.sleep(0.2)
        os._exit(23)
    os._exit(0)
os.wait()
orphan = int(os.read(r, 20))
while os.path.exists("/proc/%d" % orphan): time.sleep(0.02)'
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
