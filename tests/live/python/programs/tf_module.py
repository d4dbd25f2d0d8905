# SPDX-License-Identifier: Apache-2.0
"""A tf.Module without Keras and without an optimizer, eagerly: the tape is all
that repeats."""
import numpy as np
import tensorflow as tf

import by_hand

STEPS = 40


class Linear(tf.Module):
    def __init__(self, inputs, outputs, name):
        super().__init__(name=name)
        self.w = tf.Variable(tf.random.normal([inputs, outputs]) * 0.1)
        self.b = tf.Variable(tf.zeros([outputs]))

    def __call__(self, x):
        return tf.matmul(x, self.w) + self.b


hidden, head = Linear(16, 64, "hidden"), Linear(64, 1, "head")
variables = hidden.trainable_variables + head.trainable_variables
rng = np.random.default_rng(0)
for i in range(1, STEPS + 1):
    by_hand.tensorflow_at(i)
    x = rng.normal(size=(64, 16)).astype("float32")
    with tf.GradientTape() as tape:
        out = head(tf.nn.relu(hidden(x)))
        loss = tf.reduce_mean(tf.square(out - x.sum(1, keepdims=True)))
    for v, g in zip(variables, tape.gradient(loss, variables)):
        v.assign_sub(0.01 * g)
print("steps %d" % STEPS)
