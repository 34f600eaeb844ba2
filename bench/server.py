"""Usage: server.py LOAD [--name NAME] [--seconds S] [--samples N] [--at-rest]

A server of a language model of 0.8 billion random weights: requests of 2048 tokens, answers of 256. Each step decodes a token of all
resident requests, in a CUDA graph, and reads 512 tokens of the prompt of at most one that is new: as servers do today.

LOAD is a file, read again after each rest: RESIDENT [BUSY IDLE SEED]. So many requests are resident, 2, 8, 16 or 32, and where one has
its answer, the next arrives. With BUSY and IDLE, in ms, there is none for IDLE in the mean, after each BUSY: at random, by SEED and NAME.

A sample is `step,TOKENS,µs`: how long the step took, which is the time between two tokens of each; or `first,1,µs`: from a request's
arrival to its first token. A result that is wrong is a failure.
"""

import random
import sys
import time

sys.dont_write_bytecode = True  # in a working tree
from support import conversation  # before torch, see there

import torch

from support.language import Model, Shape
from support.pattern import sleep_until

PROMPT, ANSWER, CHUNK = 2048, 256, 512
RESIDENT = 2, 8, 16, 32
SHAPE = Shape(
    layers=12, width=2048, heads=32, groups=8, hidden=8192, vocabulary=32000, slots=max(RESIDENT), length=PROMPT + ANSWER
)


class Request:
    """`read` of its prompt's tokens were read, `told` tokens of its answer are known."""

    def __init__(self, arrival, read=0, told=0):
        self.arrival, self.read, self.told = arrival, read, told

    def position(self):
        """A slot whose prompt is being read decodes into its last place, where nobody looks."""
        return PROMPT + self.told - 1 if self.told else SHAPE.length - 1


class Server:
    """A work of support/conversation.py."""

    def __init__(self, load, name):
        self.load, self.name, self.requests = load, name, None
        self.model = Model(SHAPE)
        self.prompt = torch.randint(SHAPE.vocabulary, (PROMPT,), device="cuda")
        for count in RESIDENT:
            self.model.capture(count)
        self.first = self.known_result()
        if not torch.isfinite(self.first).all():
            sys.exit("server.py: the model's result is no number")

    def known_result(self):
        """All requests have the same prompt, so the keys and values of slots are the same again and again."""
        for slot in range(2):
            for begin in range(0, PROMPT, CHUNK):
                logits = self.model.read(self.prompt[begin : begin + CHUNK], slot, begin)
        self.model.tokens.zero_()
        self.model.decode([PROMPT, PROMPT])
        return torch.cat([logits, self.model.logits[:2]])

    def begin(self):
        """As if it had worked for long: requests are at different places of their answers, and it may be in a pause."""
        words = [float(word) for word in open(self.load).read().split()]
        count, (self.busy, self.idle, seed) = int(words[0]), words[1:] or (0, 0, 0)
        self.random = random.Random(f"{seed} {self.name}")
        now = time.perf_counter()
        self.requests = [Request(now, PROMPT, 1 + ANSWER * slot // count) for slot in range(count)]
        self.end = now + self.random.uniform(-1, 1) * self.busy / 1e3

    def pause(self):
        if self.idle and time.perf_counter() >= self.end:
            sleep_until(time.perf_counter() + self.random.expovariate(1e3 / self.idle))
            self.end = time.perf_counter() + self.busy / 1e3
            for request in self.requests:
                request.arrival = max(request.arrival, self.end - self.busy / 1e3)

    def read_prompt(self):
        """A part of the oldest one that is not read; returns the sample of one whose answer begins."""
        unread = [request for request in self.requests if request.read < PROMPT]
        if not unread:
            return []
        request = min(unread, key=lambda one: one.arrival)
        slot = self.requests.index(request)
        logits = self.model.read(self.prompt[request.read : request.read + CHUNK], slot, request.read)
        request.read += CHUNK
        if request.read < PROMPT:
            return []
        self.model.tokens[slot] = logits.argmax()
        torch.cuda.synchronize()
        request.told = 1
        return [f"first,1,{(time.perf_counter() - request.arrival) * 1e6:.2f}"]

    def step(self):
        if not self.requests:
            self.begin()
        self.pause()
        start = time.perf_counter()
        samples = self.read_prompt()
        self.model.decode([request.position() for request in self.requests])
        end = time.perf_counter()
        answering = [slot for slot, request in enumerate(self.requests) if request.told]
        for slot in answering:
            self.requests[slot].told += 1
            if self.requests[slot].told == ANSWER:
                self.requests[slot] = Request(end)
        return "\n".join([*samples, f"step,{len(answering)},{(end - start) * 1e6:.2f}"])

    def rest(self):
        self.requests = None
        if not torch.equal(self.known_result(), self.first):
            sys.exit("server.py: a wrong result")
        torch.cuda.synchronize()


def main():
    parser = conversation.parser(__doc__)
    parser.add_argument("load")
    parser.add_argument("--name")
    chosen = parser.parse_args()
    torch.manual_seed(1)
    with torch.no_grad():
        server = Server(chosen.load, chosen.name)
        conversation.converse(server, torch.cuda.get_device_properties(0).multi_processor_count, chosen)


if __name__ == "__main__":
    main()
