#!/usr/bin/env python3
"""Usage: tables.py [RESULTS]

What the experiments measured, as Markdown tables for docs/evaluation.md.
"""

import os
import sys

sys.dont_write_bytecode = True  # in a working tree
import results


def print_table(title, header, lines):
    print(f"\n### {title}\n")
    print("| " + " | ".join(header) + " |")
    print("|" + " --- |" * len(header))
    for line in lines:
        print("| " + " | ".join(line) + " |")


def number(value):
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"


def spread(values):
    percentiles = [number(results.percentile(values, percent)) for percent in (5, 50, 95, 99)]
    return [str(len(values)), *percentiles, number(max(values))]


SPREAD = ["samples", "5 %", "median", "95 %", "99 %", "max"]


def distributions(table, title, value, *columns):
    lines = [[*map(label, key), *spread(values)] for key, values in table.samples(value, *columns).items()]
    print_table(f"{title}, {value}", [*columns, *SPREAD], lines)


def label(value):
    return str(int(value)) if isinstance(value, float) else value


def differences(table, title, value, *columns):
    lines = []
    for (mechanism, *rest), (absolute, percent) in results.paired_differences(table, value, *columns).items():
        pair = f"{mechanism} − {results.COMPARED_WITH[mechanism]}"
        middle = [f"{results.median(absolute):+.4g} {value}", f"{results.median(percent):+.2f} %"]
        quartiles = results.percentile(percent, 25), results.percentile(percent, 75)
        ranges = [f"{low:+.2f} … {high:+.2f} %" for low, high in (results.median_interval(percent), quartiles)]
        lines.append([pair, *rest, *middle, *ranges])
    header = ["", *columns, "median", "relative", "19 times of 20", "quartiles"]
    print_table(f"{title}: differences of a round's medians", header, lines)


def startup(table):
    distributions(table, "Start-up", "ms", "mechanism")
    differences(table, "Start-up", "ms")


def hook(table):
    distributions(table, "Hook", "ns", "mechanism")
    differences(table, "Hook", "ns")


def launch(table):
    distributions(table, "Launch", "ns", "mechanism", "metric")
    differences(table, "Launch", "ns", "metric")


def enforcement(table):
    """The same distributions, against the time that the size would make one expect and against being alone."""
    expected = results.scaled(table)
    all_samples = table.samples("us", "mechanism", "choice", "sms", "neighbour")
    lines = []
    for (mechanism, choice, sms, neighbour), values in all_samples.items():
        alone = all_samples.get((mechanism, choice, sms, "alone"), values)
        tail = results.percentile(values, 99) / results.percentile(alone, 99) - 1
        relative = [f"{results.median(values) / expected[sms]:.2f}", f"{tail * 100:+.1f} %"]
        lines.append([mechanism, choice, label(sms), neighbour, *spread(values), *relative])
    header = ["mechanism", "choice", "SMs", "neighbour", *SPREAD, "median / scaled", "99 % against alone"]
    print_table("Enforcement, us", header, lines)


def granularity(table):
    lines = []
    for (mechanism,), rows in table.groups("mechanism").items():
        sizes = {row["sms"] for row in rows}
        lines.append([mechanism, str(len(sizes)), label(min(sizes)), label(max(sizes))])
    print_table("Granularity", ["mechanism", "sizes seen", "fewest SMs", "most SMs"], lines)


def pitfall(table):
    """Laps of the third task in each ms, while the second still works and after.

    It joins in the middle of the second one's time; where it has to wait, it runs no lap until that has ended.
    """
    lines = []
    for (mechanism,), rows in table.groups("mechanism").items():
        second = [row["ms"] for row in rows if row["task"] == "task2"]
        third = {row["ms"]: row["laps"] for row in rows if row["task"] == "task3"}
        if second and third:
            joins, end = (min(second) + max(second)) / 2, max(second)
            before = [third.get(ms, 0) for ms in second if joins < ms < end - 10]
            after = [laps for ms, laps in third.items() if ms > end + 10]
            lines.append([mechanism] + [number(results.median(laps) / 10) if laps else "-" for laps in (before, after)])
    header = ["mechanism", "beside the second", "after it"]
    print_table("Pitfall: laps of the third task in a ms", header, lines)


EXPERIMENTS = {
    "startup": startup,
    "parts": lambda table: distributions(table, "Start-up until the driver is loaded, part by part", "ms", "part"),
    "launch": launch,
    "hook": hook,
    "enforcement": enforcement,
    "granularity": granularity,
    "pitfall": pitfall,
    "resize": lambda table: distributions(table, "Live resize", "us", "work", "metric"),
    "command": lambda table: distributions(table, "The command", "us", "action"),
    "tail": lambda table: distributions(
        table, "Latency beside a batch", "us", "workload", "side", "mechanism", "neighbour"
    ),
    "processes": lambda table: distributions(
        table, "Many processes", "us", "metric", "mechanism", "connections", "processes"
    ),
    "strategies": lambda table: distributions(table, "Strategies", "us", "work", "tpcs", "strategy"),
    "overlap": lambda table: distributions(table, "Overlap", "us", "shared_tpcs", "task"),
    "callback": lambda table: distributions(table, "Callback", "instructions", "partition"),
}


def main():
    directory = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.environ.get("BUILD", "build"), "bench", "results")
    tables = results.read(directory)
    for name, show in EXPERIMENTS.items():
        if name in tables:
            show(tables[name])


if __name__ == "__main__":
    main()
