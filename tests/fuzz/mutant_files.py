# SPDX-License-Identifier: Apache-2.0
"""What is around profiles: gzip and zstd, and folders of several files."""

import gzip
import os
import struct
import subprocess
import zlib

import mutant_values as values


# --- packing ----------------------------------------------------------------

def gz(rng, b):
    return gzip.compress(b, compresslevel=rng.choice([0, 1, 6, 9]), mtime=0)


def gz_members(rng, b):
    out, at = b"", 0
    while at < len(b) or not out:
        n = max(1, values.count(rng, len(b)))
        out += gz(rng, b[at:at + n])
        at += n
    return out


def gz_header(rng, b):
    """Every optional field that a header may have, also where it lies."""
    raw = zlib.compressobj(6, zlib.DEFLATED, -15)
    body = raw.compress(b) + raw.flush()
    flags = rng.randrange(256)
    head = b"\x1f\x8b\x08" + bytes([flags]) + b"\0\0\0\0\0\x03"
    if flags & 4:
        extra = b"x" * rng.choice([0, 5, 40000])
        head += struct.pack("<H", rng.choice([len(extra), 65535])) + extra
    if flags & 8:
        head += b"name" + rng.choice([b"\0", b""])
    if flags & 16:
        head += b"comment" * values.count(rng, 3000) + b"\0"
    if flags & 2:
        head += struct.pack("<H", zlib.crc32(head) & 0xffff)
    tail = struct.pack("<II", rng.choice([zlib.crc32(b), 0]),
                       rng.choice([len(b) & 0xffffffff, 0, 0xffffffff]))
    return head + body + tail


def zstd_raw(rng, b):
    """A frame of blocks that are not compressed, and of runs of one byte."""
    size = rng.random() < 0.5
    head = b"\x28\xb5\x2f\xfd" + bytes([(0xe0 if size else 0) |
                                        rng.choice([0, 0, 4, 1, 8])])
    if size:
        head += struct.pack("<Q", rng.choice([len(b), len(b), 0, 2**63, 5]))
    else:
        head += bytes([rng.choice([0x50, 0x58, 0])])
    out, at = [head], 0
    while at < len(b):
        n = min(len(b) - at, rng.choice([100, 5000, 131072]))
        last = at + n == len(b)
        if rng.random() < 0.02:
            out.append(struct.pack("<I", 131072 << 3 | 1 << 1)[:3] + b" ")
        out.append(struct.pack("<I", n << 3 | last)[:3] + b[at:at + n])
        at += n
    return b"".join(out) + rng.choice([b"", b"", b"\0\0\0\0"])


def zstd_real(rng, b):
    """By libzstd: the program that the profiles go through does it."""
    return subprocess.run([EVERY[0], "zstd", str(rng.choice([1, 3, 19]))],
                          input=b, stdout=subprocess.PIPE, check=True).stdout


EVERY = [""]  # set by who knows where it is


def frames(rng, b):
    """Skippable frames and nothing around it, zeros behind it."""
    if b[:5] == b"\x28\xb5\x2f\xfd\0":  # a window that nobody has room for
        b = b[:5] + rng.choice([b"\x88", b"\xff"]) + b[6:]
    skip = struct.pack("<II", 0x184d2a50 + rng.randrange(16),
                       rng.choice([2, 2, 0, 2**32 - 1])) + b"ab"
    return rng.choice([skip + b, b + skip, b + b"\0" * 600, b + b, b"\n" + b])


PACKERS = [gz, gz, gz_members, gz_header, zstd_raw, zstd_real]
# a byte stream that packs itself: what is behind must be unpacked again
TWICE = [gz, zstd_raw, zstd_real]


def pack(rng, b, wild):
    """Packed, and with `wild` damaged as well. The name's suffix tells it."""
    first = rng.choice(PACKERS)
    b = first(rng, b)
    if wild and rng.random() < 0.15:
        b = rng.choice(TWICE)(rng, b)
    if wild and rng.random() < 0.25:
        b = frames(rng, b)
    if wild and rng.random() < 0.5:
        b = rng.choice(values.BYTES)(rng, b, b)
    return b, ".zst" if first in (zstd_raw, zstd_real) else ".gz"


# --- folders ----------------------------------------------------------------

SUFFIX = {"chrome": ".json", "kineto": ".pt.trace.json",
          "xspace": ".xplane.pb", "stepstats": ".pb",
          "snapshot": ".pickle", "tfevents": ""}


def name_of(rng, kind, i):
    if kind == "tfevents":
        return "events.out.tfevents.%d.box" % (1794741778 + i)
    if kind == "stepstats":
        return "run_metadata_%d.pb" % i
    if rng.random() < 0.1:
        odd = values.encode(values.text(rng, False)).replace(
            b"/", b"").replace(b"\0", b"")[:180]
        return os.fsdecode(odd) + "%d%s" % (i, SUFFIX[kind])
    return rng.choice(["job_rank%d", "worker%d", "node%d", "rank-%d.a",
                       "box_%d"]) % i + SUFFIX[kind]


def place_of(rng, kind, way):
    if way == "flat":
        return ""
    if way == "runs" or kind == "xspace":
        return os.path.join("plugins", "profile",
                            rng.choice(["run1", "run1", "2026_11_15_03_29_38",
                                        "run2"]))
    return rng.choice(["", "a", os.path.join("a", "b")])


def odd_files(rng, folder):
    """What a log folder has besides, and what nobody expects there."""
    for i in range(values.count(rng, 6)):
        path = os.path.join(folder, "odd%d" % i)
        suffix = rng.choice([".pt.trace.json", ".xplane.pb", ".pickle",
                             ".ring", "tfevents", ".json.gz"])
        way = rng.randrange(9)
        if way == 0:
            os.symlink(".", path)
        elif way == 1:
            os.symlink("..", path)
        elif way == 2:
            os.mkfifo(path + suffix)
        elif way == 3:
            os.mkdir(path + suffix)
        elif way == 4:
            os.symlink(path + suffix, path + suffix)
        elif way == 5:
            os.symlink("/dev/zero", path + suffix)
        elif way == 6:
            deep = path
            for _ in range(values.count(rng, 60)):
                deep = os.path.join(deep, "d")
            os.makedirs(deep)
        else:
            with open(path + suffix, "wb") as f:
                f.write(rng.choice([b"", b"{}", b"[]", b"\x1f\x8b", b"x" * 99,
                                    b"{\"traceEvents\": []}", b"\0" * 5000]))


def write_folder(rng, folder, files, odd):
    """files: (kind, bytes). Returns what to give to opscope: the folder, or
    its files one by one."""
    way = rng.choice(["flat", "flat", "runs", "mixed"])
    root = os.path.join(folder, "logs")
    os.makedirs(root)
    paths = []
    for i, (kind, b) in enumerate(files):
        place = os.path.join(root, place_of(rng, kind, way))
        os.makedirs(place, exist_ok=True)
        path = os.path.join(place, name_of(rng, kind, i))
        if os.path.lexists(path):
            path = os.path.join(place, "%d%s" % (i, SUFFIX[kind]))
        with open(path, "wb") as f:
            f.write(b)
        paths.append(path)
    if odd:
        odd_files(rng, root)
    if rng.random() < 0.3:
        return paths
    return [root]
