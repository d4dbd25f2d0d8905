# SPDX-License-Identifier: Apache-2.0
"""Does opscope run in this Python? Where it does not, importing it says so in a
sentence. Any Python can read this file, also one that is far too old."""

import sys


def refuse():
    """Raises ImportError in a Python that cannot load the extension."""
    if sys.version_info < (3, 9):
        raise ImportError(
            "opscope needs Python 3.9 or later, and this is Python %d.%d; "
            "`opscope record` still sees its programs from outside"
            % sys.version_info[:2])
    if sys.implementation.name != "cpython":
        raise ImportError("opscope needs CPython, and this is %s"
                          % sys.implementation.name)
    if "t" in sys.abiflags:
        raise ImportError(
            "opscope does not run in a free-threaded Python yet: use python%d."
            "%d without the t" % sys.version_info[:2])


def explained(error):
    """Returns the ImportError of the extension as one that says what to do."""
    text = str(error)
    if "main interpreter" in text:
        return error
    if "subinterpreter" in text:
        better = "opscope does not work in sub-interpreters: import it in " \
            "the main interpreter of the process"
    elif "cannot import name" in text or "No module named" in text:
        better = "opscope's extension is not built: `make python` builds it " \
            "in the source tree, `pip install .` installs all of it"
    elif "GLIBC_" in text:
        better = "this system's C library is older than the one that this " \
            "wheel was made for: build opscope here, with `pip install .` " \
            "in its source tree (%s)" % text
    else:
        better = "opscope's extension cannot be loaded: " + text
    explained = ImportError(better)
    explained.__cause__ = None
    return explained
