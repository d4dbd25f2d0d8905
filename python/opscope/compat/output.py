# SPDX-License-Identifier: Apache-2.0
"""Where a table goes beside the result: the option `output`."""

import os
import subprocess

from .errors import Error
from .marks import keys


def put_out(t, marks, o):
    """To stdout, or to a file. Returns the table."""
    kind, path = o.output_file()
    if kind == "stdout":
        print(t.text())
    elif kind == "file":
        form = {".json": t.json, ".csv": t.csv}.get(
            os.path.splitext(path)[1], t.text)
        try:
            with open(path, "w", encoding="utf-8", newline="") as f:
                f.write(form())
        except OSError as e:
            raise Error("output: %s: %s" % (path, e.strerror)) from None
    elif kind == "timeline":
        _timeline(t, marks, path)
    elif kind == "pprof":
        t.remark("output pprof is not honoured: opscope does not write "
                 "pprof's format; with_timeline_output() writes one that "
                 "Perfetto shows.")
    return t


def _timeline(t, marks, path):
    """Chrome's trace format, by the command that comes with the package; of
    several marks a file for each, with its name."""
    marks = [m for m in marks if m.files]
    if not marks:
        t.remark("output timeline is not honoured: nothing was recorded.")
    stem, suffix = os.path.splitext(path)
    for m, key in zip(marks, keys(marks)):
        to = path if len(marks) == 1 else "%s_%s%s" % (
            stem, key.replace(os.sep, "_"), suffix)
        wrong = _convert(m.files[0], to)
        t.remark("output timeline is not honoured: %s" % wrong if wrong
                 else "The timeline of %s is %s." % (key, to))


def _convert(source, to):
    """Returns what went wrong, or None."""
    try:
        done = subprocess.run([_command(), "convert", source, to, "--to",
                               "chrome", "--force"], text=True,
                              stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE)
    except OSError as e:
        return "the command opscope: %s" % e.strerror
    return done.stderr.strip() or "convert failed" if done.returncode \
        else None


def _command():
    """The command: the wheel's, the one of a build folder, or PATH's."""
    import opscope
    here = os.path.dirname(os.path.abspath(opscope.__file__))
    for path in (os.path.join(here, "_bin", "opscope"),
                 os.path.normpath(os.path.join(here, "../../opscope"))):
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return "opscope"
