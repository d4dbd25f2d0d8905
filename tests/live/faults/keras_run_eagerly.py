# SPDX-License-Identifier: Apache-2.0
"""Keras with run_eagerly=True, forgotten after debugging."""
META = dict(framework="tensorflow", hint={"not-jitted", "launch-bound"},
            repair="run_eagerly=False")


def make(fixed):
    import numpy as np
    import tensorflow as tf
    model = tf.keras.Sequential([
        tf.keras.layers.Input((16, 16, 1)),
        tf.keras.layers.Conv2D(8, 3, activation="relu"),
        tf.keras.layers.Conv2D(8, 3, activation="relu"),
        tf.keras.layers.BatchNormalization(),
        tf.keras.layers.Flatten(), tf.keras.layers.Dense(10)])
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(True),
                  run_eagerly=not fixed, jit_compile=False)
    x = np.random.rand(8, 16, 16, 1).astype("f")
    y = np.random.randint(0, 10, 8)
    return lambda: model.train_on_batch(x, y)
