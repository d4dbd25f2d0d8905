#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs with one fault each, measured without a profiler before and after
the fault is really repaired, and what `opscope hints` and `opscope steps` say
of their profiles. The table of docs/analyses/hints.md is printed by this.

usage: run.py [--out DIR] [--opscope PATH] [--list] [--told] [NAME...]
  --told   measures nothing: reads again what lies in DIR
Run by hand, on a quiet machine, by a Python that has the frameworks; a program
whose framework or device is missing is named and left out."""
import argparse
import glob
import importlib.util
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
SHARED = {"kit", "one", "run"}
POINTS = 15     # how far a saving may be off
TUNED = 5       # per cent that may be promised where nothing is wrong


def programs():
    """Names of the programs, in order."""
    names = (os.path.basename(f)[:-3] for f in glob.glob(HERE + "/*.py"))
    return sorted(set(names) - SHARED)


def meta_of(name):
    """META of a program, without importing its framework."""
    sys.path.insert(0, HERE)
    spec = importlib.util.spec_from_file_location(
        name, os.path.join(HERE, name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.META


def lacks(meta):
    """Why a program cannot run here, or None."""
    if importlib.util.find_spec(meta["framework"]) is None:
        return "no " + meta["framework"]
    if meta.get("device") == "cuda":
        import kit
        if importlib.util.find_spec("torch") is None or not kit.on_gpu():
            return "no GPU"
    return None


def measure(name, out):
    """Runs a program; returns why it failed, or None."""
    p = subprocess.run([sys.executable, os.path.join(HERE, "one.py"), name,
                        out], cwd=HERE, stdin=subprocess.DEVNULL,
                       capture_output=True, text=True, timeout=600)
    if p.returncode:
        lines = p.stderr.strip().splitlines() or ["status %d" % p.returncode]
        return lines[-1]
    return None


def ask(opscope, analysis, path):
    """The rows of an analysis as dicts."""
    p = subprocess.run([opscope, analysis, path, "--format", "json"],
                       capture_output=True, text=True, check=True)
    result = json.loads(p.stdout)
    names = [c["name"] for c in result["columns"]]
    return [dict(zip(names, row)) for row in result["rows"]]


def right_ids(hint):
    return {hint} if isinstance(hint, str) else set(hint)


def judge(meta, truth, hints):
    """(told, verdict): what stands first and whether it is right."""
    told = "%s %.0f" % (hints[0]["id"], hints[0]["save_pct"] or 0) \
        if hints else "nothing"
    if meta["hint"] is None:
        over = [h for h in hints if (h["save_pct"] or 0) > TUNED]
        return told, "over" if over else "right"
    if not hints or hints[0]["id"] not in right_ids(meta["hint"]):
        return told, "wrong" if hints else "missed"
    real = 100 * truth["gain"]
    off = abs((hints[0]["save_pct"] or 0) - real)
    # A leak costs no time: it is right when it is named.
    if meta.get("any_saving") or off <= POINTS:
        return told, "right"
    return told, "off by %.0f" % off


def profile_of(out, name):
    found = glob.glob(os.path.join(out, name + ".pt.trace.json*")) + \
        glob.glob(os.path.join(out, name + ".xplane.pb*"))
    return found[0] if found else None


def bare_line(opscope, path, truth):
    """What `steps` says of the step without the profiler, beside the truth: of
    the step with the middle one of these figures."""
    rows = ask(opscope, "steps", path)
    key = "bare_us" if any(r["bare_us"] is not None for r in rows) else "dur_us"
    rows = sorted((r for r in rows if r[key] is not None),
                  key=lambda r: r[key])
    step = rows[(len(rows) - 1) // 2]

    def ms(column):
        return None if step[column] is None else step[column] / 1e3
    real = truth["bare_ms"]
    # Where recording costs nothing that shows, the recorded step is the bare
    # one.
    bare = ms("bare_us") if step["bare_us"] is not None else ms("dur_us")
    low, high = ms("bare_low_us"), ms("bare_high_us")
    inside = (low if low is not None else bare) <= real * 1.05 and \
        real * 0.95 <= (high if high is not None else bare)
    return {"recorded": ms("dur_us"), "bare": bare, "low": low, "high": high,
            "real": real, "off": bare / real - 1, "inside": inside}


def number(v):
    return "-" if v is None else "%.3g" % v


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("names", nargs="*")
    p.add_argument("--out", default="faults-out")
    p.add_argument("--opscope", default=os.path.join(ROOT, "build/opscope"))
    p.add_argument("--list", action="store_true")
    p.add_argument("--told", action="store_true")
    a = p.parse_args()
    names = a.names or programs()
    os.makedirs(a.out, exist_ok=True)
    out = os.path.abspath(a.out)
    count = {}
    bares = []
    print("| program | repair | told first | real | |\n|---|---|---|---|---|")
    for name in names:
        meta = meta_of(name)
        if a.list:
            print("| %s | %s | | | %s |" % (name, meta["repair"],
                                          lacks(meta) or ""))
            continue
        why = None if a.told else lacks(meta) or measure(name, out)
        path = profile_of(out, name)
        if why or path is None:
            print("| %s | %s | | | not run: %s |" % (
                name, meta["repair"], why or "no profile"), flush=True)
            continue
        with open(os.path.join(out, name + ".json")) as f:
            truth = json.load(f)
        told, verdict = judge(meta, truth, ask(a.opscope, "hints", path))
        kind = verdict.split()[0]
        count[kind] = count.get(kind, 0) + 1
        bares.append((name, bare_line(a.opscope, path, truth)))
        print("| %s | %s | %s | %s | %s |" % (
            name, meta["repair"], told,
            "%.0f" % (100 * truth["gain"]) if "gain" in truth else "-",
            verdict), flush=True)
    print("\n%s\n" % ", ".join("%s %d" % kv for kv in sorted(count.items())))
    print("| program | recorded ms | without profiler | measured | off % | "
          "in range |\n|---|---|---|---|---|---|")
    for name, b in bares:
        print("| %s | %s | %s (%s to %s) | %s | %s | %s |" % (
            name, number(b["recorded"]), number(b["bare"]),
            number(b.get("low")), number(b.get("high")), number(b["real"]),
            "-" if b["bare"] is None else "%+.0f" % (100 * b["off"]),
            {True: "yes", False: "no", None: "-"}[b.get("inside")]))


if __name__ == "__main__":
    main()
