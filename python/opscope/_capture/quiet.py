# SPDX-License-Identifier: Apache-2.0
"""Our own use of a framework's tracer leaves no line on the program's stderr."""

import os
import re
import sys

# What tracers say of themselves at each start and stop: Kineto's stages, the
# lines of TensorFlow's and JAX's session (older ones begin with a date). The
# last five are torch's when a thread traces, when memory is freed that it did
# not see allocated, when a step ends inside of a compiled region, when the disk
# is full (which we say in our own words), and when there is no GPU. Ranks of a
# job begin their lines with their number.
CHATTER = re.compile(rb"(\[rank\d+\]:)?("
                     rb"(USDT|INFO|STAGE):"
                     rb"|([IW]\d{4}|\d{4}-\d\d-\d\d [\d:.]+: [IW]) .*"
                     rb"(profiler_session|save_profile|cupti_tracer|"
                     rb"profiler_factory)\.cc:"
                     rb"|ERROR: External init callback must run in same thread"
                     rb"|\[W\d{4} .* CPUAllocator\.cpp:\d+\] Memory block of"
                     rb"|\[W\d{4} .* collection\.cpp:\d+\] Warning: "
                     rb"Torch-Compiled Region"
                     rb"|ERROR:.* output_json\.cpp:\d+\] Failed to write"
                     rb"|ERROR:.* cudaGetDeviceCount failed)")


class Quiet:
    """Keeps what is written to stderr meanwhile, and hands on all but the
    chatter. What other threads write is late by that; a process that dies
    inside loses it. Nothing is raised: stderr may be closed, or nobody reads
    it any more."""

    def __enter__(self):
        self._old = self._kept = -1
        try:
            sys.stderr.flush()
            self._kept = os.memfd_create("opscope", os.MFD_CLOEXEC)
            self._old = os.dup(2)
            os.dup2(self._kept, 2)
        except Exception:
            self._close()
        return self

    def _close(self):
        for fd in (self._old, self._kept):
            if fd >= 0:
                os.close(fd)
        self._old = self._kept = -1

    def has(self, text):
        """Was this written meanwhile?"""
        if self._old < 0:
            return False
        return text in os.pread(self._kept, os.fstat(self._kept).st_size, 0)

    def __exit__(self, *exc):
        if self._old < 0:
            return
        try:
            sys.stderr.flush()
        except Exception:
            pass
        try:
            os.dup2(self._old, 2)
            text = os.pread(self._kept, os.fstat(self._kept).st_size, 0)
            rest = b"".join(line for line in text.splitlines(True)
                            if not CHATTER.match(line))
            while rest:
                rest = rest[os.write(2, rest):]
        except OSError:
            pass
        finally:
            self._close()
