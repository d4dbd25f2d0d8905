# SPDX-License-Identifier: Apache-2.0
"""Optimisation of a function in plain ops of TensorFlow, without Keras."""
META = dict(framework="tensorflow", hint={"not-jitted", "launch-bound"},
            repair="tf.function")


def make(fixed):
    import tensorflow as tf
    w = tf.Variable(tf.random.normal((24, 24)))
    x = tf.random.normal((24, 24))

    def step():
        with tf.GradientTape() as tape:
            y = x
            for _ in range(30):
                y = tf.tanh(tf.matmul(y, w) * 0.5 + 0.1)
            loss = tf.reduce_sum(y * y)
        w.assign_sub(1e-4 * tape.gradient(loss, w))
        return loss
    return tf.function(step) if fixed else step
