# SPDX-License-Identifier: Apache-2.0
"""Scripts for the storm's program (storm.h): made at random from a seed, as
text and back. What a program does that can be seen from outside (its status,
what it prints, its files) follows from the script alone; only what is not
compared may depend on time. That is why acts which show something stand only
where nothing can take it away: a process ends when the threads that show
something have ended, and what changes the whole process (its limits, its
folder, all of its descriptors) happens where one thread runs."""

import random

# Every act and setting has a feature, by which it can be switched off.
FEATURES = {
    # records
    "scope": "scopes, with and without arguments",
    "literal": "a scope whose name is a literal",
    "hand": "begin and end by hand, nested",
    "within": "a scope around other acts, also around a fork",
    "badend": "an end without a begin",
    "deep": "scopes deeper than are recorded",
    "instant": "instants", "counter": "counters", "memory": "alloc and free",
    "scalar": "points of curves", "step": "steps", "epoch": "epochs",
    "async": "spans that end elsewhere", "flow": "arrows",
    "device": "device spans", "tracer": "a device's tracer",
    "tracer_null": "a tracer whose device has no name",
    "name": "names of threads", "nulls": "NULL where a text should be",
    # the session
    "start": "more starts", "stop": "stops", "dump": "dumps",
    "flush": "flushes", "flight": "the flight recorder",
    "windows": "windows of steps", "time_windows": "windows of time",
    "small_rings": "rings that overflow", "automatic": "OPSCOPE=1",
    "usr1": "the signal that a recorder may take",
    "capture": "a capture on demand", "rank": "ranks",
    "setenv": "variables that a program sets for itself",
    "tsc": "the system's clock", "machine": "no machine counters",
    "no_fork": "children that do not record",
    "shm_folder": "rings in a folder of their own",
    "shm_relative": "rings in a folder with a relative path",
    "rmlogs": "the log folder is removed",
    "rmlogs_ask": "and ops_problem() is asked",
    # threads
    "thread": "threads", "detach": "detached ones", "tiny": "tiny stacks",
    "tiny_fork": "children of threads with tiny stacks",
    "crowd": "many short threads", "keyed": "records at a thread's end",
    "cancel": "deferred cancellation",
    "async_cancel": "asynchronous cancellation outside of calls",
    "pthread_exit": "main() ends before its threads do",
    "exit_in_thread": "exit() in another thread than the first",
    # processes
    "fork": "children", "orphan": "children that outlive their parents",
    "double_fork": "a child that has children before its first record",
    "vfork": "vfork", "spawn": "posix_spawn", "exec": "exec of itself",
    "clone": "children by the bare system call",
    "clone_start": "such children that start by themselves",
    "clone_hold": "such children that outlive a killed parent",
    "gather": "memory of dead children", "kills": "children that are killed",
    "_exit": "_exit and quick_exit", "atexit": "records at the end",
    "stdio": "text that is flushed at the end",
    "plugin_own": "a plugin with a recorder of its own",
    "plugin_shared": "a plugin that uses the program's",
    # descriptors
    "files": "files with known contents",
    "closeall": "closing what the program did not open",
    "dupover": "copies over numbers that are not the program's",
    "fill": "all numbers in use", "lowest": "the lowest number is mine",
    "pipe": "the end of a pipe comes at the right time",
    "lock": "locks of files",
    # signals
    "raise": "signals to a thread or to all", "onstack": "small stacks for "
    "handlers", "timer": "a thousand signals a second",
    "pending": "blocked signals", "sigwait": "sigwait",
    "jump": "siglongjmp out of handlers", "longjmp": "longjmp out of scopes",
    # the process
    "chdir": "another folder", "umask": "another umask",
    "limit_nofile": "few descriptors", "limit_fsize": "small files",
    "limit_stack": "a small limit on stacks",
    # from outside
    "kill": "everything is killed at some moment",
    "beside_reader": "somebody reads meanwhile",
    "beside_rescue": "somebody looks for dead runs meanwhile",
    "under_record": "the program runs under `opscope record`",
    "link_shared": "the recorder is a shared library",
}

# What is looked at beside that, and can be left out, too.
CHECKS = {
    "scalars_in_memory": "`scalars` has the points that a rescue would find",
    "loss_note": "opscope tells of as many losses as the profiles",
    "record_gathers": "`opscope record` closes what its processes left",
}

# What the sanitizers' own run-time cannot do. Their memory does not survive a
# fork() of a program with threads; that for threads takes descriptors for
# things that one thread hands to another, loses sight of locks in a thread that
# is cancelled, and keeps signals back.
NOT_ADDRESS = {"clone", "clone_start", "clone_hold", "tiny", "tiny_fork",
               "limit_stack", "plugin_own", "plugin_shared", "link_shared",
               "under_record", "fork", "orphan", "double_fork", "gather"}
NOT_SANITIZED = {
    "address": NOT_ADDRESS,
    # the sanitizer's own thread keeps a process whose threads have all left
    "thread": NOT_ADDRESS | {"vfork", "jump", "closeall", "dupover", "fill",
                             "cancel", "async_cancel", "pthread_exit"},
}

BODY_VERBS = {"thread", "fork", "clone", "vfork", "spawn", "within", "timer",
              "atexit", "leave"}


class Act:
    def __init__(self, number, verb, args):
        self.id, self.verb, self.args = number, verb, args

    def body(self):
        """The body that it runs, or None."""
        return int(self.args["body"]) if "body" in self.args else None

    def num(self, key, none=0):
        return int(self.args.get(key, none))

    def line(self):
        return " ".join([str(self.id), self.verb,
                         *(f"{k}={v}" for k, v in self.args.items())])


class Script:
    """Settings for whoever runs it, and bodies of acts."""

    def __init__(self):
        self.settings = {}
        self.bodies = {0: []}

    def acts(self):
        return [a for acts in self.bodies.values() for a in acts]

    def body_of(self):
        """By act: the body in which it stands."""
        return {a.id: n for n, acts in self.bodies.items() for a in acts}

    def verbs(self):
        return {a.verb for a in self.acts()}

    def text(self):
        lines = [f"set {k}={v}" for k, v in sorted(self.settings.items())]
        for n, acts in sorted(self.bodies.items()):
            lines.append(f"body {n}")
            lines += [a.line() for a in acts]
        return "\n".join(lines) + "\n"

    def without(self, drop, settings=()):
        """A copy without some acts, and without bodies that nobody runs."""
        s = Script()
        s.settings = {k: v for k, v in self.settings.items()
                      if k not in settings}
        kept = {n: [a for a in acts if a.id not in drop]
                for n, acts in self.bodies.items()}
        todo, s.bodies = [0], {}
        while todo:
            n = todo.pop()
            s.bodies[n] = kept.get(n, [])
            todo += [a.body() for a in s.bodies[n] if a.body() is not None]
        return s

    def outline(self):
        """For people: bodies stand under the acts that run them."""
        lines = [f"{k}={v}" for k, v in sorted(self.settings.items())]

        def show(n, indent):
            for a in self.bodies.get(n, []):
                lines.append("  " * indent + a.line())
                if a.body() is not None:
                    show(a.body(), indent + 1)
        show(0, 0)
        return lines


def parse(text):
    s, acts = Script(), None
    for line in text.split("\n"):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if words[0] == "set":
            key, _, value = line[4:].strip().partition("=")
            s.settings[key] = value
        elif words[0] == "body":
            acts = s.bodies.setdefault(int(words[1]), [])
        else:
            acts.append(Act(int(words[0]), words[1],
                            dict(w.split("=", 1) for w in words[2:])))
    return s


class Process:
    """What is known of a process while its script is made."""

    def __init__(self, depth, held=0):
        self.depth = depth
        self.held = held  # descriptors that it keeps open
        self.loud = 0     # threads that show something and may still run
        self.quiet = 0    # threads that show nothing and may still run
        self.signals = list(range(16))
        self.limited = False

    def alone(self):
        return self.loud == 0 and self.quiet == 0


class Place:
    """Where an act is to stand."""

    def __init__(self, process, thread=False, top=True, quiet=False,
                 tiny=False, simple=False):
        self.p, self.thread, self.top = process, thread, top
        self.quiet = quiet    # nothing may be shown
        self.tiny = tiny      # little stack
        self.simple = simple  # records and no more


class Maker:
    def __init__(self, seed, without=(), more=()):
        self.r = random.Random(seed)
        self.off, self.more = set(without), set(more)
        self.s = Script()
        self.acts = self.processes = self.threads = 0
        self.next = 1
        self.budget = self.r.choice([6, 12, 12, 25, 25, 40, 60])
        self.held = False
        self.chdir = False

    def on(self, *features):
        return not self.off.intersection(features)

    def chance(self, p, *features):
        if self.more.intersection(features):
            p = min(4 * p, 0.8)
        return self.r.random() < p and self.on(*features)

    def few(self, most=300):
        """Mostly few, sometimes many."""
        return max(1, int(most ** self.r.random()))

    def act(self, body_, verb_, **args):
        a = Act(self.next, verb_, {k: str(v) for k, v in args.items()
                                   if v is not None})
        self.next += 1
        self.acts += 1
        self.s.bodies[body_].append(a)
        return a

    def body(self):
        n = len(self.s.bodies)
        self.s.bodies[n] = []
        return n

    # --- what there is to choose from -------------------------------------

    def choices(self, at):
        """(weight, feature, method) of what may stand here."""
        c = [(10, "scope", self.scope), (2, "literal", self.literal),
             (4, "hand", self.hand), (4, "instant", self.counted),
             (4, "counter", self.counted), (4, "memory", self.counted),
             (4, "scalar", self.counted), (4, "step", self.counted),
             (2, "epoch", self.counted), (3, "async", self.async_),
             (3, "flow", self.counted), (3, "device", self.counted),
             (1, "name", self.plain), (1, "nulls", self.plain),
             (1, "badend", self.counted), (3, "flush", self.plain),
             (2, "dump", self.plain), (1, "rank", self.plain),
             (1, "problem", self.plain)]
        if not at.tiny:
            c += [(1, "deep", self.deep), (2, "tracer", self.tracer),
                  (1, "tracer_null", self.tracer)]
        if at.simple:
            return c + [(2, "start", self.start), (2, "stop", self.plain)]
        c += [(4, "sleep", self.sleep), (2, "yield", self.counted),
              (3, "longjmp", self.longjmp)]
        if at.tiny:
            return c
        c += [(1, "start", self.start), (1, "stop", self.stop),
              (3, "crowd", self.crowd), (4, "within", self.within),
              (2, "jump", self.jump), (2, "keyed", self.keyed)]
        if at.quiet:
            return c
        c += self.loud_choices(at)
        if at.p.alone() and at.top and not at.thread:
            c += [(2, "chdir", self.chdir_), (1, "umask", self.umask),
                  (1, "limit_nofile", self.limit),
                  (1, "limit_fsize", self.limit),
                  (1, "limit_stack", self.limit),
                  (1, "setenv", self.setenv), (1, "rmlogs", self.rmlogs),
                  (3, "closeall", self.closeall_)]
        return c

    def loud_choices(self, at):
        c = [(4, "files", self.files), (4, "closeall", self.closeall),
             (3, "dupover", self.dupover), (3, "fill", self.fill),
             (2, "lowest", self.lowest), (5, "pipe", self.pipe),
             (2, "usr1", self.usr1), (1, "capture", self.plain),
             (4, "lock", self.lock), (4, "raise", self.raise_),
             (3, "pending", self.pending), (3, "sigwait", self.sigwait),
             (3, "cancel", self.cancel), (3, "vfork", self.vfork),
             (3, "spawn", self.spawn), (1, "plugin_own", self.plugin),
             (2, "plugin_shared", self.plugin)]
        if self.threads < 10:
            c.append((10, "thread", self.thread))
        if self.processes < 7 and at.p.depth < 4:
            c += [(10, "fork", self.fork), (3, "clone", self.clone),
                  (1, "gather", self.gather)]
        if at.top:
            c += [(2, "timer", self.timer), (2, "atexit", self.atexit)]
        return c

    def fill_body(self, n, at, most):
        """Acts until the budget is used up or chance says so."""
        want = self.r.randint(1, most)
        while len(self.s.bodies[n]) < want and self.acts < self.budget:
            c = [x for x in self.choices(at) if self.on(x[1])]
            weights = [w * (10 if f in self.more else 1) for w, f, _ in c]
            _, feature, make = self.r.choices(c, weights)[0]
            make(n, at, feature)

    # --- records ----------------------------------------------------------

    def plain(self, to, at, feature):
        self.act(to, feature)

    def counted(self, to, at, feature):
        most = {"step": 20, "epoch": 8, "device": 60, "badend": 4,
                "yield": 60, "flow": 60, "scalar": 200}.get(feature, 300)
        self.act(to, feature, n=self.few(most))

    def scope(self, to, at, feature):
        n = self.few(400)
        if self.chance(0.04):
            n = self.r.choice([5000, 20000])
        args = self.r.choice(["none", "none", "int", "num", "text", "long",
                              "many"])
        hold = self.r.choice([0, 0, 0, 20, 200]) if n < 300 else 0
        if n > 1000:
            args = self.r.choice(["none", "int"])
        self.act(to, "scope", n=n, args=args if args != "none" else None,
                 hold=hold or None,
                 kind=self.r.randint(1, 5) if self.chance(0.2) else None)

    def literal(self, to, at, feature):
        self.act(to, "literal", n=self.few())

    def hand(self, to, at, feature):
        self.act(to, "hand", n=self.few(100), depth=self.r.randint(1, 4))

    def deep(self, to, at, feature):
        self.act(to, "deep", n=self.r.choice([50, 260, 400]))

    def async_(self, to, at, feature):
        self.act(to, "async", n=self.few(64),
                 cross=1 if self.chance(0.4) and not (at.tiny or at.simple)
                 else None)

    def tracer(self, to, at, feature):
        self.act(to, "tracer", n=self.few(50),
                 null=1 if feature == "tracer_null" else None)

    def sleep(self, to, at, feature):
        self.act(to, "sleep", us=self.r.choice([10, 100, 1000, 5000, 20000,
                                                120000]))

    # --- the session ------------------------------------------------------

    def options(self):
        o = {}
        if self.chance(0.1, "flight"):
            o["flight"] = 1
        elif self.chance(0.12, "windows"):
            o["steps"] = self.r.choice(["every+2", "every+3+for+2",
                                        "..100000000"])
        elif self.chance(0.06, "time_windows"):
            o["steps"] = self.r.choice(["1ms..40ms", "every+20ms+for+5ms",
                                        "demand"])
        if self.chance(0.12, "small_rings"):
            o["ring"] = 65536
            if self.chance(0.3):
                o["memory"] = self.r.choice([300000, 700000])
        if self.chance(0.3, "machine"):
            o["machine"] = 0
        if self.chance(0.08, "tsc"):
            o["tsc"] = 0
        if self.chance(0.05, "no_fork"):
            o["fork"] = 0
        if self.chance(0.08, "usr1"):
            o["signal"] = 10
        return o

    def start(self, to, at, feature):
        self.act(to, "start", **self.options())

    def stop(self, to, at, feature):
        """Mostly not for good."""
        self.act(to, "stop")
        if self.chance(0.7):
            self.act(to, "start")

    def setenv(self, to, at, feature):
        name, value = self.r.choice([
            ("OPSCOPE_RING_BYTES", "65536"), ("OPSCOPE_FLIGHT", "1"),
            ("OPSCOPE_STEPS", "every+2"), ("OPSCOPE_MACHINE", "0"),
            ("OPSCOPE_TSC", "0"), ("OPSCOPE_FORK", "0"),
            ("OPSCOPE_HOST", "another")])
        need = {"OPSCOPE_RING_BYTES": "small_rings", "OPSCOPE_FLIGHT":
                "flight", "OPSCOPE_STEPS": "windows"}.get(name)
        if need is None or self.on(need):
            self.act(to, "setenv", name=name, value=value)

    def rmlogs(self, to, at, feature):
        if self.chance(0.4):
            self.act(to, "rmlogs",
                     ask=1 if self.chance(0.5, "rmlogs_ask") else None)

    # --- threads ----------------------------------------------------------

    def thread(self, to, at, feature):
        self.threads += 1
        how = self.r.choice(["join", "join", "late", "late", "detach"])
        if how == "detach" and not self.on("detach"):
            how = "late"
        tiny = self.chance(0.25, "tiny")
        quiet = at.quiet or how == "detach"
        leaves = (how == "join" and at.top and not at.quiet and
                  at.p.loud == 0 and not tiny and not at.thread and
                  self.chance(0.08, "exit_in_thread"))
        n = self.body()
        place = Place(at.p, thread=True, quiet=quiet, tiny=tiny)
        if tiny and not quiet and self.chance(0.3, "tiny_fork", "fork"):
            place.tiny = False
            self.fill_body(n, Place(at.p, thread=True, tiny=True), 3)
            self.fork(n, place, "fork")
        else:
            # What runs beside it may not rely on there being one thread.
            at.p.quiet += how != "join"
            self.fill_body(n, place, 8)
        self.act(to, "thread", body=n, how=how,
                 stack=16384 if tiny else None)
        if how != "join":
            at.p.loud += not quiet
        if leaves:
            self.act(n, "leave", how=self.r.choice(["exit", "_exit"]
                     if self.on("_exit") else ["exit"]))

    def crowd(self, to, at, feature):
        self.act(to, "crowd", n=self.few(24), rounds=self.r.randint(1, 3),
                 stack=16384 if self.chance(0.3, "tiny") else None)

    def keyed(self, to, at, feature):
        if at.thread:
            self.act(to, "keyed")

    def cancel(self, to, at, feature):
        if self.chance(0.3, "async_cancel"):
            self.act(to, "cancel", **{"async": 1})
        else:
            self.act(to, "cancel", after=self.few(3000),
                     flush=1 if self.chance(0.4) else None,
                     dump=1 if self.chance(0.2) else None)

    # --- processes --------------------------------------------------------

    def leave(self, n, at, ways):
        """How the process whose first body this is ends, if it says so."""
        weights = {"exit": 4, "return": 4, "_exit": 4, "stop_exit": 1,
                   "quick_exit": 1, "exec_self": 2, "exec_true": 1,
                   "abort": 1, "segv": 1, "kill": 2, "term": 1,
                   "pthread_exit": 2, None: 2}
        need = {"_exit": ["_exit"], "quick_exit": ["_exit"],
                "exec_self": ["exec"], "exec_true": ["exec"],
                "abort": ["kills"], "segv": ["kills"], "kill": ["kills"],
                "term": ["kills"], "pthread_exit": ["pthread_exit"]}
        if at.thread:  # its end is that of the last thread
            need["return"] = ["pthread_exit"]
        ways = [w for w in ways if self.on(*need.get(w, []))]
        how = self.r.choices(ways, [weights[w] for w in ways])[0]
        if how == "pthread_exit" and self.chance(0.5, "stdio") and \
                not at.thread:
            self.act(n, "stdio")
        if how is None:
            return
        b = None
        if how == "exec_self":
            b = self.image(at.p)
        self.act(n, "leave", how=how, body=b)

    def image(self, p):
        """The body of a process that has become another program."""
        self.processes += 1
        b = self.body()
        q = Process(p.depth + 1)
        if self.chance(0.8):
            self.act(b, "start", **self.options())
        self.fill_body(b, Place(q), 5)
        self.leave(b, Place(q), ["exit", "return", "_exit", "kill", None])
        return b

    WAYS = ["exit", "return", "_exit", "stop_exit", "quick_exit",
            "exec_self", "exec_true", "abort", "segv", "kill", "term", None]

    def fork(self, to, at, feature):
        self.processes += 1
        then = self.r.choice(["wait", "wait", "later", "never"])
        if then == "never" and not self.on("orphan"):
            then = "later"
        n = self.body()
        q = Process(at.p.depth + 1, at.p.held)
        place = Place(q, thread=at.thread, tiny=at.tiny)
        if then == "never":
            self.act(n, "sleep", us=self.r.choice([1000, 50000, 300000]))
        if not self.on("double_fork"):
            self.act(n, "instant", n=1)
        if not at.tiny and self.chance(0.12, "double_fork", "fork"):
            self.fork(n, place, "fork")
        self.fill_body(n, place, 8)
        if self.chance(0.2):
            self.act(n, "sleep", us=self.r.choice([1000, 120000]))
        self.leave(n, place, self.WAYS)
        self.act(to, "fork", body=n, then=then)

    def vfork(self, to, at, feature):
        how = self.r.choice(["_exit", "exec_true", "exec_self"])
        b = None
        if how == "exec_self":
            if self.processes >= 7 or not self.on("exec"):
                return
            b = self.image(at.p)
        self.act(to, "vfork", how=how, body=b)

    def spawn(self, to, at, feature):
        b = None
        if self.processes < 7 and self.chance(0.6, "exec"):
            b = self.image(at.p)
        self.act(to, "spawn", what="self" if b is not None else "true",
                 body=b)

    def clone(self, to, at, feature):
        """The child may not rely on what other threads were doing: it does
        little, and starts by itself only where there was one."""
        self.processes += 1
        n = self.body()
        place = Place(Process(9), simple=True)
        off = self.off
        self.off = off | {"start", "stop", "tracer", "tracer_null", "deep",
                          "flush", "dump"}
        self.fill_body(n, place, 4)
        if at.p.alone() and self.chance(0.5) and "clone_start" not in off:
            self.act(n, "start")
            self.fill_body(n, place, 4)
        self.off = off
        hold = not self.held and self.chance(0.2, "clone_hold")
        self.held = self.held or hold
        self.act(to, "clone", body=n,
                 then="never" if hold else self.r.choice(["wait", "later"]),
                 stay=1 if hold else None)

    def gather(self, to, at, feature):
        if self.chance(0.5):
            self.act(to, "gather", n=self.r.randint(6, 24))

    def atexit(self, to, at, feature):
        n = self.body()
        self.fill_body(n, Place(at.p, simple=True, quiet=True), 4)
        self.act(to, "atexit", body=n)

    def plugin(self, to, at, feature):
        own = feature == "plugin_own"
        self.act(to, "plugin", kind="own" if own else "shared",
                 n=self.few(100), rounds=self.r.randint(1, 3),
                 thread=1 if self.chance(0.5) else None,
                 close=0 if self.chance(0.2) else None)

    # --- descriptors ------------------------------------------------------

    def hold(self, at, n):
        """Descriptors that stay open: few, so that there are always enough."""
        n = min(n, 24 - at.p.held)
        at.p.held += max(n, 0)
        return n

    def files(self, to, at, feature):
        n = self.hold(at, self.r.randint(1, 12))
        if n > 0:
            self.act(to, "files", n=n,
                     bytes=self.r.choice([0, 10, 500, 5000]))

    def closeall(self, to, at, feature):
        self.act(to, "closeall", what="unknown")

    def closeall_(self, to, at, feature):
        self.act(to, "closeall", what="all")

    def dupover(self, to, at, feature):
        n = self.hold(at, self.r.choice([3, 8, 16]))
        if n > 1:
            self.act(to, "dupover", n=n - 1)

    def fill(self, to, at, feature):
        busy = self.chance(0.4)
        self.act(to, "fill", most=self.r.choice([30, 100, 1100]),
                 clean=0 if self.chance(0.2) else None,
                 us=self.r.choice([500, 3000] if busy else
                                  [500, 3000, 30000, 130000]),
                 busy=1 if busy else None,
                 rounds=self.r.randint(2, 8) if busy else None)

    def lowest(self, to, at, feature):
        self.act(to, "lowest", n=self.few(300),
                 zero=1 if self.chance(0.4) else None)

    def again(self):
        """What may move the recorder's own descriptors meanwhile."""
        return {"again": 1 if self.chance(0.4, "stop", "start") else None,
                "flush": 1 if self.chance(0.3) else None,
                "us": self.r.choice([None, None, 2000, 60000])}

    def pipe(self, to, at, feature):
        to_child = self.chance(0.6, "fork")
        self.act(to, "pipe", to="child" if to_child else "self",
                 kind="socket" if self.chance(0.3) else None,
                 child=self.r.choice(["first", "after", "none"])
                 if to_child else None, **self.again())

    def lock(self, to, at, feature):
        self.act(to, "lock", how=self.r.choice(["posix", "flock"]),
                 **self.again())

    # --- signals ----------------------------------------------------------

    def signal(self, at):
        return at.p.signals.pop(0) if at.p.signals else None

    def raise_(self, to, at, feature):
        sig = self.signal(at)
        if sig is None:
            return
        self.act(to, "raise", sig=sig, n=self.few(60),
                 to="process" if self.chance(0.3) else None,
                 records=1 if self.chance(0.6) else None,
                 restart=1 if self.chance(0.5) else None,
                 info=1 if self.chance(0.3) else None,
                 onstack=1 if self.chance(0.3, "onstack") else None)

    def pending(self, to, at, feature):
        sig = self.signal(at)
        if sig is not None:
            self.act(to, "pending", sig=sig, n=self.few(20),
                     records=1 if self.chance(0.5) else None,
                     flush=1 if self.chance(0.5) else None,
                     dump=1 if self.chance(0.2) else None,
                     again=1 if self.chance(0.4, "stop", "start") else None)

    def sigwait(self, to, at, feature):
        """Only where nobody else waits for the same signal."""
        if at.p.signals and at.p.signals[-1] >= 12:
            self.act(to, "sigwait", sig=at.p.signals.pop(),
                     n=self.few(30),
                     to="process" if self.chance(0.5) else None)

    def jump(self, to, at, feature):
        sig = self.signal(at)
        if sig is not None and not at.quiet:
            self.act(to, "jump", sig=sig, n=self.few(20),
                     restart=1 if self.chance(0.5) else None)

    def longjmp(self, to, at, feature):
        self.act(to, "longjmp", n=self.few(50), depth=self.r.randint(1, 5))

    def usr1(self, to, at, feature):
        self.act(to, "usr1", n=self.few(8))

    def timer(self, to, at, feature):
        n = self.body()
        self.fill_body(n, Place(at.p, thread=at.thread, top=False), 4)
        self.act(n, "scope", n=20, hold=300)
        self.act(to, "timer", body=n,
                 records=1 if self.chance(0.6) else None,
                 restart=1 if self.chance(0.5) else None)

    def within(self, to, at, feature):
        n = self.body()
        self.fill_body(n, Place(at.p, thread=at.thread, top=False,
                                quiet=at.quiet), 4)
        self.act(to, "within", body=n, hand=1 if self.chance(0.3) else None)

    # --- the process ------------------------------------------------------

    def chdir_(self, to, at, feature):
        self.chdir = True
        self.act(to, "chdir")

    def umask(self, to, at, feature):
        self.act(to, "umask", mode=self.r.choice(["077", "027", "000"]))

    def limit(self, to, at, feature):
        """Once in a process: a limit is not raised again."""
        if at.p.limited:
            return
        at.p.limited = True
        what = feature[6:]
        value = {"nofile": self.r.choice([64, 100, 256]),
                 "fsize": self.r.choice([300000, 1000000, 20000000]),
                 "stack": self.r.choice([256 << 10, 1 << 20])}[what]
        self.act(to, "limit", what=what, value=value)

    # --- all of it --------------------------------------------------------

    def environment(self):
        s, r = self.s.settings, self.r
        if self.chance(0.3, "link_shared"):
            s["link"] = "shared"
        if self.chance(0.06, "tsc"):
            s["env.OPSCOPE_TSC"] = "0"
        if self.chance(0.1, "machine"):
            s["env.OPSCOPE_MACHINE"] = "0"
        if self.chance(0.06, "small_rings"):
            s["env.OPSCOPE_RING_BYTES"] = "65536"
        if self.chance(0.04, "flight"):
            s["env.OPSCOPE_FLIGHT"] = "1"
        if self.chance(0.03, "windows"):
            s["env.OPSCOPE_STEPS"] = "every 2"
        if self.chance(0.03, "no_fork"):
            s["env.OPSCOPE_FORK"] = "0"
        if self.chance(0.04, "rank"):
            s["env.RANK"], s["env.WORLD_SIZE"] = "1", "4"
        if self.chance(0.04, "shm_folder"):
            s["env.OPSCOPE_SHM"] = "WORK/shm"
        elif self.chance(0.04, "shm_relative") and not self.chdir:
            s["env.OPSCOPE_SHM"] = "shm"
        if self.chance(0.1, "automatic"):
            s["env.OPSCOPE"] = "1"
        if self.chance(0.3, "kill"):
            s["kill_ms"] = str(self.few(400))
        if self.chance(0.08, "beside_reader"):
            s["beside"] = "reader"
        elif self.chance(0.06, "beside_rescue"):
            s["beside"] = "rescue"
        elif self.chance(0.08, "under_record") and not self.held:
            s["under"] = "record"

    def make(self):
        p = Process(0)
        at = Place(p)
        if not self.chance(0.1):
            self.act(0, "start", **self.options(),
                     relative=1 if self.chance(0.1) else None)
        self.fill_body(0, at, self.budget)
        self.leave(0, at, self.WAYS + ["pthread_exit"] * 2)
        self.environment()
        if self.s.settings.get("beside") == "rescue":
            last = self.s.bodies[0]
            where = len(last) - (last[-1].verb == "leave" if last else 0)
            last.insert(where, Act(self.next, "sleep", {"us": "700000"}))
            self.next += 1
        return self.s


def make(seed, without=(), more=()):
    """more: what is to be drawn more often."""
    return Maker(seed, without, more).make()
