"""torch.profiler, several times in one process: it sees kernels, and they run on these TPCs before, meanwhile and after.

Usage: torch_profiler.py WHERE.so TPCS
"""

import ctypes
import sys

import torch
from torch.profiler import ProfilerActivity, profile

library = ctypes.CDLL(sys.argv[1])
matrix = torch.randn(1024, 1024, device="cuda", dtype=torch.bfloat16)


def check(when):
    text = ctypes.create_string_buffer(4096)
    (matrix @ matrix).sum().item()
    library.where(text)
    ran = text.value.decode()
    if ran != sys.argv[2]:
        sys.exit(f"{when}: ran on TPCs {ran} instead of {sys.argv[2]}")


check("before")
for time in range(3):
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        check(f"meanwhile, time {time}")
        torch.cuda.synchronize()
    kernels = [event for event in profiler.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    if not any("where" in event.name for event in kernels):
        sys.exit(f"time {time}: the profiler has not seen the kernel among {len(kernels)}")
    check(f"after, time {time}")
