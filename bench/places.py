"""Usage: places.py ROUNDS <PLACES

Works of PyTorch, one after the other, in many partitions: this program moves itself with nvtaskset -tp. PLACES has a line
"STRATEGY TPCS LIST" for each. For each work, in each of ROUNDS rounds, in random order, it prints
"ROUND,STRATEGY,WORK,TPCS,US": the time of a repetition, of as many as take some 12 ms.
"""

import os
import random
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # in a working tree
import torch
import torch.nn.functional as F

import batch
import decode

BATCH_US = 12e3
WARM_UP = 5


def half(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def products():
    a, b = half(8192, 8192), half(8192, 8192)
    return lambda: a @ b


def memory():
    source = torch.ones(128 << 20, device="cuda")
    return lambda: torch.add(source, 1)


def attention():
    query, key, value = (half(4, 16, 4096, 64) for _ in range(3))
    return lambda: F.scaled_dot_product_attention(query, key, value, is_causal=True)


def convolutions():
    layers = [torch.nn.Conv2d(128, 128, 3, padding=1) for _ in range(4)]
    network = torch.nn.Sequential(*layers).to("cuda", torch.bfloat16, memory_format=torch.channels_last)
    pictures = half(32, 128, 56, 56).to(memory_format=torch.channels_last)
    return lambda: network(pictures)


def decoding():
    return decode.Decoding().start


def training():
    return batch.Training().start


WORKS = [products, memory, attention, convolutions, decoding, training]


def microseconds(repeat, count):
    start = time.perf_counter()
    for _ in range(count):
        repeat()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / count * 1e6


def measure(work, rounds, places):
    repeat = work()
    microseconds(repeat, WARM_UP)
    whole = microseconds(repeat, WARM_UP)
    tpcs = torch.cuda.get_device_properties(0).multi_processor_count // 2
    for number in range(1, rounds + 1):
        for strategy, count, where in random.sample(places, len(places)):
            subprocess.run(["nvtaskset", "-tp", where, str(os.getpid())], check=True, stdout=subprocess.DEVNULL)
            microseconds(repeat, 1)
            us = microseconds(repeat, max(1, int(BATCH_US / whole * int(count) / tpcs)))
            print(f"{number},{strategy},{work.__name__},{count},{us:.2f}", flush=True)


def main():
    places = [line.split() for line in sys.stdin]
    torch.manual_seed(1)
    for work in WORKS:
        with torch.set_grad_enabled(work is training):
            measure(work, int(sys.argv[1]), places)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
