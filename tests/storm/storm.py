#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A storm over the recorder: programs made at random, held to its promises.

Each program (grammar.py) is a tree of processes and threads that record, fork,
exec, take signals, close descriptors, load plugins and die; it runs once with
the recorder forbidden and once with it. Its status, output and files must be
the same, and everything that it recorded must be in the profiles or counted as
lost (trial.py, judge.py). A script that fails is made smaller and printed.

  tests/storm/storm.py [--seconds S | --count N] [--seed N] [--jobs N]
                       [--san none|thread|address|all] [--without A,B]
                       [--more A,B] [--keep FOLDER]
  tests/storm/storm.py --script FILE [--count N]
  tests/storm/storm.py --control          both runs without the recorder: finds
                                          faults of the storm's own
  tests/storm/storm.py --show SEED        the script of a seed
  tests/storm/storm.py --features         what can be switched off"""

import argparse
import glob
import json
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
import grammar  # noqa: E402
try:
    import google.protobuf as protobuf
except ImportError:
    protobuf = None
if protobuf is not None:
    import trial

SOURCES = ["main.c", "session.c", "record.c", "process.c", "threads.c",
           "signals.c", "descriptors.c"]
FLAGS = ["-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Wshadow",
         "-Wstrict-prototypes", "-Wmissing-prototypes", "-Werror",
         "-D_GNU_SOURCE", "-pthread", "-I" + os.path.join(ROOT, "include")]
SANITIZERS = {"thread": "thread", "address": "address,undefined"}
SMALLER_S = 60  # at most, for a failing script
HANG_S = 7      # when a program that hung is tried again


# --- building -------------------------------------------------------------

def cc(*args):
    p = subprocess.run([os.environ.get("CC", "gcc"), *FLAGS, *args],
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if p.returncode != 0:
        sys.stdout.write(p.stdout.decode(errors="replace"))
        raise SystemExit(f"not ok storm: cannot be built: {args[-1]}")


def build_plain(to, build):
    sources = [os.path.join(HERE, x) for x in SOURCES]
    archive = os.path.join(build, "libopscope-record.a")
    library = os.path.join(build, "libopscope-record.so")
    programs = {"folder": to, "static": os.path.join(to, "program")}
    cc("-rdynamic", "-o", programs["static"], *sources, archive, "-ldl")
    if os.path.exists(library):
        with open(os.path.join(ROOT, "VERSION")) as f:
            major = f.read().split(".")[0]
        os.symlink(library, os.path.join(to, "libopscope-record.so." + major))
        programs["shared"] = os.path.join(to, "program-so")
        cc("-o", programs["shared"], *sources, library, "-ldl")
    plugin = os.path.join(HERE, "plugin.c")
    cc("-shared", "-fPIC", "-o", os.path.join(to, "plugin-shared.so"), plugin)
    cc("-shared", "-fPIC", "-DOWN", "-Wl,-Bsymbolic", "-o",
       os.path.join(to, "plugin-own.so"), plugin, archive)
    return programs


def build_sanitized(programs, which):
    """The program and the recorder's own sources, both with the sanitizer."""
    out = os.path.join(programs["folder"], "program-" + which)
    sources = [os.path.join(HERE, x) for x in SOURCES] + sorted(
        x for room in ("ring", "rec", "rec/machine")
        for x in glob.glob(os.path.join(ROOT, "src", room, "*.c"))) + [
        os.path.join(ROOT, "src/base/text", x) for x in ("json.c", "utf8.c")]
    cc("-fsanitize=" + SANITIZERS[which], "-fno-sanitize-recover=all",
       "-I" + os.path.join(ROOT, "src"), '-DOPS_VERSION="0"', "-o", out,
       *sources, "-ldl")
    programs[which] = out


def sanitizer_works(to, which):
    src, exe = os.path.join(to, "try.c"), os.path.join(to, "try")
    with open(src, "w") as f:
        f.write("int main(void) { return 0; }\n")
    p = subprocess.run([os.environ.get("CC", "gcc"), "-fsanitize=" +
                        SANITIZERS[which], "-o", exe, src],
                       stderr=subprocess.DEVNULL)
    return p.returncode == 0 and subprocess.run(
        [exe], stderr=subprocess.DEVNULL).returncode == 0


# --- trying ---------------------------------------------------------------

class Worker:
    """Tries scripts, one after the other, in a process of its own."""

    def __init__(self, options, programs, tmp):
        self.o, self.programs, self.tmp = options, programs, tmp
        self.n = 0

    def attempt(self, script, variant, keep=None, limit=None):
        self.n += 1
        folder = os.path.join(self.tmp, f"w{os.getpid()}-{self.n}")
        os.mkdir(folder)
        try:
            t = trial.Trial(script, folder, self.programs,
                            os.path.join(self.o.build, "opscope"), variant,
                            self.o.without, limit, self.o.control)
            found = t.go()
            if found and keep:
                shutil.rmtree(keep, ignore_errors=True)
                shutil.copytree(folder, keep, symlinks=True)
            return found, t.counts
        finally:
            # a folder without permissions is still ours
            subprocess.run(["chmod", "-R", "u+rwX", folder], check=False,
                           stderr=subprocess.DEVNULL)
            shutil.rmtree(folder, ignore_errors=True)

    def fails(self, script, variant, kind, tries):
        limit = HANG_S if kind == "hang" else None
        for _ in range(tries):
            found, _ = self.attempt(script, variant, None, limit)
            if any(f.kind == kind for f in found):
                return True
        return False

    def smaller(self, script, variant, kind, until):
        """The script without what it does not need to fail in this way."""
        hits = 3 if kind == "hang" else sum(
            self.fails(script, variant, kind, 1) for _ in range(3))
        if hits == 0 and not self.fails(script, variant, kind, 12):
            return None
        tries = 1 if kind == "hang" else {3: 2, 2: 4, 1: 8, 0: 16}[hits]

        def good(candidate):
            return time.monotonic() < until and \
                self.fails(candidate, variant, kind, tries)

        for key in list(script.settings):
            c = script.without((), (key,))
            if good(c):
                script = c
        size = max(len(script.acts()) // 2, 1)
        while time.monotonic() < until:
            acts = [a.id for a in script.acts()]
            i, shrunk = 0, False
            while i < len(acts) and time.monotonic() < until:
                c = script.without(set(acts[i:i + size]))
                here = {a.id for a in c.acts()}
                if good(c):
                    script, shrunk = c, True
                    acts = [a for a in acts if a in here]
                else:
                    i += size
            if size == 1 and not shrunk:
                break
            size = max(size // 2, 1)
        return script


def make(seed, options, variant):
    off = options.without | grammar.NOT_SANITIZED.get(variant, set())
    return grammar.make(seed, off, options.more)


def work(options, programs, tmp, variant, seeds, until, to):
    """A worker's life: seeds until the time is over; one line of JSON each."""
    trial.prctl(trial.PR_SET_PDEATHSIG, signal.SIGTERM)
    trial.prctl(trial.PR_SET_CHILD_SUBREAPER, 1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
    os.umask(0o022)

    def end(*_):
        raise SystemExit(1)
    signal.signal(signal.SIGTERM, end)
    w, parent = Worker(options, programs, tmp), os.getppid()
    try:
        for seed in seeds:
            if time.monotonic() >= until:
                break
            script = options.scripts[seed] if options.scripts else \
                make(seed, options, variant)
            keep = options.keep and os.path.join(options.keep,
                                                 f"{variant}-{seed}")
            found, counts = w.attempt(script, variant, keep)
            line = {"seed": seed, "counts": counts,
                    "found": [(f.kind, f.text) for f in found]}
            if found and options.smaller > 0 and found[0].kind != "own":
                options.smaller -= 1
                s = w.smaller(script, variant, found[0].kind,
                              time.monotonic() + SMALLER_S)
                line["script"] = (s or script).outline()
                line["text"] = (s or script).text()
                line["again"] = s is not None
            to.write(json.dumps(line) + "\n")
            to.flush()
    finally:
        trial.kill_all()
        if os.getppid() != parent:  # nobody else will
            shutil.rmtree(tmp, ignore_errors=True)


class Storm:
    """Workers, and what they have to tell."""

    def __init__(self, options, programs, tmp):
        self.o, self.programs, self.tmp = options, programs, tmp
        self.bad = self.programs_run = 0
        self.pids = []

    def fork(self, variant, seeds, until):
        r, w = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(r)
            rc = 1
            try:
                work(self.o, self.programs, self.tmp, variant, seeds, until,
                     os.fdopen(w, "w"))
                rc = 0
            except (KeyboardInterrupt, SystemExit):
                pass
            except BaseException:
                traceback.print_exc(file=sys.stdout)
                sys.stdout.flush()
            finally:
                os._exit(rc)
        os.close(w)
        self.pids.append(pid)
        return os.fdopen(r)

    def tell(self, variant, line):
        self.bad += 1
        name = f"storm {variant} seed {line['seed']}"
        kinds = [f"{k}: {t}" for k, t in line["found"]]
        first, _, rest = kinds[0].partition("\n")
        print(f"not ok {name}: {first}")
        for text in rest.split("\n")[:40] + kinds[1:4]:
            for part in text.split("\n")[:40]:
                if part:
                    print("#   " + part[:160])
        if "script" in line:
            print("# " + ("it is enough to:" if line["again"] else
                          "it did not happen again; all of it:"))
            for x in line["script"]:
                print("#     " + x)
        if self.o.keep and "text" in line:
            path = os.path.join(self.o.keep, f"{variant}-{line['seed']}.storm")
            with open(path, "w") as f:
                f.write(line["text"])
        sys.stdout.flush()

    def one(self, variant, seconds):
        """A variant for some seconds, or as many programs as were asked for."""
        o = self.o
        n = len(o.scripts) if o.scripts else o.count or 1 << 40
        seeds = range(0 if o.scripts else o.seed,
                      (0 if o.scripts else o.seed) + n)
        began = time.monotonic()
        until = began + (seconds if not o.count and not o.scripts
                         else 1 << 30)
        pipes = [self.fork(variant, seeds[i::o.jobs], until)
                 for i in range(min(o.jobs, n))]
        total, count, bad = {}, 0, 0
        while pipes:
            for p in select.select(pipes, [], [])[0]:
                line = p.readline()
                if not line:
                    pipes.remove(p)
                    p.close()
                    continue
                line = json.loads(line)
                count += 1
                for k, v in line["counts"].items():
                    total[k] = total.get(k, 0) + v
                if line["found"]:
                    bad += 1
                    self.tell(variant, line)
                if bad >= o.most:
                    self.stop()
        for pid in self.pids:
            if os.waitpid(pid, 0)[1] != 0 and bad < o.most:
                bad += 1
                self.bad += 1
                print(f"not ok storm {variant}: a worker died")
        self.pids = []
        what = f"{count} programs from seed {seeds[0]}, " + ", ".join(
            f"{v} {k}" for k, v in total.items()) + \
            f", {time.monotonic() - began:.0f} s"
        if bad == 0:
            print(f"ok storm {variant}: {what}")
        else:
            print(f"# storm {variant}: {bad} of {what}")
        sys.stdout.flush()

    def stop(self):
        for pid in self.pids:
            try:
                os.kill(pid, signal.SIGTERM)
            except OSError:
                pass


def run(o, tmp):
    programs = build_plain(tmp, o.build)
    variants = ["static"] if o.san in ("none", "all") else []
    if o.san != "none":
        for which in SANITIZERS if o.san == "all" else [o.san]:
            if sanitizer_works(tmp, which):
                build_sanitized(programs, which)
                variants.append(which)
            else:
                print(f"ok storm {which} # skip no -fsanitize={which} here")
    storm = Storm(o, programs, tmp)
    print(f"# storm: --seed {o.seed}", flush=True)
    # what is slow gets a sixth of the time each
    share = {"static": 4, "thread": 1, "address": 1}
    whole = sum(share[v] for v in variants)

    def end(*_):
        raise SystemExit(1)
    signal.signal(signal.SIGTERM, end)
    try:
        for v in variants:
            storm.one(v, o.seconds * share[v] / whole)
    finally:
        storm.stop()
        for pid in storm.pids:
            try:
                os.waitpid(pid, 0)
            except ChildProcessError:
                pass
    return 1 if storm.bad else 0


def skipped(build):
    """Why there is nothing to do here; or None."""
    if protobuf is None:
        return "the protobuf package is not installed"
    if any(x in os.path.basename(build) for x in ("-address", "-thread",
                                                  "-undefined")):
        return "the plain build does this, with the sanitizers too"
    return None


def words(text):
    names = {x for x in text.split(",") if x}
    unknown = names - set(grammar.FEATURES) - set(grammar.CHECKS)
    if unknown:
        raise argparse.ArgumentTypeError("there is no " + ", ".join(unknown))
    return names


def main():
    ap = argparse.ArgumentParser(
        usage=argparse.SUPPRESS, description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--seconds", type=float, default=60)
    ap.add_argument("--count", type=int)
    ap.add_argument("--seed", type=int)
    ap.add_argument("--jobs", type=int, default=2)
    ap.add_argument("--build", default=os.environ.get(
        "BUILD", os.path.join(ROOT, "build")))
    ap.add_argument("--keep", help="a folder for what failing programs left")
    ap.add_argument("--without", type=words, default=set())
    ap.add_argument("--more", type=words, default=set())
    ap.add_argument("--san", default="none",
                    choices=["none", "thread", "address", "all"])
    ap.add_argument("--most", type=int, default=5,
                    help="failures after which it stops")
    ap.add_argument("--smaller", type=int, default=2,
                    help="failing scripts of each job to make smaller")
    ap.add_argument("--script")
    ap.add_argument("--show", type=int)
    ap.add_argument("--control", action="store_true")
    ap.add_argument("--features", action="store_true")
    o = ap.parse_args()
    o.build = os.path.abspath(o.build)
    if o.features:
        for name, what in [*grammar.FEATURES.items(),
                           *grammar.CHECKS.items()]:
            print(f"{name:16}{what}")
        return 0
    if o.show is not None:
        print(make(o.show, o, "static").text(), end="")
        return 0
    if skipped(o.build):
        print("ok storm # skip " + skipped(o.build))
        return 0
    if o.seed is None:
        o.seed = int(time.time()) % 10**9
    o.scripts = None
    if o.script:
        with open(o.script) as f:
            o.scripts = [grammar.parse(f.read())] * (o.count or 1)
    if o.keep:
        o.keep = os.path.abspath(o.keep)
        os.makedirs(o.keep, exist_ok=True)
    tmp = tempfile.mkdtemp(prefix="opscope-storm-")
    try:
        return run(o, tmp)
    finally:
        shutil.rmtree(tmp, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
