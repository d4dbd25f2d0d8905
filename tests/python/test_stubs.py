#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The type stubs: those of the analyses are what the tables print, all of them
name what the package has, and mypy agrees where it is installed."""

import ast
import inspect
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lib  # noqa: E402

sys.path.insert(0, lib.PACKAGE)
try:
    import opscope
except ImportError as e:
    opscope, WHY = None, str(e)

FOLDER = os.path.join(lib.ROOT, "python", "opscope")


def _need_extension():
    if opscope is None:
        raise lib.Skip(WHY)


def _tree(name):
    with open(os.path.join(FOLDER, name + ".pyi"), encoding="utf-8") as f:
        return ast.parse(f.read(), name)


def test_the_stubs_of_the_analyses_are_what_the_tables_print():
    _need_extension()
    made = subprocess.run(
        [sys.executable, os.path.join(lib.ROOT, "tools", "stubs.py"),
         os.path.relpath(lib.PACKAGE, lib.ROOT)], check=True, text=True,
        stdout=subprocess.PIPE).stdout
    with open(os.path.join(FOLDER, "_analyses.pyi"), encoding="utf-8") as f:
        assert f.read() == made, "`make docs` prints it anew"


def test_every_analysis_has_a_stub_with_its_options_and_its_help():
    _need_extension()
    stubs = {f.name: f for c in _tree("_analyses").body
             if isinstance(c, ast.ClassDef) for f in c.body
             if isinstance(f, ast.FunctionDef)}
    for table in opscope.analyses():
        stub = stubs.pop(table["name"])
        real = getattr(opscope.Profile, table["name"])
        assert ["self"] + [a.arg for a in stub.args.kwonlyargs] == list(
            inspect.signature(real).parameters), table["name"]
        assert ast.get_docstring(stub) == inspect.cleandoc(real.__doc__)
    assert not stubs, list(stubs)


def test_the_stubs_name_all_that_is_public():
    _need_extension()
    for name in ("__init__", "reading", "recording"):
        module = opscope if name == "__init__" else getattr(opscope, name)
        known = set()
        for node in _tree(name).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                known.add(node.name)
            elif isinstance(node, ast.ImportFrom):
                known.update(a.asname or a.name for a in node.names)
        missing = set(module.__all__) - known
        assert not missing, (name, missing)


def _mypy(folder, *words):
    """Runs a module of mypy in a folder, by the first Python that has it."""
    for python in (sys.executable, os.environ.get("LIVE_PYTHON", ""),
                   *lib.pythons().values()):
        if python and subprocess.run(
                [python, "-c", "import mypy.stubtest"],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL).returncode == 0:
            return subprocess.run(
                [python, *words], text=True, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, cwd=folder,
                env={**os.environ, "MYPYPATH": lib.PACKAGE,
                     "PYTHONPATH": lib.PACKAGE,
                     "PYTHONDONTWRITEBYTECODE": "1"})
    raise lib.Skip("no Python here has mypy")


USER = """
import opscope
from typing import Optional

p = opscope.open("logs", run="first")
n: int = len(p.ops(top=20, by="rank", name="aten::*", steps=range(3, 5)))
names: list[str] = p.run("ops")["name"]
with opscope.profile("logs", steps="1..3", memory=True) as prof:
    opscope.step(1)
    with opscope.scope("forward", kind="input", size=3) as s:
        opscope.scalar("loss", step=1, value=0.5)
folder: Optional[str] = prof.folder
for row in prof.hints(top=3):
    print(row.title)


@opscope.scope("work")
def work(n: int) -> int:
    return n


async def later() -> None:
    async with opscope.scope("later"):
        work(3)

callbacks = [opscope.keras.Callback("logs", profile_batch=(100, 102)),
             opscope.lightning.Callback("logs", steps="10..12"),
             opscope.transformers.Callback("logs")]
with opscope.jax.trace("logs", steps="1..3") as traced:
    traced.step(1)
m: int = len(traced.ops(top=3))
with opscope.torch.profile(record_shapes=True, logdir="logs",
                           schedule=opscope.torch.schedule(wait=1)) as t:
    t.step()
t.export_chrome_trace("trace.json")
print(t.key_averages(), t.overview().remarks)
"""
WRONG = ("opscope.open('x').ops(tpo=3)", "opscope.open('x').ops(by='nonsense')",
         "opscope.open('x').ops(20)", "opscope.scalar('loss', 1)",
         "opscope.scope('x', kind='nonsense')", "opscope.step('a')",
         "opscope.profile('logs', step=3)", "work('text')",
         "opscope.jax.trace('logs', step=3)",
         "opscope.keras.Callback(profile_batches=3)",
         "opscope.torch.profile(logdir=3)")


def test_mypy_takes_what_is_right_and_refuses_what_is_wrong():
    lines = USER.count("\n")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "user.py")
        with open(path, "w") as f:
            f.write(USER + "".join(w + "\n" for w in WRONG))
        p = _mypy(folder, "-m", "mypy", "--strict", "--no-error-summary",
                  "--hide-error-context", "--follow-imports=silent", path)
    refused = {int(line.split(":")[1]) - lines - 1
               for line in p.stdout.splitlines()
               if "user.py:" in line and ": error: " in line}
    assert refused == set(range(len(WRONG))), (refused, p.stdout[-1500:])


def test_mypy_finds_the_package_as_the_stubs_say_it_is():
    with tempfile.TemporaryDirectory() as folder:
        # a class of a C extension is one that old mypys cannot describe
        allowed = os.path.join(folder, "allowed")
        with open(allowed, "w") as f:
            f.write("opscope\\._opscope\\.(Profile|Scope|Table)\n")
        config = os.path.join(folder, "config")
        with open(config, "w") as f:
            f.write("[mypy]\nignore_missing_imports = True\n"
                    "[mypy-opscope._capture.*]\nignore_errors = True\n")
        p = _mypy(folder, "-m", "mypy.stubtest", "opscope._analyses",
                  "opscope._opscope", "opscope.reading", "opscope.recording",
                  "opscope.jax", "opscope.keras", "opscope.lightning",
                  "opscope.torch", "opscope.transformers",
                  "--concise", "--ignore-unused-allowlist", "--allowlist",
                  allowed, "--mypy-config-file", config)
    assert p.returncode == 0, p.stdout[-1500:]


if __name__ == "__main__":
    sys.exit(lib.run(sys.modules[__name__]))
