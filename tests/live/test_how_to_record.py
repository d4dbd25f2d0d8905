#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs of docs/how-to-record.md do what the page says: each is run as it
stands there, in a folder of its own, and what it wrote has the steps that the
first line of its block tells. A framework that is not there is a skipped case.

program: $OPSCOPE or build/opscope; prints `ok NAME`, `not ok NAME: why` or
`ok NAME # skip why`."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
OPSCOPE = os.environ.get("OPSCOPE", os.path.join(ROOT, "build", "opscope"))
PAGE = os.path.join(ROOT, "docs", "how-to-record.md")
BLOCK = re.compile(r"^```python steps=(\d+)\n(.*?)^```", re.M | re.S)
NEEDS = {"record-torch": ["torch"], "record-tensorflow": ["tensorflow"],
         "record-keras": ["tensorflow"], "record-jax": ["jax"]}
SMALL = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "",
         "JAX_PLATFORMS": "cpu", "OMP_NUM_THREADS": "1",
         "TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}


def sections():
    """(topic, text) of each section that `opscope help` prints."""
    with open(PAGE, encoding="utf-8") as f:
        parts = re.split(r"^<!-- help: ([a-z-]+) -->\n", f.read(), flags=re.M)
    return zip(parts[1::2], parts[2::2])


def rows(analysis, folder):
    out = subprocess.run([OPSCOPE, analysis, "log", "--format", "json"],
                         cwd=folder, check=True,
                         stdout=subprocess.PIPE).stdout
    doc = json.loads(out)
    names = [c["name"] for c in doc["columns"]]
    return [dict(zip(names, r)) for r in doc["rows"]], doc


def wrong_with(code, steps):
    """What is wrong with a program that should record so many steps."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "train.py"), "w",
                  encoding="utf-8") as f:
            f.write(code)
        p = subprocess.run([sys.executable, "train.py"], cwd=folder,
                           env={**os.environ, **SMALL}, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if p.returncode != 0:
            return "status %d: %s" % (p.returncode, p.stdout[-400:])
        found, _ = rows("steps", folder)
        if len(found) != steps:
            return "%d steps, not %d" % (len(found), steps)
        facts, _ = rows("info", folder)
        how = {r["text"] for r in facts if r["metric"] == "steps found"}
        if how != {"by the markers in the profile"}:
            return "steps found: %s" % how
        shown = subprocess.run([OPSCOPE, "overview", "log"], cwd=folder,
                               text=True, stdout=subprocess.PIPE)
        if shown.returncode != 0 or "%d steps" % steps not in shown.stdout:
            return "overview: " + shown.stdout[:400]
    return None


def main():
    good = True
    for topic, text in sections():
        blocks = BLOCK.findall(text)
        if topic not in NEEDS:
            if blocks:
                good = False
                print("not ok how_to_record %s: a program of no framework"
                      % topic)
            continue
        if not blocks:
            good = False
            print("not ok how_to_record %s: no program" % topic)
        for number, (steps, code) in enumerate(blocks, 1):
            name = "how_to_record %s %d" % (topic, number)
            board = ["tensorboard"] if "callbacks.TensorBoard" in code else []
            missing = [m for m in NEEDS[topic] + board
                       if importlib.util.find_spec(m) is None]
            if missing:
                print("ok %s # skip no %s" % (name, missing[0]))
                continue
            why = wrong_with(code, int(steps))
            good = good and why is None
            print("ok " + name if why is None else
                  "not ok %s: %s" % (name, why.replace("\n", " | ")),
                  flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
