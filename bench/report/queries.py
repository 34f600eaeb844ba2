"""A number of a text, by its query. A query is written behind the number, as a comment that a reader does not see:

    8.2<!--h200 resize work=eager metric=first: p50 us--> µs

names a directory of bench/data, a table of it, what its rows have in some columns (with _ for a space, and
| between several values), and what is asked about those:

    n                  how many samples
    rounds             how many rounds
    min, max, mean     the fastest, the slowest, the mean
    p50, p99.9         a percentile, refused where there are too few samples for it (stats.py)
    sum                of all samples
    rate               how many samples a second has: their number, divided by their sum, which must be a time
    value              the only one there is, a number or a word
    values COLUMN      how many different values a column has
    difference         the median over rounds of the differences between the medians of a round, to the same rows …
    ratio50            the median divided by that of the same rows …
    ratio99, pairs50   the median over rounds of a round's own percentile, divided by that of the same round of the same rows …
        to COLUMN=VALUE …   … which have other values in these columns; without it, to the mechanism that this one
                       is compared with (results.py)
    verdict LEAST MOST whether the difference lies within these: met, missed or not shown
    within LEAST MOST  the same of the median
    within99, withinmax  the same of a percentile, by each round's own, and of the slowest sample
    ratiowithin99      the same of ratio99, by each round's own
                       (A goal @TABLE/COLUMN=VALUE is the value that a table has, in the unit of the samples.)
    ABOUT              gpu, driver, date …, as the table's first lines say (only the date's day)

Samples that are n/a, since a tool said nothing, do not count; where all of them are, so is the answer.

`.low` and `.high` behind a percentile, difference or ratio ask for the ends of its interval; `.least` and `.most` behind a
percentile or its ratio for the lowest and the highest round's own, also where a round is too short for one. The last
words say how the number is written: a unit (ns, us, ms, s; % for a difference, and for a ratio; +% for what a ratio is above 1),
and how many digits are behind the point (.0, .1; three digits in all without it).
"""

import os
import re

import results
import stats

NANOSECONDS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}


class Wrong(ValueError):
    """A query that cannot be answered."""


class Missing(Wrong):
    """One that the samples do not answer: there are too few, or none."""


class Data:
    """The tables below a directory, each read once."""

    def __init__(self, directory):
        self.directory = directory
        self.read = {}
        self.intervals = {}  # by what was asked

    def table(self, machine, name):
        if name in results.DERIVED and (machine, name) not in self.read:
            *sources, make = results.DERIVED[name]
            found = [self.table(machine, source) for source in sources]
            self.read[machine, name] = results.Derived(found, make(*found))
        if (machine, name) not in self.read:
            paths = [os.path.join(self.directory, machine, name + ending) for ending in results.ENDINGS]
            path = next((path for path in paths if os.path.exists(path)), None)
            if not path:
                raise Wrong(f"there is no table {machine}/{name}")
            self.read[machine, name] = results.Table(path)
        return self.read[machine, name]


def answer(data, text):
    """The number, as it is to be written."""
    subject, colon, question = text.partition(":")
    machine, name, *conditions = subject.split() + [""] * (2 - len(subject.split()))
    if not colon or not question.split():
        raise Wrong("a query is MACHINE TABLE COLUMN=VALUE…: QUESTION")
    conditions = pairs_of(conditions)
    try:
        return Question(data, (machine, name), conditions, question.split()).answer()
    except stats.TooFew as error:
        raise Missing(error.args[0]) from error
    except (KeyError, ValueError) as error:
        raise error if isinstance(error, Wrong) else Wrong(error.args[0]) from error


def pairs_of(words):
    if any("=" not in word for word in words):
        raise Wrong(f"not COLUMN=VALUE: {' '.join(words)}")
    return dict(word.split("=", 1) for word in words)


class Question:
    def __init__(self, data, place, conditions, words):
        self.data, self.table, self.conditions = data, data.table(*place), conditions
        self.asked = (place, tuple(conditions.items()), tuple(words[1:]))
        self.what, _, self.end = re.fullmatch(r"(.*?)(\.(low|high|least|most))?", words[0]).groups()
        self.words = words[1:]
        self.rows = self.table.select(conditions)
        if not self.rows:
            raise Missing("no row is like that")

    def answer(self):
        if self.what in self.table.about:
            return self.about(self.table.about[self.what])
        if self.what == "values":
            return str(len({row[self.words[0]] for row in self.rows}))
        found = [row[self.table.value] for row in self.rows]
        if self.what == "value" and len(set(found)) == 1 and isinstance(found[0], str):
            return found[0]
        self.refuse_mixtures()
        is_said = set(found) != {results.NOT_SAID}
        if not is_said and self.what not in ("n", "rounds"):
            return results.NOT_SAID
        if is_said and not any(isinstance(value, float) for value in found):
            raise (Missing if self.what == "value" else Wrong)(f"{self.table.value} is no number, or there are several")
        measurement = stats.Measurement(results.rounds(self.rows, self.table.value).values())
        if self.what in ("n", "rounds"):
            return grouped(measurement.n if self.what == "n" else len(measurement.rounds))
        if self.what in ("difference", "verdict"):
            return self.difference()
        if self.what.startswith(("within", "ratiowithin")):
            return self.within(measurement)
        if self.what.startswith(("ratio", "pairs")):
            return self.ratio(measurement)
        return self.value(measurement)

    def refuse_mixtures(self):
        """What was measured under different conditions has no percentile in common."""
        if self.what in ("n", "rounds", "min", "max", "sum", "withinmax"):
            return
        for column in self.rows[0]:
            if column not in ("round", self.table.value) and len({row[column] for row in self.rows}) > 1:
                raise Wrong(f"rows differ in {column}: say which")

    def about(self, value):
        return value[:10] if self.what == "date" else value

    def value(self, measurement):
        if self.what == "rate":
            return self.digits(1e9 / (measurement.mean() * self.nanoseconds()))
        simple = {"min": lambda: measurement.ordered[0], "max": lambda: measurement.ordered[-1],
                  "value": measurement.only, "mean": measurement.mean, "sum": lambda: sum(measurement.ordered)}
        if self.what in simple:
            value = simple[self.what]()
        elif re.fullmatch(r"p\d+(\.\d+)?", self.what):
            value = self.end_of(measurement, float(self.what[1:]))
        else:
            raise Wrong(f"{self.what}: not a question")
        return self.written(value)

    def end_of(self, measurement, percent):
        if not self.end:
            return measurement.percentile(percent)
        if self.end in ("least", "most"):
            return measurement.of_rounds(percent)[self.end == "most"]
        return self.interval(lambda: measurement.interval(percent))[self.end == "high"]

    def interval(self, compute):
        """Both ends of an interval are asked for one after the other."""
        key = self.what, self.asked
        if key not in self.data.intervals:
            self.data.intervals[key] = compute()
        return self.data.intervals[key]

    def others(self):
        """The rows to which these are compared. What says which is taken out of the words."""
        compared = results.COMPARED_WITH.get(self.conditions.get("mechanism"))
        other = {"mechanism": compared} if compared else {}
        if "to" in self.words:
            start = end = self.words.index("to")
            while end + 1 < len(self.words) and "=" in self.words[end + 1]:
                end += 1
            other = pairs_of(self.words[start + 1 : end + 1])
            self.words = self.words[:start] + self.words[end + 1 :]
        if not other:
            raise Missing(f"{self.what}: to what?")
        rows = self.table.select({**self.conditions, **other})
        if not rows:
            raise Missing("no row is like that behind to")
        return rows

    def difference(self):
        others = self.others()
        if others == self.rows:
            raise Missing("difference: to itself")
        sides = [results.rounds(rows, self.table.value) for rows in (self.rows, others)]
        relative = "%" in self.words
        found = (stats.relative_differences if relative else stats.differences)(*sides)
        if not found.n:
            raise Missing("no round has both")
        if self.what == "verdict":
            return self.verdict(found, relative)
        value = self.end_of(found, 50)
        return signed(self.digits(value) if relative else self.written(value))

    def verdict(self, measurement, relative):
        return stats.verdict(measurement.interval(50), *self.goals(relative))

    def within(self, measurement):
        """Every round must lie within, or beyond: by a percentile of few samples, an interval would promise too much."""
        what = self.what.partition("within")[2]
        plain = "%" in self.words or self.table.value not in NANOSECONDS
        if not what:
            return self.verdict(measurement, plain)
        if what == "max":
            return stats.verdict((measurement.ordered[-1],) * 2, *self.goals(plain))
        if self.what.startswith("ratio"):
            found = self.ratios(float(what))
            ends, plain = (found.ordered[0], found.ordered[-1]), True
        else:
            ends = measurement.of_rounds(float(what))
        return stats.verdict(ends, *self.goals(plain))

    def goals(self, plain):
        return [self.goal(word, plain) for word in self.words[:2]]

    def goal(self, word, plain):
        if word.startswith("@"):
            name, *conditions = word[1:].split("/")
            table = self.data.table(self.asked[0][0], name)
            return stats.Measurement([[row[table.value] for row in table.select(pairs_of(conditions))]]).only()
        return float(word) * (1 if plain else self.unit_factor(self.words[-1]))

    def ratios(self, percent):
        own, others = self.rows, self.others()
        found = stats.ratios(results.rounds(own, self.table.value), results.rounds(others, self.table.value), percent)
        if not found.n:
            raise Missing("no round has both")
        return found

    def ratio(self, measurement):
        if self.what == "ratio50":
            other = stats.Measurement(results.rounds(self.others(), self.table.value).values())
            value = stats.ratio_of_medians(measurement, other)
            if self.end in ("least", "most"):
                value = measurement.of_rounds(50)[self.end == "most"] / other.percentile(50)
            elif self.end:
                value = self.interval(lambda: stats.interval_of_medians(measurement, other))[self.end == "high"]
        else:
            value = self.ratio_of_rounds(float(re.search(r"[\d.]+$", self.what).group()))
        if "+%" in self.words:
            return signed(self.digits((value - 1) * 100))
        return self.digits(value * 100 if "%" in self.words else value)

    def ratio_of_rounds(self, percent):
        found = self.ratios(percent)
        if not self.end:
            return found.percentile(50)
        ends = found.interval(50) if percent == 50 and self.end in ("low", "high") else stats.ends_of(found.ordered)
        return ends[self.end in ("high", "most")]

    def unit_factor(self, unit):
        return NANOSECONDS[unit] / self.nanoseconds()

    def nanoseconds(self):
        """Of the unit of the samples."""
        if self.table.value not in NANOSECONDS:
            raise Wrong(f"{self.table.value} is no time")
        return NANOSECONDS[self.table.value]

    def written(self, value):
        units = [word for word in self.words if word in NANOSECONDS]
        return self.digits(value / self.unit_factor(units[0]) if units else value)

    def digits(self, value):
        unknown = [word for word in self.words if not re.fullmatch(r"\.\d|\+?%|[num]?s", word)]
        if unknown:
            raise Wrong(f"{unknown[0]}: not a word of a query")
        behind = [word for word in self.words if re.fullmatch(r"\.\d", word)]
        return shown(value, int(behind[0][1:]) if behind else None)


def shown(value, behind=None):
    """Three digits, or so many behind the point."""
    if behind is None:
        exponent = int(f"{value:.2e}".split("e")[1])
        behind = max(0, 2 - exponent) if value else 0
    text = f"{value:.{behind}f}"
    if float(text) == 0:
        text = text.lstrip("-")
    return grouped(int(text)) if behind == 0 else text.replace("-", "−")


def grouped(value):
    """10 000, with a space that does not break."""
    digits = f"{value:,}".replace("-", "−")
    return digits.replace(",", "\u202f") if abs(value) >= 10000 else digits.replace(",", "")


def signed(text):
    return text if text.startswith("−") else "+" + text
