# SPDX-License-Identifier: Apache-2.0
"""A GAN with two tapes and two optimizers, eagerly."""
import tensorflow as tf

import by_hand

STEPS = 40
keras = tf.keras
make = keras.Sequential([keras.layers.Dense(16, activation="relu"),
                         keras.layers.Dense(8)])
judge = keras.Sequential([keras.layers.Dense(16, activation="relu"),
                          keras.layers.Dense(1)])
make_by, judge_by = keras.optimizers.SGD(1e-3), keras.optimizers.SGD(1e-3)


def train_step(real):
    noise = tf.random.normal([16, 4])
    with tf.GradientTape() as one, tf.GradientTape() as two:
        fake = make(noise, training=True)
        good, bad = judge(real, training=True), judge(fake, training=True)
        make_loss = -tf.reduce_mean(bad)
        judge_loss = tf.reduce_mean(bad) - tf.reduce_mean(good)
    make_by.apply_gradients(zip(
        one.gradient(make_loss, make.trainable_variables),
        make.trainable_variables))
    judge_by.apply_gradients(zip(
        two.gradient(judge_loss, judge.trainable_variables),
        judge.trainable_variables))


for i in range(1, STEPS + 1):
    by_hand.tensorflow_at(i)
    train_step(tf.random.normal([16, 8]))
print("steps %d" % STEPS)
