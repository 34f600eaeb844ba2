#!/usr/bin/env python3
"""Draws docs/lending.svg: a service that lends its TPCs and a training that borrows them, as nvtaskset trace records both on
the simulated GPU.

usage: docs/lending.py >docs/lending.svg      (needs build/bench/duty and build/sim/libcuda.so.1; BUILD is the build directory)
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time

from terminal import BUILD, INK, PAPER, use_simulated_gpu

SERVICE = "nvtaskset --mps auto --lend=5ms -t 0-23 answer 25 40 5"  # 5 kernels of 2 ms in each 40 ms
TRAINING = "nvtaskset --mps auto --borrow -t 24-57 train 100 4 4"  # kernels of 1 ms, behind each other
WIDTH, LEFT, RIGHT, SHOWN_MS = 900, 190, 20, 130
GREY, FIRST, SECOND, LENT = "#9a9a9a", "#569cd6", "#d98a3d", "#4ec9b0"


def start(command):
    program = subprocess.Popen(command.split(), stdout=subprocess.PIPE, text=True)
    while not program.stdout.readline().startswith("ready"):
        pass
    program.send_signal(signal.SIGUSR1)
    return program


def record(work):
    use_simulated_gpu(work)
    for name in ("answer", "train"):
        os.symlink(os.path.join(BUILD, "bench", "duty"), os.path.join(work, name))
    path = os.path.join(work, "trace")
    programs = [start(SERVICE), start(TRAINING)]
    time.sleep(2)
    subprocess.run(["nvtaskset", "trace", "-o", path, "--seconds", "2"], check=True)
    for program in programs:
        program.kill()
    with open(path) as file:
        return [program.pid for program in programs], json.load(file)


def at(time_us, begin):
    return LEFT + (time_us - begin) / 1e3 / SHOWN_MS * (WIDTH - LEFT - RIGHT)


def write(x, y, text, color=INK, anchor="start", size=14):
    yield (f'<text x="{x:.1f}" y="{y:.1f}" font-family="sans-serif" font-size="{size}" fill="{color}" '
           f'text-anchor="{anchor}">{text}</text>')


def bars(events, pid, begin, y, color):
    end = begin + SHOWN_MS * 1e3
    for event in events:
        if event.get("cat") == "kernel" and event["pid"] == pid and begin < event["ts"] and event["ts"] + event["dur"] < end:
            left = at(event["ts"], begin)
            width = max(at(event["ts"] + event["dur"], begin) - left - 0.6, 0.6)
            yield f'<rect x="{left:.1f}" y="{y}" width="{width:.1f}" height="30" fill="{color}"/>'


def steps(events, name, begin, y, most, color):
    """A number of TPCs over time, as an area of at most 40 places."""
    changes = sorted((event["ts"], event["args"]["TPCs"]) for event in events if event["ph"] == "C" and name in event["name"])
    last, points, end = 0, [], begin + SHOWN_MS * 1e3
    for when, tpcs in [change for change in changes if change[0] < end] + [(end, 0)]:
        points = points if when > begin else []
        points += [(at(max(when, begin), begin), last), (at(max(when, begin), begin), tpcs)]
        last = tpcs
    text = " ".join(f"{x:.1f},{y + 40 - 40 * tpcs / most:.1f}" for x, tpcs in points)
    yield f'<polygon points="{LEFT},{y + 40} {text} {WIDTH - RIGHT},{y + 40}" fill="{color}"/>'


def picture(pids, events):
    service = [event["ts"] for event in events if event.get("cat") == "kernel" and event["pid"] == pids[0]]
    begin = next(now for now, before in zip(service[50:], service[49:]) if now - before > 20e3) - 15e3
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="330" viewBox="0 0 {WIDTH} 330" role="img" '
           'aria-label="A service works in bursts; in its pauses a training uses its TPCs">')
    yield f'<rect width="100%" height="100%" rx="6" fill="{PAPER}"/>'
    rows = (("answer, TPCs 0-23", "kernels"), ("TPCs lent", "24, or none"), ("train, TPCs 24-57", "kernels"),
            ("busy TPCs of the GPU", "of 66"))
    for row, (title, below) in enumerate(rows):
        yield from write(14, 34 + 70 * row, title)
        yield from write(14, 52 + 70 * row, below, GREY, size=12)
    yield from bars(events, pids[0], begin, 22, FIRST)
    yield from steps(events, f"TPCs lent to {pids[1]}", begin, 84, 24, LENT)
    yield from bars(events, pids[1], begin, 162, SECOND)
    yield from steps(events, "busy TPCs", begin, 224, 66, GREY)
    for ms in range(0, SHOWN_MS + 1, 10):
        x = at(begin + ms * 1e3, begin)
        yield f'<path d="M {x:.1f} 14 V 272" stroke="#ffffff" stroke-opacity="0.12"/>'
        yield from write(x, 292, f"{ms} ms" if ms % 20 == 0 else "", GREY, "middle", 12)
    yield from write(14, 318, "Recorded by nvtaskset trace on the simulated GPU.", GREY, size=12)
    yield "</svg>"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as work:
        print("\n".join(picture(*record(work))))
