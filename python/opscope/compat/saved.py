# SPDX-License-Identifier: Apache-2.0
"""A saved profile: a folder with the captures and an index.

    p/opscope-profile.json              what the marks are, and what was
                                        measured at each
    p/plugins/profile/<run>/<files>     what TensorFlow recorded

The folder is whole or not there: it is written beside its place and renamed.
It is a log folder as well: the command line and TensorBoard open it."""

import json
import os
import shutil
import tempfile
import zlib

from .errors import Error
from .marks import Mark

INDEX = "opscope-profile.json"
VERSION = 1
# what is known without a run, and what each entry has
KNOWN = {"nodes": ("graph", "name", "type", "inputs", "outputs",
                   "output_bytes", "flops", "code"),
         "variables": ("name", "shape", "dtype", "trainable", "elements",
                       "bytes")}
LIVE = ("kind", "dtype", "shape", "device", "holder", "count", "bytes")


def save(path, marks, known):
    """Writes the marks and what is known to the folder `path`."""
    path = _absolute(path)
    if os.path.lexists(path) and not _is_ours(path):
        raise Error("%s is there already and is no saved profile: choose "
                    "another name" % path)
    new = ""
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        new = tempfile.mkdtemp(prefix=os.path.basename(path) + ".new-",
                               dir=os.path.dirname(path))
        os.chmod(new, 0o777 & ~_umask())
        index = {what: known[what] for what in KNOWN}
        index.update(opscope_profile=VERSION,
                     marks=[_save_mark(new, m) for m in marks])
        with open(os.path.join(new, INDEX), "w", encoding="utf-8") as f:
            json.dump(index, f, indent=1)
            f.flush()
            os.fsync(f.fileno())
        _replace(new, path)
    except OSError as e:
        raise Error("%s cannot be saved: %s" % (path, e.strerror or e))
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return path


def _absolute(path):
    if not isinstance(path, (str, os.PathLike)):
        raise Error("the name of a folder is needed, not %r" % (path,))
    return os.path.abspath(os.fspath(path))


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _is_ours(path):
    return os.path.isdir(path) and (
        os.path.isfile(os.path.join(path, INDEX)) or not os.listdir(path))


def _replace(new, path):
    """Puts the new folder into its place; one that was there goes."""
    old = None
    if os.path.lexists(path):
        old = tempfile.mkdtemp(prefix=os.path.basename(path) + ".old-",
                               dir=os.path.dirname(path))
        os.rename(path, os.path.join(old, "was"))
    os.rename(new, path)
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)


def _save_mark(folder, mark):
    """Copies a mark's files; each with its size and checksum."""
    files = []
    for source in mark.files:
        run = os.path.basename(os.path.dirname(source)) or "run"
        inside = os.path.join("plugins", "profile", run,
                              os.path.basename(source))
        target = os.path.join(folder, inside)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if os.path.exists(target):
            raise Error("two captures are called %s" % inside)
        shutil.copyfile(source, target)
        files.append({"path": inside, "bytes": os.path.getsize(target),
                      "crc32": _crc(target)})
    return dict(mark.as_dict(), files=files)


def _crc(path):
    crc = 0
    with open(path, "rb") as f:
        for piece in iter(lambda: f.read(1 << 20), b""):
            crc = zlib.crc32(piece, crc)
    return crc


def load(path):
    """(marks, known) of a saved profile. Any other profile that opscope reads
    is one mark."""
    path = _absolute(path)
    index = os.path.join(path, INDEX)
    if not os.path.exists(path):
        raise Error("%s: there is no such file or folder" % path)
    if not os.path.isfile(index):
        import opscope
        with opscope.open(path):    # what is no profile is said here
            pass
        return [Mark(1, name=os.path.basename(path), files=[path],
                     source="file")], {k: [] for k in KNOWN}
    try:
        with open(index, encoding="utf-8") as f:
            whole = json.load(f)
        if not isinstance(whole, dict):
            raise ValueError("it is no object")
        version = whole.pop("opscope_profile")
        if version != VERSION:
            raise Error("%s is of version %r; this opscope reads version %d: "
                        "use the opscope that saved it, or a newer one" %
                        (index, version, VERSION))
        marks = [_load_mark(path, m) for m in whole["marks"]]
        return marks, {what: _checked(whole[what], what) for what in KNOWN}
    except OSError as e:
        raise Error("%s cannot be read: %s" % (index, e.strerror or e))
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise Error("%s is damaged: %s" % (index, e))


def _load_mark(folder, m):
    files = []
    for f in m["files"]:
        path = os.path.join(folder, f["path"])
        if os.path.relpath(os.path.realpath(path), os.path.realpath(
                folder)).startswith(".."):
            raise Error("%s names a file outside of the folder: %s" %
                        (os.path.join(folder, INDEX), f["path"]))
        if not os.path.isfile(path):
            raise Error("%s is not there: the saved profile is incomplete" %
                        path)
        if os.path.getsize(path) != f["bytes"] or _crc(path) != f["crc32"]:
            raise Error("%s is damaged: it is not what was saved" % path)
        files.append(path)
    _checked(m["live"] or [], "live", LIVE)
    return Mark(files=files, **{k: m[k] for k in Mark.FIELDS})


def _checked(entries, what, keys=None):
    """Entries that have what they must have."""
    for e in entries:
        for key in keys or KNOWN[what]:
            if key not in e:
                raise ValueError("an entry of %s has no %s" % (what, key))
    return entries
