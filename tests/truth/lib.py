# SPDX-License-Identifier: Apache-2.0
"""What the checks of this folder share: they ask the program in $OPSCOPE (or
build/opscope), say what they found, and walk protobuf by themselves."""
import json
import os
import subprocess
import sys
from decimal import Decimal

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
DATA = os.path.join(HERE, "..", "data")
OPSCOPE = os.environ.get("OPSCOPE", os.path.join(ROOT, "build", "opscope"))
NAME = os.path.basename(sys.argv[0]).partition(".")[0]


class Failed(RuntimeError):
    """The program's status was not 0; `status` has it."""

    def __init__(self, what, status, text):
        super().__init__("%s: exit %d: %s" % (what, status, text.strip()))
        self.status, self.text = status, text


def table(analysis, paths, *opts, real=Decimal, whole=int):
    """(document, rows) of `opscope ANALYSIS PATHS OPTS --format json`: a row is
    a dict by the columns' names. `paths` is one or several."""
    paths = [paths] if isinstance(paths, str) else paths
    p = subprocess.run([OPSCOPE, analysis, *paths, "--format", "json", *opts],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if p.returncode != 0:
        raise Failed(" ".join([analysis, *paths, *opts]), p.returncode,
                     p.stderr.decode(errors="replace"))
    doc = json.loads(p.stdout, parse_float=real, parse_int=whole)
    names = [c["name"] for c in doc["columns"]]
    return doc, [dict(zip(names, row)) for row in doc["rows"]]


def rows(analysis, paths, *opts, **types):
    """The rows alone."""
    return table(analysis, paths, *opts, **types)[1]


# --- what was found ---------------------------------------------------------

said = []  # the result of each case


def say(name, wrong):
    """One case: `wrong` is a list of sentences or one; none when it is right.
    Returns whether it is."""
    wrong = [wrong] if isinstance(wrong, str) and wrong else list(wrong or ())
    if not name.startswith(NAME):
        name = "%s %s" % (NAME, name) if name else NAME
    print("not ok %s: %s" % (name, "; ".join(wrong[:6])) if wrong
          else "ok %s" % name, flush=True)
    said.append(not wrong)
    return not wrong


def skip(name, why):
    print("ok %s %s # skip %s" % (NAME, name, why), flush=True)
    said.append(True)


def status():
    """The exit status: 0 when there was a case and all of them are right."""
    if not said:
        say("", "nothing was looked at")
    return 0 if all(said) else 1


# --- protobuf ---------------------------------------------------------------

def varint(b, at):
    """(value, where it ends)."""
    v = shift = 0
    while True:
        v |= (b[at] & 0x7F) << shift
        shift += 7
        at += 1
        if b[at - 1] < 0x80:
            return v, at


def wire_fields(b):
    """(number, wire type, value) of each field: int, 4 or 8 bytes, or bytes."""
    at = 0
    while at < len(b):
        tag, at = varint(b, at)
        if tag & 7 == 0:
            v, at = varint(b, at)
        else:
            n = 8 if tag & 7 == 1 else 4
            if tag & 7 == 2:
                n, at = varint(b, at)
            v, at = b[at:at + n], at + n
        yield tag >> 3, tag & 7, v


def fields(b):
    """(number, value) of each field."""
    return ((number, v) for number, _, v in wire_fields(b))
