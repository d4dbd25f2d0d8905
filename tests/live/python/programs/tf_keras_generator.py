# SPDX-License-Identifier: Apache-2.0
"""fit() on a slow Python generator, two epochs, several batches in one
execution where asked."""
import os
import time

import keras
import numpy as np

import by_hand


class Count(keras.callbacks.Callback):
    n = 0

    def on_train_batch_begin(self, batch, logs=None):
        Count.n += 1
        by_hand.tensorflow_at(Count.n)


def batches():
    rng = np.random.default_rng(0)
    while True:
        time.sleep(0.004)
        yield (rng.normal(size=(16, 16)).astype("float32"),
               rng.integers(0, 4, 16))


model = keras.Sequential([keras.layers.Dense(32, activation="relu"),
                          keras.layers.Dense(4, activation="softmax")])
model.compile("adam", "sparse_categorical_crossentropy",
              steps_per_execution=int(os.environ.get("AT_ONCE", "1")))
model.fit(batches(), steps_per_epoch=20, epochs=2, verbose=0, shuffle=False,
          callbacks=[Count()])
print("steps %d" % Count.n)
