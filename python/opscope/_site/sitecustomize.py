# SPDX-License-Identifier: Apache-2.0
"""What `opscope record` puts before a Python program: nothing but an import
hook. When the program imports torch, tensorflow or jax, opscope is loaded from
beside this file and watches the framework's steps; a program that imports none
of them never loads more than this.

Another sitecustomize that the program would have found is run all the same,
and this folder is taken off sys.path, so that the program sees what it always
saw."""

import sys


def _chain(here):
    """Runs the sitecustomize that would have been found without ours."""
    ours = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401 (another one)
    except ImportError as e:
        if getattr(e, "name", "sitecustomize") != "sitecustomize":
            raise
        if ours is not None:
            sys.modules["sitecustomize"] = ours


class _Loader:
    """A framework's own loader, with a word to opscope when it is done."""

    def __init__(self, inner, told):
        self._inner, self._told = inner, told

    def __getattr__(self, name):
        if name == "_inner":    # a copy that was not made whole
            raise AttributeError(name)
        return getattr(self._inner, name)

    def create_module(self, spec):
        return self._inner.create_module(spec)

    def exec_module(self, module):
        # the module's own loader is put back: tools look at it
        module.__spec__.loader = module.__loader__ = self._inner
        self._inner.exec_module(module)
        self._told(module)

    # Python leaves frames of its own import machinery out of tracebacks, and
    # warnings pass over them: an import that fails looks as it does without us
    if hasattr(exec_module.__code__, "replace"):
        exec_module.__code__ = exec_module.__code__.replace(
            co_filename="<frozen importlib._bootstrap_external>")


class _Finder:
    """Finds nothing itself: it looks over the shoulders of the others."""

    names = ("torch", "tensorflow", "jax", "keras", "tf_keras")

    def __init__(self, told):
        self._told = told
        self._busy = set()

    def find_spec(self, name, path=None, target=None):
        if name not in self.names or name in self._busy:
            return None
        self._busy.add(name)
        try:
            for finder in sys.meta_path:
                find = getattr(finder, "find_spec", None)
                if finder is self or find is None:
                    continue
                spec = find(name, path, target)
                if spec is None:
                    continue
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader, self._told)
                return spec
        finally:
            self._busy.discard(name)
        return None


def _note(text):
    """Leaves a sentence for `opscope record` to show."""
    import os
    try:
        folder = os.path.join(os.environ["OPSCOPE_LOGDIR"], "plugins",
                              "profile", os.environ["OPSCOPE_RUN"])
        with open(os.path.join(folder, "%d.notes" % os.getpid()), "a",
                  encoding="utf-8") as f:
            f.write(text + "\n")
    except Exception:
        pass


def _package():
    """Returns opscope as it lies beside this file, under its own name unless
    the program has another one."""
    import importlib.util
    import os
    if "opscope" in sys.modules:
        return sys.modules["opscope"]
    folder = os.path.dirname(_here)
    spec = importlib.util.spec_from_file_location(
        "opscope", os.path.join(folder, "__init__.py"),
        submodule_search_locations=[folder])
    module = importlib.util.module_from_spec(spec)
    sys.modules["opscope"] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules["opscope"]
        raise
    return module


def _imported(module):
    """A framework is there: opscope looks at it. Whatever goes wrong, the
    program goes on."""
    try:
        if sys.version_info < (3, 9):
            _note("Python %d.%d is too old for opscope's hooks: 3.9 or later "
                  "is needed; the program was seen from outside only"
                  % sys.version_info[:2])
            return
        _package()
        from opscope import _capture
        _capture.hooked(module)
    except BaseException as e:  # also SystemExit of a broken module
        if isinstance(e, KeyboardInterrupt):
            raise
        _note("%s was imported, but opscope could not look at it: %s: %s"
              % (module.__name__, type(e).__name__, e))


def _begin():
    import os
    global _here
    _here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [p for p in sys.path
                   if not p or os.path.abspath(p) != _here]
    sys.path_importer_cache.pop(_here, None)
    try:
        # Python 2 has finders of another form, and would stumble over ours
        if os.environ.get("OPSCOPE") == "1" and sys.version_info >= (3, 4):
            sys.meta_path.insert(0, _Finder(_imported))
    finally:
        _chain(_here)


_begin()
