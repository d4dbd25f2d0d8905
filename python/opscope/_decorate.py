# SPDX-License-Identifier: Apache-2.0
"""opscope.scope as a decorator. Each call gets a scope of its own: functions
may call themselves, and coroutines may run side by side."""

import functools
import inspect


class done:
    """An awaitable that has its value already."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    def __await__(self):
        return self.value
        yield


def driven(again, function):
    """A generator of the function's, with a scope around what it does between
    two values: what runs meanwhile is not its own. Values, exceptions and
    close() reach it as if nobody stood between."""
    @functools.wraps(function)
    def inner(*args, **kwargs):
        made = function(*args, **kwargs)
        go_on, given = made.send, None
        while True:
            try:
                with again():
                    value = go_on(given)
            except StopIteration as e:
                return e.value
            finally:
                given = None    # an exception would hold this frame
            try:
                given = yield value
                go_on = made.send
            except BaseException as e:
                go_on, given = made.throw, e
    return inner


def driven_async(again, function):
    """The same for an asynchronous generator."""
    @functools.wraps(function)
    async def inner(*args, **kwargs):
        made = function(*args, **kwargs)
        go_on, given = made.asend, None
        while True:
            try:
                async with again():
                    value = await go_on(given)
            except StopAsyncIteration:
                return
            finally:
                given = None
            try:
                given = yield value
                go_on = made.asend
            except BaseException as e:
                go_on, given = made.athrow, e
    return inner


def decorated(scope, function):
    """Returns the function with a scope around each of its calls."""
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(decorated(scope, function.__func__))
    if isinstance(function, type):
        raise TypeError("opscope.scope decorates functions, not classes: "
                        "decorate the methods of %s" % function.__name__)
    if not callable(function):
        raise TypeError("opscope.scope decorates functions, not %s"
                        % type(function).__name__)
    again = scope._again
    if inspect.isasyncgenfunction(function):
        return driven_async(again, function)
    if inspect.isgeneratorfunction(function):
        return driven(again, function)
    if inspect.iscoroutinefunction(function):
        @functools.wraps(function)
        async def inner(*args, **kwargs):
            async with again():
                return await function(*args, **kwargs)
    else:
        @functools.wraps(function)
        def inner(*args, **kwargs):
            with again():
                return function(*args, **kwargs)
    return inner
