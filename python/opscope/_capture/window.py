# SPDX-License-Identifier: Apache-2.0
"""Which steps are to be traced: the language of `opscope record --steps`.

It is the recorder's own (src/ring/window.h): "100..102", "1,10,100", "500..",
"every 50 for 3", "10s..20s", "demand". The recorder asks by itself; this copy
is for the steps that the engine counts in Python programs."""

import re

UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
VALUE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(us|ms|s|min|h)?(?![a-z])\s*")
FOREVER = float("inf")


class Part:
    """Holds x if start <= x < end and, where it repeats, x lies in the first
    `length` of its period."""

    def __init__(self, start, end, every, length, time):
        self.start, self.end = start, end
        self.every, self.length, self.time = every, length, time

    def holds(self, x):
        if not self.start <= x < self.end:
            return False
        return not self.every or (x - self.start) % self.every < self.length


    def next_after(self, x):
        """The first step behind x that it holds; FOREVER if there is none."""
        if x < self.start:
            return self.start
        x += 1
        if self.every and (x - self.start) % self.every >= self.length:
            x += self.every - (x - self.start) % self.every
        return x if x < self.end else FOREVER


def _value(text, at, part, before):
    m = VALUE.match(text, at)
    if not m:
        raise ValueError("'%s': a step or a time must follow %s"
                         % (part, before))
    if m.group(2):
        return float(m.group(1)) * UNITS[m.group(2)], True, m.end()
    if "." in m.group(1):
        raise ValueError("'%s': a step is a whole number" % part)
    return int(m.group(1)), False, m.end()


def _period(part):
    every, time, at = _value(part, 5, part, "'every'")
    rest = part[at:].strip()
    if rest.startswith("for"):
        length, other, at = _value(rest, 3, part, "'for'")
        rest = rest[at:].strip()
    elif time:
        raise ValueError("'%s': say for how long: 'every 60s for 2s'" % part)
    else:
        length, other = 1, False
    if rest:
        raise ValueError("'%s': '%s' was not expected there" % (part, rest))
    if time != other:
        raise ValueError("'%s': one value is a time, the other a number of "
                         "steps" % part)
    if not every or not length:
        raise ValueError("'%s': 0 gives no period" % part)
    if length > every:
        raise ValueError("'%s': it lasts longer than its period" % part)
    return Part(0, FOREVER, every, length, time)


def _range(part):
    start, end, time = 0, FOREVER, False
    left, dots, right = part.partition("..")
    if left.strip():
        start, time, at = _value(left, 0, part, "the comma")
        if left[at:].strip():
            raise ValueError("'%s': '%s' was not expected there"
                             % (part, left[at:].strip()))
    if right.strip():
        end, other, at = _value(right, 0, part, "'..'")
        if right[at:].strip():
            raise ValueError("'%s': '%s' was not expected there"
                             % (part, right[at:].strip()))
        if left.strip() and time != other:
            raise ValueError("'%s': one end is a time, the other a step" % part)
        time = other
        end += 0 if time else 1
    elif not dots:
        if time:
            raise ValueError("'%s': a time is not a range: end it with '..'"
                             % part)
        end = start + 1
    elif not left.strip():
        raise ValueError("'%s': a step or a time must follow '..'" % part)
    if start >= end:
        raise ValueError("'%s': it ends before it begins" % part)
    return Part(start, end, 0, 0, time)


class Window:
    """Answers for a step or for seconds since the start."""

    def __init__(self, text):
        self.text = text
        self.demand = False
        self.parts = []
        for part in str(text).split(","):
            part = part.strip()
            if not part:
                raise ValueError("a step, a range, 'every N' or 'demand' is "
                                 "missing")
            if part == "demand":
                self.demand = True
            elif part.startswith("every"):
                self.parts.append(_period(part))
            elif part[0].isdigit() or part.startswith(".."):
                self.parts.append(_range(part))
            else:
                raise ValueError("'%s': not a step, a range, 'every N' or "
                                 "'demand'" % part)
        self.by_time = any(p.time for p in self.parts)

    def next_after(self, step):
        """The first step behind that one that is wanted, of a window without
        times; FOREVER if there is none."""
        return min((p.next_after(step) for p in self.parts), default=FOREVER)

    def begins_after(self, step):
        """The steps and ranges that begin behind that step, as people write
        them."""
        return ["%d%s" % (p.start, "" if p.end == p.start + 1 else ".."
                          if p.end == FOREVER else "..%d" % (p.end - 1))
                for p in self.parts if not p.time and p.start > step]

    def wants(self, step, seconds):
        for p in self.parts:
            if p.holds(seconds if p.time else step):
                return True
        return False
