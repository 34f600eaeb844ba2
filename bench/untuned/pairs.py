"""Rates of a program that nobody tuned, in pairs of modes that `nvtaskset -p` switches while it runs beside a lender:
what a borrower gains over fixed halves of the GPU, and what its lender loses. Each mode once in each round, the order
rotated.

    pairs.py NVTASKSET BORROWER:LENDER… [--rounds N] [--seconds S] [--settle S] [--modes fixed,borrow,all] [--limit 2ms]

Prints for each mode the median of the ratios to `fixed`, with an interval of 95 % by resampling rounds, of the
borrower's rate; and of the lender: its rate, and p50 and p95 of its answers.
"""

import argparse
import bisect
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))


class Program:
    def __init__(self, options, arguments, name):
        self.log = tempfile.NamedTemporaryFile("w+", suffix=f".{name}")
        self.errors = tempfile.NamedTemporaryFile("w+")
        command = [options.nvtaskset, *arguments, sys.executable, os.path.join(HERE, "program.py"), name]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.errors)
        self.name = name

    def wait(self, lines, seconds=120):
        end = time.monotonic() + seconds
        while len(self.read()) < lines:
            if time.monotonic() > end or self.process.poll() is not None:
                self.errors.seek(0)
                sys.exit(f"{self.name} does not run: {self.errors.read()[-2000:]}")
            time.sleep(0.2)

    def read(self):
        with open(self.log.name) as log:
            return [tuple(map(float, line.split())) for line in log.read().splitlines() if line.strip()][:]

    def own_thread(self):
        """Seconds that the thread of the library has run."""
        for task in os.listdir(f"/proc/{self.process.pid}/task"):
            with open(f"/proc/{self.process.pid}/task/{task}/stat") as stat:
                name, _, rest = stat.read().partition("(")[2].rpartition(")")
            if name == "nvtaskset":
                fields = rest.split()
                return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return 0.0

    def stop(self):
        self.process.kill()
        self.process.wait()


def switch(options, mode, borrower):
    # With -a: `compile` has child processes.
    changes = {"fixed": ["--borrow=off", "-atp", options.half], "borrow": ["--borrow", "-atp", options.half],
               "all": ["--borrow=off", "-ap", "all"]}
    subprocess.run([options.nvtaskset, *changes[mode], str(borrower.process.pid)], check=True,
                   stdout=subprocess.DEVNULL)


def rate(ends, begin, end):
    times = [entry[0] for entry in ends]
    inside = times[bisect.bisect(times, begin):bisect.bisect(times, end)]
    return (len(inside) - 1) / (inside[-1] - inside[0]) if len(inside) > 2 else float("nan")


def lengths(ends, begin, end):
    return [entry[1] for entry in ends if len(entry) > 1 and begin < entry[0] <= end]


def interval(values):
    medians = sorted(statistics.median(random.choices(values, k=len(values))) for _ in range(1000))
    return medians[25], medians[974]


def show(name, values):
    low, high = interval(values)
    print(f"  {name:28} {statistics.median(values):6.3f}  ({low:.3f} to {high:.3f}, n = {len(values)})")


def quantile(values, part):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else float("nan")


def run(options, pair):
    borrower_name, lender_name = pair.split(":")
    lender = Program(options, ["-t", options.other, f"--lend={options.limit}"], lender_name)
    lender.wait(1)
    borrower = Program(options, ["-t", options.half, "--borrow"], borrower_name)
    borrower.wait(options.warm)
    windows, threads = [], {}
    modes = options.modes.split(",")
    for round_number in range(options.rounds):
        shift = round_number % len(modes)
        for mode in modes[shift:] + modes[:shift]:
            switch(options, mode, borrower)
            time.sleep(options.settle)
            begin, ran = time.monotonic(), borrower.own_thread()
            time.sleep(options.seconds)
            windows.append((round_number, mode, begin, time.monotonic()))
            threads[mode] = threads.get(mode, 0) + borrower.own_thread() - ran
    looked = subprocess.run([options.nvtaskset, "-l"], capture_output=True, text=True).stdout
    time.sleep(0.3)
    borrowed, lent = borrower.read(), lender.read()
    borrower.stop()
    lender.stop()
    print(f"{borrower_name} borrows from {lender_name}")
    rates = {(n, mode): rate(borrowed, b, e) for n, mode, b, e in windows}
    print("  a second:", ", ".join(f"{mode} {statistics.median(rates[n, mode] for n in range(options.rounds)):.2f}"
                                   for mode in modes))
    spent = options.rounds * options.seconds
    print("  our thread in the borrower, of a core:",
          ", ".join(f"{mode} {100 * threads[mode] / spent:.1f} %" for mode in modes))
    for mode in modes[1:]:
        show(f"{mode} / fixed", [rates[n, mode] / rates[n, "fixed"] for n in range(options.rounds)])
    if "all" in modes and "borrow" in modes:
        show("borrow / all", [rates[n, "borrow"] / rates[n, "all"] for n in range(options.rounds)])
    for mode in modes:
        waits = [value for n, m, b, e in windows if m == mode for value in lengths(lent, b, e)]
        if waits:
            print(f"  lender, {mode}: n {len(waits)}, p50 {1e3 * quantile(waits, .5):.3f} ms,"
                  f" p95 {1e3 * quantile(waits, .95):.3f},"
                  f" p99 {1e3 * quantile(waits, .99):.3f}")
    if options.verbose:
        for n in range(options.rounds):
            print(f"  round {n}:", ", ".join(f"{mode} {rates[n, mode]:.2f}" for mode in modes))
        print(looked)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("nvtaskset")
    parser.add_argument("pairs", nargs="+")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=2.5)
    parser.add_argument("--settle", type=float, default=0.5, help="after a switch, not counted in rates")
    parser.add_argument("--modes", default="fixed,borrow,all")
    parser.add_argument("--limit", default="2ms")
    parser.add_argument("--warm", type=int, default=30)
    parser.add_argument("--half", default="0-32")
    parser.add_argument("--other", default="33-65")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    for pair in options.pairs:
        run(options, pair)
        sys.stdout.flush()


main()
