#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hints on programs with one fault each, whose step time was measured without a
profiler before and after the fault was really repaired (tests/data/faults/
*.json). The right hint must come first and its saving must come within 15
points of what the repair gave; a repaired or tuned program gets no hint of
that kind.

usage: faults_check.py      program: $OPSCOPE or build/opscope
prints `ok NAME` or `not ok NAME: why`; exit 1 when anything differs
"""
import json
import os
import sys

import lib

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data", "faults")
OPSCOPE = os.environ.get("OPSCOPE", "build/opscope")
# Which hints are right for a fault: by what was done to the program.
RIGHT = {
    "input": {"input-bound"},
    "sync": {"host-sync"},
    "memcpy": {"copy-pageable", "copy-blocking"},
    "copies": {"copy-pageable", "copy-blocking"},
    "launch": {"launch-bound"},
    "optloop": {"launch-bound", "slow-op"},
    "fp32": {"low-precision-off"},
    "reentrant": {"recompute"},
    "attention": {"slow-attention"},
    "leak": {"memory-leak"},
    "eagerloop": {"not-jitted"},
    "newgraph": {"recompile"},
    # an H200; programs of tests/live/faults
    "attention_bmm": {"slow-attention"},
    "checkpoint_cnn": {"recompute"},
    "cpu_predictions": {"copy-pageable", "copy-blocking", "host-sync"},
    "graph_small": {"launch-bound"},
    "jax_device_get": {"host-sync"},
    "jax_load_batch": {"input-bound"},
    "loader_no_workers": {"input-bound"},
    "numpy_images": {"input-bound"},
    "pinned_exposed": {"copy-blocking"},
    "pointwise_chain": {"unfused-pointwise"},
    "python_metrics": {"python-overhead"},
}
# Savings that are off by more, and why.
OFF = {
    "cpu_predictions": 17,  # what the host does with the copy goes, too
    "jax_device_get": 43,  # launches after a wait are slower than others
}
# Other programs whose trouble is known: what comes first, or None: nothing.
KNOWN = {
    "torch_ddp": "straggler",  # rank 1 sleeps
    "torch_gloo4": "straggler",  # rank 2 sleeps
    "torch_gloo4/torch_gloo4_rank0.pt.trace.json.gz": "comm-exposed",
    "tf_workers": "straggler",  # worker 1 sleeps
    "jax_mlp/vm.xplane.pb": "input-bound",  # load_batch
    "xprof/jax_cpu.xplane.pb.gz": "input-bound",  # load_batch, on a CPU
    "tf_graph": "input-bound",  # a map of 20 ms, no prefetch
    "tf_graph_fast": None,  # the same, repaired
    "tf_eager": "not-jitted",  # no tf.function
    "compile/torch.pt.trace.json.gz": "recompile",
    "compile/jax.xplane.pb.gz": "recompile",
}
SUFFIXES = (".pt.trace.json.gz", ".xplane.pb.gz")
POINTS = 15
TUNED = 5


def hints(path):
    """(id, save_pct) of each hint, best first."""
    return [(r["id"], r["save_pct"])
            for r in lib.rows("hints", path, real=float)]


def check(name, suffix):
    """What is wrong with the hints of that program, or None."""
    found = hints(os.path.join(DATA, name + suffix))
    base = name.split(".")[0]
    if name.endswith(".fixed"):
        again = [f for f in found if f[0] in RIGHT[base] - {"launch-bound",
                                                            "slow-op"}]
        return "repaired, and still %s" % again if again else None
    with open(os.path.join(DATA, name + ".json")) as f:
        gain = 100 * json.load(f)["gain"]
    if name == "tuned":
        over = [f for f in found if f[1] > TUNED]
        return "nothing to find, and yet %s" % over if over else None
    if not found:
        return "no hint"
    if found[0][0] not in RIGHT[base]:
        return "first is %s" % found[0][0]
    if abs(found[0][1] - gain) > OFF.get(name, POINTS):
        return "saves %.1f %%, the repair gave %.1f" % (found[0][1], gain)
    return None


def main():
    bad = 0
    for file in sorted(os.listdir(DATA)):
        suffix = next((x for x in SUFFIXES if file.endswith(x)), None)
        if suffix is None:
            continue
        name = file[:-len(suffix)]
        why = check(name, suffix)
        bad += why is not None
        print("ok faults/%s" % name if why is None
              else "not ok faults/%s: %s" % (name, why))
    for path, want in sorted(KNOWN.items()):
        found = hints(os.path.join(DATA, "..", path))
        first = found[0][0] if found else None
        bad += first != want
        print("ok hints/%s" % path if first == want else
              "not ok hints/%s: first is %s, not %s" % (path, first, want))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
