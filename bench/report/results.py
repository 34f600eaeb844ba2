"""The CSV files of an experiment's results, also compressed. The standard library is enough."""

import csv
import functools
import gzip
import hashlib
import itertools
import math
import os

import jobs
import stats

# Tables and pictures show the mechanisms in this order, whatever the order in which they were measured.
MECHANISMS = "alone-first none xsched hami mps mps-priority mps-percent green mps-static mig fixed lend-250us lend-500us lend-1ms lend-2ms lend-4ms lend-8ms follow shared nvtaskset".split()
MECHANISMS += ["nvtaskset-distributed", "nvtaskset-overlap", "nvtaskset-no-mps", "nvtaskset-priority", "nvtaskset-weight", "by-hand"]
MECHANISMS += ["nvtaskset-prt", "nvtaskset-ht", "nvtaskset-stepping", "nvtaskset-pe", "nvtaskset-ae"]
MECHANISMS += ["nvtaskset-lend", "whole"]

# The mechanism to which each one is compared.
COMPARED_WITH = {
    "mps-percent": "mps",
    "green": "mps",
    "nvtaskset": "mps",
    "nvtaskset-no-mps": "none",
    "nvtaskset-priority": "none",
    "nvtaskset-weight": "none",
    "by-hand": "none",
    "nvtaskset-prt": "mps",
    "nvtaskset-ht": "mps",
    "nvtaskset-stepping": "mps",
    "nvtaskset-lend": "mps",
    "lend-2ms": "fixed",
    "lend-500us": "fixed",
    "lend-250us": "fixed",
    "nvtaskset-pe": "mps",
    "nvtaskset-ae": "mps",
    "hook-whole": "hook-out",
    "hook-half": "hook-out",
}

NAMES = {
    "none": "plain turns",
    "mps": "MPS",
    "mps-priority": "MPS, client priority",
    "mps-percent": "MPS, percentage",
    "mps-static": "MPS, static",
    "green": "green contexts",
    "mig": "MIG",
    "gpcs": "whole GPCs",
    "nvtaskset-distributed": "nvtaskset, across GPCs",
    "nvtaskset-overlap": "nvtaskset, only the neighbour",
    "nvtaskset-no-mps": "nvtaskset, no MPS",
    "nvtaskset-priority": "nvtaskset, priority in turns",
    "nvtaskset-weight": "nvtaskset, equal weights",
    "by-hand": "short time slices by hand",
    "nvtaskset-prt": "nvtaskset, PRT",
    "nvtaskset-ht": "nvtaskset, HT",
    "nvtaskset-stepping": "nvtaskset, priority side by side",
    "nvtaskset-lend": "nvtaskset, lending",
    "alone-first": "alone",
    "xsched": "XSched 1.2",
    "hami": "HAMi-core",
    "fixed": "nvtaskset, fixed",
    "follow": "nvtaskset, a script with -p",
    "shared": "nvtaskset, both on all TPCs",
    "turns": "in turns",
    "equal": "six equal partitions",
    "plan": "the plan",
    "nvtaskset-pe": "nvtaskset, PE",
    "nvtaskset-ae": "nvtaskset, AE",
    "pe": "PE",
    "ae": "AE",
    "ahead": "the GPU's part of a step",
    "hook-out": "the hook taken out",
    "hook-whole": "all TPCs in the partition",
    "hook-half": "half of the TPCs",
    "nobody": "nobody",
    "watch": "every 50 ms",
    "top": "nvtaskset top",
    "own": "its own kernels",
    "pmon": "nvidia-smi pmon",
    "compute-apps": "nvidia-smi --query-compute-apps",
    "utilization": "nvidia-smi, utilization.gpu",
    "nvml": "NVML, of each process",
}

# And these values of other columns; all others by number or alphabet.
ORDER = ["whole", "packed", "gpcs", "distributed"]
ORDER += ["alone", "nothing", "planned", "faulty", "compute", "memory", "products", "training"]
ORDER += ["MPS alone", "and the library", "and a partition", "and the command", "and its question to MPS"]
ORDER += ["true", "show", "change", "list", "submit", "start", "finish", "eager", "graph1", "graph10", "graph100"]
ORDER += ["nobody", "watch", "own", "top", "pmon", "nvml", "compute-apps", "utilization"]
ORDER += ["2 us", "10 us", "graph", "unchanged", "begins", "goes on", "ends", "plain", "latency", "front", "next", "release", "visible"]
ORDER += ["borrowed", "before", "during", "command", "normal", "high", "hook-out", "hook-whole", "hook-half"]
ORDER += ["room", "full", "short", "loop", "10us", "200us", "1ms", "2ms", "39ms", "40ms", "pe", "ae", "game", "widget"]
ORDER += ["running", "ended", "group", "note", "all"]

# What a tool says that says nothing. It is neither a number nor 0.
NOT_SAID = "n/a"

ENDINGS = (".csv", ".csv.gz")


def place(row):
    mechanism = row.get("mechanism")
    return MECHANISMS.index(mechanism) if mechanism in MECHANISMS else len(MECHANISMS)


def order(value):
    """For sorting values of a column as a reader expects them."""
    known = MECHANISMS + ORDER
    if isinstance(value, float):
        return 0, value, 0, ""
    return 1, known.index(value) if value in known else len(known), number_in(value), value


def number_in(text):
    """For numbers among words; a word comes behind them."""
    try:
        return float(text)
    except ValueError:
        return math.inf


def numbers_of(column):
    """The values as numbers, where all are some that were said."""
    try:
        return [value if value == NOT_SAID else float(value) for value in column]
    except ValueError:
        return column


class Table:
    """One file: `about`, from its comments; `rows`, as dicts, with numbers where all of a column are; and `value`, the
    name of the last column, which was measured. `digest` names exactly this data."""

    def __init__(self, path):
        self.about = {}
        self.indexes = {}
        lines = []
        digest = hashlib.sha256()
        with gzip.open(path, "rt") if path.endswith(".gz") else open(path) as file:
            for line in file:
                digest.update(line.encode())
                if line.startswith("# "):
                    name, _, value = line[2:].rstrip("\n").partition(": ")
                    self.about[name] = value
                else:
                    lines.append(line)
        self.digest = digest.hexdigest()
        names, *rows = csv.reader(lines) if lines else [[]]
        for number, values in enumerate(rows, start=len(self.about) + 2):
            if len(values) != len(names):
                raise ValueError(f"{path}:{number}: not as many values as columns")
        columns = map(numbers_of, zip(*rows))
        self.rows = [dict(zip(names, values)) for values in zip(*columns)]
        self.value = (names or [""])[-1]
        self.rows.sort(key=place)

    def groups(self, *columns):
        return groups(self.rows, *columns)

    def measurements(self, *columns):
        return measurements(self.rows, self.value, *columns)

    def select(self, conditions):
        """The rows that have these values in these columns, {column: value as text, with _ for a space}; of several
        values with | between them, any."""
        unknown = [column for column in conditions if self.rows and column not in self.rows[0]]
        if unknown:
            raise KeyError(f"there is no column {unknown[0]}")
        index = self.index(*conditions) if conditions else {(): self.rows}
        wanted = itertools.product(*(value.split("|") for value in conditions.values()))
        return [row for values in wanted for row in index.get(values, [])]

    def index(self, *columns):
        """The rows by what they have in these columns; made once, since tables ask for each combination."""
        if columns not in self.indexes:
            self.indexes[columns] = found = {}
            words = ([word_of(row[column]) for row in self.rows] for column in columns)
            for values, row in zip(zip(*words), self.rows):
                found.setdefault(values, []).append(row)
        return self.indexes[columns]


def label(value):
    return f"{value:g}" if isinstance(value, float) else value


@functools.cache
def word_of(value):
    return label(value).replace(" ", "_")


def limit_of(mechanism):
    """Of lend-4ms: 4 ms."""
    return mechanism.removeprefix("lend-").replace("us", " µs").replace("ms", " ms")


def name_of(value):
    """As a reader reads it."""
    if str(value).startswith("lend-"):
        return "nvtaskset, lending, LIMIT " + limit_of(value)
    return NAMES.get(value, label(value))


def groups(rows, *columns):
    """Rows by their values in these columns, in the order in which they first occur."""
    found = {}
    for row in rows:
        found.setdefault(tuple(row[column] for column in columns), []).append(row)
    return found


def rounds(rows, value):
    """The samples of each round that are numbers; all are one round where the table has no such column."""
    found = {}
    for row in rows:
        if row[value] != NOT_SAID:
            found.setdefault(row.get("round", ""), []).append(row[value])
    return found


def measurements(rows, value, *columns):
    """What was measured, by these columns: {key: Measurement}."""
    return {key: stats.Measurement(rounds(own, value).values()) for key, own in groups(rows, *columns).items()}


def read(directory):
    """All tables of a directory that have rows, by name."""
    tables = {}
    for name in sorted(os.listdir(directory)):
        if name.endswith(ENDINGS):
            table = Table(os.path.join(directory, name))
            if table.rows:
                tables[name.partition(".csv")[0]] = table
    return tables


def phases(table):
    """Of the table pitfall: how many laps the tasks ran in 10 ms, while the third one works beside the second, and after
    the second's end. The third one joins in the middle of the second one's time; where it waits, it runs no lap."""
    found = []
    for (number, mechanism), rows in table.groups("round", "mechanism").items():
        second = [row["ms"] for row in rows if row["task"] == "task2"]
        joins, end = (min(second) + max(second)) / 2, max(second)
        times = {"beside the second": range(int(joins) + 10, int(end) - 10, 10),
                 "after the second": range(int(end) + 20, int(max(row["ms"] for row in rows)) - 10, 10)}
        for task in ("task1", "task3"):
            laps = {row["ms"]: row["laps"] for row in rows if row["task"] == task}
            for phase, span in times.items():
                where = {"round": number, "mechanism": mechanism, "task": task, "phase": phase}
                found += [{**where, "laps": laps.get(ms, 0.0)} for ms in span if task == "task3" or ms in laps]
    return found


def presences(table):
    """Of the table quota: how much a program was present, by its laps and by what the kernel driver was asked for, in %."""
    return [{"round": row["round"], "quota": row["quota"], "beside": row["beside"], "kind": row["kind"], "witness": witness, "percent": row[column]}
            for row in table.rows for witness, column in (("laps", "presence"), ("calls", "asked"))]


def near(table):
    """Of the table quota_periods: how many of a program's periods were within 1 ms of RUN, 30 ms, in %."""
    return [{"beside": beside, "kind": kind, "percent": mean([{"near": 100.0 * (abs(row["ms"] - 30) <= 1)} for row in rows], "near")}
            for (beside, kind), rows in table.groups("beside", "kind").items()]


def progress(table):
    """Of the table quota: how far a program got, in % of the same without a quota."""
    without = {row["kind"]: row["laps_per_ms"] for row in table.rows if row["quota"] == "unlimited"}
    return [{"round": row["round"], "quota": row["quota"], "beside": row["beside"], "kind": row["kind"],
             "percent": row["laps_per_ms"] / without[row["kind"]] * 100}
            for row in table.rows if without.get(row["kind"], 0) > 0]


def mean(rows, value):
    return sum(row[value] for row in rows) / len(rows)


def columns_of(row, *others):
    return [column for column in row if column not in others]


def kept(work, **alone):
    """Of a table of a task and a loop beside it: how fast the loop was in each round, in % of the same loop by itself. That
    has these values in its columns; loops with the same values in the columns `work` are the same."""

    def make(table):
        sides = {True: [], False: []}
        for row in table.rows:
            if row.get("whose", "loop") == "loop":
                sides[all(row[column] == value for column, value in alone.items())].append(row)
        times = {key: mean(rows, table.value) for key, rows in groups(sides[True], *work).items()}
        found = []
        columns = columns_of(sides[True][0], "whose", table.value)
        for key, rows in groups(sides[False], *columns).items():
            where = dict(zip(columns, key))
            alone_us = times[tuple(where[column] for column in work)]
            found.append({**where, "percent": alone_us / mean(rows, table.value) * 100})
        return found

    return make


def speeds(table):
    """Of the table bursts: how fast the task was while it was busy, in % of itself alone."""
    alone = mean([row for row in table.rows if row["mechanism"] == "alone"], "us")
    return [{"round": number, "mechanism": mechanism, "percent": alone / mean(rows, "us") * 100}
            for (number, mechanism), rows in table.groups("round", "mechanism").items() if mechanism != "alone"]


def of_whole_turns(rows, value):
    """Of what some programs did in each tenth of a second: until the lightest one's last turn, if it does nothing in most tenths."""
    light = min(row["weight"] for row in rows)
    own = sorted((row["ms"], row[value]) for row in rows if row["weight"] == light)
    begins = [ms for (_, before), (ms, done) in zip([(0, 0), *own], own[:-1]) if done and not before]
    is_seldom = 2 * sum(not done for _, done in own) > len(own)
    return [row for row in rows if row["ms"] < begins[-1]] if is_seldom else rows


def shares(table):
    """Of the table weights, and one like it: by how much of itself a program's share of progress is above what its weight
    says, in %."""
    found = []
    for (number, weights), rows in table.groups("round", "weights").items():
        if weights == "alone":
            continue
        rows = of_whole_turns(rows, table.value)
        total = sum(row[table.value] for row in rows)
        for (program, weight), own in groups(rows, "program", "weight").items():
            due = weight / sum(float(one) for one in weights.split("-"))
            share = sum(row[table.value] for row in own) / total
            where = {"round": number, "weights": weights, "program": program, "weight": weight}
            found.append({**where, "percent": (share / due - 1) * 100})
    return found


def used(table):
    """Of the table weights: how much all programs did in each round, in % of one of them alone. The last tenth of a second is not
    whole."""
    def rate(rows):
        end = max(row["ms"] for row in rows)
        return sum(row[table.value] for row in rows if row["ms"] < end) / end

    alone = [rate(rows) for rows in groups(table.select({"weights": "alone"}), "round").values()]
    return [{"round": number, "weights": weights, "percent": rate(rows) * len(alone) / sum(alone) * 100}
            for (number, weights), rows in table.groups("round", "weights").items() if weights != "alone"]


def lent(table):
    """Of the table lending_rate: what the neighbour did in each round, in % of the mean of its rates on the whole GPU and in its half,
    for as long as the decoding was at work, by its own rate with fixed halves, and paused."""
    rates = {key: mean(rows, "rate") for key, rows in groups(table.rows, "mechanism", "pattern", "neighbour", "whose").items()}
    found = []
    for row in table.rows:
        where = {column: row[column] for column in ("round", "mechanism", "pattern", "neighbour")}
        is_compared = ("whole", "steady", row["neighbour"], "neighbour") in rates
        if is_compared and row["whose"] == "neighbour" and "/" in row["pattern"]:
            busy = rates["fixed", row["pattern"], row["neighbour"], "decode"] / rates["fixed", "steady", row["neighbour"], "decode"]
            half = rates["fixed", "steady", row["neighbour"], "neighbour"]
            due = busy * half + (1 - busy) * rates["whole", "steady", row["neighbour"], "neighbour"]
            found.append({**where, "percent": row["rate"] / due * 100})
    return found


def taken(table):
    """Of the table tenants_rate: what the third program did in each round, in % of its rate on the whole GPU and of the TPCs that the
    owners left idle, by what each can do there. The first one has three quarters."""
    full = {whose: mean(rows, "rate") for (whose,), rows in groups(table.select({"mechanism": "full"}), "whose").items()}
    found = []
    for (number, mechanism), rows in table.groups("round", "mechanism").items():
        rate = {row["whose"]: row["rate"] for row in rows}
        if len(rate) == len(full) and mechanism != "full":
            idle = 1 - 0.75 * rate["first"] / full["first"] - 0.25 * rate["rest"] / full["rest"]
            found.append({"round": number, "mechanism": mechanism, "percent": rate["third"] / full["third"] / idle * 100})
    return found


def column(name):
    """Of several tables: this column of all of them."""
    return lambda *tables: [{name: row[name]} for table in tables for row in table.rows]


class Derived:
    """A table made from others, and known by the data of all of them."""

    def __init__(self, tables, rows):
        self.about, self.rows, self.indexes = tables[0].about, rows, {}
        self.digest = tables[0].digest
        if len(tables) > 1:
            self.digest = hashlib.sha256("".join(table.digest for table in tables).encode()).hexdigest()
        self.value = list(rows[0])[-1] if rows else ""

    groups, measurements, select, index = Table.groups, Table.measurements, Table.select, Table.index


DERIVED = {"pitfall_phases": ("pitfall", phases), "quota_presence": ("quota", presences),
           "quota_near": ("quota_periods", near),
           "slices_kept": ("slices", kept(["kernel_ms"], slice_us="alone")),
           "priority_kept": ("priority", kept(["kernel_ms"], mechanism="alone")),
           "held_priority_kept": ("held_priority", kept([], mechanism="alone")),
           "bursts_kept": ("bursts_loop", kept([], mechanism="alone")), "bursts_speed": ("bursts", speeds),
           "decode_priority_kept": ("decode_priority_neighbour", kept(["neighbour"], mechanism="alone")),
           "weights_share": ("weights", shares), "weights_used": ("weights", used),
           "lending_share": ("lending_rate", lent), "tenants_share": ("tenants_rate", taken), "resnet_kept": ("resnet", kept([], mechanism="alone")), "resnet_weights_share": ("resnet_weights", shares),
           "servers_steps": ("servers", jobs.steps), "servers_firsts": ("servers_first", jobs.steps), "servers_both": ("servers_rate", jobs.both),
           "servers_points": ("servers", "servers_rate", jobs.servers),
           "voice_points": ("voice", "voice_rate", jobs.voice), "voice_most": ("voice", jobs.most),
           "inference_points": ("inference", "inference_rate", jobs.inference),
           "untuned_points": ("untuned", "untuned_rate", jobs.untuned), "plan_missed": ("plan", jobs.missed),
           **{f"jobs_{name}": (*(f"{job}_state" for job in ("servers", "voice")), column(name))
              for name in ("power", "clock", "temperature")}}


def scaled(table):
    """{(size, SMs): what a product would take in so many, were it the time on the whole GPU, scaled}."""
    expected = {}
    for (size,), rows in table.groups("size").items():
        whole = [row for row in rows if row["choice"] == "whole"]
        if whole:
            time = stats.Measurement([[row["us"] for row in whole]]).percentile(50)
            for row in rows:
                expected[size, row["sms"]] = time * whole[0]["sms"] / row["sms"]
    return expected
