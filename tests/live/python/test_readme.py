#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The three lines of the README's quick start for Python, word for word: in an
environment of its own, from a copy of the tree, on a program with a slow input
and some memory. What they print names the bottleneck and the peak."""

import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lib  # noqa: E402

TRAIN = """
import time
import torch
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    def __len__(self):
        return 400

    def __getitem__(self, i):
        time.sleep(0.002)
        return torch.ones(256)


torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(),
                            torch.nn.Linear(512, 1))
optimizer = torch.optim.Adam(model.parameters())
for batch in DataLoader(Slow(), batch_size=8):
    optimizer.zero_grad()
    loss = model(batch).pow(2).mean()
    loss.backward()
    optimizer.step()
print("done")
"""


def _lines():
    with open(os.path.join(lib.ROOT, "README.md"), encoding="utf-8") as f:
        part = f.read().split("## Profile a Python program\n", 1)[1]
    block = re.match(r"\n((?:    .*\n)+)", part).group(1)
    return [line[4:] for line in block.splitlines()]


def test_the_quick_start_is_three_lines_that_show_bottleneck_and_peak():
    lib.need("torch", "setuptools", "wheel")
    lines = _lines()
    assert len(lines) == 3, lines
    with tempfile.TemporaryDirectory() as folder:
        tree = os.path.join(folder, "tree")
        subprocess.check_call(["git", "clone", "-q", lib.ROOT, tree])
        venv = os.path.join(folder, "venv")
        subprocess.check_call([sys.executable, "-m", "venv", venv])
        site = next(p for p in sys.path if p.endswith("site-packages"))
        here = os.path.join(venv, "lib", "python%d.%d" % sys.version_info[:2],
                            "site-packages")
        with open(os.path.join(here, "frameworks.pth"), "w") as f:
            f.write(site + "\n")
        with open(os.path.join(tree, "train.py"), "w") as f:
            f.write(TRAIN)
        env = {**os.environ, **lib.SMALL, "HOME": folder,
               "PATH": os.path.join(venv, "bin") + os.pathsep
               + os.environ["PATH"], "PIP_NO_BUILD_ISOLATION": "0",
               "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        env["PIP_NO_BUILD_ISOLATION"] = "false"     # pip's "do not isolate"
        env.pop("PYTHONPATH", None)
        out = subprocess.run(["sh", "-ec", "\n".join(lines)], cwd=tree,
                             env=env, text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, timeout=900)
        assert out.returncode == 0, out.stdout[-600:]
        shutil.rmtree(tree)
    text = out.stdout
    assert re.search(r"memory peak +[\d.]+ [KM]iB", text), text[-2500:]
    assert "input-bound" in text, text[-2500:]
    assert "done" in text


if __name__ == "__main__":
    sys.exit(lib.main(sys.modules[__name__]))
