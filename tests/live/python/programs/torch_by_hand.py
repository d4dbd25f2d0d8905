# SPDX-License-Identifier: Apache-2.0
"""Runs another program with torch.profiler around some steps of its optimizer,
as its author would: torch_by_hand.py TRACE FIRST LAST PROGRAM."""

import runpy
import sys

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.profiler import ProfilerAction, ProfilerActivity, profile

trace, first, last, program = sys.argv[1:5]
first, last = int(first), int(last)
prof = profile(activities=[ProfilerActivity.CPU],
               schedule=lambda step: ProfilerAction.RECORD)
done = 0


def stepped(optimizer, args, kwargs):
    global done
    done += 1
    if done == first - 1:
        prof.start()
    elif first <= done < last:
        prof.step()
    elif done == last:
        prof.stop()
        prof.export_chrome_trace(trace)


register_optimizer_step_post_hook(stepped)
sys.argv = [program]
runpy.run_path(program, run_name="__main__")
