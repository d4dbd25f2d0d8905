# SPDX-License-Identifier: Apache-2.0
"""Calls of compiled functions of JAX, as a program makes them.

The fast path of what jax.jit gives is C++ and never enters Python, and its type
cannot be derived from. So a program gets a Watched in its place, which tells of
the calls and is in all else the function itself: attributes, methods, hash,
pickles and isinstance() go to it. JAX's own functions stay as they are.

A function that was compiled before anyone watched is seen by JAX's hook behind
each call, which JAX itself uses to look for NaN: LateCalls.

A call in a call (one function traces another, or grad a jitted one) is none."""

import functools
import sys
import threading

from opscope import _opscope

from .calls import around
from .numbering import number_of

# in the key of a function that was compiled before anyone watched: one of that
# name that is compiled later on tells of its calls in another way
CALLS = "calls of a compiled function"

_set = object.__setattr__


class _Inside(threading.local):
    """Is this thread in a call that counts, and in which?"""
    busy, key = False, None


_inside = _Inside()


def name_of(function):
    """Names a function, so that one that is compiled anew keeps its name."""
    for _ in range(8):
        inner = getattr(function, "func", None) or getattr(
            function, "__wrapped__", None)
        if inner is None:
            break
        function = inner
    code = getattr(function, "__code__", None)
    return "%s.%s:%d" % (getattr(function, "__module__", "?"),
                         getattr(function, "__qualname__",
                                 type(function).__name__),
                         getattr(code, "co_firstlineno", 0))


def is_of_jax(function):
    """Is it a function of JAX's own, as jnp.mean?"""
    module = getattr(function, "__module__", None) or ""
    return module.partition(".")[0] in ("jax", "jaxlib")


def _enter(driver, key, function, args, kwargs):
    """A call is about to be made. One in a call is made as it is."""
    if _inside.busy:
        return None, function, args, kwargs
    if driver.is_pending:
        driver.start_pending()
    driver.engine.begins("call", key)
    _inside.busy, _inside.key = True, key
    return (driver.engine, key), function, args, kwargs


def _leave(token, error, value):
    _inside.busy = False
    engine, key = token
    engine.ended("call", key)


def _traces_gradient(driver):
    """The function that is being traced computes gradients: it trains."""
    if _inside.busy:
        driver.engine.trains("call", _inside.key)


def _passed_on(name):
    """A property of the function that the class would answer for itself."""
    return property(
        lambda self: getattr(self._opscope_inner, name),
        lambda self, value: setattr(self._opscope_inner, name, value))


class Watched:
    # a compiled function that tells of its calls
    __class__ = _passed_on("__class__")
    __doc__ = _passed_on("__doc__")
    __module__ = _passed_on("__module__")
    __dict__ = _passed_on("__dict__")
    __slots__ = ("_opscope_inner", "_opscope_driver", "_opscope_key",
                 "_opscope_static", "__weakref__")

    def __init__(self, inner, driver, static=False):
        _set(self, "_opscope_inner", inner)
        _set(self, "_opscope_driver", driver)
        _set(self, "_opscope_key", (driver.name, name_of(inner)))
        _set(self, "_opscope_static", static)

    def _opscope_before(args, kwargs):
        self, args = args[0], args[1:]
        key = self._opscope_key
        if self._opscope_static:
            key = _with_choices(key, args, kwargs)
        return _enter(self._opscope_driver, key, self._opscope_inner, args,
                      kwargs)

    __call__ = _opscope.around(None, _opscope_before, _leave)
    del _opscope_before

    def __get__(self, instance, owner=None):
        # as a method of a class: the instance is its first argument
        if instance is None:
            return self
        return _Method(self, instance)

    def __getattr__(self, name):
        return getattr(self._opscope_inner, name)

    def __setattr__(self, name, value):
        setattr(self._opscope_inner, name, value)

    def __delattr__(self, name):
        delattr(self._opscope_inner, name)

    def __dir__(self):
        return dir(self._opscope_inner)

    def __repr__(self):
        return repr(self._opscope_inner)

    def __hash__(self):
        return hash(self._opscope_inner)

    def __eq__(self, other):
        return self._opscope_inner == getattr(other, "_opscope_inner", other)

    def __reduce__(self):
        # who unpickles it gets the function: there is nobody to tell there
        return _itself, (self._opscope_inner,)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


def _with_choices(key, args, kwargs):
    """A function with static arguments is several programs: step(train=True)
    is not step(train=False)."""
    chosen = [a for a in args if type(a) in (bool, str)]
    for name in sorted(kwargs or ()):
        if type(kwargs[name]) in (bool, str):
            chosen.append((name, kwargs[name]))
    return (key[0], (key[1], *chosen)) if chosen else key


def _itself(function):
    return function


_Method = type(Watched.__init__.__get__(0))     # as Python binds functions


def watch(make, driver):
    """jax.jit or jax.pmap, whose functions tell of their calls."""
    def watched(made, static):
        try:
            if callable(made) and not is_of_jax(made):
                if hasattr(made, "lower"):
                    return Watched(made, driver, static)
        except Exception as e:
            driver.engine.problem("jax: %s" % e)
        return made

    @functools.wraps(make)
    def compile(*args, **kwargs):
        made = make(*args, **kwargs)
        static = any(name.startswith("static_") for name in kwargs)
        if args or "fun" in kwargs or hasattr(made, "lower"):
            return watched(made, static)
        # jit(static_argnums=0) is a decorator in later versions

        def decorate(*args, **kwargs):
            return watched(made(*args, **kwargs), static)
        return decorate
    return compile


def _told_at_top(driver, key, function, trains):
    """The function, told of where it is called by no other function of JAX: a
    program that compiles nothing calls it."""
    def before(args, kwargs):
        if not driver.is_at_top():
            if trains:
                _traces_gradient(driver)
            return None
        said = _enter(driver, key, function, args, kwargs)
        if trains:
            driver.engine.trains("call", key)
        return said
    return around(function, before, _leave)


def _watch_made(make, driver, trains):
    @functools.wraps(make)
    def transform(*args, **kwargs):
        made = make(*args, **kwargs)
        try:
            if not callable(made) or is_of_jax(made):
                return made
            what = make.__name__
            key = (driver.name, "%s of %s" % (what, name_of(made)),
                   "calls of what %s gave" % what)
            return _told_at_top(driver, key, made, trains)
        except Exception:
            return made
    return transform


def watch_gradient(make, driver):
    """jax.grad: what it gives computes gradients."""
    return _watch_made(make, driver, True)


def watch_vectorized(make, driver):
    """jax.vmap."""
    return _watch_made(make, driver, False)


def watch_loop(loop, driver):
    """jax.lax.scan and the like, which compile their bodies by themselves."""
    key = (driver.name, loop.__name__, "calls of " + loop.__name__)
    return _told_at_top(driver, key, loop, False)


def watch_compiled(stages, driver):
    """f.lower(x).compile() gives a function, too."""
    inner = stages.Compiled.__call__

    def before(args, kwargs):
        key = driver.name, ("compiled", number_of(args[0]))
        return _enter(driver, key, inner, args, kwargs)
    stages.Compiled.__call__ = around(inner, before, _leave)


class LateCalls:
    """The functions that were compiled before anyone watched, told of when
    their calls return. Those that never take the fast path are not seen."""

    def __init__(self, driver):
        self.driver = driver
        self._keys = {}         # by function's module and name
        self._slot = _hook_slot()
        self._is_on = False
        self._theirs = {}       # our hooks that end in JAX's own

    def on(self):
        if self._slot is None or self._is_on:
            return
        self._is_on = True
        self._put()
        config = sys.modules["jax._src.config"]
        for name in ("debug_nans", "debug_infs"):
            self._keep_over(getattr(config, name, None))

    def off(self):
        """Nobody listens any more: JAX's calls cost what they did."""
        if not self._is_on:
            return
        self._is_on = False
        for where in ("global", "local"):
            hook = self._slot.get(where)
            for theirs, ours in self._theirs.items():
                if hook is ours:
                    self._slot.set(where, theirs)

    def _put(self):
        """Puts our hook before the one that is there."""
        for where in ("global", "local"):
            there = self._slot.get(where)
            if there in self._theirs.values():
                continue
            if where == "global" or there is None or callable(there):
                self._slot.set(where, self._before(there))

    def _keep_over(self, state):
        """Switching the search for NaN on and off, which JAX does by itself
        in vmap, sets the hook anew: ours is put back."""
        for name in ("_update_global_hook", "_update_thread_local_hook"):
            inner = getattr(state, name, None)
            if inner is None or hasattr(inner, "_opscope_inner"):
                continue

            def update(value, inner=inner):
                inner(value)
                if self._is_on:
                    self._put()
            update._opscope_inner = inner
            try:
                setattr(state, name, update)
            except AttributeError:
                pass

    def _before(self, theirs):
        """Our hook, followed by another one."""
        ours = self._theirs.get(theirs)
        if ours is not None:
            return ours
        tell = self._tell
        if not callable(theirs):
            def ours(function, args, kwargs, out):
                tell(function)
        else:
            def ours(function, args, kwargs, out):
                tell(function)
                return theirs(function, args, kwargs, out)
        self._theirs[theirs] = ours
        return ours

    def _tell(self, function):
        """A call on the fast path has returned."""
        try:
            name = (function.__module__, getattr(function, "__qualname__", 0))
            key = self._keys.get(name)
            if key is None:
                key = self._keys[name] = (
                    False if is_of_jax(function) or not name[1]
                    else (self.driver.name, name_of(function), CALLS))
            if not key or _inside.busy:
                return
            engine = self.driver.engine
            if getattr(engine, "_ended", False):
                self.off()
                return
            if self.driver.is_pending:
                self.driver.start_pending()
            engine.seen_over("call", key)
        except Exception:
            pass


class _NewSlot:
    """The hook behind calls in JAX of 0.4.36 and later."""

    def __init__(self, state, unset):
        self._state, self._unset = state, unset

    def get(self, where):
        value = (self._state.get_global() if where == "global"
                 else self._state.get_local())
        return 0 if value is self._unset else value

    def set(self, where, hook):
        if where == "global":
            self._state.set_global(None if hook == 0 else hook)
        else:
            self._state.set_local(self._unset if hook == 0 else hook)


class _OldSlot:
    """The same in earlier versions: an empty place of a thread is not told
    from one that was never set."""

    def __init__(self, jax_jit):
        self._jit = jax_jit

    def _place(self, where):
        return (self._jit.global_state() if where == "global"
                else self._jit.thread_local_state())

    def get(self, where):
        value = self._place(where).post_hook
        return 0 if value is None and where == "local" else value

    def set(self, where, hook):
        self._place(where).post_hook = None if hook == 0 else hook


def _hook_slot():
    """Where this version of JAX keeps its hook, or None."""
    try:
        api = sys.modules["jax._src.api"]
        state = getattr(api, "_post_hook_state", None)
        if state is not None:
            return _NewSlot(state, getattr(api.config_ext, "unset", None))
        jit = api.jax_jit
        jit.global_state().post_hook
        return _OldSlot(jit)
    except Exception:
        return None
