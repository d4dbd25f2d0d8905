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


def decorated(scope, function):
    """Returns the function with a scope around each of its calls."""
    if not callable(function):
        raise TypeError("opscope.scope decorates functions, not %s"
                        % type(function).__name__)
    again = scope._again
    if inspect.iscoroutinefunction(function):
        @functools.wraps(function)
        async def inner(*args, **kwargs):
            async with again():
                return await function(*args, **kwargs)
    elif inspect.isasyncgenfunction(function):
        @functools.wraps(function)
        async def inner(*args, **kwargs):
            async with again():
                async for x in function(*args, **kwargs):
                    yield x
    elif inspect.isgeneratorfunction(function):
        # what runs between two values is the generator's; the rest is not
        @functools.wraps(function)
        def inner(*args, **kwargs):
            made = function(*args, **kwargs)
            send = None
            while True:
                try:
                    with again():
                        value = made.send(send)
                except StopIteration as e:
                    return e.value
                try:
                    send = yield value
                except GeneratorExit:
                    made.close()
                    raise
                except BaseException as e:
                    with again():
                        value = made.throw(e)
                    send = yield value
    else:
        @functools.wraps(function)
        def inner(*args, **kwargs):
            with again():
                return function(*args, **kwargs)
    return inner
