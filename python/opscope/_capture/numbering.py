# SPDX-License-Identifier: Apache-2.0
"""By what a driver knows an object again: its address alone may be another
one's by the next time."""

import itertools
import weakref


class Numbers:
    """Numbers for objects: the same for an object as long as it lives, and
    never given to another one. It asks nothing of the object but an address
    and a weak reference."""

    def __init__(self):
        self._known = {}
        self._next = itertools.count(1)

    def of(self, thing):
        known = self._known.get(id(thing))
        if known is not None and known[0]() is thing:
            return known[1]
        where, mine = id(thing), next(self._next)

        def gone(_, known=self._known):
            entry = known.get(where)
            if entry is not None and entry[1] == mine:
                del known[where]
        try:
            self._known[where] = (weakref.ref(thing, gone), mine)
        except TypeError:       # it has no weak references: nothing is kept
            return where
        return mine


number_of = Numbers().of    # for drivers whose keys may meet
