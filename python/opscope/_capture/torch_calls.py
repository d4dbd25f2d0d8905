# SPDX-License-Identifier: Apache-2.0
"""Calls of backward() and of models, for programs that have no optimizer: an
update by hand, inference in a plain loop.

Nothing is wrapped, so no frame of ours stands in a traceback. Both calls look
something up just before they begin: torch asks the engine of autograd for
run_backward, and a module its class for _compiled_call_impl. Who answers there
hears of the call. A model is a module that is part of no other one that was
called. A backward() of which the graph is kept to go through once more (a
penalty on gradients) is told apart from the one that ends in an update.

Where optimizers step inside of backward(), by hooks of the parameters, its end
is the end of their step."""

from .calls import around


class Engine:
    """Stands for the engine of autograd, and tells of its runs."""

    def __init__(self, real, begins, ended):
        self.real = real
        run = real.run_backward

        def before(args, kwargs):
            begins(args, kwargs or {})
            return real, run, args, kwargs
        self.code = before.__code__
        self.run_backward = around(run, before, ended)

    def __getattr__(self, name):
        return getattr(self.real, name)


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


class Again:
    """Stands for the calls of backward() that make a graph themselves."""


class Calls:
    """Hears of both until it is off. told(kind, thing) is called before, and
    ended() behind each backward()."""

    def __init__(self, torch, told, ended):
        self._module, self._variable = torch.nn.Module, torch.autograd.Variable
        self._told, self._ended, self._known = told, ended, set()
        self._again, self._called, self._engine = Again(), None, None
        self.watch_backward()
        if vars(self._module).get("_compiled_call_impl", self) is None:
            self._called = Called(self._model)
            self._module._compiled_call_impl = self._called

    def codes(self):
        """The code that torch.compile must not look into."""
        codes = [f.__code__ for f in (
            Called.__get__, Called.add_parts, Calls._begins, Calls._ends,
            Calls._model)]
        return codes + ([self._engine.code] if self._engine else [])

    def watch_backward(self):
        real = getattr(self._variable, "_execution_engine", None)
        if self._engine is None and hasattr(real, "run_backward"):
            self._engine = Engine(real, self._begins, self._ends)
            self._variable._execution_engine = self._engine

    def _begins(self, args, kwargs):
        """run_backward(tensors, gradients, keep_graph, create_graph, ...)"""
        if self._told is not None:
            again = args[3] if len(args) > 3 else kwargs.get("create_graph")
            self._told("backward", self._again if again else self)

    def _ends(self, token, error, value):
        self._ended()

    def _model(self, module):
        if id(module) not in self._known:
            self._known.add(id(module))
            try:
                self._called.add_parts(module)
            except Exception:
                pass    # one that was not made whole has no parts
        self._told("model", module)

    @property
    def is_off(self):
        return self._engine is None

    def only_ends(self):
        """There is an optimizer: of interest is only whether it steps inside
        of backward()."""
        if self._called is not None:
            self._module._compiled_call_impl = None
            self._called = None
        self._told = None

    def off(self):
        """Puts everything back as it was."""
        self.only_ends()
        if self._engine is not None:
            self._variable._execution_engine = self._engine.real
            self._engine = None
