"""Usage: deadlines.py KIND --period FILE [--seconds S] [--samples N] [--at-rest]

A job every so many ms, as FILE says; it is read again after each rest. A sample is how many µs it took from the moment when it was due
to its end, so a job that begins late counts as well. KIND:

    vision    a convolutional network, pictures of 416 × 416 from four cameras
    decode    a step of a language model with 24 layers: memory is what it waits for
    encode    a transformer's encoder, 8 sequences of 512 tokens
    fft       two-dimensional transforms of three fields, forth and back
    sort      24 million numbers
    products  six products of matrices

Weights are random. All but sort are CUDA graphs. Each job has the same input, so the last result must be the first one's (see
support/conversation.py for the rest).
"""

import contextlib
import gc
import os
import sys
import time

sys.dont_write_bytecode = True  # in a working tree
from support import conversation  # before torch, see there
from support.pattern import sleep_until

import torch
from torch import nn

WARM_UP = 3


def vision():
    from network import SIDE, YoloV2

    model = YoloV2().cuda().half().eval().to(memory_format=torch.channels_last)
    pictures = torch.randn(4, 3, SIDE, SIDE, device="cuda", dtype=torch.half).to(memory_format=torch.channels_last)
    return lambda: model(pictures)


def decode():
    width, hidden, layers = 2560, 6912, 24
    shapes = [(3 * width, width), (width, width), (2 * hidden, width), (width, hidden)] * layers
    weights = [torch.randn(*shape, device="cuda", dtype=torch.bfloat16) * shape[1] ** -0.5 for shape in shapes]
    token = torch.randn(1, width, device="cuda", dtype=torch.bfloat16)

    def step():
        state = token
        for number in range(0, len(weights), 4):
            mixed = nn.functional.linear(state, weights[number])[:, :width]
            state = nn.functional.rms_norm(state + nn.functional.linear(mixed, weights[number + 1]), (width,))
            gate, up = nn.functional.linear(state, weights[number + 2]).chunk(2, dim=-1)
            state = nn.functional.rms_norm(state + nn.functional.linear(nn.functional.silu(gate) * up, weights[number + 3]), (width,))
        return state

    return step


def encode():
    torch.backends.mha.set_fastpath_enabled(False)  # its kernels need not be ones that a graph can have
    layer = nn.TransformerEncoderLayer(1024, 16, 4096, dropout=0, batch_first=True, device="cuda", dtype=torch.bfloat16)
    model = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).eval()
    tokens = torch.randn(8, 512, 1024, device="cuda", dtype=torch.bfloat16)
    return lambda: model(tokens)


def fft():
    fields = torch.randn(3, 4096, 4096, device="cuda", dtype=torch.complex64)
    return lambda: torch.fft.ifft2(torch.fft.fft2(fields))


def sort():
    numbers = torch.randint(0, 1 << 30, (24 << 20,), device="cuda", dtype=torch.int32)
    return lambda: torch.sort(numbers)[0]


def products():
    a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) / 4096**0.5

    def chain():
        product = a
        for _ in range(6):
            product = product @ b
        return product

    return chain


KINDS = {one.__name__: one for one in (vision, decode, encode, fft, sort, products)}


class Jobs:
    def __init__(self, kind, period):
        self.file = period
        self.job = KINDS[kind]()
        self.graph = None
        self.stream = torch.cuda.Stream()
        with torch.cuda.stream(self.stream):
            for _ in range(WARM_UP):
                self.result = self.job()
        self.stream.synchronize()
        if kind != "sort":
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph, stream=self.stream):
                self.result = self.job()
        self.run()
        self.first = self.result.clone()
        torch.cuda.synchronize()
        self.rest()

    def run(self):
        with torch.cuda.stream(self.stream):
            if self.graph:
                self.graph.replay()
            else:
                self.result = self.job()
        self.stream.synchronize()

    def step(self):
        now = time.perf_counter()
        if self.due == 0:
            with open(self.file) as file:
                self.period = float(file.readline()) / 1e3
            self.due = now + self.period
        sleep_until(self.due)
        due = self.due
        self.run()
        end = time.perf_counter()
        # One that is due already begins at once; those that could not begin at all count as one.
        self.due = max(due + self.period, end - self.period)
        return (end - due) * 1e6

    def rest(self):
        """The next one begins anew."""
        self.due = 0

    def check(self):
        if not torch.equal(self.first, self.result):
            raise RuntimeError("a wrong result")


def be_in_time():
    """No collection of garbage, and before other work on the processor, where the user may say so."""
    gc.disable()
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


def main():
    options = conversation.parser(__doc__)
    options.add_argument("kind", choices=sorted(KINDS))
    options.add_argument("--period", required=True)
    chosen = options.parse_args()
    with torch.inference_mode():
        jobs = Jobs(chosen.kind, chosen.period)
        be_in_time()
        conversation.converse(jobs, torch.cuda.get_device_properties(0).multi_processor_count, chosen)
        jobs.run()
        jobs.check()


if __name__ == "__main__":
    main()
