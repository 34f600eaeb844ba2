"""Usage: ranks.py SECONDS [RANK PORT]

Two ranks on two GPUs, a process each: all-reduces and tensor-parallel products by NCCL, eager and in a graph, in turn. Each
result is compared with the right one. Prints how many steps there were each second; a wrong result is a failure. With RANK and
PORT it is one of the two: so each can be a command of its own.
"""

import os
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as processes

SIZE = 1024
IN_A_ROUND = 50


def work(rank, seconds, port):
    torch.cuda.set_device(rank)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("nccl", rank=rank, world_size=2, device_id=torch.device("cuda", rank))
    torch.manual_seed(7)
    whole = torch.randint(-1, 2, (SIZE, SIZE), device="cuda").bfloat16()
    half = slice(rank * SIZE // 2, (rank + 1) * SIZE // 2)
    right = (whole.float() @ whole.float()).bfloat16()

    def step():
        part = whole[:, half] @ whole[half, :]
        dist.all_reduce(part)
        return part

    step()
    graph = torch.cuda.CUDAGraph()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        step()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        captured = step()
    steps, end = 0, torch.zeros(1, device="cuda")
    print("ready", flush=True)
    begun = time.monotonic()
    while end.item() == 0:
        for _ in range(IN_A_ROUND):
            eager = step()
        for _ in range(IN_A_ROUND):
            graph.replay()
        torch.cuda.synchronize()
        for name, result in (("eager", eager), ("graph", captured)):
            if not torch.equal(result, right):
                print(f"rank {rank}: {name}: wrong by {(result - right).abs().max().item()}", flush=True)
                os._exit(1)
        steps += 2 * IN_A_ROUND
        end.fill_(float(time.monotonic() - begun > seconds))
        dist.all_reduce(end)
    if rank == 0:
        print(f"{steps / (time.monotonic() - begun):.0f} steps/s, {steps} in all", flush=True)
    # Under MPS the end of a process group hangs, also without nvtaskset.
    os._exit(0)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        work(int(sys.argv[2]), float(sys.argv[1]), int(sys.argv[3]))
    port = 20000 + os.getpid() % 20000
    processes.start_processes(work, (float(sys.argv[1]), port), nprocs=2, start_method="spawn")
