"""Usage: batch.py products|training [--seconds S] [--samples N] [--at-rest]

Work that always has more to do: the neighbour of bench/decode.py. Two repetitions are in flight, so that the GPU never
waits for the host. A sample is the time from the end of one to the end of the next, in µs.

  products   a product of 8192 × 8192 matrices
  training   an iteration of a transformer's training: forward, backward, AdamW, on random data

It ends as decode.py does. A result that is wrong is a failure.
"""

import collections
import sys
import time

sys.dont_write_bytecode = True  # in a working tree
from support import conversation  # before torch, see there

import torch

IN_FLIGHT = 2
WARM_UP = 5

SIZE = 8192

LAYERS, WIDTH, HEADS = 6, 1024, 16
SEQUENCES, LENGTH = 20, 512


class Products:
    def __init__(self):
        self.a, self.b = (torch.randn(SIZE, SIZE, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        self.product = self.a @ self.b
        self.first = self.product.clone()

    def start(self):
        torch.matmul(self.a, self.b, out=self.product)

    def is_right(self):
        return torch.equal(self.product, self.first)


class Training:
    def __init__(self):
        layer = torch.nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True)
        self.network = torch.nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.network = self.network.to("cuda", torch.bfloat16).train()
        self.optimizer = torch.optim.AdamW(self.network.parameters(), lr=1e-4)
        self.shape = SEQUENCES, LENGTH, WIDTH
        self.target = torch.randn(self.shape, device="cuda", dtype=torch.bfloat16)

    def start(self):
        sequences = torch.randn(self.shape, device="cuda", dtype=torch.bfloat16)
        self.loss = torch.nn.functional.mse_loss(self.network(sequences), self.target)
        self.optimizer.zero_grad()
        self.loss.backward()
        self.optimizer.step()

    def is_right(self):
        return torch.isfinite(self.loss).item()


class InFlight:
    """Keeps repetitions of a work in flight."""

    def __init__(self, work):
        self.work = work
        self.ends = collections.deque()
        self.last_end = None

    def start(self):
        end = torch.cuda.Event()
        self.work.start()
        end.record()
        self.ends.append(end)

    def step(self):
        start = self.last_end or time.perf_counter()
        while len(self.ends) < IN_FLIGHT:
            self.start()
        self.ends.popleft().synchronize()
        self.last_end = time.perf_counter()
        return (self.last_end - start) * 1e6

    def rest(self):
        torch.cuda.synchronize()
        self.ends.clear()
        self.last_end = None
        if not self.work.is_right():
            sys.exit("batch.py: a wrong result")


KINDS = {"products": Products, "training": Training}


def main():
    parser = conversation.parser(__doc__)
    parser.add_argument("kind", choices=KINDS)
    chosen = parser.parse_args()
    torch.manual_seed(1)
    work = InFlight(KINDS[chosen.kind]())
    for _ in range(WARM_UP):
        work.step()
    work.rest()
    conversation.converse(work, torch.cuda.get_device_properties(0).multi_processor_count, chosen)


if __name__ == "__main__":
    main()
