# SPDX-License-Identifier: Apache-2.0
"""Files that are whole or not there."""

import os


def write_whole(path, data):
    """Writes bytes under another name, and gives them theirs at the end."""
    part = path + ".tmp"
    try:
        with open(part, "wb") as f:
            f.write(data)
        os.rename(part, path)
    except BaseException:
        try:
            os.unlink(part)
        except OSError:
            pass
        raise
    return path


def newest_below(folder, suffix):
    """The newest file of that suffix below a folder, or None."""
    best, when = None, -1.0
    for where, _, names in os.walk(folder):
        for name in names:
            if name.endswith(suffix):
                path = os.path.join(where, name)
                try:
                    t = os.stat(path).st_mtime
                except OSError:
                    continue
                if t > when:
                    best, when = path, t
    return best
