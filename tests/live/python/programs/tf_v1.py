# SPDX-License-Identifier: Apache-2.0
"""A session of TensorFlow 1, by tf.compat.v1."""
import os
import time

import numpy as np
import tensorflow as tf

import by_hand

tf1 = tf.compat.v1
tf1.disable_eager_execution()
STEPS = 40
x = tf1.placeholder(tf.float32, [None, 64], name="x")
with tf1.variable_scope("hidden"):
    w = tf1.get_variable("w", [64, 128])
    h = tf.nn.relu(tf.matmul(x, w))
with tf1.variable_scope("head"):
    v = tf1.get_variable("v", [128, 1])
    out = tf.matmul(h, v)
loss = tf.reduce_mean(tf.square(out - 1.0))
train = tf1.train.GradientDescentOptimizer(0.01).minimize(loss)
batch = np.random.default_rng(0).normal(size=(128, 64)).astype("float32")
times = []
with tf1.Session() as sess:
    sess.run(tf1.global_variables_initializer())
    for step in range(STEPS):
        by_hand.tensorflow_at(step + 1)
        begin = time.perf_counter()
        _, value = sess.run([train, loss], feed_dict={x: batch})
        times.append(time.perf_counter() - begin)
print("loss %.3f steps %d" % (value, STEPS))
if os.environ.get("BARE"):
    print("bare_us %.3f" % (1e6 * sorted(times)[STEPS // 2]))
