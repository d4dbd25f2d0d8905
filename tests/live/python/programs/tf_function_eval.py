# SPDX-License-Identifier: Apache-2.0
"""Epochs in a tf.function, and after each a validation over a loader of its
own: its batches are no steps."""
import numpy as np
import tensorflow as tf

import by_hand

x = np.random.default_rng(0).normal(size=(240, 16)).astype("float32")
train = tf.data.Dataset.from_tensor_slices(x).shuffle(240).batch(16)
valid = tf.data.Dataset.from_tensor_slices(x[:128]).batch(16)
model = tf.keras.Sequential([tf.keras.layers.Dense(32, activation="relu"),
                             tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.Adam()
mean = tf.keras.metrics.Mean()


@tf.function
def train_step(batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(batch, training=True)))
    grads = tape.gradient(loss, model.trainable_weights)
    optimizer.apply_gradients(zip(grads, model.trainable_weights))
    return loss


@tf.function
def valid_step(batch):
    mean.update_state(tf.reduce_mean(tf.square(model(batch))))


steps = 0
for epoch in range(3):
    for batch in train:
        steps += 1
        by_hand.tensorflow_at(steps)
        train_step(batch)
    for batch in valid:
        valid_step(batch)
print("steps %d" % steps)
