"""A thousand launches, none of them waited for, after a profile of some: the program goes on as before it."""

import torch
from torch.profiler import ProfilerActivity, profile


def launch(count):
    for _ in range(count):
        vector.add_(1)
    torch.cuda.synchronize()


vector = torch.zeros(256, device="cuda")
launch(10)
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]):
    launch(60)
launch(1000)
assert vector.eq(1070).all()
