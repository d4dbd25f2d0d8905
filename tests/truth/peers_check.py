#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch profiles of kinds that other tools bring as their test data, made
here with known answers: collectives of a part of the job, queues of an MTIA.

usage: peers_check.py      program: $OPSCOPE or build/opscope
"""
import json
import os
import sys
import tempfile

from lib import rows, say, status

HOST = 100  # pid and tid of the program's thread


def differ(what, got, want):
    return [] if got == want else ["%s: %s, should be %s" % (what, got, want)]


def span(cat, name, ts, dur, pid=HOST, tid=HOST, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid,
            "ts": ts, "dur": dur, "args": args}


def launch(ts, corr, name="cudaLaunchKernel", dur=2):
    return span("cuda_runtime", name, ts, dur, correlation=corr)


def kernel(name, ts, dur, corr, stream=7, cat="kernel", **args):
    return span(cat, name, ts, dur, 0, stream, device=0, stream=stream,
                correlation=corr, **args)


def write(dir, events, **keys):
    path = os.path.join(dir, "rank0.pt.trace.json")
    doc = {"schemaVersion": 1,
           "deviceProperties": [{"id": i, "name": "NVIDIA A100"}
                                for i in range(8)]}
    doc.update(keys, traceEvents=events)
    with open(path, "w") as f:
        json.dump(doc, f)
    return path


def gathers(call, dims, inner, kernel_name, n):
    """n collectives of a group of 8 in a job of 16: the op has both shapes,
    what is recorded inside of it only what goes in."""
    out = []
    for i in range(n):
        at = 100 * i
        out += [span("cpu_op", call, at, 50,
                     **{"Input Dims": dims + [[]],
                        "Input type": ["float", "float", ""]}),
                span("cpu_op", "record_param_comms", at + 5, 30,
                     **{"Input Dims": [inner], "Input type": ["float"]}),
                launch(at + 10, i + 1), kernel(kernel_name, at + 20, 40, i + 1)]
    return out


def check_group(dir):
    small, large = [8192, 64], [65536, 64]
    whole = 65536 * 64 * 4
    for name, call, dims, inner, kern in (
            ("all_gather", "c10d::_allgather_base_", [large, small], small,
             "ncclDevKernel_AllGather_RING_LL(x)"),
            ("reduce_scatter", "c10d::_reduce_scatter_base_", [small, large],
             large, "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(x)")):
        path = write(dir, gathers(call, dims, inner, kern, 35),
                     distributedInfo={"rank": 0, "world_size": 16})
        got = rows("comm", path)
        wrong = differ("rows", len(got), 1)
        r = got[0]
        wrong += differ("kind", r["kind"], name)
        wrong += differ("group", r["group_size"], 8)
        wrong += differ("bytes", r["bytes"], 35 * whole)
        bus = 35 * whole * 7 / 8 / (35 * 40e-6) / 1e9
        if abs(float(r["bus_gb_per_s"]) - bus) > 0.001 * bus:
            wrong.append("bus %s, should be %s" % (r["bus_gb_per_s"], bus))
        say("the shapes tell how many ranks took part: " + name, wrong)


def check_queues(dir):
    """An MTIA: waits are no work, transfers have a direction and a size."""
    def queue(name, ts, dur, **args):
        return span("mtia_ccp_events", name, ts, dur, 9, 31, stream=3, **args)
    path = write(dir, [
        {"ph": "M", "name": "process_labels", "pid": 9, "tid": 0,
         "args": {"labels": "MTIA 9"}},
        span("cpu_op", "aten::add", 0, 100),
        queue("event_wait", 0, 50, wait_on_stream=4),
        queue("merge", 50, 20),
        queue("event_record", 70, 1),
        queue("dma_request", 80, 10, direction="HOST_TO_DEVICE", size=65536),
        queue("dma_request", 90, 5, direction="DEVICE_TO_HOST", size=512)],
        deviceProperties=[{"id": 9, "name": "ARTEMIS"}],
        INFO=["INFO: Tracing starting"])
    got = {r["kind"]: (r["calls"], r["bytes"], r["total_us"])
           for r in rows("copies", path)}
    wrong = differ("copies", got, {"h2d": (1, 65536, 10), "d2h": (1, 512, 5)})
    s = rows("steps", path)[0]
    wrong += differ("compute", s["compute_us"], 20)
    wrong += differ("copy", s["copy_us"], 15)
    names = [(r["name"], r["device"]) for r in rows("kernels", path)]
    wrong += differ("kernels", names, [("merge", "MTIA 9")])
    metrics = [r["metric"] for r in rows("info", path)]
    wrong += differ("a log", "INFO" in metrics, False)
    say("queues of an MTIA", wrong)


def check_devices(dir):
    path = write(dir, [launch(0, 1), kernel("k", 5, 5, 1)])
    got = [(r["metric"], r["text"]) for r in rows("info", path)
           if r["metric"].startswith("device")]
    wrong = differ("devices", got[:3],
                   [("devices", "8"), ("device", "GPU 0: NVIDIA A100"),
                    ("devices that did nothing", "7")])
    screen = [r["text"] for r in rows("overview", path)
              if r["metric"] == "device"]
    wrong += differ("overview", screen, ["GPU 0, NVIDIA A100"])
    say("of eight devices the one that ran is listed", wrong)


def sync(kind, ts, dur, on, record, stream, corr):
    return span("cuda_sync", kind, ts, dur, 0, stream, device=0, stream=stream,
                cuda_sync_kind=kind, wait_on_stream=on,
                wait_on_cuda_event_record_corr_id=record, correlation=corr)


def path_of(path):
    return {(r["kind"], r["name"]): r["on_path_us"]
            for r in rows("critical", path)}


def check_waits(dir):
    """What waits are recorded for counts, not what ended last. `decoy` ends
    just before the waits end, but nobody waits for it."""
    step = span("user_annotation", "ProfilerStep#1", 0, 200)
    host = [step, launch(10, 1), launch(13, 8, "cudaEventRecord", 1),
            launch(15, 2),
            span("cuda_runtime", "cudaEventSynchronize", 30, 90,
                 correlation=9),
            kernel("wanted", 20, 95, 1, 20), kernel("decoy", 20, 98, 2, 28)]
    told = sync("Event Sync", 31, 88, 20, 8, -1, 9)
    seen, said = write(dir, host), None
    wrong = differ("seen", ("compute", "decoy") in path_of(seen), True)
    said = path_of(write(dir, host + [told]))
    wrong += differ("told", said.get(("compute", "wanted")), 95)
    wrong += differ("decoy", said.get(("compute", "decoy")), None)
    say("a call waits for the event that it names", wrong)
    streams = [step, launch(10, 1), launch(13, 8, "cudaEventRecord", 1),
               launch(15, 2), launch(18, 9, "cudaStreamWaitEvent", 1),
               launch(20, 3), kernel("wanted", 20, 78, 1, 20),
               kernel("decoy", 20, 79, 2, 28), kernel("last", 100, 90, 3, 24),
               span("cuda_runtime", "cudaDeviceSynchronize", 30, 165,
                    correlation=10)]
    told = sync("Stream Wait Event", 18.5, 0.5, 20, 8, 24, 9)
    wrong = differ("seen", ("compute", "decoy") in path_of(
        write(dir, streams)), True)
    said = path_of(write(dir, streams + [told]))
    wrong += differ("told", said.get(("compute", "wanted")), 78)
    wrong += differ("decoy", said.get(("compute", "decoy")), None)
    say("a stream waits for the stream that is named", wrong)


def check_stump(dir):
    """A program that stops its profiler after prof.step() leaves a step that
    has just begun; a second step that only does less is none."""
    def step(n, at, dur, calls, device=True):
        out = [span("user_annotation", "ProfilerStep#%d" % n, at, dur)]
        for i in range(calls):
            corr = 1000 * n + i
            ts = at + 10 * i
            out.append(span("cpu_op", "aten::mm", ts, 8))
            if device:
                out += [launch(ts + 1, corr), kernel("gemm", ts + 5, 6, corr)]
        return out
    for name, events, want, cut in (
            ("behind one", step(1, 0, 900, 80) + step(2, 900, 49, 0), 1, [2]),
            ("behind one, of the CPU", step(1, 0, 900, 80, False) +
             step(2, 900, 49, 0, False), 1, [2]),
            ("behind three", step(1, 0, 900, 80) + step(2, 900, 900, 80) +
             step(3, 1800, 900, 80) + step(4, 2700, 60, 5), 3, [4]),
            ("less to do", step(1, 0, 900, 80) + step(2, 900, 400, 30), 2, []),
            ("others that compile", step(1, 0, 60, 6) + step(2, 60, 900, 80) +
             step(3, 960, 2000, 190) + step(4, 3000, 60, 6), 4, []),
            ("all alike", step(1, 0, 900, 80) + step(2, 900, 900, 80) +
             step(3, 1800, 900, 79), 3, [])):
        path = write(dir, events)
        got = rows("steps", path)
        wrong = differ("cut", [r["step"] for r in got if r["cut"]], cut)
        whole = sorted(r["dur_us"] for r in got if r["step"] not in cut)
        wrong += differ("whole", len(whole), want)
        screen = [r for r in rows("overview", path)
                  if r["metric"] == "step time"]
        wrong += differ("overview", screen[0]["value"],
                        whole[(len(whole) - 1) // 2])
        chosen = {r["step"] for r in rows("critical", path)}
        wrong += differ("critical", chosen & set(cut), set())
        say("a stump decides nothing: " + name, wrong)


def check_ranges(dir):
    """CUPTI's counters of kernels: a range for each launch, in their order,
    spread evenly in time; where launches are missing no op is claimed."""
    metrics = ("smsp__inst_executed_op_ffma.sum", "dram__bytes.sum")
    ops = ["aten::mm", "aten::add", "aten::mm", "aten::mul"]
    events, want = [launch(5, 1)], {}
    for i, op in enumerate(ops):  # long and short ones: times do not tell
        at = 100 + 10 * i if i < 3 else 800
        events += [span("cpu_op", op, at, 9), launch(at + 1, 10 + i)]
    for i, op in enumerate(ops):
        values = (1000 * (i + 1), 7 * i)
        events.append(span("cuda_profiler_range", "kernel %d" % i,
                           90 + 250 * i, 250, 0, 0, **dict(zip(metrics,
                                                               values))))
        for m, x in zip(metrics, values):
            want.setdefault((m, op), []).append(x)
    path = write(dir, events)
    got = {r["name"]: (r["samples"], r["min"], r["max"], r["mean"], r["total"],
                       r["device"]) for r in rows("counters", path)}
    wrong = differ("counters", got,
                   {metrics[0]: (4, 1000, 4000, 2500, 10000, "GPU 0"),
                    metrics[1]: (4, 0, 21, 10.5, 42, "GPU 0")})
    got = {(r["name"], r["op"]): (r["samples"], r["total"])
           for r in rows("counters", path, "--by", "op")}
    wrong += differ("by op", got, {k: (len(v), sum(v))
                                   for k, v in want.items()})
    say("counters of ranges, at their ops", wrong)
    path = write(dir, events + [launch(900, 30)])
    wrong = differ("rows", len(rows("counters", path)), 2)
    wrong += differ("by op", rows("counters", path, "--by", "op"), [])
    say("ranges that fit no launch are no op's", wrong)


def main():
    with tempfile.TemporaryDirectory() as dir:
        check_group(dir)
        check_queues(dir)
        check_devices(dir)
        check_waits(dir)
        check_stump(dir)
        check_ranges(dir)
    return status()


if __name__ == "__main__":
    sys.exit(main())
