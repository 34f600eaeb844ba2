"""Usage: late_rank.py SECONDS [MOST_MS]

Two ranks on two GPUs, a process each: a product and an all-reduce by NCCL in each step. Rank 1 comes 50 ms late to each step, so
that a kernel of rank 0 waits for launches of rank 1. Each rank prints its steps and its longest launching call. A call longer
than MOST_MS (120: one period of a quota in percent, and a look) is a failure, and so is a wrong result. Under a quota
side by side, the wait of rank 0 is charged.

    nvtaskset --mps auto --quota 30% all python3 tests/hardware/late_rank.py 20
"""

import os
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as processes

SIZE = 4096
LATE_S = 0.05
WARM_UP = 20  # steps in which code is loaded


def work(rank, seconds, most_ms, port):
    torch.cuda.set_device(rank)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("nccl", rank=rank, world_size=2, device_id=torch.device("cuda", rank))
    whole = torch.ones(SIZE, SIZE, device="cuda", dtype=torch.bfloat16)
    steps, longest_ms, is_right = 0, 0.0, True
    end = torch.zeros(1, device="cuda")
    begun = time.monotonic()
    while end.item() == 0:
        if rank == 1:
            time.sleep(LATE_S)
        called_ms = 0.0
        for _ in range(8):
            called = time.monotonic()
            part = whole @ whole
            called_ms = max(called_ms, (time.monotonic() - called) * 1000)
        dist.all_reduce(part)
        torch.cuda.synchronize()
        is_right = is_right and part[0, 0].item() == 2 * SIZE
        longest_ms = max(longest_ms, called_ms) if steps >= WARM_UP else 0.0
        steps += 1
        end.fill_(float(time.monotonic() - begun > seconds))
        dist.all_reduce(end)
    passed = time.monotonic() - begun
    print(f"rank {rank}: {steps / passed:.1f} steps/s, longest launching call {longest_ms:.1f} ms, "
          f"{'right' if is_right else 'WRONG'}", flush=True)
    # Under MPS the end of a process group hangs, also without nvtaskset.
    os._exit(0 if is_right and longest_ms <= most_ms else 1)


if __name__ == "__main__":
    bound = float(sys.argv[2]) if len(sys.argv) > 2 else 120.0
    master_port = 20000 + os.getpid() % 20000
    processes.start_processes(work, (float(sys.argv[1]), bound, master_port), nprocs=2, start_method="spawn")
