# SPDX-License-Identifier: Apache-2.0
"""A callback for Lightning:

    Trainer(callbacks=[opscope.lightning.Callback("logs", steps="10..12")])"""

import importlib

from ._capture.loop import Loop
from ._opscope import Error

__all__ = ["Callback"]


def _base():
    for name in ("lightning.pytorch", "pytorch_lightning"):
        try:
            return importlib.import_module(name).Callback
        except ImportError:
            continue
    raise Error("opscope.lightning needs Lightning: pip install lightning")


def Callback(log_dir="logs", steps="10..12", memory=False, shapes=False,
             stacks=False):
    """A Lightning callback that profiles these training batches, counted from
    1."""
    class OpscopeCallback(_base()):
        def __init__(self):
            super().__init__()
            self.loop = Loop(log_dir, steps, memory, shapes, stacks)

        @property
        def folder(self):
            return self.loop.profile.folder

        def on_train_start(self, trainer, module):
            self.loop.begin()

        def on_train_epoch_start(self, trainer, module):
            self.loop.epoch_begins()

        def on_train_batch_start(self, trainer, module, *args, **kwargs):
            self.loop.step_begins("torch")

        def on_train_batch_end(self, trainer, module, *args, **kwargs):
            self.loop.step_ended("torch")

        def on_train_end(self, trainer, module):
            self.loop.end()

        def on_exception(self, trainer, module, exception):
            self.loop.end()

        def open(self):
            return self.loop.profile.open()
    OpscopeCallback.__name__ = OpscopeCallback.__qualname__ = "Callback"
    return OpscopeCallback()
