# SPDX-License-Identifier: Apache-2.0
"""Calls of backward() and of models, for programs that have no optimizer: an
update by hand, inference in a plain loop.

Nothing is wrapped, so no frame of ours stands in a traceback. Both calls look
something up just before they begin: torch asks the engine of autograd for
run_backward, and a module its class for _compiled_call_impl. Who answers there
hears of the call. A model is a module that is part of no other one that was
called."""


class Engine:
    """Stands for the engine of autograd, and tells when it is to run."""

    def __init__(self, real, told):
        self._real, self._told = real, told

    def __getattr__(self, name):
        return getattr(self._real, name)

    @property
    def run_backward(self):
        self._told()
        return self._real.run_backward


class Called:
    """Stands for Module._compiled_call_impl, which is None. An object that was
    compiled has its own, and is not looked up here."""

    def __init__(self, told):
        self._told = told
        self._parts = set()     # ids of modules that are parts of others

    def __get__(self, module, owner=None):
        if module is not None and id(module) not in self._parts:
            self._told(module)
        return None

    def add_parts(self, module):
        self._parts.update(id(m) for m in module.modules() if m is not module)


class Calls:
    """Hears of both until it is off. told(kind, thing) is called."""

    def __init__(self, torch, told):
        self._module, self._variable = torch.nn.Module, torch.autograd.Variable
        self._told, self._known, self._called = told, set(), None
        real = getattr(self._variable, "_execution_engine", None)
        if hasattr(real, "run_backward"):
            self._engine = Engine(real, self._backward)
            self._variable._execution_engine = self._engine
        else:
            self._engine = None
        if vars(self._module).get("_compiled_call_impl", self) is None:
            self._called = Called(self._model)
            self._module._compiled_call_impl = self._called

    def codes(self):
        """The code that torch.compile must not look into."""
        return [f.__code__ for f in (
            Engine.run_backward.fget, Called.__get__, Called.add_parts,
            Calls._backward, Calls._model)]

    def _backward(self):
        self._told("backward", self)

    def _model(self, module):
        if id(module) not in self._known:
            self._known.add(id(module))
            try:
                self._called.add_parts(module)
            except Exception:
                pass    # one that was not made whole has no parts
        self._told("model", module)

    def off(self):
        """Puts everything back as it was."""
        if self._engine is not None:
            self._variable._execution_engine = self._engine._real
            self._engine = None
        if self._called is not None:
            self._module._compiled_call_impl = None
            self._called = None
