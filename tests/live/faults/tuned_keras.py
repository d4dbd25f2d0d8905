# SPDX-License-Identifier: Apache-2.0
"""A compiled Keras model: nothing is wrong with it."""
META = dict(framework="tensorflow", hint=None, repair="(tuned)")


def make(fixed):
    import tensorflow as tf
    model = tf.keras.Sequential([
        tf.keras.layers.Input((48, 48, 3)),
        tf.keras.layers.Conv2D(32, 3, activation="relu"),
        tf.keras.layers.Conv2D(32, 3, activation="relu"),
        tf.keras.layers.GlobalAveragePooling2D(), tf.keras.layers.Dense(10)])
    model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(True))
    x = tf.random.normal((16, 48, 48, 3))
    y = tf.random.uniform((16,), 0, 10, tf.int32)
    return lambda: model.train_on_batch(x, y)
