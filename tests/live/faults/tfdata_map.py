# SPDX-License-Identifier: Apache-2.0
"""A tf.data map without parallel calls or prefetch."""
META = dict(framework="tensorflow", hint="input-bound",
            repair="mapped beforehand (cache)")


def make(fixed):
    import tensorflow as tf

    def decode(i):
        x = tf.random.stateless_normal((64, 64, 3), [i, 1])
        for _ in range(6):
            x = tf.image.adjust_contrast(tf.tanh(x), 1.1)
        return x

    data = tf.data.Dataset.range(16).map(decode)
    data = data.cache() if fixed else data
    data = iter(data.repeat().batch(8))
    w = tf.Variable(tf.random.normal((64 * 64 * 3, 32)) * 0.01)

    @tf.function
    def train(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.matmul(tf.reshape(x, (8, -1)), w) ** 2)
        w.assign_sub(1e-3 * tape.gradient(loss, w))
        return loss
    return lambda: train(next(data))
