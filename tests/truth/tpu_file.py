# SPDX-License-Identifier: Apache-2.0
"""Writes a small profile of TPUs as libtpu and JAX make them: planes
/device:TPU:N with XLA Modules, XLA Ops and Async XLA Ops, a host whose calls
launch programs (`_pt`/`_p` there, `_ct`/`_c` on the device) and whose
allocators tell device and level, and a plane of compiled modules. No field of
it comes from a real file: the shapes are those of XSpace's description."""
import os
import sys
import tempfile

from lib import fields, say, status

US = 1_000_000  # picoseconds
START_NS = 1_790_000_000_000_000_000


def varint(v):
    v &= (1 << 64) - 1
    out = bytearray()
    while v >= 0x80:
        out.append(v & 0x7F | 0x80)
        v >>= 7
    out.append(v)
    return bytes(out)


def num(field, v):
    return varint(field << 3) + varint(v)


def blob(field, b):
    b = b.encode() if isinstance(b, str) else b
    return varint(field << 3 | 2) + varint(len(b)) + b


class Plane:
    """A plane that is written field by field; names and stats get numbers as
    they are met."""

    def __init__(self, name, ident=0):
        self.head = num(1, ident) + blob(2, name)
        self.lines, self.facts = [], []
        self.names, self.stats, self.meta = {}, {}, {}

    def stat_id(self, name):
        return self.stats.setdefault(name, len(self.stats) + 1)

    def stat(self, name, v):
        out = num(1, self.stat_id(name))
        if isinstance(v, bytes):
            return out + blob(6, v)
        return out + (blob(5, v) if isinstance(v, str) else num(4, v))

    def name_id(self, name, display="", stats=()):
        if name not in self.names:
            self.names[name] = len(self.names) + 1
            n = self.names[name]
            body = num(1, n) + blob(2, name)
            if display:
                body += blob(4, display)
            for k, v in stats:
                body += blob(5, self.stat(k, v))
            self.meta[n] = body
        return self.names[name]

    def fact(self, name, v):
        self.facts.append(self.stat(name, v))

    def line(self, ident, name, events):
        """events: (name id, start in us, length in us, ((stat, value), ...))"""
        body = num(1, ident) + blob(2, name) + num(3, START_NS)
        for n, ts, dur, stats in events:
            e = num(1, n) + num(2, int(ts * US)) + num(3, int(dur * US))
            for k, v in stats:
                e += blob(4, self.stat(k, v))
            body += blob(4, e)
        self.lines.append(body)

    def bytes(self):
        out = self.head
        for l in self.lines:
            out += blob(3, l)
        for n, body in self.meta.items():
            out += blob(4, num(1, n) + blob(2, body))
        for name, n in self.stats.items():
            out += blob(5, num(1, n) + blob(2, num(1, n) + blob(2, name)))
        for f in self.facts:
            out += blob(6, f)
        return out


def instruction(name, opcode, dims, ident, operands=(), tuple_of=1):
    """An HloInstructionProto of f32 arrays."""
    array = num(2, 11) + b"".join(num(3, d) for d in dims)
    shape = array
    if tuple_of > 1:
        shape = num(2, 13) + b"".join(blob(4, array) for _ in range(tuple_of))
    return (blob(1, name) + blob(2, opcode) + blob(3, shape) + num(35, ident) +
            b"".join(num(36, o) for o in operands))


def hlo_proto(name):
    """A module that copies a parameter to the host and back."""
    body = blob(1, "main")
    for i in (instruction("p", "parameter", (1024, 1024), 1),
              instruction("copy-start.1", "copy-start", (1024, 1024), 2, (1,),
                          2),
              instruction("copy-done.1", "copy-done", (1024, 1024), 3, (2,)),
              instruction("fusion.3", "add", (1024, 1024), 4, (3, 3))):
        body += blob(2, i)
    body += num(5, 7) + num(6, 4)
    module = (blob(1, name) + blob(2, "main") + blob(3, body) + num(5, 1) +
              num(6, 7))
    return blob(1, module)


# The ops of one run: name, category, start and length in us, HLO text. The loop
# holds what stands between its start and end.
HOST = "f32[1024,1024]{1,0:T(8,128)S(5)}"
HBM = "f32[1024,1024]{1,0:T(8,128)}"
OPS = [
    ("copy-start.1", "copy-start", 0, 1,
     "%%copy-start.1 = (%s, %s, u32[]{:S(2)}) copy-start(%s %%p)"
     % (HBM, HOST, HOST)),
    ("while.2", "while", 1, 499,
     "%while.2 = (s32[], f32[1024,1024]{1,0}) while(%tuple), body=%b"),
    ("fusion.3", "loop fusion", 1, 19,
     "%%fusion.3 = %s fusion(%s %%p), kind=kLoop" % (HBM, HBM)),
    ("copy-done.1", "copy-done", 20, 480,
     "%%copy-done.1 = %s copy-done((%s, %s, u32[]{:S(2)}) %%copy-start.1)"
     % (HBM, HBM, HOST)),
    ("all-reduce-start.4", "all-reduce", 500, 2,
     "%all-reduce-start.4 = f32[8192]{0} all-reduce-start(f32[8192]{0} %x), "
     "channel_id=1, replica_groups={{0,1,2,3}}, to_apply=%add"),
    ("all-reduce-done.4", "all-reduce", 502, 78,
     "%all-reduce-done.4 = f32[8192]{0} all-reduce-done(%all-reduce-start.4)"),
    ("all-gather.6", "all-gather", 580, 20,
     "%all-gather.6 = bf16[64,256]{1,0} all-gather(bf16[32,256]{1,0} %y), "
     "replica_groups=[2,2]<=[4], dimensions={0}"),
    ("barrier-cores.5", "barrier-cores", 600, 39,
     "%barrier-cores.5 = () barrier-cores()"),
]
RUN_US, EVERY_US = 640, 1000


def write(path, devices=4, runs=3, steps=False, sizes=True):
    """The profile; returns the bytes of memory that were allocated. Without
    sizes, allocators tell the level alone."""
    space = b""
    for d in range(devices):
        p = Plane("/device:TPU:%d" % d, 2 + 8 * d)
        p.fact("device_type_string", "TPU v6 Lite")
        p.fact("peak_teraflops_per_second", 918)
        p.fact("peak_hbm_bw_gigabytes_per_second", 1640)
        module = p.name_id("jit_step(77)")
        at = [r * EVERY_US + 100 for r in range(runs)]
        p.line(1, "XLA Modules", [
            (module, t, RUN_US, (("_ct", 12), ("_c", 1000 * d + r)))
            for r, t in enumerate(at)])
        ids = [p.name_id(text, name, (("hlo_category", cat),
                                      ("program_id", 77)))
               for name, cat, _, _, text in OPS]
        p.line(2, "XLA Ops", [(n, t + op[2], op[3], ())
                              for t in at for n, op in zip(ids, OPS)])
        p.line(3, "Async XLA Ops", [(ids[0], t, 500, ()) for t in at])
        if steps:
            p.line(4, "Steps", [(p.name_id(str(40 + r)), t, RUN_US, ())
                                for r, t in enumerate(at)])
        space += blob(1, p.bytes())
    host, held = host_plane(devices, runs, sizes)
    space += blob(1, host.bytes())
    p = Plane("/host:metadata")
    for i, name in enumerate(("jit_step(77)", "jit_init(78)")):
        p.name_id(name, "", (("Hlo Proto", hlo_proto(name[:8])),))
        p.name_id("mlir %d" % i, "", (("mlir_program", b"module {}" * 9),))
    space += blob(1, p.bytes())
    p = Plane("Task Environment")
    p.fact("profile_start_time", START_NS)
    space += blob(1, p.bytes())
    with open(path, "wb") as f:
        f.write(space)
    return held


def host_plane(devices, runs, sizes):
    """The host: launches 50 us before each run, and on each device a block of
    (d + 1) MiB that lives, one of 512 KiB that is freed at once, and one from
    before the window whose free tells neither size nor address."""
    p = Plane("/host:CPU")
    launch = p.name_id("DoEnqueueProgram")
    alloc, free = p.name_id("MemoryAllocation"), p.name_id("MemoryDeallocation")
    calls, memory, held = [], [], []
    for d in range(devices):
        for r in range(runs):
            calls.append((launch, r * EVERY_US + 50 + d, 1,
                          (("_pt", 12), ("_p", 1000 * d + r))))
        stack, level = 3 << 20, 8 << 20
        most = 0

        def event(kind, ts, addr, size):
            nonlocal level, most
            level += size if kind == alloc else -size
            most = max(most, level + stack)
            stats = [("index_on_host", d), ("bytes_reserved", stack),
                     ("bytes_allocated", level),
                     ("bytes_available", (64 << 20) - level - stack),
                     ("fragmentation", "0.25")]
            if addr and sizes:
                stats.append(("addr", addr))
            if kind == alloc and sizes:
                stats += [("requested_bytes", size), ("allocation_bytes", size)]
            memory.append((kind, ts, 0, tuple(stats)))

        event(alloc, 110 + d, 4096, (d + 1) << 20)
        event(alloc, 120 + d, 8 << 20, 512 << 10)
        event(free, 130 + d, 8 << 20, 512 << 10)
        event(free, 140 + d, 0, 2 << 20)
        held.append({"peak": most, "live": level + stack, "allocs": 2,
                     "frees": 2, "capacity": 64 << 20})
    p.line(7, "main/7", sorted(calls, key=lambda e: e[1]))
    p.line(8, "tf_alloc/8", sorted(memory, key=lambda e: e[1]))
    return p, held


def main():
    """The file is what it says it is: planes, as another reader finds them."""
    with tempfile.TemporaryDirectory() as dir:
        path = os.path.join(dir, "tpu.xplane.pb")
        write(path)
        with open(path, "rb") as f:
            planes = [dict(fields(b))[2].decode() for _, b in fields(f.read())]
    want = ["/device:TPU:%d" % d for d in range(4)]
    want += ["/host:CPU", "/host:metadata", "Task Environment"]
    say("", [] if planes == want else "planes: %s" % planes)
    return status()


if __name__ == "__main__":
    sys.exit(main())
