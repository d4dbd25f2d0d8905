#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Drivers without their frameworks: what they do where a framework's profiler
fails. Modules of a few lines stand where the frameworks' own would."""

import contextlib
import os
import sys
import tempfile
import threading
import types

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import lib  # noqa: E402


def _load():
    """The drivers by themselves: the extension is not needed for them."""
    package = types.ModuleType("opscope")
    package.__path__ = [os.path.join(lib.ROOT, "python", "opscope")]
    sys.modules["opscope"] = package
    from opscope._capture import jax_driver, keras_hook, tf_driver
    return jax_driver, keras_hook, tf_driver


jax_driver, keras_hook, tf_driver = _load()


class Engine:
    """Takes the place of the engine: writes down what it is told."""

    def __init__(self, folder=""):
        self.folder, self.told = folder, []

    def problem(self, text):
        self.told.append(text)

    def begins(self, kind, key):
        self.told.append(key)

    def ended(self, kind, key):
        self.told.append(key)

    def foreign(self, driver, what):
        self.told.append("foreign")
        raise RuntimeError("the engine fails")

    def foreign_over(self, driver):
        self.told.append("over")

    def adopt(self, path):
        self.told.append(os.path.basename(path))


class Profiler:
    """A framework's profiler, one at a time, as its module has it."""

    def __init__(self):
        self.on = self.fails = False

    def start(self, folder, *args, **kwargs):
        if self.on:
            raise OSError("only one at a time")
        self.on = True

    def stop(self, save=True):
        self.on = False
        if self.fails:
            raise OSError("it could not be written")


def _module(name, **what):
    """Has the name imported as a module of these."""
    module = types.ModuleType(name)
    vars(module).update(what)
    sys.modules[name] = module
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules.get(parent) or _module(parent), last, module)
    return module


def _of_tensorflow(engine):
    p, driver = Profiler(), tf_driver.Driver(engine)
    module = _module("tensorflow.python.profiler.profiler_v2",
                     start=p.start, stop=p.stop)
    driver.tf = types.SimpleNamespace(profiler=types.SimpleNamespace(
        experimental=types.SimpleNamespace()))
    driver._watch_profiler()
    return p, module.start, module.stop, lambda: driver._theirs


def _of_jax(engine):
    p, driver = Profiler(), jax_driver.Driver(engine)
    module = _module("jax._src.profiler", start_trace=p.start,
                     stop_trace=p.stop)
    driver.jax = types.SimpleNamespace(profiler=module)
    driver._watch_profiler()
    return (p, module.start_trace, module.stop_trace,
            lambda: driver._their_folder)


def _raised(call, *args):
    try:
        call(*args)
    except OSError as e:
        return str(e)
    return None


def _goes_on(of):
    """The program sees what its profiler says, and nothing of ours; what it
    has on is known whatever failed."""
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine()
        p, start, stop, theirs = of(engine)
        assert _raised(start, folder) is None and theirs() == folder
        assert "the engine fails" in engine.told[-1], engine.told
        assert _raised(start, "other") == "only one at a time"
        assert theirs() == folder, theirs()
        p.fails = True
        assert _raised(stop) == "it could not be written"
        assert theirs() is None and engine.told[-1] == "over", engine.told
        p.on = True
        assert _raised(start, folder) is not None and theirs() is None


def test_a_profiler_of_tensorflow_that_fails_is_the_programs_to_see():
    _goes_on(_of_tensorflow)


def test_a_profiler_of_jax_that_fails_is_the_programs_to_see():
    _goes_on(_of_jax)


class Session:
    """A session of JAX's profiler, and where JAX keeps it."""

    def __init__(self):
        self.lock, self.profile_session = threading.Lock(), None
        self.fails = False

    def start_trace(self, folder, **options):
        if self.profile_session is not None:
            raise OSError("only one at a time")
        self.profile_session = self

    def stop(self):
        if self.fails:
            raise OSError("no trace")
        return b"trace"

    def reset(self):
        self.profile_session = None


def _with_session(folder):
    """A driver whose JAX has such sessions, and JAX's state."""
    state, driver = Session(), jax_driver.Driver(Engine(folder))
    module = _module("jax._src.profiler", _profile_state=state,
                     start_trace=state.start_trace)
    driver.jax = types.SimpleNamespace(profiler=module)
    driver._annotation = lambda *args, **kwargs: contextlib.nullcontext()
    return driver, state


def test_a_session_of_jax_that_fails_to_stop_is_not_left():
    with tempfile.TemporaryDirectory() as folder:
        driver, state = _with_session(folder)
        driver.start(1)
        state.fails = True
        assert _raised(driver.stop, os.path.join(folder, "x")) == "no trace"
        assert state.profile_session is None and not os.listdir(folder)


def test_a_session_of_jax_that_cannot_be_used_is_not_left():
    with tempfile.TemporaryDirectory() as folder:
        driver, state = _with_session(folder)

        def no_annotation(*args, **kwargs):
            raise OSError("no annotation")
        driver._annotation = no_annotation
        assert _raised(driver.start, 1) == "no annotation"
        assert state.profile_session is None and not os.listdir(folder)
        state.profile_session = theirs = object()
        assert _raised(driver.start, 1) == "only one at a time"
        assert state.profile_session is theirs


def test_a_child_of_fork_traces_with_jax_for_itself():
    with tempfile.TemporaryDirectory() as folder:
        driver, state = _with_session(folder)
        driver.start(1)
        child = Engine(folder)
        driver.forked(child)
        assert driver.engine is child and driver.stop("none") == []
        driver.start(1)
        path = os.path.join(folder, "child")
        assert driver.stop(path) == [path + ".xplane.pb"]


def test_a_child_of_fork_has_nothing_of_what_tensorflow_traces():
    driver, child = tf_driver.Driver(Engine()), Engine()
    driver._session, driver._tracing = object(), True
    driver._inside.depth = 1
    driver.forked(child)
    assert driver.engine is child and not driver._tracing
    assert driver.stop("none") == [] and not driver._inside.depth


def _around(inner, before, after):
    """Takes the place of the extension's."""
    def call(*args, **kwargs):
        token, function, args, kwargs = before(args, kwargs) or (
            None, inner, args, kwargs)
        value = function(*args, **(kwargs or {}))
        if token is not None and after is not None:
            after(token, None, value)
        return value
    return call


class Thing:
    """Any object of a framework."""
    model = None

    def __call__(self):
        pass

    on_train_batch_begin = on_train_batch_end = __call__


def _is_not_another_one(make, use, engine):
    """What is made where another one was is told of as another one; what is
    used again, as the same."""
    keys, where = [], set()
    while len(keys) < 1000:
        thing = make()
        engine.told.clear()
        use(thing)
        keys.append(engine.told[-1])
        use(thing)
        assert engine.told[-1] == keys[-1], keys
        if id(thing) in where:
            break
        where.add(id(thing))
        del thing
    assert len(set(keys)) == len(keys), keys


def test_what_has_the_address_of_another_one_goes_on_with_no_count_of_its():
    _module("opscope._opscope", around=_around)
    _module("tensorflow", executing_eagerly=lambda: True)
    engine = Engine()

    class Function(Thing):
        pass

    class Model(Thing):
        pass

    class Optimizer(Thing):
        apply = Thing.__call__

    class Callbacks(Thing):
        pass
    driver = tf_driver.Driver(engine)
    driver._is_eager = lambda: True
    driver._watch_calls(Function)
    _module("keras.src.callbacks.callback_list", CallbackList=Callbacks)
    _module("keras.src.models.model", Model=Model)
    _module("keras.src.optimizers.base_optimizer", BaseOptimizer=Optimizer)
    keras_hook.watch("keras", lambda: engine)

    def fit(model):
        callbacks = Callbacks()
        callbacks.model = model
        callbacks.on_train_batch_begin()
    _is_not_another_one(Function, Function.__call__, engine)
    _is_not_another_one(Model, Model.__call__, engine)
    _is_not_another_one(Model, fit, engine)
    _is_not_another_one(Optimizer, Optimizer.apply, engine)


if __name__ == "__main__":
    sys.exit(lib.run(sys.modules[__name__]))
