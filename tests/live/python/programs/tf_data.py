# SPDX-License-Identifier: Apache-2.0
"""A loop over tf.data whose map is slow."""
import os
import time

import numpy as np
import tensorflow as tf

import by_hand

STEPS = 40


def slow(i):
    time.sleep(0.004)
    return np.full(64, i, dtype="float32")


def load(i):
    x = tf.numpy_function(slow, [i], tf.float32)
    x.set_shape([64])
    return x


data = tf.data.Dataset.range(STEPS * 2).map(load).batch(2)
w = tf.Variable(tf.random.normal([64, 64], stddev=0.1))


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w)))
    w.assign_sub(0.0001 * tape.gradient(loss, w))
    return loss


times, begin, n = [], time.perf_counter(), 0
for batch in data:
    by_hand.tensorflow_at(n + 1)
    loss = train_step(batch)
    n += 1
    now = time.perf_counter()
    times.append(now - begin)
    begin = now
print("loss %.3f steps %d" % (float(loss), n))
if os.environ.get("BARE"):
    print("bare_us %.3f" % (1e6 * sorted(times)[len(times) // 2]))
