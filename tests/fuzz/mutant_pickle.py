# SPDX-License-Identifier: Apache-2.0
"""Memory snapshots: pickles, mutated first as the objects that they are, then
as the instructions that make them. (Python's own reader runs what a pickle asks
for: only our own test data goes through it.)"""

import gzip
import os
import pickle
import pickletools
import struct

import mutant_values as values

ACTIONS = ["alloc", "free", "free_requested", "free_completed",
           "segment_alloc", "segment_free", "segment_map", "segment_unmap",
           "oom", "snapshot", "", "x"]
STATES = ["active_allocated", "active_pending_free", "inactive", "", "x"]


class Doc:
    """The object, the protocol to write it in, and what to do with the
    instructions then."""

    def __init__(self, data):
        self.value = pickle.loads(data)
        self.protocol = data[1] if data[:1] == b"\x80" else 0
        self.later = []


def load(data):
    return Doc(data)


def dump(doc):
    try:
        data = pickle.dumps(doc.value, protocol=doc.protocol)
    except (RecursionError, OverflowError, UnicodeError, struct.error):
        doc.value = None
        data = pickle.dumps({"segments": [], "device_traces": []})
    ops = split(data) if doc.later else None
    for change in doc.later:
        ops = change(ops)
    return b"".join(ops) if doc.later else data


def split(data):
    """The bytes of each instruction."""
    at = [pos for _, _, pos in pickletools.genops(data)] + [len(data)]
    return [data[a:b] for a, b in zip(at, at[1:])]


def slots(node, out, seen, depth=0):
    """(holder, key) of every value below."""
    if id(node) in seen or depth > 60:
        return out
    seen.add(id(node))
    if isinstance(node, dict):
        for k in node:
            out.append((node, k))
            slots(node[k], out, seen, depth + 1)
    elif isinstance(node, list):
        for i, v in enumerate(node):
            out.append((node, i))
            slots(v, out, seen, depth + 1)
    return out


def all_slots(doc):
    return slots(doc.value, [], set())


def entries(doc):
    """Every dict of a trace, segment or block."""
    return [h[k] for h, k in all_slots(doc) if isinstance(h[k], dict) and h[k]]


def number(rng):
    return values.integer(rng) if rng.random() < 0.8 else values.real(rng)


def text(rng):
    return values.text(rng).encode("utf-8", "replace").decode()


def anything(rng, doc):
    r = rng.random()
    if r < 0.35:
        return number(rng)
    if r < 0.6:
        return text(rng)
    if r < 0.75:
        return rng.choice([None, True, False, [], {}, (), b"", b"\xff" * 9,
                           (1, 2), frozenset([1]), {1: 2}, {None: [None]},
                           1j])
    if r < 0.9:
        h, k = rng.choice(all_slots(doc) or [([0], 0)])
        return h[k]  # anything of the file: also what it is put into
    return doc.value


# --- objects ----------------------------------------------------------------

def m_number(rng, doc, other):
    s = [(h, k) for h, k in all_slots(doc) if isinstance(h[k], int)]
    if s:
        h, k = rng.choice(s)
        h[k] = number(rng)
    return doc


def m_field(rng, doc, other):
    """One field of many entries."""
    es = entries(doc)
    keys = sorted({k for e in es for k in e if isinstance(k, str)})
    if not keys:
        return doc
    key = rng.choice(keys)
    es = [e for e in es if key in e]
    way, one = rng.randrange(6), anything(rng, doc)
    for e in rng.sample(es, rng.choice([1, len(es) // 2 + 1, len(es)])):
        if way == 0:
            e[key] = one
        elif way == 1:
            e[key] = rng.choice(es).get(key)
        elif way == 2:
            e[key] = number(rng)
        elif way == 3:
            e.pop(key, None)  # an entry may stand there twice
        elif way == 4:
            e[key] = rng.choice(ACTIONS + STATES) if key in (
                "action", "state") else anything(rng, doc)
        elif isinstance(e.get(key), int):
            e[key] = values.like(rng, e[key])
    return doc


def m_swap(rng, doc, other):
    s = all_slots(doc)
    if s:
        h, k = rng.choice(s)
        h[k] = anything(rng, doc)
    return doc


def m_circle(rng, doc, other):
    """Something that contains itself."""
    s = [(h, k) for h, k in all_slots(doc) if isinstance(h[k], (list, dict))]
    if s:
        h, k = rng.choice(s)
        inner = rng.choice(s)
        v = inner[0][inner[1]]
        if isinstance(v, list):
            v.append(h)
        else:
            v["frames"] = h
    return doc


def lists(doc):
    return [h[k] for h, k in all_slots(doc)
            if isinstance(h[k], list) and h[k]]


def m_list(rng, doc, other):
    """Entries gone, twice, in another order."""
    ls = lists(doc)
    if not ls:
        return doc
    v = rng.choice(ls)
    way, at = rng.randrange(4), rng.randrange(len(v))
    if way == 0:
        del v[at:at + values.count(rng, len(v))]
    elif way == 1:
        v[at:at] = v[at:at + values.count(rng, 9)] * values.count(rng, 30)
    elif way == 2:
        rng.shuffle(v)
    else:
        v.reverse()
    return doc


def m_laughs(rng, doc, other):
    """Lists of lists of lists, each of the same one: a few bytes, and who
    follows them all never comes to an end."""
    s = [(h, k) for h, k in all_slots(doc) if isinstance(h[k], list)]
    if s:
        h, k = rng.choice(s)
        v = list(h[k][:2]) or [1]
        for _ in range(values.count(rng, 60)):
            v = [v] * rng.choice([2, 10])
        h[k] = v
    return doc


def m_many(rng, doc, other, full=False):
    """One entry very often: the same object, which costs two bytes each, or
    copies of it that differ. full: as often as there is room."""
    ls = lists(doc)
    if not ls:
        return doc
    v = rng.choice(ls)
    one = rng.choice(v)
    n = 1_000_000 if full else values.count(rng, rng.choice([300, 3000, 20000]))
    if isinstance(one, dict) and rng.random() < 0.6:
        keys = [k for k in one if isinstance(one[k], int)]
        key = rng.choice(keys) if keys else "x"
        for i in range(min(n, 60000)):
            v.append({**one, key: i})
    else:
        v.extend([one] * n)
    return doc


def m_splice(rng, doc, other):
    o = other().value
    if not isinstance(o, dict) or not isinstance(doc.value, dict):
        return doc
    for key in o:
        if rng.random() < 0.5:
            continue
        if isinstance(doc.value.get(key), list) and isinstance(o[key], list):
            doc.value[key] += o[key]
        else:
            doc.value[key] = o[key]
    return doc


def m_keys(rng, doc, other):
    es = entries(doc) + ([doc.value] if isinstance(doc.value, dict) else [])
    e = rng.choice(es) if es else {}
    if not e:
        return doc
    key = rng.choice(list(e))
    e[rng.choice([text(rng), number(rng), None, ("a",), "frames", "blocks",
                  "time_us", "size"])] = e[key]
    if rng.random() < 0.5:
        del e[key]
    return doc


def m_protocol(rng, doc, other):
    doc.protocol = rng.randrange(6)
    return doc


# --- instructions -----------------------------------------------------------

def some_op(rng):
    """An instruction that stands alone, with an argument at its border."""
    n = values.integer(rng) & (1 << 64) - 1
    memo = rng.choice([0, 1, 2, rng.randrange(300), n])
    word = values.encode(values.text(rng))
    return rng.choice([
        b"h" + bytes([memo & 255]), b"j" + struct.pack("<I", memo & 2**32 - 1),
        b"q" + bytes([memo & 255]), b"r" + struct.pack("<I", memo & 2**32 - 1),
        b"g%d\n" % memo, b"p%d\n" % memo, b"\x94", b"0", b"1", b"2", b"(",
        b"]", b"}", b")", b"l", b"d", b"t", b"e", b"a", b"u", b"s", b"b",
        b"\x85", b"\x86", b"\x87", b"N", b"\x88", b"\x89", b"R", b"\x81", b".",
        b"K" + bytes([n & 255]), b"M" + struct.pack("<H", n & 65535),
        b"J" + struct.pack("<I", n & 2**32 - 1),
        b"\x8a\x08" + struct.pack("<Q", n), b"\x8a\xff", b"\x8a\x00",
        b"\x8b" + struct.pack("<I", n & 2**32 - 1) + b"\x01",
        b"I%d\n" % n, b"L%dL\n" % n, b"Fnan\n", b"F1e999\n",
        b"G" + struct.pack(">d", values.real(rng)),
        b"X" + struct.pack("<I", len(word)) + word,
        b"X" + struct.pack("<I", n & 2**32 - 1) + word,
        b"\x8c" + bytes([min(len(word), 255)]) + word[:255],
        b"\x8d" + struct.pack("<Q", n) + word,
        b"C" + bytes([n & 255]), b"B" + struct.pack("<I", n & 2**32 - 1),
        b"\x8e" + struct.pack("<Q", n), b"\x96" + struct.pack("<Q", n),
        b"\x95" + struct.pack("<Q", n), b"\x80" + bytes([n & 255]),
        b"cos\nsystem\n", b"\x93", b"P1\n", b"Q", b"\x82\x01", b"\x97", b"\x98",
        b"S'x'\n", b"V" + word.replace(b"\n", b"") + b"\n", b"T\x05\0\0\0hello",
        b"]" * values.count(rng, 100000), b"(" * values.count(rng, 100000),
        b"2" * values.count(rng, 100000),
        b"](" * values.count(rng, 3000), b"}" + b"h\x00" * 9])


def m_ops(rng, doc, other):
    """Instructions gone, twice, swapped, new."""
    way, seed = rng.randrange(5), rng.random()

    def change(ops):
        at = int(seed * len(ops))
        if way == 0:
            return ops[:at] + ops[at + values.count(rng, 40):]
        if way == 1:
            piece = ops[at:at + values.count(rng, 40)]
            return ops[:at] + piece * values.count(rng, 20) + ops[at:]
        if way == 2:
            return ops[:at] + ops[at:at + 9][::-1] + ops[at + 9:]
        if way == 3:
            return ops[:at] + [some_op(rng)] + ops[at:]
        return ops[:at] + [some_op(rng)] + ops[at + 1:]
    doc.later.append(change)
    return doc


def m_memo(rng, doc, other):
    """What is fetched from the memo is something else."""
    share = rng.choice([0.02, 0.3, 1])

    def change(ops):
        gets = [o for o in ops if o[:1] in b"hjg" and len(o) > 1] or [b"N"]
        same = rng.choice(gets)
        return [rng.choice([same, rng.choice(gets), some_op(rng)])
                if o[:1] in b"hjg" and rng.random() < share else o
                for o in ops]
    doc.later.append(change)
    return doc


def m_nest(rng, doc, other):
    """A list in a list in a list."""
    n = values.count(rng, rng.choice([60, 2000, 200000]))

    def change(ops):
        at = rng.randrange(len(ops))
        return ops[:at] + [b"]" * n + b"a" * rng.choice([n, n - 1, 0]), b"0"] \
            + ops[at:]
    doc.later.append(change)
    return doc


MUTATIONS = [(5, m_number), (7, m_field), (3, m_swap), (2, m_circle),
             (1, m_laughs), (4, m_list), (3, m_many), (2, m_splice),
             (2, m_keys), (2, m_protocol), (4, m_ops), (3, m_memo), (1, m_nest)]


# --- seeds ------------------------------------------------------------------

def thin(doc):
    """A memory snapshot with few of everything."""
    doc["segments"] = doc["segments"][:3]
    for s in doc["segments"]:
        s["blocks"] = s["blocks"][:8]
    doc["device_traces"] = [t[:6] + t[-40:] for t in doc["device_traces"]]
    if "external_annotations" in doc:
        doc["external_annotations"] = doc["external_annotations"][:12]
    for entry in [e for t in doc["device_traces"] for e in t]:
        entry["frames"] = entry.get("frames", [])[:4]
    return doc


def seeds(data_dir):
    out = {}
    for folder, _, names in sorted(os.walk(data_dir)):
        for name in sorted(n for n in names if n.endswith(".pickle.gz")):
            with gzip.open(os.path.join(folder, name)) as f:
                data = f.read()
            out[name] = pickle.dumps(thin(pickle.loads(data)),
                                     protocol=len(out) % 6)
            if len(data) < 200_000:
                out["whole " + name] = data
    return out
