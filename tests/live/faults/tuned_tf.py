# SPDX-License-Identifier: Apache-2.0
"""A tf.function over ready batches: nothing is wrong with it."""
META = dict(framework="tensorflow", hint=None, repair="(tuned)")


def make(fixed):
    import tensorflow as tf
    data = tf.data.Dataset.from_tensors(tf.random.normal((256, 256)))
    data = iter(data.cache().repeat().prefetch(4))
    ws = [tf.Variable(tf.random.normal((256, 256)) * 0.05) for _ in range(6)]

    @tf.function
    def train(x):
        with tf.GradientTape() as tape:
            y = x
            for w in ws:
                y = tf.nn.relu(tf.matmul(y, w))
            loss = tf.reduce_mean(y * y)
        for w, g in zip(ws, tape.gradient(loss, ws)):
            w.assign_sub(1e-3 * g)
        return loss
    return lambda: train(next(data))
