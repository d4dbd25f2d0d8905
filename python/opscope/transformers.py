# SPDX-License-Identifier: Apache-2.0
"""A callback for the Trainer of Hugging Face's transformers:

    Trainer(..., callbacks=[opscope.transformers.Callback("logs")])"""

from ._capture.loop import Loop
from ._opscope import Error

__all__ = ["Callback"]


def Callback(log_dir="logs", steps="10..12", memory=False, shapes=False,
             stacks=False):
    """A callback that profiles these steps of the Trainer, counted from 1."""
    try:
        from transformers import TrainerCallback
    except ImportError:
        raise Error("opscope.transformers needs transformers: pip install "
                    "transformers") from None

    class OpscopeCallback(TrainerCallback):
        def __init__(self):
            self.loop = Loop(log_dir, steps, memory, shapes, stacks)

        @property
        def folder(self):
            return self.loop.profile.folder

        def on_train_begin(self, args, state, control, **kwargs):
            self.loop.begin()

        def on_epoch_begin(self, args, state, control, **kwargs):
            self.loop.epoch_begins()

        def on_step_begin(self, args, state, control, **kwargs):
            self.loop.step_begins("torch")

        def on_step_end(self, args, state, control, **kwargs):
            self.loop.step_ended("torch")

        def on_train_end(self, args, state, control, **kwargs):
            self.loop.end()

        def open(self):
            return self.loop.profile.open()
    OpscopeCallback.__name__ = OpscopeCallback.__qualname__ = "Callback"
    return OpscopeCallback()
