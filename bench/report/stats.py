"""Statistics of what was measured, for the tables, the pictures and the numbers in the texts. Reproducible: the same
samples give the same intervals. The standard library is enough.

A Measurement has rounds of samples. Samples of one round are alike: of one process, or of one moment. An interval that
took them as independent would be far too narrow. So for a median of ROUNDS_ENOUGH rounds or more, what is drawn, with
replacement, is whole rounds (a bootstrap): the interval then has the true median in some 9 of 10 experiments, and in 19 of 20
with more rounds (tests/python/report.py simulates it). For fewer rounds, and for other percentiles, a bootstrap would promise too
much: the lowest and the highest round stand there, and promise nothing.
"""

import bisect
import math
import random
import statistics

ROUNDS_ENOUGH = 8
DRAWS = 500
BEYOND = 10  # as many samples must lie beyond a percentile: 1000 for 99 %, 10 000 for 99.9 %


class TooFew(ValueError):
    """A percentile that so few samples cannot show."""


def needed(percent):
    """How many samples a percentile needs. The median is that of however few there are: n stands beside it."""
    if not 0 < percent < 100:
        raise ValueError(f"{percent:g} is no percentile")
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

    def draws(self, percent):
        """The percentile of each of DRAWS repetitions: as many rounds as there are, drawn with replacement."""
        groups = [sorted(samples) for samples in self.rounds]
        chance = random.Random(1)
        for _ in range(DRAWS):
            times = [0] * len(groups)
            for _ in groups:
                times[int(chance.random() * len(groups))] += 1
            yield self.percentile_of([(group, often) for group, often in zip(groups, times) if often], percent)

    def percentile_of(self, drawn, percent):
        """Of groups, each taken so often. As in percentile, the median of an even number is between two samples."""
        count = sum(len(group) * often for group, often in drawn)
        if percent != 50:
            return self.sample(drawn, rank(count, percent))
        low, high = (count + 1) // 2, count // 2 + 1
        lower = self.sample(drawn, low)
        return lower if low == high else (lower + self.sample(drawn, high)) / 2

    def sample(self, drawn, wanted):
        """The one of this rank: sought among the samples, without making the list."""
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
        """(low, high): the bootstrap's, or the lowest and the highest round's."""
        self.percentile(percent)  # or too few
        if percent == 50 and len(self.rounds) >= ROUNDS_ENOUGH:
            return middle_of(self.draws(percent))
        return ends_of([Measurement([samples]).percentile(percent) for samples in self.rounds])

    def of_rounds(self, percent):
        """The lowest and the highest round's percentile, also of rounds that are too short for one."""
        self.percentile(percent)  # or too few
        return ends_of([own_percentile(samples, percent) for samples in self.rounds])

    def only(self):
        """The sample, where there is one."""
        if self.n != 1:
            raise TooFew(f"{self.n} samples, where one is asked for")
        return self.ordered[0]

    def mean(self):
        return statistics.fmean(self.ordered)


def middle_of(values):
    """Where 19 of 20 lie."""
    ordered = sorted(values)
    return ordered[rank(len(ordered), 2.5) - 1], ordered[rank(len(ordered), 97.5) - 1]


def ends_of(values):
    if len(values) < 2:
        raise TooFew("one round says nothing about others")
    return min(values), max(values)


def own_percentile(samples, percent):
    """Of one round, also where it is too short to show one by itself."""
    return statistics.median(samples) if percent == 50 else sorted(samples)[rank(len(samples), percent) - 1]


def ratios(one, other, percent):
    """From rounds by name, {round: samples}: a round's own percentile, divided by the other's of the same round."""
    for side in (one, other):
        Measurement(side.values()).percentile(percent)  # or too few
    both = (name for name in one if name in other)
    return Measurement([own_percentile(one[name], percent) / own_percentile(other[name], percent)] for name in both)


def ratio_of_medians(one, other):
    """Of all rounds together."""
    return one.percentile(50) / other.percentile(50)


def interval_of_medians(one, other):
    if min(len(one.rounds), len(other.rounds)) >= ROUNDS_ENOUGH:
        quotients = (above / below for above, below in zip(one.draws(50), shuffled(other.draws(50))))
        return middle_of(quotients)
    values = [[statistics.median(samples) for samples in side.rounds] for side in (one, other)]
    return ends_of([own / its for own, its in zip(*values)])


def shuffled(values):
    """Both sides of a ratio are drawn with the same numbers, which would make pairs of them."""
    values = list(values)
    random.Random(2).shuffle(values)
    return values


def pairs(one, other):
    """The medians of each round that both have."""
    return [(statistics.median(one[name]), statistics.median(other[name])) for name in one if name in other]


def differences(one, other):
    """From rounds by name, {round: samples}: the difference of the medians in each round that both have.

    What drifts from round to round hits both of a pair.
    """
    return Measurement([own - its] for own, its in pairs(one, other))


def relative_differences(one, other):
    """The same, in percent of the other's. None of a round in which that is 0."""
    return Measurement([(own - its) / its * 100] for own, its in pairs(one, other) if its != 0)


def verdict(interval, least, most):
    """Whether a goal, that a value lies within these, is met, is missed, or cannot be told from this sample."""
    low, high = interval
    if least <= low and high <= most:
        return "met"
    return "missed" if high < least or most < low else "not shown"
