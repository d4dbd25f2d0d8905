# SPDX-License-Identifier: Apache-2.0
"""A monitored session with hooks: what it fetches is not the same in each
run."""
import tempfile

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()
tf1.logging.set_verbosity(tf1.logging.ERROR)
x = tf1.placeholder(tf.float32, [None, 16], name="x")
w = tf1.get_variable("w", [16, 1])
loss = tf.reduce_mean(tf.square(tf.matmul(x, w)))
count = tf1.train.get_or_create_global_step()
train = tf1.train.AdamOptimizer(0.01).minimize(loss, global_step=count)
tf1.summary.scalar("loss", loss)
rng, steps = np.random.default_rng(0), 0
with tempfile.TemporaryDirectory() as folder:
    hooks = [tf1.train.StopAtStepHook(last_step=40),
             tf1.train.SummarySaverHook(save_steps=5, output_dir=folder,
                                        summary_op=tf1.summary.merge_all())]
    with tf1.train.MonitoredTrainingSession(
            checkpoint_dir=folder, hooks=hooks) as session:
        while not session.should_stop():
            session.run([train, loss], {x: rng.normal(size=(32, 16))})
            steps += 1
print("steps %d" % steps)
