"""Compares what nvtaskset trace has written, for trace.sh. Fails where they differ.

Usage: trace.py clocks TRACE LOOKS END_US [BEGIN_US]
                                       LOOKS: lines of bench/accounting/duty.c: BEGIN,END of each kernel on %globaltimer
       trace.py names TRACE CUPTI      a trace of torch.profiler of a second, equal run
       trace.py number TRACE LAUNCHES
       trace.py work [CUPTI]           the program of both runs; talks as bench/support/conversation.h says
"""

import collections
import json
import signal
import statistics
import sys

LENGTH = 0.02  # tolerance of mean lengths
NAME = 400  # the length of a compared name


def events_of(path):
    with open(path) as file:
        events = json.load(file)
    return events if isinstance(events, list) else events["traceEvents"]


def kernels_of(events):
    return sorted((event for event in events if event.get("cat") == "kernel"), key=lambda event: event["ts"])


def check(what, errors, most_us):
    """`errors`: of each kernel, with the error that the trace itself tells."""
    sizes = sorted(abs(error) for error, _ in errors)
    outside = sum(abs(error) > float(most_us) + told for error, told in errors)
    print(f"{what}: of {len(sizes)} kernels, {sum(told > 0 for _, told in errors)} tell an error of the clocks;"
          f" off by {statistics.median(sizes):.3f} us in the median, 99 % by {sizes[len(sizes) * 99 // 100]:.3f},"
          f" most by {sizes[-1]:.3f}; {outside} by more than {most_us} and the error told")
    return outside == 0


def clocks(trace, looks, end_us, begin_us=None):
    """The clocks' distance and rate are those of the line through all ends that tell no error."""
    kernels = kernels_of(events_of(trace))
    with open(looks) as file:
        seen = [tuple(int(ns) for ns in line.split(",")) for line in file if "," in line]
    if len(seen) != len(kernels):
        sys.exit(f"{len(seen)} kernels ran, {len(kernels)} are in the trace")
    rows = []
    for kernel, (begin, end) in zip(kernels, seen):
        told = kernel["args"].get("clock_error_us", 0)
        rows.append((kernel, (begin - seen[0][0]) / 1e3, (end - seen[0][0]) / 1e3, told))
    least = min(told for *_, told in rows)
    exact = [(end, kernel["ts"] + kernel["dur"]) for kernel, _, end, told in rows if told == least]
    rate, distance = statistics.linear_regression(*zip(*exact))
    ends = [(kernel["ts"] + kernel["dur"] - distance - rate * end, told) for kernel, _, end, told in rows]
    begins = [(kernel["ts"] - distance - rate * begin, told) for kernel, begin, _, told in rows
              if "begin" not in kernel["args"]]
    return check("ends", ends, end_us) & (begin_us is None or check("begins", begins, begin_us))


def names(trace, cupti):
    lengths = []
    for path in trace, cupti:
        of_names = collections.defaultdict(list)
        for kernel in kernels_of(events_of(path)):
            of_names[kernel["name"].replace(" ", "")[:NAME], str(kernel["args"].get("grid"))].append(kernel["dur"])
        lengths.append(of_names)
    is_same = True
    for name in sorted(lengths[0].keys() | lengths[1].keys()):
        ours, theirs = lengths[0][name], lengths[1][name]
        mean, right = statistics.mean(ours or [0]), statistics.mean(theirs or [0])
        is_same &= len(ours) == len(theirs) and abs(mean - right) <= LENGTH * right
        print(f"{len(ours)} of {mean:.3f} us, by CUPTI {len(theirs)} of {right:.3f}: {name[0][:60]}, {name[1]}")
    return is_same


def number(trace, launches):
    events, launched = events_of(trace), int(launches)
    found, dropped = len(kernels_of(events)), events[-1]["args"]["dropped_kernels"]
    print(f"{launched} launches, {found} in the trace, {dropped} dropped")
    return launched > 0 and found + dropped == launched


def work(cupti=None):
    """Kernels of 50 us and longer."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM})
    import torch
    from torch.profiler import ProfilerActivity, profile

    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(2))
    gradient = torch.ones_like(a)

    def step():
        a.grad = b.grad = None
        torch.softmax(torch.relu(a @ b), 1).backward(gradient)

    def steps():
        for _ in range(50):
            step()
        torch.cuda.synchronize()

    steps()
    steps()
    print("ready", flush=True)
    signal.sigwait({signal.SIGUSR1})
    if cupti:
        with profile(activities=[ProfilerActivity.CUDA]) as profiler:
            steps()
        profiler.export_chrome_trace(cupti)
    else:
        steps()
    signal.sigwait({signal.SIGUSR2})
    print("rest", flush=True)
    signal.sigwait({signal.SIGTERM})
    return True


sys.exit(0 if globals()[sys.argv[1]](*sys.argv[2:]) else 1)
