# SPDX-License-Identifier: Apache-2.0
"""The errors of these calls: opscope.Error, with a sentence each."""

from opscope._opscope import Error


class OptionError(Error, KeyError, ValueError):
    """An option that there is not, or a value that it cannot have."""

    def __str__(self):
        return str(self.args[0]) if self.args else ""


__all__ = ["Error", "OptionError"]
