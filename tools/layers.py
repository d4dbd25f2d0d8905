#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the source keeps to its own rules; `make check` and
`./dev test` run it.

Fails (status 1, one line each) on: a folder that includes what it may not; a
room (a folder below one) that opens what is private to another; importers,
analyses, exporters or presenters that include each other; a format's name
outside of the importers; an op's name outside of src/names; rooms of too many
files; include chains that are too deep; output that goes around the screen
(src/base/io/sink.h), which keeps what comes from outside from steering a
terminal; exiting below src/cmd; files opened by the recorder otherwise than by
its own calls; globals that can change; marks of unfinished work; files,
functions and lines over their limits.
`--report` prints the sizes beside their budgets. Standard library only."""

import os
import re
import statistics
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Who may include whom: folder -> folders. Its own folder is always allowed.
READ = "base names model"
OUTER = READ + " import load scalars analyze export present"
MAY = {
    "base": "",
    "names": "base",
    "model": "base names",
    "import": READ + " scalars",
    "load": READ + " import",
    "scalars": "base model",
    "analyze": READ,
    "export": READ,
    "present": READ,
    "capture": READ + " import export present",
    "cmd": OUTER + " capture api",
    "api": OUTER,
    "ring": "",
    "rec": "ring",
}
# Single headers that a folder may use although the folder is closed to it.
MAY_FILE = {
    "import": {"ring/ring.h", "ring/recover.h"},
    "scalars": {"ring/recover.h"},
    "capture": {"ring/procfile.h", "ring/recover.h", "ring/text.h",
                "ring/window.h"},
    "ring": {"base/array.h", "base/crc32c.h", "base/facts.h", "base/pbw.h",
             "base/text/utf8.h", "base/xspace.h"},
    "rec": {"base/array.h", "base/facts.h", "base/sized.h", "base/text/json.h",
            "base/text/percent.h", "base/text/utf8.h"},
}
# Rooms: folders below these are closed to each other, but for what the folder
# itself and its room of shared things have, and for the headers named here.
SHARED = "shared"
ROOMS = {
    "analyze": {
        "analyze/steps/bare.h",       # the step without its profiler
        "analyze/steps/overhead.h",   # what the profiler costs a step
        "analyze/steps/replay.h",     # what waited for what, run again: hints
        "analyze/ops/compile_find.h", # what was compiled, and when
        "analyze/cost/device_peak.h", # what a device can do
        "analyze/cost/op_cost.h",     # what a call computes
        "analyze/cost/roof_flops.h",  # the same of all calls: one count
        "analyze/memory/mem_forward.h", # who made what backward frees
    },
    "import": set(),
}
MAX_ROOM = 35
# Families: entries in the table never include each other.
FAMILY = {
    "import": "importers.def",
    "analyze": "analyses.def",
    "export": "exporters.def",
    "present": "presenters.def",
}
# Who may know a format by its name: its importer, the curves' own folder, and
# the exporter that writes it.
KNOWS_FORMATS = {"import", "scalars"}
# Who may know an op by its name: the folder of names, and the costs of ops.
KNOWS_OPS = ("names/", "analyze/cost/")
READS_OTHERS = {"overview", "hints"}
# What a signal handler must know has no other place, and what files inflate to
# is bounded for all of them; what makes hashes unforeseeable is drawn once.
GLOBALS = {"src/base/io/file.c", "src/base/hash.c"}
# main(), the child that could not become the program, and the thread that ends
# a program in the place of its last one.
LEAVES = {"cmd/main.c", "capture/launch.c", "rec/keeper.c"}
FREE_FOLDERS = {"ring", "rec"}  # their globals: listed by review

MAX_FILE, MAX_FUNC, MAX_COLS, MAX_DEPTH = 1200, 120, 80, 4

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.M)
ENTRY = re.compile(r"^X\((\w+)", re.M)
NOISE = re.compile(
    r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.M)
# Ways out that do not look at what they let through: nobody's.
PRINTS = re.compile(
    r"(?<![>.\w])(v?f?printf|v?dprintf|f?puts|f?putc|putchar|perror|psignal|"
    r"fwrite|v?(?:warn|err)x?|(?:f?puts|f?putc|putchar|fwrite)_unlocked)\s*\(")
# The same where they have a use, and who has it.
WAYS_OUT = {
    r"(?<![>.\w])(write|writev|pwrite|send|sendmsg)\s*\(":
        {"base/io/sink.c", "capture/launch.c"},
    r"\b(sink_fd)\s*\(": {"base/io/sink.c", "base/io/sink.h", "export/export.c",
                           "capture/profile.c"},
    r"\b(sink_control)\s*\(": {"base/io/sink.c", "base/io/sink.h",
                                "present/text.c", "cmd/watch.c",
                                "cmd/load.c"},
}
EXITS = re.compile(r"\b(exit|_exit|_Exit|quick_exit|abort)\s*\(")
# Inside of other people's programs: descriptors through ring/sys.h, variables by
# secure_getenv().
UNSAFE_IN_REC = re.compile(
    r"(?<![\w.>])(open|openat|creat|close|fstat|read|write|pread|pwrite|dup|dup2|"
    r"fopen|opendir|fdopendir|fstatvfs|getenv|mkstemp|system|popen)\s*\(")
UNFINISHED = re.compile(r"\b(TODO|FIXME|HACK)\b|not implemented|for now\b", re.I)
LOCAL_STATIC = re.compile(r"^[ \t]+static\b(?![^;={]*\bconst\b)", re.M)
# The last word before a list of parameters, which may hold parentheses.
FUNC_NAME = re.compile(r"(\w+)\s*\((?:[^()]|\([^()]*\))*\)\s*"
                       r"(?:__attribute__.*)?$", re.S)
TOKEN = re.compile(r"[{};]")


def blank(m):
    """Comments and literals become as many spaces and newlines."""
    return re.sub(r"[^\n]", " ", m.group())


class File:
    """One source file, read once; what it says with comments taken out."""

    def __init__(self, path):
        self.path = os.path.relpath(path, ROOT)
        self.name = os.path.relpath(path, os.path.join(ROOT, "src"))
        self.room, self.base = os.path.split(self.name)
        self.folder = self.room.split("/")[0]
        self.stem = self.base.rsplit(".", 1)[0]
        with open(path, encoding="utf-8", errors="replace") as f:
            self.text = f.read()
        self.lines = self.text.split("\n")
        if self.lines[-1] == "":
            self.lines.pop()
        self.code = NOISE.sub(blank, self.text)
        self.plain = DIRECTIVE.sub(blank, self.code)
        self.includes = INCLUDE.findall(self.text)

    def line_of(self, pos):
        return self.text.count("\n", 0, pos) + 1


def load():
    files = {}
    for room, _, names in sorted(os.walk(os.path.join(ROOT, "src"))):
        for name in sorted(names):
            if name.endswith((".c", ".h", ".def")):
                f = File(os.path.join(room, name))
                files[f.name] = f
    return files


def toplevel(f):
    """Yields (first position, text, kind) of what stands at file level: kind
    is "func" with a body, or "decl". Braces are counted, not parsed."""
    depth, start, opened = 0, 0, None
    for m in TOKEN.finditer(f.plain):
        c = m.group()
        if c == "{":
            if depth == 0:
                opened = m.start()
            depth += 1
        elif c == "}":
            depth = max(depth - 1, 0)
            if depth == 0 and opened is not None:
                head = f.plain[start:opened]
                if is_function(head):
                    yield start, m.end(), head, "func"
                    start, opened = m.end(), None
        elif depth == 0:
            yield start, m.end(), f.plain[start:m.end()], "decl"
            start, opened = m.end(), None


def is_function(head):
    """A head before `{` that ends in its parameters, and is no initialiser."""
    head = re.sub(r"__attribute__\s*\(\(.*?\)\)", "", head, flags=re.S).rstrip()
    return head.endswith(")") and "=" not in head


def skip_space(text, pos):
    return pos + len(text[pos:]) - len(text[pos:].lstrip())


def is_mutable_global(text):
    t = " ".join(text.split())
    if re.match(r"(typedef|extern|_Static_assert|struct \w+ ?;|enum\b)", t):
        return False
    before = re.split(r"[={]", t)[0]
    if re.search(r"\b[A-Z][A-Z_0-9]*\s*\(|^X\(", before):
        return False
    if re.match(r"[^(]*\((?!\s*\*)", before):
        return False  # a prototype
    if re.match(r"(struct|union) \w+ ?{", t) and re.search(r"} ?;$", t):
        return False  # a definition of a type
    if not before.strip(" ;"):
        return False
    # The last const must bind to the object: after the last star, or no star.
    return "const" not in (before.rsplit("*", 1)[-1] if "*" in before
                           else before)


def check_includes(f, files, families, out):
    own, allowed = f.folder, MAY.get(f.folder)
    if allowed is None:
        out.append(f"{f.path}: no rule for folder src/{f.folder}: "
                   "add it to tools/layers.py")
        return
    for inc in f.includes:
        folder = inc.split("/")[0] if "/" in inc else own
        if folder == "opscope":
            continue
        if inc not in files:
            out.append(f'{f.path}: "{inc}" is not under src/ '
                       '(write "folder/file.h")')
        elif folder != own and folder not in allowed.split() and \
                inc not in MAY_FILE.get(own, ()):
            out.append(f"{f.path}: {own} may not include {inc}")
        elif folder == own and own in families:
            check_family(f, files[inc], families[own], out)
        if inc in files and folder == own and own in ROOMS:
            check_room(f, files[inc], out)


def check_room(f, inc, out):
    """What a room has is its own, but for what is named in ROOMS."""
    common = (f.room, f.folder, f"{f.folder}/{SHARED}")
    if inc.room not in common and inc.name not in ROOMS[f.folder]:
        out.append(f"{f.path}: may not include {inc.name}, which is private to "
                   f"{inc.room}/; what several rooms use stands in "
                   f"{f.folder}/{SHARED}/")


def has_own_user(f, files):
    """Does another file of its room include it? (Its .c file does not count.)"""
    return any(f.name in g.includes and g.stem != f.stem
               for g in files.values() if g.room == f.room)


def check_rooms(files, out):
    """No room of too many files; nothing shared that one room alone uses, and
    nothing named as open that nobody else opens."""
    size, users = {}, {}
    for f in files.values():
        size[f.room] = size.get(f.room, 0) + 1
        for inc in f.includes:
            users.setdefault(inc, set()).add(f.room)
    for room, n in size.items():
        if n > MAX_ROOM:
            out.append(f"src/{room}: {n} files (limit {MAX_ROOM})")
    for f in files.values():
        rooms = users.get(f.name, set())
        if f.base.endswith(".h") and f.room.endswith("/" + SHARED) and \
                len(rooms - {f.room}) == 1 and not has_own_user(f, files):
            out.append(f"{f.path}: only {min(rooms)}/ uses it: it belongs "
                       "there")
    for folder, headers in ROOMS.items():
        for name in headers:
            f = files.get(name)
            if f and users.get(name, set()) <= {f.room}:
                out.append(f"{f.path}: no other room uses it: take it out of "
                           "ROOMS in tools/layers.py")


def check_family(f, inc, entries, out):
    if any(inc.name in headers for headers in ROOMS.values()):
        return  # it is for other rooms, whoever it is named after
    a, b = owner(f, entries), owner(inc, entries)
    if b and a != b and a not in READS_OTHERS:
        out.append(f"{f.path}: may not include {inc.name}, which belongs to "
                   f"{b}; share it under a name of its own")


def owner(f, entries):
    """The table entry a file belongs to: its name, or name_more. What a room
    is named after belongs to all of the room."""
    for e in entries:
        if (f.stem == e or f.stem.startswith(e + "_")) and \
                (f.folder != "import" or f.stem != os.path.basename(f.room)):
            return e
    return None


def depth_of(name, files, seen=()):
    f = files.get(name)
    if not f or name in seen:
        return 0
    below = [depth_of(i, files, seen + (name,)) for i in f.includes]
    return 1 + max(below, default=0)


def check_text(f, out):
    for i, line in enumerate(f.lines, 1):
        if len(line) > MAX_COLS:
            out.append(f"{f.path}:{i}: {len(line)} columns (limit {MAX_COLS})")
        if "\t" in line or line != line.rstrip():
            out.append(f"{f.path}:{i}: tab or space at the end of the line")
    m = UNFINISHED.search(f.text)
    if m:
        out.append(f"{f.path}:{f.line_of(m.start())}: \"{m.group()}\": "
                   "finish it or file it")
    if f.base.endswith((".c", ".h")) and \
            not f.text.startswith("/* SPDX-License-Identifier: Apache-2.0\n"):
        out.append(f"{f.path}: must begin with the SPDX line")
    if f.base.endswith(".c") and len(f.lines) > MAX_FILE:
        out.append(f"{f.path}: {len(f.lines)} lines (limit {MAX_FILE})")


def check_formats(f, formats, out):
    """What others need of a format is a capability that its sources carry."""
    if f.folder in KNOWS_FORMATS:
        return
    for m in re.finditer(r'"(\w+)"', COMMENT.sub(blank, f.text)):
        if m.group(1) in formats and f.name != f"export/{m.group(1)}.c":
            out.append(f"{f.path}:{f.line_of(m.start())}: {m.group()} is a "
                       "format's name: ask what it can do (model/format.h)")


def check_names(f, out):
    """What a name means stands in one folder."""
    if f.name.startswith(KNOWS_OPS):
        return
    for m in re.finditer('"aten::', COMMENT.sub(blank, f.text)):
        out.append(f"{f.path}:{f.line_of(m.start())}: an op's name: ask what "
                   "it means (src/names)")


def check_cuts(f, out):
    """A precision counts bytes: it cuts letters in two."""
    if f.folder in FREE_FOLDERS or f.folder == "capture":
        return
    m = re.search(r'"[^"\n]*%[-0-9]*\.[0-9]+s', COMMENT.sub(blank, f.text))
    if m:
        out.append(f"{f.path}:{f.line_of(m.start())}: a precision may cut a "
                   "letter in two: %.*s with CUT() (base/text/cut.h)")


def check_code(f, out):
    m = PRINTS.search(f.plain)
    if m:
        out.append(f"{f.path}:{f.line_of(m.start())}: {m.group(1)}() prints "
                   "what it is given: use a screen (base/io/sink.h)")
    for pattern, users in WAYS_OUT.items():
        m = re.search(pattern, f.plain)
        if m and f.name not in users and f.folder not in FREE_FOLDERS:
            out.append(f"{f.path}:{f.line_of(m.start())}: {m.group(1)}() goes "
                       "around the screen (base/io/sink.h)")
    m = LOCAL_STATIC.search(f.plain)
    if m and f.folder not in FREE_FOLDERS:
        out.append(f"{f.path}:{f.line_of(m.start())}: static inside a function")
    m = EXITS.search(f.plain)
    if m and f.name not in LEAVES:
        out.append(f"{f.path}:{f.line_of(m.start())}: {m.group(1)}() "
                   "outside main()")
    m = UNSAFE_IN_REC.search(f.plain)
    if m and f.folder in ("ring", "rec") and f.name != "ring/sys.h":
        out.append(f"{f.path}:{f.line_of(m.start())}: {m.group(1)}() in a "
                   "program that is not ours: see ring/sys.h")


def measure(f, out, stats):
    """Function lengths, contracts and globals of one .c file."""
    for start, end, head, kind in toplevel(f):
        first = skip_space(f.plain, start)
        line = f.line_of(first)
        if kind == "func":
            n = f.text.count("\n", first, end) + 1
            m = FUNC_NAME.search(head)
            name = m.group(1) if m else "?"
            stats["func"].append((n, f"{f.path}: {name}"))
            shared = "static" not in head.split()
            has = f.text[:first].endswith("*/\n") or name in stats["told"]
            stats["doc"].append((shared, has))
            if n > MAX_FUNC:
                out.append(f"{f.path}:{line}: {name}() has {n} lines "
                           f"(limit {MAX_FUNC})")
        elif f.path not in GLOBALS and f.folder not in FREE_FOLDERS and \
                is_mutable_global(head):
            out.append(f"{f.path}:{line}: global that can change: "
                       f"{' '.join(head.split())[:50]}")


def told_in_header(f):
    """Names of functions whose prototype has a comment above or beside it, or
    above the group of lines that it stands in."""
    names = set()
    for block in re.split(r"\n[ \t]*\n", f.text):
        if "/*" in block:
            names.update(re.findall(r"\b(\w+)\(", NOISE.sub(blank, block)))
    return names


def tree_lines(*parts, ends=(".c", ".h", ".sh", ".bats", ".py")):
    n = 0
    for d, dirs, names in os.walk(os.path.join(ROOT, *parts)):
        dirs[:] = [x for x in dirs if x != "data"]
        for name in names:
            if name.endswith(ends) or name == "run":
                with open(os.path.join(d, name), errors="replace") as f:
                    n += sum(1 for _ in f)
    return n


def share(doc, shared_only):
    v = [has for shared, has in doc if shared or not shared_only]
    return f"{100 * sum(v) / max(len(v), 1):.0f}%"


def p95(values):
    return sorted(values)[int(len(values) * 0.95)] if values else 0


def report(files, stats):
    c = [f for f in files.values() if f.base.endswith(".c")]
    code = [f for f in files.values() if f.base.endswith((".c", ".h"))]
    lines = sum(len(f.lines) for f in code) or 1
    comment = sum(m.group().count("\n") + 1 for f in code
                  for m in NOISE.finditer(f.text) if m.group()[:1] == "/")
    fn = [n for n, _ in stats["func"]] or [0]
    plain = "\n".join(f.code for f in code)
    def per_kloc(pattern):
        return 1000 * len(re.findall(pattern, plain, re.M)) / lines
    # An include guard is not a variant of the code.
    ifs = per_kloc(r"^[ \t]*#[ \t]*if") - 1000 * sum(
        f.base.endswith(".h") for f in code) / lines
    sizes = [len(f.lines) for f in c] or [0]
    tests = tree_lines("tests")
    rows = [
        (".c file, lines: median", f"{statistics.median(sizes):.0f}", "350"),
        (".c file, lines: largest", f"{max(sizes)}", str(MAX_FILE)),
        ("function, lines: median", f"{statistics.median(fn):.0f}", "15"),
        ("function, lines: p95", f"{p95(fn)}", "60"),
        ("function, lines: longest", f"{max(fn)}", str(MAX_FUNC)),
        ("comment share", f"{100 * comment / lines:.0f}%", "20..30%"),
        ("contract: shared functions", share(stats["doc"], True), "80%"),
        ("contract: all functions", share(stats["doc"], False), "60%"),
        ("include depth", f"{stats['depth']}", str(MAX_DEPTH)),
        ("goto per 1,000 lines", f"{per_kloc(r'.goto ' + chr(92) + 'w'):.1f}",
         "4 or less"),
        ("assert per 1,000 lines", f"{per_kloc(r'.assert *[(]'):.1f}",
         "10 or more"),
        ("#if per 1,000 lines", f"{ifs:.1f}", "3 or less"),
        ("test : code, lines", f"{tests / lines:.2f}", "1.0"),
    ]
    print(f"{len(c)} .c files, {len(code) - len(c)} headers, {lines} lines, "
          f"{len(stats['func'])} functions; {tests} lines of tests")
    for what, is_, want in rows:
        print(f"  {what:28} {is_:>8}   budget {want}")
    print("longest functions:")
    for n, name in sorted(stats["func"], reverse=True)[:10]:
        print(f"  {n:5}  {name}")


def main():
    files = load()
    out, stats = [], {"func": [], "doc": [], "depth": 0, "told": set()}
    families = {}
    for folder, table in FAMILY.items():
        t = files.get(f"{folder}/{table}")
        families[folder] = ENTRY.findall(t.text) if t else []
    for f in files.values():
        if f.base.endswith(".h"):
            stats["told"] |= told_in_header(f)
    for f in files.values():
        check_text(f, out)
        check_includes(f, files, families, out)
        if f.base.endswith((".c", ".h")):
            check_code(f, out)
            check_cuts(f, out)
            check_formats(f, families["import"], out)
            check_names(f, out)
        if f.base.endswith(".c"):
            measure(f, out, stats)
            d = depth_of(f.name, files) - 1
            stats["depth"] = max(stats["depth"], d)
            if d > MAX_DEPTH:
                out.append(f"{f.path}: includes {d} deep (limit {MAX_DEPTH})")
    check_rooms(files, out)
    if "--report" in sys.argv[1:]:
        report(files, stats)
    for line in out:
        print(f"layers: {line}", file=sys.stderr)
    return 1 if out else 0


if __name__ == "__main__":
    sys.exit(main())
