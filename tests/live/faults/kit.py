# SPDX-License-Identifier: Apache-2.0
"""What the programs of this folder share: where they run, how a step is waited
for, how one step is marked and how several are captured, by framework.

A program is a module with

    META = dict(framework="torch", hint="recompute", repair="no checkpoints")
    def make(fixed): ...     returns step(), which runs one step

`hint` is the id that should come first, a set of ids where several are right,
or None: nothing is wrong with it. META may have device="cuda" for a fault that
only a GPU has."""
import contextlib
import glob
import os
import shutil


def device():
    """The torch device that programs run on: $FAULTS_DEVICE, else cuda where
    there is one."""
    import torch
    want = os.environ.get("FAULTS_DEVICE")
    return want or ("cuda" if torch.cuda.is_available() else "cpu")


def on_gpu():
    return device() == "cuda"


class Torch:
    STEPS, SKIP = 6, 1      # recorded, and before that for CUPTI to get ready

    def __init__(self):
        import torch
        self.torch = torch
        torch.manual_seed(1)
        if not on_gpu():
            torch.set_num_threads(1)

    def load(self):
        self.torch.zeros(1, device=device())

    def wait(self, _):
        if on_gpu():
            self.torch.cuda.synchronize()

    @contextlib.contextmanager
    def mark(self, i):
        yield
        self.profiler.step()

    # What the profiler was asked for; the first is what hints are judged by.
    SETS = {"usual": dict(record_shapes=True, profile_memory=True),
            "none": {},
            "all": dict(record_shapes=True, profile_memory=True,
                        with_stack=True, with_flops=True)}

    @contextlib.contextmanager
    def capture(self, path, options):
        from torch.profiler import ProfilerActivity, profile, schedule
        acts = [ProfilerActivity.CPU]
        if on_gpu():
            acts.append(ProfilerActivity.CUDA)
        # Without a schedule torch marks no steps.
        plan = schedule(wait=0, warmup=self.SKIP, active=self.STEPS,
                        repeat=1)

        def done(profiler):
            profiler.export_chrome_trace(path + ".pt.trace.json.gz")
        with profile(activities=acts, schedule=plan, on_trace_ready=done,
                     **options) as self.profiler:
            yield


class Xspace:
    """What TensorFlow and JAX share: a log folder, out of which the one file is
    taken."""
    STEPS, SKIP = 6, 0
    SETS = {"usual": {}}

    def load(self):
        pass

    @contextlib.contextmanager
    def capture(self, path, options):
        logs = path + ".logs"
        shutil.rmtree(logs, ignore_errors=True)
        self.start(logs, options)
        yield
        self.stop()
        (found,) = glob.glob(logs + "/plugins/profile/*/*.xplane.pb")
        os.replace(found, path + ".xplane.pb")
        shutil.rmtree(logs)


class TensorFlow(Xspace):
    def __init__(self):
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        import tensorflow as tf
        self.tf = tf
        tf.random.set_seed(1)

    def wait(self, value):
        for v in self.tf.nest.flatten(value):
            if hasattr(v, "numpy"):
                v.numpy()

    def mark(self, i):
        return self.tf.profiler.experimental.Trace("train", step_num=i, _r=1)

    def start(self, logs, options):
        self.tf.profiler.experimental.start(logs)

    def stop(self):
        self.tf.profiler.experimental.stop()


class Jax(Xspace):
    SETS = {"usual": {}, "none": {"python_tracer_level": 0}}

    def __init__(self):
        import jax
        self.jax = jax

    def wait(self, value):
        self.jax.block_until_ready(value)

    def mark(self, i):
        return self.jax.profiler.StepTraceAnnotation("train", step_num=i)

    def start(self, logs, options):
        asked = self.jax.profiler.ProfileOptions()
        for name, value in options.items():
            setattr(asked, name, value)
        self.jax.profiler.start_trace(logs, profiler_options=asked)

    def stop(self):
        self.jax.profiler.stop_trace()


FRAMEWORKS = {"torch": Torch, "tensorflow": TensorFlow, "jax": Jax}


# ---- models that several programs use ----

def torch_train(model, batch, loss, lr=1e-3, optimizer=None, autocast=False):
    """A training step of torch: batch() gives the inputs and the target."""
    import torch
    opt = optimizer or torch.optim.SGD(model.parameters(), lr=lr)

    def step():
        x, y = batch()
        opt.zero_grad(set_to_none=True)
        with torch.autocast(device(), torch.bfloat16, enabled=autocast):
            value = loss(model(x), y)
        value.backward()
        opt.step()
        return value
    return step


def torch_fixed_batch(*tensors):
    """The same batch each time, on the device already."""
    moved = tuple(t.to(device()) for t in tensors)
    return lambda: moved
