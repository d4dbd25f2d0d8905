# SPDX-License-Identifier: Apache-2.0
"""Batches from a Python generator that does numpy work."""
META = dict(framework="tensorflow", hint="input-bound",
            repair="batches made beforehand")


def make(fixed):
    import numpy as np
    import tensorflow as tf
    rng = np.random.default_rng(0)

    def batches():
        ready = None
        while True:
            if ready is None or not fixed:
                x = rng.standard_normal((32, 1024))
                ready = np.sort(np.tanh(x), -1).astype("f")
            yield ready

    data = iter(tf.data.Dataset.from_generator(
        batches, output_signature=tf.TensorSpec((32, 1024), tf.float32)))
    w = tf.Variable(tf.random.normal((1024, 128)) * 0.01)

    @tf.function
    def train(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.matmul(x, w) ** 2)
        w.assign_sub(1e-3 * tape.gradient(loss, w))
        return loss
    return lambda: train(next(data))
