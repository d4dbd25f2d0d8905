# SPDX-License-Identifier: Apache-2.0
"""When a window opens that no --steps names: where steps have become even, or
where somebody asks for one."""

import os

from .ranks import AHEAD, Ranks

FEW_STEPS = 3           # a window has at least so many ...
FEW_NS = 50_000_000     # ... and lasts about so long ...
MOST_STEPS = 10         # ... but has no more than this
EVEN_STEPS = 4          # steps that must be alike before it opens
KEPT_STEPS = 32         # of which the length is remembered
FIRST_CHOICE = 5        # no step before this one is chosen
LAST_CHOICE = 30        # this one is, however uneven those before it are
LAST_CHOICE_NS = 30_000_000_000
POLL_NS = 100_000_000   # between looks for a capture on demand
DEMAND_FILE = "opscope.capture"
DEMAND_STEPS = 3


class Choice:
    """Chooses by itself, from what steps took until now."""

    def __init__(self, folder):
        self.folder = folder
        self.uneven = False     # it chose steps that were not even
        self._times = []        # ns of the last steps
        self._ranks = None      # what those of its job chose
        self._length = 0        # of the window that they chose

    def took(self, ns):
        """A step is over that took so long."""
        self._times.append(ns)
        if len(self._times) > 2 * KEPT_STEPS:
            del self._times[:KEPT_STEPS]

    def forget_times(self):
        """Steps that come are others than those until now."""
        self._times.clear()

    def is_here(self, number, seen, elapsed, drivers):
        """Does the window open at this step, before which so many were seen (a
        program's own numbers may begin anew)? `elapsed` are the ns since the
        first one. Ranks of one job choose one step, a little ahead."""
        if not _is_rank(drivers):
            return self._is_even(max(number, seen), elapsed)
        if self._ranks is None:
            self._ranks = Ranks(self.folder)
        chosen = self._ranks.chosen()
        if chosen is None and self._is_even(number, elapsed):
            self._ranks.choose(number + AHEAD, self.length())
            chosen = self._ranks.chosen()
        if chosen is None or number > chosen[0]:
            return self._is_even(number, elapsed)
        self._length = chosen[1]
        return number == chosen[0]

    def length(self):
        """How many steps the window has."""
        if self._length:
            return self._length
        t = sorted(self._times[-EVEN_STEPS:])
        mid = t[len(t) // 2] if t else FEW_NS
        return max(FEW_STEPS, min(MOST_STEPS, -(-FEW_NS // max(mid, 1))))

    def over(self):
        """The program is over: a job that comes later chooses for itself."""
        if self._ranks is not None:
            self._ranks.forget()

    def _is_even(self, number, elapsed):
        """Do steps repeat by now? The longer it takes, the less is asked."""
        t = self._times[-EVEN_STEPS:]
        if number < FIRST_CHOICE or len(t) < EVEN_STEPS - 1:
            return False
        late = min(number, LAST_CHOICE) - FIRST_CHOICE
        slack = 1.25 + 0.75 * late / (LAST_CHOICE - FIRST_CHOICE)
        if max(t) <= slack * min(t):
            return True
        self.uneven = number >= LAST_CHOICE or elapsed > LAST_CHOICE_NS
        return self.uneven


def _is_rank(drivers):
    try:
        where = next(filter(None, (d.rank() for d in drivers)), None)
        return where is not None and where[1] > 1
    except Exception:
        return False


class Demand:
    """Somebody asks by a file in the log folder."""

    def __init__(self, logdir):
        self.path = os.path.join(logdir, DEMAND_FILE)
        self.is_asked = False   # and not answered yet
        self._polled = 0
        self._last = None       # the request that was taken last

    def look(self, now):
        """Is a capture asked for? Looks now and then."""
        if self.is_asked:
            return True
        if now - self._polled < POLL_NS:
            return False
        self._polled = now
        request = self._request()
        if request is None or request == self._last:
            return False
        self._last, self.is_asked = request, True
        return True

    def _request(self):
        """What tells the file that lies there from another one, or None."""
        try:
            found = os.stat(self.path)
            return found.st_ino, found.st_mtime_ns
        except OSError:
            return None

    def answered(self):
        """Removes the request. Until then the other ranks can see it, which do
        the same steps."""
        self.is_asked = False
        if self._request() != self._last:
            return      # another rank removed it, or there is a new one
        try:
            os.unlink(self.path)
        except OSError:
            pass
