# SPDX-License-Identifier: Apache-2.0
"""The recorder's rows of `./dev bench`: what a call costs the program, what the
recorder's own thread does, what is on disk, and what a real program (demo/)
pays. Calls are told beside two reads of the CPU's counter, which a scope needs
whatever else it does; times of a busy machine are told by the least."""

import glob
import json
import os
import re
import shutil
import subprocess
import tempfile


class Recorder:
    def __init__(self, b):
        self.b = b
        self.tmp = tempfile.mkdtemp(dir=b.dir)
        self.times = 101 if b.args.quick else 501

    def ask(self, program, work, where, times=None):
        argv = [os.path.join(self.b.build, "bench", program), work, where,
                str(times or self.times)]
        out = subprocess.run(argv, stdout=subprocess.PIPE, check=True)
        return json.loads(out.stdout)

    def call(self, work, times=None):
        """In a log folder that is gone afterwards."""
        logs = os.path.join(self.tmp, "logs")
        m = self.ask("rec_bench", work, logs, times)
        shutil.rmtree(logs, ignore_errors=True)
        return m

    def facts(self, logs):
        out = subprocess.run(
            [os.path.join(self.b.build, "opscope"), "info", logs, "--format",
             "json"], stdout=subprocess.PIPE, check=True)
        doc = json.loads(out.stdout)
        return {row[0]: row[3] for row in doc["rows"]}


def calls(r, b):
    clock = r.call("clock2")
    for work, what, goal, peers in (
            ("scope", "scope, recorded", 30,
             "Tracy 25 to 55, TraceMe 68, LTTng 248 ns"),
            ("scope2", "scope, recorded, on two threads", 30, ""),
            ("counter", "counter, recorded", 20, ""),
            ("instant", "instant, recorded", 20, ""),
            ("arg", "scope with an argument, recorded", None, ""),
            ("alloc", "allocation, recorded", None, ""),
            ("step", "step, recorded", None, "")):
        m = r.call(work)
        b.row(what, f"{goal} ns" if goal else "",
              f"{m['best']:.1f} ns (med {m['median']:.1f})",
              not goal or m["best"] <= goal,
              f"{m['best'] / clock['best']:.2f} x two clock reads "
              f"({clock['best']:.1f} ns)", peers)
        if work == "scope":
            scope = m
    empty, off = r.call("call"), r.call("off")
    more = max(0, off["best"] - empty["best"])
    b.row("scope, compiled in, off", "1 ns", f"{more:.2f} ns", more <= 1,
          f"beyond a call that does nothing ({empty['best']:.2f} ns)",
          "TraceMe 0.5, LTTng 1.4, RecordFunction 20 ns")
    return scope


def flood_once(r):
    """10 M scopes in one loop: what came of them."""
    logs = os.path.join(r.tmp, "flood")
    m = r.ask("rec_bench", "flood", logs)
    files = glob.glob(logs + "/plugins/profile/*/*.xplane.pb")
    have = r.facts(logs)
    m["lost"] = m["scopes"] - int(have["spans"])
    m["bytes"] = sum(map(os.path.getsize, files)) / int(have["spans"])
    m["told"] = int(have["scope_cost_ps"]) / 1000
    m["own_cpu"] = int(have["flusher_cpu_ns"]) / int(have["spans"])
    shutil.rmtree(logs)
    return m


def flood(r, b, scope):
    """A busy machine keeps the recorder's thread from running: the least."""
    runs = [flood_once(r) for _ in range(3 if b.args.quick else 9)]

    def of(what):
        v = sorted(m[what] for m in runs)
        return v[0], v[len(v) // 2]
    lost, stop, took = of("lost"), of("stop_ms"), of("best")
    b.row("10 M scopes as fast as they go, dropped", "0",
          f"{lost[0]} (med {lost[1]})", lost[0] == 0,
          f"{took[0]:.1f} ns a scope (med {took[1]:.1f}); the recorder's own "
          f"thread {of('own_cpu')[0]:.1f} ns of CPU each")
    b.row("the same, on disk", "16 B/scope", f"{of('bytes')[0]:.1f} B/scope",
          of("bytes")[0] <= 16, "",
          "TraceMe 14.9 to 76, Kineto JSON 251 to 429 B")
    b.row("the same, `ops_stop`", "200 ms",
          f"{stop[0]:.1f} ms (med {stop[1]:.1f})", stop[0] <= 200, "",
          "1 M events: TF 660, JAX 1900, torch 3240 ms")
    told = of("told")[0]
    b.row("the same, what the profile says a scope costs", "",
          f"{told:.1f} ns", True, f"{told / scope['best']:.2f} x measured here")
    b.require(0.5 < told / scope["best"] < 2,
              f"the profile says that a scope costs {told} ns, and it costs "
              f"{scope['best']}")


def own_thread(r, b, scope):
    where = os.path.join(r.tmp, "out")
    copy = r.ask("enc_bench", "copy", where, 15)
    m = r.ask("enc_bench", "write", where, 15)
    rate = 1e3 / m["best"]
    b.row("its own thread: ring to file", "30 M/s", f"{rate:.1f} M/s",
          rate >= 30, f"{m['best'] / copy['best']:.0f} x memcpy of the ring, "
          f"{scope['best'] / m['best']:.2f} x what a thread can record")
    start = r.call("start", 25)
    b.row("`ops_start`", "", f"{start['best'] / 1e6:.1f} ms "
          f"(med {start['median'] / 1e6:.1f})", True, "")


def scalars(r, b):
    m = r.call("scalars")
    rate = 1e3 / m["best"]
    b.row("`ops_scalar`, 1 M until in the file", "1 M/s", f"{rate:.1f} M/s",
          rate >= 1, f"{m['call']:.0f} ns a call", "tensorboardX 16.6 k/s")
    folder = os.path.join(r.tmp, "events")
    os.mkdir(folder)
    m = r.ask("enc_bench", "scalars", folder, 5)
    b.row("event file alone, 1 M scalars", "1 M/s",
          f"{1e3 / m['best']:.1f} M/s", m["best"] <= 1e3, "")
    m = b.command("scalars", folder)
    b.row("`opscope scalars`, 1 M, whole process", "200 ms",
          f"{m['best'] * 1e3:.0f} ms (med {m['median'] * 1e3:.0f})",
          m["best"] <= 0.2, f"{m['cpu']:.2f} s of CPU",
          "TensorBoard's Rust server 400 ms")
    shutil.rmtree(folder)


def demo_step(b, *options):
    out = subprocess.run([os.path.join(b.build, "demo", "demo"), "--quiet",
                          "--steps", "60", *options], stdout=subprocess.PIPE,
                         check=True).stdout.decode()
    return float(re.search(r"median step ([0-9.]+) ms", out).group(1))


def demo(r, b):
    """Its median step with and without recording, in turns."""
    if not os.path.exists(os.path.join(b.build, "demo", "demo")):
        return
    logs = os.path.join(r.tmp, "demo")
    off, on = [], []
    for _ in range(3 if b.args.quick else 9):
        off.append(demo_step(b))
        on.append(demo_step(b, "--logdir", logs))
        shutil.rmtree(logs)
    more = 100 * (min(on) / min(off) - 1)
    medians = sorted(on)[len(on) // 2], sorted(off)[len(off) // 2]
    b.row("demo slowed by recording", "2 %", f"{more:.2f} %", more <= 2,
          f"median step {min(on):.2f} against {min(off):.2f} ms, the least of "
          f"{len(on)} runs (medians {medians[0]:.2f}, {medians[1]:.2f})",
          "torch.profiler 65 to 140 %")


def do_recorder(b):
    r = Recorder(b)
    try:
        scope = calls(r, b)
        own_thread(r, b, scope)
        flood(r, b, scope)
        scalars(r, b)
        demo(r, b)
    finally:
        shutil.rmtree(r.tmp, ignore_errors=True)
