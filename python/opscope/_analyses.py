# SPDX-License-Identifier: Apache-2.0
"""The analyses as methods: names, options and docstrings come from the
program's own tables, so that an analysis that is added there is a method here.
_analyses.pyi says the same to type checkers; `make docs` prints it."""

import functools
import inspect
import keyword
import textwrap

from . import _opscope
from ._opscope import Error


def parameter_of(option):
    """The name of an option as Python can write it: min_us, from_."""
    name = option["name"].replace("-", "_")
    return name + "_" if keyword.iskeyword(name) else name


@functools.lru_cache(None)      # most options are those of all analyses
def _folded(text, indent=""):
    return textwrap.fill(text, 68, subsequent_indent=indent)


def help_of(table):
    """The docstring of an analysis."""
    parts = [_folded(table["help"][:1].upper() + table["help"][1:] + "."), "",
             _folded("A row is %s." % table["row"]), "", "Options:"]
    for o in table["options"]:
        arg = " %s" % o["arg"] if o["arg"] else ""
        default = " (%s)" % o["default"] if o["default"] else ""
        parts.append(_folded("  %s%s: %s%s" % (
            parameter_of(o), arg, o["help"], default), "      "))
    return "\n".join(parts)


def option_text(value):
    """An option's value as the command line writes it."""
    if value is True:
        return "1"
    if value is False:
        return "0"
    if isinstance(value, range):
        if value.step != 1 or not len(value):
            raise Error("a range of steps goes up by 1 and is not empty")
        return "%d..%d" % (value[0], value[-1])
    if isinstance(value, (list, tuple)):
        return ",".join(str(v) for v in value)
    return str(value)


def _method_of(table):
    name = table["name"]

    def method(self, *none, **options):
        if none:
            raise Error("%s takes its options by name, such as %s(top=20)"
                        % (name, name))
        return self.run(name, **options)
    parameters = [inspect.Parameter(
        "self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    for o in table["options"]:
        parameters.append(inspect.Parameter(
            parameter_of(o), inspect.Parameter.KEYWORD_ONLY, default=None))
    method.__name__ = name
    method.__qualname__ = "Analyses." + name
    method.__doc__ = help_of(table)
    method.__signature__ = inspect.Signature(parameters)
    return method


class Analyses:
    """What can run() an analysis by its name, and so has a method of each."""


for _table in _opscope.analyses():
    setattr(Analyses, _table["name"], _method_of(_table))
del _table
