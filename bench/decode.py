"""Usage: decode.py [--ahead | --pattern FILE] [--layers N] [--pause US] [--seconds S] [--samples N] [--at-rest]

Decoding of a language model of random weights: in each step, the model reads all its weights and the keys and values of
1023 earlier tokens, and the host gets the next token. A sample is the time of one step, in µs. With --ahead, the next step
is always in flight, and a sample is the GPU's part of a step. With fewer layers than 20, steps are shorter; with --pause,
it sleeps for so long after each. It ends after SECONDS, or after so many samples; --at-rest makes it wait for the first
SIGUSR1 (see support/conversation.py).

FILE says when there is something to decode (support/pattern.py); it is read again after each rest. A sample is then `first,µs` for
the first step after a pause, `next,µs` for the others.

With its 20 layers, it has 3.3 GB of weights and 0.2 GB of keys and values: memory is what a step waits for, some 2 ms of an H100. Each
step has the same input, so each must give the same token, and the last one the same numbers as the first.
"""

import sys
import time

sys.dont_write_bytecode = True  # in a working tree
from support import conversation  # before torch, see there
from support.graphs import capture
from support.in_flight import InFlight
from support.pattern import Pattern

import torch
import torch.nn.functional as F

LAYERS, WIDTH, HEADS, HIDDEN = 20, 2560, 20, 6912
VOCABULARY, LENGTH = 32000, 1024


def random_weights(rows, columns):
    return torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16) * columns**-0.5


def normalized(state):
    return F.rms_norm(state, (WIDTH,))


class Layer:
    def __init__(self):
        self.query_key_value = random_weights(3 * WIDTH, WIDTH)
        self.output = random_weights(WIDTH, WIDTH)
        self.gate_up = random_weights(2 * HIDDEN, WIDTH)
        self.down = random_weights(WIDTH, HIDDEN)
        cache = torch.randn(2, 1, HEADS, LENGTH, WIDTH // HEADS, device="cuda", dtype=torch.bfloat16)
        self.keys, self.values = cache[0], cache[1]

    def attention(self, state):
        projected = F.linear(state, self.query_key_value).view(3, 1, HEADS, 1, WIDTH // HEADS)
        self.keys[:, :, LENGTH - 1 :].copy_(projected[1])
        self.values[:, :, LENGTH - 1 :].copy_(projected[2])
        found = F.scaled_dot_product_attention(projected[0], self.keys, self.values)
        return F.linear(found.reshape(1, WIDTH), self.output)

    def __call__(self, state):
        state = state + self.attention(normalized(state))
        gate, up = F.linear(normalized(state), self.gate_up).chunk(2, dim=-1)
        return state + F.linear(F.silu(gate) * up, self.down)


class Model:
    def __init__(self, layers):
        self.embedding = random_weights(VOCABULARY, WIDTH)
        self.layers = [Layer() for _ in range(layers)]

    def __call__(self, token):
        state = F.embedding(token, self.embedding)
        for layer in self.layers:
            state = layer(state)
        return F.linear(normalized(state), self.embedding)


class Decoding:
    def __init__(self, layers=LAYERS, pause=0):
        self.pause = pause
        model = Model(layers)
        last = torch.zeros(1, device="cuda", dtype=torch.long)

        def compute():
            logits = model(last)
            return logits, logits.argmax(dim=-1)

        self.graph, (self.logits, self.token) = capture(compute)
        self.model = model, last  # the graph reads their memory
        self.first_token = self.decode()
        self.first_logits = self.logits.clone()
        if not torch.isfinite(self.first_logits).all():
            sys.exit("decode.py: the model's result is no number")

    def start(self):
        self.graph.replay()

    def decode(self):
        self.start()
        return self.token.item()  # waits for it

    def step(self):
        start = time.perf_counter()
        token = self.decode()
        end = time.perf_counter()
        if self.pause:
            time.sleep(self.pause)
        if token != self.first_token:
            sys.exit(f"decode.py: a wrong token: {token} instead of {self.first_token}")
        return (end - start) * 1e6

    def is_right(self):
        return torch.equal(self.logits, self.first_logits)

    def rest(self):
        if not self.is_right():
            difference = (self.logits.float() - self.first_logits.float()).abs().max().item()
            sys.exit(f"decode.py: a wrong result: it differs from the first by {difference}")
        torch.cuda.synchronize()


def main():
    parser = conversation.parser(__doc__)
    parser.add_argument("--ahead", action="store_true")
    parser.add_argument("--pattern")
    parser.add_argument("--layers", type=int, default=LAYERS)
    parser.add_argument("--pause", type=float, default=0)
    chosen = parser.parse_args()
    torch.manual_seed(1)
    with torch.no_grad():
        decoding = Decoding(chosen.layers, chosen.pause / 1e6)
        if chosen.ahead:
            decoding = InFlight(decoding)
        elif chosen.pattern:
            decoding = Pattern(decoding, chosen.pattern)
        conversation.converse(decoding, torch.cuda.get_device_properties(0).multi_processor_count, chosen)


if __name__ == "__main__":
    main()
