# SPDX-License-Identifier: Apache-2.0
"""A training loop of TensorFlow that runs op by op."""
META = dict(framework="tensorflow", hint={"not-jitted", "launch-bound"},
            repair="tf.function")


def make(fixed):
    import tensorflow as tf
    model = tf.keras.Sequential(
        [tf.keras.layers.Dense(32, activation="tanh") for _ in range(8)]
        + [tf.keras.layers.Dense(4)])
    x, y = tf.random.normal((16, 32)), tf.random.normal((16, 4))
    model(x)
    opt = tf.keras.optimizers.SGD(0.01)
    opt.build(model.trainable_variables)

    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
        grads = tape.gradient(loss, model.trainable_variables)
        opt.apply_gradients(zip(grads, model.trainable_variables))
        return loss
    return tf.function(step) if fixed else step
