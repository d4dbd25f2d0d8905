# SPDX-License-Identifier: Apache-2.0
"""Functions of frameworks that tell of their calls. They are no frames of
Python: a traceback that the program prints, and a warning that counts frames,
are what they are without us.

before(args, kwargs) returns None, and the call is made as it is; or (token,
function, args, kwargs), and that call is made. Where the token is not None,
after(token, error, value) is told what came of it: the class of the exception
or None, and what the function returned. What both raise is dropped."""

import functools


def around(inner, before, after):
    from opscope import _opscope
    return functools.wraps(inner)(_opscope.around(inner, before, after))


def watch_parts(driver, module, **parts):
    """Watches the parts of a framework. What of it another version has not,
    or elsewhere, is said in one sentence; the rest is watched. A driver of
    which nothing could be watched is_unknown."""
    lacks = []
    for name, watch in parts.items():
        try:
            watch()
        except Exception:
            lacks.append(name.replace("_", " "))
    driver.is_unknown = len(lacks) == len(parts)
    if lacks:
        driver.engine.problem(
            "%s %s is not a version that opscope knows: its %s could not be "
            "watched" % (driver.name, getattr(module, "__version__", "?"),
                         ", ".join(lacks)))


def told_before(inner, tell):
    """The function, with tell(its first argument) before each call."""
    def before(args, kwargs):
        tell(args[0])
    return around(inner, before, None)


def told_after(inner, tell):
    """The function, with tell(its first argument, what it returned) behind
    each call that returned."""
    def before(args, kwargs):
        return args[0], inner, args, kwargs

    def after(first, error, value):
        if error is None:
            tell(first, value)
    return around(inner, before, after)
