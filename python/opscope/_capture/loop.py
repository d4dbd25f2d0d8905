# SPDX-License-Identifier: Apache-2.0
"""What callbacks of training loops share: a profile of some steps, of which the
loop tells where each begins and ends."""

from . import engine


class Loop:
    def __init__(self, log_dir, steps, memory, shapes, stacks):
        from .. import recording
        self.profile = recording.profile(log_dir, steps=steps, memory=memory,
                                         shapes=shapes, stacks=stacks)
        self.on = False

    def begin(self):
        if not self.on:
            self.on = True
            self.profile.start()

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
