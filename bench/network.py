"""Usage: network.py [--seconds S] [--samples N] [--at-rest]

YOLOv2 (for PASCAL VOC, 416 × 416) in PyTorch, with random weights, one picture at a time. A sample is how many µs an inference
took (see support/conversation.py).
"""

import sys
import time

sys.dont_write_bytecode = True  # in a working tree
from support import conversation  # before torch, see there

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


class Inferences:
    """A work of support/conversation.py."""

    def __init__(self):
        with torch.device("cuda"):
            self.model = YoloV2().eval()
            self.picture = torch.randn(1, 3, SIDE, SIDE)
        for _ in range(WARM_UP):
            self.step()

    def step(self):
        start = time.perf_counter()
        self.model(self.picture)
        self.rest()
        return (time.perf_counter() - start) * 1e6

    def rest(self):
        torch.cuda.synchronize()


def main():
    chosen = conversation.parser(__doc__).parse_args()
    with torch.inference_mode():
        conversation.converse(Inferences(), torch.cuda.get_device_properties(0).multi_processor_count, chosen)


if __name__ == "__main__":
    main()
