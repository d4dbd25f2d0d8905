#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One build of the extension serves every Python from 3.9 to 3.13: the other
tests and a smoke test run by each that is here, and each that is not is a
skipped case. A Python that cannot have it is told why, and its programs run."""

import functools
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lib  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
PROFILES = [os.path.join(lib.ROOT, "tests", "data", *p) for p in (
    ("torch_cnn", "torch_cnn.pt.trace.json.gz"), ("tf_keras", "vm.xplane.pb"),
    ("jax_mlp", "vm.xplane.pb"))]
ONCE = ("test_versions.py", "test_stubs.py")    # those that are of no version
OPSCOPE = os.environ.get("OPSCOPE", os.path.join(lib.ROOT, "build",
                                                 "opscope"))


def _run(python, *words, **more):
    return subprocess.run(
        [python, "-B", *words], text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, timeout=300,
        env={**os.environ, "PYTHONPATH": lib.PACKAGE, **more})


def _need_extension():
    if not os.path.exists(os.path.join(lib.PACKAGE, "opscope",
                                       "_opscope.abi3.so")):
        raise lib.Skip("the extension is not built")


def _python(version):
    _need_extension()
    try:
        return lib.pythons()[version]
    except KeyError:
        raise lib.Skip("there is no Python %d.%d" % version) from None


# --- each that it is for ------------------------------------------------------


def _smoke(version):
    p = _run(_python(version), os.path.join(HERE, "smoke.py"), *PROFILES)
    assert p.returncode == 0 and p.stdout == "fine\n", p.stderr[-400:]


def _all_tests(name, version):
    python = _python(version)
    p = _run(python, os.path.join(HERE, name))
    bad = [x for x in p.stdout.splitlines() if x.startswith("not ok")]
    assert p.returncode == 0 and "ok " in p.stdout and not bad, (
        bad or p.stderr[-400:])


SUB_INTERPRETER = """
import sys
try:
    import _interpreters as sub
except ImportError:
    import _xxsubinterpreters as sub
text = '''
import sys
sys.path.insert(0, %r)
try:
    import opscope
    why = "it was imported"
except ImportError as e:
    why = str(e)
if "does not work in sub-interpreters" not in why or "main" not in why:
    raise RuntimeError(why)
'''
import opscope
for n in range(3):
    i = sub.create()
    wrong = sub.run_string(i, text)
    if wrong is not None:
        sys.exit(str(wrong))
    sub.destroy(i)
with opscope.scope("the main one goes on"):
    print("fine")
"""


def _sub_interpreter(version):
    p = _run(_python(version), "-W", "ignore", "-c",
             SUB_INTERPRETER % lib.PACKAGE)
    assert p.returncode == 0 and p.stdout == "fine\n", p.stderr[-400:]


def _add_cases():
    for version in lib.SERVED:
        name = "python_%d_%02d_" % version
        cases = {"reads_and_records": _smoke,
                 "is_told_about_sub_interpreters": _sub_interpreter}
        # tests/run has this Python run them already
        others = () if version == sys.version_info[:2] else sorted(
            f for f in os.listdir(HERE) if f.startswith("test_")
            and f.endswith(".py") and f not in ONCE)
        for other in others:
            cases["passes_the_tests_of_" + other[5:-3]] = functools.partial(
                _all_tests, other)
        for what, case in cases.items():
            globals()["test_" + name + what] = functools.partial(case, version)


_add_cases()


# --- those that it is not for -------------------------------------------------


def _others():
    """Pythons that are too old, or have other letters."""
    return {v: path for v, path in lib.all_pythons().items()
            if v[:2] < lib.SERVED[0] or "t" in v[2]}


def test_a_python_that_is_too_old_or_free_threaded_says_so():
    _need_extension()
    others = _others()
    if not others:
        raise lib.Skip("there is no Python before 3.9 and no free-threaded one")
    for version, python in others.items():
        p = _run(python, "-c", "import opscope")
        last = p.stderr.strip().splitlines()[-1]
        assert p.returncode == 1 and last.startswith("ImportError: opscope "), (
            version, p.stderr[-300:])
        assert "3.9 or later" in last or "free-threaded" in last, last


def test_a_free_threaded_python_is_refused_before_the_extension_is_loaded():
    _need_extension()
    p = _run(sys.executable, "-c", "import sys; sys.abiflags = 't'\n"
             "import opscope")
    assert "opscope does not run in a free-threaded" in p.stderr, p.stderr
    p = _run(sys.executable, "-c", "import sys\n"
             "sys.implementation.name = 'pypy'\nimport opscope")
    assert "needs CPython, and this is pypy" in p.stderr, p.stderr


def test_a_package_without_its_extension_says_how_to_build_it():
    source = os.path.join(lib.ROOT, "python", "opscope")
    with tempfile.TemporaryDirectory() as folder:
        package = os.path.join(folder, "opscope")
        os.mkdir(package)
        for name in os.listdir(source):
            if not name.startswith(("_opscope", "libopscope")):
                os.symlink(os.path.join(source, name),
                           os.path.join(package, name))
        p = _run(sys.executable, "-c", "import opscope", PYTHONPATH=folder)
    assert "is not built: `make python`" in p.stderr, p.stderr


def test_programs_of_any_python_run_under_record():
    _need_extension()
    with tempfile.TemporaryDirectory() as folder:
        for version, python in {**_others(), **{
                (*v, ""): p for v, p in lib.pythons().items()}}.items():
            p = subprocess.run(
                [OPSCOPE, "record", "-q", "-o", folder, "--", python, "-B",
                 "-c", "import json, sys; print(json.dumps([1])); sys.exit(7)"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            assert p.stdout == "[1]\n" and p.returncode == 7, (
                version, p.returncode, p.stdout, p.stderr[-300:])
            assert "sitecustomize" not in p.stderr, (version, p.stderr)


def test_a_framework_that_cannot_be_imported_looks_as_without_us():
    """The traceback, and the line that a warning is about."""
    _need_extension()
    broken = ("import warnings\nwarnings.warn('old', stacklevel=2)\n"
              "def load():\n    raise OSError('libcudart.so')\nload()\n")
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "torch.py"), "w") as f:
            f.write(broken)
        program = os.path.join(folder, "p.py")
        with open(program, "w") as f:
            f.write("import torch\n")
        for version, python in lib.pythons().items():
            alone, recorded = (subprocess.run(
                [*before, python, "-B", program], cwd=folder, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                for before in ((), (OPSCOPE, "record", "-q", "--")))
            assert recorded.stderr == alone.stderr, (version, recorded.stderr)
            assert "p.py:1: UserWarning" in alone.stderr, alone.stderr


if __name__ == "__main__":
    sys.exit(lib.run(sys.modules[__name__]))
