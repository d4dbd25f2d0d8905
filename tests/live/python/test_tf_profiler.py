#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The calls that tutorials on TensorFlow's profiler show, each in a program as
a tutorial would write it: eager, in tf.function, under tf.compat.v1. What they
tell is held against what the program keeps by its own count, and against
tf.compat.v1's own profiler on the same runs."""

import glob
import os
import re
import sys
import tempfile
import textwrap

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lib  # noqa: E402

# Steps 1 to 100; each keeps its result, which is where memory grows.
TRAIN = """
import json, time
import numpy as np, opscope, tensorflow as tf

STEPS, history = (1, 10, 100), []
weights = tf.Variable(tf.ones((256, 256)), name="weights")

%s
def layer(x):
    with tf.name_scope("encoder"):
        y = tf.matmul(x, weights)
    with tf.name_scope("decoder"):
        return tf.nn.relu(tf.matmul(y, y))

profiler = opscope.Profiler("logs")
options = opscope.ProfileOptionBuilder.time_and_memory()
options["min_bytes"] = 1 << 16
options["show_input_output"] = True
x, kept = tf.ones((256, 256)), {}
began = time.perf_counter()
profiler.start()
for step in range(1, 101):
    profiler.step(step)
    history.append(layer(x))
    if step in STEPS:
        profiler.profile(options, step=step)
        kept[step] = sum(np.asarray(h).nbytes for h in history)
profiler.stop()
wall_us = (time.perf_counter() - began) * 1e6
options["profile_steps"] = STEPS
"""

# What must hold of the program above, whether eager or not.
HOLDS = """
assert [m.step for m in profiler.marks] == [1, 10, 100, None]

# side by side: what the list holds at each step, by numpy's count
t = profiler.compare(options, by="tensor")
row, = [r for r in t if r.name.endswith("in list __main__.history")]
row = row._asdict()
assert {s: row["bytes_step%d" % s] for s in STEPS} == kept, (row, kept)
assert [row["calls_step%d" % s] for s in STEPS] == [1, 10, 100], row
assert row["growth_bytes"] == kept[100] - kept[1]
assert t[0].name == row["name"], t     # what grows most comes first
rss, = [r for r in profiler.compare(options, by="memory")
        if r.name == "resident memory"]
assert rss.growth_bytes >= 0.8 * (kept[100] - kept[1]), rss

# the operation that made it: what it kept is what the list holds
ops = {r["name"]: r for r in profiler.compare(options, by="op").dicts()}
grown = ops[GROWS]
assert [grown["calls_step%d" % s] for s in STEPS] == GROWS_CALLS, grown
assert sum(grown["kept_bytes_step%d" % s] for s in STEPS) == kept[100], grown
freed = ops[FREED]      # what it made was gone by the mark
assert [freed["kept_bytes_step%d" % s] for s in STEPS] == [0, 0, 0], freed
assert freed["bytes_step100"] >= 90 * x.numpy().nbytes, freed

# min_bytes: the same rows as the program picks from all of them
every = opscope.ProfileOptionBuilder.time_and_memory(0, 0)
every["profile_steps"] = STEPS
def big(t):
    return sorted(r.name for r in t if (r.bytes or 0) >= 200 << 16)
assert big(profiler.profile_operations(every))
for make in (profiler.profile_operations, profiler.profile_name_scope,
             profiler.profile_graph):
    every["min_bytes"] = 0
    wanted = big(make(every))
    assert len(make(every)) > len(wanted), make(every)
    every["min_bytes"] = 200 << 16
    assert sorted(make(every)["name"]) == wanted, (make(every), wanted)
every["min_bytes"] = 0

# a name scope alone: each of its rows is in it
options["scope"] = "encoder"
t = profiler.profile_name_scope(options)
assert t["path"] and all(p.split("/")[0] == "encoder" for p in t["path"]), t
assert [r.calls for r in t if r.path == "encoder/MatMul"] == [100], t
assert all(0 < r.host_us < wall_us for r in t if r.bytes), t
options["scope"] = None
everywhere = profiler.profile_operations(every)
assert [r.calls for r in everywhere if r.name == "MatMul"] == [200]
# bytes were recorded, though not of the last mark, in which nothing ran
assert "memory" not in [m["what"] for m in everywhere.missing], everywhere
one = opscope.ProfileOptionBuilder(every).with_step(10).build()
assert [r.calls for r in profiler.profile_operations(one)
        if r.name == "MatMul"] == [18]

# variables, and what was saved
assert [r.parameters for r in profiler.profile_model(every)
        if r.path == "weights"] == [256 * 256]
profiler.save("saved")
with open("tables.json", "w") as f:
    json.dump([[profiler.profile_operations(options).json(),
                profiler.profile_name_scope(options).json(),
                profiler.profile_graph(every).json(),
                profiler.profile_model(every).json(),
                profiler.profile_python(every).json(),
                profiler.compare(options).json()], options, every], f)
"""

# Another process, which needs no TensorFlow.
LOAD = """
import json, sys, opscope
profiler = opscope.Profiler().load_profile("saved")
with open("tables.json") as f:
    tables, options, every = json.load(f)
def clean(text):
    table = json.loads(text)
    for s in table["sources"]:
        s.pop("path", None)
    return table
mine = [profiler.profile_operations(options), profiler.profile_name_scope(
    options), profiler.profile_graph(every), profiler.profile_model(every),
    profiler.profile_python(every), profiler.compare(options)]
for a, b in zip(mine, tables):
    a, b = clean(a.json()), clean(b)
    assert a["rows"] == b["rows"], a["analysis"]
    assert a["rows"] or a["analysis"] == "python", a["analysis"]
    assert a["columns"] == b["columns"], a["analysis"]
    assert a["remarks"] == b["remarks"], (a["remarks"], b["remarks"])
assert "tensorflow" not in sys.modules
p = opscope.open("saved")       # a log folder like any other
assert len(p.ops(top=0))
"""


def _saved_and_loaded(code):
    with tempfile.TemporaryDirectory() as folder:
        lib.python(code, "tensorflow", folder=folder)
        lib.python(LOAD, folder=folder)


def test_eager_at_steps_1_10_and_100_saved_and_loaded():
    _saved_and_loaded(TRAIN % "" + """
GROWS, GROWS_CALLS, FREED = "Relu", [1, 9, 90], "MatMul"
""" + HOLDS)


def test_tf_function_at_steps_1_10_and_100_saved_and_loaded():
    # the kernel of Relu works in place: the block is its input's
    _saved_and_loaded(TRAIN % "@tf.function" + """
GROWS, GROWS_CALLS, FREED = "decoder/MatMul", [1, 9, 90], "encoder/MatMul"
""" + HOLDS + """
t = profiler.profile_operations(options)
row, = [r for r in t if r.name == "encoder/MatMul"]
assert row.outputs == "float32[256,256]", row
assert row.flops == 100 * 2 * 256 ** 3, row
lines = profiler.profile_python(every)
assert any(r.name.endswith(" layer") and r.calls for r in lines), lines
own = opscope.Profiler("own", graph=layer.get_concrete_function(x).graph)
with own:
    layer(x)
t = own.profile_graph()
assert [r.calls for r in t if r.name == "encoder/MatMul"] == [1], t
assert [r.parameters for r in own.profile_model() if r.variables] == [
    256 * 256], own.profile_model()
""")


V1 = """
import numpy as np, opscope, tensorflow as tf
from opscope.compat import tf_profiler
v1 = tf.compat.v1
v1.disable_eager_execution()
x = v1.placeholder(tf.float32, [256, 128], name="x")
with v1.variable_scope("encoder"):
    w = v1.get_variable("w", [128, 64])
    y = tf.nn.relu(tf.matmul(x, w))
with v1.variable_scope("decoder"):
    u = v1.get_variable("u", [64, 128])
    z = tf.matmul(y, u)
loss = tf.reduce_mean(tf.square(z - x))
train = v1.train.GradientDescentOptimizer(0.01).minimize(loss)
feed = {x: np.ones((256, 128), "float32")}
sess = v1.Session()
sess.run(v1.global_variables_initializer())
"""


def test_the_example_of_the_page():
    with open(os.path.join(lib.ROOT, "docs", "python", "tutorials.md"),
              encoding="utf-8") as f:
        part = f.read().split("## An example\n", 1)[1]
    code, shown = re.findall(r"\n((?:    .*\n|\n(?=    ))+)", part)[:2]
    out = lib.python(textwrap.dedent(code), "tensorflow")
    name, said, size = shown.strip().partition("growth_bytes")
    first = out.split("Marks side by side")[1].splitlines()[3]
    assert said and name.strip() in first and size.strip() in first, first
    assert "encoder/MatMul" in out


def test_v1_agrees_with_the_profiler_of_tensorflow():
    lib.python(V1 + """
mine = tf_profiler.Profiler(sess.graph)
theirs = v1.profiler.Profiler(sess.graph)
for step in (1, 10, 100):
    told = v1.RunMetadata()
    sess.run(train, feed, options=v1.RunOptions(
        trace_level=v1.RunOptions.FULL_TRACE), run_metadata=told)
    mine.add_step(step, told)
    theirs.add_step(step, told)

def built(Builder, preset):
    return (Builder(preset).with_max_depth(100).with_step(10)
            .with_min_memory(min_bytes=1).with_empty_output()
            .order_by("bytes").select(["micros", "bytes"]).build())
B, T = opscope.ProfileOptionBuilder, v1.profiler.ProfileOptionBuilder
ours = mine.profile_operations(built(B, B.time_and_memory()))
def flat(node, out):
    for c in node.children:
        out[c.name] = c
        flat(c, out)
    return out
assert ours == mine.profile_operations(built(T, T.time_and_memory()))
ops = flat(theirs.profile_operations(built(T, T.time_and_memory())), {})
for r in ours:
    if r.bytes:
        name = r.name if r.name in ops else r.name.replace("_Mkl", "")
        assert r.bytes == ops[name].requested_bytes, (r, ops[name])
        assert abs(r.host_us - ops[name].exec_micros) <= r.calls + 1, r
sized = [r.bytes for r in ours]
assert sized == sorted(sized, reverse=True) and sized[0], sized

scope = flat(theirs.profile_name_scope(built(T, T.time_and_memory())), {}
             )["encoder"]
t = mine.profile_name_scope(built(B, B.time_and_memory()))
row, = [r for r in t if r.path == "encoder"]
assert row.bytes >= scope.total_requested_bytes > 0, (row, scope)

quiet = lambda preset: T(preset).with_empty_output().build()
scopes = mine.profile_name_scope(B.trainable_variables_parameter())
total = v1.profiler.profile(sess.graph, options=quiet(
    T.trainable_variables_parameter())).total_parameters
assert total == 2 * 128 * 64
assert sum(r.parameters for r in scopes if r.depth == 0) == total, scopes
flops = tf_profiler.profile(sess.graph, options=B.float_operation())
total = v1.profiler.profile(sess.graph, options=quiet(
    T.float_operation())).total_float_ops
assert sum(r.flops or 0 for r in flops if r.depth == 0) == total, flops
for cmd in ("scope", "op", "graph", "code"):
    assert len(tf_profiler.profile(sess.graph, run_meta=told, cmd=cmd)), cmd
assert mine.advise() is not None
assert tf_profiler.advise(sess.graph, told) is not None
import os
assert not os.path.exists("logs")       # nobody asked for files
""", "tensorflow")


def test_v1_at_steps_1_10_and_100_saved_and_loaded():
    _saved_and_loaded(V1 + """
import json
STEPS, history, kept = (1, 10, 100), [], {}
profiler = tf_profiler.Profiler("logs")
options = opscope.ProfileOptionBuilder.time_and_memory()
options["profile_steps"] = "1,10,100"
options["min_bytes"] = 1 << 16
with profiler:
    for step in range(1, 101):
        sess.run(train, feed)
        history.append(sess.run(z, feed))
        if profiler.profile(options):       # by the number of its calls
            kept[step] = sum(h.nbytes for h in history)
assert [m.step for m in profiler.marks] == [1, 10, 100], profiler.marks
every = opscope.ProfileOptionBuilder.time_and_memory(0, 0)
row, = [r._asdict() for r in profiler.compare(options, by="tensor")
        if r.name.endswith("in list __main__.history")]
assert {s: row["bytes_step%d" % s] for s in STEPS} == kept, (row, kept)
ops = {r["name"]: r for r in profiler.compare(every, by="op").dicts()}
assert [ops["decoder/MatMul"]["calls_step%d" % s] for s in STEPS] == [
    2, 18, 180], ops["decoder/MatMul"]
options["scope"] = "decoder"
t = profiler.profile_name_scope(options)
assert t["path"] and all(p.startswith("decoder") for p in t["path"]), t
assert all(r.bytes >= 1 << 16 for r in t), t
options["scope"] = None
profiler.save("saved")
with open("tables.json", "w") as f:
    json.dump([[profiler.profile_operations(options).json(),
                profiler.profile_name_scope(options).json(),
                profiler.profile_graph(every).json(),
                profiler.profile_model(every).json(),
                profiler.profile_python(every).json(),
                profiler.compare(options).json()], options, every], f)
""")


def test_blocks_and_a_model_of_keras():
    lib.python("""
import os, numpy as np, opscope, tensorflow as tf
from opscope.compat import tf_profiler
model = tf.keras.Sequential([
    tf.keras.layers.Input((16,)), tf.keras.layers.Dense(32, name="first"),
    tf.keras.layers.BatchNormalization(), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
data = np.ones((64, 16), "float32"), np.ones((64, 1), "float32")
with tf_profiler.profile("train") as prof:
    model.fit(*data, batch_size=8, verbose=0)
assert [m.key for m in prof.marks] == ["train"] and not prof.is_running
assert any(r.calls >= 8 for r in prof.profile_operations()), prof
t = prof.profile_model(model=model)
assert sum(r.parameters or 0 for r in t if r.depth == 0) == \\
    model.count_params(), t
learn = opscope.ProfileOptionBuilder.trainable_variables_parameter()
assert sum(r.parameters for r in prof.profile_model(learn) if r.depth == 0) \\
    == sum(int(np.prod(v.shape)) for v in model.trainable_variables)
assert sum(r.flops or 0 for r in t if r.depth == 0) > 2 * 16 * 32

# blocks in a Profiler that records are its marks
with opscope.Profiler("logs") as prof:
    tf.ones((8, 8)) @ tf.ones((8, 8))
    for _ in range(2):
        with tf_profiler.profile("eval"):
            model.predict(data[0], verbose=0)
    path = prof.profile_and_save("p", "last", {"min_bytes": "1K"})
assert [m.name for m in prof.marks] == ["before eval", "eval", "before eval",
                                        "eval", "last", "end"], prof.marks
assert path == os.path.abspath("p")
assert prof.profile_and_save("after", "x") and len(prof.marks) == 6
q = opscope.Profiler().load_profile("p")
assert [m.name for m in q.marks] == [m.name for m in prof.marks][:5]
assert q.compare().columns and "us_eval_4" in [c.name for c in
                                               q.compare().columns]

# a decorated function, and a program's own exception
@tf_profiler.profile("epoch", log_dir="decorated")
def epoch():
    tf.ones((8, 8)) @ tf.ones((8, 8))
    raise KeyError("mine")
for _ in range(2):
    try:
        epoch()
    except KeyError:
        pass
assert len(os.listdir("decorated/plugins/profile")) == 2
assert opscope.open("decorated").ops(name="MatMul")[0].calls == 1

# outputs beside the result
B = opscope.ProfileOptionBuilder
o = B(B.time_and_memory()).with_file_output("t.csv").build()
t = prof.profile_operations(o)
with open("t.csv", newline="") as f:
    assert f.read() == t.csv()
o = B(o).with_timeline_output("t.json").build()
t = prof.profile_graph(o)
assert not [r for r in t.remarks if "honoured" in r], t.remarks
assert [r.calls for r in opscope.open("t_before eval.json").ops(top=0)
        if r.name == "MatMul"] == [1]
""", "tensorflow")


def test_what_goes_wrong_is_a_sentence_and_the_program_goes_on():
    with tempfile.TemporaryDirectory() as folder:
        lib.python(WRONG, "tensorflow", folder=folder)
        # it ended without stop()
        path, = glob.glob(os.path.join(folder, "unstopped", "plugins",
                                       "profile", "*", "*.xplane.pb"))
        names = [r["name"] for r in lib.rows_of(lib.result("ops", path))]
        assert "MatMul" in names, names


WRONG = """
import os, sys, threading, warnings
import opscope, tensorflow as tf
warnings.simplefilter("error")
prof = opscope.Profiler("logs")
assert prof.stop() is None
tf.profiler.experimental.start("theirs")
with prof:
    tf.ones((8, 8)) @ tf.ones((8, 8))
tf.profiler.experimental.stop()
t = prof.profile_operations()
assert len(t) == 0 and any("one profiler" in r.lower() for r in t.remarks), t
assert prof.marks[0].memory["process"]["rss_bytes"] > 1 << 20
assert prof.start() is prof and prof.start() is prof
prof.profile(step=1)
threads = [threading.Thread(target=prof.profile, args=(None, i))
           for i in range(2, 5)]
for t in threads: t.start()
for t in threads: t.join()
prof.stop()
assert prof.stop() == prof.folder
assert sorted(m.step or 0 for m in prof.marks) == [0, 0, 1, 2, 3, 4]

late = opscope.Profiler("late")     # profile() before start()
late.profile(step=5)
tf.ones((8, 8)) @ tf.ones((8, 8))
late.profile(step=6)
late.stop()
assert any("start()" in p for p in late.marks[0].problems)
one = opscope.ProfileOptionBuilder().with_step(6).build()
assert [r.calls for r in late.profile_operations(one)
        if r.name == "MatMul"] == [1]
for bad in (lambda: opscope.Profiler(3), lambda: prof.add_step(1, None),
            lambda: prof.add_step(1, tf.compat.v1.RunMetadata()),
            lambda: prof.profile_operations({"step": 77}),
            lambda: prof.profile_model(model=3),
            lambda: opscope.Profiler("/dev/null/x").start(),
            lambda: late.save("/proc/x/y")):
    try:
        bad()
    except opscope.Error as e:
        assert len(str(e)) > 20, e
        continue
    raise AssertionError(bad)
if os.fork() == 0:      # a child of the program is none of the profiler's
    late.stop()
    os._exit(0)
os.wait()
opscope.Profiler("unstopped").start()
tf.ones((8, 8)) @ tf.ones((8, 8))
sys.exit(0)
"""


def test_under_record_the_profiler_has_the_tracer():
    lib.need_package()
    lib.need("tensorflow")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "train.py")
        with open(path, "w") as f:
            f.write("""
import opscope, tensorflow as tf
f = tf.function(lambda x: tf.matmul(x, x))
with opscope.Profiler("own") as prof:
    for i in range(1, 21):
        opscope.step(i)
        f(tf.ones((64, 64)))
        if i in (1, 10):
            prof.profile()
assert [m.step for m in prof.marks] == [1, 10, None], prof.marks
assert [r.calls for r in prof.profile_operations()
        if r.name == "MatMul"] == [20], prof.profile_operations()
steps = [r.step for r in prof.marks[1].read("steps")]
assert steps == list(range(2, 11)), steps
""")
        run = lib.Run(folder, [sys.executable, path],
                      env={"PYTHONPATH": lib.PACKAGE})
        assert run.status == 0, run.err[-600:]
        assert "opscope.Profiler" in run.err, run.err
        assert sum(r["calls"] for r in run.rows("ops")
                   if r["name"].startswith("MatMul")) == 20, run.rows("ops")


if __name__ == "__main__":
    sys.exit(lib.main(sys.modules[__name__]))
