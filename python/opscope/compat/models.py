# SPDX-License-Identifier: Apache-2.0
"""What TensorFlow itself knows of a program without running it: its
variables, and the nodes of its graphs with shapes, FLOPs and the lines of
Python that made them.

FLOPs are those of TensorFlow's own registry, which knows most ops and needs
known shapes; an op that it does not know has none here, not 0."""

import gc
import os

PYTHON = os.path.dirname(os.__file__) + os.sep
DTYPES_WITHOUT_SIZE = ("resource", "variant", "string")


def variables(tf, model=None, graph=None):
    """Variables of a Keras model, of a graph, or all that are alive: dicts
    of name, shape, dtype, trainable, elements, bytes."""
    if model is None and graph is not None and graph.building_function:
        model = graph       # that of a tf.function has them as a model does
    if model is not None:
        found = list(getattr(model, "variables", ()))
        learns = {id(v) for v in getattr(model, "trainable_variables", ())}
    elif graph is not None:
        keys = tf.compat.v1.GraphKeys
        found = graph.get_collection(keys.GLOBAL_VARIABLES)
        learns = {id(v) for v in graph.get_collection(
            keys.TRAINABLE_VARIABLES)}
    else:
        found = [v for v in gc.get_objects()
                 if issubclass(type(v), tf.Variable)
                 and not getattr(v, "_in_graph_mode", True)]
        learns = {id(v) for v in found if v.trainable}
    return sorted((_variable(tf, v, id(v) in learns) for v in found),
                  key=lambda v: v["name"])


def _variable(tf, v, trainable):
    name = getattr(v, "path", None) or getattr(v, "name", None) or "variable"
    name = name[:-2] if name.endswith(":0") else name
    shape = [None if n is None else int(n) for n in tuple(v.shape)]
    elements = 1
    for n in shape:
        elements = None if n is None or elements is None else elements * n
    dtype = tf.as_dtype(v.dtype).base_dtype
    size = _size(dtype)
    return {"name": name, "shape": shape, "dtype": dtype.name,
            "trainable": trainable, "elements": elements,
            "bytes": None if elements is None or size is None
            else elements * size}


def _size(dtype):
    return None if dtype.name in DTYPES_WITHOUT_SIZE else dtype.size


def functions():
    """Graphs of tf.functions that are alive, by name."""
    from tensorflow.python.framework.func_graph import FuncGraph
    found = [g for g in gc.get_objects() if type(g) is FuncGraph]
    return sorted(found, key=lambda g: str(g.name))


def model_graph(tf, model):
    """The graph of one call of a Keras model whose input shapes are known,
    with a batch of one; or None."""
    try:
        specs = [tf.TensorSpec([1 if n is None and i == 0 else n
                                for i, n in enumerate(t.shape)], t.dtype)
                 for t in model.inputs]
        arg = specs[0] if len(specs) == 1 else specs
        call = tf.function(lambda x: model(x, training=False))
        return call.get_concrete_function(arg).graph
    except Exception:       # built in another way: no graph, no FLOPs
        return None


def nodes(graph):
    """The nodes of a graph, in its own order."""
    from tensorflow.python.util import deprecation
    name = str(getattr(graph, "name", None) or "graph")
    with deprecation.silence():     # its own registry calls what it warns of
        return [_node(graph, op, name) for op in graph.get_operations()]


def _node(graph, op, graph_name):
    return {"graph": graph_name, "name": op.name, "type": op.type,
            "inputs": [t.name for t in op.inputs],
            "outputs": [_shape_text(t) for t in op.outputs],
            "output_bytes": _bytes(op.outputs), "flops": _flops(graph, op),
            "code": _code(op)}


def _shape_text(t):
    dims = "unknown" if t.shape.rank is None else ",".join(
        "?" if n is None else str(n) for n in t.shape.as_list())
    return "%s[%s]" % (t.dtype.name, dims)


def _bytes(outputs):
    """Size of the outputs; None where a shape is not known."""
    total = 0
    for t in outputs:
        size = _size(t.dtype.base_dtype)
        n = t.shape.num_elements() if t.shape.rank is not None else None
        if size is None or n is None:
            return None
        total += n * size
    return total


def _flops(graph, op):
    try:
        from tensorflow.python.framework import ops
        from tensorflow.python.profiler.internal import flops_registry
        assert flops_registry       # importing it is what fills the registry
        with graph.as_default():
            value = ops.get_stats_for_node_def(graph, op.node_def,
                                               "flops").value
        return None if value is None else int(value)
    except Exception:       # shapes that are not known
        return None


def _code(op):
    """The program's own lines that led to the node, outermost first: those
    that lie in no installed package, and not in Python's own."""
    out = []
    for frame in op.traceback or ():
        if frame.filename.startswith((PYTHON, "<frozen")) or \
                "-packages" + os.sep in frame.filename:
            continue
        out.append("%s:%d %s" % (os.path.basename(frame.filename),
                                 frame.lineno, frame.name))
    return out
