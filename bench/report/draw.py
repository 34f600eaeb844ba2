#!/usr/bin/env python3
"""Usage: draw.py [RESULTS [PICTURES [NAME…]]]

Draws what the experiments measured as SVG, beside the CSV files or into another directory: all pictures, or those of these names.
Needs matplotlib.
"""

import itertools
import os
import re
import sys

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

sys.dont_write_bytecode = True  # in a working tree
import queries
import results
import stats

INK, FAINT, PAPER = "#222222", "#737373", "#ffffff"
COLORS = {
    "none": "#6b6b6b",
    "mps": "#0072b2",
    "mps-priority": "#004c78",
    "mps-percent": "#56b4e9",
    "mps-static": "#a64d79",
    "green": "#009e73",
    "mig": "#b8860b",
    "nvtaskset": "#d55e00",
    "nvtaskset-distributed": "#8a2be2",
    "nvtaskset-overlap": "#b22222",
    "nvtaskset-no-mps": "#e69f00",
    "nvtaskset-priority": "#c2185b",
    "nvtaskset-weight": "#e69f00",
    "by-hand": "#8a2be2",
    "nvtaskset-prt": "#c2185b",
    "nvtaskset-ht": "#8a2be2",
    "nvtaskset-stepping": "#e69f00",
    "nvtaskset-pe": "#009e73",
    "nvtaskset-ae": "#b8860b",
    "alone": FAINT,
}
CHOICES = {"packed": "", "whole": ", whole GPU", "gpcs": ", whole GPCs", "distributed": ", across GPCs"}

# No line needs more points than the picture has pixels.
POINTS = 400

plt.rcParams.update(
    {
        "font.family": "sans-serif",
        "font.size": 10,
        "svg.fonttype": "none",
        "svg.hashsalt": "nvtaskset",
        "figure.facecolor": PAPER,
        "axes.facecolor": PAPER,
        "axes.edgecolor": FAINT,
        "axes.labelcolor": INK,
        "axes.titlesize": 10.5,
        "axes.titlelocation": "left",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": "#e6e6e6",
        "text.color": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "legend.frameon": False,
        "legend.labelcolor": "linecolor",
    }
)


def figure(rows, columns, height, **options):
    return plt.subplots(rows, columns, figsize=(8.4, height), squeeze=False, layout="constrained", **options)


def counted(axes, measured):
    """The footer of the picture says how many samples each of its cases has."""
    axes.figure.counts = [*getattr(axes.figure, "counts", []), measured.n]
    return measured


def n_of(counts):
    ends = sorted(counts)
    return f"n = {' to '.join(dict.fromkeys((f'{ends[0]}', f'{ends[-1]}')))}"


def save(fig, table, directory, name):
    about = table.about
    counts = [n_of(fig.counts)] if hasattr(fig, "counts") else []
    version = re.search(r"\d+\.\d+(\.\d+)?", about.get("driver", ""))
    driver = [f"driver {version.group() if version else 'unknown'}"] if "driver" in about else []
    commit = re.sub(r"([0-9a-f]{8})[0-9a-f]+", r"\1", about.get("nvtaskset", "?"))
    text = " · ".join([about.get("gpu", "?"), *driver, about.get("date", "?")[:10], commit, *counts])
    fig.supxlabel(text, x=0.01, ha="left", fontsize=7.5, color=FAINT)
    path = os.path.join(directory, f"{name}.svg")
    fig.savefig(path, metadata={"Date": None, "Creator": None, "Description": f"data: {table.digest}"})
    plt.close(fig)
    print(f"drawn: {path}")


def plain_numbers(axis, steps=(1, 2, 5)):
    """For a logarithmic axis: 1, 2, 5, 10 …"""
    axis.set_major_locator(LogLocator(subs=steps))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def make_logarithmic(axes):
    axes.set(xscale="log", yscale="log")
    plain_numbers(axes.xaxis)
    plain_numbers(axes.yaxis)


def spread(axes, height, measured, color):
    """One distribution, lying: its samples; or, where there are enough, what SPREAD_NOTE says."""
    if measured.n < stats.needed(25):
        axes.plot(measured.ordered, [height] * measured.n, "o", markersize=2.6, color=color, zorder=2)
    else:
        low, high = measured.percentile(25), measured.percentile(75)
        axes.barh(height, high - low, left=low, height=0.55, color=color, zorder=3, linewidth=0)
        axes.plot(measured.ordered[-1], height, marker="o", markersize=2.6, color=color, zorder=2)
    if measured.n >= stats.needed(99):
        ends = measured.percentile(1), measured.percentile(99)
        axes.plot(ends, [height, height], color=color, linewidth=1.2, zorder=2, solid_capstyle="butt")
    middle = measured.percentile(50)
    axes.plot([middle, middle], [height - 0.38, height + 0.38], color=INK, linewidth=1.6, zorder=4)


SPREAD_NOTE = "box: quartiles, and the median; line: 1 % to 99 %, from 1000 samples on; dot: the slowest"


def title_of_spreads(fig, text):
    """Over the whole picture: it is wider than the axes."""
    fig.suptitle(f"{text} ({SPREAD_NOTE})", fontsize=8, x=0.01, ha="left")


def label_of_spreads(axes, text):
    axes.set_xlabel(f"{text} ({SPREAD_NOTE})", fontsize=8, loc="right")


def in_order(keys):
    return sorted(keys, key=lambda key: [results.order(value) for value in key])


def spreads(axes, groups, log=False):
    """Distributions one below the other: [(label, color, Measurement)]; a place stays empty where there is none."""
    for place, (_, color, measured) in enumerate(groups):
        if measured:
            spread(axes, place, counted(axes, measured), color)
    axes.set_yticks(range(len(groups)), [label for label, _, _ in groups])
    axes.set_ylim(len(groups) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)
    if log:
        axes.set_xscale("log")
        plain_numbers(axes.xaxis)


def column(save_as, height, lines, label, title=None, log=False, begin=None, zero=False):
    """A picture of one column of distributions. `begin`: of the axis; `zero`: they are differences."""
    fig, ((axes,),) = figure(1, 1, height)
    spreads(axes, lines, log)
    axes.set_xlim(left=begin)
    if zero:
        axes.axvline(0, color=INK, linewidth=1, linestyle=(0, (1.5, 1)))
    if title:
        axes.set_xlabel(label)
        title_of_spreads(fig, title)
    else:
        label_of_spreads(axes, label)
    save_as(fig)


def columns(panels, height, label, log=False, **shared):
    """Several: [(title, lines)], beside each other if they share the places, else one below the other."""
    shape = (1, len(panels)) if "sharey" in shared else (len(panels), 1)
    fig, grid = figure(*shape, height, **shared)
    for axes, (title, lines) in zip(grid.flat, panels):
        spreads(axes, lines, log)
        axes.set(xlabel=label, title=title)
    return fig, grid


def split(rows, column, value, *columns):
    """[(the value of a column, the measurements of its rows by these columns)], in order."""
    return [(one, results.measurements([row for row in rows if row[column] == one], value, *columns))
            for one in sorted({row[column] for row in rows}, key=results.order)]


def by_mechanism(measurements):
    return [(results.name_of(mechanism), COLORS[mechanism], one) for (mechanism,), one in measurements.items()]


def thousandth(measured):
    """From ns to µs, from µs to ms."""
    return stats.Measurement([value / 1e3 for value in samples] for samples in measured.rounds)


def thousandths(measurements):
    return {key: thousandth(measured) for key, measured in measurements.items()}


def in_milliseconds(rows, *columns):
    return thousandths(results.measurements(rows, "us", *columns))


def startup(table, save_as):
    lines = by_mechanism(table.measurements("mechanism"))
    column(save_as, 3.0, lines, "ms from exec to the end of the first kernel", "Start-up", begin=0)


def parts(table, save_as):
    found = table.measurements("part")
    lines = [(part, "#d55e00", found[part,]) for part in sorted((part for part, in found), key=results.order)]
    column(save_as, 2.8, lines, "ms from exec until the driver is loaded", "Start-up under nvtaskset, part by part", begin=0)


def hook(table, save_as):
    """Differences within a process."""
    lines = []
    groups = table.groups("under", "mechanism")
    for under, mechanism in in_order(groups):
        other = results.COMPARED_WITH.get(mechanism)
        if other:
            without = table.select({"under": under, "mechanism": other})
            found = stats.differences(results.rounds(groups[under, mechanism], "ns"), results.rounds(without, "ns"))
            label = results.name_of(mechanism) + (", under MPS" if under == "mps" else "")
            lines.append((label, "#d55e00", found))
    column(save_as, 2.2, lines, "ns of a launch's call, less those with the hook taken out in the same process",
           "What the hook costs a launch, by process", zero=True)


WATCHERS = {"watch": "#0072b2", "top": "#d55e00"}
WORKS = {"2 us": "kernels of 2 µs", "10 us": "kernels of 10 µs", "graph": "a graph of 1000 kernels"}


def looking(table, save_as):
    """Differences within a process."""
    lines = []
    for work, meaning in WORKS.items():
        sides = {watcher: results.rounds(table.select({"work": results.word_of(work), "watcher": watcher}), "ns")
                 for watcher in ("nobody", *WATCHERS)}
        for watcher, color in WATCHERS.items():
            found = stats.relative_differences(sides[watcher], sides["nobody"])
            lines.append((f"{meaning}, {results.name_of(watcher)}", color, found if found.n else None))
    column(save_as, 2.6, lines, "% longer from kernel to kernel than while nobody looks, in the same process",
           "What looking costs, by process", zero=True)


def busy_change(table, save_as):
    fig, ((axes,),) = figure(1, 1, 6)
    found = table.measurements("pause_us", "kernel_us", "mechanism")
    lines = []
    for pause, length, mechanism in in_order(found):
        idle = f"then idle for {pause:g} µs" if pause > 0 else "50 in a row"
        label = f"{length:g} µs, {idle}" + (", MPS" if mechanism == "nvtaskset" else "")
        lines.append((label, COLORS[mechanism], found[pause, length, mechanism]))
    spreads(axes, lines)
    axes.axvline(0, color=INK, linewidth=1, linestyle=(0, (1.5, 1)))
    axes.set_xscale("symlog", linthresh=5)
    least, most = axes.get_xlim()
    steps = [0, 1, 2, 5, 10, 20, 50, 100, 1000, 10000]
    axes.set_xticks([tick for step in steps for tick in {step, -step} if least <= tick <= most])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel("µs by which a kernel is estimated to be longer than by its own looks at the clock")
    title_of_spreads(fig, "Busy time, kernel by kernel")
    save_as(fig)


def watchers(table, save_as):
    """A line for each tool: what it says of each program, or that it says nothing."""
    colors = {"20": "#009e73", "50": "#0072b2", "90": "#d55e00", "0.1": FAINT, "all": INK}
    tools = sorted({row["tool"] for row in table.rows}, key=results.order)
    fig, ((axes,),) = figure(1, 1, 3.2)
    for place, tool in enumerate(tools):
        for (program,), rows in results.groups([row for row in table.rows if row["tool"] == tool], "program").items():
            said = [row["percent"] for row in rows if row["percent"] != results.NOT_SAID]
            color = colors.get(program, INK)
            axes.plot(said, [place] * len(said), "|" if program == "all" else "o", markersize=9 if program == "all" else 5,
                      color=color, alpha=0.6)
        if not any(row["percent"] != results.NOT_SAID for row in table.rows if row["tool"] == tool):
            axes.text(50, place, "says nothing", ha="center", va="center", fontsize=8.5, color=FAINT)
    axes.set_yticks(range(len(tools)), [results.name_of(tool) for tool in tools])
    axes.set_ylim(len(tools) - 0.4, -0.6)
    axes.set_xlim(-2, 102)
    axes.set_xlabel("% of the time: programs that are busy for 0.1, 20, 50 and 90 % (dots), the whole GPU (lines)", loc="right", fontsize=9)
    save_as(fig)


def enforcement(table, save_as):
    """A picture for each size of product."""
    for (size,), rows in table.groups("size").items():
        enforcement_of_size(table, rows, size, save_as)


def enforcement_of_size(table, rows, size, save_as):
    expected = results.scaled(table)
    found = in_milliseconds(rows, "neighbour", "mechanism", "choice", "sms")
    titles = {"alone": "alone", "memory": "beside copies of memory", "compute": "beside arithmetic"}
    dotted = {"color": INK, "linewidth": 1, "linestyle": (0, (1.5, 1)), "zorder": 5}
    fig, grid = figure(1, 3, 4.6, sharey=True, sharex=True)
    # The same rows in all of them, whatever was measured.
    places = in_order({key[1:] for key in found if key[2] != "whole"})
    for axes, (neighbour, title) in zip(grid[0], titles.items()):
        lines = []
        for place, (mechanism, choice, sms) in enumerate(places):
            measured = found.get((neighbour, mechanism, choice, sms))
            lines.append((results.name_of(mechanism) + CHOICES[choice], COLORS[mechanism], measured))
            if (size, sms) in expected:
                axes.plot([expected[size, sms] / 1e3] * 2, [place - 0.45, place + 0.45], **dotted)
        spreads(axes, lines)
        axes.set_title(title)
        axes.set_xlabel("ms a product")
    grid[0][0].set_xlim(left=0)
    title = f"A product of {size:g} × {size:g} in 57 % of the TPCs. Dotted: its time on the whole GPU, scaled;"
    fig.suptitle(f"{title}\n{SPREAD_NOTE}", fontsize=8.5, x=0.01, ha="left")
    save_as(fig, f"-{size:g}")


def granularity(table, save_as):
    fig, ((axes,),) = figure(1, 1, 4.4)
    for (mechanism,), rows in table.groups("mechanism").items():
        times = {size: [row["us"] / 1e3 for row in own] for (size,), own in results.groups(rows, "sms").items()}
        sizes = sorted(times)
        # For a size between two, a user has to take the smaller one.
        axes.plot(
            sizes,
            [stats.Measurement([times[size]]).percentile(50) for size in sizes],
            marker=".",
            markersize=4,
            linewidth=4 if mechanism == "mps-percent" else 1,  # under nvtaskset's line
            drawstyle="steps-post",
            color=COLORS[mechanism],
            label=f"{results.name_of(mechanism)}: {len(sizes)} sizes",
        )
    make_logarithmic(axes)
    axes.set(xlabel="SMs of the partition", ylabel="ms a product")
    axes.set_title("One product of matrices, in every size of partition that there is")
    axes.legend()
    save_as(fig)


TASKS = {
    "task1": ("first: light", "#0072b2"),
    "task2": ("second: heavy, ends early", "#6b6b6b"),
    "task3": ("third: heavy", "#d55e00"),
}


def pitfall(table, save_as):
    """The first round of each mechanism; the others are in the data."""
    first = [row for row in table.rows if row["round"] == min(row["round"] for row in table.rows)]
    mechanisms = results.groups(first, "mechanism")
    fig, grid = figure(len(mechanisms), 1, 2.1 * len(mechanisms), sharex=True, sharey=True)
    for (axes,), ((mechanism,), rows) in zip(grid, mechanisms.items()):
        zero = min(row["ms"] for row in rows)
        for task, (label, color) in TASKS.items():
            # The first and the last 10 ms are incomplete.
            own = [row for row in rows if row["task"] == task][1:-1]
            times = [row["ms"] - zero for row in own]
            axes.plot(times, [row["laps"] / 10 for row in own], color=color, linewidth=1.3, label=label)
        axes.set_title(f"{results.name_of(mechanism)}: half of the GPU each")
        axes.set_ylabel("laps a ms")
        axes.set_ylim(0, 1.25 * max(row["laps"] / 10 for row in table.rows))
    grid[0][0].legend(loc="upper right", ncols=3, fontsize=8.5)
    grid[-1][0].set_xlabel("ms")
    save_as(fig)


CHANGE_METRICS = {
    "plain-done": ("unchanged, until all is done", "#6b6b6b"),
    "first": ("changed, until the first kernel writes", "#56b4e9"),
    "done": ("changed, until all is done", "#d55e00"),
}


def resize(table, save_as):
    found = table.measurements("work", "metric")
    works = list(dict.fromkeys(work for work, _ in found))
    fig, ((axes,),) = figure(1, 1, 0.62 * len(works) + 1.6)
    groups = [
        (f"{work}: {meaning}", color, found[work, metric])
        for work in works
        for metric, (meaning, color) in CHANGE_METRICS.items()
    ]
    spreads(axes, groups, log=True)
    axes.tick_params(axis="y", labelsize=7.5)
    label_of_spreads(axes, "µs")
    axes.set_title("A launch, and a change of the partition just before it")
    save_as(fig)


ACTIONS = {
    "true": "true, for comparison",
    "show": "nvtaskset -tp PID",
    "change": "nvtaskset -tp SET PID",
    "list": "nvtaskset -l",
}


def command(table, save_as):
    found = thousandths(table.measurements("action"))
    lines = [(meaning, "#d55e00", found.get((action,))) for action, meaning in ACTIONS.items()]
    column(save_as, 2.4, lines, "ms from start to end", begin=0)


def survival(axes, measured, **style):
    """The share of samples that took longer than x, as far down as ten samples show it."""
    count = measured.n
    last = count - stats.BEYOND
    # Dense where the tail is: equally spaced on the logarithmic axis.
    ranks = sorted({min(last, int(count * (1 - count ** (-step / POINTS)))) for step in range(POINTS + 1)})
    axes.step([measured.ordered[rank] for rank in ranks], [1 - rank / count for rank in ranks], where="post", **style)


DASHED = ("mps-priority",)  # MPS's line is as dark, and often above


def latencies(axes, found):
    """Tails of {(mechanism, neighbour): Measurement}, the slowest first."""
    enough = [(key, one) for key, one in found.items() if one.n >= 2 * stats.BEYOND]
    for (mechanism, neighbour), measured in sorted(enough, key=lambda item: -item[1].percentile(50)):
        label, line = (", alone", ":") if neighbour == "alone" else ("", "--" if mechanism in DASHED else "-")
        style = {"color": COLORS[mechanism], "linestyle": line, "linewidth": 1.5}
        survival(axes, measured, label=f"{results.name_of(mechanism)}{label} (n = {measured.n})", **style)
    axes.set(xscale="log", yscale="log")
    plain_numbers(axes.xaxis)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value * 100:g} %"))
    axes.legend(fontsize=7.5, ncols=1, loc="upper center", bbox_to_anchor=(0.5, -0.16))


def tail(table, save_as):
    critical = [row for row in table.rows if row["side"] == "critical"]
    tails(critical, save_as, 5.4, xlabel="ms an inference (a chain of 60 small kernels)", ylabel="of inferences take longer")


def tails(rows, save_as, height, **labels):
    fig, ((axes,),) = figure(1, 1, height)
    latencies(axes, in_milliseconds(rows, "mechanism", "neighbour"))
    axes.set(**labels)
    save_as(fig)


def decoding(rows, save_as, height, neighbour):
    tails(rows, save_as, height, xlabel="ms a step", ylabel="of steps take longer", title=f"Decoding beside {neighbour}")


def decode(table, save_as):
    decoding(table.rows, save_as, 6.0, "products")


def decode_training(table, save_as):
    decoding(table.rows, save_as, 6.0, "training")


def medians(axes, found, x, **style):
    """A line of medians, of {key: Measurement}; place x of the key is on the axis."""
    values = [counted(axes, one).percentile(50) for one in found.values()]
    axes.plot([key[x] for key in found], values, marker="o", markersize=3, **style)


def processes(table, save_as):
    fig, ((axes,),) = figure(1, 1, 4.0)
    found = in_milliseconds(table.rows, "mechanism", "connections", "processes")
    for mechanism, connections in dict.fromkeys(key[:2] for key in found):
        own = {key: one for key, one in found.items() if key[:2] == (mechanism, connections)}
        style = {"color": COLORS[mechanism], "linestyle": "-" if connections == 8 else "--", "linewidth": 1.2}
        label = f"{results.name_of(mechanism)}, {connections:g} connections"
        medians(axes, dict(sorted(own.items())), 2, label=label, **style)
    axes.set(title="A kernel of each, while all work: medians", xlabel="programs", ylabel="ms")
    make_logarithmic(axes)
    axes.legend(fontsize=7.5, loc="center left", bbox_to_anchor=(1, 0.5))
    save_as(fig)


STRATEGIES = {"singly": ("#858585", 3.5), "packed": ("#d55e00", 2.2), "distributed": ("#0072b2", 1)}


def strategies(table, save_as):
    fig, grid = figure(2, 3, 5.4)
    found = in_milliseconds(table.rows, "work", "strategy", "tpcs")
    works = list(dict.fromkeys(row["work"] for row in table.rows))
    for axes, work in zip(grid.flat, works):
        for strategy, (color, width) in STRATEGIES.items():
            own = {key: one for key, one in sorted(found.items()) if key[:2] == (work, strategy)}
            medians(axes, own, 2, color=color, linewidth=width, label=strategy)
        make_logarithmic(axes)
        axes.set(xlabel="TPCs", title=work)
    grid[0][0].set_ylabel("ms (medians)")
    grid[0][0].legend()
    save_as(fig)


WAYS = {"1G": FAINT, "SMS-INA": "#d55e00", "SMS-ACT": "#e69f00", "BF-INA": "#0072b2", "BF-ACT": "#56b4e9"}
TIMES = {"scaled": "b of the time on all SMs", "written": "b as the paper has it"}


def planning(table, save_as):
    """Figures 5 and 7 above, 6 and 8 below, of Zahaf et al. (2021)."""
    for number, (times, title) in enumerate(TIMES.items(), start=1):
        fig, grid = figure(2, 2, 5.6, sharex=True)
        for column, tasks in enumerate((50.0, 200.0)):
            for row, quantity in enumerate(("schedulable", "work")):
                axes = grid[row][column]
                for way, color in WAYS.items():
                    own = table.select({"tasks": label_of(tasks), "times": times, "way": way, "quantity": quantity})
                    axes.plot([one["load"] for one in own], [one["mean"] for one in own], color=color, linewidth=1.2, label=way)
            for bound in ("least", "most"):
                own = table.select({"tasks": label_of(tasks), "times": times, "quantity": bound})
                axes.plot([one["load"] for one in own], [one["mean"] for one in own], color=INK, linestyle=":", linewidth=1)
            grid[0][column].set(title=f"{tasks:g} tasks, {title}", ylabel="% of the sets" if column == 0 else "")
            grid[1][column].set(xlabel="total utilization of 68 SMs", ylabel="work of those, SMs" if column == 0 else "")
        grid[0][0].legend(fontsize=7.5)
        save_as(fig, f"-{number}")


def label_of(number):
    return f"{number:g}"


ORDERS = {
    ("short", "free"): "both short, without a pause",
    ("short", "first-first"): "both short, the first one begins",
    ("short", "second-first"): "both short, the second one begins",
    ("mixed", "first-first"): "the first one long, and it begins",
    ("mixed", "second-first"): "the first one long, the second one begins",
}


def overlap(table, save_as):
    colors = {"first": "#0072b2", "second": "#d55e00"}
    found = in_milliseconds(table.rows, "work", "order", "shared_tpcs", "task")
    orders = [order for order in ORDERS if order in {key[:2] for key in found}]
    fig, grid = figure(len(orders), 1, 1.9 * len(orders), sharex=False)
    for (axes,), order in zip(grid, orders):
        own = {key[2:]: one for key, one in sorted(found.items()) if key[:2] == order}
        spreads(axes, [(f"{shared:g} shared: the {task}", colors[task], one) for (shared, task), one in own.items()])
        axes.tick_params(axis="y", labelsize=7)
        axes.set_xlim(left=0)
        axes.set_title(ORDERS[order])
    label_of_spreads(grid[-1][0], "ms a product")
    save_as(fig)


def network(table, save_as):
    fig, ((axes,),) = figure(1, 1, 4.2)
    found = in_milliseconds(table.rows, "mechanism", "neighbour", "sms")
    for mechanism, neighbour in dict.fromkeys(key[:2] for key in found):
        own = {key: one for key, one in sorted(found.items()) if key[:2] == (mechanism, neighbour)}
        label = results.name_of(mechanism) + (", alone" if neighbour == "alone" else ", beside a faulty neighbour")
        medians(axes, own, 2, color=COLORS[mechanism], linestyle=":" if neighbour == "alone" else "-", label=label)
    make_logarithmic(axes)
    axes.set(xlabel="SMs of the partition", ylabel="ms an inference (medians)")
    axes.set_title("YOLOv2 in partitions of several sizes")
    axes.legend(fontsize=8)
    save_as(fig)


def faulty(table, save_as):
    titles = {"alone": "alone", "planned": "beside a second one", "faulty": "beside a faulty neighbour"}
    found = in_milliseconds(table.rows, "neighbour", "mechanism")
    places = list(dict.fromkeys(mechanism for _, mechanism in found))
    panels = [(title, [(results.name_of(place), COLORS[place], found.get((neighbour, place))) for place in places])
              for neighbour, title in titles.items()]
    fig, grid = columns(panels, 3.2, "ms an inference", sharey=True)
    for axes in grid.flat:
        axes.set_xlim(left=0)
    save_as(fig)


def slots(table, save_as):
    found = in_milliseconds(table.rows, "mechanism", "kernels", "priority")
    fig, ((axes,),) = figure(1, 1, 0.24 * len(found) + 1.2)
    lines = []
    for mechanism, kernels, priority in in_order(found):
        beside = "alone" if kernels == 0 else f"beside {kernels:g} kernels of {priority} priority"
        measured = found[mechanism, kernels, priority]
        lines.append((f"{results.name_of(mechanism)}, {beside}", COLORS[mechanism], measured))
    spreads(axes, lines, log=True)
    axes.tick_params(axis="y", labelsize=7)
    label_of_spreads(axes, "ms a kernel in half of the GPU")
    save_as(fig)


def kernels(table, save_as):
    """Where and when each kernel of the first round with partitions ran."""
    rows = [row for row in table.rows if row["mechanism"] != "none"]
    rows = [row for row in rows if row["round"] == rows[0]["round"]]
    fig, ((axes,),) = figure(1, 1, 4.4)
    colors = {stream: color for stream, color in zip(sorted({row["stream"] for row in rows}), ("#0072b2", "#d55e00"))}
    for row in rows:
        axes.barh(row["tpc"], row["end_us"] - row["start_us"], left=row["start_us"], color=colors[row["stream"]],
                  height=0.8, linewidth=0)
    axes.set(xlabel="µs", ylabel="TPC", title="Kernels of two streams (by colour), each in a partition of its own")
    save_as(fig)


def share_of(quota):
    """30ms/100ms: 30 %."""
    run, period = (float(re.match(r"[0-9.]+", text).group()) * (1000 if text[-2:] != "ms" else 1) for text in quota.split("/"))
    return run / period * 100


KINDS = ["10us", "1ms", "40ms", "400ms", "graph"]


def quota(table, save_as):
    """How far presence, and progress compared with a program without a quota, are from what the quota says."""
    fig, grid = figure(1, 2, 4.2, sharey=True)
    limited = [row for row in table.rows if row["quota"] != "unlimited"]
    cases = list(dict.fromkeys((row["quota"], row["beside"]) for row in limited))
    cases.sort(key=lambda case: (case[1] != "alone", share_of(case[0])))

    def draw(axes, row, percent, **look):
        case = cases.index((row["quota"], row["beside"]))
        height = KINDS.index(row["kind"]) + (case + 1) / (len(cases) + 1) - 0.5
        axes.plot(percent - share_of(row["quota"]), height, color=plt.cm.viridis(case / len(cases)), markersize=4, **look)

    for row in limited:
        draw(grid[0][0], row, row["presence"], marker="o")
        if row["beside"] != "alone":
            draw(grid[0][0], row, row["asked"], marker="x")
    for row in results.progress(table):
        if row["quota"] != "unlimited" and row["beside"] == "alone":
            draw(grid[0][1], row, row["percent"], marker="o")
    for axes, title, most in zip(grid[0], ("present (x: by calls)", "progress, alone"), (1, 2)):
        axes.axvspan(-most, most, color="#f0f0f0", zorder=0)
        axes.set(title=title, xlabel="percentage points more than the quota")
        axes.set_yticks(range(len(KINDS)), [kind.replace("us", " µs").replace("ms", " ms") for kind in KINDS])
        axes.set_ylim(len(KINDS) - 0.5, -0.5)
    for case, (limit, beside) in enumerate(cases):
        label = limit if beside == "alone" else f"{limit} beside {beside}"
        grid[0][1].plot([], [], "o", markersize=4, color=plt.cm.viridis(case / len(cases)), label=label)
    grid[0][1].legend(fontsize=7.5, loc="center left", bbox_to_anchor=(1, 0.5))
    save_as(fig)


LENGTHS = {"0.5": "#0072b2", "17": "#d55e00"}


def places(axes, values):
    """An axis with a place for each of these values, numbers and words."""
    ordered = sorted(values, key=results.order)
    axes.set_xticks(range(len(ordered)), [results.label(value) for value in ordered])
    return {value: place for place, value in enumerate(ordered)}


def percentiles(axes, found, at, **style):
    """Lines of the median and, dashed, the 99th percentile, of {value: Measurement} at these places."""
    ordered = sorted(found, key=results.order)
    for percent, line in ((50, "-"), (99, "--")):
        own = [key for key in ordered if found[key].n >= stats.needed(percent)]
        values = [counted(axes, found[key]).percentile(percent) for key in own]
        axes.plot([at[key] for key in own], values, line, marker="o", markersize=3, **style)
        style.pop("label", None)


def slices(table, save_as):
    fig, grid = figure(1, 2, 3.6)
    tasks = [row for row in table.rows if row["whose"] == "task" and row["slice_us"] != "alone"]
    kept = results.groups(results.DERIVED["slices_kept"][1](table), "kernel_ms", "slice_us")
    at = [places(axes, {row["slice_us"] for row in tasks}) for axes in grid[0]]
    for (length,), rows in results.groups(tasks, "kernel_ms").items():
        style = {"color": LENGTHS[length], "linewidth": 1.2, "label": f"beside kernels of {length} ms"}
        found = {slice_us: one for (slice_us,), one in results.measurements(rows, "us", "slice_us").items()}
        percentiles(grid[0][0], found, at[0], **style)
        for slice_us, place in at[1].items():
            percents = [row["percent"] for row in kept.get((length, slice_us), [])]
            aside = place + (0.12 if length == "17" else -0.12)
            grid[0][1].plot([aside] * len(percents), percents, "o", markersize=3, color=LENGTHS[length])
    grid[0][0].set(yscale="log", ylabel="µs", title="A kernel of 10 µs: median (dashed: 99 %)")
    plain_numbers(grid[0][0].yaxis)
    grid[0][0].legend(fontsize=8)
    grid[0][1].set(ylabel="%", title="What the loop keeps", ylim=(0, 105))
    for axes in grid[0]:
        axes.set_xlabel("the loop's time slice, µs")
    save_as(fig)


def priority(table, save_as):
    tasks = [row for row in table.rows if row["whose"] == "task" and row["mechanism"] != "alone"]
    panels = [(f"beside kernels of {length} ms", by_mechanism(found)) for length, found in split(tasks, "kernel_ms", "us", "mechanism")]
    fig, _ = columns(panels, 2.6 * len(panels), "µs", log=True, sharex=True)
    title_of_spreads(fig, "A kernel of 10 µs every 2 ms")
    save_as(fig)


def held_priority(table, save_as):
    tasks = [row for row in table.rows if row["whose"] == "task"]
    panels = [(f"{results.label(count)} of 10 µs, every 2 ms", by_mechanism(found))
              for count, found in split(tasks, "kernels", "us", "mechanism")]
    fig, _ = columns(panels, 2.6 * len(panels), "µs", log=True)
    title_of_spreads(fig, "Beside kernels of 100 µs in the same TPCs")
    save_as(fig)


def held_quota_spent(table, save_as):
    """What periods have spent, and what each case had in the mean."""
    panels = [(results.label(beside), [(f"{kind}, {results.name_of(rule)}", COLORS[f"nvtaskset-{rule}"], found[kind, rule])
                                       for kind, rule in in_order(found)])
              for beside, found in split(table.rows, "beside", "ms", "kind", "enforcement")]
    fig, grid = columns(panels, 3.2, "ms of a period", sharey=True)
    for axes in grid.flat:
        axes.set_xlim(left=0)
    title_of_spreads(fig, "30 of 100 ms")
    save_as(fig)


def bursts(table, save_as):
    titles = {"first": "the first kernel after a pause", "next": "the next ones"}
    found = dict(split(table.rows, "kernel", "us", "mechanism"))
    panels = [(title, by_mechanism(thousandths(found[kernel]))) for kernel, title in titles.items()]
    fig, _ = columns(panels, 3.0, "ms", log=True, sharey=True)
    title_of_spreads(fig, "Kernels of 0.5 ms, for 50 of 200 ms")
    save_as(fig)


def weights(table, save_as):
    """How far each program got until then, in the first round."""
    cases = results.groups([row for row in table.rows if row["round"] == 1 and row["weights"] != "alone"], "weights")
    fig, grid = figure(1, len(cases), 3.6)
    for axes, ((case,), rows) in zip(grid[0], sorted(cases.items())):
        for (program, weight), own in results.groups(rows, "program", "weight").items():
            done = list(itertools.accumulate(row[table.value] for row in own))
            width, line = (3, "-") if program == 1 else (1.2, "-" if program == 2 else "--")
            axes.plot([row["ms"] / 1e3 for row in own], done, line, linewidth=width, label=f"weight {weight:g}")
        axes.set(title=case, xlabel="s")
        axes.legend(fontsize=8)
    grid[0][0].set_ylabel(table.value)
    save_as(fig)


def resnet_weights(table, save_as):
    weights(table, save_as)


def decode_priority(table, save_as):
    decoding([row for row in table.rows if row["mechanism"] != "ahead"], save_as, 5.4, "products")


def resnet(table, save_as):
    tasks = [row for row in table.rows if row["whose"] == "task"]
    column(save_as, 3.0, by_mechanism(in_milliseconds(tasks, "mechanism")), "ms a picture", log=True)


SHORT = {
    "alone": ("alone", INK),
    "none": ("plain turns", "#6b6b6b"),
    "xsched": ("XSched", "#009e73"),
    "hami": ("HAMi-core", "#009e73"),
    "mps": ("MPS", "#0072b2"),
    "mps-priority": ("MPS priority", "#0072b2"),
    "mps-percent": ("MPS percentage", "#0072b2"),
    "mps-static": ("MPS static", "#0072b2"),
    "fixed": ("fixed", "#d55e00"),
    "follow": ("script with -p", "#d55e00"),
    "shared": ("all TPCs", "#d55e00"),
    "nvtaskset-priority": ("priority in turns", "#d55e00"),
    "nvtaskset-stepping": ("priority side by side", "#d55e00"),
    "nvtaskset-prt": ("PRT", "#d55e00"),
}


def short(mechanism):
    """What is written beside its point, and the color."""
    return SHORT.get(mechanism) or (f"lending {results.limit_of(mechanism)}", "#d55e00")


MARKERS = {"none": "s", "xsched": "P", "hami": "X", "mps-priority": "^", "mps-percent": "v", "nvtaskset-priority": "^",
           "nvtaskset-stepping": "v", "nvtaskset-prt": "P"}
NOT_DRAWN = ("shared", "follow")  # under the points of MPS and of fixed parts
JOBS_NOTE = "orange: nvtaskset; lines: lowest to highest block; hollow: fewer samples than the percentile needs"
AWAY = [(x * far, y * far, far) for far in (9, 16, 26, 38, 52, 68, 86) for x, y in
        ((1, 0), (-1, 0), (0, 1), (0, -1), (0.8, 0.8), (0.8, -0.8), (-0.8, 0.8), (-0.8, -0.8))]


def overlap_of(one, other):
    """How much of two boxes (left, below, right, above) is in both."""
    width, height = (min(one[side + 2], other[side + 2]) - max(one[side], other[side]) for side in (0, 1))
    return max(0, width) * max(0, height)


def name_points(axes, named):
    """Writes [(x, y, text, color)] beside these points, where the words cover neither each other nor a point. The picture must have
    its layout."""
    renderer, scale = axes.figure._get_renderer(), axes.figure.dpi / 72
    limits = axes.get_window_extent(renderer).extents
    places = [axes.transData.transform((x, y)) for x, y, _, _ in named]
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in places]
    with_text = [item for item in zip(named, places) if item[0][2]]
    for (x, y, text, color), (left, below) in sorted(with_text, key=lambda item: -item[1][1]):
        style = {"fontsize": 7.5, "color": color, "textcoords": "offset points", "va": "center"}
        width = axes.text(0, 0, text, fontsize=7.5)
        size = width.get_window_extent(renderer)
        width.remove()

        def box(away):
            begin = left + away[0] * scale - (size.width if away[0] < 0 else 0 if away[0] > 0 else size.width / 2)
            middle = below + away[1] * scale
            return begin - 3, middle - size.height / 2, begin + size.width + 3, middle + size.height / 2

        def cost(away):
            own = box(away)
            inside = overlap_of(own, limits)
            return sum(overlap_of(own, other) for other in taken) + 3 * ((own[2] - own[0]) * (own[3] - own[1]) - inside) + away[2]

        away = min(AWAY, key=cost)
        taken.append(box(away))
        line = {"arrowstyle": "-", "color": color, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 2} if away[2] > 9 else None
        place = "right" if away[0] < 0 else "left" if away[0] > 0 else "center"
        axes.annotate(text, (x, y), away[:2], ha=place, arrowprops=line, zorder=6, **style).set_in_layout(False)


# In the order of drawing: large markers lie under small markers.
SIZES = {"s": 9, "o": 8.5, "D": 7, "v": 6, "^": 6, "X": 6, "P": 6}


def marker_of(mechanism):
    return "D" if mechanism.startswith("lend-") else MARKERS.get(mechanism, "o")


def draw_points(axes, rows):
    for row in sorted(rows, key=lambda row: list(SIZES).index(marker_of(row["mechanism"]))):
        color = short(row["mechanism"])[1]
        (x, *x_ends), (y, *y_ends) = row["x"], row["y"]
        axes.plot(x_ends, [y, y], color=color, linewidth=0.8, alpha=0.25)
        axes.plot([x, x], y_ends, color=color, linewidth=0.8, alpha=0.25)
        marker = marker_of(row["mechanism"])
        edge, inside = (PAPER, color) if row["is_enough"] else (color, PAPER)
        axes.plot(x, y, marker, markersize=SIZES[marker], markeredgecolor=edge, markerfacecolor=inside, zorder=4)


def job(table, save_as, panels, ideal, least, xlabel, ylabel):
    """Latency against throughput. `panels` is {the value of the rows' panel: its title}; ideal says where it is, of a panel's rows."""
    columns = 2
    fig, grid = figure((len(panels) + 1) // columns, columns, 3.6 * len(panels) / columns + 0.6)
    later = []
    for axes, (panel, title) in zip(grid.flat, panels.items()):
        rows = [row for row in table.rows if row["panel"] == panel and row["mechanism"] not in NOT_DRAWN]
        draw_points(axes, rows)
        best = ideal(rows)
        axes.plot(*best, "*", markersize=11, color=INK, zorder=5)
        axes.set(xscale="log", title=title, xlabel=f"{xlabel} ({n_of(row['n'] for row in rows)})", ylabel=ylabel)
        plain_numbers(axes.xaxis)
        axes.set_ylim(bottom=least)
        later.append((axes, [(row["x"][0], row["y"][0], *short(row["mechanism"])) for row in rows] + [(*best, "ideal", INK)]))
    fig.suptitle(JOBS_NOTE, fontsize=8, x=0.01, ha="left")
    fig.draw_without_rendering()
    for axes, named in later:
        name_points(axes, named)
    save_as(fig)


def servers_points(table, save_as):
    panels = {"2": "2 requests each", "8": "8 requests each", "32": "32 requests each", "varying": "16 each, with pauses"}
    panels = {panel: title for panel, title in panels.items() if any(row["panel"] == panel for row in table.rows)}
    job(table, save_as, panels, lambda rows: (next(row["x"][0] for row in rows if row["mechanism"] == "alone"), 200), 60,
        xlabel="99 % of steps take at most, ms", ylabel="tokens of both, % of one alone")


def inference_points(table, save_as):
    services = {"decode": "Decoder, load 0.5", "resnet": "ResNet-152, load 0.5"}
    starts = {"begin": "service", "arrival": "from arrival"}
    panels = {(service, start): f"{services[service]}, {starts[start]}" for service in services for start in starts}
    panels = {panel: title for panel, title in panels.items() if any(row["panel"] == panel for row in table.rows)}
    job(table, save_as, panels, lambda _: (1, 100), 0,
        xlabel="99 %, divided by that alone", ylabel="the training keeps, %")


LINES = [
    ("plain turns", "#6b6b6b", "s", ["none"]),
    ("MPS (hollow: with client priority)", "#0072b2", "o", ["mps", "mps-priority"]),
    ("MPS, percentages", "#56b4e9", "^", ["mps-percent"]),
    ("nvtaskset, fixed parts", "#e69f00", "v", ["fixed"]),
    ("nvtaskset, lending", "#d55e00", "D", ["lend-2ms"]),
    ("nvtaskset, priority side by side", "#cc79a7", "P", ["nvtaskset-stepping"]),
    ("nvtaskset, priority in turns", "#009e73", "X", ["nvtaskset-priority"]),
]


def name_of_point(row):
    return "" if row["part"] == "all" else f"{row['part']} %"


def untuned_points(table, save_as):
    """A line for each mechanism, over its parts."""
    loads = sorted({row["panel"] for row in table.rows})
    what = {50: "median", 95: "95 %"}[table.rows[0]["percent"]]
    drawn = [mechanism for *_, mechanisms in LINES for mechanism in mechanisms]
    least = min(end for row in table.rows if row["mechanism"] in drawn for end in row["y"]) // 10 * 10
    fig, grid = figure(1, len(loads), 4.8, sharey=True)
    later = []
    for axes, load in zip(grid[0], loads):
        named = [(1, 100, "ideal", INK)]
        axes.plot(1, 100, "*", markersize=12, color=INK, zorder=5)
        for label, color, marker, mechanisms in LINES:
            own = [row for row in table.rows if row["panel"] == load and row["mechanism"] in mechanisms]
            for row in own:
                (x, *x_ends), (y, *y_ends) = row["x"], row["y"]
                axes.plot(x_ends, [y, y], [x, x], y_ends, color=color, linewidth=0.8, alpha=0.35)
                named.append((x, y, name_of_point(row), INK))
                if row["mechanism"] == "mps-priority":
                    axes.plot(x, y, marker=marker, markersize=5, color=PAPER, zorder=5)
            axes.plot([row["x"][0] for row in own], [row["y"][0] for row in own], marker=marker, markersize=7,
                      color=color, linewidth=1.4, zorder=4, label=label)
        counts = (row["n"] for row in table.rows if row["panel"] == load and row["mechanism"] in drawn)
        axes.set(xscale="log", title=f"load {load:g} ({n_of(counts)} answers)", ylim=(least, 104),
                 xlabel=f"{what} of answers, from arrival, divided by that alone")
        plain_numbers(axes.xaxis, (1, 1.2, 1.5, 2, 3, 5, 7))
        later.append((axes, named))
    grid[0][0].set_ylabel("the training keeps, %")
    fig.get_layout_engine().set(rect=(0, 0, 1, 0.84))
    fig.legend(*grid[0][0].get_legend_handles_labels(), loc="upper left", bbox_to_anchor=(0, 0.97), ncols=3,
               fontsize=8, labelcolor=INK)
    fig.suptitle("at points: the answers' part of the TPCs; thin lines: lowest to highest block", fontsize=8,
                 x=0.01, y=0.99, ha="left")
    fig.draw_without_rendering()
    for axes, named in later:
        name_points(axes, named)
    save_as(fig)


VOICE = ("alone", "none", "xsched", "mps", "mps-percent", "fixed", "nvtaskset-priority")


def voice_points(table, save_as):
    """A line for each mechanism, over the loads."""
    fig, ((axes,),) = figure(1, 1, 5.2)
    rows = [{**row, "x": row["y"], "y": row["x"]} for row in table.rows if row["mechanism"] in VOICE]
    draw_points(axes, rows)
    named = []
    for (mechanism,), own in results.groups(rows, "mechanism").items():
        axes.plot([row["x"][0] for row in own], [row["y"][0] for row in own], color=short(mechanism)[1], linewidth=1)
        last = own[-1]
        named.append((last["x"][0], last["y"][0], *short(mechanism)))
    alone = [row["y"][0] for row in rows if row["mechanism"] == "alone"]
    for best in ((max(row["panel"] for row in rows), height) for height in alone):
        axes.plot(*best, "*", markersize=11, color=INK, zorder=5)
        named.append((*best, "ideal", INK))
    axes.set(yscale="log", xlabel=f"answers a second ({n_of(row['n'] for row in rows)})",
             ylabel="95 % have their first audio within, ms")
    plain_numbers(axes.yaxis)
    fig.suptitle(JOBS_NOTE, fontsize=8, x=0.01, ha="left")
    fig.draw_without_rendering()
    name_points(axes, named)
    save_as(fig)


PICTURES = [
    startup,
    parts,
    hook,
    looking,
    busy_change,
    watchers,
    enforcement,
    granularity,
    pitfall,
    resize,
    command,
    tail,
    processes,
    strategies,
    planning,
    overlap,
    decode,
    decode_training,
    network,
    faulty,
    slots,
    kernels,
    quota,
    slices,
    priority,
    bursts,
    weights,
    decode_priority,
    resnet,
    resnet_weights,
    held_priority,
    held_quota_spent,
    servers_points,
    inference_points,
    untuned_points,
    voice_points,
]


def main():
    source = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.environ.get("BUILD", "build"), "bench", "results")
    target = sys.argv[2] if len(sys.argv) > 2 else source
    wanted = set(sys.argv[3:])
    parts = {re.sub(r"-\d+$", "", name) for name in wanted}  # one function may draw several
    above, machine = os.path.split(os.path.abspath(source))
    data = queries.Data(above)
    failed = False
    for picture in PICTURES:
        name = picture.__name__
        if wanted and name not in parts:
            continue
        try:
            table = data.table(machine, name)
        except queries.Wrong:
            continue
        if not table.rows:
            continue
        try:
            picture(table, lambda fig, part="": save(fig, table, target, name + part) if not wanted or name + part in wanted else plt.close(fig))
        except Exception as error:  # A picture that fails must not stop the rest.
            print(f"draw.py: {name}: {error!r}", file=sys.stderr)
            failed = True
    return failed


if __name__ == "__main__":
    sys.exit(main())
