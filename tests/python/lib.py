# SPDX-License-Identifier: Apache-2.0
"""What the Python tests share: cases are functions named test_*, and each
prints one line that tests/run counts: `ok NAME`, `not ok NAME: why`,
`ok NAME # skip why`."""

import functools
import glob
import os
import shutil
import subprocess
import sys
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
PACKAGE = os.path.join(ROOT, "build", "python")


# The Pythons that one build of the extension serves.
SERVED = [(3, minor) for minor in range(9, 14)]


class Skip(Exception):
    """The case cannot be tried here; the text says why."""


def _asked(python):
    """(major, minor) of a Python, its letters (t: free-threaded), and where
    it really is; None if it does not run."""
    ask = "import sys; print('%d %d %s %s' % (sys.version_info[:2] + (" \
        "getattr(sys, 'abiflags', '') or '-', sys.executable)))"
    try:
        p = subprocess.run([python, "-c", ask], text=True, timeout=60,
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        major, minor, letters, path = p.stdout.strip().split(" ", 3)
        return (int(major), int(minor)), letters.strip("-"), path
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


@functools.lru_cache(None)
def all_pythons():
    """Each Python that runs here: {(major, minor, letters): path}. It asks
    them: a name on $PATH may be a shim for nothing."""
    names = ["python3", "python2.7"] + [
        "python3.%d%s" % (minor, letter) for minor in range(6, 16)
        for letter in ("", "t")]
    names += sorted(glob.glob("/usr/bin/python3.*[0-9t]"))
    root = os.environ.get("PYENV_ROOT")
    shim = shutil.which("pyenv")
    if root is None and shim is not None:
        root = os.path.dirname(os.path.dirname(os.path.realpath(shim)))
    for folder in filter(None, (root, os.path.dirname(os.path.dirname(
            shutil.which("python3") or "")))):
        names += sorted(glob.glob(folder + "/versions/*/bin/python"))
    found = {}
    for name in [sys.executable] + names:
        got = _asked(name)
        if got is not None:
            found.setdefault((*got[0], got[1]), got[2])
    return found


def pythons():
    """The Pythons that opscope is for: {(3, 9): path, ...}."""
    return {v: all_pythons()[(*v, "")] for v in SERVED
            if (*v, "") in all_pythons()}


def run(module):
    """Runs the cases of a module. Returns the exit status."""
    failed = 0
    for name, case in sorted(vars(module).items()):
        if not name.startswith("test_") or not callable(case):
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
                e).replace("\n", " ")[:400]))
            traceback.print_exc(file=sys.stderr)
        sys.stdout.flush()
    return 1 if failed else 0
