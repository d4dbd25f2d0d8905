# SPDX-License-Identifier: Apache-2.0
from typing import Any, Optional, Sequence, Tuple, Union

from .recording import _Path

__all__ = ["Callback", "batches_of"]

_Batches = Union[None, int, str, range, Sequence[int]]

def batches_of(given: _Batches) -> Optional[Tuple[int, int]]:
    """(first, last) of profile_batch: 100, (100, 102), [100, 102], '100,102';
    None for 0, which switches it off."""

# what it gives is a callback of the Keras that is installed
def Callback(log_dir: _Path = "logs", profile_batch: _Batches = (100, 102),
             memory: bool = False, shapes: bool = False,
             stacks: bool = False) -> Any:
    """A Keras callback that profiles these batches of fit() into log_dir, and
    keeps the loss and the metrics as curves."""
