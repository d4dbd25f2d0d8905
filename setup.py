# SPDX-License-Identifier: Apache-2.0
"""Builds what a wheel holds besides Python: the extension, the recorder's
library, the program and the headers, all by make. One wheel serves CPython 3.9
and later. `pip install -e .` has them beside the sources, as make does."""

import os
import shutil
import subprocess
import sys

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:
    from wheel.bdist_wheel import bdist_wheel

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.join("build", "wheel")
# What a wheel links statically, and where Debian has the notices that must go
# with it.
LINKED = {"isal": "libisal-dev", "zstd": "libzstd-dev",
          "iberty": "libiberty-dev"}


def archive(name):
    """The static library, where there is one: a wheel should need no other
    package's shared ones."""
    path = subprocess.run([os.environ.get("CC", "cc"),
                           "-print-file-name=lib%s.a" % name],
                          stdout=subprocess.PIPE, text=True).stdout.strip()
    return path if os.path.isabs(path) else "-l" + name


def make(*words):
    try:
        subprocess.check_call(["make", "-j%d" % (os.cpu_count() or 1), *words],
                              cwd=HERE)
    except FileNotFoundError:
        raise SystemExit("opscope: GNU make is needed, and gcc or clang; the "
                         "README has the list") from None
    except subprocess.CalledProcessError:
        raise SystemExit("opscope: the build failed. It needs the headers of "
                         "isa-l, zstd and libiberty (libisal-dev, "
                         "libzstd-dev, libiberty-dev)") from None


def make_for_wheel(package):
    """Builds by make; the extension and the library go into `package`."""
    libs = " ".join([archive(name) for name in LINKED] + ["-lm", "-pthread"])
    smaller = "-Wl,--strip-debug " + os.environ.get("LDFLAGS", "")
    make("B=" + BUILD, "LIBS=" + libs, "LDFLAGS=" + smaller, "all")
    subprocess.check_call(["sh", "tools/python.sh", BUILD, sys.executable,
                           package], cwd=HERE,
                          env={**os.environ, "LIBS": libs,
                               "LDFLAGS": smaller})


def check(package):
    if not os.path.exists(os.path.join(package, "_opscope.abi3.so")):
        raise SystemExit("opscope: the headers of Python are needed: install "
                         "python3-dev, or its like, and try again")


def copy(source, *target):
    target = os.path.join(*target)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copy2(source, target)


class Build(build_py):
    def run(self):
        if getattr(self, "editable_mode", False):
            super().run()
            make("all", "python", "PYTHON=" + sys.executable)
            check(os.path.join(HERE, "python", "opscope"))
            return
        package = os.path.abspath(os.path.join(self.build_lib, "opscope"))
        shutil.rmtree(package, ignore_errors=True)  # of an older tree
        super().run()
        make_for_wheel(package)
        check(package)
        copy(os.path.join(HERE, BUILD, "opscope"), package, "_bin", "opscope")
        headers = os.path.join(HERE, "include", "opscope")
        for name in os.listdir(headers):
            copy(os.path.join(headers, name), package, "include", "opscope",
                 name)
        for name, owner in LINKED.items():
            notice = "/usr/share/doc/%s/copyright" % owner
            if os.path.exists(notice):
                copy(notice, package, "_notices", name + ".txt")


class Wheel(bdist_wheel):
    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        return "cp39", "abi3", super().get_tag()[2]


class Binary(Distribution):
    def has_ext_modules(self):
        return True


setup(distclass=Binary, cmdclass={"build_py": Build, "bdist_wheel": Wheel})
