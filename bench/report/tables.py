#!/usr/bin/env python3
"""Usage: tables.py [RESULTS [TABLE…]]

What the experiments measured, as Markdown tables. In a text (texts.py), a table stands between

    <!--table NAME by COLUMN… where COLUMN=VALUE… show QUESTION, QUESTION…-->  and  <!--/table-->

and has a row for each combination of values of these columns, and the answers (queries.py) for each machine of bench/data
that has this table. A ~ behind a percentile, difference or ratio adds its interval (stats.py), and ~~ the lowest and the highest
round's own. QUESTION for COLUMN=VALUE… asks about those rows only, and VALUE names the column, or the words behind `as`. QUESTION
of NAME asks another table about the same values of the columns. What so few samples cannot answer is a dash, and a row
of dashes is left out. The last row says where the numbers are from: GPU, version, day, and n where no column has it.
`rows VALUE as NAME; VALUE as NAME…` at the end leaves only these rows, of one column. With `least` or `most` before a
QUESTION, the best answers are bold; the first QUESTION with one of them sorts the rows.
"""

import math
import os
import re
import sys

sys.dont_write_bytecode = True  # in a working tree
import queries
import results

MACHINES = ["h100", "h200", "simulator"]
ROWS_MAX = 100
TITLES = {
    "n": "n",
    "p1": "1 %",
    "p50": "median",
    "p95": "95 %",
    "ratio95": "95 %, compared",
    "p99": "99 %",
    "p99.9": "99.9 %",
    "max": "max",
    "rate": "per second",
    "ratio50": "median, compared",
    "ratio99": "99 %, compared",
    "sms": "SMs",
    "tpcs": "TPCs",
    "shared_tpcs": "shared TPCs",
    "kernel_us": "kernel, µs",
    "kernel_ms": "beside kernels of, ms",
    "slice_us": "time slice, µs",
    "pause_us": "idle, µs",
    "percent": "%",
    "size": "product",
}


def split_words(text):
    """{keyword: what follows it}; the first word is the table's name."""
    parts = re.split(r"\b(by|where|show|rows)\b", text)
    return parts[0].strip(), dict(zip(parts[1::2], (part.strip() for part in parts[2::2])))


def table(data, text):
    name, words = split_words(text)
    columns = words["by"].split()
    asked_for = [re.fullmatch(r"(?:(least|most) +)?(.*)", part.strip()).groups() for part in words["show"].split(",")]
    bests, questions = zip(*asked_for)
    named = dict(re.split(r" +as +", row.strip()) for row in words["rows"].split(";")) if "rows" in words else {}
    machines = [machine for machine in MACHINES if has(data, machine, name)]
    if not machines:
        raise queries.Wrong(f"no machine has a table {name}")
    header = [TITLES.get(column, column) for column in columns]
    header += [title(machine, question, machines) for machine in machines for question in questions]
    keys = []
    for machine in machines:
        rows = data.table(machine, name).select(queries.pairs_of(words.get("where", "").split()))
        keys += [key for key in results.groups(rows, *columns) if key not in keys]
    missing = [value for value in named if (value,) not in keys]
    if missing:
        raise queries.Wrong(f"no row is {missing[0]}")
    keys = [key for key in keys if not named or key[0] in named]
    lines = []
    has_counts, counts = any(question.split()[0] == "n" for question in questions), []
    for key in sorted(keys, key=lambda key: [results.order(value) for value in key]):
        conditions = " ".join(f"{column}={results.word_of(value)}" for column, value in zip(columns, key))
        own = f"{name} {words.get('where', '')} {conditions}"
        cells = [cell(data, machine, own, conditions, question) for machine in machines for question in questions]
        if set(cells) != {"–"}:
            lines.append([*(named.get(value) or results.name_of(value) for value in key), *cells])
            cells_of = [] if has_counts else [(machine, question) for machine in machines for question in questions]
            counts += [count(data, machine, own, conditions, question) for machine, question in cells_of]
    rank(lines, [*[None] * len(columns), *bests * len(machines)])
    names = list(dict.fromkeys([name, *(other_of(question) for question in questions if other_of(question))]))
    lines.append([origin(data, machines, names, sorted(filter(None, counts))), *[""] * (len(header) - 1)])
    return "".join("| " + " | ".join(line) + " |\n" for line in [header, ["---"] * len(header), *lines])


def rank(lines, bests):
    """Sorts the rows by the first column that has a best, and makes the best cells bold."""
    ranked = [(place, 1 if best == "least" else -1) for place, best in enumerate(bests) if best]
    for place, sign in reversed(ranked):
        lines.sort(key=lambda line: sign * number_of(line[place], sign))
        best = number_of(lines[0][place], sign)
        for line in lines:
            line[place] = f"**{line[place]}**" if number_of(line[place], sign) == best else line[place]


def number_of(cell, sign):
    """The answer in a cell, without its interval; a dash is the worst."""
    found = re.match(r"[−+]?[\d.]+", cell.replace("\u202f", ""))
    return float(found.group().replace("−", "-")) if found else sign * math.inf


def other_of(question):
    return question.partition(" as ")[0].partition(" for ")[0].partition(" of ")[2]


def count(data, machine, own, conditions, question):
    """How many samples a cell is from; None where it has none."""
    other, condition = other_of(question), question.partition(" as ")[0].partition(" for ")[2]
    try:
        found = queries.answer(data, f"{machine} {f'{other} {conditions}' if other else own} {condition}: n")
    except queries.Wrong:  # no row, or a word
        return None
    return int(found.replace("\u202f", "")) or None


def origin(data, machines, names, counts):
    """Of each machine, the version of nvtaskset and the day; and n, where no column has n."""
    found = []
    for machine in machines:
        abouts = [data.table(machine, name).about for name in names if has(data, machine, name)]
        told = [re.findall(r"\b[0-9a-f]{7,40}\b", about.get("nvtaskset", "")) for about in abouts]
        versions = [", ".join(version[:8] for version in some) for some in told]
        days = [about.get("date", "")[:10] for about in abouts]
        runs = dict.fromkeys(" ".join(filter(None, run)) for run in zip(versions, days))
        found.append(f"{machine.upper() if machine != 'simulator' else 'simulated'}: {', '.join(runs)}")
    if counts:
        ends = dict.fromkeys(map(queries.grouped, (counts[0], counts[-1])))
        found.append(f"n = {' to '.join(ends)}")
    return f"*{'; '.join(found)}*"


def has(data, machine, name):
    try:
        return bool(data.table(machine, name).rows)
    except queries.Wrong:
        return False


def title(machine, question, machines):
    question, _, called = question.replace("~", "").partition(" as ")
    question, _, condition = question.partition(" for ")
    what, *rest = question.partition(" of ")[0].split()
    unit = next((word for word in rest if word in queries.NANOSECONDS or word in ("%", "+%")), "")
    named = called or condition.partition("=")[2] or what
    text = TITLES.get(named, named) + (f", {unit.replace('us', 'µs').replace('+', '')}" if unit else "")
    return f"{machine.upper()}: {text}" if len(machines) > 1 else text


def cell(data, machine, own, conditions, question):
    """With its interval if it has a ~ and there are enough samples."""
    question, _, condition = question.partition(" as ")[0].partition(" for ")
    question, _, other = question.partition(" of ")
    what, _, rest = question.partition(" ")
    plain = what.rstrip("~")
    subject = f"{machine} {f'{other} {conditions}' if other else own} {condition}"
    value = asked(data, f"{subject}: {plain} {rest}")
    if what.endswith("~"):
        ends = [asked(data, f"{subject}: {plain}.{end} {rest}") for end in (("least", "most") if what.endswith("~~") else ("low", "high"))]
        value += f" ({ends[0]} to {ends[1]})" if not {"–", results.NOT_SAID} & set(ends) else ""
    return value


def asked(data, query):
    try:
        return queries.answer(data, query)
    except queries.Missing:
        return "–"


def main():
    """Those asked for; or all of a directory, by all their columns, but for those that would rather be drawn."""
    directory = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.environ.get("BUILD", "build"), "bench", "results")
    above, name = os.path.split(os.path.abspath(directory))
    MACHINES[:] = [name]
    data = queries.Data(above)
    for text in sys.argv[2:]:
        print(table(data, text))
    for name, found in results.read(directory).items() if not sys.argv[2:] else ():
        columns = [column for column in found.rows[0] if column not in ("round", found.value)]
        unit = f" {found.value}" if found.value in queries.NANOSECONDS else ""
        if len(results.groups(found.rows, *columns)) > ROWS_MAX:
            continue
        questions = ["n", *(what + unit for what in ("min", "p50~", "p95", "p99", "p99.9", "max"))]
        if not any(isinstance(row[found.value], float) for row in found.rows):
            questions = ["value"]
        elif "mechanism" in columns and "round" in found.rows[0]:
            questions.append("difference~ %")
        print(f"\n### {name}\n")
        print(table(data, f"{name} by {' '.join(columns)} show {', '.join(questions)}"), end="")


if __name__ == "__main__":
    main()
