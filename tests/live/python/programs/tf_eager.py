# SPDX-License-Identifier: Apache-2.0
"""A loop of one's own, eagerly."""
import os
import time

import tensorflow as tf

import by_hand

STEPS = 40
w1 = tf.Variable(tf.random.normal([64, 256], stddev=0.1), name="w1")
w2 = tf.Variable(tf.random.normal([256, 10], stddev=0.1), name="w2")
optimizer = tf.keras.optimizers.SGD(0.01)


def train_step(x, y):
    with tf.GradientTape() as tape:
        hidden = tf.nn.relu(tf.matmul(x, w1))
        loss = tf.reduce_mean(tf.square(tf.matmul(hidden, w2) - y))
    grads = tape.gradient(loss, [w1, w2])
    optimizer.apply_gradients(zip(grads, [w1, w2]))
    return loss


times = []
for step in range(STEPS):
    by_hand.tensorflow_at(step + 1)
    begin = time.perf_counter()
    loss = train_step(tf.random.normal([128, 64]), tf.zeros([128, 10]))
    times.append(time.perf_counter() - begin)
print("loss %.3f steps %d" % (float(loss), STEPS))
if os.environ.get("BARE"):
    print("bare_us %.3f" % (1e6 * sorted(times)[STEPS // 2]))
