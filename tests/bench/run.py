#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures opscope and writes docs/performance.md.

Every speed is told beside a yardstick measured in the same run (tests/bench/
yard.c): the ratio is what can be compared between machines. Two things are
asserted on any machine: growth is linear, and two threads give bit for bit
what one gives."""

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import time

import rec

MB = 1e6


def find_data(*words):
    """The first real profile in tests/data whose path has all these words."""
    for folder, _, names in sorted(os.walk("tests/data")):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if all(w in path for w in words):
                return path
    sys.exit("bench: tests/data has nothing with " + " and ".join(words))


def cpu():
    model = "unknown processor"
    with open("/proc/cpuinfo") as f:
        for line in f:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    with open("/proc/meminfo") as f:
        gib = int(f.readline().split()[1]) / 2**20
    cores = len(os.sched_getaffinity(0))
    return f"{model}, {cores} cores, {gib:.0f} GiB"


class Failed(Exception):
    """A measured program failed: the work has no number."""


class Bench:
    def __init__(self, args):
        self.args = args
        self.build = args.build
        self.dir = os.environ.get("OPSCOPE_BENCH_DIR") or os.path.join(
            args.build, "bench", "files")
        os.makedirs(self.dir, exist_ok=True)
        self.times = 3 if args.quick else 5
        self.big = "100M" if args.quick else "1G"
        self.tenth = "10M" if args.quick else "100M"
        self.rows = []
        self.failed = []
        self.cnn = find_data("torch_cnn", ".pt.trace.json")
        self.jax = find_data("jax_mlp", ".xplane.pb")

    def file(self, kind, size):
        """A grown file, made once and kept."""
        path = os.path.join(self.dir, f"{kind}-{size}")
        source = self.cnn if kind == "kineto" else self.jax
        if not os.path.exists(path):
            grow = os.path.join(self.build, "bench", "grow")
            subprocess.run([grow, kind, source, path + ".new", size],
                           check=True)
            os.rename(path + ".new", path)
        with open(path, "rb") as f:  # into the page cache
            while f.read(1 << 24):
                pass
        return path

    def torch_big(self):
        """172 MB of PyTorch JSON, plain and gz: a real one if given."""
        plain = os.path.join(self.dir, "torch-172M.json")
        packed = plain + ".gz"
        given = os.environ.get("OPSCOPE_BENCH_TORCH_BIG")
        if given:
            plain = os.path.join(self.dir, "torch-real.json")
            packed = plain + ".gz"
            opener = gzip.open if given.endswith(".gz") else open
            if not os.path.exists(plain):
                with opener(given, "rb") as i, open(plain, "wb") as o:
                    shutil.copyfileobj(i, o, 1 << 22)
            if given.endswith(".gz") and not os.path.exists(packed):
                shutil.copyfile(given, packed)
        elif not os.path.exists(plain):
            os.rename(self.file("kineto", "172M"), plain)
        if not os.path.exists(packed):
            with open(packed + ".new", "wb") as o:
                subprocess.run(["gzip", "-6", "-c", plain], stdout=o,
                               check=True)
            os.rename(packed + ".new", packed)
        return plain, packed

    def measure(self, work, path, times=None):
        out = subprocess.run(
            [os.path.join(self.build, "bench", "bench"), work, path,
             str(times or self.times)], stdout=subprocess.PIPE)
        if out.returncode != 0:
            raise Failed(f"bench {work} {path}: status {out.returncode}")
        return json.loads(out.stdout)

    def command(self, *words, times=None):
        """A whole command in a process of its own: best, median, peak RSS."""
        argv = [os.path.join(self.build, "opscope"), *words]
        seconds, cpu_s, rss = [], [], 0
        null = os.open("/dev/null", os.O_WRONLY)
        for _ in range(times or self.times):
            start = time.perf_counter()
            pid = os.posix_spawn(argv[0], argv, os.environ,
                                 file_actions=[(os.POSIX_SPAWN_DUP2, null, 1)])
            _, status, usage = os.wait4(pid, 0)
            seconds.append(time.perf_counter() - start)
            cpu_s.append(usage.ru_utime + usage.ru_stime)
            rss = max(rss, usage.ru_maxrss * 1024)
            if status != 0:
                os.close(null)
                raise Failed(f"{' '.join(argv)}: status {status}")
            if sum(seconds) > 15:
                break
        os.close(null)
        seconds.sort()
        return {"best": seconds[0], "median": seconds[len(seconds) // 2],
                "cpu": min(cpu_s), "rss": rss}

    def row(self, work, goal, got, ok, yard, peers=""):
        reached = ("yes" if ok else "**no**") if goal else ""
        self.rows.append((work, goal, got, reached, yard, peers))
        print(f"{work:<46} {goal:>12} {got:>24} {'' if ok else 'MISSED':>7}"
              f"  {yard}", flush=True)

    def require(self, true, sentence):
        if not true:
            self.failed.append(sentence)
            print("FAILED: " + sentence, flush=True)


def rate(m):
    return m["bytes"] / m["best"] / MB


def speed_row(b, work, goal, m, yard, what, peers=""):
    """Speed against the goal; CPU seconds tell a busy machine from slow code.
    """
    times = (m["best"] / m["bytes"]) / (yard["best"] / yard["bytes"])
    cpu_s = f", {m['cpu']:.2f} s of CPU" if m["cpu"] else ""
    b.row(work, f"{goal} MB/s", f"{rate(m):.0f} MB/s", rate(m) >= goal,
          f"{times:.2f} x {what} ({rate(yard):.0f}){cpu_s}", peers)


def same(b, one, two, path):
    b.require(one["check"] == two["check"],
              f"{os.path.basename(path)}: two threads gave another trace")


def do_kineto(b):
    path = b.file("kineto", b.big)
    one, two = b.measure("import1", path), b.measure("import2", path)
    same(b, one, two, path)
    speed_row(b, f"Kineto JSON {b.big} to sealed trace, 1 thread", 800, one,
              b.measure("scan1", path), "bare scanner",
              "rapidjson SAX 478, Perfetto 65 MB/s")
    speed_row(b, "the same, 2 threads", 1300, two, b.measure("scan2", path),
              "bare scanner on 2")
    memory(b, "Kineto", one)
    return two


def do_gz(b):
    _, packed = b.torch_big()
    m = b.measure("import2", packed)
    speed_row(b, "Kineto JSON 172 MB, gz, to sealed trace", 700, m,
              b.measure("inflate", packed), "isa-l alone",
              "Perfetto 51 MB/s")


def do_xspace(b):
    path = b.file("xspace", b.big)
    one, two = b.measure("import1", path), b.measure("import2", path)
    same(b, one, two, path)
    yard = b.measure("walk", path)
    speed_row(b, f"XSpace {b.big} to sealed trace, 1 thread", 400, one, yard,
              "bare walk", "protobuf C++ arena 66 MB/s")
    speed_row(b, "the same, 2 threads", 600, two, yard, "bare walk on 1")
    events = two["events"] / two["best"] / 1e6
    b.row("the same, events", "8 M/s", f"{events:.1f} M/s", events >= 8, "")
    memory(b, "XSpace", one)
    return two


def memory(b, what, m):
    each = m["private"] / max(1, m["events"])
    b.row(f"private memory after import, {what}", "48 B/event",
          f"{each:.1f} B/event", 0 <= each <= 48,
          f"{m['events']} events, {m['spans']} spans",
          "Perfetto 672, XProf 980")


def do_ops(b):
    m = b.measure("ops", b.file("kineto", b.big))
    ms = m["best"] * 1e3 * 1.8e6 / max(1, m["spans"])
    b.row("`ops` with self time, per 1.8 M spans", "100 ms", f"{ms:.0f} ms",
          ms <= 100, f"{m['spans']} spans", "Perfetto 7.5 s")


def command_row(b, work, goal, m, yard="", peers=""):
    b.row(work, f"{goal * 1e3:g} ms",
          f"{m['best'] * 1e3:.1f} ms (med {m['median'] * 1e3:.1f})",
          m["best"] <= goal, yard, peers)


def do_overview(b):
    part = 0.1 if b.args.quick else 1.0
    json_, space = b.file("kineto", b.big), b.file("xspace", b.big)
    m = b.command("overview", json_)
    command_row(b, f"`opscope overview`, {b.big} JSON, whole process",
                1.5 * part, m, ratio(m, b.measure("scan1", json_),
                                     "bare scanner"), "Perfetto 15.8 s")
    m = b.command("overview", space)
    command_row(b, f"`opscope overview`, {b.big} XSpace, whole process",
                1.7 * part, m, ratio(m, b.measure("walk", space),
                                     "bare walk"), "XProf 41 s, 12.3 GB")


def ratio(m, yard, what):
    return f"{m['best'] / yard['best']:.1f} x {what}, " \
           f"{m['cpu']:.2f} s of CPU, peak {m['rss'] / 2**20:.0f} MiB"


def do_torch(b):
    plain, _ = b.torch_big()
    m = b.command("ops", plain)
    command_row(b, "`opscope ops`, 172 MB torch JSON, whole process", 0.32, m,
                ratio(m, b.measure("scan1", plain), "bare scanner"),
                "HTA 24.6 s, torch-tb-profiler 23.6 s")
    if b.args.quick:
        return
    start = time.perf_counter()
    with open(plain, "rb") as f:
        json.load(f)
    took = time.perf_counter() - start
    b.row("the same file, Python's json.load (peer)", "", f"{took:.2f} s",
          True, f"{took / m['best']:.0f} x opscope ops")


def do_small(b):
    m = b.command("ops", b.cnn, times=max(10, b.times))
    kb = os.path.getsize(b.cnn) / 1e3
    command_row(b, f"`opscope ops`, small profile ({kb:.0f} KB gz)", 0.03, m)


def do_growth(b):
    for kind in ("kineto", "xspace"):
        small = b.measure("import1", b.file(kind, b.tenth), b.times * 2)
        large = b.measure("import1", b.file(kind, b.big))
        size = large["bytes"] / small["bytes"]
        times = large["cpu"] / small["cpu"] / size  # a busy machine is no fault
        mem = large["private"] / max(1, small["private"]) / size
        b.row(f"growth, {kind}, {b.tenth} to {b.big}", "1.0 x size",
              f"CPU {times:.2f}, memory {mem:.2f}",
              times < 1.3 and mem < 1.2, f"{size:.1f} times the bytes")
        b.require(times < 1.3, f"{kind}: time grows faster than the file")
        b.require(mem < 1.2, f"{kind}: memory grows faster than the file")


SLOW = {"critical", "hints", "overview"}  # those may take a second
SIZES = {"kineto": ("670M", "67M", "6700K"), "xspace": ("130M", "13M", "1300K")}


def analyses_of(b, path):
    """Each analysis of a profile that is opened once; the opening's seconds."""
    out = subprocess.run(
        [os.path.join(b.build, "bench", "bench"), "analyses", path,
         str(b.times)], stdout=subprocess.PIPE)
    if out.returncode != 0:
        raise Failed(f"bench analyses {path}: status {out.returncode}")
    lines = [json.loads(l) for l in out.stdout.splitlines()]
    return {l["analysis"]: l for l in lines[:-1]}, lines[-1]["best"]


def do_analyses(b):
    """About 1.8 M spans of each format (quick: a tenth), after the import; and
    a tenth of it, for growth."""
    for kind, sizes in SIZES.items():
        big, small = sizes[1:] if b.args.quick else sizes[:2]
        part = 0.1 if b.args.quick else 1.0
        whole, opened = analyses_of(b, b.file(kind, big))
        tenth, _ = analyses_of(b, b.file(kind, small))
        for name, m in whole.items():
            analysis_row(b, kind, big, name, m, tenth[name], opened, part)


def analysis_row(b, kind, big, name, m, tenth, opened, part):
    goal = (1.0 if name in SLOW else 0.1) * part
    yard = f"{100 * m['best'] / opened:.1f} % of opening it"
    # below some ms the clock and the caches are most of it
    if m["cpu"] > 0.02 * part:
        growth = m["cpu"] / max(tenth["cpu"], 1e-6) / 10
        yard += f", growth {growth:.2f} x size"
        b.require(growth < 4, f"{name}, {kind}: time grows faster than the "
                  "file")
    b.row(f"`{name}` after import, {kind} {big}", f"{goal * 1e3:g} ms",
          f"{m['best'] * 1e3:.1f} ms, {m['cpu'] * 1e3:.1f} of CPU, "
          f"{m['first'] * 1e3:.1f} the first time",
          m["best"] <= goal, yard)


def do_tiles(b):
    """The time line of about 1.8 M spans (quick: a tenth)."""
    for kind, sizes in SIZES.items():
        size = sizes[1] if b.args.quick else sizes[0]
        tiles_rows(b, kind, size, 0.1 if b.args.quick else 1.0)


def tiles_rows(b, kind, size, part):
    path = b.file(kind, size)
    out = subprocess.run(
        [os.path.join(b.build, "bench", "bench"), "tiles", path, str(b.times)],
        stdout=subprocess.PIPE)
    if out.returncode != 0:
        raise Failed(f"bench tiles {path}: status {out.returncode}")
    one, full = (json.loads(l) for l in out.stdout.splitlines())
    yard = b.measure("rows", path)

    b.require(yard["check"] == full["check"],
              f"{kind}: tiles of all are not as busy as a loop says")

    def to_yard(seconds):
        return f"{seconds / yard['best']:.3f} x a loop over all spans"
    what = f"{full['spans']} spans, {one['tracks']} tracks, " \
           f"{one['lanes']} lanes"
    b.row(f"tiles: index of all tracks, {kind} {size}", "100 ms of CPU",
          f"{one['index_cpu'] * 1e3:.0f} ms, {one['index'] * 1e3:.0f} of wall",
          one["index_cpu"] <= 0.1 * part, what)
    each = one["index_bytes"] / max(1, full["spans"])
    b.row("its memory", "8 B/span", f"{each:.1f} B/span", each <= 8, "")
    b.row(f"a tile, of {one['tiles']} at any zoom", "5 ms p99 of CPU",
          f"{one['p99'] * 1e3:.3f} ms p99, {one['p50'] * 1e3:.3f} p50, "
          f"{one['worst'] * 1e3:.2f} worst", one["p99"] <= 0.005,
          "p99 " + to_yard(one["p99"]))
    command_row(b, "a tile of each track, with all of it", 0.05, full,
                to_yard(full["best"]))


def do_machine(b):
    path = b.file("kineto", b.big)
    touch, copy = b.measure("touch", path), b.measure("copy", path)
    b.row("memory: a byte of each cache line", "", f"{rate(touch):.0f} MB/s",
          True, "")
    b.row("memory: memcpy", "", f"{rate(copy):.0f} MB/s", True, "")
    _, packed = b.torch_big()
    m = b.measure("open", packed)
    speed_row(b, "open a gz: inflate into a mapped file", 2000, m,
              b.measure("inflate", packed), "isa-l alone")


WORKS = {"machine": do_machine, "kineto": do_kineto, "gz": do_gz,
         "xspace": do_xspace, "ops": do_ops, "analyses": do_analyses,
         "tiles": do_tiles,
         "overview": do_overview,
         "torch": do_torch, "small": do_small, "growth": do_growth,
         "recorder": rec.do_recorder}

HEAD = """# Performance

This page is rewritten by `./dev bench`. {when}

Machine: {machine}. Page cache warm. The best of {times} runs; for whole
commands the median as well. *MB* are 10^6 bytes of JSON or protobuf, inflated.
The yardsticks (`tests/bench/yard.c`) are the least work that reading such a
file can be: a scanner that finds the strings and reads `ts` and `dur`, a walk
over every protobuf field, isa-l by itself. They store nothing. Ratios to them
are comparable between machines; seconds are not. What other tools take was
measured on other days on a machine of this size.

The large files are grown by `tests/bench/grow` from real captures in
`tests/data`: the same mix of events, window after window, with new times, ids
and steps, and one name in 97 varied.

| work | goal | got | reached | to yardstick (MB/s) | others |
|---|---|---|---|---|---|
"""

TAIL = """
## Choices behind the numbers

- **Inflating: isa-l.** Measured on a PyTorch trace of 10.8 MB that holds
  172 MB, into memory that was there already, CRC checked: isa-l 4.2 GB/s of
  output, libdeflate 3.5, zlib 1.4. isa-l also streams, where libdeflate wants
  the final size beforehand. Into the mapped temporary file, page faults
  included, 2.4 GB/s are left; through a buffer and `write` it was 2.2.
  Pieces of 1 to 4 MiB are best: the CRC then finds its data in the cache.
- **Private memory** is the anonymous memory of the process after import minus
  that before it; the mapped file, or the temporary file that a compressed one
  is inflated into, can be dropped by the system and does not count.
- **Growth** compares a file with one a tenth its size; `./dev bench` fails when
  CPU time grows by more than 1.3 or memory by more than 1.2 times the file, or
  when two threads do not give bit for bit what one gives.
- **Analyses** are measured by the public calls: the profile is opened once
  (1.8 M spans), then every analysis runs with all defaults, which gives all
  rows: those of `allocs` are as many as the allocations. What several of them
  share (the phases of steps, the tree of host spans) is worked out by the first
  that asks: *the first time* is the CPU time of an analysis of a profile that
  was just opened. `./dev bench` fails
  when one takes more than 40 times as long for a file ten times as large (page
  faults and caches are part of growth; the square would be 100).
"""


def write_page(b, path):
    with open(path, "w") as f:
        f.write(HEAD.format(when="", machine=cpu(),
                            times=b.times).replace(" \n", "\n"))
        for row in b.rows:
            f.write("| " + " | ".join(row) + " |\n")
        f.write(TAIL)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--build", default="build")
    p.add_argument("--quick", action="store_true",
                   help="100 MB files, three times each")
    p.add_argument("--only", default="", help="of " + " ".join(WORKS))
    p.add_argument("--out", default="docs/performance.md")
    args = p.parse_args()
    b = Bench(args)
    only = args.only.replace(",", " ").split()
    print(cpu())
    for name, work in WORKS.items():
        if only and name not in only:
            continue
        try:
            work(b)
        except Failed as e:
            b.require(False, str(e))
    if not args.quick and not only:
        os.makedirs(os.path.dirname(args.out), exist_ok=True)
        write_page(b, args.out)
        print("wrote " + args.out)
    return 1 if b.failed else 0


if __name__ == "__main__":
    sys.exit(main())
