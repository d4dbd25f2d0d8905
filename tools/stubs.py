#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""stubs.py [PACKAGES]: python/opscope/_analyses.pyi, printed from the tables:
what type checkers and editors know of the analyses. PACKAGES is a folder with
opscope in it, its extension built (build/python)."""

import os
import sys
import textwrap

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HEAD = '''\
# SPDX-License-Identifier: Apache-2.0
# Printed from the tables by `make docs`.
from typing import Any, Literal, Mapping, Optional, Sequence, Union

from .reading import Result

_Texts = Union[str, Sequence[str]]
_Range = Union[int, str, range]

def parameter_of(option: Mapping[str, Any]) -> str: ...
def help_of(table: Mapping[str, Any]) -> str: ...
def option_text(value: object) -> str: ...

class Analyses:
    """What can run() an analysis by its name, and so has a method of each."""
'''
TYPES = {"flag": "bool", "int": "int", "float": "float", "text": "_Texts",
         "bytes": "Union[int, str]", "us": "float", "range": "_Range"}


def type_of(option):
    if option["type"] == "choice":
        values = ", ".join('"%s"' % v for v in option["arg"].split("|"))
        return "Optional[Literal[%s]]" % values
    return "Optional[%s]" % TYPES[option["type"]]


def stub_of(table, tables):
    """The lines of one method."""
    yield "    def %s(" % table["name"]
    yield "        self,"
    yield "        *,"
    for o in table["options"]:
        yield textwrap.fill("        %s: %s = ...," % (
            tables.parameter_of(o), type_of(o)), 79,
            subsequent_indent=12 * " ")
    yield "    ) -> Result:"
    first, *rest = tables.help_of(table).split("\n")
    yield '        """' + first
    for line in rest:
        yield "        " + line if line else ""
    yield '        """'


def main():
    sys.dont_write_bytecode = True
    folder = sys.argv[1] if len(sys.argv) > 1 else "build/python"
    sys.path.insert(0, os.path.join(ROOT, folder))
    import opscope
    from opscope import _analyses as tables
    print(HEAD, end="")
    for table in opscope.analyses():
        print("\n".join(stub_of(table, tables)))


if __name__ == "__main__":
    main()
