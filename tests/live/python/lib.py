# SPDX-License-Identifier: Apache-2.0
"""What the live tests of the Python side share: programs under `opscope
record`, and what came of them. Cases print the lines that tests/run counts."""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
OPSCOPE = os.environ.get("OPSCOPE", os.path.join(ROOT, "build", "opscope"))
PACKAGE = os.path.join(ROOT, "build", "python")
PROGRAMS = os.path.join(HERE, "programs")
# One thread of each pool: a test must hold on a busy machine.
SMALL = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "",
         "JAX_PLATFORMS": "cpu", "OMP_NUM_THREADS": "1",
         "TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1",
         "TF_ENABLE_ONEDNN_OPTS": "0", "PYTHONDONTWRITEBYTECODE": "1"}


class Skip(Exception):
    """The case cannot be tried here; the text says why."""


def need(*modules):
    """Skips the case where a module is not installed."""
    for m in modules:
        if importlib.util.find_spec(m) is None:
            raise Skip("%s is not installed" % m)


def need_package():
    if not os.path.exists(os.path.join(PACKAGE, "opscope",
                                       "_opscope.abi3.so")):
        raise Skip("the Python extension is not built")


class Run:
    """A program under `opscope record`: its output, and its profile."""

    def __init__(self, folder, argv, options=(), env=None, cwd=None):
        self.logs = os.path.join(folder, "logs")
        command = [OPSCOPE, "record", "-o", self.logs, *options, "--", *argv]
        p = subprocess.run(command, cwd=cwd or folder, text=True,
                           env={**os.environ, **SMALL, **(env or {})},
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           timeout=600)
        self.status, self.out, self.err = p.returncode, p.stdout, p.stderr

    def doc(self, analysis, *options):
        return result(analysis, self.logs, *options)

    def rows(self, analysis, *options):
        return rows_of(self.doc(analysis, *options))

    def files(self):
        found = []
        for where, _, names in os.walk(self.logs):
            found += [os.path.join(where, n) for n in names]
        return sorted(found)


def result(analysis, path, *options):
    p = subprocess.run([OPSCOPE, analysis, path, "--format", "json", *options],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       text=True)
    if p.returncode not in (0, 3):
        raise AssertionError("%s: %s" % (analysis, p.stderr[-300:]))
    return json.loads(p.stdout)


def rows_of(doc):
    names = [c["name"] for c in doc["columns"]]
    return [dict(zip(names, r)) for r in doc["rows"]]


def bare(program, env=None):
    """The program without opscope. Returns its output."""
    p = subprocess.run([sys.executable, os.path.join(PROGRAMS, program)],
                       env={**os.environ, **SMALL, **(env or {})}, text=True,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       cwd=tempfile.gettempdir(), timeout=600)
    if p.returncode != 0:
        raise AssertionError("%s alone: status %d: %s"
                             % (program, p.returncode, p.stderr[-300:]))
    return p.stdout


def python(code, *needs, folder=None, env=None):
    """Runs a program that asserts for itself, in a folder of its own or in
    the one given. Returns its output."""
    need_package()
    need(*needs)
    with tempfile.TemporaryDirectory() as own:
        path = os.path.join(own, "p.py")
        with open(path, "w") as f:
            f.write(code)
        p = subprocess.run([sys.executable, path], cwd=folder or own,
                           text=True, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, timeout=600,
                           env={**os.environ, **SMALL, **(env or {}),
                                "PYTHONPATH": PACKAGE})
        assert p.returncode == 0, p.stderr[-600:]
        return p.stdout


def main(module):
    """Runs the cases test_* of a module, or those named on the command line.
    Returns the exit status."""
    failed = 0
    only = sys.argv[1:]
    for name, case in sorted(vars(module).items()):
        if not name.startswith("test_") or not callable(case):
            continue
        if only and not any(o in name for o in only):
            continue
        label = name[5:].replace("_", " ")
        try:
            case()
            print("ok", label)
        except Skip as e:
            print("ok %s # skip %s" % (label, e))
        except Exception as e:
            failed += 1
            print("not ok %s: %s: %s" % (label, type(e).__name__, str(
                e).replace("\n", " ")[:500]))
            traceback.print_exc(file=sys.stderr)
        sys.stdout.flush()
    return 1 if failed else 0
