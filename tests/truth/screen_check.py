#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What comes from outside steers no terminal, deceives no reader and is no
formula; and a script still gets it as it was.

A profile, an event file, paths, arguments and the environment are filled with
text made to do harm. Every command then writes to a pipe and to a terminal of
its own, as text, JSON and CSV, and each byte that comes out is held against a
rule that is not opscope's: Unicode's own categories, as Python knows them.

text, csv   nothing but characters that can be seen, blanks and ends of lines
json        the same, and valid for a strict parser; names come back as they are
csv         names come back by the rule of docs/output.md; no cell of text is a
            formula, numbers are numbers
errors      the same for what is said on stderr

usage: screen_check.py      program: $OPSCOPE or build/opscope
prints `ok NAME` or `not ok NAME: why`; exit 1 when anything differs
"""
import csv
import io
import json
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import unicodedata

import lib

HERE = os.path.dirname(os.path.abspath(__file__))
OPSCOPE = os.environ.get("OPSCOPE", "build/opscope")
OWN_SEQUENCES = re.compile(rb"\x1b\[(?:0|1|2|33|36)m|\x1b\[\d*[AJ]|\r")

HARM = [
    "\x1b]0;owned\x07\x1b[2J\x1b[31m", "\x9b31m", "\x90q\x9c", "bell\x07",
    "back\x08\x08", "cr\rover", "new\nline", "v\x0bt\x0cff", "del\x7f",
    "nul\x00here", "rtl\u202etxt.exe\u202c", "iso\u2066x\u2069", "alm\u061c",
    "mark\u200e\u200f", "zero\u200bwidth\u200c\u200d\u2060", "bom\ufeff",
    "soft\xadhyphen", "line\u2028para\u2029", "filler\u3164\u115f",
    "tag\U000e0041\U000e007f", "annot\ufff9\ufffb", "non\ufffe\uffff\ufdd0",
    "non\U0001fffe\U0010ffff", "music\U0001d173", "vs\ufe0f", "cgj\u034f",
    "=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\nx", "'=1", "''@x", " =1",
    "\uff1d1", "a;=1+1", "a;'=1", ";-1", "a,=1", '"=1', "C:\\u001b",
    "\\u005cu001b", "\\u005c\x1b", "C:\\temp\\new", 'q"u,o;t\'e',
    "\u00e9\u0301\u65e5\u672c\U0001f600", "100%s%n%d", "",
]
# Bytes that no text file may hold, and what a reader makes of them.
BAD_BYTES = {b"bad\xff\xfe": "bad\ufffd\ufffd",
             b"overlong\xc0\xaf": "overlong\ufffd\ufffd",
             b"half\xed\xa0\x80": "half\ufffd\ufffd\ufffd",
             b"beyond\xf4\x90\x80\x80": "beyond" + 4 * "\ufffd",
             b"cut\xe2\x82": "cut\ufffd\ufffd"}
ZERO_WIDTH = {0x34f, 0x115f, 0x1160, 0x3164, 0xffa0, *range(0xfe00, 0xfe10)}
failures = []


def say(name, wrong):
    lib.say(name, wrong)
    failures.extend(wrong)


def is_harmful(c):
    return unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") or \
        ord(c) & 0xfffe == 0xfffe or 0xfdd0 <= ord(c) <= 0xfdef or \
        ord(c) in ZERO_WIDTH


def harm_in(data, allowed="\n\t"):
    """What is wrong with bytes that people may look at."""
    data = data.replace(b"\r\n", b"\n")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as e:
        return ["not UTF-8: %r" % data[max(e.start - 20, 0):e.end + 20]]
    bad = sorted({c for c in text if is_harmful(c) and c not in allowed})
    return ["%r in %r" % (c, text[max(text.index(c) - 20, 0):][:60])
            for c in bad]


def strict(data):
    """JSON that any reader takes: no NaN, no half surrogates."""
    def refuse(word):
        raise ValueError(word)
    doc = json.loads(data.decode("utf-8"), parse_constant=refuse)
    json.dumps(doc, ensure_ascii=False).encode("utf-8")
    return doc


def from_csv(cell):
    """The text that a cell stands for: as in docs/output.md."""
    cell = re.sub(r"(^|;)'(?=[' ]*[-=+@\uff0d\uff1d\uff0b\uff20])", r"\1",
                  cell)
    cell = re.sub(r"\\u([0-9a-f]{4})", lambda m: chr(int(m[1], 16)), cell)
    return cell.encode("utf-16", "surrogatepass").decode("utf-16")


def run(*args, **env):
    return subprocess.run([OPSCOPE, *args], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env={**os.environ, **env}, timeout=600)


def run_on_terminal(*args, locale="C.UTF-8"):
    """All that reaches the terminal, be it by stdout or stderr."""
    pid, fd = pty.fork()
    if pid == 0:
        os.environ["TERM"], os.environ["LC_ALL"] = "xterm", locale
        os.execv(OPSCOPE, [OPSCOPE, *args])
    out = b""
    while True:
        try:
            piece = os.read(fd, 65536)
        except OSError:
            piece = b""
        if not piece:
            break
        out += piece
    os.close(fd)
    os.waitpid(pid, 0)
    return out.replace(b"\r\n", b"\n")


def expected(name):
    return name.replace("\x00", " ")


def write_trace(path):
    """Every harmful text as the name of an op, a region, a thread, a kernel,
    an argument; with a memory event, a counter and steps."""
    events, t = [], 0
    def add(**e):
        events.append(json.dumps({"pid": 1, "tid": 1, **e},
                                 ensure_ascii=False).encode())
    for i, n in enumerate(HARM):
        add(ph="M", name="thread_name", tid=i + 2, args={"name": n})
        add(ph="X", cat="cpu_op", name=n, ts=t, dur=8,
            args={n: n, "list": [n, {n: n}], "Input Dims": n})
        add(ph="X", cat="user_annotation", name=n, ts=t + 1, dur=2)
        add(ph="X", cat="cuda_runtime", name="cudaLaunchKernel", ts=t + 4,
            dur=1, args={"correlation": i + 1})
        add(ph="X", cat="kernel", name=n, pid=0, tid=7, ts=t + 5, dur=3,
            args={"correlation": i + 1, "device": 0, "stream": 7})
        add(ph="X", cat="python_function", name=n + "(3): " + n, ts=t, dur=9,
            args={"Python id": i + 1})
        add(ph="C", name=n, ts=t, args={n: i})
        add(ph="i", s="t", cat="cpu_instant_event", name="[memory]", ts=t + 2,
            args={"Bytes": 8 * i, "Addr": 512 * i, "Device Type": 1,
                  "Device Id": 0, "Total Allocated": 8 * i})
        t += 10
    for b in BAD_BYTES:
        events.append(b'{"ph":"X","cat":"cpu_op","pid":1,"tid":1,"ts":%d,'
                      b'"dur":8,"name":"%s","args":{"k":"%s\\ud800"}}'
                      % (t, b, b))
        t += 10
    with open(path, "wb") as f:
        f.write(b'{"traceEvents":[' + b",\n".join(events) + b"]}")


def crc(data):
    table = crc.__dict__.setdefault("table", [])
    for i in range(256 if not table else 0):
        for _ in range(8):
            i = i >> 1 ^ (0x82f63b78 if i & 1 else 0)
        table.append(i)
    c = 0xffffffff
    for b in data:
        c = table[(c ^ b) & 255] ^ c >> 8
    c ^= 0xffffffff
    return ((c >> 15 | c << 17) + 0xa282ead8) & 0xffffffff


def field(number, data):
    return bytes([number << 3 | 2]) + varint(len(data)) + data


def varint(v):
    out = b""
    while v > 127:
        out, v = out + bytes([v & 127 | 128]), v >> 7
    return out + bytes([v])


def write_events(path):
    """An event file with every harmful text as a tag."""
    with open(path, "wb") as f:
        for tag in [n.encode() for n in HARM if n] + list(BAD_BYTES):
            value = field(1, tag) + b"\x15" + struct.pack("<f", 1.5)
            event = b"\x09" + struct.pack("<d", 1e9) + b"\x10\x01" + \
                field(5, field(1, value))
            head = struct.pack("<Q", len(event))
            f.write(head + struct.pack("<I", crc(head)) + event +
                    struct.pack("<I", crc(event)))


def analyses():
    path = os.path.join(HERE, "..", "..", "src", "analyze", "analyses.def")
    with open(path, encoding="utf-8") as f:
        return re.findall(r"^X\((\w+)", f.read(), re.M)


def commands(folder):
    """Command lines that show what the files say."""
    trace, logs = os.path.join(folder, "t.json"), os.path.join(folder, "logs")
    words = [[a, trace] for a in analyses()]
    words += [["trace", trace], ["ops", trace, "--group", "shapes,stack"],
              ["stacks", trace, "--by", "host"], ["tree", trace, "--by", "op"],
              ["memory", trace, "--by", "op"], ["scalars", logs],
              ["scalars", logs, "--points"],
              ["watch", logs, "--count", "1"]]
    return words


def is_number(cell):
    return re.fullmatch(r"-?\d+(\.\d+)?([eE][-+]?\d+)?", cell)


def check_cells(doc, data):
    """CSV against the JSON of the same table."""
    table = list(csv.reader(io.StringIO(data.decode("utf-8"), newline="")))
    names = [c["name"] for c in doc["columns"]]
    if not table or table[0] != names or len(table) != len(doc["rows"]) + 1:
        return ["CSV has other columns or rows than JSON"]
    wrong = []
    for want, have in zip(doc["rows"], table[1:]):
        for column, a, b in zip(doc["columns"], want, have):
            if a is None:
                continue
            if column["type"] == "text":
                if from_csv(b) != a:
                    wrong.append("%r came back as %r" % (a, from_csv(b)))
                if re.match(r"[-=+@\t\r\n\uff0d\uff1d\uff0b\uff20]", b):
                    wrong.append("a formula: %r" % b)
            elif column["type"] != "bool" and not is_number(b):
                wrong.append("no number: %r" % b)
    return wrong


def check_output(words):
    """One command, every form, to a pipe and to a terminal."""
    wrong, doc = [], None
    for form in ("json", "csv", "text"):
        args = [*words, "--format", form]
        out = run(*args, *(["--top", "0"] if form == "text" and
                           words[0] not in ("watch",) else []))
        if out.returncode != 0:
            return ["exit %d: %r" % (out.returncode, out.stderr)]
        wrong += [form + ": " + w for w in
                  harm_in(out.stdout, "\n" if form != "csv" else "\n\t")]
        wrong += ["stderr: " + w for w in harm_in(out.stderr)]
        if form == "json":
            doc = strict(out.stdout)
        elif form == "csv" and words[0] != "watch":
            wrong += check_cells(doc, out.stdout)
        shown = run_on_terminal(*args)
        wrong += ["%s on a terminal: %s" % (form, w) for w in
                  harm_in(OWN_SEQUENCES.sub(b"", shown)
                          if form == "text" else shown)]
    return wrong


def check_names(trace):
    """JSON has every name as the file has it."""
    doc = strict(run("trace", trace, "--format", "json").stdout)
    at = [c["name"] for c in doc["columns"]]
    have = {row[at.index("name")] for row in doc["rows"]}
    want = {expected(n) for n in HARM} | set(BAD_BYTES.values())
    wrong = ["no %r" % n for n in want - have]
    for row in doc["rows"]:
        args = row[at.index("args")]
        if args is not None:
            strict(args.encode())
    return wrong


def check_messages(folder):
    """What is said on stderr: paths, words, options, programs, variables."""
    wrong = []
    texts = [n for n in HARM if n and "\x00" not in n] + \
        [os.fsdecode(b) for b in BAD_BYTES]
    trace = os.path.join(folder, "t.json")
    for n in texts:
        lines = [["info", n], [n], ["help", n], ["info", trace, "--top", n],
                 ["info", trace, "--run", n], ["info", trace, "--" + n],
                 ["info", trace, "--sort", n], ["convert", trace, n],
                 ["memory", trace, "--by", n], ["completion", n],
                 ["scalars", n], ["watch", n, "--count", "1"],
                 ["ops", trace, "--group", n]]
        for words in lines:
            if words[0] == "convert" and "/" not in n:
                words[-1] = os.path.join(folder, "none", n)
            out = run(*words)
            bad = harm_in(out.stderr, "\n") + harm_in(out.stdout, "\n")
            if out.returncode != 0 and out.stderr.count(b"\n") != 1:
                bad.append("not one line: %r" % out.stderr[:80])
            wrong += ["%r: %s" % (words, w) for w in bad]
    return wrong


def check_record(folder):
    wrong = []
    for n in ("x\x1b[31m", "y\x9b2J\n", os.fsdecode(b"z\xff\xc2")):
        where = os.path.join(folder, "rec" + n)
        lines = [["record", "-q", "-o", where, "--", n],
                 ["record", "-o", where, "--", "/bin/sh", "-c", ":"],
                 ["record", "-o", where, "--", "/bin/sh", "-c", "kill -9 $$"],
                 ["info", where], ["overview", where]]
        for words in lines:
            out = run(*words, OPSCOPE_HOST=n.replace("\n", ""))
            wrong += ["%r: %s" % (words, w) for w in harm_in(out.stderr, "\n")]
        shown = run_on_terminal(*lines[1])
        wrong += harm_in(OWN_SEQUENCES.sub(b"", shown))
    return wrong


def check_convert(trace):
    """JSON of other formats, to a pipe and to a terminal."""
    wrong = []
    out = run("convert", trace, "-", "--to", "chrome").stdout
    names = {e.get("name") for e in strict(out)["traceEvents"]}
    wrong += ["no %r" % n for n in
              {expected(n) for n in HARM if n} - names] + harm_in(out)
    shown = run_on_terminal("convert", trace, "-", "--to", "chrome")
    wrong += ["on a terminal: " + w for w in harm_in(shown)]
    shown = run_on_terminal("convert", trace, "-.gz", "--to", "chrome.gz")
    wrong += ["gz on a terminal: " + w for w in harm_in(shown)]
    return wrong


def check_old_terminal(trace):
    """Where the locale is not of UTF-8 a terminal gets ASCII: bytes of longer
    characters are controls there."""
    wrong = []
    for words in (["ops", trace], ["ops", trace, "--format", "csv"],
                  ["trace", trace, "--format", "json"], ["info", "\xdb\u65e5"]):
        shown = OWN_SEQUENCES.sub(b"", run_on_terminal(*words, locale="C"))
        if any(b >= 0x7f or b < 0x20 and b not in b"\n\t" for b in shown):
            wrong.append("%s: more than ASCII" % words)
    return wrong


def check_long(folder):
    """A name of a megabyte among short ones, with no limit on the width."""
    path = os.path.join(folder, "long.json")
    events = [{"ph": "X", "cat": "cpu_op", "pid": 1, "tid": 1, "dur": 1,
               "ts": 2 * i, "name": "x%d" % i} for i in range(50)]
    events[7]["name"] = "\u65e5\x1b" * (1 << 18)
    with open(path, "w", encoding="utf-8") as f:
        json.dump(events, f, ensure_ascii=False)
    wrong = []
    for more in (["--width", "0"], ["--width", "80"], ["--format", "csv"],
                 ["--format", "json"]):
        out = run("ops", path, "--top", "0", *more)
        wrong += harm_in(out.stdout)
        if len(out.stdout) > 4 << 20:
            wrong.append("%s: %d bytes" % (more, len(out.stdout)))
    return wrong


def main():
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "t.json")
        os.mkdir(os.path.join(folder, "logs"))
        write_trace(trace)
        write_events(os.path.join(folder, "logs", "events.out.tfevents.1.h"))
        for words in commands(folder):
            label = " ".join([words[0], *words[2:]])
            try:
                wrong = check_output(words)
            except (ValueError, KeyError) as e:
                wrong = ["%s: %s" % (type(e).__name__, e)]
            say(label, wrong)
        say("names in JSON", check_names(trace))
        say("messages", check_messages(folder))
        say("record", check_record(folder))
        say("convert", check_convert(trace))
        say("terminals without UTF-8", check_old_terminal(trace))
        say("long names", check_long(folder))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
