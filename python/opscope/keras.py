# SPDX-License-Identifier: Apache-2.0
"""A callback for Keras that profiles some batches of fit():

    model.fit(x, y, callbacks=[opscope.keras.Callback("logs", (100, 102))])

Batches count from 1, over all epochs, as those of TensorBoard's callback do.
It runs on whatever Keras runs on: TensorFlow, PyTorch or JAX."""

import importlib
import sys

from . import _capture, recording
from ._capture.loop import Loop
from ._opscope import Error

__all__ = ["Callback", "batches_of"]


def _base():
    """The Callback class of the Keras that the program uses."""
    for name in ("keras", "tf_keras"):
        if name in sys.modules:
            return importlib.import_module(name + ".callbacks").Callback
    if "tensorflow" in sys.modules:
        return sys.modules["tensorflow"].keras.callbacks.Callback
    try:
        return importlib.import_module("keras.callbacks").Callback
    except ImportError:
        raise Error("opscope.keras needs Keras: pip install keras, or "
                    "tensorflow") from None


def _number(value, what):
    if isinstance(value, bool) or not isinstance(value, int):
        try:
            value = int(str(value).strip())
        except ValueError:
            raise Error("profile_batch=%r: %r is no number of a batch"
                        % (what, value)) from None
    if value < 0:
        raise Error("profile_batch=%r: batches count from 1" % (what,))
    return value


def batches_of(given):
    """(first, last) of profile_batch: 100, (100, 102), [100, 102], '100,102';
    None for 0, which switches it off."""
    parts = given
    if isinstance(given, str):
        parts = given.replace("..", ",").split(",")
    elif isinstance(given, range):
        parts = (given[0], given[-1]) if len(given) else ()
    elif isinstance(given, (int, bool)) or given is None:
        if given is None or given is False or given == 0:
            return None
        if given is True:
            raise Error("profile_batch=True: say which batch")
        parts = (given,)
    try:
        numbers = [_number(p, given) for p in parts]
    except TypeError:
        raise Error("profile_batch=%r: a number, or two: the first and the "
                    "last batch" % (given,)) from None
    if len(numbers) not in (1, 2):
        raise Error("profile_batch=%r: a number, or two: the first and the "
                    "last batch" % (given,))
    first, last = numbers[0], numbers[-1]
    if first == 0 and last == 0:
        return None
    if first == 0 or last < first:
        raise Error("profile_batch=%r: batches count from 1, and the last is "
                    "not before the first" % (given,))
    return first, last


def Callback(log_dir="logs", profile_batch=(100, 102), memory=False,
             shapes=False, stacks=False):
    """A Keras callback that profiles these batches of fit() into log_dir, and
    keeps the loss and the metrics as curves."""
    batches = batches_of(profile_batch)

    class OpscopeCallback(_base()):
        def __init__(self):
            super().__init__()
            self.folder, self._said = None, []
            self._loop, self._seen = None, 0

        def on_train_begin(self, logs=None):
            if batches is None or self._loop is not None:
                return
            self._loop = Loop(log_dir, "%d..%d" % batches, memory, shapes,
                              stacks)
            self._loop.begin()
            self.folder = self._loop.profile.folder
            _capture.keras_hook.watch_loaded(_capture.engine)

        def on_epoch_begin(self, epoch, logs=None):
            if self._loop is not None:
                self._loop.epoch_begins()

        def on_train_batch_end(self, batch, logs=None):
            self._seen += 1
            for name, value in (logs or {}).items():
                try:
                    recording.scalar(name, self._seen, float(value))
                except (TypeError, ValueError):
                    continue

        def on_train_end(self, logs=None):
            if self._loop is None:
                return
            self.end()
            if self._seen < batches[0]:
                self._said = [
                    "fit() ended after batch %d, before batch %d that was to "
                    "be profiled" % (self._seen, batches[0])]

        def end(self):
            """Ends the recording, if it goes on. The end of fit() does."""
            if self._loop is not None:
                self._loop.end()

        @property
        def problems(self):
            told = self._loop.profile.problems if self._loop else []
            return told + self._said

        def open(self):
            """What was recorded, as opscope.open() gives it."""
            if self._loop is None:
                raise Error("nothing was profiled")
            return self._loop.profile.open()

        def overview(self):
            return self.open().overview()
    OpscopeCallback.__name__ = OpscopeCallback.__qualname__ = "Callback"
    return OpscopeCallback()
