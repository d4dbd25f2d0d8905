# SPDX-License-Identifier: Apache-2.0
"""What a killed program leaves: a pointer, the ring file that it leads to, and
.part files beside it. Where things lie in a ring the program `rings` says,
which is compiled with the headers of the recorder. The good ring that mutants
are made from is written here, by the same table, so that a seed gives the same
ring on every machine."""

import os
import struct

import mutant_proto as proto
import mutant_values as values

SLOTS = 512


class Layout:
    def __init__(self, text):
        self.at, self.number = {}, {}
        for line in text.splitlines():
            name, *rest = line.rsplit(" = ", 1) if " = " in line \
                else line.split(" ")
            if " = " in line:
                self.number[name] = int(rest[0]) if rest[0].lstrip(
                    "-").isdigit() else rest[0]
            else:
                self.at[name] = tuple(map(int, rest))

    def n(self, name):
        return self.number[name]


class Ring:
    """A run folder with one recording in it, as bytes."""

    def __init__(self, layout):
        n = layout.n
        self.layout = layout
        self.head = bytearray(n("h.names_at"))  # and segments, and asyncs
        self.names = bytearray()
        self.text = bytearray()
        self.rings = []   # [offset, bytes]
        self.size = n("first_ring")
        self.parts = {}   # suffix of the stem -> bytes
        self.pointer = None  # None: one line with the ring's path
        self.stem = None     # None: where the pointer is

    def set(self, name, value, base=0, to=None, index=0):
        at, size, *table = self.layout.at[name]
        to = self.head if to is None else to
        at += base + (index * table[1] if table else 0)
        if isinstance(value, bytes):
            to[at:at + size] = value[:size].ljust(size, b"\0")
        else:
            to[at:at + size] = (value & (1 << 8 * size) - 1).to_bytes(
                size, "little")

    def get(self, name, base=0, of=None, index=0):
        at, size, *table = self.layout.at[name]
        at += base + (index * table[1] if table else 0)
        return int.from_bytes((self.head if of is None else of)[at:at + size],
                              "little")

    def add_ring(self, slots=SLOTS):
        n, page = self.layout.n, self.layout.n("REC_PAGE")
        at = -(-self.size // page) * page
        b = bytearray(n("REC_RING_HEAD") + slots * n("sizeof(struct rec_slot)"))
        i = len(self.rings)
        self.rings.append([at, b])
        self.size = at + len(b)
        base = i * self.layout.at["head.rings"][3]
        self.set("head.rings[0].at", at, base)
        self.set("head.rings[0].bytes", len(b), base)
        self.set("head.nrings", i + 1)
        for field, v in (("slots", slots), ("backed_slots", slots),
                         ("write_limit", slots - 128), ("tid", 4711 + i),
                         ("thread", i), ("state", n("REC_RING_LIVE"))):
            self.set("ring." + field, v, to=b)
        self.set("ring.name", b"thread %d" % i, to=b)
        return b

    def add_name(self, text, kind):
        b = bytearray(self.layout.n("sizeof(struct rec_name)"))
        self.set("name.at", len(self.text), to=b)
        self.set("name.bytes", len(text), to=b)
        self.set("name.kind", self.layout.n(kind), to=b)
        self.text += text
        self.names += b
        self.set("head.nnames", len(self.names) // len(b))
        self.set("head.ntext", len(self.text))

    def slot(self, b, time, rest):
        head = self.get("ring.head", of=b)
        slots = self.get("ring.slots", of=b) or 1
        at = self.layout.n("REC_RING_HEAD") + head % slots * 16
        b[at:at + 16] = struct.pack("<QQ", time, rest)
        self.set("ring.head", head + 1, to=b)

    def record(self, b, kind, name, time, payload=b"", aux=None):
        n = self.layout.n
        self.slot(b, time, (n(kind) << 24 | name) << 32 |
                  (len(payload) if aux is None else aux))
        for i in range(0, len(payload), 12):
            part = payload[i:i + 12].ljust(12, b"\0")
            t, a = struct.unpack("<QI", part)
            self.slot(b, t, n("REC_CONT") << 56 | a)


def good(layout, parts):
    """Two threads, one record of each kind, open scopes, an open async."""
    r, n = Ring(layout), layout.n
    for field, v in (("magic", n("REC_MAGIC").encode()),
                     ("version", n("REC_VERSION")),
                     ("head_bytes", n("sizeof(struct rec_head)")),
                     ("pid", 4711), ("host", b"box"), ("world_rank", 0xffffffff),
                     ("start_unix_ns", 1790000000 * 10**9),
                     ("start_tick", 100), ("last_tick", 9000), ("nsegs", 1),
                     ("nnames", 2), ("ndevices", 1), ("ntracks", 1)):
        r.set("head." + field, v)
    for table in ("segs", "asyncs", "names", "text"):
        r.set("head.%s_at" % table, n("h.%s_at" % table))
    r.set("seg.tick", 100, n("h.segs_at"))
    r.set("seg.mult", 1000 << 32, n("h.segs_at"))
    r.set("head.devices", b"npu 0")
    track = layout.at["head.tracks"][0]
    r.set("track.device", 1, track)
    r.set("track.queue", b"queue 0", track)
    for word, kind in ((b"", "OPS_KIND_OP"), (b"", "OPS_KIND_OP"),
                       (b"work", "OPS_KIND_OP"),
                       (b"key", "OPS_KEY_"), (b"count", "OPS_COUNT_"),
                       (b"weights", "OPS_TAG_")):
        r.add_name(word, kind)
    for _ in range(2):
        records(r, r.add_ring())
    at = n("h.asyncs_at") + 5 * n("sizeof(struct rec_async)")
    r.set("async.time", 4600, at)
    r.set("async.name", 2, at)
    for suffix, b in parts.items():
        r.parts[suffix] = b
        f = 0 if "device" not in suffix else 1
        r.set("head.commit[0].bytes", len(b), index=f)
    r.set("head.file_bytes", r.size)
    return r


def records(r, b):
    n = r.layout.n
    argument = struct.pack("<QIBBQ", 90, 3, n("REC_ARG_INT"), 8, 77)
    for i in range(12):
        r.record(b, "REC_SCOPE", 2, 1000 + i * 100, aux=60)
        r.record(b, "REC_SCOPE_X", 2, 1010 + i * 100, argument)
    two = struct.pack("<QQI", 50, 7, 0)
    for i, (kind, name, size) in enumerate((
            ("REC_STEP", 0, 16), ("REC_EPOCH", 0, 16), ("REC_INSTANT", 2, 0),
            ("REC_COUNTER", 4, 8), ("REC_ALLOC", 5, 16), ("REC_FREE", 0, 8),
            ("REC_ASYNC", 2, 8), ("REC_DEVICE", 2, 20),
            ("REC_SCALAR", 5, 16))):
        r.record(b, kind, name, 4000 + i, two[:size])
    at, _, _, stride = r.layout.at["ring.frames"]
    for i in range(2):
        r.set("frame.time", 5000 + i, at + i * stride, b)
        r.set("frame.name", 2, at + i * stride, b)
    for field, v in (("depth", 2), ("marks", n("REC_IN_STEP") |
                                    n("REC_IN_EPOCH")),
                     ("step_time", 4500), ("epoch_time", 4400), ("step", 3)):
        r.set("ring." + field, v, to=b)
    r.set("ring.lost", 3, to=b)


def real(layout, folder):
    """What a program left that was really killed: `rings record`."""
    r = Ring(layout)
    with open(os.path.join(folder, "ring"), "rb") as f:
        data = f.read()
    n = layout.n
    r.head[:] = data[:len(r.head)]
    size = n("sizeof(struct rec_name)") * r.get("head.nnames")
    r.names += data[n("h.names_at"):n("h.names_at") + size]
    r.text += data[n("h.text_at"):n("h.text_at") + r.get("head.ntext")]
    for i in range(r.get("head.nrings")):
        base = i * layout.at["head.rings"][3]
        at = r.get("head.rings[0].at", base)
        b = data[at:at + min(r.get("head.rings[0].bytes", base), 1 << 20)]
        r.rings.append([at, bytearray(b)])
    r.size = len(data)
    for name in os.listdir(folder):
        if name.startswith("."):
            with open(os.path.join(folder, name), "rb") as f:
                r.parts[name] = f.read()
    return r


def parts_of(data_dir):
    """The planes of a closed recording as files that are being written."""
    with open(os.path.join(data_dir, "record", "box_0.xplane.pb"), "rb") as f:
        space = proto.parse(f.read(), "XSpace")
    out = {}
    for f in space.subs(1):
        name = f[2].get(2) or b""
        suffix = {b"/host:CPU": ""}.get(
            name, ".device1" if name.startswith(b"/device") else None)
        if suffix is not None and suffix + ".xplane.pb.part" not in out:
            out[suffix + ".xplane.pb.part"] = as_part(proto.body(f[2]))
    return out


def as_part(b):
    n = len(b)
    return b"\x0a" + bytes([n & 127 | 128, n >> 7 & 127 | 128, n >> 14 & 127 |
                            128, n >> 21 & 127 | 128, n >> 28]) + b


# --- mutations --------------------------------------------------------------

HEAD = ["version", "head_bytes", "pid", "gen", "file_bytes", "segs_at",
        "asyncs_at", "names_at", "text_at", "world_rank", "flight", "tsc",
        "start_tick", "start_mono_ns", "start_unix_ns", "clock_resolution_ps",
        "cost_ps", "last_tick", "nsegs", "nnames", "ntext", "nrings",
        "ntracks", "ndevices", "active", "done", "lost.no_ring",
        "lost.names", "drops_write", "commit[0].part", "commit[0].bytes",
        "commit[0].names", "commit[0].events", "commit[0].closed",
        "rings[0].at", "rings[0].bytes"]
RING = ["head", "write_limit", "depth", "args_top", "marks", "step", "epoch",
        "step_time", "epoch_time", "lost", "tail", "reusable_to", "reported",
        "first_slot", "slots", "backed_slots", "state", "tid", "thread", "died"]


def near(rng, v):
    return values.integer(rng) if rng.random() < 0.5 else values.like(rng, v)


def m_head(rng, r, other):
    for _ in range(values.count(rng, 3)):
        name = "head." + rng.choice(HEAD)
        index = rng.randrange(3) if len(r.layout.at[name]) > 2 else 0
        base = 0
        if "rings[0]" in name:
            base = rng.randrange(max(1, len(r.rings))) * \
                r.layout.at["head.rings"][3]
        if "commit[0]" in name:
            base = rng.choice([0, r.layout.at["head.commit"][3]])
        r.set(name, near(rng, r.get(name, base, index=index)), base,
              index=index)
    return r


def m_ring(rng, r, other):
    b = rng.choice(r.rings)[1] if r.rings else None
    for _ in range(values.count(rng, 3)) if b else []:
        name = "ring." + rng.choice(RING)
        index = rng.randrange(2) if len(r.layout.at[name]) > 2 else 0
        r.set(name, near(rng, r.get(name, of=b, index=index)), to=b,
              index=index)
    return r


def m_window(rng, r, other):
    """Head, tail and floor as they are when a ring has gone round often."""
    for _, b in r.rings:
        slots = r.get("ring.slots", of=b)
        head = rng.choice([slots, slots * 3 + 5, 2**63, 2**64 - 1, 2**32 + 7])
        r.set("ring.head", head, to=b)
        for i in range(2):
            r.set("ring.tail", head - rng.choice([0, 1, slots - 1, slots,
                                                  slots + 1, 2**40]), to=b,
                  index=i)
        if rng.random() < 0.5:
            r.set("ring.first_slot", head - rng.randrange(2 * slots + 2), to=b)
        r.set("head.flight", rng.randrange(2))
    return r


def m_slots(rng, r, other):
    """Records of other kinds, without their payload, in another order."""
    if not r.rings:
        return r
    b, at = rng.choice(r.rings)[1], r.layout.n("REC_RING_HEAD")
    n = (len(b) - at) // 16
    used = min(n, r.get("ring.head", of=b)) or n
    for _ in range(values.count(rng, 60)):
        i = at + 16 * rng.randrange(max(1, used))
        time, rest = struct.unpack_from("<QQ", b, i)
        way = rng.randrange(6)
        if way == 0:
            rest = rest & (1 << 56) - 1 | rng.randrange(
                r.layout.n("REC_KINDS") + 2) << 56
        elif way == 1:
            rest = rest & ~0xffffffff | values.integer(rng) & 0xffffffff
        elif way == 2:
            rest = rest & ~(0xffffff << 32) | (
                values.integer(rng) & 0xffffff) << 32
        elif way == 3:
            time = near(rng, time) & (1 << 64) - 1
        elif way == 4:
            k = at + 16 * rng.randrange(max(1, used))
            b[i:i + 16], b[k:k + 16] = b[k:k + 16], b[i:i + 16]
            continue
        else:
            k = at + 16 * rng.randrange(max(1, used))
            b[i:i + 16] = b[k:k + 16]
            continue
        struct.pack_into("<QQ", b, i, time, rest)
    return r


def m_more(rng, r, other):
    """Many records of one kind, so that the ring goes round."""
    if not r.rings:
        return r
    b = rng.choice(r.rings)[1]
    kind = rng.choice(["REC_SCOPE", "REC_SCOPE_X", "REC_STEP", "REC_EPOCH",
                       "REC_INSTANT", "REC_COUNTER", "REC_ALLOC", "REC_FREE",
                       "REC_ASYNC", "REC_DEVICE", "REC_SCALAR"])
    for i in range(values.count(rng, 1500)):
        payload = struct.pack("<QQI", rng.choice([i, values.integer(rng) &
                                                  2**64 - 1]), i % 9, 0)
        r.record(b, kind, rng.randrange(7), 5000 + i * rng.choice([0, 1, 50]),
                 payload[:rng.choice([0, 8, 16, 20])])
    return r


def m_arguments(rng, r, other):
    if r.rings:
        b = rng.choice(r.rings)[1]
        for _ in range(values.count(rng, 30)):
            word = values.encode(values.text(rng, False))[:240]
            one = struct.pack("<IBB", values.integer(rng) & 7,
                              rng.randrange(9), rng.choice(
                                  [len(word) & 255, 0, 8, 255])) + word
            r.record(b, rng.choice(["REC_SCOPE_X", "REC_INSTANT"]), 2, 6000,
                     struct.pack("<Q", 5) + one * values.count(rng, 9))
    return r


def m_frames(rng, r, other):
    if not r.rings:
        return r
    b = rng.choice(r.rings)[1]
    at, _, count, stride = r.layout.at["ring.frames"]
    r.set("ring.depth", rng.choice([0, 1, 2, count - 1, count, count + 1,
                                    2**32 - 1]), to=b)
    for i in range(values.count(rng, count)):
        for f in ("time", "name", "args"):
            if rng.random() < 0.6:
                r.set("frame." + f, values.integer(rng), at + i * stride, b)
    at, _, count, _ = r.layout.at["ring.args"]
    b[at:at + count] = bytes(rng.choices(range(256), k=count))
    r.set("ring.args_top", rng.choice([0, 14, count, count + 1, 2**31]), to=b)
    return r


def m_names(rng, r, other):
    size = r.layout.n("sizeof(struct rec_name)")
    for i in range(len(r.names) // size):
        if rng.random() < 0.4:
            f = rng.choice(["at", "bytes", "kind"])
            r.set("name." + f, near(rng, r.get("name." + f, i * size,
                                               r.names)), i * size, r.names)
    word = values.encode(values.text(rng, False))
    at = rng.randrange(len(r.text) + 1)
    r.text[at:at + len(word)] = word
    if rng.random() < 0.3:
        for _ in range(values.count(rng, 3000)):
            r.add_name(word[:200], "OPS_KIND_OP")
    return r


def m_tables(rng, r, other):
    n, at = r.layout.n, r.layout.at
    which = rng.choice(["seg", "async", "track", "device"])
    if which == "seg":
        k = values.count(rng, n("REC_SEGS"))
        r.set("head.nsegs", k)
        for i in range(k):
            base = n("h.segs_at") + i * n("sizeof(struct rec_seg)")
            for f in ("tick", "ps", "mult"):
                r.set("seg." + f, rng.choice([i * 1000, values.integer(rng)]),
                      base)
    elif which == "async":
        for i in range(values.count(rng, n("REC_ASYNCS"))):
            base = n("h.asyncs_at") + i * n("sizeof(struct rec_async)")
            r.set("async.time", values.integer(rng), base)
            r.set("async.name", rng.choice([2, values.integer(rng)]), base)
    elif which == "track":
        k = values.count(rng, at["head.tracks"][2])
        r.set("head.ntracks", k)
        for i in range(k):
            base = at["head.tracks"][0] + i * at["head.tracks"][3]
            r.set("track.device", rng.choice([1, 1, 2, 16, 17, 0]), base)
            r.set("track.queue", values.encode(values.text(rng, False)), base)
    else:
        r.set("head.ndevices", rng.choice([1, 2, 16, 17]))
        for i in range(16):
            r.set("head.devices", values.encode(values.text(rng, False)),
                  index=i)
    return r


def m_texts(rng, r, other):
    name = rng.choice(["stem", "host", "events", "magic"])
    r.set("head." + name, values.encode(values.text(rng)))
    if name == "stem":
        r.stem = b""
    for _, b in r.rings:
        r.set("ring.name", values.encode(values.text(rng, False)), to=b)
    return r


def m_rings(rng, r, other):
    """More threads; rings that lie in each other."""
    for _ in range(values.count(rng, 60)):
        records(r, r.add_ring(rng.choice([256, 512, 1024])))
    if rng.random() < 0.5:
        stride = r.layout.at["head.rings"][3]
        for i in range(len(r.rings)):
            if rng.random() < 0.3:
                r.set("head.rings[0].at", rng.choice(r.rings)[0] +
                      rng.choice([0, 0, 1, 65536]), i * stride)
    return r


def m_size(rng, r, other):
    r.size = rng.choice([0, 1, 4096, r.layout.n("first_ring") - 1,
                         r.layout.n("first_ring"), r.size - 1, r.size + 1,
                         r.size + (1 << 30), rng.randrange(r.size + 1)])
    return r


def m_parts(rng, r, other):
    """The files beside it: cut, damaged, too many, gone."""
    way = rng.randrange(6)
    names = sorted(r.parts)
    if not names:
        return r
    name = rng.choice(names)
    if way == 0:
        del r.parts[name]
    elif way == 1:
        r.parts[name] = rng.choice(values.BYTES)(rng, r.parts[name],
                                                 other().parts.get(name, b""))
    elif way == 2:
        r.parts[rng.choice([".1.xplane.pb.part", ".device2.xplane.pb.part",
                            ".xplane.pb", ".1.xplane.pb", "-2.ring",
                            ".device99.xplane.pb.part"])] = r.parts[name]
    elif way == 3:
        try:
            m = proto.parse(r.parts[name][6:], "XPlane")
            for _ in range(values.count(rng, 4)):
                m = rng.choice(proto.MUTATIONS)[1](rng, m, lambda: None)
            r.parts[name] = as_part(proto.dump(m))
        except ValueError:
            pass
    elif way == 4:
        r.parts[name] += bytes(rng.choices(range(256), k=50))
    else:
        r.set("head.commit[0].bytes", near(rng, len(r.parts[name])),
              index=rng.randrange(2))
    return r


def m_pointer(rng, r, other):
    r.pointer = rng.choice([
        b"", b"\n", b"RING", b"RING\n\n", b"RING \n", b"RING\0\n", b"x\n",
        b"/\n", b"/dev/zero\n", b"/dev/shm/opscope-none\n", b"SELF\n",
        b"DIR\n", b"/" * 5000 + b"\n", b"/opscope-" + b"a" * 300 + b"\n",
        b"RING\nRING\n", b"/proc/self/mem\n", b"/opscope-\xff\x1b[31m\n"])
    return r


def m_bytes(rng, r, other):
    b = rng.choice([r.head] + [x[1] for x in r.rings] + [r.names or r.head])
    for _ in range(values.count(rng, 40)):
        b[rng.randrange(len(b))] = rng.randrange(256)
    return r


MUTATIONS = [(6, m_head), (6, m_ring), (3, m_window), (4, m_slots),
             (3, m_more), (2, m_arguments), (2, m_frames), (3, m_names),
             (3, m_tables), (2, m_texts), (2, m_rings), (2, m_size),
             (4, m_parts), (2, m_pointer), (2, m_bytes)]


def write(r, folder):
    """The log folder, to be given to opscope. The ring lies beside it."""
    run = os.path.join(folder, "logs", "plugins", "profile", "run1")
    os.makedirs(run)
    ring = os.path.join(folder, "opscope-ring")
    stem = os.path.join(run, "box_1")
    if r.stem is None:
        r.set("head.stem", os.path.realpath(stem).encode())
    with open(ring, "wb") as f:
        for at, b in [(0, r.head), (r.layout.n("h.names_at"), r.names),
                      (r.layout.n("h.text_at"), r.text), *r.rings]:
            f.seek(at)
            f.write(b)
        f.truncate(r.size)
    pointer = r.pointer if r.pointer is not None else b"RING\n"
    pointer = pointer.replace(b"RING", ring.encode()).replace(
        b"SELF", (stem + ".ring").encode()).replace(b"DIR", folder.encode())
    for suffix, b in [(".ring", pointer), *r.parts.items()]:
        with open(stem + suffix, "wb") as f:
            f.write(b)
    return os.path.join(folder, "logs")
