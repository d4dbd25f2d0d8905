#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A notebook, with a real kernel and nobody in front of it: cells that are
profiled, results as tables, mistakes as sentences after which the kernel goes
on, and names that would be HTML."""

import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lib  # noqa: E402

sys.path.insert(0, os.path.join(lib.ROOT, "tests", "python"))

# Runs cells, given as a list of texts; prints what each showed, as JSON.
NOTEBOOK = """
import json, nbclient, nbformat, sys
nb = nbformat.v4.new_notebook(cells=[
    nbformat.v4.new_code_cell(c) for c in json.load(open("cells.json"))])
nbclient.NotebookClient(nb, timeout=300, allow_errors=True,
                        kernel_name="python3").execute()
json.dump([c.outputs for c in nb.cells], open("shown.json", "w"))
"""


class Shown:
    """What a cell showed."""

    def __init__(self, outputs):
        self.html = "".join(self._text(o["data"].get("text/html", ""))
                            for o in outputs if "data" in o)
        self.plain = "".join(self._text(o["data"].get("text/plain", ""))
                             for o in outputs if "data" in o)
        self.printed = "".join(self._text(o["text"]) for o in outputs
                               if "text" in o)
        self.errors = ["%s: %s" % (o["ename"], o["evalue"]) for o in outputs
                       if o["output_type"] == "error"]

    @staticmethod
    def _text(value):
        return value if isinstance(value, str) else "".join(value)


def _run(cells, folder):
    import json
    lib.need_package()
    lib.need("ipykernel", "nbclient")
    with open(os.path.join(folder, "cells.json"), "w") as f:
        json.dump(cells, f)
    # a kernel that is this Python, and nothing in anybody's home
    kernel = os.path.join(folder, "jupyter", "kernels", "python3")
    os.makedirs(kernel)
    with open(os.path.join(kernel, "kernel.json"), "w") as f:
        json.dump({"argv": [sys.executable, "-m", "ipykernel_launcher", "-f",
                            "{connection_file}"], "display_name": "Python",
                   "language": "python"}, f)
    p = subprocess.run(
        [sys.executable, "-c", NOTEBOOK], cwd=folder, text=True, timeout=600,
        env={**os.environ, **lib.SMALL, "PYTHONPATH": lib.PACKAGE,
             "HOME": folder, "JUPYTER_PATH": os.path.join(folder, "jupyter"),
             "IPYTHONDIR": os.path.join(folder, "ipython")},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert p.returncode == 0, p.stderr[-600:]
    with open(os.path.join(folder, "shown.json")) as f:
        return [Shown(outputs) for outputs in json.load(f)]


def _notebook(*cells):
    with tempfile.TemporaryDirectory() as folder:
        return _run(cells, folder)


def test_a_cell_with_await_at_its_top_is_told_what_to_write():
    _, magic, block, ops = _notebook(
        "%load_ext opscope\nimport asyncio, opscope",
        "%%opscope -o logs\nawait asyncio.sleep(0)",
        "with opscope.profile('logs') as prof:\n"
        "    with opscope.scope('waits'):\n"
        "        await asyncio.sleep(0.01)",
        "prof.ops()")
    assert any("with opscope.profile" in e for e in magic.errors), magic.errors
    assert not block.errors and "waits" in ops.html, (block.errors, ops.errors)


def test_a_cell_is_profiled_and_shows_its_overview():
    lib.need("torch")
    load, made, profiled, after, ops = _notebook(
        "%load_ext opscope",
        "import torch\nm = torch.nn.Linear(32, 32)",
        "%%opscope -o logs\nfor i in range(20):\n"
        "    m(torch.ones(4, 32)).sum().backward()\nlast = i",
        "last", "%opscope ops logs --top 3")
    for cell in (load, made, profiled, after, ops):
        assert not cell.errors, cell.errors
    assert "<table>" in profiled.html and "overview" in profiled.html
    assert after.plain == "19"      # what the cell made is there
    assert "aten::" in ops.html and ops.html.count("<tr>") == 4, ops.html


def test_steps_of_a_cell_are_those_that_were_asked_for():
    lib.need("torch")
    shown = _notebook(
        "%load_ext opscope\nimport torch, opscope\n"
        "m = torch.nn.Linear(8, 8)\n"
        "o = torch.optim.SGD(m.parameters(), lr=0.1)",
        "%%opscope -o logs --steps 6..8 --memory\nfor i in range(12):\n"
        "    o.zero_grad(); m(torch.ones(4, 8)).sum().backward(); o.step()",
        "print([r.step for r in opscope.open('logs').steps()])",
        "opscope.open('logs').steps()")
    assert not [c.errors for c in shown if c.errors], shown[1].errors
    assert shown[2].printed == "[6, 7, 8]\n", shown[2].printed
    assert "<table>" in shown[3].html and "Steps" in shown[3].plain


def test_plain_python_is_profiled_too():
    shown = _notebook(
        "%load_ext opscope\nimport opscope",
        "%%opscope\nfor i in range(5):\n    opscope.step(i)\n"
        "    with opscope.scope('work'): sum(range(1000))",
        "%opscope ops opscope-logs", "opscope.open('opscope-logs')")
    assert not [c.errors for c in shown if c.errors], [c.errors for c in shown]
    assert "work" in shown[2].html and "<table>" in shown[3].html


def test_a_mistake_is_a_sentence_and_the_kernel_goes_on():
    shown = _notebook(
        "%load_ext opscope", "%%opscope --nonsense\n1", "%opscope",
        "%opscope ops /nowhere", "%opscope ops x y",
        "%%opscope --steps 5..3\n1", "%%opscope --help\n1",
        "%%opscope\nraise KeyError('of the cell')",
        "%%opscope\nimport opscope; opscope.step(1)", "print('alive')")
    for cell in shown[1:7]:
        assert len(cell.errors) == 1 and cell.errors[0].startswith(
            "Error: "), cell.errors
    assert "KeyError" in shown[7].errors[0], shown[7].errors
    assert not shown[8].errors, shown[8].errors     # it can start again
    assert shown[-1].printed == "alive\n"


def test_names_that_would_be_html_are_text():
    lib.need_package()
    import test_reading
    with tempfile.TemporaryDirectory() as folder:
        test_reading.hostile(folder)
        shown = _run(["%load_ext opscope\nimport opscope",
                      "%opscope ops t.json", "opscope.open('t.json').trace()",
                      "opscope.open('t.json')",
                      "opscope.open('t.json').ops(name='<b>*')"], folder)
    assert not [c.errors for c in shown if c.errors], [c.errors for c in shown]
    for cell in shown[1:]:
        assert "<img" not in cell.html and "<b>*" not in cell.html
        assert "\x1b" not in cell.html + cell.plain
    assert "&lt;img src=x" in shown[1].html and "&lt;img" in shown[2].html


if __name__ == "__main__":
    sys.exit(lib.main(sys.modules[__name__]))
