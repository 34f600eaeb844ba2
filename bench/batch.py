"""Usage: batch.py products|training [--size SIZE] [--streams N] [--seconds S] [--samples N] [--at-rest]

Work that always has more to do: the neighbour of bench/decode.py. A sample is the time from the end of a repetition to
the end of the next (support/in_flight.py), in µs.

  products   a product of 8192 × 8192 matrices, or of SIZE; with --streams, one more in each of N streams
  training   an iteration of a transformer's training: forward, backward, AdamW, on random data

It ends as decode.py does. A result that is wrong is a failure.
"""

import sys

sys.dont_write_bytecode = True  # in a working tree
from support import conversation  # before torch, see there
from support.in_flight import InFlight

import torch

WARM_UP = 5

LAYERS, WIDTH, HEADS = 6, 1024, 16
SEQUENCES, LENGTH = 20, 512


class Products:
    def __init__(self, size, streams):
        self.streams = [torch.cuda.Stream() for _ in range(streams)]
        self.a, self.b = (torch.randn(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        self.product = self.a @ self.b
        self.first = self.product.clone()
        self.products = [torch.empty_like(self.product) for _ in self.streams]
        torch.cuda.synchronize()

    def start(self):
        torch.matmul(self.a, self.b, out=self.product)
        for stream, product in zip(self.streams, self.products):
            with torch.cuda.stream(stream):
                torch.matmul(self.a, self.b, out=product)
            torch.cuda.current_stream().wait_stream(stream)

    def is_right(self):
        return all(torch.equal(product, self.first) for product in (self.product, *self.products))


class Training:
    def __init__(self, *_):
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


KINDS = {"products": Products, "training": Training}


def main():
    parser = conversation.parser(__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--size", type=int, default=8192)
    parser.add_argument("--streams", type=int, default=0)
    chosen = parser.parse_args()
    torch.manual_seed(1)
    work = InFlight(KINDS[chosen.kind](chosen.size, chosen.streams))
    for _ in range(WARM_UP):
        work.step()
    work.rest()
    conversation.converse(work, torch.cuda.get_device_properties(0).multi_processor_count, chosen)


if __name__ == "__main__":
    main()
