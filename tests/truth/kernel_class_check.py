#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The classes of kernels, twice over, on every profile of tests/data.

1. By another reading of the names: here a name is taken apart into words (at
   capitals, digits and signs), and rules look at words, not at pieces of text.
   Where these rules know a class it is opscope's; what they do not know may be
   anything but must not be a product of matrices by a word that is not there.
2. By the op that launched the kernel, where one is recorded: what an op may
   launch is listed. A library does more than the op says (layouts, sums of
   parts), so each op has some classes; the main one must have most of its time.
3. `--by class` sums what the rows by name have, to the picosecond, and every
   class is one of those that are documented.
4. Occupancy, from the file itself: the mean by duration of what is known. A 0
   beside so many warps that it would round to one per cent or more (of the 64
   that a multiprocessor holds at most) is not known.

usage: kernel_class_check.py      program: $OPSCOPE or build/opscope
prints `ok NAME` or `not ok NAME: why`; exit 1 when anything differs
"""
import collections
import glob
import gzip
import json
import os
import re
import sys

from lib import DATA, rows, say, status

CLASSES = {"gemm", "convolution", "attention", "normalization", "softmax",
           "pooling", "optimizer", "reduction", "indexing", "pointwise",
           "copy", "collective", "other"}

PROFILES = sorted(
    glob.glob(os.path.join(DATA, "torch_*", "*.pt.trace.json.gz")) +
    glob.glob(os.path.join(DATA, "faults", "*.pt.trace.json.gz")) +
    glob.glob(os.path.join(DATA, "*", "*.xplane.pb")))


def words(name):
    """The words of a name without parameters: camelCase and snake_case."""
    name = re.sub(r"\(anonymous namespace\)", "", name)
    depth, end = 0, len(name)
    if name.endswith(")"):
        for i in range(len(name) - 1, -1, -1):
            depth += (name[i] == ")") - (name[i] == "(")
            if depth == 0:
                end = i if i > 0 else end
                break
    return [w.lower() for w in
            re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name[:end])]


def expected(name):
    """The class by the words of the name; None: these rules do not know."""
    w = words(name)
    s = set(w)
    pairs = set(zip(w, w[1:]))
    triton = w[:1] == ["triton"]
    if triton and "poi" in s:
        return "pointwise"
    if triton and s & {"red", "per"}:
        return ("normalization" if "norm" in s else
                "softmax" if "softmax" in s else "reduction")
    if s & {"nccl", "ncclkernel", "nccldevkernel"}:
        return "collective"
    if s & {"fmha", "sdpa", "attention"} or ("flash" in s and "fwd" in s):
        return "attention"
    if ("split", "kreduce") in pairs or {"reduce", "split"} <= s:
        return "reduction"
    if s & {"convolve", "dgrad", "wgrad", "fprop", "winograd", "convolution"}:
        return "convolution"
    if s & {"bn", "norm"} and "lp" not in s and "elementwise" not in s:
        return "normalization"
    if "softmax" in s or {"soft", "max"} <= s:
        return "softmax"
    if s & {"gemm", "sgemm", "gemmsn", "nvjet", "cijk"} or \
            re.search(r"[shdzi]\d+gemm", name):
        return "gemm"
    if "pool" in s:
        return "pooling"
    if "adam" in s:
        return "optimizer"
    if "embedding" in s:
        return "indexing"
    if ("nchw", "to") in pairs or ("nhwc", "to") in pairs:
        return "copy"
    if ("direct", "copy") in pairs or ("array", "batched") in pairs:
        return "copy"
    if ("reduce", "kernel") in pairs or ("reduce", "fusion") in pairs:
        return "reduction"
    if "elementwise" in s and "index" not in s and "copy" not in s and \
            "norm" not in s:
        return "pointwise"
    return None


# op (a pattern of its name): its main class, and others that it may launch
BY_OP = [
    (r"aten::(mm|addmm|bmm|baddbmm|matmul|linear)$", "gemm",
     {"reduction", "copy", "other", "pointwise"}),
    (r"aten::(cudnn_convolution\w*|convolution_backward|_convolution|"
     r"miopen_convolution\w*)$", "convolution",
     {"gemm", "reduction", "copy", "other"}),
    (r"aten::\w*(attention)\w*$", "attention", {"copy", "pointwise", "other"}),
    (r"aten::(cudnn_batch_norm\w*|native_layer_norm\w*|native_batch_norm\w*)$",
     "normalization", {"reduction", "copy", "pointwise"}),
    (r"aten::_(log_)?softmax\w*$", "softmax", set()),
    (r"aten::\w*pool2d\w*$", "pooling", {"copy", "pointwise"}),
    (r"aten::(sum|mean|amax|max|min)$", "reduction", set()),
    (r"aten::(add_?|sub_?|mul_?|div_?|relu|gelu|gelu_backward|clamp_min|tanh|"
     r"threshold_backward|fill_|sqrt|neg|exp|where|silu)$", "pointwise",
     {"copy"}),
    (r"aten::_foreach_(add|mul|div|sqrt|lerp|addcmul|addcdiv)\w*$",
     "pointwise", set()),
    (r"aten::_fused_adam\w*$", "optimizer", set()),
    (r"aten::(copy_|cat|_to_copy|clone)$", "copy", {"pointwise"}),
    (r"aten::embedding\w*$", "indexing", {"other", "pointwise", "copy"}),
    (r"(nccl:|c10d::).*", "collective", {"copy", "pointwise", "reduction"}),
]


def check_ops(table):
    """What launched kernels agrees with their classes."""
    time = collections.defaultdict(collections.Counter)
    wrong = []
    for r in table:
        for pattern, main, others in BY_OP:
            if r["op"] is None or not re.match(pattern, r["op"]):
                continue
            time[r["op"], main][r["class"]] += r["total_us"]
            if r["class"] != main and r["class"] not in others:
                wrong.append("%s of %s is %s" % (r["name"][:60], r["op"],
                                                 r["class"]))
    for (op, main), classes in time.items():
        if op == "aten::copy_":  # conversions of types are pointwise kernels
            continue
        if classes[main] * 2 < sum(classes.values()) and "conv" not in main:
            wrong.append("%s: %s" % (op, dict(classes)))
    return wrong


def check_sums(path, table):
    """--by class has what the rows by name have."""
    sums = collections.defaultdict(collections.Counter)
    for r in table:
        sums[r["class"], r["device"]].update(
            {"calls": r["calls"], "total_us": r["total_us"], "kernels": 1,
             "self_us": r["self_us"]})
    wrong = []
    for r in rows("kernels", path, "--by", "class"):
        want = sums.pop((r["class"], r["device"]), {})
        for k, v in want.items():
            if r[k] != v:
                wrong.append("%s %s: %s, not %s" % (r["class"], k, r[k], v))
        if r["class"] not in CLASSES:
            wrong.append("no class: %s" % r["class"])
    return wrong + ["%s is missing" % (k,) for k in sums]


def check_occupancy(path, table):
    """Kineto's own figures, kernel by kernel."""
    time, weighed = collections.Counter(), collections.Counter()
    with gzip.open(path) as f:
        events = json.load(f)["traceEvents"]
    for e in events:
        a = e.get("args", {})
        if e.get("cat", "").lower() != "kernel" or e.get("ph") != "X":
            continue
        pct = a.get("est. achieved occupancy %")
        if pct is None or pct == 0 and a.get("warps per SM", 64) / 64 >= 0.005:
            continue
        time[e["name"]] += e["dur"]
        weighed[e["name"]] += e["dur"] * pct
    wrong = []
    for r in table:
        got = r["occupancy_pct"]
        want = weighed[r["name"]] / time[r["name"]] if time[r["name"]] else None
        if (got is None) != (want is None) or \
                got is not None and abs(float(got) - want) > 1e-6:
            wrong.append("%s: %s, not %s" % (r["name"][:60], got, want))
    return wrong


def main():
    known = seen = 0
    for path in PROFILES:
        table = rows("kernels", path)
        if not table:
            continue
        label = os.path.relpath(path, DATA)
        wrong = []
        for r in table:
            want = expected(r["name"])
            seen += 1
            known += want is not None
            if want is not None and r["class"] != want:
                wrong.append("%s: %s, not %s" % (r["name"][:70], r["class"],
                                                 want))
        say("names of " + label, wrong)
        say("ops of " + label, check_ops(table))
        say("sums of " + label, check_sums(path, table))
        if path.endswith(".json.gz"):
            say("occupancy of " + label, check_occupancy(path, table))
    say("most names are known to both", [] if known * 4 > seen * 3 else
        "%d of %d" % (known, seen))
    return status()


if __name__ == "__main__":
    sys.exit(main())
