#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""roofline against sources that are not ours.

1. FLOPs of every matrix op in tests/data/torch_types equal what
   torch.utils.flop_counter counted in the same program, but for two things
   that it does not do: it leaves a causal mask's half in, and counts the weight
   gradient of a grouped convolution `groups` times.
2. The data type of a product's kernel is the one its region of the program was
   written in, wherever the kernel occurs in regions of one type only.
3. Bandwidth of XLA's instructions and the FLOP rate of its products equal
   XProf's.
4. On every profile: of_peak_pct = gflops / min(peak, intensity x bandwidth),
   and the kernels' time is the sum of the rows, in both --by modes.

usage: roofline_check.py      program: $OPSCOPE or build/opscope
prints `ok NAME` or `not ok NAME: why`; exit 1 when anything differs
"""
import collections
import csv
import glob
import gzip
import json
import os
import sys

import lib
from lib import say

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data")
OPSCOPE = os.environ.get("OPSCOPE", "build/opscope")
TYPES = os.path.join(DATA, "torch_types", "torch_types.pt.trace.json.gz")


def roofline(path, *more):
    try:
        return lib.rows("roofline", path, *more, real=float)
    except lib.Failed:
        return None


def check_flops():
    with open(os.path.join(DATA, "torch_types", "flop_counter.json")) as f:
        cases = json.load(f)
    want = collections.Counter()
    for case, ops in cases.items():
        for op, n in ops.items():
            if "scaled_dot" in op:
                op = op.replace("_scaled_dot_product", "")
                op += "" if op.endswith("backward") else "_forward"
                n = n // 2 if case.endswith("True") else n
            if op == "aten.convolution_backward" and "groups" in case:
                n = 2 * ops["aten.convolution"]
            want[op] += n
    got = collections.Counter()
    for row in roofline(TYPES):
        op = row["name"].replace("::", ".")
        if "conv" in op and "backward" not in op:
            op = "aten.convolution"
        if op in want:
            got[op] += int(row["flops"])
    return say("FLOPs as torch counts them",
               ["%s: %d, torch %d" % (op, got[op], n)
                for op, n in want.items() if got[op] != n])


def check_types():
    with gzip.open(TYPES) as f:
        events = json.load(f)["traceEvents"]
    regions = [(e["ts"], e["ts"] + e["dur"], e["name"].split()[1])
               for e in events if e.get("cat") == "user_annotation" and
               e["name"].startswith("case ")]
    launch = {e["args"]["correlation"]: e["ts"] for e in events
              if e.get("cat") in ("cuda_runtime", "cuda_driver")}
    seen = collections.defaultdict(set)
    for e in events:
        if e.get("cat") == "kernel":
            ts = launch[e["args"]["correlation"]]
            seen[e["name"]] |= {r[2] for r in regions if r[0] <= ts <= r[1]}
    wrong, n = [], 0
    for row in roofline(TYPES, "--by", "kernel"):
        cases = seen[row["name"]]
        if len(cases) != 1 or not row["flops"] or row["dtype"] is None:
            continue
        case = cases.pop()
        # Regions of mixed types, and transforms between them.
        if case in ("f8", "misc"):
            continue
        n += 1
        # A product that may use TF32 need not; one that may not must not.
        fine = {"tf32": ("tf32", "fp32")}.get(case, (case,))
        # 16-bit data on plain units, and cuDNN's own choice of TF32 for them.
        if case in ("fp16", "bf16") and "tf32f32" in row["name"]:
            continue
        if row["dtype"] not in fine:
            wrong.append("%s: %s in a region of %s" % (
                row["name"][:60], row["dtype"], case))
    if n < 60:
        wrong.append("only %d kernels were compared" % n)
    return say("kernel types", wrong)


def check_xprof():
    path = os.path.join(DATA, "xprof", "jax_mlp_hlo.xplane.pb.gz")
    table = os.path.join(DATA, "xprof", "jax_mlp_hlo.hlo_stats.csv")
    rows = {r["name"]: r for r in roofline(path)}
    wrong, n = [], 0
    with open(table) as f:
        for x in csv.DictReader(f):
            ours = rows[x["HLO op name"]]
            pairs = [("gb_per_s", float(x["Measured memory BW (GiB/s)"]) *
                      2**30 / 1e9)]
            # Its model of pointwise work counts three for an addition.
            if x["HLO op category"] == "custom-call":
                pairs.append(("gflops", float(x["Model GFLOP/s"])))
                n += 1
            for key, want in pairs:
                if abs(ours[key] - want) > 1e-6 * want:
                    wrong.append("%s %s: %g, XProf %g" % (
                        x["HLO op name"], key, ours[key], want))
    if n < 5:
        wrong.append("only %d products were compared" % n)
    first = rows["custom-call.0"]
    for key, want in (("gflops", 162522.96451208054),
                      ("intensity", 512 / 3),
                      ("gb_per_s", 886.8826508410011 * 2**30 / 1e9)):
        if abs(first[key] - want) > 1e-9 * want:
            wrong.append("custom-call.0 %s: %r, XProf %r" % (
                key, first[key], want))
    return say("XProf's rates", wrong)


def check_identity(path, name):
    wrong, times = [], []
    for more in ([], ["--by", "kernel"]):
        rows = roofline(path, *more)
        if rows is None:
            return True
        times.append(sum(round(r["device_us"] * 1e6) for r in rows))
        for r in rows:
            if r["of_peak_pct"] is None or not r["ridge"]:
                continue
            roof = min(r["peak_gflops"],
                       r["intensity"] * r["peak_gflops"] / r["ridge"])
            pct = 100 * r["gflops"] / roof
            if abs(pct - r["of_peak_pct"]) > 1e-6 * pct:
                wrong.append("%s: %g %%, by hand %g" % (
                    r["name"][:40], r["of_peak_pct"], pct))
            bound = "compute" if r["intensity"] >= r["ridge"] else "memory"
            if abs(r["intensity"] / r["ridge"] - 1) > 1e-9 and \
                    r["bound"] != bound:
                wrong.append("%s: bound %s" % (r["name"][:40], r["bound"]))
    if len(set(times)) > 1:
        wrong.append("time by op %d ps, by kernel %d" % tuple(times))
    return say(name, wrong)


def main():
    ok = check_flops() & check_types() & check_xprof()
    for pattern in ("*/*.pt.trace.json.gz", "xprof/*.xplane.pb.gz"):
        for path in sorted(glob.glob(os.path.join(DATA, pattern))):
            ok &= check_identity(path, os.path.basename(path).split(".")[0])
    sys.exit(0 if ok else 1)


main()
