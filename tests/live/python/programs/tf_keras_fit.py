# SPDX-License-Identifier: Apache-2.0
"""A dense network by Keras' fit, two epochs of 20 batches."""
import os
import time

import numpy as np
import tensorflow as tf

import by_hand


class Clock(tf.keras.callbacks.Callback):
    """Times batches from begin to begin, as a user would."""

    def __init__(self):
        super().__init__()
        self.at = []

    def on_train_batch_begin(self, batch, logs=None):
        by_hand.tensorflow_at(len(self.at) + 1)
        self.at.append(time.perf_counter())


rng = np.random.default_rng(0)
x = rng.normal(size=(640, 64)).astype("float32")
y = rng.normal(size=(640, 1)).astype("float32")
model = tf.keras.Sequential([
    tf.keras.layers.Dense(256, activation="relu", name="hidden"),
    tf.keras.layers.Dense(256, activation="relu", name="second"),
    tf.keras.layers.Dense(1, name="head")])
model.compile("adam", "mse")
clock = Clock()
model.fit(x, y, batch_size=32, epochs=2, verbose=0, callbacks=[clock])
print("steps %d" % len(clock.at))
if os.environ.get("BARE"):
    t = sorted(b - a for a, b in zip(clock.at, clock.at[1:]))
    print("bare_us %.3f" % (1e6 * t[len(t) // 2]))
