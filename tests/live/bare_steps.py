#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a step takes without its profiler: programs that are run in alternation
without one and with one, in the same process, and what opscope makes of the
profiles. Run by hand; nothing of the tests needs it.

    bare_steps.py capture DIR [PATTERN]   profiles into DIR, with what was
                                          measured beside each as JSON
    bare_steps.py compare DIR             the estimates beside the measurements

A program that runs alone on its processor has one time; on a machine that does
other things, too, most steps are disturbed. So the quickest of many steps is
what counts, of both kinds: the window that has the quickest recorded step is
kept. PATTERN is FRAMEWORK/PROGRAM/OPTIONS with * in it. Calibration used the
programs of which FITTED says so, and none of the others.
"""
import fnmatch
import glob
import gzip
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

OPSCOPE = os.environ.get("OPSCOPE", "build/opscope")
STEPS = 8       # recorded in a window
WINDOWS = 12    # of each kind, in alternation
BARE = 40       # steps without a profiler between two windows
# Programs whose captures the figures of overhead.c were drawn from. Those of the
# others were taken when the figures stood.
FITTED = {"torch": {"mlp", "wide", "tiny", "tiny_mix", "cnn", "resnet", "rnn",
                    "transformer", "optimizer", "adam_fused", "views",
                    "python", "eval_mlp", "embed"},
          "tf": {"eager_ops", "eager_mlp", "function", "function_wide",
                 "keras", "keras_eager"},
          "jax": {"eager", "jit", "jit_wide", "grad_eager", "loop"}}

# ---- torch ----

TORCH_OPTIONS = {
    "none": {},
    "shapes": {"record_shapes": True},
    "stack": {"with_stack": True},
    "memory": {"profile_memory": True},
    "flops": {"record_shapes": True, "profile_memory": True,
              "with_flops": True},
    "all": {"record_shapes": True, "profile_memory": True,
            "with_stack": True, "with_modules": True},
}


def torch_programs():
    import torch
    from torch import nn
    from torch.nn import functional as F
    torch.set_num_threads(1)
    torch.manual_seed(0)

    def trained(model, make, opt=None, loss=lambda y: y.pow(2).mean()):
        opt = opt or torch.optim.SGD(model.parameters(), 0.01)

        def step():
            opt.zero_grad()
            loss(model(*make)).backward()
            opt.step()
        return step

    def mlp():
        m = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128),
                          nn.ReLU(), nn.Linear(128, 10))
        return trained(m, (torch.randn(32, 64),))

    def wide():
        m = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(),
                          nn.Linear(1024, 512))
        return trained(m, (torch.randn(128, 512),))

    def tiny():
        x = torch.ones(4)

        def step():
            y = x
            for _ in range(300):
                y = y + 1
        return step

    def tiny_mix():
        x = torch.randn(8, 8)

        def step():
            y = x
            for _ in range(40):
                y = torch.sigmoid(y.t() * 0.5)
                y = y.reshape(4, 16).sum(0).view(4, 4).repeat(2, 2)
                y = torch.cat([y[:4], y[4:]])
        return step

    def cnn():
        m = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(),
                          nn.Conv2d(8, 16, 3, stride=2), nn.BatchNorm2d(16),
                          nn.ReLU(), nn.Flatten(), nn.Linear(16 * 6 * 6, 10))
        return trained(m, (torch.randn(8, 3, 16, 16),))

    def resnet():
        class Block(nn.Module):
            def __init__(self, n):
                super().__init__()
                self.a = nn.Conv2d(n, n, 3, padding=1)
                self.b = nn.Conv2d(n, n, 3, padding=1)
                self.n = nn.BatchNorm2d(n)

            def forward(self, x):
                return F.relu(self.n(self.b(F.relu(self.a(x)))) + x)
        m = nn.Sequential(nn.Conv2d(3, 16, 3), *[Block(16) for _ in range(3)],
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                          nn.Linear(16, 10))
        return trained(m, (torch.randn(8, 3, 32, 32),))

    def rnn():
        cell, out = nn.LSTMCell(16, 32), nn.Linear(32, 4)
        opt = torch.optim.SGD([*cell.parameters(), *out.parameters()], 0.01)
        xs = torch.randn(24, 4, 16)

        def step():
            opt.zero_grad()
            h, c = torch.zeros(4, 32), torch.zeros(4, 32)
            for x in xs:
                h, c = cell(x, (h, c))
            out(h).pow(2).mean().backward()
            opt.step()
        return step

    def transformer():
        m = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0,
                                       batch_first=True), 2,
            enable_nested_tensor=False)
        return trained(m, (torch.randn(4, 16, 64),),
                       torch.optim.AdamW(m.parameters()))

    def optimizer():
        m = nn.Sequential(*[nn.Sequential(nn.Linear(32, 32), nn.LayerNorm(32),
                                          nn.GELU()) for _ in range(6)])
        return trained(m, (torch.randn(8, 32),),
                       torch.optim.Adam(m.parameters(), foreach=False))

    def adam_fused():
        m = nn.Sequential(*[nn.Linear(48, 48) for _ in range(10)])
        return trained(m, (torch.randn(16, 48),),
                       torch.optim.Adam(m.parameters(), foreach=True))

    def views():
        x = torch.randn(16, 16)

        def step():
            for _ in range(60):
                y = x.view(-1).t().reshape(4, 64).detach().unsqueeze(0)
                y.transpose(1, 2).expand(3, 64, 4).select(0, 1)
        return step

    def python():
        x = torch.randn(8, 8)

        def f(n):
            return n if n < 2 else f(n - 1) + f(n - 2)

        def step():
            for _ in range(20):
                f(9)
                torch.mm(x, x)
        return step

    def eval_mlp():
        m = nn.Sequential(*[nn.Sequential(nn.Linear(96, 96), nn.GELU(),
                                          nn.LayerNorm(96))
                            for _ in range(8)]).eval()
        x = torch.randn(16, 96)

        def step():
            with torch.inference_mode():
                m(x)
        return step

    def embed():
        e, head = nn.Embedding(1000, 32), nn.Linear(32, 1000)
        opt = torch.optim.Adam([*e.parameters(), *head.parameters()])
        ids = torch.randint(0, 1000, (8, 12))

        def step():
            opt.zero_grad()
            y = head(e(ids)).view(-1, 1000)
            F.cross_entropy(y, ids.view(-1)).backward()
            opt.step()
        return step

    def gru():
        m, out = nn.GRU(24, 48, batch_first=True), nn.Linear(48, 5)
        opt = torch.optim.RMSprop([*m.parameters(), *out.parameters()])
        x = torch.randn(6, 20, 24)

        def step():
            opt.zero_grad()
            out(m(x)[0][:, -1]).square().mean().backward()
            opt.step()
        return step

    def autoencoder():
        m = nn.Sequential(nn.Conv1d(1, 8, 5, 2), nn.Tanh(), nn.Conv1d(8, 4, 5),
                          nn.Tanh(), nn.ConvTranspose1d(4, 8, 5), nn.Tanh(),
                          nn.ConvTranspose1d(8, 1, 6, 2))
        x = torch.randn(4, 1, 64)
        return trained(m, (x,), torch.optim.NAdam(m.parameters()),
                       lambda y: F.mse_loss(y, x))

    def attention():
        q, k, v = (nn.Linear(32, 32) for _ in range(3))
        ps = [p for m in (q, k, v) for p in m.parameters()]
        opt = torch.optim.SGD(ps, 0.01, momentum=0.9, foreach=False)
        x = torch.randn(2, 24, 32)

        def step():
            opt.zero_grad()
            for _ in range(3):
                a = (q(x) @ k(x).transpose(1, 2) / 5.6).softmax(-1)
                (a @ v(x)).abs().sum().backward()
            opt.step()
        return step

    def sampling():
        g = torch.Generator().manual_seed(1)
        table = torch.randn(200, 16)

        def step():
            found = []
            for _ in range(25):
                i = torch.randint(0, 200, (12,), generator=g)
                d = (table[i] - table[i].mean(0)).norm(dim=1)
                found.append(float(d.max()))
            return max(found)
        return step
    return {f.__name__: f for f in (
        gru, autoencoder, attention, sampling, mlp, wide, tiny, tiny_mix, cnn, resnet, rnn, transformer, optimizer,
        adam_fused, views, python, eval_mlp, embed)}


def torch_window(step, options, path):
    from torch.profiler import ProfilerActivity, profile, schedule
    with profile(activities=[ProfilerActivity.CPU],
                 schedule=schedule(wait=0, warmup=2, active=STEPS, repeat=1),
                 on_trace_ready=lambda p: p.export_chrome_trace(path),
                 **options) as p:
        for _ in range(STEPS + 2):
            step()
            p.step()


# ---- TensorFlow ----

TF_OPTIONS = {"usual": {}, "level1": {"host_tracer_level": 1},
              "level3": {"host_tracer_level": 3}}


def tf_programs():
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)

    def eager_ops():
        x = tf.ones([8, 8])

        def step():
            y = x
            for _ in range(50):
                y = tf.nn.relu(y * 0.5 + 1.0)
            return y
        return step

    def mlp(width=64):
        w = [tf.Variable(tf.random.normal([width, width])) for _ in range(3)]
        x = tf.random.normal([32, width])

        def step():
            with tf.GradientTape() as tape:
                y = x
                for v in w:
                    y = tf.nn.relu(y @ v) * 0.1
                loss = tf.reduce_mean(y * y)
            for v, g in zip(w, tape.gradient(loss, w)):
                v.assign_sub(0.01 * g)
        return step

    def eager_mlp():
        return mlp()

    def function():
        return tf.function(mlp())

    def function_wide():
        return tf.function(mlp(512))

    def keras():
        m = tf.keras.Sequential([tf.keras.layers.Dense(64, "relu"),
                                 tf.keras.layers.Dense(10)])
        m.compile("adam", "mse")
        x, y = tf.random.normal([32, 32]), tf.random.normal([32, 10])
        m.train_on_batch(x, y)
        return lambda: m.train_on_batch(x, y)

    def keras_eager():
        m = tf.keras.Sequential([tf.keras.layers.Dense(64, "relu"),
                                 tf.keras.layers.Dense(10)])
        m.compile("sgd", "mse", run_eagerly=True)
        x, y = tf.random.normal([32, 32]), tf.random.normal([32, 10])
        m.train_on_batch(x, y)
        return lambda: m.train_on_batch(x, y)

    def eager_conv():
        k = tf.Variable(tf.random.normal([3, 3, 3, 8]))
        x = tf.random.normal([4, 16, 16, 3])

        def step():
            with tf.GradientTape() as tape:
                y = tf.nn.relu(tf.nn.conv2d(x, k, 1, "SAME"))
                loss = tf.reduce_sum(tf.nn.max_pool2d(y, 2, 2, "SAME"))
            k.assign_sub(0.001 * tape.gradient(loss, k))
        return step

    def function_loop():
        x = tf.random.normal([16, 16])

        @tf.function
        def step():
            y = x
            for _ in tf.range(20):
                y = tf.tanh(y @ x)
            return y
        return step
    return {f.__name__: f for f in (eager_conv, function_loop,
                                    eager_ops, eager_mlp, function,
                                    function_wide, keras, keras_eager)}


def tf_window(step, options, path):
    import tensorflow as tf
    with tempfile.TemporaryDirectory() as folder:
        o = tf.profiler.experimental.ProfilerOptions(**options)
        tf.profiler.experimental.start(folder, options=o)
        for i in range(STEPS):
            with tf.profiler.experimental.Trace("train", step_num=i, _r=1):
                step()
        tf.profiler.experimental.stop()
        pack(folder, path)


# ---- JAX ----

JAX_OPTIONS = {"usual": {}, "python0": {"python_tracer_level": 0},
               "level1": {"host_tracer_level": 1, "python_tracer_level": 0}}


def jax_programs():
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    import jax.numpy as jnp

    def eager():
        x = jnp.ones((16, 16))

        def step():
            y = x
            for _ in range(30):
                y = jnp.tanh(y @ x + 1.0)
            y.block_until_ready()
        return step

    def loss(w, x):
        for v in w:
            x = jnp.maximum(x @ v, 0) * 0.1
        return (x * x).mean()

    def update(w, x):
        g = jax.grad(loss)(w, x)
        return [v - 0.01 * d for v, d in zip(w, g)]

    def jitted(width):
        w = [jnp.ones((width, width)) * 0.01 for _ in range(3)]
        x = jnp.ones((32, width))
        f = jax.jit(update)

        def step():
            jax.block_until_ready(f(w, x))
        return step

    def jit():
        return jitted(64)

    def jit_wide():
        return jitted(512)

    def grad_eager():
        w = [jnp.ones((16, 16)) * 0.01 for _ in range(2)]
        x = jnp.ones((8, 16))

        def step():
            jax.block_until_ready(update(w, x))
        return step

    def loop():
        f = jax.jit(lambda x: jnp.sin(x) * 2)
        x = jnp.ones(64)

        def step():
            y = x
            for _ in range(40):
                y = f(y)
            y.block_until_ready()
        return step

    def scan():
        f = jax.jit(lambda x: jax.lax.scan(
            lambda c, _: (jnp.tanh(c @ x), None), x, None, length=50)[0])
        x = jnp.ones((24, 24)) * 0.1

        def step():
            f(x).block_until_ready()
        return step

    def shapes():
        x = jnp.arange(64.0)

        def step():
            y = x
            for _ in range(12):
                y = jnp.concatenate([y.reshape(8, 8).T.ravel()[:32], y[32:]])
            y.block_until_ready()
        return step
    return {f.__name__: f for f in (scan, shapes, eager, jit, jit_wide,
                                    grad_eager, loop)}


def jax_window(step, options, path):
    import jax
    o = jax.profiler.ProfileOptions()
    for k, v in options.items():
        setattr(o, k, v)
    with tempfile.TemporaryDirectory() as folder:
        jax.profiler.start_trace(folder, profiler_options=o)
        for i in range(STEPS):
            with jax.profiler.StepTraceAnnotation("train", step_num=i):
                step()
        jax.profiler.stop_trace()
        pack(folder, path)


def pack(folder, path):
    found = glob.glob(folder + "/**/*.xplane.pb", recursive=True)
    with open(found[0], "rb") as f, gzip.open(path, "wb") as out:
        shutil.copyfileobj(f, out)


# ---- capture ----

KINDS = {"torch": (torch_programs, torch_window, TORCH_OPTIONS,
                   ".pt.trace.json.gz"),
         "tf": (tf_programs, tf_window, TF_OPTIONS, ".xplane.pb.gz"),
         "jax": (jax_programs, jax_window, JAX_OPTIONS, ".xplane.pb.gz")}


def rows_of(path):
    p = subprocess.run([OPSCOPE, "steps", path, "--format", "json"],
                       stdout=subprocess.PIPE, check=True)
    doc = json.loads(p.stdout)
    names = [c["name"] for c in doc["columns"]]
    return [dict(zip(names, r)) for r in doc["rows"]]


def quickest(path):
    """The quickest step; not the last, which has no way to the next one, nor
    the first, in which the profiler starts."""
    return min(rows_of(path)[1:-1], key=lambda r: r["dur_us"])


def capture(folder, pattern):
    os.makedirs(folder, exist_ok=True)
    for kind, (programs, window, sets, suffix) in KINDS.items():
        if not fnmatch.fnmatch(kind, pattern.split("/")[0]):
            continue
        for name, make in programs().items():
            wanted = [o for o in sets
                      if fnmatch.fnmatch("%s/%s/%s" % (kind, name, o), pattern)]
            if not wanted:
                continue
            step = make()
            for _ in range(20):
                step()
            for options in wanted:
                one(folder, "%s.%s.%s" % (kind, name, options), suffix, step,
                    lambda path: window(step, sets[options], path))


def one(folder, name, suffix, step, record):
    bare, best = [], None
    path, part = folder + "/" + name + suffix, folder + "/part" + \
        str(os.getpid()) + suffix
    for _ in range(WINDOWS):
        for _ in range(BARE):
            a = time.perf_counter()
            step()
            bare.append((time.perf_counter() - a) * 1e6)
        record(part)
        try:
            q = quickest(part)
        except (ValueError, subprocess.CalledProcessError):
            continue
        if best is None or q["dur_us"] < best["dur_us"]:
            best = q
            os.replace(part, path)
    if os.path.exists(part):
        os.remove(part)
    bare.sort()
    truth = {"bare_us": round(bare[len(bare) // 50], 1),
             "bare_min_us": round(bare[0], 1),
             "bare_median_us": round(statistics.median(bare), 1),
             "step": best["step"], "recorded_us": best["dur_us"]}
    with open(folder + "/" + name + ".json", "w") as f:
        json.dump(truth, f, indent=1)
    print(name, truth, flush=True)


# ---- compare ----

def compare(folder):
    inside = within = n = 0
    for file in sorted(glob.glob(folder + "/*.json")):
        if ".trace." in file:
            continue
        with open(file) as f:
            truth = json.load(f)
        path = glob.glob(file[:-5] + ".*.gz")[0]
        row = next(r for r in rows_of(path) if r["step"] == truth["step"])
        want, got = truth["bare_us"], row["bare_us"]
        low = row["bare_low_us"] if row["bare_low_us"] is not None else got
        high = row["bare_high_us"] if row["bare_high_us"] is not None else got
        ok = low <= want <= high
        n += 1
        inside += ok
        within += abs(got / want - 1) <= 0.25
        kind, program, _ = os.path.basename(file).split(".")[:3]
        print("%-28s %s recorded %8.0f  bare %8.0f  told %8.0f (%8.0f to "
              "%8.0f) %+4.0f %% %s" % (
                  os.path.basename(file)[:-5],
                  "fitted " if program in FITTED.get(kind, ()) else "heldout",
                  row["dur_us"], want, got, low, high, 100 * (got / want - 1),
                  "" if ok else "OUTSIDE"))
    print("%d of %d inside the range, %d within 25 %%" % (inside, n, within))


if __name__ == "__main__":
    if len(sys.argv) >= 3 and sys.argv[1] == "capture":
        capture(sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else "*/*/*")
    elif len(sys.argv) == 3 and sys.argv[1] == "compare":
        compare(sys.argv[2])
    else:
        sys.exit(__doc__)
