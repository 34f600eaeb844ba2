"""Usage: deaths.py [--deaths N] [--seconds S] [--ahead N] [--neighbour PRIORITY] [--victims PRIORITY[,PRIORITY]] [--seed S]

Programs die in the middle of their work, in turns with a neighbour of another priority, higher or lower ones: by SIGKILL, stopped by SIGSTOP and
then killed, at their own end with the context, by executing, and as the parent and the child of a fork. For each kind: after
how many ms the neighbour's first kernel ended, counted from when the program was gone, with all that the driver does at
its end (waited for, with its child; executing: its next image prints a line). It fails where that took more than 10 ms, or
the neighbour did not go on to its end. N programs wait for their death, ready (--ahead); after S seconds no more die.

Needs a GPU, PyTorch, and nvtaskset's build directory in BUILD.
"""

import argparse
import bisect
import ctypes
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

PR_SET_CHILD_SUBREAPER = 36
PROMISED_MS = 10
KINDS = ["kill", "stop", "end", "exec", "fork"]
BUILD = os.environ.get("BUILD", "build")
STEPS = {"exec": ["exec", "wait"], "fork": ["fork", "wait"]}


def neighbour(path):
    import torch

    going = True

    def end(*_):
        nonlocal going
        going = False

    signal.signal(signal.SIGTERM, end)
    torch.cuda._sleep(1)
    torch.cuda.synchronize()
    print("ready", flush=True)
    times = []
    while going:
        torch.cuda._sleep(200_000)
        torch.cuda.synchronize()
        times.append(time.monotonic())
    with open(path, "w") as file:
        json.dump(times, file)
    os._exit(0)


def in_turns(priority, *command, **options):
    return subprocess.Popen(
        [f"{BUILD}/nvtaskset", "--mps", "off", "--priority", str(priority), "all", *command],
        stdout=subprocess.PIPE, text=True, **options)


def start_victim(kind, priority):
    steps = ["context", "wait", "busy", "wait", *STEPS.get(kind, [])]
    return kind, in_turns(priority, f"{BUILD}/tests/programs/play", *steps, start_new_session=True)


def reap(victim):
    """Waits for it and for its child, which is this process's then."""
    victim.wait()
    try:
        while True:
            os.waitpid(-victim.pid, 0)
    except ChildProcessError:
        pass


def die(kind, victim):
    """Returns when it was gone."""
    if kind in ("exec", "fork"):
        os.kill(victim.pid, signal.SIGUSR1)
        victim.stdout.readline()
        gone = time.monotonic()
        time.sleep(random.uniform(0.02, 0.06))
        os.killpg(victim.pid, signal.SIGKILL)
        reap(victim)
        return gone if kind == "exec" else time.monotonic()
    if kind == "stop":
        os.kill(victim.pid, signal.SIGSTOP)
        time.sleep(random.uniform(0, 0.03))
    os.kill(victim.pid, signal.SIGUSR1 if kind == "end" else signal.SIGKILL)
    victim.wait()
    return time.monotonic()


def kill_one_by_one(options):
    """Returns of each its kind, and when it was gone."""
    ready, gone = [], []
    end = time.monotonic() + options.seconds
    while (len(gone) < options.deaths and time.monotonic() < end) or ready:
        is_over = time.monotonic() >= end
        while not is_over and len(ready) < min(options.ahead, options.deaths - len(gone)):
            ready.append(start_victim(random.choice(KINDS), random.choice(options.victims.split(","))))
        kind, victim = ready.pop(0)
        assert victim.stdout.readline() == "waiting\n"
        os.kill(victim.pid, signal.SIGUSR1)
        assert victim.stdout.readline() == "waiting\n"
        time.sleep(random.uniform(0.001, 0.05))
        gone.append((kind, die(kind, victim)))
        time.sleep(random.uniform(0.001, 0.01))
    time.sleep(1)
    return gone


def report(gone, times):
    """Returns whether each was followed by a kernel of the neighbour in time."""
    late = {kind: [] for kind in KINDS}
    for kind, at in gone:
        after = bisect.bisect_left(times, at)
        late[kind].append(1000 * (times[after] - at) if after < len(times) else float("inf"))
    for kind, delays in late.items():
        delays.sort()
        n = len(delays)
        if n:
            print(f"{kind}: n {n}, median {delays[n // 2]:.2f}, p99 {delays[min(n - 1, n * 99 // 100)]:.2f}, "
                  f"max {delays[-1]:.2f} ms, over {PROMISED_MS} ms: {sum(delay > PROMISED_MS for delay in delays)}")
    pauses = sorted((later - before for before, later in zip(times, times[1:])), reverse=True)
    print(f"the neighbour made {len(times)} kernels; its longest pauses: "
          + ", ".join(f"{1000 * pause:.1f}" for pause in pauses[:5]) + " ms")
    return all(delay <= PROMISED_MS for delays in late.values() for delay in delays)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--deaths", type=int, default=1000)
    options.add_argument("--seconds", type=float, default=float("inf"))
    options.add_argument("--ahead", type=int, default=6)
    options.add_argument("--neighbour", default="50")
    options.add_argument("--victims", default="80,20")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--work", help=argparse.SUPPRESS)
    options = options.parse_args()
    if options.work:
        neighbour(options.work)
    random.seed(options.seed)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with tempfile.NamedTemporaryFile("r") as file:
        beside = in_turns(options.neighbour, sys.executable, __file__, "--work", file.name)
        assert beside.stdout.readline() == "ready\n"
        gone = kill_one_by_one(options)
        beside.terminate()
        status = beside.wait(60)
        is_in_time = report(gone, json.load(file))
    sys.exit(0 if is_in_time and status == 0 else f"failed: the neighbour waited, or ended with status {status}")


main()
