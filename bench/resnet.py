"""Usage: resnet.py [--every MS | --pattern FILE] [--seconds S] [--samples N] [--at-rest]

ResNet-152 with random weights, as a CUDA graph: inferences of one picture of 224 × 224. With --every, one begins each MS,
and a sample is what it took, in µs; one that is late begins at once. Without, the next one is always in flight, and a sample
is the time from the end of one to the end of the next. With --pattern, FILE says when one begins (support/pattern.py). It ends
after SECONDS, or after so many samples; --at-rest makes it wait for the first SIGUSR1 (see support/conversation.py). A result
that is wrong is a failure.
"""

import sys
import time

sys.dont_write_bytecode = True  # in a working tree
from support import conversation  # before torch, see there
from support.graphs import capture
from support.in_flight import InFlight
from support.pattern import Pattern

import torch
from torch import nn

BLOCKS = (3, 8, 36, 3)
WIDTH, EXPANSION = 64, 4
CLASSES = 1000
SIDE = 224


def convolution(before, after, size, stride=1):
    return nn.Sequential(
        nn.Conv2d(before, after, size, stride, padding=size // 2, bias=False), nn.BatchNorm2d(after)
    )


class Bottleneck(nn.Module):
    def __init__(self, before, width, stride):
        super().__init__()
        after = EXPANSION * width
        reduced = convolution(before, width, 1), nn.ReLU(), convolution(width, width, 3, stride), nn.ReLU()
        self.path = nn.Sequential(*reduced, convolution(width, after, 1))
        self.shortcut = nn.Identity() if before == after else convolution(before, after, 1, stride)

    def forward(self, state):
        return torch.relu(self.path(state) + self.shortcut(state))


def resnet152():
    modules = [convolution(3, WIDTH, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    before = WIDTH
    for stage, count in enumerate(BLOCKS):
        width = WIDTH << stage
        for block in range(count):
            modules.append(Bottleneck(before, width, 2 if stage and not block else 1))
            before = EXPANSION * width
    return nn.Sequential(*modules, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, CLASSES))


class Inference:
    """A work of support/conversation.py, and of support/in_flight.py."""

    def __init__(self, every):
        kind = {"device": "cuda", "dtype": torch.float16}
        self.every, self.next = every, 0.0
        self.network = resnet152().eval().to(**kind).to(memory_format=torch.channels_last)
        self.picture = torch.randn(1, 3, SIDE, SIDE, **kind).to(memory_format=torch.channels_last)
        self.graph, self.result = capture(lambda: self.network(self.picture))
        self.start()
        torch.cuda.synchronize()
        self.first = self.result.clone()
        if not torch.isfinite(self.first).all():
            sys.exit("resnet.py: the network's result is no number")

    def start(self):
        self.graph.replay()

    def is_right(self):
        return torch.equal(self.result, self.first)

    def step(self):
        self.next = max(self.next + self.every, time.perf_counter())
        time.sleep(max(0, self.next - time.perf_counter()))
        start = time.perf_counter()
        self.start()
        torch.cuda.synchronize()
        return (time.perf_counter() - start) * 1e6

    def rest(self):
        torch.cuda.synchronize()
        if not self.is_right():
            sys.exit("resnet.py: a wrong result")


def main():
    parser = conversation.parser(__doc__)
    parser.add_argument("--every", type=float, default=0)
    parser.add_argument("--pattern")
    chosen = parser.parse_args()
    torch.manual_seed(1)
    with torch.no_grad():
        inference = Inference(chosen.every / 1e3)
        if chosen.pattern:
            work = Pattern(inference, chosen.pattern)
        else:
            work = inference if chosen.every else InFlight(inference)
        conversation.converse(work, torch.cuda.get_device_properties(0).multi_processor_count, chosen)


if __name__ == "__main__":
    main()
