"""Statistics of what was measured, for the tables, the pictures and the numbers in the texts. Reproducible: the same
samples give the same intervals. The standard library is enough.

A Measurement has rounds of samples. Samples of one process or one moment are alike, so an interval that took them as
independent would be too narrow. The bootstrap therefore draws groups of samples: whole rounds; or, where there are
fewer than ROUNDS_ENOUGH, blocks of samples that follow each other. An interval is where the value would lie 19 times
of 20, if all was measured again like this.
"""

import bisect
import math
import random
import statistics

ROUNDS_ENOUGH = 8
BLOCKS = 20  # at least, where there are too few rounds
DRAWS = 500
GROUPS_NEEDED = 6  # for an interval
BEYOND = 10  # as many samples must lie beyond a percentile: 1000 for 99 %, 10 000 for 99.9 %


class TooFew(ValueError):
    """A percentile that so few samples cannot show."""


def needed(percent):
    """How many samples a percentile needs. The median is that of however few there are."""
    outside = min(percent, 100 - percent) / 100
    return 1 if percent == 50 else math.ceil(round(BEYOND / outside, 6))


def rank(count, percent):
    """Which one of so many ordered samples, from 1: the least that so many percent are not above."""
    return max(1, math.ceil(round(count * percent / 100, 6)))


class Measurement:
    """`rounds` are lists of samples, in the order in which they were measured."""

    def __init__(self, rounds):
        self.rounds = [list(samples) for samples in rounds if samples]
        self.ordered = sorted(sample for samples in self.rounds for sample in samples)
        self.n = len(self.ordered)

    def percentile(self, percent):
        if self.n < needed(percent):
            raise TooFew(f"{percent:g} % of {self.n} samples: {needed(percent)} are needed")
        if percent == 50:
            return statistics.median(self.ordered)
        return self.ordered[rank(self.n, percent) - 1]

    def groups(self):
        """What the bootstrap draws."""
        if len(self.rounds) >= ROUNDS_ENOUGH:
            return self.rounds
        blocks = math.ceil(BLOCKS / max(1, len(self.rounds)))
        return [block for samples in self.rounds for block in cut(samples, blocks)]

    def draws(self, percent):
        """The percentile of each of DRAWS repetitions: as many groups as there are, drawn with replacement."""
        self.percentile(percent)  # or too few
        groups = [sorted(group) for group in self.groups()]
        if len(groups) < GROUPS_NEEDED:
            raise TooFew(f"an interval from {len(groups)} groups of samples: {GROUPS_NEEDED} are needed")
        chance = random.Random(1)
        for _ in range(DRAWS):
            times = [0] * len(groups)
            for _ in groups:
                times[int(chance.random() * len(groups))] += 1
            yield self.percentile_of([(group, often) for group, often in zip(groups, times) if often], percent)

    def percentile_of(self, drawn, percent):
        """Of groups, each taken so often: sought among the samples, without making the list."""
        wanted = rank(sum(len(group) * often for group, often in drawn), percent)
        low, high = 0, self.n - 1
        while low < high:
            middle = (low + high) // 2
            value = self.ordered[middle]
            if sum(bisect.bisect_right(group, value) * often for group, often in drawn) >= wanted:
                high = middle
            else:
                low = middle + 1
        return self.ordered[low]

    def interval(self, percent):
        return middle_of(self.draws(percent))

    def only(self):
        """The sample, where there is one."""
        if self.n != 1:
            raise TooFew(f"{self.n} samples, where one is asked for")
        return self.ordered[0]

    def mean(self):
        return statistics.fmean(self.ordered)


def cut(samples, count):
    """So many blocks of samples that follow each other, as equal as possible; fewer where there are fewer samples."""
    count = min(count, len(samples))
    ends = [len(samples) * number // count for number in range(count + 1)]
    return [samples[start:end] for start, end in zip(ends, ends[1:])]


def middle_of(values):
    """Where 19 of 20 lie."""
    ordered = sorted(values)
    return ordered[rank(len(ordered), 2.5) - 1], ordered[rank(len(ordered), 97.5) - 1]


def ratio(one, other, percent):
    """What a percentile is, divided by that of another measurement, and its interval. Nothing is paired."""
    quotients = [above / below for above, below in zip(one.draws(percent), shuffled(other.draws(percent)))]
    return one.percentile(percent) / other.percentile(percent), middle_of(quotients)


def shuffled(values):
    """Both sides of a ratio are drawn with the same numbers, which would make pairs of them."""
    values = list(values)
    random.Random(2).shuffle(values)
    return values


def differences(one, other):
    """From rounds by name, {round: samples}: the difference of the medians in each round that both have.

    What drifts from round to round hits both of a pair.
    """
    both = [name for name in one if name in other]
    return Measurement([statistics.median(one[name]) - statistics.median(other[name])] for name in both)


def relative_differences(one, other):
    """The same, in percent of the other's."""
    both = [name for name in one if name in other]
    medians = [(statistics.median(one[name]), statistics.median(other[name])) for name in both]
    return Measurement([(own - its) / its * 100] for own, its in medians)


def verdict(interval, least, most):
    """Whether a goal, that a value lies within these, is met, is missed, or cannot be told from this sample."""
    low, high = interval
    if least <= low and high <= most:
        return "met"
    return "missed" if high < least or most < low else "not shown"
