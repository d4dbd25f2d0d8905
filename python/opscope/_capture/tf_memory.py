# SPDX-License-Identifier: Apache-2.0
"""Host memory in TensorFlow's traces: what its CPU allocator tells.

The plain allocator tells the tracer of each allocation, if its statistics are
on. No call of the Python package switches them, but its library has functions
that do. With oneDNN, which is the default on most x86 machines, another
allocator serves: it tells of blocks of 256 KiB and more, and of no smaller
one."""

import ctypes
import glob
import os

LACKS_SMALL = (
    "memory: with oneDNN TensorFlow tells only of host allocations of 256 KiB "
    "and more; TF_ENABLE_ONEDNN_OPTS=0 in the environment has all of them "
    "recorded (and other kernels run)")
LACKS_ALL = ("memory: this TensorFlow has no switch that makes its CPU "
             "allocator tell of allocations: host memory is missing")


def _function(lib, name, restype=None):
    """A function without arguments of the library, whose namespace moved."""
    for space in ("3tsl", "10tensorflow"):
        try:
            f = getattr(lib, "_ZN%s%d%sEv" % (space, len(name), name))
        except AttributeError:
            continue
        f.argtypes, f.restype = (), restype
        return f
    return None


def _library(tf):
    folder = os.path.dirname(os.path.abspath(tf.__file__))
    for path in sorted(glob.glob(os.path.join(
            folder, "libtensorflow_framework.*"))):
        try:
            return ctypes.CDLL(path)    # it is loaded: the same once more
        except OSError:
            continue
    return None


def uses_onednn():
    """Does oneDNN's allocator serve?"""
    try:
        from tensorflow.python.util import _pywrap_util_port
        return bool(_pywrap_util_port.IsMklEnabled())
    except Exception:
        return False


class HostMemory:
    """Has the allocator tell of allocations from now until close()."""

    def __init__(self, tf):
        self._off = None
        self.is_whole, self.lacks = False, None
        if uses_onednn():
            self.lacks = LACKS_SMALL
            return
        lib = _library(tf)
        on = lib and _function(lib, "EnableCPUAllocatorStats")
        off = lib and _function(lib, "DisableCPUAllocatorStats")
        is_on = lib and _function(lib, "CPUAllocatorStatsEnabled",
                                  ctypes.c_bool)
        if not (on and off and is_on):
            self.lacks = LACKS_ALL
            return
        self.is_whole = True
        if not is_on():
            on()
            self._off = off

    def close(self):
        off, self._off = self._off, None
        if off is not None:
            off()
