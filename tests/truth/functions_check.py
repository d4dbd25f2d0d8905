#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Functions are no ops: of TensorFlow's profiles, `ops` shows calls of a
tf.function (what carries `tf_function_call` in the file) as rows of kind
"function", below all others, and their time stays in the sums.

program: $OPSCOPE or build/opscope; prints `ok NAME` or `not ok NAME: why`
"""
import collections
import os
import sys

from lib import DATA, rows, say, status, table

CASES = ["tf_keras", "tf_custom", "tf_graph", "tf_graph_fast", "tf_workers",
         "tf_eager"]
ALWAYS = {"tf_keras", "tf_custom", "tf_graph", "tf_graph_fast", "tf_workers"}


def check(case):
    path = os.path.join(DATA, case)
    calls = collections.Counter(
        s["name"] for s in rows("trace", path)
        if s["kind"] == "annotation" and "tf_function_call" in str(s["args"]))
    doc, ops = table("ops", path)
    wrong = []
    if case in ALWAYS and not calls:
        wrong.append("the profile has no call of a function")
    have = {r["name"]: r["calls"] for r in ops if r["kind"] == "function"}
    if have != dict(calls):
        wrong.append("functions: %s, not %s" % (have, dict(calls)))
    kinds = [r["kind"] == "function" for r in ops]
    if kinds != sorted(kinds):
        wrong.append("a function stands above an op")
    if calls and not any("--sort share_pct" in t for t in doc["remarks"]):
        wrong.append("nothing is said of them")
    share = sum(r["share_pct"] or 0 for r in ops)
    if abs(share - 100) > 0.01:
        wrong.append("shares sum to %s" % share)
    others = [r["host_work_us"] or 0 for r in ops if r["kind"] != "function"]
    if others != sorted(others, reverse=True):
        wrong.append("the others are out of order")
    ranked = rows("ops", path, "--sort", "share_pct")
    shares = [r["share_pct"] or 0 for r in ranked]
    if shares != sorted(shares, reverse=True):
        wrong.append("--sort share_pct does not rank all rows")
    key = sorted((r["name"], r["host_self_us"] or 0) for r in ranked)
    if key != sorted((r["name"], r["host_self_us"] or 0) for r in ops):
        wrong.append("--sort changes the rows")
    return wrong


def main():
    for case in CASES:
        say(case, check(case))
    return status()


if __name__ == "__main__":
    sys.exit(main())
