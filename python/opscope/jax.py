# SPDX-License-Identifier: Apache-2.0
"""JAX's own trace, with opscope's recorder beside it:

    with opscope.jax.trace("logs") as t:
        for i in range(10):
            t.step(i)
            state, loss = train_step(state, batch)
    print(t.overview())"""

from . import recording
from ._opscope import Error

__all__ = ["trace"]


class trace(recording.profile):
    """Traces a block, or a function that it decorates, by jax.profiler."""

    def __init__(self, logdir="logs", **options):
        try:
            import jax  # noqa: F401
        except ImportError:
            raise Error("opscope.jax needs JAX: pip install jax") from None
        super().__init__(logdir, **options)
