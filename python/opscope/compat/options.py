# SPDX-License-Identifier: Apache-2.0
"""The options of the calls that tutorials show: a dict that knows its keys.

ProfileOptionBuilder has the presets and the `with_...` calls of
tf.compat.v1.profiler. What it gives is a ProfileOptions: item access,
attribute access, and a sentence for a key or a value that cannot be. One
table, KEYS, says what there is, of which form, and what it stands for in
opscope."""

import copy
import difflib
import operator
import re

from .errors import OptionError

ORDERS = ("name", "bytes", "peak_bytes", "residual_bytes", "output_bytes",
          "micros", "accelerator_micros", "cpu_micros", "params", "float_ops",
          "occurrence")
SELECTS = ORDERS[1:] + ("tensor_value", "device", "op_types", "input_shapes")
OUTPUTS = ("none", "stdout", "file", "timeline", "pprof")


def _count(key, value):
    try:
        n = operator.index(value)
    except TypeError:
        raise OptionError("%s is a whole number, not %r" % (key, value))
    if n < 0:
        raise OptionError("%s cannot be negative: %d" % (key, n))
    return n


_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


def _size(key, value):
    """A number of bytes; "1M" and "2.5GiB" as on the command line, too."""
    if not isinstance(value, str):
        return _count(key, value)
    m = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", value.strip(),
                     re.IGNORECASE)
    if m is None:
        raise OptionError("%s is a size such as 4096 or \"1M\", not %r" %
                          (key, value))
    return int(float(m.group(1)) * (1 << _UNITS[m.group(2).lower()]))


def _time(key, value):
    if isinstance(value, bool) or not isinstance(value, (int, float)) \
            or not value >= 0:
        raise OptionError("%s is a number of microseconds, not %r" %
                          (key, value))
    return value


def _step(key, value):
    try:
        n = operator.index(value)
    except TypeError:
        raise OptionError("step is the number of a step, or -1 for all, not "
                          "%r" % (value,))
    if n < -1:
        raise OptionError("step is the number of a step, or -1 for all, not "
                          "%d" % n)
    return n


def _flag(key, value):
    if value not in (True, False, 0, 1):
        raise OptionError("%s is True or False, not %r" % (key, value))
    return bool(value)


def _texts(key, value, what):
    """One text, or a list of them."""
    try:
        return [value] if isinstance(value, str) else list(value)
    except TypeError:
        raise OptionError("%s is a list of %s, not %r" %
                          (key, what, value)) from None


def _regexes(key, value):
    texts = _texts(key, value, "regular expressions")
    for text in texts:
        try:
            re.compile(text)
        except (re.error, TypeError) as e:
            raise OptionError("%s: %r is no regular expression: %s" %
                              (key, text, e))
    return texts


def _glob(key, value):
    if value is not None and not isinstance(value, str):
        raise OptionError("%s is a pattern such as 'enc*', not %r" %
                          (key, value))
    return value


def _order(key, value):
    if value not in ORDERS:
        raise OptionError("order_by is one of %s, not %r" %
                          (", ".join(ORDERS), value))
    return value


def _select(key, value):
    names = _texts(key, value, "columns")
    for name in names:
        if name not in SELECTS:
            raise OptionError("select takes %s, not %r" %
                              (", ".join(SELECTS), name))
    return names


def _output(key, value):
    kind, _, rest = str(value).partition(":")
    if kind not in OUTPUTS:
        raise OptionError("output is one of %s, not %r" %
                          (", ".join(OUTPUTS), value))
    if kind in ("file", "timeline", "pprof") and \
            not rest.startswith("outfile="):
        raise OptionError("output '%s' needs its file: '%s:outfile=NAME'" %
                          (kind, kind))
    return value


def _steps(key, value):
    """Steps to take: 1,10,100 as a text, numbers, or one number."""
    if value is None:
        return None
    if isinstance(value, str):
        value = [v for v in value.replace(" ", "").split(",") if v]
    elif isinstance(value, int):
        value = [value]
    try:
        steps = sorted({int(v) for v in value})
    except (TypeError, ValueError):
        raise OptionError("%s is a list of steps such as \"1,10,100\", not %r"
                          % (key, value))
    if not steps or steps[0] < 0:
        raise OptionError("%s is a list of steps such as \"1,10,100\"" % key)
    return steps


# key: (how a value is checked, the default, what it does)
KEYS = {
    "max_depth": (_count, 100, "scopes this deep at most; 1: the outermost"),
    "min_bytes": (_size, 0, "rows of at least so many bytes allocated "
                            "(--min-bytes)"),
    "min_peak_bytes": (_size, 0, "rows whose bytes at a time reach this"),
    "min_residual_bytes": (_size, 0, "rows that keep so many bytes"),
    "min_output_bytes": (_size, 0, "rows whose outputs have so many bytes"),
    "min_micros": (_time, 0, "rows of at least so many microseconds "
                             "(--min-us)"),
    "min_accelerator_micros": (_time, 0, "the same on the device"),
    "min_cpu_micros": (_time, 0, "the same on the host"),
    "min_params": (_count, 0, "rows of at least so many parameters"),
    "min_float_ops": (_count, 0, "rows of at least so many FLOPs"),
    "min_occurrence": (_count, 0, "rows that ran at least so often"),
    "order_by": (_order, "name", "largest first by this (--sort)"),
    "account_type_regexes": (_regexes, [".*"], "only ops of these types, or "
                             "'_trainable_variables'"),
    "start_name_regexes": (_regexes, [".*"], "begin at these scopes"),
    "trim_name_regexes": (_regexes, [], "leave out what is inside of these"),
    "show_name_regexes": (_regexes, [".*"], "show these"),
    "hide_name_regexes": (_regexes, [], "hide these"),
    "account_displayed_op_only": (_flag, False, "totals of what is shown "
                                                "alone"),
    "select": (_select, ["micros"], "columns to show"),
    "step": (_step, -1, "this mark's step; -1: all of them"),
    "output": (_output, "none", "where the table goes, beside the result"),
    # what opscope's own analyses call them
    "scope": (_glob, None, "scopes whose path matches, and all inside "
                           "(--scope)"),
    "name": (_glob, None, "rows whose name matches (--name)"),
    "top": (_count, 0, "the first N rows; 0: all (--top)"),
    "show_input_output": (_flag, False, "shapes of inputs and outputs, a row "
                                        "for each"),
    "show_memory": (_flag, False, "bytes allocated, at a time and kept"),
    "profile_steps": (_steps, None, "marks are made and shown of these "
                                    "steps only (record --steps)"),
}


def known():
    """The keys, for a message."""
    return ", ".join(KEYS)


class ProfileOptions(dict):
    """A dict of KEYS; `options["min_bytes"]` and `options.min_bytes` are the
    same."""

    def __init__(self, *args, **values):
        super().__init__()
        for key, (_, default, _) in KEYS.items():
            super().__setitem__(key, copy.copy(default))
        self.update(*args, **values)

    def __setitem__(self, key, value):
        if key not in KEYS:
            near = difflib.get_close_matches(str(key), KEYS, 1)
            raise OptionError("there is no option %r%s: there are %s" % (
                key, ", did you mean %r?" % near[0] if near else "", known()))
        super().__setitem__(key, KEYS[key][0](key, value))

    def __missing__(self, key):
        raise OptionError("there is no option %r: there are %s" %
                          (key, known()))

    def __delitem__(self, key):
        """Back to the default."""
        self[key] = copy.copy(KEYS[key][1]) if key in KEYS else None

    def __getattr__(self, key):
        try:
            return self[key]
        except OptionError as e:
            raise AttributeError(str(e))

    def __setattr__(self, key, value):
        self[key] = value

    def update(self, *args, **values):
        for key, value in dict(*args, **values).items():
            self[key] = value

    def setdefault(self, key, value=None):
        return self[key]

    def pop(self, key, *default):
        value = self[key]
        del self[key]
        return value

    def clear(self):
        for key in KEYS:
            del self[key]

    def copy(self):
        return ProfileOptions(self)

    __copy__ = copy

    def __deepcopy__(self, memo):
        return ProfileOptions({k: copy.deepcopy(v, memo)
                               for k, v in self.items()})

    def __reduce__(self):
        return ProfileOptions, (dict(self),)

    def output_file(self):
        """(kind, file or None) of the option `output`."""
        kind, _, rest = self["output"].partition(":")
        return kind, rest[len("outfile="):] or None


def options_of(options):
    """What the user gave, or the defaults; a builder is built."""
    if options is None:
        return ProfileOptions(order_by="micros", select=["micros", "bytes"])
    if isinstance(options, ProfileOptionBuilder):
        return options.build()
    if isinstance(options, ProfileOptions):
        return options
    if isinstance(options, dict):
        return ProfileOptions(options)
    raise OptionError("options are a dict or come from ProfileOptionBuilder, "
                      "not %s" % type(options).__name__)


class ProfileOptionBuilder:
    """Makes options, call by call:

        ProfileOptionBuilder(ProfileOptionBuilder.time_and_memory()) \\
            .with_max_depth(3).order_by("bytes").build()

    Each call returns the builder. The presets return options."""

    def __init__(self, options=None):
        self._options = ProfileOptions() if options is None \
            else options_of(options).copy()

    @staticmethod
    def trainable_variables_parameter():
        """Parameters of trainable variables, by scope."""
        return ProfileOptions(
            max_depth=10000, order_by="name", select=["params"],
            account_type_regexes=["_trainable_variables"],
            account_displayed_op_only=True)

    @staticmethod
    def float_operation():
        """FLOPs, the most first."""
        return ProfileOptions(
            max_depth=10000, min_float_ops=1, order_by="float_ops",
            select=["float_ops"], account_displayed_op_only=True)

    @staticmethod
    def time_and_memory(min_micros=1, min_bytes=1, min_accelerator_micros=0,
                        min_cpu_micros=0, min_peak_bytes=0,
                        min_residual_bytes=0, min_output_bytes=0):
        """Time and memory, the longest first. With both at 1 a row that
        has time or memory is shown; a larger one must be reached."""
        return ProfileOptions(
            max_depth=10000, min_micros=min_micros, min_bytes=min_bytes,
            min_accelerator_micros=min_accelerator_micros,
            min_cpu_micros=min_cpu_micros, min_peak_bytes=min_peak_bytes,
            min_residual_bytes=min_residual_bytes,
            min_output_bytes=min_output_bytes, order_by="micros",
            select=["micros", "bytes"], account_displayed_op_only=True)

    def build(self):
        """A copy of the options as they are now."""
        return copy.deepcopy(self._options)

    def _with(self, **values):
        self._options.update(**values)
        return self

    def with_max_depth(self, max_depth):
        return self._with(max_depth=max_depth)

    def with_min_memory(self, min_bytes=0, min_peak_bytes=0,
                        min_residual_bytes=0, min_output_bytes=0):
        return self._with(min_bytes=min_bytes, min_peak_bytes=min_peak_bytes,
                          min_residual_bytes=min_residual_bytes,
                          min_output_bytes=min_output_bytes)

    def with_min_execution_time(self, min_micros=0, min_accelerator_micros=0,
                                min_cpu_micros=0):
        return self._with(min_micros=min_micros, min_cpu_micros=min_cpu_micros,
                          min_accelerator_micros=min_accelerator_micros)

    def with_min_parameters(self, min_params):
        return self._with(min_params=min_params)

    def with_min_occurrence(self, min_occurrence):
        return self._with(min_occurrence=min_occurrence)

    def with_min_float_operations(self, min_float_ops):
        return self._with(min_float_ops=min_float_ops)

    def with_accounted_types(self, account_type_regexes):
        return self._with(account_type_regexes=account_type_regexes)

    def with_node_names(self, start_name_regexes=None, show_name_regexes=None,
                        hide_name_regexes=None, trim_name_regexes=None):
        given = {"start_name_regexes": start_name_regexes,
                 "show_name_regexes": show_name_regexes,
                 "hide_name_regexes": hide_name_regexes,
                 "trim_name_regexes": trim_name_regexes}
        return self._with(**{k: v for k, v in given.items() if v is not None})

    def account_displayed_op_only(self, is_true):
        return self._with(account_displayed_op_only=is_true)

    def with_empty_output(self):
        return self._with(output="none")

    def with_stdout_output(self):
        return self._with(output="stdout")

    def with_file_output(self, outfile):
        return self._with(output="file:outfile=%s" % outfile)

    def with_timeline_output(self, timeline_file):
        return self._with(output="timeline:outfile=%s" % timeline_file)

    def with_pprof_output(self, pprof_file):
        return self._with(output="pprof:outfile=%s" % pprof_file)

    def order_by(self, attribute):
        return self._with(order_by=attribute)

    def select(self, attributes):
        return self._with(select=attributes)

    def with_step(self, step):
        return self._with(step=step)
