# SPDX-License-Identifier: Apache-2.0
"""Mutants: which profile is taken, what is done to it, where its files go. A
number says it all; see mutate.py."""

import glob
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

import mutant_files as files
import mutant_json
import mutant_pickle
import mutant_proto
import mutant_ring
import mutant_values as values

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
DATA = os.path.join(ROOT, "tests", "data")
BIG = 700_000  # bytes: from here on fewer formats and options
ENV = {k: v for k, v in os.environ.items()
       if not k.startswith(("LC_", "LANG", "OPSCOPE"))}
ENV.update(LC_ALL="C.UTF-8", COLUMNS="100", TERM="dumb", TZ="UTC")
ENV.setdefault("ASAN_OPTIONS", "detect_leaks=1:abort_on_error=0:exitcode=86:"
               "allocator_may_return_null=1")
ENV["ASAN_OPTIONS"] += ":hard_rss_limit_mb=6000"
ENV.setdefault("UBSAN_OPTIONS",
               "print_stacktrace=1:halt_on_error=1:exitcode=86")


class Tree:
    """A format with a reader and a writer of its own, and mutations."""

    def __init__(self, name, module, seeds, load=None, dump=None, suffix=None):
        self.name, self.seeds, self.module = name, seeds, module
        self.load, self.dump = load or module.load, dump or module.dump
        self.suffix = suffix or "mutant" + files.SUFFIX[name]

    def bytes(self, seed_name, plan, chosen):
        """The file after the chosen steps of the plan. The names of what was
        done are added to it."""
        doc = self.load(self.seeds[seed_name])
        for step in chosen:
            rng = step.rng()
            if step.stage == "tree":
                _, f = pick(rng, self.module.MUTATIONS)
                step.name = f.__name__[2:]
                doc = f(rng, doc, lambda: self.load(self.any(rng)))
            elif step.stage == "full":
                doc = self.module.m_many(rng, doc, None, full=True)
        data = self.dump(doc)
        for step in chosen:
            if step.stage == "bytes":
                rng = step.rng()
                f = rng.choice(values.BYTES)
                step.name = f.__name__
                data = f(rng, data, self.any(rng))
        return data

    def any(self, rng):
        return self.seeds[rng.choice(sorted(self.seeds))]


def pick(rng, weighted):
    return rng.choices(weighted, [w for w, _ in weighted])[0]


class Step:
    """One mutation of a mutant: its stage, and a random generator of its own,
    so that it does the same whether others are done or not."""

    def __init__(self, seed, index, stage):
        self.seed, self.index, self.stage = seed, index, stage
        self.name = stage

    def rng(self):
        return random.Random("%d/%d" % (self.seed, self.index))


class Mutant:
    """Number `seed`. `only`: the steps to take, None for all."""

    def __init__(self, world, seed, only=None, kind=None):
        self.world, self.seed, self.only = world, seed, only
        self.steps = []
        rng = self.rng = random.Random("mutant %d" % seed)
        names = [k for k, _ in KINDS]
        self.kind = rng.choices(names, [w for _, w in KINDS])[0]
        if kind:
            self.kind = kind
        self.wild = self.kind == "packed"
        getattr(self, "plan_" + self.kind, self.plan_tree)(rng)

    def add(self, stage, n=1):
        new = [Step(self.seed, len(self.steps) + i, stage) for i in range(n)]
        self.steps += new
        return new

    def plan_file(self, rng, kind, most, damaged=True):
        """Which seed, and steps for it; some of them on its bytes."""
        t = self.world.kinds[kind]
        name = rng.choice(sorted(t.seeds))
        if name.startswith("whole") and rng.random() < 0.7:
            name = rng.choice(sorted(t.seeds))
        steps = self.add("tree", rng.choice([0, 1, 1, 2, 3, 4, 5][:most + 1]))
        if damaged and (rng.random() < 0.2 or not steps):
            steps += self.add("bytes")
        return kind, name, steps

    def plan_tree(self, rng):
        self.files = [self.plan_file(rng, self.kind, 6)]
        self.packed = rng.random() < 0.06

    def plan_large(self, rng):
        """One thing as often as five million bytes have room for."""
        kind = rng.choice(["kineto", "kineto", "chrome", "xspace", "xspace",
                           "snapshot", "stepstats", "tfevents"])
        self.files = [self.plan_file(rng, kind, 1, False)]
        self.files[0][2].append(self.add("full")[0])
        self.packed = False

    def plan_packed(self, rng):
        kind = rng.choice(sorted(k for k in self.world.kinds if k != "ring"))
        self.files = [self.plan_file(rng, kind, 2)]

    def plan_folder(self, rng):
        usual = rng.choice(["kineto", "xspace", "snapshot", "tfevents"])
        kinds = sorted(k for k in self.world.kinds if k != "ring")
        self.files = []
        if rng.random() < 0.5:  # files that belong together
            for kind, name in rng.choice(SETS):
                self.add("file")
                n = rng.choice([0, 0, 1, 2])
                self.files.append((kind, name, self.add("tree", n)))
        for _ in range(1 + values.count(rng, 5) if not self.files else
                       rng.choice([0, 0, 1])):
            self.add("file")
            self.files.append(self.plan_file(rng, rng.choice(
                [usual, usual, rng.choice(kinds)]), 2))
        self.add("odd", int(rng.random() < 0.4))
        self.add("ranks", int(rng.random() < 0.3))

    def plan_ring(self, rng):
        self.name = rng.choice(["good", "good", "good", "real"])
        self.add("tree", rng.choice([1, 1, 2, 2, 3, 4, 6]))

    def plan_long(self, rng):
        self.files = [self.plan_file(rng, rng.choice(["kineto", "chrome"]), 3)]
        self.add("repeat")

    def chosen(self, steps=None):
        return [s for s in (self.steps if steps is None else steps)
                if self.only is None or s.index in self.only]

    def write(self, folder):
        """Makes the files; returns the paths to load and the bytes that they
        are worth."""
        os.makedirs(folder, exist_ok=True)
        return getattr(self, "write_" + self.kind, self.write_tree)(folder)

    def data(self, i):
        kind, name, steps = self.files[i]
        return self.world.kinds[kind].bytes(name, self, self.chosen(steps))

    def write_tree(self, folder):
        kind = self.files[0][0]
        data = plain = self.data(0)
        path = os.path.join(folder, self.world.kinds[kind].suffix)
        rng = random.Random("pack %d" % self.seed)
        if self.wild or self.packed:
            data, suffix = files.pack(rng, data, self.wild)
            path += suffix
        with open(path, "wb") as f:
            f.write(data)
        return [path if rng.random() < 0.7 else folder], len(plain)

    write_packed = write_tree

    def write_folder(self, folder):
        rng = random.Random("folder %d" % self.seed)
        chosen = {s.index: s for s in self.chosen()}
        out, present = [], [s.index in chosen for s in self.steps
                            if s.stage == "file"]
        for i, (kind, name, steps) in enumerate(self.files):
            if present[i] or not any(present):
                out.append((kind, self.data(i)))
        size = sum(len(b) for _, b in out)
        stages = {s.stage for s in chosen.values()}
        if "ranks" in stages:  # the same rank, or many of them
            kind, b = rng.choice(out)
            n = min(values.count(rng, rng.choice([20, 120, 1500])),
                    BIG // len(b) + 1)
            out += [(kind, b)] * n
            size += n * len(b)
        out = [(k, files.pack(rng, b, False)[0] if rng.random() < 0.2 else b)
               for k, b in out]
        return files.write_folder(rng, folder, out, "odd" in stages), size

    def write_ring(self, folder):
        ring = self.world.ring(self.name)
        for s in self.chosen():
            rng = s.rng()
            _, f = pick(rng, mutant_ring.MUTATIONS)
            s.name = f.__name__[2:]
            ring = f(rng, ring, lambda: self.world.ring(self.name))
        logs = mutant_ring.write(ring, folder)
        return [logs], sum(map(len, ring.parts.values())) + \
            sum(len(b) for _, b in ring.rings) + len(ring.text)

    def write_long(self, folder):
        """So long that several threads read it."""
        data = self.data(0)
        rng = random.Random("long %d" % self.seed)
        at, end = data.find(b"{", 1), data.rfind(b"}", 0, len(data) - 1)
        lines = data[at:end + 1].split(b",\n")
        if any(s.stage == "repeat" for s in self.chosen()) and len(lines) > 3:
            middle = lines[len(lines) // 3:2 * len(lines) // 3 + 1]
            piece = b",\n".join(middle) + b",\n"
            n = rng.choice([9, 17, 26]) * (1 << 20) // max(1, len(piece))
            where = data.find(middle[0])
            data = data[:where] + piece * n + data[where:]
            if rng.random() < 0.5:
                data = rng.choice(values.BYTES)(rng, data, data[:9999])
        path = os.path.join(folder, "mutant.json")
        with open(path, "wb") as f:
            f.write(data)
        return [path], len(data)

    def describe(self):
        what = ",".join("%d:%s" % (s.index, s.name) for s in self.chosen())
        of = self.name if self.kind == "ring" else \
            " ".join(f[1] for f in self.files[:4])
        return "%s of %s" % (what, of)


RUNS = ["oom", "streams", "expandable"]
RESTARTS = "tfevents/torch_restart/events.out.tfevents.1794741778.vm.22179."
SETS = [[("kineto", "memory of %s.pt.trace.json.gz" % r),
         ("snapshot", "whole %s.snapshot.pickle.gz" % r)] for r in RUNS] + [
    [("kineto", "comm of torch_gloo4_rank%d.pt.trace.json.gz" % i)
     for i in range(4)],
    [("tfevents", RESTARTS + "2.1"), ("tfevents", RESTARTS + "3.2")],
    [("xspace", "record/box_%d.xplane.pb" % i) for i in range(2)],
    [("xspace", "whole tf_workers/node%d.xplane.pb" % i) for i in range(2)]]
KINDS = [("kineto", 50), ("chrome", 30), ("xspace", 60), ("stepstats", 20),
         ("snapshot", 40), ("tfevents", 25), ("ring", 35), ("packed", 20),
         ("folder", 25), ("large", 4), ("long", 1)]


class World:
    """Seeds and programs: what all mutants of a run share."""

    def __init__(self, build):
        self.build = build
        self.opscope = os.path.join(build, "opscope")
        self.every = os.path.join(build, "mutate", "every")
        rings = os.path.join(build, "mutate", "rings")
        for p in (self.opscope, self.every, rings):
            if not os.access(p, os.X_OK):
                sys.exit("mutate.py: %s is not there: 'make mutate' builds it "
                         "(with SAN=... for a build with sanitizers)" % p)
        files.EVERY[0] = self.every
        self.kinds = {
            "kineto": Tree("kineto", mutant_json,
                           mutant_json.kineto_seeds(DATA)),
            "xspace": Tree("xspace", mutant_proto,
                           mutant_proto.xspace_seeds(DATA),
                           lambda b: mutant_proto.parse(b, "XSpace")),
            "stepstats": Tree("stepstats", mutant_proto,
                              mutant_proto.stepstats_seeds(DATA), load_stats),
            "snapshot": Tree("snapshot", mutant_pickle,
                             mutant_pickle.seeds(DATA)),
            "tfevents": Tree("tfevents", mutant_proto,
                             mutant_proto.event_seeds(DATA),
                             mutant_proto.parse_events,
                             mutant_proto.dump_events,
                             "events.out.tfevents.1794741778.box"),
        }
        self.kinds["chrome"] = Tree("chrome", mutant_json, self.chrome_seeds())
        self.read_list()
        self.layout = mutant_ring.Layout(self.output(rings, "layout"))
        self.parts = mutant_ring.parts_of(DATA)
        self.real = self.record(rings)
        self.kinds["xspace"].seeds.update(self.capture())

    def output(self, *argv):
        return subprocess.run(argv, stdout=subprocess.PIPE, env=ENV,
                              check=True).stdout.decode()

    def chrome_seeds(self):
        """One of our own, and what opscope writes of other profiles."""
        out = {"chrome": mutant_json.CHROME.encode()}
        with tempfile.TemporaryDirectory(prefix="opscope-mutate-") as tmp:
            for kind, name in (("xspace", "jax_mlp/vm.xplane.pb"),
                               ("xspace", "record/box_0.xplane.pb"),
                               ("xspace", "tf_graph/vm.xplane.pb"),
                               ("kineto", "torch_cnn.pt.trace.json.gz"),
                               ("snapshot", "oom.snapshot.pickle.gz")):
                path = os.path.join(tmp, "in")
                with open(path, "wb") as f:
                    f.write(self.kinds[kind].seeds[name])
                out["export of " + name] = self.output(
                    self.opscope, "convert", path, "-", "--to",
                    "chrome").encode()
        return out

    def read_list(self):
        """Verbs that read, and their options."""
        self.verbs, self.options, self.sanitized = [], {}, False
        for line in self.output(self.every, "list").splitlines():
            what, *rest = line.split("\t")
            if what == "verb" and re.search(r"PATH|IN OUT|LOGDIR", rest[2]):
                self.verbs.append(rest)
                self.options[rest[0]] = []
            elif what == "opt" and rest[0] in self.options:
                self.options[rest[0]].append(rest[1:])
            elif what == "sanitized":
                self.sanitized = True

    def record(self, rings):
        """A recording whose program was killed; only its structure is used,
        the times in it are today's."""
        with tempfile.TemporaryDirectory(prefix="opscope-mutate-") as tmp:
            os.mkdir(os.path.join(tmp, "shm"))
            logs = os.path.join(tmp, "logs")
            subprocess.run([rings, "record", logs], stderr=subprocess.DEVNULL,
                           env={**ENV, "OPSCOPE_SHM": os.path.join(tmp, "shm"),
                                "HOME": tmp})
            seed = os.path.join(tmp, "seed")
            os.mkdir(seed)
            for p in glob.glob(os.path.join(tmp, "shm", "opscope-*")):
                shutil.move(p, os.path.join(seed, "ring"))
            for p in glob.glob(os.path.join(logs, "plugins/profile/*/*.part")):
                shutil.move(p, os.path.join(seed, re.sub(
                    r"^[^.]*", "", os.path.basename(p))))
            if not os.path.exists(os.path.join(seed, "ring")):
                return None
            return mutant_ring.real(self.layout, seed)

    def capture(self):
        """A program that records nothing, watched from outside."""
        with tempfile.TemporaryDirectory(prefix="opscope-mutate-") as tmp:
            subprocess.run([self.opscope, "record", "-q", "-o", tmp, "--",
                            "sh", "-c", "for i in 1 2 3; do sleep 0.03; done"],
                           env={**ENV, "HOME": tmp},
                           stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
            out = {}
            for p in sorted(glob.glob(tmp + "/**/*.xplane.pb",
                                      recursive=True)):
                with open(p, "rb") as f:
                    out["capture %d" % len(out)] = f.read()
            return out

    def ring(self, name):
        if name == "real" and self.real is not None:
            r = mutant_ring.Ring(self.layout)
            for k in ("head", "names", "text"):
                setattr(r, k, bytearray(getattr(self.real, k)))
            r.rings = [[at, bytearray(b)] for at, b in self.real.rings]
            r.size, r.parts = self.real.size, dict(self.real.parts)
            return r
        return mutant_ring.good(self.layout, self.parts)


def load_stats(data):
    """RunMetadata has StepStats in it, and is much like it."""
    m = mutant_proto.parse(data, "RunMetadata")
    inner = m.subs(1)[0][2] if m.subs(1) else None
    if inner is not None and inner.subs(1):
        return m
    return mutant_proto.parse(data, "StepStats")
