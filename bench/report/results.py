"""The CSV files of an experiment's results, and what is computed from them. The standard library is enough."""

import csv
import os
import statistics

# Tables and pictures show the mechanisms in this order, whatever the order in which they were measured.
MECHANISMS = "none mps mps-percent green mps-static mig nvtaskset nvtaskset-no-mps".split()


def place(row):
    mechanism = row.get("mechanism")
    return MECHANISMS.index(mechanism) if mechanism in MECHANISMS else len(MECHANISMS)


class Table:
    """One file: `about`, from its comments, and `rows`, as dicts; numbers are floats in the columns of `NUMBERS`."""

    NUMBERS = set("round ms us ns sms tpcs laps processes connections shared_tpcs instructions".split())

    def __init__(self, path):
        self.about = {}
        self.rows = []
        with open(path, newline="") as file:
            lines = []
            for line in file:
                if line.startswith("# "):
                    name, _, value = line[2:].rstrip("\n").partition(": ")
                    self.about[name] = value
                else:
                    lines.append(line)
        for number, row in enumerate(csv.DictReader(lines), start=len(self.about) + 2):
            if None in row or None in row.values():
                raise ValueError(f"{path}:{number}: not as many values as columns")
            for name in self.NUMBERS & row.keys():
                row[name] = float(row[name])
            self.rows.append(row)
        self.rows.sort(key=place)

    def groups(self, *columns):
        return groups(self.rows, *columns)

    def samples(self, value, *columns):
        """The values of one column, by these."""
        return {key: [row[value] for row in rows] for key, rows in self.groups(*columns).items()}


def groups(rows, *columns):
    """Rows by their values in these columns, in the order in which they first occur."""
    found = {}
    for row in rows:
        found.setdefault(tuple(row[column] for column in columns), []).append(row)
    return found


def read(directory):
    """All tables of a directory that have rows, by name."""
    tables = {}
    for name in sorted(os.listdir(directory)):
        if name.endswith(".csv"):
            table = Table(os.path.join(directory, name))
            if table.rows:
                tables[name[: -len(".csv")]] = table
    return tables


def percentile(values, percent):
    """The least value that so many percent are not above."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def median(values):
    return statistics.median(values)


def median_interval(values):
    """Where the median would lie in 19 of 20 repetitions: two of the values themselves, whatever their distribution."""
    ordered = sorted(values)
    low = max(0, int(len(ordered) / 2 - 0.98 * len(ordered) ** 0.5))
    return ordered[low], ordered[-1 - low]


# The mechanism to which each one is compared.
COMPARED_WITH = {
    "mps-percent": "mps",
    "green": "mps",
    "nvtaskset": "mps",
    "nvtaskset-no-mps": "none",
    "hook-whole": "hook-out",
    "hook-half": "hook-out",
}


def paired_differences(table, value, *columns):
    """The medians of each round's samples, less those of the mechanism that it is compared with.

    {(mechanism, …): ([one for each round], [the same in percent])}; drift hits both of a pair.
    """
    medians = {key: median(values) for key, values in table.samples(value, "round", "mechanism", *columns).items()}
    differences = {}
    for (number, mechanism, *rest), own in medians.items():
        other = medians.get((number, COMPARED_WITH.get(mechanism), *rest))
        if other:
            absolute, percent = differences.setdefault((mechanism, *rest), ([], []))
            absolute.append(own - other)
            percent.append((own - other) / other * 100)
    return differences


def scaled(table):
    """{SMs: what the product would take in so many, were it the time on the whole GPU, scaled}."""
    whole = [row for row in table.rows if row["choice"] == "whole"]
    time = median([row["us"] for row in whole])
    return {row["sms"]: time * whole[0]["sms"] / row["sms"] for row in table.rows}
