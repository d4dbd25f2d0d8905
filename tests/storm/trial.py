# SPDX-License-Identifier: Apache-2.0
"""One script, tried: the program runs with the recorder forbidden and with the
recorder, in folders of its own, and everything that differs or is missing or
is left behind is a finding.

Whoever runs trials is the reaper of all descendants (prctl), so that a process
that outlives its parents is seen, waited for and, at the end, gone."""

import ctypes
import glob
import hashlib
import os
import shutil
import signal
import subprocess
import time

import judge
from judge import Finding

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
SHM = "/dev/shm"
SAN_OPTIONS = "exitcode=86:handle_segv=0:handle_abort=0:handle_sigbus=0:" \
    "handle_sigill=0:handle_sigfpe=0:detect_leaks=0:log_path={}"


def prctl(what, value):
    ctypes.CDLL(None).prctl(what, value, 0, 0, 0)


def descendants():
    """Pids of all that came from us, however far."""
    parent = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat") as f:
                rest = f.read().rpartition(")")[2].split()
            parent[int(name)] = int(rest[1])
        except (OSError, IndexError):
            continue
    mine, grew = {os.getpid()}, True
    while grew:
        new = {p for p, up in parent.items() if up in mine} - mine
        mine |= new
        grew = bool(new)
    return mine - {os.getpid()}


def kill_all():
    """Every descendant, until there is none."""
    for _ in range(200):
        for pid in descendants():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.01)


def rings_of(work):
    """Ring files in memory that belong to a log folder below: they name it."""
    found, mark = [], work.encode()
    for path in glob.glob(os.path.join(SHM, "opscope-*")):
        try:
            with open(path, "rb") as f:
                if mark in f.read(16384):
                    found.append(path)
        except OSError:
            pass
    return found


def remove_rings(folder):
    """What is left in memory of programs that recorded below a folder. One
    that was killed early has a ring which does not name it yet: its pointer
    does."""
    paths = set(rings_of(folder))
    for pointer in glob.glob(os.path.join(
            folder, "**", "plugins", "profile", "*", "*.ring"),
            recursive=True):
        try:
            with open(pointer) as f:
                paths.add(f.read().strip())
        except (OSError, ValueError):
            pass
    for path in paths:
        if path.startswith(os.path.join(SHM, "opscope-")):
            try:
                os.unlink(path)
            except OSError:
                pass


def where_it_hangs(pids):
    """What the threads of a few processes are doing."""
    lines = []
    for pid in sorted(pids)[:4]:
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                argv = f.read().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        lines.append(f"process {pid}: {argv[:100]}")
        if shutil.which("gdb") and argv:
            try:
                out = subprocess.run(
                    ["gdb", "-p", str(pid), "-batch", "-nx", "-ex",
                     "thread apply all bt 12"], stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                    timeout=30).stdout.decode(errors="replace")
                lines += [x for x in out.split("\n")
                          if x.startswith(("#", "Thread"))][:80]
                continue
            except subprocess.TimeoutExpired:
                pass
        for task in sorted(glob.glob(f"/proc/{pid}/task/*")):
            try:
                with open(task + "/comm") as f, open(task + "/wchan") as g:
                    lines.append(f"  {os.path.basename(task)} "
                                 f"{f.read().strip()}: {g.read()}")
            except OSError:
                pass
    return "\n".join(lines)


def points_nowhere(path):
    """A pointer without a ring: its program was killed between the two."""
    try:
        with open(path) as f:
            return not os.path.exists(f.read().strip())
    except OSError:
        return True


class Run:
    """A program and all that came of it, from its start to the end of the
    last one."""

    def __init__(self, work, argv, env, limit):
        self.work, self.argv, self.env, self.limit = work, argv, env, limit
        self.status, self.hang, self.others = {}, None, {}
        self.root = None

    def start(self):
        with open(os.path.join(self.work, "out"), "ab") as out, \
                open(os.path.join(self.work, "err"), "ab") as err:
            p = subprocess.Popen(self.argv, cwd=self.work, env=self.env,
                                 stdin=subprocess.DEVNULL, stdout=out,
                                 stderr=err, start_new_session=True)
        p.returncode = 0  # waited for here, not there
        self.root, self.began = p.pid, time.monotonic()

    def reap(self):
        """False: nobody is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            (self.others if pid in self.others else self.status)[pid] = status

    def wait(self, kill_after=None, meanwhile=None, root_gone=None):
        """meanwhile is called again and again, root_gone once."""
        pause = 0.001
        while self.reap():
            age = time.monotonic() - self.began
            if kill_after is not None and age >= kill_after:
                kill_after = None
                try:
                    os.killpg(self.root, signal.SIGKILL)
                except OSError:
                    pass
            if root_gone is not None and self.root in self.status:
                root_gone()
                root_gone = None
            if meanwhile is not None and self.root not in self.status:
                meanwhile(age)
            if age > self.limit:
                left = descendants() - set(self.others)
                self.hang = where_it_hangs(left)
                kill_all()
                return
            time.sleep(pause)
            pause = min(pause * 1.3, 0.01)

    def text(self, name):
        with open(os.path.join(self.work, name), "rb") as f:
            return sorted(f.read().decode(errors="replace").split("\n"))


def files_below(work):
    """What the program left: mode and contents of each file of its own."""
    have = {}
    for folder, folders, names in os.walk(work):
        if folder == work:
            folders[:] = [x for x in folders
                          if x not in ("logs", "shm", "san")]
        for name in folders + names:
            path = os.path.join(folder, name)
            key = os.path.relpath(path, work)
            if key in ("out", "err", "diary", "script", "release"):
                continue
            st = os.lstat(path)
            digest = ""
            if os.path.isfile(path):
                with open(path, "rb") as f:
                    digest = hashlib.sha256(f.read()).hexdigest()[:16]
            have[key] = (oct(st.st_mode), digest)
    return have


def status_text(status):
    if status is None:
        return "no status"
    if os.WIFSIGNALED(status):
        return f"killed by {os.WTERMSIG(status)}"
    return f"ended with {os.WEXITSTATUS(status)}"


class Trial:
    """folder: empty, the trial's own, removed by whoever made it."""

    def __init__(self, script, folder, programs, opscope, variant="static",
                 off=(), limit=None, control=False):
        self.s, self.folder, self.programs = script, folder, programs
        self.opscope, self.variant, self.off = opscope, variant, set(off)
        self.control = control
        slow = variant in ("thread", "address")
        self.limit = limit or (90 if slow else 25)  # seconds
        self.found = []
        self.counts = {"processes": 0, "threads": 0, "records": 0}

    def bad(self, kind, text):
        self.found.append(Finding(kind, text))

    # --- running ----------------------------------------------------------

    def program(self):
        if self.variant == "static" and \
                self.s.settings.get("link") == "shared" and \
                "shared" in self.programs:
            return self.programs["shared"]
        return self.programs[self.variant]

    def environment(self, work, own):
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8",
               "HOME": os.path.join(work, "home"), "TZ": "UTC",
               "TMPDIR": os.path.join(work, "tmp"),
               "LD_LIBRARY_PATH": self.programs["folder"]}
        if self.variant in ("thread", "address"):
            log = SAN_OPTIONS.format(os.path.join(work, "san", "log"))
            env["TSAN_OPTIONS"] = log + ":die_after_fork=0:" \
                "report_signal_unsafe=0:report_thread_leaks=0:" \
                "atexit_sleep_ms=10"
            env["ASAN_OPTIONS"] = log
            env["UBSAN_OPTIONS"] = log + ":print_stacktrace=1"
        for key, value in self.s.settings.items():
            if key.startswith("env.") and own:
                env[key[4:]] = value.replace("WORK", work)
        if "env.OPSCOPE" in self.s.settings or "under" in self.s.settings:
            env["STORM_AUTOMATIC"] = "1"
        if own and env.get("OPSCOPE") == "1":
            env["OPSCOPE_LOGDIR"] = os.path.join(work, "logs")
            env["OPSCOPE_RUN"] = "storm"
        return env

    def prepare(self, name):
        work = os.path.join(self.folder, name)
        for sub in ("", "home", "tmp", "shm", "san"):
            os.mkdir(os.path.join(work, sub))
        with open(os.path.join(work, "script"), "w") as f:
            f.write(self.s.text())
        with open(os.path.join(work, "diary"), "wb") as f:
            f.truncate(judge.DIARY_BYTES)
        return work

    def run(self, name, recorded):
        work = self.prepare(name)
        env = self.environment(work, recorded)
        argv = [self.program(), os.path.join(work, "script"), work,
                os.path.join(work, "diary"), self.programs["folder"]]
        if not recorded:
            env["OPSCOPE"] = "0"
        elif self.s.settings.get("under") == "record":
            argv = [self.opscope, "record", "-q", "-o",
                    os.path.join(work, "logs"), "--run", "storm", "--", *argv]
        r = Run(work, argv, env, self.limit)
        if recorded:
            self.outside(r)
        else:
            r.start()
            r.wait(root_gone=lambda: self.release(r))
        return r

    def release(self, r):
        """Whoever holds on until then may go."""
        with open(os.path.join(r.work, "release"), "w"):
            pass

    def outside(self, r):
        """What comes from outside while it runs."""
        s = self.s.settings
        logs = os.path.join(r.work, "logs")
        if s.get("beside") == "rescue":
            p = self.rescuer(logs, 0, 900)
            r.others[p.pid] = None
        r.start()
        kill = s.get("kill_ms")
        held = any("stay" in a.args for a in self.s.acts())
        last = [0.0]

        def read(age):
            if age - last[0] > 0.04 and os.path.isdir(logs):
                last[0] = age
                self.ask(r.work, "ops", "--top", "0", strict=False)

        def gone():
            if held:
                self.look_before_release(r)
            self.release(r)

        r.wait(int(kill) / 1000 if kill else None,
               read if s.get("beside") == "reader" else None, gone)
        for pid, status in r.others.items():
            if status is None or os.WIFSIGNALED(status):
                self.bad("beside", "the program beside it: " +
                         status_text(status))

    def rescuer(self, logs, seconds, least_ms):
        work = os.path.dirname(logs)
        env = self.environment(work, False)
        p = subprocess.Popen([self.programs["static"], "rescue", logs,
                              str(seconds), str(least_ms)], env=env,
                             cwd=work, stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
        return p

    def rescue(self, work):
        """As a user would: by recording into the folder once more."""
        logs = os.path.join(work, "logs")
        p = self.rescuer(logs, 8, 0)
        try:
            p.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.bad("rescue", where_it_hangs([p.pid]))
            p.kill()
            p.wait()
            return
        if p.returncode not in (0, 1):
            self.bad("rescue", f"the rescuer's status is {p.returncode}")

    def look_before_release(self, r):
        """The first process is gone, and a child that no library knows of
        lives on: its parent's profile is a dead one's nevertheless."""
        logs = os.path.join(r.work, "logs")
        d = judge.Diary(os.path.join(r.work, "diary"))
        if d.gone or not os.path.isdir(logs):
            return
        p = self.rescuer(logs, 3, 0)
        r.others[p.pid] = None
        until = time.monotonic() + 30
        while r.others[p.pid] is None and time.monotonic() < until:
            r.reap()
            time.sleep(0.01)
        p.returncode = 0
        left = [x for x in glob.glob(os.path.join(
            logs, "plugins/profile/*", f"*_{r.root}*.ring"))
            if not points_nowhere(x)]
        if left and self.s.settings.get("under") != "record":
            self.bad("looks alive", f"process {r.root} is dead, a child of "
                     "its lives, and nobody closes its profile")

    # --- reading ----------------------------------------------------------

    def ask(self, work, what, *more, strict=True):
        logs = os.path.join(work, "logs")
        env = self.environment(work, False)
        args = [] if what == "scalars" else ["--run", "storm"]
        try:
            rows, notes = judge.table(self.opscope, env, what, logs, *args,
                                      *more)
        except (subprocess.TimeoutExpired, ValueError) as x:
            self.bad("opscope", f"{what}: {x}")
            return [], []
        if notes is None:
            if strict or rows.startswith("status -"):
                self.bad("opscope", f"{what}: {rows}")
            return [], []
        return rows, notes

    def profiles(self, logs, end):
        return glob.glob(os.path.join(logs, "plugins", "profile", "storm",
                                      "*" + end))

    def views(self, work):
        """What opscope shows: calls by name, points by tag, and its notes."""
        logs = os.path.join(work, "logs")
        ops, points, notes = {}, {}, []
        if self.profiles(logs, ".xplane.pb") or not all(
                points_nowhere(x) for x in self.profiles(logs, ".ring")):
            rows, notes = self.ask(work, "ops", "--top", "0")
            ops = judge.ops_calls(rows)
        files = glob.glob(os.path.join(logs, "events.out.tfevents*"))
        if files or self.profiles(logs, ".ring"):
            points = judge.scalar_points(self.ask(
                work, "scalars", "--top", "0", strict=bool(files))[0])
        return ops, points, notes

    # --- judging ----------------------------------------------------------

    def compare(self, off, on):
        if on.hang is not None:
            self.bad("hang", f"no end after {on.limit} s\n{on.hang}")
            return
        status = on.status.get(on.root)
        want = off.status.get(off.root)
        if self.s.settings.get("under") == "record" and want is not None \
                and os.WIFSIGNALED(want) and not self.control:
            want = (128 + os.WTERMSIG(want)) << 8
        if status != want:
            self.bad("status", f"{status_text(status)}, without the recorder "
                     f"{status_text(want)}")
        self.orphans(off, on)
        for name in ("out", "err"):
            a, b = off.text(name), on.text(name)
            if name == "err" and self.s.settings.get("under") == "record" \
                    and "rmlogs" in self.s.verbs():
                continue  # record cannot write its own, and says so
            if a != b:
                less = [x for x in a if x not in b][:3]
                more = [x for x in b if x not in a][:3]
                self.bad("output", f"{name}: {more} instead of {less}")
        a, b = files_below(off.work), files_below(on.work)
        if a != b:
            names = sorted(k for k in set(a) | set(b) if a.get(k) != b.get(k))
            self.bad("files", ", ".join(
                f"{k} is {b.get(k)}, not {a.get(k)}" for k in names[:3]))

    def orphans(self, off, on):
        """Those whose parents did not wait: by their bodies."""
        a, b = (judge.Diary(os.path.join(r.work, "diary")) for r in (off, on))
        for n in self.s.bodies:
            was = off.status.get(a.body[n][0])
            now = on.status.get(b.body[n][0])
            if n > 0 and was is not None and now is not None and was != now:
                self.bad("status", f"body {n}: {status_text(now)}, without "
                         f"the recorder {status_text(was)}")

    def sanitizers(self, r, kind):
        for path in sorted(glob.glob(os.path.join(r.work, "san", "*")))[:2]:
            with open(path, errors="replace") as f:
                self.bad(kind, f.read()[:6000])

    def accounts(self, on):
        logs = os.path.join(on.work, "logs")
        d = judge.Diary(os.path.join(on.work, "diary"))
        j = judge.Judge(self.s, d, self.off)
        self.counts["processes"] = len(d.pids())
        self.counts["threads"] = len({b[:2] for b in d.body if b[0]})
        j.faults()
        if d.gone:  # there is nothing to be held against it
            if os.path.isdir(logs):
                self.rescue(on.work)
                j.account(judge.read_all(logs))
            self.found += j.found
            return
        before, points, _ = self.views(on.work)
        # it does not wait for those who do not record yet
        orphans = any(x.args.get("then") == "never" for x in self.s.acts())
        if self.s.settings.get("under") == "record" and not orphans and \
                "record_gathers" not in self.off and on.hang is None and \
                "kill_ms" not in self.s.settings:
            left = self.profiles(logs, ".ring")
            if left:
                self.bad("not gathered", f"`opscope record` left {left}")
        if self.profiles(logs, ".ring"):
            self.rescue(on.work)
        self.left(on.work, logs)
        a = judge.read_all(logs)
        self.counts["records"] = sum(a.whole.values())
        after, points_after, notes = self.views(on.work)
        j.account(a)
        j.same_losses(a, notes)
        if before != after:
            names = [k for k in set(before) | set(after)
                     if before.get(k) != after.get(k)]
            self.bad("rescue", "`ops` before and after a rescue: " + ", ".join(
                f"{k} {before.get(k)} {after.get(k)}" for k in names[:3]))
        if points != points_after and "scalars_in_memory" not in self.off:
            names = [k for k in set(points) | set(points_after)
                     if points.get(k) != points_after.get(k)]
            self.bad("scalars", "before and after a rescue: " + ", ".join(
                f"{k} {points.get(k)} {points_after.get(k)}"
                for k in names[:3]))
        if not j.flight:  # its dumps tell of an open scope each time
            j.same_as_opscope(a, after)
        self.found += j.found

    def left(self, work, logs):
        for end in (".ring", ".part", ".rings"):
            names = [os.path.basename(x) for x in glob.glob(
                os.path.join(logs, "plugins/profile/*/*" + end))
                if end != ".ring" or not points_nowhere(x)]
            if names:
                self.bad("left", f"{len(names)} files {end}: {names[:3]}")
        rings = rings_of(work) + os.listdir(os.path.join(work, "shm"))
        if rings:
            self.bad("left", f"memory: {rings[:3]}")
        for sub in ("home", "tmp"):
            # a sanitizer that is killed while it starts leaves its own
            names = [x for x in os.listdir(os.path.join(work, sub))
                     if not x.startswith("tsan.rodata")]
            if names:
                self.bad("left", f"{sub}: {names[:3]}")

    def no_difference(self):
        """Twice without the recorder: is the program itself the same?"""
        a, b = self.run("off", False), self.run("on", False)
        self.compare(a, b)
        return self.found

    def go(self):
        """Returns what was found."""
        try:
            if self.control:
                return self.no_difference()
            killed = "kill_ms" in self.s.settings
            off = None if killed else self.run("off", False)
            if off is not None and off.hang is not None:
                self.bad("own", "hangs without the recorder\n" + off.hang)
                return self.found
            if off is not None:
                self.sanitizers(off, "own")
            on = self.run("on", True)
            self.sanitizers(on, "sanitizer")
            if killed and on.hang is not None:
                self.bad("hang", f"no end after {on.limit} s\n{on.hang}")
            if off is not None:
                self.compare(off, on)
            if on.hang is None:
                self.accounts(on)
        finally:
            kill_all()
            remove_rings(self.folder)
        return self.found
