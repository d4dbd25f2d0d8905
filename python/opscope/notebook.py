# SPDX-License-Identifier: Apache-2.0
"""In a notebook: `%load_ext opscope`, then

    %%opscope --steps 10..12 --memory
    for batch in loader: ...

profiles a cell and shows its overview, and `%opscope ops logs --top 5` shows an
analysis of any profile."""

import argparse
import shlex

from . import reading, recording
from ._opscope import Error


class _Parser(argparse.ArgumentParser):
    """One that raises instead of ending the kernel."""

    def error(self, message):
        raise Error("%%%%opscope: %s" % message)

    def exit(self, status=0, message=None):
        raise Error(message or self.format_usage())


def _parser():
    p = _Parser(prog="%%opscope", add_help=False)
    p.add_argument("-o", "--output", default="opscope-logs")
    p.add_argument("--steps")
    for name in ("--memory", "--shapes", "--stacks"):
        p.add_argument(name, action="store_true")
    return p


def _words(line):
    try:
        return shlex.split(line)
    except ValueError as e:
        raise Error("%%%%opscope: %s" % e) from None


def _refuse_await(shell, cell):
    """A magic cannot wait: the kernel's event loop runs it."""
    asks = getattr(shell, "should_run_async", None)
    if asks is not None and asks(cell, transformed_cell=shell.transform_cell(
            cell)):
        raise Error("%%opscope does not run cells with await at their top: "
                    "write `with opscope.profile('logs') as prof:` around it")


def profile_cell(shell, line, cell):
    """Runs a cell, profiled, and shows its overview."""
    from IPython.display import display
    o = _parser().parse_args(_words(line))
    _refuse_await(shell, cell)
    prof = recording.profile(o.output, steps=o.steps, memory=o.memory,
                             shapes=o.shapes, stacks=o.stacks)
    with prof:
        shell.run_cell(cell)    # IPython shows an exception itself
    for text in prof.problems:
        print("opscope: " + text)
    try:
        display(prof.overview())
    except Error as e:
        print("opscope: %s" % e)


def show(line):
    """%opscope ANALYSIS PATH [--option value]..."""
    words = _words(line)
    if len(words) < 2:
        raise Error("%opscope takes an analysis and a profile: "
                    "%opscope ops logs --top 5")
    options, rest = {}, words[2:]
    while rest:
        name = rest.pop(0)
        if not name.startswith("--"):
            raise Error("%%opscope: '%s' is no option" % name)
        name, is_given, value = name[2:].partition("=")
        if not is_given:
            value = rest.pop(0) if rest and not rest[0].startswith(
                "--") else True
        options[name.replace("-", "_")] = value
    with reading.open(words[1]) as p:
        return p.run(words[0], **options)


def load_ipython_extension(shell):
    shell.register_magic_function(
        lambda line, cell=None: show(line) if cell is None
        else profile_cell(shell, line, cell),
        "line_cell", "opscope")
