"""Usage: network.py ORDERS

YOLOv2 (for PASCAL VOC, 416 × 416) in PyTorch, with random weights, one picture at a time. Like bench/task it prints
"ready SMS" first. Then it does what it reads from the named pipe ORDERS, line by line: "SECONDS FILE" is to infer for
SECONDS, and to write how many µs each inference took to FILE, which is there when all is written. So one process, which
takes seconds to start, can be measured again and again. It ends at SIGTERM, but never in the middle of a kernel.
"""

import os
import signal
import sys
import time

import torch
from torch import nn

WARM_UP = 20
SIDE = 416
OUTPUTS = 5 * (5 + 20)  # boxes, with a place, a confidence and 20 classes

# The convolutions' output channels; "pool" halves both sides of the picture.
FINE = [32, "pool", 64, "pool", 128, 64, 128, "pool", 256, 128, 256, "pool", 512, 256, 512, 256, 512]
COARSE = ["pool", 1024, 512, 1024, 512, 1024]


def convolution(before, after, width):
    return nn.Sequential(
        nn.Conv2d(before, after, width, padding=width // 2, bias=False), nn.BatchNorm2d(after), nn.LeakyReLU(0.1)
    )


def chain(channels, layers):
    modules = []
    for layer in layers:
        if layer == "pool":
            modules.append(nn.MaxPool2d(2))
            continue
        # A layer with fewer channels than the one before it is of 1 × 1.
        modules.append(convolution(channels, layer, 1 if layer < channels else 3))
        channels = layer
    return nn.Sequential(*modules)


class YoloV2(nn.Module):
    def __init__(self):
        super().__init__()
        self.fine = chain(3, FINE)
        self.coarse = nn.Sequential(
            chain(512, COARSE), convolution(1024, 1024, 3), convolution(1024, 1024, 3)
        )
        self.passed = convolution(512, 64, 1)
        self.joined = nn.Sequential(convolution(4 * 64 + 1024, 1024, 3), nn.Conv2d(1024, OUTPUTS, 1))

    def forward(self, picture):
        fine = self.fine(picture)
        passed = nn.functional.pixel_unshuffle(self.passed(fine), 2)
        return self.joined(torch.cat([passed, self.coarse(fine)], 1))


def infer(model, picture):
    start = time.perf_counter()
    model(picture)
    torch.cuda.synchronize()
    return (time.perf_counter() - start) * 1e6


def obey(order, model, picture):
    seconds, name = order.split()
    samples = []
    infer(model, picture)  # the first one after a pause does not count
    end = time.perf_counter() + float(seconds)
    while time.perf_counter() < end or not samples:
        samples.append(infer(model, picture))
    with open(name + ".part", "w") as file:
        file.writelines(f"{sample:.2f}\n" for sample in samples)
    os.rename(name + ".part", name)


def leave(_number, _frame):
    torch.cuda.synchronize()
    sys.exit()


def main():
    with torch.device("cuda"):
        model = YoloV2().eval()
        picture = torch.randn(1, 3, SIDE, SIDE)
    signal.signal(signal.SIGTERM, leave)
    with torch.inference_mode():
        for _ in range(WARM_UP):
            infer(model, picture)
        print("ready", torch.cuda.get_device_properties(0).multi_processor_count, flush=True)
        with open(sys.argv[1]) as orders:
            for order in orders:
                obey(order, model, picture)


if __name__ == "__main__":
    main()
