# SPDX-License-Identifier: Apache-2.0
"""The command `opscope` of a wheel: becomes the program in C, which lies in the
package, or where make put it beside the sources."""

import os
import sys


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    program = os.path.join(here, "_bin", "opscope")
    if not os.path.exists(program):
        program = os.path.join(os.path.realpath(here), "..", "..", "build",
                               "opscope")
    try:
        os.execv(program, ["opscope"] + sys.argv[1:])
    except OSError as e:
        sys.exit("opscope: %s: %s" % (program, e.strerror))


if __name__ == "__main__":
    main()
