"""How the Python programs of the experiments talk: as support/conversation.h says. They work from the beginning; with --at-rest,
when they are told to.

Import this before torch: signals are blocked here, and torch's threads inherit that.
"""

import argparse
import math
import os
import signal
import sys
import time

SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2}
signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)


def fail_in_one_line(kind, error, trace):
    """The first line on standard error is the reason; experiments show it."""
    reason = (str(error).splitlines() or [""])[0]
    print(f"{os.path.basename(sys.argv[0])}: {kind.__name__}: {reason}", file=sys.stderr)
    sys.__excepthook__(kind, error, trace)


sys.excepthook = fail_in_one_line


def parser(usage):
    options = argparse.ArgumentParser(description=usage, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=math.inf)
    options.add_argument("--samples", type=int, default=math.inf)
    options.add_argument("--at-rest", action="store_true")
    return options


def next_signal(wait):
    """The number of a signal that was sent; None if there is none. Waits for one if it is to."""
    if wait:
        return signal.sigwait(SIGNALS)
    sent = signal.sigtimedwait(SIGNALS, 0)
    return sent.si_signo if sent else None


def print_lines(*lines):
    print(*lines, sep="\n", end="\n" if lines else "", flush=True)


def in_lines(samples):
    return (sample if isinstance(sample, str) else f"{sample:.2f}" for sample in samples)


def have_a_stream():
    """XSched sees nothing of the legacy default stream; so all programs have one of their own."""
    import torch  # not before, see above

    torch.cuda.synchronize()
    torch.cuda.set_stream(torch.cuda.Stream())


def converse(work, sm_count, chosen, own_stream=True):
    """Calls work.step() again and again: it returns its µs, or lines of samples, or None; and work.rest(), after which the GPU is idle."""
    if own_stream:
        have_a_stream()
    print_lines(f"ready {sm_count}")
    samples, resting = [], chosen.at_rest
    end = time.perf_counter() + chosen.seconds
    while len(samples) < chosen.samples and time.perf_counter() < end:
        number = next_signal(wait=resting)
        if number == signal.SIGUSR1:
            samples = []
        if number is None or (number == signal.SIGUSR1 and resting):  # a step, whatever was sent since
            sample = work.step()
            samples += [] if sample is None else [sample]
            resting = False
        elif number == signal.SIGUSR2:
            work.rest()
            print_lines(*in_lines(samples), "rest")
            samples, resting = [], True
        elif number != signal.SIGUSR1:
            break
    work.rest()
    print_lines(*in_lines(samples))
