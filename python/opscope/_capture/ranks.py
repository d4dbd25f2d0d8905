# SPDX-License-Identifier: Apache-2.0
"""Ranks of one job choose the same steps.

Who waits for whom can be told of steps that all ranks traced. Where the user
names no steps, the first rank that finds its own even writes down which are to
be traced, two steps ahead: no rank is further, for they wait for each other in
each step. The others look there before each step until they have chosen. It
lies in the run's folder, named after the process that started them all."""

import os

AHEAD = 2


class Ranks:
    """What the ranks that this process's parent started agreed on."""

    def __init__(self, folder):
        self._path = os.path.join(folder, "%d.window" % os.getppid())
        self._is_mine = False

    def chosen(self):
        """(first step, how many), or None."""
        try:
            with open(self._path, encoding="ascii") as f:
                first, n = f.read().split()
            return int(first), int(n)
        except (OSError, ValueError):
            return None

    def choose(self, first, n):
        """Writes it down, unless another rank was quicker."""
        part = "%s.%d" % (self._path, os.getpid())
        try:
            with open(part, "w", encoding="ascii") as f:
                f.write("%d %d" % (first, n))
            try:
                os.link(part, self._path)
                self._is_mine = True
            finally:
                os.unlink(part)
        except OSError:
            pass

    def forget(self):
        """At the end: a job that comes later chooses for itself."""
        if self._is_mine:
            try:
                os.unlink(self._path)
            except OSError:
                pass
