"""The three jobs (bench/jobs): how much of a mechanism's pair gets done, and how late. A point of a picture is {panel, mechanism, n,
x, y}, each of x and y a value with the lowest and the highest round's.
"""

import statistics

import stats

ALONE = {"alone-first": "alone", "alone-rest": "alone"}


def by(rows, value, *columns):
    """{key: Measurement}, with a Measurement's rounds in the order of their names."""
    found = {}
    for row in rows:
        found.setdefault(tuple(row[column] for column in columns), {}).setdefault(row["round"], []).append(row[value])
    return {key: stats.Measurement(rounds.values()) for key, rounds in found.items()}


def steps(table):
    """Of the table servers, or servers_first: what both took, and one alone, which either is."""
    return [{**{column: row[column] for column in ("round", "load")}, "mechanism": ALONE.get(row["mechanism"], row["mechanism"]), "us": row["us"]}
            for row in table.rows]


def both(table):
    """Of the table servers_rate: the tokens of both in a second, and of one alone."""
    found = {}
    for row in table.rows:
        mechanism = ALONE.get(row["mechanism"], row["mechanism"])
        found.setdefault((row["round"], mechanism, row["load"]), []).append(row["rate"])
    return [{"round": number, "mechanism": mechanism, "load": load, "rate": sum(rates) / (2 if mechanism == "alone" else 1)}
            for (number, mechanism, load), rates in found.items() if len(rates) == 2]


def late(measured, percent, unit):
    """A percentile, also of too few samples, which the picture shows then, in units of so many; and the rounds' own."""
    def own(samples):
        return samples[stats.rank(len(samples), percent) - 1] / unit

    ends = [own(sorted(samples)) for samples in measured.rounds]
    return own(measured.ordered), min(ends), max(ends)


def done(measured, unit):
    """The median of rounds."""
    return statistics.median(measured.ordered) / unit, measured.ordered[0] / unit, measured.ordered[-1] / unit


def points(panel, waits, rates, percent, units):
    """Of {(mechanism,): Measurement}: those that have both."""
    return [{"panel": panel, "mechanism": mechanism, "n": measured.n, "is_enough": measured.n >= stats.needed(percent),
             "x": late(measured, percent, units[0]), "y": done(rates[mechanism,], units[1])}
            for (mechanism,), measured in waits.items() if (mechanism,) in rates]


def servers(table, rate_table):
    """By load: the 99th percentile of the steps in ms, and the tokens of both in % of one alone."""
    found = []
    all_steps, all_rates = steps(table), both(rate_table)
    for load in dict.fromkeys(row["load"] for row in all_rates):
        waits, rates = (by([row for row in rows if row["load"] == load], value, "mechanism")
                        for rows, value in ((all_steps, "us"), (all_rates, "rate")))
        if ("alone",) in rates:
            found += points(load, waits, rates, 99, (1e3, done(rates["alone",], 1)[0] / 100))
    return found


def by_round(rows, value):
    found = {}
    for row in rows:
        found.setdefault(row["round"], []).append(row[value])
    return found


def over(one, other, percent):
    """A round's own percentile, divided by the other's of the same round: the median, the least and the most."""
    both = (name for name in one if name in other)
    own = stats.own_percentile
    found = sorted(own(one[name], percent) / own(other[name], percent) for name in both)
    return statistics.median(found), found[0], found[-1]


def inference(table, rate_table):
    """At a load of 0.5, by service and from where: the 99th percentile by that alone, and what the training keeps in %."""
    found = []
    for service, start in dict.fromkeys((row["service"], row["from"]) for row in table.rows):
        where = {"service": service, "load": "0.5"}
        waits = by(table.select({**where, "from": start}), "us", "mechanism")
        alone = by_round(table.select({**where, "from": start, "mechanism": "alone-first"}), "us")
        training = by_round(rate_table.select({"service": service, "mechanism": "alone-rest"}), "rate")
        for (mechanism,), measured in waits.items():
            own = {**where, "mechanism": mechanism}
            rates = by_round(rate_table.select(own), "rate")
            if mechanism != "alone-first" and rates and alone and training:
                kept = over(rates, training, 50)
                found.append({"panel": (service, start), "mechanism": mechanism, "n": measured.n,
                              "is_enough": measured.n >= stats.needed(99),
                              "x": over(by_round(table.select({**own, "from": start}), "us"), alone, 99),
                              "y": tuple(100 * end for end in kept)})
    return found


def untuned(table, rate_table):
    """By load, mechanism and part: the 95th percentile from arrival by that alone, or the median where answers are too
    few; and what the training keeps in %."""
    found = []
    counts = by([row for row in table.rows if row["from"] == "arrival"], "us", "mechanism", "part", "load").values()
    percent = 95 if min(counted.n for counted in counts) >= stats.needed(95) else 50
    training = by_round(rate_table.select({"mechanism": "alone-rest"}), "rate")
    for load, mechanism, part in dict.fromkeys((row["load"], row["mechanism"], row["part"]) for row in rate_table.rows):
        own = {"load": f"{load:g}", "mechanism": mechanism, "part": part if isinstance(part, str) else f"{part:g}"}
        waits = by_round(table.select({**own, "from": "arrival"}), "us")
        alone = by_round(table.select({"load": own["load"], "mechanism": "alone-first", "from": "arrival"}), "us")
        rates = by_round(rate_table.select(own), "rate")
        if waits and alone and training and mechanism != "alone-rest":
            found.append({"panel": load, "mechanism": mechanism, "part": own["part"],
                          "n": sum(map(len, waits.values())), "percent": percent,
                          "x": over(waits, alone, percent),
                          "y": tuple(100 * end for end in over(rates, training, 50))})
    return found


def voice(table, rate_table):
    """By load: the answers in a second, and the 95th percentile of the first audio in ms. (Late is what lies above.)"""
    found = []
    for load in sorted({row["load"] for row in rate_table.rows}):
        own = [row for row in table.rows if row["load"] == load and row["what"] == "first"]
        rates = by([row for row in rate_table.rows if row["load"] == load], "rate", "mechanism")
        found += points(load, by(own, "us", "mechanism"), rates, 95, (1e3, 1))
    return found


def most(table):
    """Of the table voice: how many requests a second there may be so that 95 % have their first audio within twice the median alone,
    between two measured loads."""
    firsts = by([row for row in table.rows if row["what"] == "first"], "us", "mechanism", "load")
    alone = [measured.percentile(50) for (mechanism, _), measured in firsts.items() if mechanism == "alone"]
    found = []
    for mechanism in dict.fromkeys(mechanism for mechanism, _ in firsts):
        late = sorted((load, one.percentile(95)) for (own, load), one in firsts.items() if own == mechanism and one.n >= stats.needed(95))
        for (load, before), (next_load, after) in zip(late, late[1:]):
            if alone and before <= 2 * alone[0] < after:
                rate = load + (next_load - load) * (2 * alone[0] - before) / (after - before)
                found.append({"mechanism": mechanism, "rate": rate})
                break
    return found


def missed(table):
    """Of the table plan: how many jobs ended after their deadline, of all and of each task."""
    found = {}
    for row in table.rows:
        for task in (row["task"], "all"):
            found[row["mechanism"], task] = found.get((row["mechanism"], task), 0) + (row["us"] > row["deadline_us"])
    return [{"mechanism": mechanism, "task": task, "missed": float(count)} for (mechanism, task), count in found.items()]
