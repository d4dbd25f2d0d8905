#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No text is cut inside of a letter. Profiles of tests/data get long names of
letters of three bytes, moved by 0, 1 and 2 bytes, so that each place where a
text is cut falls into each byte of a letter once; whatever an analysis then
prints holds no U+FFFD, which would stand for half of one.

program: $OPSCOPE or build/opscope; prints `ok NAME` or `not ok NAME: why`
"""
import glob
import gzip
import json
import os
import subprocess
import sys
import tempfile

import invariants_check
from lib import DATA, OPSCOPE, say, status

PROFILES = ["torch_cnn/torch_cnn.pt.trace.json.gz",
            "torch_stack/torch_stack.pt.trace.json.gz",
            "torch_compiled/torch_compiled.pt.trace.json.gz"]
FAULTS = sorted(glob.glob(os.path.join(DATA, "faults", "*.pt.trace.json.gz")))
LETTERS = "日" * 250
# whose names are the program's own; of the others some are known by name
OWN = {"kernel", "user_annotation", "python_function", "gpu_memcpy",
       "gpu_user_annotation", "gpu_memset", "Trace"}


def write(path, out, shift):
    with gzip.open(path) as f:
        doc = json.load(f)
    for e in doc["traceEvents"]:
        name = e.get("name")
        if e.get("ph") == "M" and "name" in e.get("args", {}):
            e["args"]["name"] = str(e["args"]["name"]) + " " * shift + LETTERS
        if e.get("cat") in OWN and not name.startswith("ProfilerStep"):
            e["name"] = name + " " + "x" * shift + LETTERS
        elif e.get("cat") == "cpu_op" and name.startswith("aten::"):
            e["name"] = name + "x" * shift + LETTERS
    with open(out, "w", encoding="utf-8") as f:
        json.dump(doc, f, ensure_ascii=False)


def broken(argv, forms):
    """What an analysis prints with half of a letter in it."""
    wrong = []
    for form in forms:
        p = subprocess.run([OPSCOPE, *argv, "--format", form, "--top", "0"],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        out = p.stdout.decode("utf-8", "replace").replace("\\ufffd", "\ufffd")
        at = out.find("\ufffd")
        if at >= 0:
            wrong.append("%s --format %s: ...%r" % (
                " ".join(argv[:1] + argv[2:]), form, out[max(at - 50, 0):at + 9]))
    return wrong


def check(source, asked, forms=("json", "csv", "text")):
    wrong = []
    with tempfile.TemporaryDirectory() as tmp:
        for shift in range(3):
            path = os.path.join(tmp, "long.pt.trace.json")
            write(source, path, shift)
            for a in asked:
                wrong += broken([a[0], path, *a[1:]], forms)
            for option in ("--columns", "--region"):
                wrong += broken(["ops", path, option, "x" * shift + LETTERS],
                                forms[:1])
    return wrong


def main():
    for name in PROFILES:
        say(name.partition("/")[0], check(os.path.join(DATA, name),
                                          invariants_check.analyses()))
    for path in FAULTS:  # each has hints of its own
        say(os.path.basename(path), check(path, [("hints",)], ("json",)))
    return status()


if __name__ == "__main__":
    sys.exit(main())
