# SPDX-License-Identifier: Apache-2.0
"""What the user is told: sentences in a file of this process in the run's
folder, which `opscope record` shows and removes. Nothing is printed here."""

import os

from . import leader

MOST_PROBLEMS = 20
KINDS = {"explicit": "the program's own marks", "batch": "training batches",
         "optimizer": "optimizer steps", "loader": "loader batches",
         "call": "calls of a compiled function",
         "backward": "calls of backward", "model": "calls of a model"}


class Notes:
    def __init__(self, folder):
        self.problems = []
        # a program may clear its environment
        self._is_recorded = os.environ.get("OPSCOPE") == "1"
        self._folder = folder
        self._unsaid = []       # sentences that could not be written yet

    def problem(self, text):
        if text not in self.problems and len(self.problems) < MOST_PROBLEMS:
            self.problems.append(text)
            self.write(text)

    def write(self, text):
        if not self._is_recorded:
            return
        try:
            os.makedirs(self._folder, exist_ok=True)
            # names of files need be no UTF-8
            with open(os.path.join(self._folder, "%d.notes" % os.getpid()),
                      "a", encoding="utf-8", errors="backslashreplace") as f:
                f.write(text.replace("\n", " ") + "\n")
        except OSError:     # the disk may be full of what is being written
            self._unsaid.append(text)

    def write_rest(self):
        unsaid, self._unsaid = self._unsaid, []
        for text in unsaid:
            self.write(text)


def what_was_traced(e):
    """Says of an engine which steps were traced and why those, or why none."""
    if e.taken:
        return _of_traced(e)
    if e.paths:
        return None     # of a step that did not end: that was said
    known = [d for d in e.drivers if not getattr(d, "is_unknown", False)]
    if e.has_foreign() or not known or (e.is_child and not e.step):
        return None
    n = e.count()
    if n < 1:
        # "~": no news if another process of the program was traced
        return ("~no step was recognised in the use of %s: nothing was "
                "traced; mark them with opscope.step(i)"
                % ", ".join(d.name for d in known))
    if e.window is not None and e.window.demand:
        return ("nobody asked for a capture in %d step%s: make the file %s "
                "while the program runs" % (n, "s" * (n > 1), e.demand.path))
    few = "1..%d" % n if n > 1 else "1"
    return ("the program ended after step %d, before a step that was to be "
            "traced: try --steps %s" % (n, few if n < 4 else "2..%d" % n))


def what_was_missed(e):
    """Says which of the steps that were asked for the program did not reach,
    where others were traced."""
    if not e.taken or e.window is None:
        return None
    missed = e.window.begins_after(e.count())
    if not missed:
        return None
    return ("the program ended after step %d, before %s of --steps"
            % (e.count(), ", ".join(missed)))


def _of_traced(e):
    if e.window is None and not e.want.everything:
        why = ("although steps had not become even by then"
               if e.choice.uneven else "when steps had become even")
        # a program's own numbers may begin anywhere
        is_own = e.lead is not None and e.lead.kind == "explicit"
        of = "" if is_own else " of %d" % e.count()
        by = " (%s)" % _by(e.lead) if e.lead is not None else ""
        return ("traced step%s%s%s, chosen %s (--steps chooses others)"
                % (_ranges(e.taken), of, by, why))
    if e.lead is not None and e.lead.kind in ("loader", *leader.WEAK):
        return _by(e.lead)
    return None


def _by(lead):
    """What a step is. A call's key may say what it is."""
    word = KINDS[lead.kind]
    if lead.kind == "call" and len(lead.key) > 2:
        word = lead.key[2]
    return "steps are %s" % word


def _ranges(numbers):
    """1, 2, 3, 7 -> "s 1 to 3, 7"."""
    parts, first = [], None
    for i, n in enumerate(numbers):
        if first is None:
            first = n
        if i + 1 == len(numbers) or numbers[i + 1] != n + 1:
            parts.append("%d" % n if n == first else "%d to %d" % (first, n))
            first = None
    return ("s " if len(numbers) > 1 else " ") + ", ".join(parts)
