# SPDX-License-Identifier: Apache-2.0
"""Which of a program's optimizers are one, where steps are counted?

A program may make its optimizer anew for each fold, trial, phase or inner loop.
An optimizer goes on where another one ended that has not stepped since it was
made, and that was made at the same place in the program or is gone. Two that
are made before either steps (a GAN's) are two, wherever that was. If the one
that was followed comes back they were two as well, and take turns."""

import sys
import weakref


class Role:
    """What several optimizers do, one after the other."""

    __slots__ = ("key", "place", "holder", "steps", "turn", "is_gone")

    def __init__(self, number, place):
        self.key = self.holder = number
        self.place = place
        self.steps = 0          # of its holder
        self.turn = 0           # when it stepped last
        self.is_gone = False    # nobody has its holder any more


class Roles:
    """Optimizers are known by numbers that are never used again."""

    def __init__(self, engine):
        self.engine = engine    # that counts their steps
        self._turn = 0          # of makings and steps, one after the other
        self._made = {}         # number -> (place, turn, weak reference)
        self._of = {}           # number -> its role, once it stepped
        self._all = []
        self.steady = None      # what stepped last, and not for the first time:
        self.steady_key = None  # its key, as long as nothing else happens

    def made(self, number, optimizer):
        """Says whether it is one more, by what is known so far."""
        self._turn += 1
        self.steady = None
        self._made[number] = _place(optimizer), self._turn, weakref.ref(
            optimizer, lambda _: self._gone(number))
        return self._followed(number) is None

    def key(self, number):
        """This one steps. Returns the number of its role, and whether the last
        step of that was another one's: a first one, behind which this one is
        back."""
        self._turn += 1
        role, was_others = self._of.get(number), False
        if role is None:
            role = self._begin(number)
        elif role.holder != number:     # it is back
            was_others = role.steps == 1
            self._of.pop(role.holder, None)
            role.holder, role.steps = number, 0
        role.turn = self._turn
        role.steps += 1
        self.steady = number if role.steps > 1 else None
        self.steady_key = role.key
        return role.key, was_others

    def _begin(self, number):
        role = self._followed(number)
        if role is None:
            made = self._made.get(number)
            role = Role(number, made[0] if made else None)
            self._all.append(role)
        role.holder, role.steps, role.is_gone = number, 0, False
        self._of[number] = role
        return role

    def _followed(self, number):
        """The role in which this one goes on, or None. Several that were made
        at one place step in the order of those before them."""
        if number not in self._made:
            return None
        place, turn, _ = self._made[number]
        idle = [r for r in self._all if r.turn < turn]
        same = [r for r in idle if r.place == place and place is not None]
        if same:
            return min(same, key=lambda r: r.turn)
        return max((r for r in idle if r.is_gone), key=lambda r: r.turn,
                   default=None)

    def _gone(self, number):
        self._made.pop(number, None)
        role = self._of.pop(number, None)
        if role is not None and role.holder == number:
            role.is_gone = True


def _place(optimizer):
    """Where in the program it is being made: what called the outermost of its
    __init__()."""
    frame, is_inside = sys._getframe(1), False
    while frame is not None:
        code = frame.f_code
        is_init = (code.co_name == "__init__" and code.co_argcount > 0
                   and frame.f_locals.get(code.co_varnames[0]) is optimizer)
        if is_inside and not is_init:
            return (type(optimizer).__qualname__, code.co_filename,
                    code.co_firstlineno, frame.f_lasti)
        is_inside = is_inside or is_init
        frame = frame.f_back
    return None
