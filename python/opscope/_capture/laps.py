# SPDX-License-Identifier: Apache-2.0
"""Stretches of steps from an idle device to an idle device, outside of windows.

Work is handed over to a GPU, and XLA's to threads of its own on a CPU, too: a
program that does not look at results runs ahead, and its steps look as short
as the handing over. What they really take is seen where the device has nothing
left to do: the time from one such moment to another one, by the steps in
between. So a few times in a program's life the engine waits for the device
between two steps. A wait costs what the device idles until the next step's
first work reaches it: part of a step, at seven steps of some hundreds.

The recording gets a span from wait to wait, and one of the wait at its end, of
which src/load/laps.c makes figures. Where no device is in use nobody waits."""

from .window import FOREVER

FIRST = 3       # the step at which the first one begins: none of the warm-up
LENGTHS = (8, 16, 32, 64, 64, 64)       # steps
LAP = "opscope: steps from an idle device to an idle device"
WAIT = "opscope: waits for the device"  # as src/base/facts.h has both


class Laps:
    def __init__(self, native):
        self._native = native if hasattr(native, "async_begin") else None
        self._lengths = list(LENGTHS)
        self._span = None
        self.next = FIRST if self._native else FOREVER

    def turn(self, number, drivers):
        """Step `number` is about to begin, outside of windows."""
        if number < self.next:
            return
        self.end(drivers)
        if not self._lengths:
            self.next = FOREVER
            return
        self.next = number + self._lengths.pop(0)
        queues = [d for d in drivers if d.has_queue()]
        if queues and _are_idle(queues):
            self._span = self._native.async_begin(LAP)

    def drop(self):
        """The program is over, in the middle of one: without a wait at its end
        it tells nothing."""
        span, self._span = self._span, None
        if span is not None:
            self._native.async_end(span)

    def end(self, drivers):
        """Ends the one that is open: it is over, or a window begins."""
        span, self._span = self._span, None
        if span is None:
            return
        wait = self._native.async_begin(WAIT)
        is_idle = _are_idle(drivers)
        # a stretch tells nothing if the wait at its end outlasts it
        for s in (wait, span) if is_idle else (span, wait):
            self._native.async_end(s)


def _are_idle(drivers):
    """Waits for their devices. A computation that failed is the program's to
    see."""
    try:
        for d in drivers:
            d.sync()
    except Exception:
        return False
    return True
