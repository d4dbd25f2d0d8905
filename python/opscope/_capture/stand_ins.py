# SPDX-License-Identifier: Apache-2.0
"""Functions that stand in the place of torch's: each calls the one it stands
for. (torch.compile looks into them, so they are Python and not the extension's
calls.) In a trace of Python what these functions call is the program's, and
all else in this folder is opscope's own: src/model/own_frames.c knows this file
by its name."""


def told_first(inner, tell):
    """tell(the first argument, if there is one) comes before the call."""
    def called(*args, **kwargs):
        tell(*args[:1])
        return inner(*args, **kwargs)
    return called


def made(init, tell):
    """An __init__ behind which tell(thing, all its arguments) comes."""
    def __init__(thing, *args, **kwargs):
        init(thing, *args, **kwargs)
        tell(thing, *args, **kwargs)
    return __init__


def surrounded(inner, begins, ended):
    """begins(thing) before, and ended(thing, what that returned) behind."""
    def called(thing, *args, **kwargs):
        said = begins(thing)
        try:
            return inner(thing, *args, **kwargs)
        finally:
            ended(thing, said)
    return called


def step(inner, compiling, local, stepped):
    """An optimizer's step. local.depth counts how many are under way in this
    thread, local.outer is the outermost one's optimizer."""
    def step(*args, **kwargs):
        if compiling():
            return inner(*args, **kwargs)
        depth = getattr(local, "depth", 0)
        local.depth = depth + 1
        if not depth:
            local.outer = args[0]
        try:
            out = inner(*args, **kwargs)
        finally:
            local.depth = depth
            if not depth:
                local.outer = None
        stepped(args[0])
        return out
    return step


def next_batch(fetch, compiling, begins, is_there):
    """A loader's __next__. What begins() returns is_there() is told, and
    whether the loader was at its end."""
    def __next__(it):
        if compiling():
            return fetch(it)
        asked, is_end = begins(it), False
        try:
            return fetch(it)
        except StopIteration:
            is_end = True
            raise
        finally:
            is_there(asked, is_end)
    return __next__
