# SPDX-License-Identifier: Apache-2.0
"""How much memory a TensorFlow program holds at this moment.

Three measures, each told as what it is:
  the process    its resident memory now, and the most since the last mark
  allocators     TensorFlow's own count for each device that keeps one; on a
                 CPU it knows of large blocks only, or of none
  live objects   eager tensors, variables and numpy arrays that Python can
                 reach, by shape and by who holds them; a buffer that several
                 objects share counts once

Nothing here keeps an object alive beyond the call."""

import gc
import sys
import types

CHUNK = 512             # objects that are asked for what they hold at a time
NAME_FROM = 256         # groups of this many bytes are told with their holder
NAMED = 64              # so many of them at most


def process():
    """Resident memory now and its peak; None where /proc has none."""
    out = {"rss_bytes": None, "rss_peak_bytes": None}
    try:
        with open("/proc/self/status", encoding="ascii",
                  errors="replace") as f:
            for line in f:
                if line.startswith("VmRSS:"):
                    out["rss_bytes"] = int(line.split()[1]) * 1024
                elif line.startswith("VmHWM:"):
                    out["rss_peak_bytes"] = int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return out


def forget_peak():
    """The peak counts from now on. Returns whether the system allows it;
    else the peak is that of the whole process."""
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as f:
            f.write("5")
        return True
    except OSError:
        return False


def allocators(tf):
    """{device: {"current": bytes, "peak": bytes}} as TensorFlow counts. It is
    not asked before the program has set it up: asking would do that."""
    from tensorflow.python.eager import context
    made = context.context_safe()
    if made is None or not getattr(made, "_initialized", False):
        return {}
    out = {}
    for device in tf.config.list_logical_devices():
        short = ":".join(device.name.split(":")[-2:])
        try:
            info = tf.config.experimental.get_memory_info(short)
        except Exception:       # this device does not count
            continue
        if info["current"] or info["peak"]:     # nor does one at 0
            out[short] = {"current": int(info["current"]),
                          "peak": int(info["peak"])}
    return out


def forget_allocator_peaks(tf, names):
    """TensorFlow's peaks count from now on, where it can do that."""
    for name in names:
        try:
            tf.config.experimental.reset_memory_stats(name)
        except Exception:
            continue


def live():
    """Groups of live objects, the largest first: dicts of kind, dtype,
    shape, device, holder, count, bytes."""
    local_names = _all_locals()     # before: a list of all objects would
    objects = gc.get_objects()      # count as another holder of each
    scan = _Scan()
    try:
        scan.tensors(objects)
        scan.arrays(objects)
        return scan.groups(objects, local_names)
    finally:
        scan.clear()
        del objects[:]


class _Scan:
    """One look at all that Python can reach."""

    def __init__(self):
        self.blocks = {}        # address or id -> (bytes, group, holder)
        tf = sys.modules.get("tensorflow")
        numpy = sys.modules.get("numpy")
        self.array = getattr(numpy, "ndarray", None)
        self.eager = self.variable = ()
        try:
            from tensorflow.python.framework import ops
            self.eager = ops.EagerTensor
            self.variable = tf.Variable
        except Exception:
            pass

    def clear(self):
        self.blocks.clear()

    def add(self, key, size, group, obj):
        have = self.blocks.get(key)
        if have is None or (have[0], _rank(have[1])) < (size, _rank(group)):
            self.blocks[key] = (size, group, obj)

    def tensors(self, objects):
        """Eager tensors and variables: the collector knows all of them."""
        if not self.eager:
            return
        found = [o for o in objects if type(o) is self.eager]
        for t in found:
            self._tensor("tensor", t, t)
        for v in [o for o in objects if _is(o, self.variable)]:
            self._variable(v)

    def _tensor(self, kind, t, shown):
        try:
            shape = tuple(t.shape.as_list())
            size = t.dtype.size
            if t.dtype.name in ("resource", "variant", "string") or not size:
                return
            bytes_ = size
            for n in shape:
                bytes_ *= n
            device = t.backing_device or ""
            group = (kind, t.dtype.name, shape, device.rpartition(
                "device:")[2] or None)
            key = _address(t) if "CPU" in device else None
            self.add(key or ("id", id(t)), bytes_, group, shown)
        except Exception:       # an object that is being made or unmade
            return

    def _variable(self, v):
        """An eager variable's buffer is what a read of it shows. (The op that
        reads it runs while no tracer is on.)"""
        try:
            if getattr(v, "_in_graph_mode", True) or not v.is_initialized():
                return
            self._tensor("variable", v.read_value(), v)
        except Exception:
            return

    def arrays(self, objects):
        """numpy arrays: the collector does not know them, but what holds
        them. An array that a running function alone holds is not seen."""
        if self.array is None:
            return
        array = self.array
        for i in range(0, len(objects), CHUNK):
            chunk = objects[i:i + CHUNK]
            if not any(type(r) is array for r in gc.get_referents(*chunk)):
                continue
            for holder in chunk:
                for a in gc.get_referents(holder):
                    if type(a) is array:
                        self._array(a, holder)

    def _array(self, a, holder):
        try:
            while type(a.base) is self.array:
                a = a.base
            if a.dtype.hasobject:
                return
            key = a.__array_interface__["data"][0]
            if a.nbytes:
                self.add(key, a.nbytes, ("array", a.dtype.name,
                                         tuple(a.shape), None), a)
        except Exception:
            return

    def groups(self, objects, local_names):
        """The blocks, added up; the larger groups apart by holder."""
        sums = {}
        for size, group, obj in self.blocks.values():
            sums.setdefault(group, []).append((size, obj))
        large = sorted((g for g in sums if
                        sum(s for s, _ in sums[g]) >= NAME_FROM),
                       key=lambda g: -sum(s for s, _ in sums[g]))[:NAMED]
        holders = _Holders(objects, {id(o) for g in large
                                     for _, o in sums[g]},
                           {id(objects), id(sums), id(self.blocks)},
                           local_names)
        out = {}
        for group, members in sums.items():
            for size, obj in members:
                where = holders.of(obj) if group in large else None
                if group[0] == "variable":
                    where = _variable_name(obj)
                row = out.setdefault((group, where), [0, 0])
                row[0] += 1
                row[1] += size
        return [dict(kind=g[0], dtype=g[1], shape=list(g[2]), device=g[3],
                     holder=where, count=n, bytes=b)
                for (g, where), (n, b) in sorted(
                    out.items(), key=lambda i: (-i[1][1], str(i[0])))]


def _rank(group):
    """Of objects that share a buffer the same one is told each time."""
    return group[0] == "variable", len(group[2]), group[2], group[0]


def _is(obj, cls):
    """isinstance() by the type alone: objects may lie about __class__, and
    asking a lazy module or a proxy would wake it."""
    return bool(cls) and issubclass(type(obj), cls)


def _address(t):
    """Where the tensor's buffer lies."""
    return t._numpy_internal().__array_interface__["data"][0] or None


def _variable_name(v):
    name = getattr(v, "name", None)
    return name[:-2] if isinstance(name, str) and name.endswith(":0") else name


class _Holders:
    """Who holds an object: the list, dict or object around it, with the name
    under which that is known."""

    def __init__(self, objects, wanted, own, local_names):
        self.by_id = {}         # object -> its container
        self.names = {}
        if not wanted:
            return
        self._find(objects, wanted, own)
        containers = {id(c) for c in self.by_id.values()}
        self._name(objects, containers, local_names)

    def _find(self, objects, wanted, own):
        """The container of each wanted object; lists and the like before
        others."""
        for c in _holding(objects, wanted):
            if id(c) in own or type(c) is types.FrameType:
                continue
            for r in gc.get_referents(c):
                if id(r) in wanted and (id(r) not in self.by_id or
                                        _is(c, (list, dict, set))):
                    self.by_id[id(r)] = c

    def _name(self, objects, containers, local_names):
        """Global names and locals of running functions, then attributes."""
        for module in list(sys.modules.values()):
            d = getattr(module, "__dict__", None)
            if type(d) is not dict:
                continue
            where = getattr(module, "__name__", "?")
            self.names[id(d)] = "a global of %s" % where
            for k, v in list(d.items()):
                if id(v) in containers and not k.startswith("__"):
                    self.names.setdefault(id(v), "%s.%s" % (where, k))
        for i in containers.intersection(local_names):
            self.names.setdefault(i, local_names[i])
        unnamed = containers.difference(self.names)
        if unnamed:
            self._attributes(objects, unnamed)

    def _attributes(self, objects, unnamed):
        """Lists that are attributes: Trainer.history. An object holds them
        itself, or in a dict of its own."""
        dicts = {}
        for o in _holding(objects, unnamed):
            if type(o) is dict:
                dicts[id(o)] = o
            else:
                self._attributes_of(o, unnamed)
        for o in _holding(objects, dicts.keys()) if dicts else ():
            self._attributes_of(o, unnamed)

    def _attributes_of(self, o, unnamed):
        d = _dict_of(o)
        for k, v in (list(d.items()) if d else ()):
            if id(v) in unnamed and isinstance(k, str):
                self.names.setdefault(id(v), "%s.%s" % (type(o).__name__, k))

    def of(self, obj):
        c = self.by_id.get(id(obj))
        if c is None:
            return None
        kind = type(c).__name__
        name = self.names.get(id(c))
        if name is None:
            return kind
        return name if name.startswith("a global") else "%s %s" % (kind, name)


def _holding(objects, wanted):
    """Those of the objects that hold one of the wanted, by id."""
    for i in range(0, len(objects), CHUNK):
        chunk = objects[i:i + CHUNK]
        if wanted.isdisjoint(map(id, gc.get_referents(*chunk))):
            continue
        for o in chunk:
            if not wanted.isdisjoint(map(id, gc.get_referents(o))):
                yield o


def _dict_of(obj):
    if _is(obj, (dict, list, tuple, set, type, types.ModuleType,
                 types.FunctionType)):
        return None
    try:
        d = object.__getattribute__(obj, "__dict__")
    except Exception:
        return None
    return d if type(d) is dict else None


def _all_locals():
    """{id: "history in main()"} of the variables of running functions."""
    out = {}
    for frame in list(sys._current_frames().values()):
        while frame is not None:
            for k, i in _locals(frame):
                out.setdefault(i, "%s in %s()" % (k, frame.f_code.co_name))
            frame = frame.f_back
    return out


def _locals(frame):
    """(name, id) of a function's variables. Before Python 3.13 asking makes a
    copy that stays with the frame and would keep old values alive: it is
    emptied again, if nobody else has it."""
    if not frame.f_code.co_flags & 1 or frame.f_globals.get(
            "__name__", "").startswith("opscope."):
        return []       # a module's or a class's: its names are no copy
    values = frame.f_locals
    out = [(k, id(v)) for k, v in values.items()]
    if sys.version_info < (3, 13) and sys.getrefcount(values) <= 3:
        values.clear()
    return out
