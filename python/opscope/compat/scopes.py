# SPDX-License-Identifier: Apache-2.0
"""Name scopes of eager TensorFlow, as regions of the trace.

In a graph the names of ops spell their scopes. Eager ops are called by their
type alone, whatever tf.name_scope stands around them: TensorFlow drops it. So
while a profiler is on, entering a scope in eager mode opens a region of that
name; ops that run inside lie under it."""

import threading


class EagerScopes:
    """on() and off() around what is traced; names() tells which scopes were
    entered in between."""

    def __init__(self):
        self._cls = self._enter = self._exit = None
        self._seen = set()
        self._open = threading.local()

    def on(self):
        """Hooks tf.name_scope. A TensorFlow that has it elsewhere is left
        alone."""
        self._seen = set()
        try:
            from tensorflow.python.eager import context
            from tensorflow.python.framework import ops
            from tensorflow.python.profiler.trace import Trace
        except ImportError:
            return
        cls = ops.name_scope_v2
        self._cls, self._enter, self._exit = cls, cls.__enter__, cls.__exit__
        cls.__enter__, cls.__exit__ = self._hooks(context, Trace)

    def _hooks(self, context, Trace):
        enter, leave = self._enter, self._exit
        seen, regions = self._seen, self._open

        def hooked_enter(scope):
            name = enter(scope)
            try:
                if context.executing_eagerly():
                    own = (scope.name or "").strip("/")
                    if own:
                        seen.add(own)
                        regions.__dict__.setdefault("stack", []).append(
                            (scope, Trace(own).__enter__()))
            except Exception:   # the program's scope is what counts
                pass
            return name

        def hooked_exit(scope, *exc):
            stack = regions.__dict__.get("stack")
            if stack and stack[-1][0] is scope:
                stack.pop()[1].__exit__(None, None, None)
            return leave(scope, *exc)

        return hooked_enter, hooked_exit

    def off(self):
        """Takes the hooks out again."""
        if self._cls is not None:
            self._cls.__enter__, self._cls.__exit__ = self._enter, self._exit
            self._cls = None

    def names(self):
        return sorted(self._seen)
