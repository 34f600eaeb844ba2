"""When there is work: a work of support/conversation.py that has pauses. The first line of a file says which:

    BUSY IDLE PAUSE    in ms: busy for BUSY, then idle for IDLE; while it is busy, PAUSE lies between two steps
    BUSY ~IDLE PAUSE   the same, but idle for IDLE in the mean: at random, as where nobody knows of anybody
    poisson MEAN SEED  steps are asked for at random, MEAN ms apart; one that comes too early waits, and that counts in the last µs
"""

import random
import time


def sleep_until(moment):
    """The last part of it without sleep, which may end too late."""
    left = moment - time.perf_counter()
    if left > 0.0005:
        time.sleep(left - 0.0003)
    while time.perf_counter() < moment:
        pass


class Bursts:
    def __init__(self, busy, idle, pause):
        self.busy, self.pause = float(busy) / 1e3, float(pause) / 1e3
        self.idle, self.is_random = float(idle.lstrip("~")) / 1e3, idle.startswith("~")
        self.end = time.perf_counter() - self.idle
        self.next = 0
        self.random = random.Random(1)

    def idle_time(self):
        return self.random.expovariate(1 / self.idle) if self.is_random else self.idle

    def step(self, work):
        kind, now = "next", time.perf_counter()
        if now >= self.end and (self.idle > 0 or self.next == 0):
            kind = "first"
            sleep_until(self.end + self.idle_time())
            self.end = time.perf_counter() + self.busy
        else:
            sleep_until(self.next)
        us = work.step()
        self.next = time.perf_counter() + self.pause
        return f"{kind},{us:.2f}"


class Poisson:
    def __init__(self, mean, seed):
        self.mean, self.arrival, self.random = float(mean) / 1e3, time.perf_counter(), random.Random(seed)

    def step(self, work):
        self.arrival += self.random.expovariate(1 / self.mean)
        sleep_until(self.arrival)
        us = work.step()
        return f"next,{us:.2f},{(time.perf_counter() - self.arrival) * 1e6:.2f}"


class Pattern:
    def __init__(self, work, path):
        self.work, self.path, self.pattern = work, path, None

    def step(self):
        if not self.pattern:
            words = open(self.path).read().split()
            self.pattern = Poisson(*words[1:]) if words[0] == "poisson" else Bursts(*words)
        return self.pattern.step(self.work)

    def rest(self):
        self.work.rest()
        self.pattern = None
