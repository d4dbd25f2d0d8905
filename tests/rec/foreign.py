#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""foreign.py LIBRARY LOGDIR [OPTIONS]: what tests/rec/foreign.c records, by
Python's ctypes: no compiler, no header."""
import ctypes
import sys
from ctypes import (c_char_p, c_double, c_int, c_int64, c_size_t, c_uint32,
                    c_uint64, c_void_p)


def calls(lib):
    """The functions by their names without ops_ and ops_fn_."""
    table = {
        "fn_start": (c_int, c_char_p, c_char_p),
        "fn_step": (None, c_int64), "fn_step_end": (None,),
        "fn_begin": (None, c_char_p),
        "fn_begin_as": (None, c_int, c_char_p), "fn_end": (None,),
        "fn_arg_int": (None, c_char_p, c_int64),
        "fn_arg_num": (None, c_char_p, c_double),
        "fn_arg_text": (None, c_char_p, c_char_p),
        "fn_instant": (None, c_char_p),
        "fn_counter": (None, c_char_p, c_double),
        "fn_scalar": (None, c_char_p, c_int64, c_double),
        "fn_alloc": (None, c_void_p, c_uint64, c_char_p),
        "fn_free": (None, c_void_p),
        "fn_async_begin": (None, c_void_p, c_int, c_char_p),
        "fn_async_end": (None, c_void_p),
        "fn_correlation": (c_uint64,),
        "fn_device_span": (None, c_uint32, c_char_p, c_uint64, c_uint64,
                           c_uint64),
        "device_track": (c_uint32, c_char_p, c_char_p),
        "now": (c_uint64,), "flush": (None,), "stop": (None,),
        "problem": (c_size_t, c_char_p, c_size_t),
    }
    found = {}
    for name, (result, *args) in table.items():
        f = getattr(lib, "ops_" + name)
        f.restype, f.argtypes = result, args
        found[name[3:] if name.startswith("fn_") else name] = f
    return found


def main():
    c = calls(ctypes.CDLL(sys.argv[1]))
    options = sys.argv[3].encode() if len(sys.argv) > 3 else None
    if c["start"](sys.argv[2].encode(), options) != 0:
        why = ctypes.create_string_buffer(256)
        c["problem"](why, len(why))
        print(why.value.decode())
        return 1
    track = c["device_track"](b"npu 0", b"queue 0")
    handle = (c_uint64 * 3)()
    block = ctypes.create_string_buffer(64)
    for i in range(10):
        c["step"](i)
        c["async_begin"](handle, 0, b"prefetch")
        c["begin_as"](1, b"next batch")
        c["end"]()
        c["begin"](b"matmul")
        c["arg_int"](b"flops", 1000)
        c["arg_num"](b"scale", 0.5)
        c["arg_text"](b"shape", b"8x8")
        c["alloc"](block, 4096, b"activations")
        t0 = c["now"]()
        c["device_span"](track, b"kernel", t0, t0 + 1000, c["correlation"]())
        c["free"](block)
        c["end"]()
        c["instant"](b"mark")
        c["counter"](b"queue", i)
        c["scalar"](b"loss", i, 1 / (i + 1))
        c["async_end"](handle)
    c["step_end"]()
    c["flush"]()
    c["stop"]()
    return 0


if __name__ == "__main__":
    sys.exit(main())
