"""Usage: voice.py decoder|vocoder QUEUE [--load FILE] [--seconds S] [--samples N] [--at-rest]

A voice service in two processes. The decoder, a language model of 0.4 billion random weights, makes tokens of speech for up to 16
requests at a time, in a CUDA graph; each 25 of one, a second of speech, it puts into QUEUE, a named pipe. The vocoder, a network of
convolutions, takes them one at a time and makes them sound. A request has three such pieces.

FILE, read again after each rest, is RATE SEED: so many requests arrive in a second, at random. One that finds no place waits.

A sample of the decoder is a step, in µs; of the vocoder, `first,µs`: from a request's arrival to its first sound; `gap,µs`: from one
piece to the next; `whole,µs`: from the arrival to the last piece. A result that is wrong is a failure.
"""

import fcntl
import os
import random
import select
import struct
import sys
import time

sys.dont_write_bytecode = True  # in a working tree
from support import conversation  # before torch, see there

import torch
import torch.nn.functional as F
from torch import nn

from support.graphs import capture
from support.language import Model, Shape

PIECE, PIECES, PROMPT = 25, 3, 64
SHAPE = Shape(layers=24, width=1024, heads=16, groups=16, hidden=4096, vocabulary=6561, slots=16, length=PROMPT + PIECE * PIECES)
RECORD = struct.Struct("dqq25i")  # arrival, number of the request, number of the piece, tokens
QUEUE_SIZE = 1 << 20  # some 8000 pieces: more than a turn has
PATIENCE = 0.02  # between two looks for signals

FRAMES, BANDS = 50, 80  # of a piece's spectrogram
RATES, CHANNELS = (8, 5, 4, 3), 512  # 480 samples a frame


class Request:
    def __init__(self, number, arrival):
        self.number, self.arrival, self.tokens, self.pieces = number, arrival, [], 0


class Decoder:
    """A work of support/conversation.py."""

    def __init__(self, chosen):
        self.load, self.random, self.number, self.next = chosen.load, None, 0, None
        self.queue = os.open(chosen.queue, os.O_RDWR | os.O_NONBLOCK)  # so that it can be opened before the other one has it
        fcntl.fcntl(self.queue, fcntl.F_SETPIPE_SZ, QUEUE_SIZE)
        self.waiting, self.slots = [], [None] * SHAPE.slots
        self.model = Model(SHAPE)
        self.model.capture(SHAPE.slots)
        self.first = self.known_result()
        if not torch.isfinite(self.first).all():
            sys.exit("voice.py: the model's result is no number")

    def known_result(self):
        self.model.tokens.zero_()
        for layer in self.model.layers:
            layer.keys.zero_(), layer.values.zero_()
        self.model.decode([PROMPT] * SHAPE.slots)
        return self.model.logits.clone()

    def arrive(self):
        now = time.perf_counter()
        if self.next is None:
            rate, seed = open(self.load).read().split()
            self.rate, self.random = float(rate), random.Random(seed)
            self.next = now
        while self.next <= now:
            self.waiting.append(Request(self.number, self.next))
            self.number += 1
            self.next += self.random.expovariate(self.rate)
        for slot in range(SHAPE.slots):
            if not self.slots[slot] and self.waiting:
                self.slots[slot] = self.waiting.pop(0)

    def step(self):
        self.arrive()
        if not any(self.slots):
            time.sleep(min(PATIENCE, max(0, self.next - time.perf_counter())))
            return None
        start = time.perf_counter()
        tokens = self.model.decode([PROMPT + PIECE * one.pieces + len(one.tokens) if one else 0 for one in self.slots])
        end = time.perf_counter()
        for slot, request in enumerate(self.slots):
            if request:
                request.tokens.append(tokens[slot])
                if len(request.tokens) == PIECE:
                    self.send(slot, request)
        return (end - start) * 1e6

    def send(self, slot, request):
        os.write(self.queue, RECORD.pack(request.arrival, request.number, request.pieces, *request.tokens))
        request.tokens, request.pieces = [], request.pieces + 1
        if request.pieces == PIECES:
            self.slots[slot] = None

    def rest(self):
        self.waiting, self.slots, self.next = [], [None] * SHAPE.slots, None
        if not torch.equal(self.known_result(), self.first):
            sys.exit("voice.py: a wrong result")
        torch.cuda.synchronize()


class Residual(nn.Module):
    def __init__(self, channels, size, dilation):
        super().__init__()
        padding = dilation * (size - 1) // 2
        self.wide = nn.Conv1d(channels, channels, size, padding=padding, dilation=dilation)
        self.near = nn.Conv1d(channels, channels, size, padding=(size - 1) // 2)

    def forward(self, sound):
        return sound + self.near(F.leaky_relu(self.wide(F.leaky_relu(sound, 0.1)), 0.1))


class Network(nn.Module):
    """As large as HiFi-GAN's V1 (Kong et al., 2020), but for the rates."""

    def __init__(self):
        super().__init__()
        self.before = nn.Conv1d(BANDS, CHANNELS, 7, padding=3)
        self.stages, channels = nn.ModuleList(), CHANNELS
        for rate in RATES:
            wider = nn.ConvTranspose1d(channels, channels // 2, 2 * rate, rate, padding=rate // 2 + rate % 2, output_padding=rate % 2)
            channels //= 2
            paths = [nn.Sequential(*(Residual(channels, size, step) for step in (1, 3, 5))) for size in (3, 7, 11)]
            self.stages.append(nn.ModuleList([wider, *paths]))
        self.after = nn.Conv1d(channels, 1, 7, padding=3)

    def forward(self, sound):
        sound = self.before(sound)
        for wider, *paths in self.stages:
            sound = wider(F.leaky_relu(sound, 0.1))
            sound = sum(path(sound) for path in paths) / len(paths)
        return torch.tanh(self.after(sound))


class Vocoder:
    """A work of support/conversation.py."""

    def __init__(self, chosen):
        self.queue = os.open(chosen.queue, os.O_RDWR | os.O_NONBLOCK)
        self.begin, self.last = time.perf_counter(), {}
        network = Network().eval().to("cuda", torch.float16)
        self.spectrum = torch.randn(1, BANDS, FRAMES, device="cuda", dtype=torch.float16)
        self.graph, self.sound = capture(lambda: network(self.spectrum))
        self.network = network
        self.compute()
        self.first = self.sound.clone()
        if not torch.isfinite(self.first).all():
            sys.exit("voice.py: the sound is no number")

    def compute(self):
        self.graph.replay()
        torch.cuda.synchronize()

    def read(self):
        """The next piece; None if there is none for a while."""
        if not select.select([self.queue], [], [], PATIENCE)[0]:
            return None
        return RECORD.unpack(os.read(self.queue, RECORD.size))

    def step(self):
        piece = self.read()
        if not piece or piece[0] < self.begin or (piece[2] and piece[1] not in self.last):  # of the turn before
            return None
        arrival, number, place = piece[:3]
        self.compute()
        now = time.perf_counter()
        samples = [f"gap,{(now - self.last[number]) * 1e6:.2f}"] if place else [f"first,{(now - arrival) * 1e6:.2f}"]
        self.last[number] = now
        if place == PIECES - 1:
            samples.append(f"whole,{(now - arrival) * 1e6:.2f}")
            self.last.pop(number)
        return "\n".join(samples)

    def rest(self):
        self.begin, self.last = time.perf_counter(), {}
        if not torch.equal(self.sound, self.first):
            sys.exit("voice.py: a wrong sound")


def main():
    parser = conversation.parser(__doc__)
    parser.add_argument("part", choices=["decoder", "vocoder"])
    parser.add_argument("queue")
    parser.add_argument("--load")
    chosen = parser.parse_args()
    torch.manual_seed(1)
    with torch.no_grad():
        work = Decoder(chosen) if chosen.part == "decoder" else Vocoder(chosen)
        conversation.converse(work, torch.cuda.get_device_properties(0).multi_processor_count, chosen)


if __name__ == "__main__":
    main()
