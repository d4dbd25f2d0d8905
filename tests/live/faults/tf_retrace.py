# SPDX-License-Identifier: Apache-2.0
"""A tf.function that is handed a Python number, new in each step."""
META = dict(framework="tensorflow", hint="recompile",
            repair="a tensor instead of a number")


def make(fixed):
    import tensorflow as tf
    w = [tf.Variable(tf.random.normal((32, 32))) for _ in range(6)]
    x = tf.random.normal((16, 32))

    @tf.function
    def train(rate):
        with tf.GradientTape() as tape:
            y = x
            for v in w:
                y = tf.nn.relu(tf.matmul(y, v))
            loss = tf.reduce_mean(y * y)
        for v, g in zip(w, tape.gradient(loss, w)):
            v.assign_sub(rate * g)
        return loss
    state = {"rate": 1e-3}

    def step():
        state["rate"] *= 0.999
        return train(tf.constant(state["rate"]) if fixed else state["rate"])
    return step
