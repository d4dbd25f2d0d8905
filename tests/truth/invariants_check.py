#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every analysis over every profile of tests/data, and over small profiles that
were made to break sums and signs, is held to what is always true: see
invariants.py. JSON must be valid for a strict parser, and text, CSV and JSON
must have the same rows. All of it again inside of regions: all that somebody
named, the name that comes most often, and, where nobody named any, the first
op.

The hostile ones are what no program would record but a file may hold: spans
that overlap on one track, of no length, of negative length, longer than what
contains them, at the ends of 64 bits; recursion; numbers given twice; sizes
that no machine has; many devices; and all of it at random.

usage: invariants_check.py [CASE...]      program: $OPSCOPE or build/opscope
prints `ok NAME` or `not ok NAME: why`; exit 1 when anything differs
"""
import collections
import concurrent.futures
import csv
import ctypes
import glob
import io
import json
import os
import pickle
import random
import re
import subprocess
import sys
import tempfile
import urllib.parse

import invariants

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data")
OPSCOPE = os.environ.get("OPSCOPE", "build/opscope")
LIBRARY = os.path.join(os.path.dirname(OPSCOPE), "libopscope.so")
PROFILE = re.compile(r"\.xplane\.pb|trace\.json|run_?metadata|\.pickle", re.I)
BIG = 1 << 62
MOST = (1 << 63) - 1

# Beside each analysis with no options.
MORE = [("steps", "--by", "device"), ("steps", "--by", "epoch"),
        ("kernels", "--group", "shape"),
        ("ops", "--group", "shapes,stack,module"), ("launch", "--by", "call"),
        ("memory", "--by", "category"), ("memory", "--by", "op"),
        ("memory", "--by", "scope"), ("memory", "--by", "stack"),
        ("memory", "--by", "time"), ("allocs", "--peak"),
        ("tree", "--by", "op"), ("tree", "--by", "scope"),
        ("tree", "--by", "code"), ("roofline", "--by", "kernel"),
        ("stacks", "--by", "host"), ("stacks", "--by", "device")]


def analyses():
    path = os.path.join(HERE, "..", "..", "src", "analyze", "analyses.def")
    with open(path, encoding="utf-8") as f:
        names = re.findall(r"^X\((\w+)", f.read(), re.M)
    return [(n,) for n in names] + MORE


# ---- Kineto's and Chrome's JSON ----

class Json:
    """Events as a profiler would write them, or would not."""

    def __init__(self):
        self.events, self.calls = [], 0

    def add(self, **e):
        self.events.append({"ph": "X", "pid": 1, "tid": 1, **e})
        return self

    def op(self, name, ts, dur, tid=1, cat="cpu_op", **args):
        return self.add(cat=cat, name=name, ts=ts, dur=dur, tid=tid, args=args)

    def region(self, name, ts, dur, tid=1):
        return self.add(name=name, ts=ts, dur=dur, tid=tid)

    def kernel(self, name, ts, dur, device=0, stream=7, cat="kernel",
               launch=None, **args):
        """With the call that launched it, at that time."""
        self.calls += 1
        if launch is not None:
            self.add(cat="cuda_runtime", name="cudaLaunchKernel", ts=launch,
                     dur=1, args={"correlation": self.calls})
        return self.add(cat=cat, name=name, pid=device, tid=stream, ts=ts,
                        dur=dur, args={"device": device, "stream": stream,
                                       "correlation": self.calls, **args})

    def mem(self, ts, size, addr, total=None, device=0, tid=1):
        args = {"Bytes": size, "Addr": addr, "Device Id": device,
                "Device Type": 1 if device >= 0 else 0}
        if total is not None:
            args["Total Allocated"] = total
            args["Total Reserved"] = total
        return self.add(ph="i", s="t", cat="cpu_instant_event", ts=ts, tid=tid,
                        name="[memory]", args=args)

    def step(self, number, ts, dur):
        return self.add(cat="user_annotation", name="ProfilerStep#%s" % number,
                        ts=ts, dur=dur)

    def files(self):
        doc = {"profile_memory": 1, "record_shapes": 1,
               "traceEvents": self.events}
        return {"t.json": json.dumps(doc).encode()}


def overlap():
    j = Json().op("p", 0, 100).op("a", 0, 80).op("b", 20, 80)
    j.op("q", 200, 100).op("c", 190, 30).op("d", 250, 100).op("e", 260, 10)
    for i in range(20):
        j.op("chain%d" % (i % 3), 1000 + 7 * i, 40)
    return j


def no_length():
    j = Json().op("p", 0, 0).op("p", 0, 0).op("q", 0, 10).op("r", 10, 0)
    j.kernel("k", 5, 0, launch=5).kernel("k", 5, 0, launch=5)
    return j.step(1, 0, 0).step(2, 0, 0).step(3, 10, 0)


def negative_length():
    j = Json().op("p", 100, -50).op("q", 0, -1).op("r", 0, 200)
    return j.kernel("k", 60, -10, launch=50).step(1, 0, 100).step(2, 50, -10)


def recursion():
    j = Json()
    for i in range(40):
        j.op("f", i, 200 - 2 * i)
        j.region("g", i, 200 - 2 * i, tid=2)
    for i in range(30):
        j.op("x%d" % (i % 2), 300 + i, 100 - 2 * i, tid=3)
    return j.kernel("k", 60, 5, launch=50)


def longer_than_parents():
    j = Json().step(1, 0, 100).step(2, 50, 100).step(2, 60, 20).step(-5, 200, 9)
    for i in range(30):
        j.op("a", 10 * i, 5 + 13 * i)
        j.kernel("k%d" % (i % 2), 10 * i + 3, 25 + i, launch=10 * i + 1)
    return j


def doubled_numbers():
    j = Json().step(1, 0, 1000)
    for i in range(20):
        j.calls = i % 3
        j.op("a", 20 * i, 15)
        j.kernel("k", 20 * i + 5, 30, launch=20 * i + 2)
    for i in range(6):
        j.mem(10 * i, 512, 4096, 512)
    return j


def wide_times():
    """Kineto's times are far from their grid; one of 0 among them."""
    at = 3800000000000
    j = Json().op("first", 0, 1).step(1, at, 1000).step(2, at + 1000, 1000)
    for d in range(5):
        j.op("a", at + 20 * d, 15)
        j.kernel("k", at + 20 * d + 5, 30, device=d, launch=at + 20 * d + 2)
        j.kernel("k", at + 500000000000, 569999000000, device=d)
    return j


def longest_times():
    j = Json()
    for i in range(30):
        j.op("a%d" % (i % 3), 250000000000 * i, 569999000000, tid=i % 4)
        j.kernel("k", 250000000000 * i, 569999000000, device=i % 4,
                 stream=i % 2, launch=250000000000 * i)
    return j.step(1, 0, 7500000000000)


def ends_of_64_bits():
    j = Json()
    for i, v in enumerate((MOST, -MOST, -1 << 63, 1 << 63, 1 << 64, 1e300)):
        j.op("t%d" % i, v, 1).op("d%d" % i, i, v).mem(i, v, v, v)
        j.kernel("k", i, 1, device=v, stream=v, launch=i)
        j.kernel("c", 10 * i, 1, cat="gpu_memcpy", bytes=v)
    return j.op("z", 0, 100)


def many_devices():
    j = Json().step(1, 0, 1000).step(2, 1000, 777)
    rng = random.Random(3)
    for d in range(60):
        for i in range(4):
            at = rng.randrange(1700)
            j.op("a", at, 20, tid=d % 3)
            j.kernel("k%d" % i, at + 7, rng.randrange(300), device=d,
                     stream=i % 2, launch=at + 1)
    return j


def overlapping_kernels():
    j = Json().step(1, 0, 1000)
    for i in range(30):
        j.kernel("k%d" % (i % 4), 13 * i, 60, launch=13 * i)
        j.kernel("Memcpy HtoD (Pageable -> Device)", 13 * i + 1, 50,
                 cat="gpu_memcpy", bytes=1000 + i, launch=13 * i + 2)
        j.kernel("ncclDevKernel_AllReduce_Sum_f32", 13 * i, 100, stream=9,
                 launch=13 * i + 3)
    return j


def huge_blocks():
    """Sizes that reach 64 bits, with no level told."""
    j = Json().op("a", 0, 1000)
    for i in range(12):
        j.mem(10 * i, BIG + i, 4096 * (i + 1), device=i % 2)
    for i in range(5):
        j.mem(200 + i, -BIG - i, 4096 * (i + 1), device=i % 2)
    return j.op("b", 500, 10).mem(505, 100, 7, device=0)


def huge_levels():
    """The same with a level that is as large, or smaller than the blocks."""
    j = Json().op("a", 0, 1000)
    for i in range(12):
        j.mem(10 * i, 1 << 58, 4096 * (i + 1), MOST - i)
    for i in range(12):
        j.mem(300 + 10 * i, 1000, 8192 * (i + 100), 500 - i, device=1)
    return j


def odd_frees():
    j = Json().op("a", 0, 1000)
    for i in range(20):
        j.mem(10 * i, -4096 if i % 3 else 512, 512 * (i % 5), device=i % 2)
        j.mem(10 * i + 1, -100 * i, 0, 1000 * ((i * 7) % 5), device=2)
        j.mem(10 * i + 2, 0, 64, -5, device=-1)
    return j


def huge_copies():
    j = Json().step(1, 0, 1000)
    for i in range(40):
        j.kernel("Memcpy HtoD (Pinned -> Device)", 10 * i, 5, cat="gpu_memcpy",
                 launch=10 * i, bytes=MOST - i)
        j.kernel("ncclDevKernel_AllReduce", 10 * i, 9, stream=9,
                 launch=10 * i + 1, **{"Collective name": "allreduce",
                                       "In msg nelems": MOST, "dtype": "Float",
                                       "Group size": MOST})
    for i in range(5):
        j.op("aten::mm", 80 * i, 9, **{"Input Dims": [[1 << 20, 1 << 20]] * 2,
                                       "Input type": ["float", "float"]})
    return j


def odd_counters():
    j = Json()
    for i, v in enumerate((1e308, 1e308, -1e308, 1e308, 5e-324, MOST, 0)):
        j.add(ph="C", name="c", ts=10 * i, args={"a": v, "b": -v, "c": i})
    return j.op("a", 0, 100)


def odd_python():
    j = Json().step(1, 0, 500)
    for i in range(30):
        j.op("f.py(%d): f" % (i % 3), 5 * i, 200 - 5 * i,
             cat="python_function", **{"Python id": i})
        j.op("g.py(1): g", 7 * i, 90, cat="python_function",
             **{"Python id": 100 + i})
        j.op("a", 11 * i, 30)
    return j


def open_ends():
    j = Json()
    for i in range(10):
        j.add(ph="B", name="b%d" % (i % 3), ts=10 * i)
        j.add(ph="E", ts=15 * i, name="b%d" % (i % 2))
        j.add(ph="b", cat="x", id=i % 4, name="async", ts=3 * i)
        j.add(ph="e", cat="x", id=i % 4, name="async", ts=50 - 3 * i)
        j.add(ph="s", id=i, name="flow", ts=5 * i)
        j.add(ph="f", id=i, name="flow", ts=2 * i, bp="e")
    return j


# Names that mean something to one analysis or another.
NAMES = {
    "cpu_op": ["aten::mm", "aten::copy_", "aten::empty", "gloo:all_reduce",
               "autograd::engine::evaluate_function: AddmmBackward0",
               "AddmmBackward0", "nccl:all_reduce", "aten::item", "x"],
    "user_annotation": [
        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
        "Optimizer.step#SGD.step", "epoch 1", "forward", "load batch",
        "Torch-Compiled Region: 0/0"],
    "python_function": ["nn.Module: Linear_0", "f.py(3): f", "<built-in x>"],
    "cuda_runtime": ["cudaLaunchKernel", "cudaMemcpyAsync", "cudaMalloc",
                     "cudaDeviceSynchronize", "cudaGraphLaunch"],
    "overhead": ["Buffer Flush"],
    "kernel": ["ampere_sgemm_128x64", "ncclDevKernel_AllReduce_Sum_f32", "k"],
    "gpu_memcpy": ["Memcpy HtoD (Pageable -> Device)",
                   "Memcpy DtoH (Device -> Pinned)"],
    "gpu_memset": ["Memset (Device)"],
}


def at_random(seed):
    """Anything, anywhere; the same for the same seed."""
    rng = random.Random(seed)
    spread = 10 ** rng.randrange(1, 13)

    def some(n=None):
        kind = rng.randrange(12)
        if kind == 0:
            return 0
        if kind == 1:
            return rng.choice((-1, MOST, -MOST, 1e15, -1e-3, 0.0005))
        return rng.randrange(n or spread) / rng.choice((1, 1, 7))

    j = Json()
    for i in range(rng.randrange(30, 120)):
        kind = rng.randrange(8)
        if kind < 3:
            cat = rng.choice(("cpu_op", "cpu_op", "user_annotation",
                              "python_function", "cuda_runtime", "overhead"))
            j.op(rng.choice(NAMES[cat]), some(), some(), tid=rng.randrange(3),
                 cat=cat, **{"Input Dims": [[rng.randrange(9), 3]] * 2,
                             "Input type": ["float", "float"],
                             "Sequence number": rng.randrange(4)})
        elif kind < 6:
            cat = rng.choice(("kernel", "kernel", "gpu_memcpy", "gpu_memset"))
            j.kernel(rng.choice(NAMES[cat]), some(), some(),
                     device=rng.randrange(4), stream=rng.randrange(3),
                     launch=rng.choice((None, some())), cat=cat,
                     bytes=rng.randrange(MOST), **{
                         "Collective name": "allreduce", "dtype": "Float",
                         "In msg nelems": rng.randrange(MOST),
                         "Group size": rng.randrange(-1, 5)})
        elif kind == 6:
            j.mem(some(), int(some(MOST)), rng.randrange(5) * 512,
                  rng.choice((None, int(some(MOST)))), rng.randrange(-1, 3))
        else:
            j.step(rng.randrange(-2, 6), some(), some())
    return j


# ---- XSpace ----

def varint(v):
    v &= (1 << 64) - 1
    out = b""
    while v > 127:
        out, v = out + bytes([v & 127 | 128]), v >> 7
    return out + bytes([v])


def uint(number, v):
    return varint(number << 3) + varint(v)


def block(number, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(number << 3 | 2) + varint(len(data)) + data


def xline(number, name, events):
    """events: (metadata id, offset, duration), in ps."""
    body = uint(1, number) + block(2, name) + uint(3, 1000)
    for meta, offset, dur in events:
        body += block(4, uint(1, meta) + uint(2, offset) + uint(3, dur))
    return block(3, body)


def xplane(name, lines, names):
    body = uint(1, len(name)) + block(2, name) + b"".join(lines)
    for i, n in enumerate(names, 1):
        body += block(4, uint(1, i) + block(2, uint(1, i) + block(2, n)))
    return block(1, body)


class Space:
    def __init__(self, *planes):
        self.data = b"".join(planes)

    def files(self):
        return {"t.xplane.pb": self.data}


def tpu_nests():
    """A loop with a body that overlaps itself, and one inside of itself."""
    rng = random.Random(5)
    ops = [(1, 0, 10**9), (1, 10**7, 9 * 10**8)]
    ops += [(rng.randrange(2, 5), rng.randrange(10**9), rng.randrange(10**8))
            for _ in range(60)]
    ops += [(2, 5 * 10**8, 0), (3, 10**9, MOST), (2, -5, 10), (2, MOST, 1)]
    lines = [xline(1, "XLA Ops", ops),
             xline(2, "Steps", [(5, 0, 4 * 10**8), (6, 4 * 10**8, 10**9)])]
    return Space(xplane("/device:TPU:0", lines, [
        "%while.1 = while(x)", "%fusion.2 = fusion(y)", "%copy.3 = copy(z)",
        "%all-reduce.4 = all-reduce(w)", "1", "2"]))


def host_recursion():
    rng = random.Random(6)
    spans = [(1, 10 * i, 1000 - 20 * i) for i in range(40)]
    spans += [(rng.randrange(1, 4), rng.randrange(3000), rng.randrange(500))
              for _ in range(80)]
    return Space(xplane("/host:CPU", [xline(1, "python", spans),
                                      xline(2, "pool", spans[20:])],
                        ["f", "g", "matmul:MatMul"]))


# ---- PyTorch's memory snapshots ----

class Snapshot:
    def __init__(self, segments, events):
        self.doc = {"segments": segments, "device_traces": [events],
                    "allocator_settings": {}}

    def files(self):
        return {"t.pickle": pickle.dumps(self.doc)}


def odd_snapshot():
    """Segments and blocks whose sizes do not fit together or anywhere."""
    rng = random.Random(8)
    sizes = (0, 512, 4096, 1 << 20, 1 << 49, 1 << 50, BIG, MOST, -1, -MOST)

    def size():
        return rng.choice(sizes)

    def some_block(at):
        return {"address": at, "size": size(), "requested_size": size(),
                "state": rng.choice(("active_allocated", "inactive",
                                     "active_pending_free")), "frames": []}
    segments = [{"device": 0, "address": 4096 * i, "total_size": size(),
                 "allocated_size": size(), "active_size": size(),
                 "requested_size": size(), "stream": 0,
                 "segment_type": "large", "is_expandable": False,
                 "segment_pool_id": (0, 0), "frames": [],
                 "blocks": [some_block(4096 * i + 64 * k) for k in range(3)]}
                for i in range(30)]
    events = [{"action": rng.choice(("alloc", "free_completed", "alloc",
                                     "free_requested", "segment_alloc",
                                     "segment_free", "oom")),
               "addr": 64 * rng.randrange(40), "size": size(), "stream": 0,
               "time_us": 1000 + i, "frames": [], "device_free": size()}
              for i in range(120)]
    return Snapshot(segments, events)


HOSTILE = {f.__name__: f for f in (
    overlap, no_length, negative_length, recursion, longer_than_parents,
    doubled_numbers, wide_times, longest_times, ends_of_64_bits, many_devices,
    overlapping_kernels, huge_blocks, huge_levels, odd_frees, huge_copies,
    odd_counters, odd_python, open_ends, tpu_nests, host_recursion,
    odd_snapshot)}
HOSTILE.update({"random %d" % i: lambda i=i: at_random(i) for i in range(16)})


# ---- asking ----

class Library:
    """All analyses of a profile that is read once."""

    def __init__(self, path):
        self.lib = ctypes.CDLL(os.path.abspath(LIBRARY))
        for f in ("json", "csv", "text"):
            getattr(self.lib, "ops_result_" + f).restype = ctypes.c_void_p
        self.lib.ops_text_free.argtypes = [ctypes.c_void_p]
        self.err = ctypes.create_string_buffer(4096)
        self.p = ctypes.c_void_p()
        self.failed = self.lib.ops_open(ctypes.byref(self.p), path.encode(),
                                        self.err) != 0

    def why(self):
        return self.err.raw[4:].split(b"\0")[0].decode()

    def ask(self, words):
        """(json, csv, text), or a sentence."""
        if self.failed:
            return self.why()
        r = ctypes.c_void_p()
        options = "&".join(
            "%s=%s" % (a[2:], urllib.parse.quote(b, errors="surrogateescape"))
            for a, b in zip(words[1::2], [*words[2::2], "1"]))
        if self.lib.ops_run(self.p, words[0].encode(), options.encode(),
                            ctypes.byref(r), self.err) != 0:
            return self.why()
        forms = []
        for f in ("json", "csv", "text"):
            n = ctypes.c_size_t()
            at = getattr(self.lib, "ops_result_" + f)(r, ctypes.byref(n))
            forms.append(ctypes.string_at(at, n.value))
            self.lib.ops_text_free(at)
        self.lib.ops_result_free(r)
        return forms

    def close(self):
        self.lib.ops_close(self.p)


class Program:
    """The same by the command, where there is no library."""

    def __init__(self, path):
        self.path = path

    def ask(self, words):
        forms = []
        for form in ("json", "csv", "text"):
            out = subprocess.run([OPSCOPE, words[0], self.path, *words[1:],
                                  "--top", "0", "--format", form],
                                 stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, timeout=600)
            if out.returncode not in (0, 1, 2, 4):
                raise RuntimeError("%s: exit %d: %s" % (
                    " ".join(words), out.returncode, out.stderr[-300:]))
            if out.returncode != 0:
                return out.stderr.decode().strip()
            forms.append(out.stdout)
        return forms

    def close(self):
        pass


def forms_differ(doc, table, text):
    rows = list(csv.reader(io.StringIO(table.decode("utf-8"), newline="")))
    if len(rows) != len(doc["rows"]) + 1:
        return ["CSV has %d rows, JSON %d" % (len(rows) - 1, len(doc["rows"]))]
    if any(len(r) != len(doc["columns"]) for r in rows):
        return ["CSV has a row of another length"]
    if (b"(no rows)" in text) != (not doc["rows"]):
        return ["text has other rows than JSON"]
    return []


def regions_of(docs):
    """Names to try --region with, as patterns that match them alone."""
    spans = invariants.table(docs.get(("trace",), {"columns": [], "rows": []}))
    named = collections.Counter(r["name"] for r in spans
                                if r["kind"] == "annotation")
    names = ["*"] if named else []
    names += [n for n, _ in named.most_common(1)]
    names += [r["name"] for r in spans if r["kind"] == "op"][:not named]
    return [n if n == "*" else re.sub(r"([*?\[\]\\/])", r"\\\1", n)
            for n in names if n]


def check_all(asked, region=None):
    """Every analysis. Returns what is wrong, and the results."""
    wrong, docs = [], {}
    for words in analyses():
        inside = ("--region", region) if region else ()
        forms = asked.ask((words[0], *inside, *words[1:]))
        if isinstance(forms, str):  # a sentence, such as: no such device
            if not forms:
                wrong.append("%s: fails without a word" % " ".join(words))
            continue
        try:
            doc = invariants.parsed(forms[0])
        except ValueError as e:
            wrong.append("%s: JSON: %s" % (" ".join(words), e))
            continue
        docs[words] = doc
        wrong += ["%s: %s" % (" ".join(words), w) for w in
                  invariants.problems_of(words[0], doc) +
                  forms_differ(doc, *forms[1:])]
    wrong += invariants.problems_together(docs)
    # a device may have annotations where the host has none
    if not docs and not (region and "the profile has no host spans" in forms):
        wrong.append("nothing could be asked: %s" % forms)
    return wrong, docs


def check(name, path):
    """Everything about one profile."""
    csv.field_size_limit(1 << 30)
    asked = Library(path) if os.path.exists(LIBRARY) else Program(path)
    wrong, docs = check_all(asked)
    for region in regions_of(docs):
        wrong += ["in region %s: %s" % (region, w)
                  for w in check_all(asked, region)[0]]
    asked.close()
    return name, wrong


def cases(folder, only):
    files = sorted(glob.glob(os.path.join(DATA, "**", "*"), recursive=True))
    for path in files:
        if os.path.isfile(path) and PROFILE.search(path) and \
                "/xprof/" not in path:
            yield os.path.relpath(path, DATA), path
    for ranks in ("torch_ddp", "torch_gloo4"):
        yield ranks, os.path.join(DATA, ranks)
    for name, make in HOSTILE.items():
        where = os.path.join(folder, name.replace(" ", "_"))
        os.mkdir(where)
        for file, data in make().files().items():
            with open(os.path.join(where, file), "wb") as f:
                f.write(data)
            yield name, os.path.join(where, file)


def main():
    good, only = True, set(sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ProcessPoolExecutor(os.cpu_count()) as pool:
        jobs = [(n, pool.submit(check, n, p)) for n, p in cases(folder, only)
                if not only or n in only]
        for name, job in jobs:
            try:
                wrong = job.result()[1]
            except Exception as e:  # the program died, or hangs
                wrong = ["%s: %s" % (type(e).__name__, e)]
            print("not ok invariants_check %s: %s" % (name, "; ".join(
                w[:300] for w in wrong[:6])) if wrong
                else "ok invariants_check %s" % name, flush=True)
            good &= not wrong
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
