# SPDX-License-Identifier: Apache-2.0
"""What callbacks of training loops share: a profile of some steps, of which the
loop tells where each begins and ends.

Training that raised tells nothing more, and its recording would be in the way
of the next one: whoever begins to train ends it. A notebook may hold its
callback, in the traceback, for as long as it runs."""

import weakref

from . import engine
from .. import recording

_under_way = None   # weakly, the loop that trains and whose recording is on


def _end_of_a_dead_one():
    global _under_way
    loop = _under_way() if _under_way is not None else None
    _under_way = None
    if loop is not None:
        loop.end()


class Loop:
    on = False      # also where it could not be made

    def __init__(self, log_dir, steps, memory, shapes, stacks):
        self.profile = recording.profile(log_dir, steps=steps, memory=memory,
                                         shapes=shapes, stacks=stacks)

    def begin(self):
        """Training is about to begin."""
        _end_of_a_dead_one()
        if not self.on:
            self.profile.start()
            self.on = True

    def epoch_begins(self):
        """Until then two callbacks of one training are not told from one of
        it and one that is dead."""
        global _under_way
        if self.on and recording.is_on(self.profile.folder):
            _under_way = weakref.ref(self)

    def step_begins(self, framework):
        e = engine()
        if e is not None:
            e.begins("batch", (framework, 0))

    def step_ended(self, framework):
        e = engine()
        if e is not None:
            e.ended("batch", (framework, 0))

    def end(self):
        if self.on:
            self.on = False
            self.profile.stop()

    def __del__(self):
        if recording is not None:   # at its end Python takes it away
            self.end()
