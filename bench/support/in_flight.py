"""Work that never lets the GPU wait for the host; support/in_flight.c does the same. A work of support/conversation.py."""

import collections
import os
import sys
import time

import torch

IN_FLIGHT = 2


class InFlight:
    """Two repetitions of a work are always in flight, so that the GPU never waits for the host: work.start launches one, and
    work.is_right says whether the last one's result is right."""

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
            sys.exit(f"{os.path.basename(sys.argv[0])}: a wrong result")
