#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds `opscope ops`, `kernels` and `copies` against torch's own tables.

Beside each profile in tests/data/torch_* lies what torch printed for the same
run (prof.key_averages().table(), and for some the exact numbers as JSON).
Every row and every column must agree to the last digit that torch printed, in
both directions: no row of torch's may be missing, none may be too much.

Where torch is wrong, or counts something that opscope keeps apart, RIGHT holds
the right value (counted from the file by a script of its own) and says why.

usage: torch_tables.py [CASE...]      program: $OPSCOPE or build/opscope
"""
import collections
import glob
import json
import os
import re
import sys
from decimal import Decimal

import lib
from lib import table as run

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data")
OPSCOPE = os.environ.get("OPSCOPE", "build/opscope")
CASES = ["torch_cnn", "torch_compiled", "torch_graphs", "torch_cpu",
         "torch_stack"]

# case -> (row, column of opscope) -> right value. Times in us, sizes in bytes.
RIGHT = {
    # torch puts 16 API calls of the pin-memory thread, which no op made, under
    # ops of the main thread: their time and memory is taken off those.
    "torch_cnn": {
        ("aten::addmm", "host_self_us"): "402.794",
        ("aten::addmm", "device_self_bytes"): "6144",
        ("backward_pass", "host_self_us"): "22256.231",
    },
    # torch 2.13 makes Python frames rows of the table and takes their time
    # and memory off the annotations around them; here they are a stack of
    # their own, and an annotation's self time is what no op inside it took.
    "torch_stack": {
        ("ProfilerStep*", "host_self_us"): "780.107",
        ("ProfilerStep*", "host_self_bytes"): "-201216",
        ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
         "host_self_us"): "1284.058",
        ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
         "host_self_bytes"): "-301056",
        ("forward_pass", "host_self_us"): "1811.954",
        ("forward_pass", "host_self_bytes"): "-2435592",
        ("backward_pass", "host_self_us"): "1766.031",
        ("backward_pass", "host_self_bytes"): "-12",
        ("Optimizer.zero_grad#SGD.zero_grad", "host_self_us"): "101.991",
        ("Optimizer.zero_grad#SGD.zero_grad", "host_self_bytes"): "-809168",
        ("optimizer_step", "host_self_us"): "3735.368",
        ("Optimizer.step#SGD.step", "host_self_us"): "1166.455",
    },
}

# torch's heading -> opscope's column
COLUMNS = {
    "# of Calls": "calls", "CPU total": "host_us", "Self CPU": "host_self_us",
    "CPU time avg": "host_mean_us", "CUDA total": "device_us",
    "Self CUDA": "device_self_us", "CUDA time avg": "device_mean_us",
    "CPU Mem": "host_bytes", "Self CPU Mem": "host_self_bytes",
    "CUDA Mem": "device_bytes", "Self CUDA Mem": "device_self_bytes",
}
UNITS = {"us": Decimal(1), "ms": Decimal(1000), "s": Decimal(1000000),
         "B": Decimal(1), "KB": Decimal(1 << 10), "MB": Decimal(1 << 20),
         "GB": Decimal(1 << 30), "": Decimal(1)}
PYTHON_ROW = re.compile(r"\.py\(\d+\): |^<built-in |^nn\.Module: |^<[a-z]+ |"
                        r"^<.*>\(\d+\): ")
faults = []


def fault(case, text):
    faults.append(f"{case}: {text}")


def number(text):
    """"12.345ms" -> (12.345, decimals, 1000)"""
    m = re.fullmatch(r"(-?\d+(?:\.(\d+))?) ?([a-zA-Z]*)", text)
    if not m or m.group(3) not in UNITS:
        raise ValueError(f"cannot read {text!r}")
    return Decimal(m.group(1)), len(m.group(2) or ""), UNITS[m.group(3)]


def agrees(text, value):
    """Is value, rounded as torch rounds, what it printed? Ties go either way:
    torch rounds binary fractions."""
    if value is None:
        return False
    shown, decimals, unit = number(text)
    return abs(Decimal(value) / unit - shown) <= Decimal(5).scaleb(-decimals - 1)


def read_table(path):
    lines = open(path).read().split("\n")
    head = re.split(r"\s{2,}", lines[1].strip())
    rows = []
    for at, line in enumerate(lines[3:], 3):
        if line.startswith("----"):
            return head, rows, "\n".join(lines[at + 1:])
        cells = re.split(r"\s{2,}", line.strip())
        cut = len(cells) - len(head) + 1
        rows.append(dict(zip(head, ["  ".join(cells[:cut])] + cells[cut:])))
    raise ValueError(f"{path}: no end of the table")


def same_name(torch, ours):
    if torch.endswith("..."):
        return ours.startswith(torch[:-3])
    return torch == ours


def differences(case, row, ours, columns):
    out = []
    for head, col in columns.items():
        if head not in row:
            continue
        right = RIGHT.get(case, {}).get((ours.get("name"), col))
        if right is not None:
            if ours[col] is None or Decimal(ours[col]) != Decimal(right):
                out.append(f"{col} is {ours[col]}, right is {right} "
                           f"(torch, wrong: {row[head]})")
        elif not agrees(row[head], ours[col]):
            out.append(f"{col} is {ours[col]}, torch printed {row[head]}")
    return out


def flops_differ(head, row, ours):
    for h in head:
        m = re.fullmatch(r"Total ([KMGTP]?)FLOPs", h)
        if not m:
            continue
        if row[h] == "--":
            return [] if not ours["flops"] else [f"flops is {ours['flops']}"]
        unit = Decimal(1000) ** " KMGTP".index(m.group(1) or " ")
        text = row[h]
        if ours["flops"] is None or not agrees(text, ours["flops"] / unit):
            return [f"flops is {ours['flops']}, torch printed {text} {h}"]
    return []


def best_match(case, row, candidates, compare):
    """Names that torch cut may fit several rows: the one that agrees."""
    worst = None
    for c in candidates:
        diff = compare(c)
        if not diff:
            return c, []
        if worst is None or len(diff) < len(worst[1]):
            worst = (c, diff)
    return worst


def check_host(case, head, rows, ops):
    left = [o for o in ops if o["kind"] != "memory"]
    checked = 0
    for row in rows:
        if row["CPU total"] == "0.000us" and row["Name"] != "[memory]":
            continue
        if PYTHON_ROW.search(row["Name"]):
            continue
        fits = [o for o in left if same_name(row["Name"], o["name"])]
        if not fits:
            fault(case, f"ops has no row {row['Name']}")
            continue
        got, diff = best_match(
            case, row, fits,
            lambda o: differences(case, row, o, COLUMNS)
            + flops_differ(head, row, o))
        left.remove(got)
        checked += 1
        for d in diff:
            fault(case, f"{row['Name'][:70]}: {d}")
    for o in left:
        if o["host_us"]:
            fault(case, f"torch has no row {o['name'][:70]}")
    return checked


COPY = re.compile(r"Mem(?:cpy (\w)to(\w)|(set)) \((.*)\)")


def check_device(case, rows, ops, kernels, copies):
    annotations = {o["name"] for o in ops if o["kind"] == "annotation"}
    sums = collections.defaultdict(lambda: [0, Decimal(0)])
    for k in kernels:
        sums[k["name"]][0] += k["calls"]
        sums[k["name"]][1] += k["total_us"]
    moved = collections.defaultdict(lambda: [0, Decimal(0)])
    checked = 0
    for row in rows:
        if row["CPU total"] != "0.000us" or row["Self CUDA"] == "0.000us":
            continue
        name = row["Name"]
        m = COPY.fullmatch(name)
        if m:
            kind = "memset" if m.group(3) else f"{m[1]}2{m[2]}".lower()
            key = (kind, "Pageable" in m.group(4))
            moved[key][0] += int(row["# of Calls"])
            shown, _, unit = number(row["Self CUDA"])
            moved[key][1] += shown * unit
            continue
        fits = [n for n in sums if same_name(name, n)]
        if not fits and any(same_name(name, a) for a in annotations):
            continue  # a span that Kineto derives from the kernels below it
        if not fits:
            fault(case, f"kernels has no row {name[:90]}")
            continue
        got, diff = best_match(case, row, fits, lambda n: [] if (
            str(sums[n][0]) == row["# of Calls"]
            and agrees(row["Self CUDA"], sums[n][1])) else [
                f"{sums[n][0]} calls, {sums[n][1]} us; torch printed "
                f"{row['# of Calls']}, {row['Self CUDA']}"])
        del sums[got]
        checked += 1
        for d in diff:
            fault(case, f"{name[:70]}: {d}")
    for name in sums:
        fault(case, f"torch has no kernel {name[:90]}")
    for key, (calls, total) in moved.items():
        ours = [c for c in copies if (c["kind"], bool(c["pageable"])) == key]
        if len(ours) != 1 or ours[0]["calls"] != calls or \
                abs(ours[0]["total_us"] - total) > Decimal("0.5"):
            fault(case, f"copies {key}: torch has {calls}, {total} us; "
                        f"here {ours}")
        checked += 1
    return checked


def check_footer(case, footer, ops, kernels, copies):
    host = sum(o["host_self_us"] or 0 for o in ops)
    m = re.search(r"Self CPU time total: (\S+)", footer)
    # what torch moves between rows (RIGHT) it also loses from the sum
    if case not in RIGHT and not agrees(m.group(1), host):
        fault(case, f"sum of host_self_us is {host}, torch: {m.group(1)}")
    m = re.search(r"Self CUDA time total: (\S+)", footer)
    if m:
        device = sum(k["total_us"] for k in kernels + copies)
        if not agrees(m.group(1), device):
            fault(case, f"kernels and copies take {device} us, torch: "
                        f"{m.group(1)}")


def check_json(case, path, ops, by_shape):
    """The exact numbers: times to a nanosecond, all else equal."""
    left = {}
    for o in ops:
        key = (o["name"], o["kind"] == "annotation")
        if by_shape:
            key += (str(json.loads(o["shapes"] or "[]")),)
        left[key] = o
    fields = {"cpu_time_total": "host_us", "self_cpu_time_total":
              "host_self_us", "cpu_memory_usage": "host_bytes",
              "self_cpu_memory_usage": "host_self_bytes"}
    checked = 0
    for row in json.load(open(path), parse_float=Decimal):
        if PYTHON_ROW.search(row["key"]):
            continue
        keys = [(row["key"], a) + ((row["shapes"],) if by_shape else ())
                for a in (False, True)]
        o = next((left.pop(k) for k in keys if k in left), None)
        if o is None:
            fault(case, f"{os.path.basename(path)}: no row {keys[0]}")
            continue
        checked += 1
        bad = [] if o["calls"] == row["count"] else [
            f"calls {o['calls']} != {row['count']}"]
        if (o["flops"] or 0) != row["flops"]:
            bad.append(f"flops {o['flops']} != {row['flops']}")
        for theirs, col in fields.items():
            if theirs not in row:
                continue
            right = RIGHT.get(case, {}).get((row["key"], col), row[theirs])
            if abs(Decimal(right) - o[col]) > Decimal("0.0005"):
                bad.append(f"{col} {o[col]} != {right}")
        for b in bad:
            fault(case, f"{os.path.basename(path)}: {row['key']}: {b}")
    for key in left:
        if left[key]["kind"] != "memory":
            fault(case, f"{os.path.basename(path)}: torch has no {key}")
    return checked


def check(case):
    folder = os.path.join(DATA, case)
    profile = glob.glob(os.path.join(folder, "*.pt.trace.json.gz"))[0]
    head, rows, footer = read_table(
        os.path.join(folder, case + ".key_averages.txt"))
    _, ops = run("ops", profile)
    _, kernels = run("kernels", profile)
    _, copies = run("copies", profile)
    n = check_host(case, head, rows, ops)
    if "Self CUDA" in head:
        n += check_device(case, rows, ops, kernels, copies)
    check_footer(case, footer, ops, kernels, copies)
    exact = os.path.join(folder, case + ".key_averages.json")
    if os.path.exists(exact):
        n += check_json(case, exact, ops, False)
    exact = os.path.join(folder, case + ".key_averages_shape.json")
    if os.path.exists(exact):
        n += check_json(case, exact, run("ops", profile, "--group",
                                         "shapes")[1], True)
    return n


def main():
    for case in sys.argv[1:] or CASES:
        before = len(faults)
        n = check(case)
        lib.say(f"{case}, {n} rows", faults[before:] if n else "no rows")
    return lib.status()


if __name__ == "__main__":
    sys.exit(main())
