# SPDX-License-Identifier: Apache-2.0
"""A loop that marks its steps, from 100 on, for a profiler."""
import tensorflow as tf

w = tf.Variable(tf.random.normal([64, 64]) * 0.1)


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(tf.matmul(x, w)))
    w.assign_sub(1e-6 * tape.gradient(loss, w))
    return loss


for i in range(100, 140):
    with tf.profiler.experimental.Trace("train", step_num=i, _r=1):
        train_step(tf.ones([8, 64]))
print("steps 40")
