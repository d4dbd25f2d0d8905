# SPDX-License-Identifier: Apache-2.0
"""Keras, whatever it runs on: the batches of fit() are steps. Keras tells its
callbacks of each; we listen where it tells them. A loop of one's own calls an
optimizer: in eager mode its apply() ends a step."""

import importlib
import sys
import threading

from .calls import around, told_after, told_before
from .numbering import number_of

# Where each Keras keeps its list of callbacks, and its optimizers.
PLACES = {
    "keras": (("keras.src.callbacks.callback_list", "CallbackList"),
              ("keras.callbacks.callback_list", "CallbackList"),
              ("keras.src.callbacks", "CallbackList"),
              ("keras.callbacks", "CallbackList")),
    "tf_keras": (("tf_keras.src.callbacks", "CallbackList"),
                 ("tf_keras.callbacks", "CallbackList")),
}
MODELS = {
    "keras": (("keras.src.models.model", "Model"),),
    "tf_keras": (("tf_keras.src.engine.training", "Model"),),
}
OPTIMIZERS = {
    "keras": (("keras.src.optimizers.base_optimizer", "BaseOptimizer"),
              ("keras.src.optimizers.optimizer", "_BaseOptimizer")),
    "tf_keras": (("tf_keras.src.optimizers.optimizer", "_BaseOptimizer"),
                 ("tf_keras.src.optimizers.optimizer", "Optimizer")),
}
_watched = set()


def _first(places):
    for module, name in places:
        try:
            found = getattr(importlib.import_module(module), name, None)
        except ImportError:
            continue
        if found is not None:
            return found
    return None


def _is_eager():
    tf = sys.modules.get("tensorflow")
    return tf is not None and tf.executing_eagerly()


def _backend(name):
    """The framework that this Keras runs on."""
    try:
        module = sys.modules[name]
        return module.backend.backend() if name == "keras" else "tensorflow"
    except Exception:
        return "tensorflow"


class _Inside(threading.local):
    """Is this thread in a call of a model?"""
    busy = False


def _is_at_top(backend):
    """Does a call happen now, or is a function only traced?"""
    if backend == "tensorflow":
        return _is_eager()
    core = sys.modules.get("jax._src.core")
    return backend == "jax" and core is not None and core.trace_state_clean()


def _watch_model(model, engine, backend):
    """A loop that only calls a model: each outermost call is a unit."""
    inner, inside = model.__call__, _Inside()

    def before(args, kwargs):
        e = engine()
        if e is None or inside.busy or not _is_at_top(backend):
            return None
        key = backend, ("model", number_of(args[0])), "calls of a model"
        e.begins("call", key)
        inside.busy = True
        return (e, key), inner, args, kwargs

    def after(token, error, value):
        inside.busy = False
        token[0].ended("call", token[1])
    model.__call__ = around(inner, before, after)


def watch(name, engine):
    """Listens to a Keras that was imported; engine() gives the engine of the
    moment, or None."""
    if name in _watched:
        return
    _watched.add(name)
    callbacks = _first(PLACES.get(name, ()))
    optimizer = _first(OPTIMIZERS.get(name, ()))
    model = _first(MODELS.get(name, ()))

    backend = _backend(name)

    def model_of(callbacks):
        return (getattr(callbacks, "_model", None)
                or getattr(callbacks, "model", None))

    def key_of(callbacks):
        return backend, number_of(model_of(callbacks))

    def begins(self):
        e = engine()
        if e is None:
            return
        n = getattr(model_of(self), "steps_per_execution", 1)
        if isinstance(n, int) and n > 1:
            e.problem("keras: steps_per_execution is %d: a step is one "
                      "execution, of %d batches" % (n, n))
        e.begins("batch", key_of(self))

    def ended(self):
        e = engine()
        if e is not None:
            e.ended("batch", key_of(self))

    def stepped(self, value):
        e = engine()
        if e is not None and _is_eager():
            e.ended("optimizer", (backend, number_of(self)))

    if callbacks is not None:
        callbacks.on_train_batch_begin = told_before(
            callbacks.on_train_batch_begin, begins)
        callbacks.on_train_batch_end = told_before(
            callbacks.on_train_batch_end, ended)
    if model is not None:
        _watch_model(model, engine, backend)
    if optimizer is not None:
        apply = "apply" if "apply" in vars(optimizer) else "apply_gradients"
        if hasattr(optimizer, apply):
            setattr(optimizer, apply, told_after(getattr(optimizer, apply),
                                                 stepped))


def watch_loaded(engine):
    """Listens to each Keras that is imported by now."""
    for name in PLACES:
        if name in sys.modules:
            watch(name, engine)
