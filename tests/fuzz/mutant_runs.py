# SPDX-License-Identifier: Apache-2.0
"""A mutant through every command that reads: what is run, and what is wrong
with what comes out. See mutate.py for what must hold."""

import os
import random
import re
import signal
import subprocess
import urllib.parse

import mutant_checks as checks
import mutant_values as values
from mutant_kinds import BIG, ENV

LIMIT_S, LIMIT_TIMES, FLOOR, SMALL = 10, 50, 64 << 20, 5_000_000
OWN = 16 << 20  # bytes that the program takes for itself


def some_value(rng, kind, arg):
    """A value for an option; sometimes none that it takes."""
    if kind == "flag":
        return "1"
    if kind == "choice":
        return rng.choice(arg.split("|"))
    if kind == "int":
        return str(rng.choice([0, 1, 2, 3, 10, 1000, values.integer(rng)]))
    if kind == "float":
        return rng.choice(["0", "1", "0.5", "1e9", "-1", "nan"])
    if kind == "bytes":
        return rng.choice(["0", "1", "1k", "1M", "2.5GiB", "-1", "99999999T"])
    if kind == "us":
        return rng.choice(["0", "1", "0.001", "100", "1e6", "-5",
                           "3846799222501.572", "9e12", "1e300"])
    if kind == "range":
        a, b = rng.choice([(0, 0), (0, 1), (1, 3), (2, 2), (5, 1),
                           (values.integer(rng), values.integer(rng))])
        return rng.choice(["%d..%d" % (a, b), "%d.." % a, "..%d" % b,
                           "%d" % a])
    if arg == "LIST":
        return rng.choice(["shapes", "stack", "module", "shapes,stack,module",
                           "stack,stack", "", "x", "bf16=989e12,bw=4.8e12",
                           "fp32=0", "bw=-1", "tf32=nan"])
    if arg == "COL":
        return rng.choice(["name", "calls", "total_us", "host_us", "step",
                           "device", "bytes", "dur_us", "share_pct", "x",
                           "start_us", "kind"])
    return rng.choice(["*", "aten::*", "*a*", "?", "[", "*" * 40 + "b", "0",
                       "7", "", "GPU*", values.text(rng, False).replace(
                           "\0", "")])


class Plan:
    """The runs of one mutant: (verb, formats, options)."""

    def __init__(self, world, rng, size, folder):
        self.tasks = []
        big = size > BIG
        for verb, kind, args in world.verbs:
            if kind == "analysis":
                self.add(verb, rng.choice(["json", "json,text"]) if big
                         else "json,csv,text")
            elif verb == "convert":
                self.add(verb, "chrome")
            elif "PID" in args:
                if folder and not big:
                    self.add(verb, "json,csv,text", [("count", "1")])
            elif not big or rng.random() < 0.3:
                self.add(verb, "json" if big else "json,csv,text")
        if big:
            return
        for _ in range(8):
            verb, kind, args = rng.choice(world.verbs)
            known = world.options[verb]
            if verb == "convert" or "PID" in args or not known:
                continue
            own = [o for o in known if o[0] in ("by", "group", "at", "peak",
                                                "points", "device-peak")]
            chosen = rng.sample(own, min(1, len(own)))
            if not own or rng.random() < 0.5:
                chosen += rng.sample(known, rng.choice([1, 1, 2]))
            options = {o[0]: some_value(rng, o[1], o[2]) for o in chosen
                       if o[0] not in ("follow", "interval", "count")}
            if rng.random() < 0.1:
                options["verbose"] = "1"
            if rng.random() < 0.1:
                options["width"] = rng.choice(["0", "1", "20", "60", "500"])
            if rng.random() < 0.05:
                options["color"] = "always"
            self.add(verb, rng.choice(["json", "json,text", "csv", "text"]),
                     sorted(options.items()))

    def add(self, verb, formats, options=()):
        self.tasks.append((verb, formats, tuple(options)))


def quote(s):
    return urllib.parse.quote(s.encode("utf-8", "surrogateescape"), safe="/,")


class Every:
    """The program that runs them, started once."""

    def __init__(self, path):
        self.path, self.p = path, None
        self.out, self.index, self.err = (
            os.memfd_create(n) for n in ("out", "index", "err"))

    def start(self):
        self.p = subprocess.Popen(
            [self.path, "serve", str(self.out), str(self.index)], env=ENV,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.err,
            pass_fds=(self.out, self.index))

    def run(self, paths, tasks, threads, again, limit, leaks):
        if self.p is None:
            self.start()
        os.ftruncate(self.err, 0)
        os.lseek(self.err, 0, os.SEEK_SET)
        lines = ["path=" + quote(p) for p in paths]
        lines += ["threads=%d" % threads, "again=%d" % again,
                  "limit=%d" % limit, "leaks=%d" % leaks]
        for verb, formats, options in tasks:
            lines.append("&".join(["do=" + verb, "in=" + formats] + [
                "%s=%s" % (k, quote(v)) for k, v in options]))
        self.p.stdin.write(("\n".join(lines + ["go", ""])).encode())
        self.p.stdin.flush()
        answer = self.p.stdout.readline()
        if not answer:
            self.p.wait()
            self.p = None
            raise RuntimeError("every: it died: %s" % self.stderr()[-400:])
        return int(answer)

    def read(self, fd, start, end):
        out = b""
        while start < end:
            b = os.pread(fd, end - start, start)
            if not b:
                break
            out, start = out + b, start + len(b)
        return out

    def stderr(self):
        return self.read(self.err, 0, 1 << 20).decode("utf-8", "replace")

    def records(self):
        text = self.read(self.index, 0, os.fstat(self.index).st_size)
        return text.decode().splitlines()

    def close(self):
        if self.p is not None:
            self.p.stdin.close()
            self.p.wait()
        for fd in (self.out, self.index, self.err):
            os.close(fd)


# --- what is found ----------------------------------------------------------

class Finding:
    """What is wrong, where; its key is the same for the same fault."""

    def __init__(self, where, what):
        self.where, self.what = where, what
        self.key = where.split(" ")[0] + " " + re.sub(
            r"-?\d[\d.e+]*|0x[0-9a-f]+|'.*?'|\".*\"|\(.*\)", "#", what)[:90]
        if what.startswith(("args are", "CSV is not", "step", "shares of")):
            self.key = re.sub(r"\d+", "", what)[:14]

    def __str__(self):
        return "%s: %s" % (self.where, self.what)


def crash_text(err):
    """The line that says what it was, and where in our own code."""
    said = re.search(r"(runtime error: .*|ERROR: \w+Sanitizer: .*|"
                     r".*Assertion .*|.*rss limit.*|malloc\(\).*)", err)
    frame = re.search(r"#\d+ \S+ in (\S+) \S*?(src/\S+)", err)
    at = re.search(r"(src/\S+?:\d+:\d+): runtime error", err)
    what = said.group(1)[:160] if said else err.strip()[-160:] or "no word"
    what = re.sub(r" on address.*| 0x\S+|==\d+==", "", what)
    if at:
        return "%s at %s" % (what, at.group(1))
    return "%s in %s %s" % (what, *frame.groups()) if frame else what


class Examiner:
    """Runs mutants and says what is wrong with what comes out."""

    def __init__(self, world):
        self.world = world
        self.every = Every(world.every)
        slow = 4 if world.sanitized else 1
        self.limit = LIMIT_S * slow
        self.times = LIMIT_TIMES * (2 if world.sanitized else 1)
        self.floor = FLOOR * (2 if world.sanitized else 1)
        self.runs = 0

    def examine(self, mutant, folder):
        """A list of findings."""
        paths, size = mutant.write(folder)
        rng = random.Random("runs %d" % mutant.seed)
        plan = Plan(self.world, rng, size, len(paths) == 1 and
                    os.path.isdir(paths[0]))
        threads, again = rng.choice([(1, 2), (1, 2), (2, 1), (1, 1)])
        if size > BIG and rng.random() < 0.7 and mutant.kind != "long":
            again = 0
        status = self.every.run(paths, plan.tasks, threads, again, self.limit,
                                rng.random() < 0.5)
        out = self.read(mutant, plan, status, size)
        if self.export and rng.random() < 0.05:
            out += self.again(mutant, plan, folder)
        if rng.random() < 0.2 or (self.failed and rng.random() < 0.5):
            out += self.command_line(rng, mutant, plan, paths, folder)
        return out

    def again(self, mutant, plan, folder):
        """The export, as a profile of its own."""
        path = os.path.join(folder, "export.json")
        with open(path, "wb") as f:
            f.write(self.export)
        status = self.every.run([path], plan.tasks, 1, 0, self.limit, False)
        return [Finding("export " + f.where, f.what) for f in
                self.read(mutant, plan, status, len(self.export))]

    def where(self, plan, task, form):
        if task < 0:
            return "load"
        verb, _, options = plan.tasks[task]
        return " ".join([verb] + ["--%s=%s" % o for o in options] + [form])

    def read(self, mutant, plan, status, size):
        """Goes through the index of a child that has ended."""
        out, tables, last, load_us = [], {}, None, 0
        self.failed, self.export = False, b""
        for line in self.every.records():
            if line.startswith("?"):
                last = line.split()[1:]
                continue
            pass_, task, form, code, us, peak, start, end = line.split()
            last, task, code = None, int(task), int(code)
            self.runs += 1
            where = self.where(plan, task, form)
            data = self.every.read(self.every.out, int(start), int(end))
            if task < 0:
                load_us = int(us)
                self.failed |= code != 0
            # what is read back is the export, not the profile
            read = len(self.export) if pass_ == "back" else size
            if size < SMALL:
                out += self.cost(mutant, where, load_us * (task >= 0) +
                                 int(us), int(peak), read)
            if pass_ == "again":
                if task >= 0:
                    out.append(Finding(where, "another result the second time"))
            elif pass_ == "back":
                if code != 0:
                    out.append(Finding(where, "export: " + data.decode(
                        "utf-8", "replace")))
            elif code < 0:
                if not data:
                    out.append(Finding(where, "error without a sentence"))
            elif task >= 0:
                out += [Finding(where, x) for x in
                        self.form(plan, task, form, data, tables)]
        for verb, options, x in checks.sum_problems(tables):
            out.append(Finding(" ".join([verb] + ["--%s=%s" % o for o in
                                                  options]), x))
        return out + self.ended(plan, status, last)

    def form(self, plan, task, form, data, tables):
        """Problems of one output."""
        verb, _, options = plan.tasks[task]
        colored = ("color", "always") in options
        if form == "chrome":
            self.export = data
            return checks.valid(data)
        if form == "text":
            return checks.text_problems(data, colored)
        if form == "csv":
            return checks.csv_problems(data, tables.get((verb, options)))
        try:
            t = checks.Table(data)
        except RecursionError:
            return []
        except (ValueError, KeyError) as e:
            return ["%s" % str(e)[:200]]
        tables[verb, options] = t
        out = checks.table_problems(t, len(options) > 0)
        return out + checks.trace_problems(t) if verb == "trace" else out

    def cost(self, mutant, where, us, peak, size):
        out = []
        if us > self.limit * 10**6:
            out.append(Finding(where, "takes %.1f s for %d bytes" % (
                us / 1e6, size)))
        most = max(self.floor, self.times * size + OWN)
        if peak > most and not mutant.wild:
            out.append(Finding(where, "takes %d MB for %d bytes" % (
                peak >> 20, size)))
        return out

    def ended(self, plan, status, last):
        """What a child died of."""
        where = self.where(plan, int(last[1]), last[2]) if last else "end"
        if os.WIFSIGNALED(status):
            n = os.WTERMSIG(status)
            if n == signal.SIGPROF:
                return [Finding(where, "takes more than %d s" % self.limit)]
            if n == signal.SIGALRM:
                return [Finding(where, "waits for something")]
            return [Finding(where, "%s: %s" % (signal.Signals(n).name,
                                               crash_text(self.err())))]
        code = os.WEXITSTATUS(status)
        if code == 0:
            return []
        return [Finding(where, crash_text(self.err()))]

    def err(self):
        return self.every.stderr()

    def command_line(self, rng, mutant, plan, paths, folder):
        """The same by the real program: exit codes and stderr."""
        out = []
        for _ in range(2):
            verb, formats, options = rng.choice(plan.tasks)
            argv = [self.world.opscope, verb]
            form = rng.choice(formats.split(","))
            if verb == "convert":
                argv += [paths[0], rng.choice(["-", os.path.join(
                    folder, "out.json.gz")]), "--to", "chrome"]
            else:
                flags = {o[0] for o in self.world.options[verb]
                         if o[1] == "flag"} | {"verbose"}
                argv += paths + ["--%s" % k if k in flags else "--%s=%s" %
                                 (k, v) for k, v in options]
                argv += ["--format", form]
            out += self.command(argv, form)
        if mutant.kind == "ring" and rng.random() < 0.5:
            out += self.command([self.world.opscope, "record", "-q", "-o",
                                 paths[0], "--run", "run1", "--", "true"],
                                "record")
        return out

    def command(self, argv, form):
        where = "command %s %s" % (argv[1], form)
        try:
            p = subprocess.run([os.fsencode(a) for a in argv], env=ENV,
                               stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               timeout=self.limit * 6)
        except subprocess.TimeoutExpired:
            return [Finding(where, "does not end")]
        except ValueError:
            return []  # a zero byte in an argument
        self.runs += 1
        err = p.stderr.decode("utf-8", "replace")
        if p.returncode < 0 or p.returncode == 86:
            return [Finding(where, "status %d: %s" % (
                p.returncode, crash_text(err)))]
        if form == "record":
            return []  # it says on stderr what it closed
        return [Finding(where, x) for x in
                checks.stderr_problems(p.returncode, p.stderr)]
