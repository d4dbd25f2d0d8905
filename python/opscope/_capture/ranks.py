# SPDX-License-Identifier: Apache-2.0
"""Ranks of one job choose the same steps.

Who waits for whom can be told of steps that all ranks traced. Where the user
names no steps, the first rank that finds its own even writes down which are to
be traced, two steps ahead: where ranks wait for each other in each step none is
further. (Hosts may run ahead of their devices: a rank that sees it too late
chooses for itself.) The others look there before each step until they have
chosen. It lies in the run's folder, named after the job, or else after the
process that started them all."""

import os

AHEAD = 2
JOBS = ("TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "SLURM_STEP_ID",
        "OMPI_COMM_WORLD_JOBID", "PMI_JOBID", "LSB_JOBID")


def job_name(env=os.environ):
    """What the ranks of a job have in common: its name, also on other hosts, or
    who started them. "none" is torchrun's name for a job that has none."""
    named = [env[k] for k in JOBS if env.get(k) not in (None, "", "none")]
    named = named or ["%d" % os.getppid()]
    return "".join(c if c.isalnum() else "_" for c in "-".join(named))[:100]


class Ranks:
    """What the ranks of this process's job agreed on."""

    def __init__(self, folder):
        self._path = os.path.join(folder, job_name() + ".window")
        self._is_mine = False

    def chosen(self):
        """(first step, how many), or None."""
        try:
            with open(self._path, encoding="ascii") as f:
                first, n = f.read().split()
            return int(first), int(n)
        except (OSError, ValueError):
            return None

    def choose(self, first, n):
        """Writes it down, unless another rank was quicker."""
        part = "%s.%d" % (self._path, os.getpid())
        try:
            with open(part, "w", encoding="ascii") as f:
                f.write("%d %d" % (first, n))
            try:
                os.link(part, self._path)
                self._is_mine = True
            finally:
                os.unlink(part)
        except OSError:
            pass

    def forget(self):
        """At the end: a job that comes later chooses for itself."""
        if self._is_mine:
            try:
                os.unlink(self._path)
            except OSError:
                pass
