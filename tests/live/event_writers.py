#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Event files as the frameworks write them, and what TensorBoard reads in them.

  event_writers.py OUT [WRITER...]   writes OUT/<writer>/..., then OUT/truth.json

The files in tests/data/tfevents were made by it. Each writer is one function;
what cannot be imported is left out. truth.json holds, for each run folder, what
TensorBoard's own EventAccumulator gives: {run: {tag: [[step, wall, value]]}},
NaN and infinities as texts."""

import json
import math
import os
import sys

POINTS = 12


def loss(step):
    return 2.5 * math.exp(-0.2 * step) + 0.1


def use_torch(out):
    """simple_value; new style (a tensor); histogram, text, image, hparams."""
    import torch
    from torch.utils.tensorboard import SummaryWriter
    with SummaryWriter(out) as w:
        for i in range(POINTS):
            w.add_scalar("loss", loss(i), i)
            w.add_scalar("new/style", loss(i) / 3, i, new_style=True)
            w.add_scalar("new/double", loss(i) / 7, i, new_style=True,
                         double_precision=True)
            w.add_scalar("sick", float("nan") if i > 8 else
                         float("inf") if i == 4 else i, i)
        torch.manual_seed(1)
        for i in range(3):
            w.add_histogram("weights", torch.randn(100) * (i + 1), i)
        w.add_text("note", "first line\nsecond line", 1)
        w.add_text("note", "later", 2)
        w.add_image("picture", torch.zeros(3, 4, 4), 1)
        w.add_hparams({"lr": 0.1}, {"hparam/best": 0.5})


def use_torch_restart(out):
    """Twenty steps; then again from step 12, said with purge_step."""
    from torch.utils.tensorboard import SummaryWriter
    with SummaryWriter(out, filename_suffix=".1") as w:
        for i in range(20):
            w.add_scalar("loss", loss(i), i, walltime=1.7e9 + i)
            w.add_scalar("lr", 0.1, i, walltime=1.7e9 + i)
    with SummaryWriter(out, purge_step=12, filename_suffix=".2") as w:
        for i in range(12, 24):
            w.add_scalar("loss", -loss(i), i, walltime=1.7e9 + 100 + i)
            w.add_scalar("lr", 0.2, i, walltime=1.7e9 + 100 + i)


def use_tensorboardX(out):
    import numpy
    from tensorboardX import SummaryWriter
    with SummaryWriter(out) as w:
        for i in range(POINTS):
            w.add_scalar("loss", loss(i), i)
            w.add_scalar("über/größe", -i, i * 1000000007)
        w.add_histogram("weights", numpy.arange(50.0), 3)
        w.add_text("note", "from tensorboardX", 5)


def use_tf2(out):
    """Tensors of every type that a scalar may have; histogram, text, and the
    RunMetadata of a traced function."""
    import tensorflow as tf
    w = tf.summary.create_file_writer(out)
    meta = tf.compat.v1.SummaryMetadata(
        plugin_data=tf.compat.v1.SummaryMetadata.PluginData(
            plugin_name="scalars"))
    kinds = [tf.float16, tf.bfloat16, tf.float64, tf.int8, tf.uint8, tf.int16,
             tf.uint16, tf.int32, tf.int64, tf.uint32, tf.uint64, tf.bool]
    with w.as_default():
        for i in range(POINTS):
            tf.summary.scalar("loss", loss(i), step=i)
            for k in kinds:
                v = tf.cast(i if k.is_integer or k == tf.bool else loss(i), k)
                tf.summary.write("type/" + k.name, v, step=i, metadata=meta)
        tf.summary.histogram("weights", tf.range(60.0), step=4, buckets=6)
        tf.summary.text("note", "from TensorFlow", step=2)

        @tf.function
        def f(x):
            return x * x + 1
        tf.summary.trace_on(graph=True)
        f(tf.constant(2.0))
        tf.summary.trace_export("traced", step=7)
    w.close()


def use_tf1(out):
    """A session with RunMetadata at two steps, and a restart."""
    import tensorflow.compat.v1 as tf
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [4, 4], name="x")
        y = tf.reduce_sum(tf.matmul(x, x), name="y")
        merged = tf.summary.merge([tf.summary.scalar("y_sum", y),
                                   tf.summary.histogram("x_values", x)])
        w = tf.summary.FileWriter(out, session.graph)
        full = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        for i in range(POINTS):
            feed = {x: [[float(i)] * 4] * 4}
            if i in (3, 9):
                meta = tf.RunMetadata()
                s = session.run(merged, feed, options=full, run_metadata=meta)
                w.add_run_metadata(meta, "step%d" % i, i)
                with open(os.path.join(out, "run_metadata_%d.pb" % i),
                          "wb") as f:
                    f.write(meta.SerializeToString())
            else:
                s = session.run(merged, feed)
            w.add_summary(s, i)
        w.add_session_log(tf.SessionLog(status=tf.SessionLog.START), 10)
        for i in (10, 11, 12):
            w.add_summary(session.run(merged, {x: [[-1.0] * 4] * 4}), i)
        w.close()


WRITERS = {"torch": use_torch, "torch_restart": use_torch_restart,
           "tensorboardX": use_tensorboardX, "tf2": use_tf2, "tf1": use_tf1}


def plain(v):
    return v if math.isfinite(v) else str(v)


def number_in(tensor):
    """TensorBoard knows not all of TensorFlow's types."""
    try:
        from tensorflow import make_ndarray
    except ImportError:
        from tensorboard.util.tensor_util import make_ndarray
    return float(make_ndarray(tensor).astype("float64"))


def scalars_of(folder):
    """What TensorBoard reads there: {tag: [[step, wall, value]]}."""
    from tensorboard.backend.event_processing import event_accumulator as ea
    acc = ea.EventAccumulator(folder, size_guidance={
        "scalars": 0, "tensors": 0, "histograms": 0})
    acc.Reload()
    found = {}
    for tag in acc.Tags()["scalars"]:
        found[tag] = [[e.step, e.wall_time, plain(e.value)]
                      for e in acc.Scalars(tag)]
    for tag in acc.Tags()["tensors"]:
        points = []
        meta = acc.SummaryMetadata(tag).plugin_data.plugin_name
        for e in acc.Tensors(tag):
            if meta == "scalars":
                points.append([e.step, e.wall_time,
                               plain(number_in(e.tensor_proto))])
        if points:
            found[tag] = points
    return found


def truth_of(out):
    truth = {}
    for folder, _, names in sorted(os.walk(out)):
        if any("tfevents" in n for n in names):
            truth[os.path.relpath(folder, out)] = scalars_of(folder)
    return truth


def write_all(out, names):
    """Writes with each writer that can be imported; returns those that cannot,
    with the reason."""
    missing = {}
    for name in names:
        try:
            os.makedirs(os.path.join(out, name), exist_ok=True)
            WRITERS[name](os.path.join(out, name))
        except ImportError as x:
            missing[name] = str(x)
            os.rmdir(os.path.join(out, name))
    return missing


def main(out, *names):
    for name, why in write_all(out, names or list(WRITERS)).items():
        print("left out %s: %s" % (name, why), file=sys.stderr)
    with open(os.path.join(out, "truth.json"), "w") as f:
        json.dump(truth_of(out), f, indent=0, sort_keys=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
