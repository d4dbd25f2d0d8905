# SPDX-License-Identifier: Apache-2.0
from typing import Any

from .recording import _Path, _Steps

__all__ = ["Callback"]

# what it gives is a callback of the Lightning that is installed
def Callback(log_dir: _Path = "logs", steps: _Steps = "10..12",
             memory: bool = False, shapes: bool = False,
             stacks: bool = False) -> Any:
    """A Lightning callback that profiles these training batches, counted from
    1."""
