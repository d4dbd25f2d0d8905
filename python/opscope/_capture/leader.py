# SPDX-License-Identifier: Apache-2.0
"""Which of a program's repeating events marks its steps?

A framework tells of optimizers that stepped, loaders that were asked for a
batch, functions that were called. One of them, the leader, is taken for the
step: of the kind that is trusted most, and among those of one kind by a rule of
that kind. A GAN steps two optimizers a turn (the one that comes less often and,
of equals, last in the turn ends it); a validation loader comes after the
training loader; a helper function is called beside the training function (the
one in which most time is spent leads). Where a driver knows that a function
computes gradients, it and the loader that feeds it go before those of which
nobody knows that. Calls of backward() and of a model are told only as long as
the program has made no optimizer. Of two threads that do the same kind of work
the first one is followed, as long as it works."""

import threading

TRUST = {"explicit": 6, "batch": 5, "optimizer": 4, "loader": 3, "call": 2,
         "backward": 1, "model": 0}
WEAK = ("backward", "model")
SILENCE = 30    # signals of another one: the leader is at work no more


def thread_of(number):
    """Python's object of that thread; None for one that Python did not make.
    The number alone may be another thread's once that one has ended."""
    return getattr(threading, "_active", {}).get(number)


class Source:
    """One thing that tells of steps."""

    __slots__ = ("kind", "key", "count", "last", "last_before", "spent",
                 "begun", "over", "thread", "owner", "ends", "alone",
                 "longest", "trains", "old", "led")

    def __init__(self, kind, key, thread):
        self.kind, self.key, self.thread = kind, key, thread
        self.owner = thread_of(thread)
        self.count = 0          # signals so far
        self.last = 0           # ns, when the last one came ...
        self.last_before = 0    # ... and the one before it
        self.spent = 0          # ns between begin and end, the first apart
        self.begun = 0          # ns, when a unit began that has not ended
        self.over = 0           # ns, when the last unit, or loader, was over
        self.alone = 0          # signals since the leader's last one ...
        self.longest = 0        # ... and the most that there were before one
        self.old = 0            # the leader's count at the last signal
        self.led = False        # it was the leader before
        self.ends = kind == "optimizer"   # its signals end a step
        self.trains = False     # it computes gradients, or feeds who does


def _meet(new, old):
    """`new` signals while `old` leads. Returns how often that one did since
    the last time."""
    between, new.old = old.count - new.old, old.count
    if new.last_before > old.last:
        new.alone += 1
    else:
        new.longest, new.alone = max(new.longest, new.alone), 1
    return between


def _optimizer_takes_over(new, old, between):
    """Of those that take turns the rarer one; of equals the later one. One that
    joins in late takes nothing over, nor one of which many steps make a turn:
    but those that come when the leader's work is done do."""
    if new.alone > max(SILENCE, 3 * new.longest):
        return True
    if new.thread != old.thread:
        return False
    if new.count == 2 and old.count == 2:
        return True
    if not 2 <= new.count < old.count or (
            between <= 1 and new.alone <= 1):
        return False
    if new.alone == 1 and not new.led:
        old.longest = max(old.longest, between)
    return True


def takes_over(new, old):
    """Does `new`, which just signalled, lead from now on in place of `old`?"""
    a, b = TRUST[new.kind], TRUST[old.kind]
    between = _meet(new, old)
    if a != b:
        return a > b and (new.count >= 2 or new.kind in ("explicit", "batch"))
    if new.kind == "optimizer":
        return _optimizer_takes_over(new, old, between)
    if new.thread != old.thread:
        return new.alone > SILENCE
    if new.trains != old.trains:
        return new.trains and new.count >= 2
    if new.kind == "call":
        return new.count >= 3 and new.spent > 2 * old.spent
    # the program has gone over to another loader or model
    return new.alone >= 3


def ends_its_steps(new, old):
    """Did an optimizer end each of the leader's steps (a tape, then its
    gradients applied)? Then these were steps of training, and their numbers
    stay, and what was traced of them."""
    return (new.kind == "optimizer" != old.kind and new.count == old.count
            and old.last > new.last_before)
