# SPDX-License-Identifier: Apache-2.0
"""Chrome traces and PyTorch's, mutated as what they are: lists of events with
ids that point at each other. The tree keeps what JSON libraries lose: the order
of keys, keys that come twice, numbers as they are written."""

import gzip
import json
import os

import mutant_values as values

BIG = 4_500_000  # bytes; the limits on time and memory hold below five million

# Keys whose values point at other events.
IDS = ["correlation", "correlation_id", "External id", "id", "Ev Idx",
       "Python id", "Python parent id", "Sequence number", "Fwd thread id",
       "Addr", "Device Id", "device", "stream", "pid", "tid", "Collective id",
       "Process Group Name", "Rank", "rank", "step_num", "graph id",
       "graph node id", "context", "Record function id"]
TIMES = ["ts", "dur"]
PHASES = "XBEbneiIRCMstfNODSTpFvVP(){}"


class Obj(list):
    """Pairs [key, value], in order."""

    def get(self, key, default=None):
        for k, v in self:
            if k == key:
                return v
        return default

    def set(self, key, value):
        for pair in self:
            if pair[0] == key:
                pair[1] = value
                return
        self.append([key, value])


class Num(str):
    """A number as it is written."""


class Raw(bytes):
    """Bytes that go out as they are."""


def load(data):
    return json.loads(data, object_pairs_hook=lambda p: Obj(map(list, p)),
                      parse_int=Num, parse_float=Num, parse_constant=Num)


def quoted(s):
    """Raw where JSON would escape: writers do that, too."""
    out = json.dumps(s, ensure_ascii=False)
    if any(0xd800 <= ord(c) < 0xe000 for c in out):
        return values.encode("".join(
            c if not 0xd800 <= ord(c) < 0xdc80 else "\\u%04x" % ord(c)
            for c in out))
    return out.encode()


def put(node, out):
    if isinstance(node, Obj):
        out.append(b"{")
        for i, (k, v) in enumerate(node):
            out.append(b", " if i else b"")
            out.append(k if isinstance(k, Raw) else quoted(k))
            out.append(b": ")
            put(v, out)
        out.append(b"}")
    elif isinstance(node, list):
        out.append(b"[")
        for i, v in enumerate(node):
            out.append(b",\n" if i else b"")
            put(v, out)
        out.append(b"]")
    elif isinstance(node, Num):
        out.append(node.encode())
    elif isinstance(node, bytes):
        out.append(node)
    elif isinstance(node, str):
        out.append(quoted(node))
    else:
        out.append({True: b"true", False: b"false"}.get(node, b"null"))


def dump(doc):
    out = []
    put(doc, out)
    return b"".join(out)


def clone(node):
    if isinstance(node, Obj):
        return Obj([k, clone(v)] for k, v in node)
    if isinstance(node, list):
        return [clone(v) for v in node]
    return node


def events(doc):
    """The list of events; one is made where there is none."""
    if isinstance(doc, Obj):
        v = doc.get("traceEvents")
        if isinstance(v, list) and not isinstance(v, Obj):
            return v
        doc.set("traceEvents", [])
        return doc.get("traceEvents")
    return doc if isinstance(doc, list) else []


def slots(node, out, key=None):
    """(holder, index, key) of every value below."""
    if isinstance(node, Obj):
        for pair in node:
            out.append((pair, 1, pair[0]))
            slots(pair[1], out, pair[0])
    elif isinstance(node, list):
        for i, v in enumerate(node):
            out.append((node, i, key))
            slots(v, out, key)
    return out


def some_slot(rng, doc, want=None):
    """A value in some event, or one of the keys beside them."""
    ev = [e for e in events(doc) if isinstance(e, Obj)]
    at = rng.choice(ev) if ev and rng.random() < 0.85 else doc
    if at is doc and isinstance(doc, Obj):
        at = Obj(p for p in doc if p[0] != "traceEvents")
    all_ = slots(at, [])
    if want:
        all_ = [s for s in all_ if want(s[0][s[1]])] or all_
    return rng.choice(all_) if all_ else None


def set_slot(slot, value):
    slot[0][slot[1]] = value


def pairs_of(doc, key):
    """Every pair of that key in the events and their args."""
    out = []
    for e in events(doc):
        if not isinstance(e, Obj):
            continue
        for pair in e:
            if pair[0] == key:
                out.append(pair)
            elif isinstance(pair[1], Obj):
                out += [p for p in pair[1] if p[0] == key]
    return out


def number(rng):
    r = rng.random()
    if r < 0.5:
        return Num(values.integer(rng))
    if r < 0.65:
        return repr_float(values.real(rng))
    if r < 0.9:
        return Num(rng.choice(values.LITERALS))
    return str(rng.choice(values.LITERALS))  # in quotes


def repr_float(f):
    return Num(repr(f).replace("inf", "Infinity").replace("nan", "NaN"))


def anything(rng):
    r = rng.random()
    if r < 0.3:
        return number(rng)
    if r < 0.55:
        return values.text(rng)
    if r < 0.7:
        return rng.choice([None, True, False, [], Obj(), Obj([["", ""]])])
    if r < 0.85:
        return [number(rng) for _ in range(values.count(rng, 40))]
    if r < 0.95:
        return nested(rng)
    return Raw(rng.choice([b"", b"{", b"[", b"\"", b",", b"}", b"]",
                           b"\"\\u12", b"\"\\ud800\"", b"\"\\udc00\\ud800\"",
                           b"\"\\u0000\"", b"\"\\x\"", b"'x'", b"// x\n1",
                           b"undefined", b"\"a\nb\"", b"\xff", b"tru"]))


def nested(rng):
    n = values.count(rng, rng.choice([20, 300, 5000, 200000]))
    a, b = rng.choice([(b"[", b"]"), (b'{"a":', b"}"), (b'[{"args":', b"}]")])
    return Raw(a * n + b"1" + b * rng.choice([n, n, n - 1, n + 1, 0]))


# --- mutations: each takes a tree and gives one back ------------------------

def m_number(rng, doc, other):
    s = some_slot(rng, doc, lambda v: isinstance(v, Num))
    if s:
        set_slot(s, number(rng))
    return doc


def m_time(rng, doc, other):
    """Times of some events: at borders, equal, turned round, far apart."""
    ps = pairs_of(doc, rng.choice(TIMES))
    if not ps:
        return doc
    part = rng.choice([1, 1, 2, len(ps) // 2 + 1, len(ps)])
    chosen = rng.sample(ps, min(part, len(ps)))
    way = rng.randrange(6)
    one = number(rng)
    for i, p in enumerate(chosen):
        if way == 0:
            p[1] = number(rng)
        elif way == 1:
            p[1] = one
        elif way == 2:
            p[1] = rng.choice(chosen)[1]
        elif way == 3 and isinstance(p[1], Num):
            p[1] = Num("-" + p[1]) if p[1][0] != "-" else p[1]
        elif way == 4:
            p[1] = Num("%d.%d" % (i * rng.choice([0, 1, 10**6]), i))
        else:
            p[1] = Num(str(p[1]) + rng.choice(["e3", "e6", "e-6", "0000", "9"]))
    return doc


def m_ids(rng, doc, other):
    """Ids that collide, dangle, lead to themselves or in a circle."""
    ps = pairs_of(doc, rng.choice(IDS))
    if not ps:
        return doc
    way = rng.randrange(5)
    one = rng.choice([rng.choice(ps)[1], number(rng)])
    for p in rng.sample(ps, rng.choice([1, len(ps) // 2 + 1, len(ps)])):
        if way == 0:
            p[1] = one
        elif way == 1:
            p[1] = rng.choice(ps)[1]
        elif way == 2:
            p[1] = number(rng)
        elif way == 3:
            p[1] = anything(rng)
        else:
            p[1] = Num(rng.randrange(4))
    return doc


def m_parents(rng, doc, other):
    """Python frames that are their own parents, or each other's."""
    ids = pairs_of(doc, "Python id")
    parents = pairs_of(doc, "Python parent id")
    for p in parents:
        p[1] = rng.choice(ids)[1] if ids and rng.random() < 0.8 else p[1]
    if ids and parents and rng.random() < 0.5:
        for e in events(doc):
            a = e.get("args") if isinstance(e, Obj) else None
            if isinstance(a, Obj) and a.get("Python id") is not None:
                a.set("Python parent id", a.get("Python id"))
    return doc


def m_swap(rng, doc, other):
    s = some_slot(rng, doc)
    if s:
        set_slot(s, anything(rng))
    return doc


def m_text(rng, doc, other):
    s = some_slot(rng, doc, lambda v: isinstance(v, str) and
                  not isinstance(v, Num))
    if s:
        set_slot(s, values.text(rng))
    return doc


def m_word(rng, doc, other):
    """Names and categories of many events become something known."""
    key = rng.choice(["name", "name", "cat", "ph"])
    ps = pairs_of(doc, key)
    if not ps:
        return doc
    word = rng.choice(PHASES) if key == "ph" else values.text(rng)
    for p in rng.sample(ps, values.count(rng, len(ps))):
        p[1] = word if rng.random() < 0.6 else rng.choice(ps)[1]
    return doc


def m_key(rng, doc, other):
    """A key renamed, gone, or there twice."""
    ev = [e for e in events(doc) if isinstance(e, Obj) and e]
    if not ev:
        return doc
    e = rng.choice(ev + ([doc] if isinstance(doc, Obj) else []))
    if isinstance(e.get("args"), Obj) and e.get("args") and rng.random() < 0.5:
        e = e.get("args")
    way, i = rng.randrange(4), rng.randrange(len(e))
    if way == 0:
        e[i][0] = rng.choice([values.text(rng, False), e[i][0].upper(),
                              e[i][0][:-1], e[i][0] + " ",
                              rng.choice(IDS + TIMES)]) \
            if isinstance(e[i][0], str) else "x"
    elif way == 1:
        del e[i]
    elif way == 2:
        e.insert(rng.randrange(len(e) + 1), [e[i][0], anything(rng)])
    else:
        e.append([rng.choice(IDS + TIMES + ["args", "ph", "cat", "name", "s",
                                            "bp", "kind", "sf", "stack"]),
                  anything(rng)])
    return doc


def m_delete(rng, doc, other):
    ev = events(doc)
    if ev:
        at = rng.randrange(len(ev))
        del ev[at:at + values.count(rng, len(ev))]
    return doc


def m_duplicate(rng, doc, other):
    ev = events(doc)
    if ev:
        at = rng.randrange(len(ev))
        piece = ev[at:at + values.count(rng, 20)]
        for _ in range(values.count(rng, 20)):
            ev[at:at] = [clone(e) for e in piece]
    return doc


def m_reorder(rng, doc, other):
    ev = events(doc)
    way = rng.randrange(4)
    if way == 0:
        rng.shuffle(ev)
    elif way == 1:
        ev.reverse()
    elif way == 2 and ev:
        at = rng.randrange(len(ev))
        ev[:] = ev[at:] + ev[:at]
    else:
        ev.sort(key=lambda e: str(e.get(rng.choice(["ts", "name", "tid"])))
                if isinstance(e, Obj) else "")
    return doc


def m_splice(rng, doc, other):
    """Events of another file, and what stands beside them."""
    o = other()
    mine, theirs = events(doc), events(o)
    if theirs:
        a = rng.randrange(len(theirs))
        b = a + values.count(rng, len(theirs))
        at = rng.randrange(len(mine) + 1)
        mine[at:at] = theirs[a:b]
    if isinstance(o, Obj) and isinstance(doc, Obj) and rng.random() < 0.4:
        for pair in o:
            if pair[0] != "traceEvents" and rng.random() < 0.5:
                doc.insert(rng.randrange(len(doc) + 1), pair)
    return doc


def m_phases(rng, doc, other):
    """X becomes B and E, or b and e with an id; some of them lose one half."""
    ev = events(doc)
    begin, end = rng.choice([("B", "E"), ("b", "e"), ("S", "F"), ("s", "f"),
                             ("b", "E"), ("B", "e")])
    lost, out = rng.choice([0, 0, 0.1, 0.5]), []
    for i, e in enumerate(ev):
        if not isinstance(e, Obj) or e.get("ph") != "X" or rng.random() < 0.3:
            out.append(e)
            continue
        last = clone(e)
        e.set("ph", begin)
        last.set("ph", end)
        e.set("id", Num(i))
        last.set("id", Num(i if rng.random() < 0.9 else 0))
        try:
            last.set("ts", Num("%.3f" % (float(e.get("ts")) +
                                         float(e.get("dur")))))
        except (TypeError, ValueError):
            pass
        out += [x for x in (e, last) if rng.random() >= lost]
    ev[:] = out
    return doc


def m_counters(rng, doc, other):
    ev = events(doc)
    name = values.text(rng, False)
    for i in range(values.count(rng, 200)):
        ev.append(Obj([["ph", "C"], ["name", name], ["pid", Num(i % 3)],
                       ["ts", Num(i)], ["args", Obj([
                           [rng.choice(["W", "", "used"]), number(rng)]])]]))
    return doc


def m_memory(rng, doc, other):
    """Allocations that are freed twice, never, or before they were made."""
    for key in ("Bytes", "Total Allocated", "Total Reserved", "Addr"):
        ps = pairs_of(doc, key)
        if ps and rng.random() < 0.5:
            for p in rng.sample(ps, values.count(rng, len(ps))):
                p[1] = rng.choice([number(rng), rng.choice(ps)[1], Num(0)])
    if rng.random() < 0.4:
        for i in range(values.count(rng, 300)):
            events(doc).append(Obj([
                ["ph", "i"], ["cat", "cpu_instant_event"], ["s", "t"],
                ["name", rng.choice(["[memory]", "[memory]", "[OutOfMemory]"])],
                ["pid", Num(1)], ["tid", Num(1)], ["ts", Num(i)],
                ["args", Obj([["Addr", Num(rng.randrange(20))],
                              ["Bytes", Num(values.integer(rng))],
                              ["Device Type", Num(rng.choice([0, 1, 1, 99]))],
                              ["Device Id", Num(rng.choice([0, 0, 1, -1]))],
                              ["Total Allocated", Num(values.integer(rng))]])]
            ]))
    return doc


def m_many(rng, doc, other, full=False):
    """One event very often, with one thing that differs: a thread, a device, a
    name, an id, a time; or with nothing that does. full: as often as there is
    room."""
    ev = [e for e in events(doc) if isinstance(e, Obj)]
    if not ev:
        return doc
    sort = rng.choice(sorted({(str(e.get("ph")), str(e.get("cat")))
                              for e in ev}))
    e = clone(rng.choice([e for e in ev if sort == (str(e.get("ph")),
                                                    str(e.get("cat")))]))
    vary = rng.choice([None, "ts", "ts", "tid", "pid", "name", "device",
                       "stream", "correlation", "External id", "id", "cat",
                       "Addr", "Device Id", "dur", "Python id", "step",
                       "key", "nest", "chain", "apart", "all"])
    mark = Num("\x01")
    if vary == "name":
        e.set("name", "n\x01")
    elif vary == "step":
        e.set("name", "ProfilerStep#\x01")
        e.set("cat", "user_annotation")
        e.set("ts", mark)
        e.set("dur", Num("1"))
    elif vary == "nest":
        e.set("ts", mark)
        e.set("dur", Num("9000000"))
    elif vary == "apart":
        e.set("ts", mark)
        e.set("dur", Num("0.5"))
    elif vary == "chain":  # each the parent of the next
        e.set("args", Obj([["Python id", mark], ["Python parent id",
                                                 Num("\x02")]]))
        e.set("ts", mark)
    elif vary == "cat":
        e.set("cat", "c\x01")
    elif vary == "key" and isinstance(e.get("args"), Obj):
        e.get("args").append(["k\x01", mark])
    elif vary in ("ts", "tid", "pid", "dur", "id"):
        e.set(vary, mark)
    elif vary and isinstance(e.get("args"), Obj):
        for pair in e.get("args"):
            if pair[0] == vary or (vary == "all" and
                                   isinstance(pair[1], Num)):
                pair[1] = mark
    text = dump(e).replace(b"\\u0001", b"\x01")
    most = rng.choice([300, 3000, 3000, 20000])
    n = BIG if full else values.count(rng, most)
    n = min(n, (BIG - len(dump(doc))) // (len(text) + 9))
    step = rng.choice([1, 1, 1, 1000, 2**32])
    back = rng.choice([step, -step])
    events(doc).append(Raw(b",\n".join(
        text.replace(b"\x01", b"%d" % (i * step)).replace(
            b"\x02", b"%d" % (i * step - back)) for i in range(n)) or b"{}"))
    return doc


def m_frame(rng, doc, other):
    """The list itself: bare, twice, empty, inside of something else."""
    ev = events(doc)
    way = rng.randrange(7)
    if way == 0:
        return ev
    if way == 1 and isinstance(doc, Obj):
        doc.append(["traceEvents", [clone(e) for e in ev[:9]]])
    elif way == 2 and isinstance(doc, Obj):
        doc.insert(0, ["traceEvents", rng.choice([[], Obj(), None, "x"])])
    elif way == 3:
        return Obj([["traceEvents", ev]])
    elif way == 4:
        ev.insert(rng.randrange(len(ev) + 1), anything(rng))
    elif way == 5:
        return Obj([["a", Obj([["traceEvents", ev]])], ["traceEvents", ev[:5]]])
    elif isinstance(doc, Obj):
        rng.shuffle(doc)
    return doc


def m_top(rng, doc, other):
    """What stands beside the events: clocks, ranks, devices."""
    if not isinstance(doc, Obj):
        return doc
    known = [["baseTimeNanoseconds", number(rng)], ["schemaVersion", Num(1)],
             ["distributedInfo", Obj([
                 ["backend", values.text(rng)], ["rank", number(rng)],
                 ["world_size", number(rng)],
                 ["pg_config", [anything(rng) for _ in range(3)]]])],
             ["deviceProperties", [Obj([["id", number(rng)],
                                        ["name", values.text(rng)],
                                        ["totalGlobalMem", number(rng)],
                                        ["numSms", number(rng)]])
                                   for _ in range(values.count(rng, 50))]],
             ["record_shapes", anything(rng)], ["profile_memory", Num(1)],
             ["hostname", values.text(rng)], ["traceName", values.text(rng)],
             ["opscope", Obj([["decimals", number(rng)],
                              ["slack_ps", number(rng)]])],
             ["displayTimeUnit", rng.choice(["ns", "ms", Num(3)])]]
    for pair in rng.sample(known, values.count(rng, 4)):
        doc.insert(rng.randrange(len(doc) + 1), pair)
    return doc


def m_shapes(rng, doc, other):
    """Inputs of operators, from which products and bytes are worked out."""
    for key in ("Input Dims", "Input Strides", "Input type", "Concrete Inputs",
                "grid", "block", "bytes", "shared memory", "In msg nelems",
                "Group size", "dtype"):
        for p in pairs_of(doc, key):
            if rng.random() < 0.3:
                p[1] = rng.choice([
                    [[number(rng) for _ in range(rng.randrange(6))]
                     for _ in range(rng.randrange(4))],
                    [Num(2**31 - 1)] * 4, anything(rng), number(rng),
                    ["float", "double", "c10::BFloat16", values.text(rng)]])
    return doc


MUTATIONS = [(4, m_number), (5, m_time), (6, m_ids), (2, m_parents),
             (3, m_swap), (4, m_text), (4, m_word), (4, m_key), (2, m_delete),
             (3, m_duplicate), (3, m_reorder), (4, m_splice), (2, m_phases),
             (1, m_counters), (3, m_memory), (3, m_many), (2, m_frame),
             (2, m_top), (2, m_shapes)]


# --- seeds ------------------------------------------------------------------

def thin(data):
    """Of a real trace: what stands around a launch, what that points at, and an
    event of each sort."""
    doc = load(data)
    ev = events(doc)
    launched = [i for i, e in enumerate(ev) if e.get("cat") == "kernel"]
    middle = launched[len(launched) // 2] if launched else len(ev) // 2
    keep = list(range(max(0, middle - 6), min(len(ev), middle + 6)))
    ids = {link(ev[i]) for i in keep} - {None}
    keep += [i for i, e in enumerate(ev) if link(e) in ids][:40]
    for want, most in (("cpu_op", 12), ("python_function", 10),
                       ("user_annotation", 9), ("cpu_instant_event", 12)):
        near = [i for i, e in enumerate(ev) if e.get("cat") == want]
        keep += near[len(near) // 2:][:most]
    sorts = set()
    for i, e in enumerate(ev):
        sort = str(e.get("ph")), str(e.get("cat")), str(e.get("name"))[:6]
        if sort not in sorts and len(sorts) < 50:
            keep.append(i)
        sorts.add(sort)
    ev[:] = [ev[i] for i in sorted(set(keep[:130]))]
    return dump(doc)


def link(e):
    a = e.get("args")
    return a.get("correlation") if isinstance(a, Obj) else None


# What no real file in tests/data has: phases of Chrome's own, devices as JAX
# names them, nested begins and ends, arrows, counters.
CHROME = """{"displayTimeUnit": "ns", "metadata": {"highres-ticks": true},
"traceEvents": [
{"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/host:CPU"}},
{"ph": "M", "pid": 1, "tid": 7, "name": "thread_name", "args": {"name": "py"}},
{"ph": "M", "pid": 2, "name": "process_name",
 "args": {"name": "/device:GPU:0"}},
{"ph": "M", "pid": 2, "tid": 3, "name": "thread_name",
 "args": {"name": "Stream #3(Compute)"}},
{"ph": "M", "pid": 2, "tid": 4, "name": "thread_name",
 "args": {"name": "Steps"}},
{"ph": "X", "pid": 1, "tid": 7, "ts": 10, "dur": 90, "name": "train",
 "args": {"step_num": "1"}},
{"ph": "X", "pid": 1, "tid": 7, "ts": 11.5, "dur": 8.25, "name": "$a.py:3 f"},
{"ph": "X", "pid": 1, "tid": 7, "ts": 20, "dur": 5, "name": "cuLaunchKernel",
 "args": {"correlation_id": "5"}},
{"ph": "X", "pid": 2, "tid": 3, "ts": 27, "dur": 40.001, "name": "fusion.1",
 "args": {"correlation_id": "5", "hlo_op": "fusion.1", "hlo_module": "jit_f"}},
{"ph": "X", "pid": 2, "tid": 4, "ts": 27, "dur": 60, "name": "1"},
{"ph": "X", "pid": 2, "tid": 3, "ts": 70, "dur": 3, "name": "MemcpyD2H",
 "args": {"correlation_id": "6", "memcpy_details": "kind_src:device size:64"}},
{"ph": "B", "pid": 1, "tid": 8, "ts": 1, "name": "outer", "cat": "Op"},
{"ph": "B", "pid": 1, "tid": 8, "ts": 2, "name": "inner", "cat": "Op"},
{"ph": "E", "pid": 1, "tid": 8, "ts": 4},
{"ph": "E", "pid": 1, "tid": 8, "ts": 9},
{"ph": "b", "cat": "net", "id": "0x1", "pid": 1, "tid": 8, "ts": 1,
 "name": "get"},
{"ph": "n", "cat": "net", "id": "0x1", "pid": 1, "tid": 8, "ts": 3,
 "name": "get"},
{"ph": "e", "cat": "net", "id": "0x1", "pid": 1, "tid": 8, "ts": 6,
 "name": "get"},
{"ph": "s", "cat": "flow", "id": 3, "pid": 1, "tid": 8, "ts": 2, "name": "a"},
{"ph": "t", "cat": "flow", "id": 3, "pid": 1, "tid": 7, "ts": 12, "name": "a"},
{"ph": "f", "cat": "flow", "id": 3, "pid": 2, "tid": 3, "ts": 28, "name": "a",
 "bp": "e"},
{"ph": "i", "pid": 1, "tid": 7, "ts": 50, "name": "mark", "s": "t"},
{"ph": "C", "pid": 1, "ts": 10, "name": "memory", 
 "args": {"used": 5, "free": 7}},
{"ph": "C", "pid": 1, "ts": 60, "name": "memory", 
 "args": {"used": 9.5, "free": 3}},
{"ph": "X", "pid": 1, "tid": 7, "ts": 101, "dur": 50, "name": "train",
 "args": {"step_num": "2"}}
]}"""


# What PyTorch writes and no file in tests/data has: calls of the profiler
# itself, waits, collectives on a device, mangled names, counters, the spellings
# of 2021, products whose cost is worked out from their inputs.
KINETO = """{"schemaVersion": 1, "baseTimeNanoseconds": 1790857026000000000,
"record_shapes": 1, "profile_memory": 1, "with_stack": 1, "with_flops": 1,
"distributedInfo": {"backend": "nccl", "rank": 1, "world_size": 2},
"deviceProperties": [{"id": 0, "name": "NVIDIA H100", "numSms": 132,
 "totalGlobalMem": 85000000000, "computeMajor": 9, "computeMinor": 0}],
"traceEvents": [
%s
]}"""
DIMS = {"aten::mm": [[64, 128], [128, 32]], "aten::bmm": [[4, 8, 9], [4, 9, 3]],
        "aten::addmm": [[32], [64, 128], [128, 32], [], []],
        "aten::convolution": [[8, 3, 32, 32], [16, 3, 3, 3], [16]],
        "aten::scaled_dot_product_attention": [[2, 4, 64, 32]] * 3,
        "aten::embedding": [[1000, 64], [32]], "aten::_foreach_add_": [[], []],
        "aten::copy_": [[64, 64], [64, 64]], "aten::add": [[8], [8], []]}
KERNELS = ["_ZN2at6native6kernelIfEEvT_", "ncclDevKernel_AllReduce_Sum_f32_RING"
           "_LL(ncclDevKernelArgsStorage<4096ul>)", "sm90_xmma_gemm_bf16bf16_"
           "bf16f32_f32_tn_n_tilesize128x128x64", "void cutlass::Kernel2<x>()",
           "triton_poi_fused_add_0"]


def kineto_seed():
    """Two steps of a made-up program."""
    ev = [{"ph": "M", "pid": 9, "tid": 9, "name": "thread_name",
           "args": {"name": "thread 9 (python)"}}]

    def add(cat, name, ts, dur, pid=9, tid=9, **args):
        ev.append({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid,
                   "ts": ts, "dur": dur, "args": args})
    for step in range(2):
        t = 1000 * step
        add("user_annotation", "ProfilerStep#%d" % (5 + step), t, 990)
        add("python_function", "nn.Module: Net_0", t + 1, 700,
            **{"Python id": 1 + step, "Python parent id": None,
               "Python module id": 0})
        add("user_annotation", "enumerate(DataLoader)#_MultiProcessing", t + 2,
            30)
        for i, (op, dims) in enumerate(DIMS.items()):
            at, corr = t + 50 + 60 * i, 100 * step + i
            add("cpu_op", op, at, 40, **{
                "External id": corr, "Input Dims": dims, "Sequence number": i,
                "Input type": ["float"] * len(dims), "Concrete Inputs": [
                    "", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0]",
                    "1"]})
            add("cuda_runtime", "cudaLaunchKernel", at + 5, 8, cbid=211,
                correlation=corr)
            add("kernel", KERNELS[i % len(KERNELS)], at + 20, 30, 0, 7,
                **{"correlation": corr, "device": 0, "stream": 7, "grid":
                   [4, 1, 1], "block": [256, 1, 1], "registers per thread": 32,
                   "shared memory": 1024, "est. achieved occupancy %": 40,
                   "Collective name": "allreduce", "In msg nelems": 1024,
                   "Out msg nelems": 1024, "Group size": 2, "dtype": "Float",
                   "Process Group Name": "0"})
            add("overhead", "Activity Buffer Request", at + 6, 3, -1, 0)
        add("cuda_runtime", "cudaStreamSynchronize", t + 800, 90, cbid=131,
            correlation=100 * step + 90)
        add("cuda_sync", "Stream Sync", t + 810, 70, 0, 7, **{
            "correlation": 100 * step + 90, "device": 0, "stream": 7})
        add("Operator", "aten::old", t + 900, 20)
        add("Kernel", "old_kernel", t + 905, 9, 0, "stream 7", device=0)
        add("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", t + 920, 9, 0, 7,
            device=0, stream=7, correlation=100 * step + 95, bytes=4096)
        for i, n in enumerate((512, 1024, -512)):
            ev.append({"ph": "i", "s": "t", "cat": "cpu_instant_event",
                       "name": "[memory]", "pid": 9, "tid": 9,
                       "ts": t + 55 + 60 * i, "args": {
                           "Addr": 7 + (i % 2), "Bytes": n, "Device Type": 1,
                           "Device Id": 0, "Total Allocated": 512 * (i + 1),
                           "Total Reserved": 4096}})
        ev.append({"ph": "C", "pid": "GPU 0 Counters", "ts": t, "name":
                   "sm__active", "args": {"value": 40 + step}})
    return (KINETO % ",\n".join(map(json.dumps, ev))).encode()


def memory_of(data):
    """What a trace needs to be joined with a memory snapshot."""
    doc = load(data)
    keep, n = [], 0
    for e in events(doc):
        n += 1
        if e.get("name") in ("[memory]", "[OutOfMemory]") or n % 9 == 0 or \
                e.get("cat") == "user_annotation":
            keep.append(e)
    events(doc)[:] = keep
    return dump(doc)


def comm_of(data):
    """What the ranks of a job have in common: steps and collectives."""
    doc = load(data)
    events(doc)[:] = [e for e in events(doc) if e.get("ph") == "M" or
                      e.get("cat") == "user_annotation" or
                      "c10d" in str(e.get("name"))][:160]
    return dump(doc)


def kineto_seeds(data_dir):
    out = {"kineto": kineto_seed()}
    for folder, _, names in sorted(os.walk(data_dir)):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if name.endswith(".pt.trace.json.gz") and \
                    (os.path.getsize(path) < 130_000 or "cnn" in name):
                with gzip.open(path) as f:
                    data = f.read()
                out[name] = thin(data)
                if "torch_snapshots" in folder:
                    out["memory of " + name] = memory_of(data)
                if "gloo4" in name:
                    out["comm of " + name] = comm_of(data)
                if name.startswith(("oom", "input", "torch_gloo4_rank0")):
                    out["whole " + name] = data
    return out
