# SPDX-License-Identifier: Apache-2.0
"""Protocol buffers, mutated as messages: XSpace with the programs of XLA in it,
RunMetadata and StepStats, event files. The codec is our own because it must
write what no library will: lengths that lie, fields of the wrong type, ids that
lead in circles."""

import functools
import gzip
import os
import re
import struct

import mutant_values as values

BIG = 4_500_000
VARINT, FIXED64, LEN, GROUP, END, FIXED32 = range(6)

# Which fields are messages, or packed numbers ("ids"). Others are what their
# wire type says.
SCHEMA = {
    "XSpace": {1: "XPlane"},
    "XPlane": {3: "XLine", 4: "EventEntry", 5: "StatEntry", 6: "XStat"},
    "EventEntry": {2: "XEventMetadata"},
    "StatEntry": {2: "XStatMetadata"},
    "XEventMetadata": {5: "XStat", 6: "ids"},
    "XStatMetadata": {},
    "XLine": {4: "XEvent"},
    "XEvent": {4: "XStat"},
    "XStat": {6: "HloProto"},
    "HloProto": {1: "HloModule"},
    "HloModule": {3: "HloComputation", 4: "ProgramShape", 7: "Schedule",
                  17: "StackFrames"},
    "HloComputation": {2: "HloInstruction"},
    "HloInstruction": {3: "Shape", 7: "OpMetadata", 15: "Window", 16: "Conv",
                       30: "Dot", 36: "ids", 38: "ids"},
    "Shape": {3: "ids", 4: "Shape", 5: "Layout"},
    "Layout": {1: "ids"},
    "ProgramShape": {1: "Shape", 2: "Shape"},
    "OpMetadata": {},
    "Window": {1: "Dim"},
    "Conv": {6: "ids", 11: "ids", 12: "ids"},
    "Dot": {1: "ids", 2: "ids", 3: "ids", 4: "ids"},
    "Schedule": {1: "SeqEntry"},
    "SeqEntry": {2: "Sequence"},
    "Sequence": {1: "ids"},
    "StackFrames": {3: "Place", 4: "Frame"},
    "Place": {}, "Frame": {},
    "RunMetadata": {1: "StepStats", 3: "Graph"},
    "StepStats": {1: "DevStats"},
    "DevStats": {2: "NodeStats", 3: "ThreadEntry"},
    "NodeStats": {6: "Memory", 7: "Output", 12: "MemoryStats"},
    "Memory": {6: "Record"},
    "Record": {}, "MemoryStats": {}, "ThreadEntry": {}, "Graph": {},
    "Output": {3: "TensorDesc"},
    "TensorDesc": {2: "TShape", 4: "Allocation"},
    "Allocation": {},
    "Records": {0: "Event"},  # an event file: see dump_events()
    "Event": {5: "Summary", 7: "Session", 8: "Tagged"},
    "Session": {},
    "Tagged": {2: "RunMetadata"},
    "Summary": {1: "Value"},
    "Value": {5: "Histogram", 8: "Tensor", 9: "Meta"},
    "Histogram": {}, "Plugin": {},
    "Tensor": {2: "TShape"},
    "TShape": {2: "Dim"},
    "Dim": {},
    "Meta": {1: "Plugin"},
}
# Fields that name something, or point at it.
IDS = [("XEvent", 1), ("EventEntry", 1), ("XEventMetadata", 1), ("XStat", 1),
       ("XStat", 7), ("StatEntry", 1), ("XStatMetadata", 1),
       ("XEventMetadata", 6), ("HloInstruction", 35), ("HloInstruction", 36),
       ("HloInstruction", 38), ("HloComputation", 5), ("HloComputation", 6),
       ("HloModule", 5), ("HloModule", 6), ("SeqEntry", 1), ("Sequence", 1),
       ("XLine", 1), ("XLine", 10), ("XPlane", 1), ("Place", 1), ("Frame", 1),
       ("Frame", 2), ("OpMetadata", 15), ("NodeStats", 10), ("ThreadEntry", 1)]
TIMES = [("XLine", 3), ("XLine", 9), ("XEvent", 2), ("XEvent", 3),
         ("XEvent", 5), ("NodeStats", 2), ("NodeStats", 3), ("NodeStats", 4),
         ("NodeStats", 5), ("NodeStats", 9), ("Event", 1), ("Event", 2),
         ("Record", 1), ("Record", 2), ("Memory", 2), ("Memory", 4)]


class Msg:
    """Fields [number, wire type, value, lie]: value an int, bytes, a Msg or a
    Packed; lie, mostly None, is a length to write instead of the true one."""
    __slots__ = ("schema", "fields")

    def __init__(self, schema, fields=()):
        self.schema, self.fields = schema, list(fields)

    def get(self, num):
        for f in self.fields:
            if f[0] == num:
                return f[2]
        return None

    def subs(self, num=None):
        return [f for f in self.fields if isinstance(f[2], Msg)
                and (num is None or f[0] == num)]


class Packed(list):
    """Numbers of a repeated field, one behind the other."""


def varint(v, pad=0):
    v &= (1 << 64) - 1
    out = bytearray()
    while v > 127:
        out.append(v & 127 | 128)
        v >>= 7
    out.append(v)
    for _ in range(pad):
        out[-1] |= 128
        out.append(0)
    return bytes(out)


def take_varint(b, i):
    v = shift = 0
    while True:
        if i >= len(b) or shift > 63:
            raise ValueError("no varint")
        v |= (b[i] & 127) << shift
        i, shift = i + 1, shift + 7
        if b[i - 1] < 128:
            return v & (1 << 64) - 1, i


def packed(b):
    out, i = Packed(), 0
    while i < len(b):
        v, i = take_varint(b, i)
        out.append(v)
    return out


def parse(b, schema):
    """A Msg; ValueError when these bytes are none."""
    out, i, subs = Msg(schema), 0, SCHEMA.get(schema, {})
    while i < len(b):
        tag, i = take_varint(b, i)
        num, wire = tag >> 3, tag & 7
        if wire == VARINT:
            v, i = take_varint(b, i)
        elif wire in (FIXED64, FIXED32):
            n = 8 if wire == FIXED64 else 4
            if i + n > len(b):
                raise ValueError("cut")
            v, i = int.from_bytes(b[i:i + n], "little"), i + n
        elif wire == LEN:
            n, i = take_varint(b, i)
            if i + n > len(b):
                raise ValueError("cut")
            v, i = b[i:i + n], i + n
            if num in subs:
                try:
                    v = packed(v) if subs[num] == "ids" else \
                        parse(v, subs[num])
                except ValueError:
                    pass
        else:
            raise ValueError("wire type")
        if num == 0:
            raise ValueError("field 0")
        out.fields.append([num, wire, v, None])
    return out


def body(v):
    if isinstance(v, Msg):
        return dump(v)
    if isinstance(v, Packed):
        return b"".join(map(varint, v))
    return v if isinstance(v, bytes) else b""


def put(f):
    num, wire, v, lie = f
    head = varint(num << 3 | wire)
    if wire == LEN:
        b = body(v) if not isinstance(v, int) else varint(v)
        return head + varint(len(b) if lie is None else lie) + b
    if not isinstance(v, int):
        return head + body(v)
    if wire == VARINT:
        return head + varint(v, lie or 0)
    n = {FIXED64: 8, FIXED32: 4}.get(wire, 0)
    return head + (v & (1 << 64) - 1).to_bytes(8, "little")[:n]


def dump(m):
    return b"".join(f[2] if f[0] is None else put(f) for f in m.fields)


# --- event files ------------------------------------------------------------

CRC = []
for _i in range(256):
    _c = _i
    for _ in range(8):
        _c = _c >> 1 ^ (0x82f63b78 if _c & 1 else 0)
    CRC.append(_c)


@functools.lru_cache(4096)
def masked_crc(b):
    c = 0xffffffff
    for x in b:
        c = CRC[(c ^ x) & 255] ^ c >> 8
    c ^= 0xffffffff
    return ((c >> 15 | c << 17) + 0xa282ead8) & 0xffffffff


def frame(b, lie=None):
    """A record. A lie is its length, or with -1 a wrong checksum."""
    head = struct.pack("<Q", len(b) if lie in (None, -1) else
                       lie & (1 << 64) - 1)
    return head + struct.pack("<I", masked_crc(head)) + b + \
        struct.pack("<I", masked_crc(b) ^ (lie == -1))


def dump_events(m):
    return b"".join(f[2] if f[0] is None else frame(body(f[2]), f[3])
                    for f in m.fields)


def parse_events(data):
    out, i = Msg("Records"), 0
    while i + 16 <= len(data):
        n = int.from_bytes(data[i:i + 8], "little")
        b = data[i + 12:i + 12 + n]
        try:
            out.fields.append([0, LEN, parse(b, "Event"), None])
        except ValueError:
            out.fields.append([0, LEN, b, None])
        i += n + 16
    return out


# --- finding things ---------------------------------------------------------

def messages(m, out):
    out.append(m)
    for f in m.fields:
        if isinstance(f[2], Msg):
            messages(f[2], out)
    return out


def some_message(rng, doc, want=None):
    """Any sort of message is as likely as another, however many there are."""
    all_ = messages(doc, [])
    if want:
        all_ = [m for m in all_ if want(m)]
    sorts = sorted({m.schema for m in all_})
    if not sorts:
        return None
    sort = rng.choice(sorts)
    return rng.choice([m for m in all_ if m.schema == sort])


def fields_of(doc, schema, num):
    return [f for m in messages(doc, []) if m.schema == schema
            for f in m.fields if f[0] == num]


def numbers_in(m):
    return [f for f in m.fields if isinstance(f[2], (int, Packed))]


def set_number(rng, f, v):
    if isinstance(f[2], Packed):
        if f[2] and rng.random() < 0.7:
            f[2][rng.randrange(len(f[2]))] = v
        else:
            f[2].append(v)
    elif isinstance(f[2], int):
        if f[1] in (FIXED64, FIXED32) and rng.random() < 0.7:
            r = values.real(rng)
            try:
                v = int.from_bytes(struct.pack(
                    "<d" if f[1] == FIXED64 else "<f", r), "little")
            except OverflowError:
                v = 0x7f800000
        f[2] = v


# --- mutations --------------------------------------------------------------

def m_number(rng, doc, other):
    m = some_message(rng, doc, numbers_in)
    if m:
        for f in rng.sample(numbers_in(m), rng.choice([1, 1, 2])
                            if len(numbers_in(m)) > 1 else 1):
            set_number(rng, f, values.integer(rng))
    return doc


def spread(rng, fs):
    """One way to change a field of many messages."""
    if not fs:
        return
    way, one = rng.randrange(5), values.integer(rng)
    known = [v for f in fs for v in
             (f[2] if isinstance(f[2], Packed) else [f[2]])
             if isinstance(v, int)] or [0]
    same = rng.choice(known)
    for f in rng.sample(fs, rng.choice([1, len(fs) // 2 + 1, len(fs)])):
        set_number(rng, f, one if way == 0 else same if way == 1 else
                   rng.choice(known) if way == 2 else
                   values.integer(rng) if way == 3 else
                   values.like(rng, rng.choice(known)))


def m_ids(rng, doc, other):
    spread(rng, fields_of(doc, *rng.choice(IDS)))
    return doc


def m_times(rng, doc, other):
    spread(rng, fields_of(doc, *rng.choice(TIMES)))
    return doc


def m_calls(rng, doc, other):
    """Computations that call themselves, each other, or all others; operands
    that are their own results."""
    bodies = [m for m in messages(doc, []) if m.schema == "HloComputation"]
    ids = [m.get(5) for m in bodies if isinstance(m.get(5), int)] or [1]
    fan = values.count(rng, 12)
    for m in bodies:
        for f in m.subs(2):
            if rng.random() > 0.4:
                continue
            own = f[2].get(35)
            f[2].fields.append([38, LEN, Packed(rng.choices(ids, k=fan)), None])
            if isinstance(own, int) and rng.random() < 0.5:
                f[2].fields.append([36, LEN, Packed([own] * fan), None])
            if rng.random() < 0.4:
                f[2].fields.append([2, LEN, rng.choice(
                    [b"while", b"call", b"fusion", b"conditional",
                     b"async-start", b"custom-call"]), None])
    return doc


def m_chain(rng, doc, other):
    """Computations, each of which calls the one before it, several times over:
    who follows every call never comes to an end."""
    word = rng.choice([b"while", b"call", b"fusion", b"conditional", b"reduce",
                       b"async-start"])
    fan, n = rng.choice([1, 2, 8]), rng.choice([3, 33, 60])
    alone = rng.random() < 0.6  # in place of the module's own
    for m in messages(doc, []):
        if m.schema != "HloModule":
            continue
        if alone:
            m.fields = [f for f in m.fields if f[0] not in (3, 6, 7)]
        for i in range(n):
            instr = Msg("HloInstruction", [
                [1, LEN, b"i%d" % i, None],
                [2, LEN, word if i else b"parameter", None],
                [35, VARINT, 5000 + i, None],
                [36, LEN, Packed([5000 + i - 1] * fan), None],
                [38, LEN, Packed([9000 + i - 1] * fan), None]])
            m.fields.append([3, LEN, Msg("HloComputation", [
                [1, LEN, b"c%d" % i, None], [2, LEN, instr, None],
                [5, VARINT, 9000 + i, None], [6, VARINT, 5000 + i, None]]),
                None])
        m.fields.append([6, VARINT, 9000 + n - 1, None])
    return doc


def m_text(rng, doc, other):
    m = some_message(rng, doc, lambda m: any(
        isinstance(f[2], bytes) for f in m.fields))
    if m:
        f = rng.choice([f for f in m.fields if isinstance(f[2], bytes)])
        if f[0] is not None:
            f[2] = values.encode(values.text(rng))
    return doc


@functools.lru_cache(1)
def stat_names():
    here = os.path.dirname(os.path.abspath(__file__))
    path = os.path.join(here, "..", "..", "src", "import", "xspace_stats.def")
    try:
        with open(path, encoding="utf-8") as f:
            return re.findall(r'"([^"]+)"', f.read())
    except OSError:
        return ["correlation_id"]


def m_names(rng, doc, other):
    """Names of stats, events, planes and lines become known ones."""
    sort = rng.choice(["XStatMetadata", "XStatMetadata", "XEventMetadata",
                       "XPlane", "XLine", "NodeStats", "DevStats", "Value"])
    for m in messages(doc, []):
        if m.schema != sort or rng.random() < 0.5:
            continue
        word = rng.choice(stat_names()) if sort == "XStatMetadata" else \
            values.text(rng, False)
        m.fields.append([{"NodeStats": 1, "DevStats": 1, "Value": 1}.get(
            sort, 2), LEN, values.encode(word), None])
    return doc


def m_stats(rng, doc, other):
    """Stats with another value than theirs, or with several."""
    stats = [m for m in messages(doc, []) if m.schema == "XStat"]
    for m in rng.sample(stats, values.count(rng, len(stats))) if stats else []:
        num, wire = rng.choice([(2, FIXED64), (3, VARINT), (4, VARINT),
                                (5, LEN), (6, LEN), (7, VARINT)])
        v = values.encode(values.text(rng)) if wire == LEN else \
            values.integer(rng)
        if rng.random() < 0.5:
            m.fields = [f for f in m.fields if f[0] == 1]
        m.fields.append([num, wire, v, None])
    return doc


def m_delete(rng, doc, other):
    m = some_message(rng, doc, lambda m: m.fields)
    if m:
        at = rng.randrange(len(m.fields))
        del m.fields[at:at + values.count(rng, len(m.fields))]
    return doc


def m_duplicate(rng, doc, other):
    """The same message again is the same object: what changes one later
    changes both, which is as good."""
    m = some_message(rng, doc, lambda m: m.fields)
    if m:
        at = rng.randrange(len(m.fields))
        piece = [list(f) for f in m.fields[at:at + values.count(rng, 10)]]
        m.fields[at:at] = piece * values.count(rng, 30)
    return doc


def m_reorder(rng, doc, other):
    m = some_message(rng, doc, lambda m: len(m.fields) > 1)
    if m:
        rng.choice([rng.shuffle, list.reverse])(m.fields)
    return doc


def m_move(rng, doc, other):
    """A message into another place: its own parent's, or where it makes no
    sense."""
    a = some_message(rng, doc, lambda m: m.subs())
    b = some_message(rng, doc)
    if a and b:
        f = rng.choice(a.subs())
        # a copy: a message inside of itself has no end
        b.fields.insert(rng.randrange(len(b.fields) + 1),
                        [rng.choice([f[0], rng.randrange(1, 20)]), LEN,
                         body(f[2]), None])
    return doc


def m_splice(rng, doc, other):
    """Planes, lines, events and names of another file."""
    o = other()
    if o is None:
        return doc
    theirs = messages(o, [])
    rng.shuffle(theirs)
    for t in theirs[:values.count(rng, 6)]:
        mine = [m for m in messages(doc, []) if m.schema == t.schema]
        if mine and t.fields:
            m = rng.choice(mine)
            at = rng.randrange(len(m.fields) + 1)
            m.fields[at:at] = rng.sample(t.fields,
                                         values.count(rng, len(t.fields)))
    return doc


def m_wire(rng, doc, other):
    m = some_message(rng, doc, lambda m: m.fields)
    if m:
        f = rng.choice(m.fields)
        if f[0] is None:
            return doc
        way = rng.randrange(4)
        if way == 0:
            f[1] = rng.randrange(8)
        elif way == 1:
            f[0] = rng.choice([0, 1, 2, 3, 4, 5, 6, 7, 15, 16, 2**29 - 1,
                               2**32])
        elif way == 2:
            f[3] = rng.choice([0, 1, 127, 2**31, 2**32 - 1, 2**63 - 1,
                               2**63, 2**64 - 1]) if f[1] == LEN else 9
        else:
            f[3] = rng.choice([1, 3, 8, 9, 12]) if f[1] == VARINT else None
    return doc


def m_deep(rng, doc, other):
    """A message inside of itself, thousands of times."""
    m = some_message(rng, doc, lambda m: m.subs())
    if m:
        f = rng.choice(m.subs())
        b, n = b"", values.count(rng, rng.choice([30, 400, 3000]))
        for _ in range(n):
            b = put([f[0], LEN, b, None])
        m.fields.append([None, None, b, None])
    return doc


def vary(f, i):
    """The field with its id, or its time, counted up."""
    if not isinstance(f[2], Msg):
        return put(f)
    m = Msg(f[2].schema, [list(x) for x in f[2].fields])
    for x in m.fields:
        if isinstance(x[2], int) and x[0] in (1, 2) and x[1] == VARINT:
            x[2] += i
            break
    else:
        m.fields.append([1, VARINT, i, None])
    for x in m.fields:
        if isinstance(x[2], Msg) and x[2].get(1) is not None:
            x[2] = Msg(x[2].schema, [[1, VARINT, i, None]] +
                       [y for y in x[2].fields if y[0] != 1])
    return put([f[0], LEN, m, None])


def m_many(rng, doc, other, full=False):
    """One field very often: as it is, or counted up. full: as often as there is
    room."""
    m = some_message(rng, doc, lambda m: m.subs())
    if not m:
        return doc
    f = rng.choice(m.subs())
    size = len(put(f)) + 1
    most = rng.choice([300, 3000, 3000, 20000])
    if m.schema == "Records":
        n = 3000 if full else values.count(rng, 1000)
        for i in range(min(n, 200_000 // size)):
            m.fields.append([0, LEN, f[2] if rng.random() < 0.5 else
                             body(f[2]) + varint(2 << 3) + varint(i), None])
        return doc
    n = min(BIG if full else values.count(rng, most),
            (BIG - len(dump(doc))) // size)
    out = b"".join(vary(f, i) for i in range(n)) if rng.random() < 0.6 else \
        put(f) * n
    m.fields.append([None, None, out, None])
    return doc


def m_empty(rng, doc, other):
    """Messages of two bytes: as many as the file has room for."""
    m = some_message(rng, doc, lambda m: m.subs())
    if m:
        f = rng.choice(m.subs())
        n = values.count(rng, rng.choice([1000, 10000, 400000]))
        m.fields.append([None, None, put([f[0], LEN, b"", None]) * n, None])
    return doc


MUTATIONS = [(6, m_number), (7, m_ids), (5, m_times), (3, m_calls),
             (1, m_chain), (4, m_text), (4, m_names), (3, m_stats),
             (3, m_delete), (3, m_duplicate), (2, m_reorder), (2, m_move),
             (4, m_splice), (3, m_wire), (1, m_deep), (3, m_many), (1, m_empty)]


# --- seeds ------------------------------------------------------------------

def used_ids(plane):
    events, stats = set(), set()
    for m in messages(plane, []):
        if m.schema == "XEvent":
            events.add(m.get(1))
        elif m.schema == "XStat":
            stats |= {m.get(1), m.get(7)}
    return events, stats


def thin_xspace(data, first):
    """Few events of each line, and the names that they use; small programs."""
    space = parse(data, "XSpace")
    for f in space.subs(1):
        plane = f[2]
        lines = [x for x in plane.fields if x[0] == 3]
        keep = lines[:5] + lines[-2:] if len(lines) > 7 else lines
        plane.fields = [x for x in plane.fields if x[0] != 3 or
                        any(x is k for k in keep)]
        for x in plane.subs(3):
            ev = [y for y in x[2].fields if y[0] == 4]
            at = 0 if first else max(0, len(ev) // 2 - 8)
            few = ev[at:at + 16]
            x[2].fields = [y for y in x[2].fields if y[0] != 4] + few
        plane.fields = [x for x in plane.fields
                        if x[0] != 4 or len(put(x)) < 16000]
        events, _ = used_ids(plane)
        named = [x for x in plane.subs(4) if x[2].get(1) in events or
                 isinstance(x[2].get(2), Msg) and x[2].get(2).subs(5)]
        plane.fields = [x for x in plane.fields if x[0] != 4] + named[:60]
        _, stats = used_ids(plane)
        plane.fields = [x for x in plane.fields if x[0] != 5 or
                        isinstance(x[2], Msg) and x[2].get(1) in stats]
    return dump(space)


def read(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as f:
        return f.read()


def files(data_dir, test):
    for folder, _, names in sorted(os.walk(data_dir)):
        for name in sorted(names):
            if test(name):
                yield os.path.relpath(os.path.join(folder, name), data_dir), \
                    read(os.path.join(folder, name))


def entry(num, i, name, *more):
    """A name of an event (4) or of a stat (5), with its constant stats."""
    schema = {4: "XEventMetadata", 5: "XStatMetadata"}[num]
    m = Msg(schema, [[1, VARINT, i, None], [2, LEN, name, None], *more])
    return [num, LEN, Msg({4: "EventEntry", 5: "StatEntry"}[num], [
        [1, VARINT, i, None], [2, LEN, m, None]]), None]


def stat(i, v, num=4):
    wire = LEN if isinstance(v, bytes) else VARINT
    return [num, LEN, Msg("XStat", [[1, VARINT, i, None], [
        5 if wire == LEN else 3, wire, v, None]]), None]


def tpu_plane(program, ops, ns):
    """A TPU that ran the instructions of a program: tests/data has none."""
    words = [b"hlo_category", b"flops", b"bytes_accessed", b"tf_op",
             b"program_id", b"device_offset_ps", b"device_duration_ps",
             b"step_num", b"hlo_module", b"run_id", b"source"]
    plane = Msg("XPlane", [[1, VARINT, 3, None],
                           [2, LEN, b"/device:TPU:0", None]])
    names = [entry(4, 1, b"1"), entry(4, 2, b"jit_f(%d)" % program)]
    for i, op in enumerate(ops):
        names.append(entry(4, 10 + i, op, stat(1, b"fusion", 5), stat(
            2, 1000 * i, 5), stat(3, 64, 5), stat(4, b"jit(f)/mul:", 5),
            stat(5, program, 5)))
    for k, (line, which) in enumerate(((b"Steps", [1]), (b"XLA Modules", [2]),
                                       (b"XLA Ops", range(10, 10 + len(ops))),
                                       (b"Async XLA Ops", [10]))):
        body = [[1, VARINT, k, None], [2, LEN, line, None],
                [3, VARINT, ns, None]]
        for i in range(12):
            one = list(which)[i % len(which)]
            body.append([4, LEN, Msg("XEvent", [
                [1, VARINT, one, None], [2, VARINT, 10**6 * i, None],
                [3, VARINT, 9 * 10**5, None], stat(6, 10**6 * i + 7),
                stat(7, 8 * 10**5), stat(10, i)]), None])
        plane.fields.append([3, LEN, Msg("XLine", body), None])
    plane.fields += names + [entry(5, i + 1, w) for i, w in enumerate(words)]
    return [1, LEN, plane, None]


def tpu_seed(data):
    """A TPU beside the programs of a real profile."""
    space = parse(data, "XSpace")
    ns = fields_of(space, "XLine", 3)[0][2]
    for m in messages(space, []):
        if m.schema == "HloModule" and isinstance(m.get(5), int):
            ops = [i.get(1) for i in messages(m, [])
                   if i.schema == "HloInstruction" and i.get(1)][:30]
            if len(ops) > 4:
                space.fields.append(tpu_plane(m.get(5), ops, ns))
                break
    return dump(space)


def graph_of(data):
    """A device that runs a CUDA graph, and the program that it was made of."""
    space = parse(data, "XSpace")
    for f in space.subs(1):
        f[2].fields = [x for x in f[2].fields if x[0] != 4 or
                       len(put(x)) < 5000 or b"jit_step" in put(x)[:60]]
    return dump(space)


def xspace_seeds(data_dir):
    out = {}
    for name, data in files(data_dir, lambda n: ".xplane.pb" in n):
        if name.startswith("xprof/") and "jax_ops" not in name:
            continue  # the same profiles as beside it
        out[name] = thin_xspace(data, len(out) % 2 == 0)
        if name.startswith(("record/", "tf_workers/")):
            out["whole " + name] = data
        if name.startswith("jax_mlp"):
            out["graph of " + name] = graph_of(data)
        if name.startswith("compile/jax"):
            out["tpu"] = tpu_seed(out[name])
    return out


def stepstats_seeds(data_dir):
    out = {}
    for name, data in files(data_dir, lambda n: re.match(
            r"run_metadata.*pb$", n)):
        run = parse(data, "RunMetadata")
        for d in run.subs(1)[0][2].subs(1) if run.subs(1) else []:
            nodes = d[2].subs(2)
            d[2].fields = [f for f in d[2].fields if f[0] != 2] + nodes[:25]
        out[name] = dump(run)
        if run.subs(1):
            out["steps of " + name] = dump(run.subs(1)[0][2])
    return out


def event_seeds(data_dir):
    out = {}
    for name, data in files(data_dir, lambda n: "tfevents" in n):
        records = parse_events(data)
        records.fields = [f for f in records.fields if len(body(f[2])) < 3000]
        records.fields = records.fields[:60]
        out[name] = dump_events(records)
    return out
