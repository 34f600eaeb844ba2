"""Usage: inference.py SECONDS PAUSE

A transformer's inference in PyTorch, one sequence at a time. Like bench/task: prints "ready SMS", and at the end how
many µs each inference took. It pauses for up to PAUSE µs between two.
"""

import random
import sys
import time

import torch

LAYERS, WIDTH, HEADS, LENGTH = 6, 512, 8, 128
WARM_UP = 20


def make_model():
    layer = torch.nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, batch_first=True)
    return torch.nn.TransformerEncoder(layer, LAYERS).cuda().eval()


def infer(model, sequence):
    start = time.perf_counter()
    model(sequence)
    torch.cuda.synchronize()
    return (time.perf_counter() - start) * 1e6


def main():
    seconds, pause = float(sys.argv[1]), float(sys.argv[2])
    sequence = torch.randn(1, LENGTH, WIDTH, device="cuda")
    model = make_model()
    samples = []
    with torch.inference_mode():
        for _ in range(WARM_UP):
            infer(model, sequence)
        print("ready", torch.cuda.get_device_properties(0).multi_processor_count, flush=True)
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            samples.append(infer(model, sequence))
            time.sleep(random.random() * pause / 1e6)
    for sample in samples:
        print(f"{sample:.2f}")


if __name__ == "__main__":
    main()
