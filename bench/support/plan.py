"""For space/plan: what it reads from the curves and plans of nvtaskset.

    plan.py points TASK CURVE               rows of a curve
    plan.py tasks DIRECTORY MARGIN NAME=PART=PID…
        A file for `nvtaskset plan`, from DIRECTORY/NAME.json. A deadline is a quarter more than the longest job that was seen with
        PART TPCs, and its period a tenth more than that: DIRECTORY/NAME.period.
    plan.py predicted CHECKED               rows of times in a plan that was checked
    plan.py lists CHECKED                   the TPCs of each task
    plan.py deadline TASKS NAME             in µs
"""

import json
import sys


def read(path):
    with open(path) as file:
        return json.load(file)


def points(task, path):
    curve = read(path)
    for beside, listed in (("nothing", curve["points"]), ("memory", curve.get("points_beside") or [])):
        for point in listed:
            print(task, beside, point["tpcs"], round(point["job_ms"] * 1e3, 2), sep=",")


def longest_at(listed, tpcs):
    """Between the nearest two, by a / m + b."""
    low = ([point for point in listed if point["tpcs"] <= tpcs] or listed[:1])[-1]
    high = ([point for point in listed if point["tpcs"] >= tpcs] or listed[-1:])[0]
    least, most = (max(point.get("longest_ms") or 0, point["job_ms"]) for point in (high, low))
    part = 1 if low["tpcs"] >= high["tpcs"] else (1 / tpcs - 1 / high["tpcs"]) / (1 / low["tpcs"] - 1 / high["tpcs"])
    return least * (1 - part) + most * part


def tasks(directory, margin, *words):
    listed = []
    for name, part, pid in (word.split("=") for word in words):
        curve = read(f"{directory}/{name}.json")
        deadline = 1.25 * longest_at(curve.get("points_beside") or curve["points"], int(part))
        with open(f"{directory}/{name}.period", "w") as file:
            file.write(f"{deadline * 1.1:.3f}\n")
        times = {"period_ms": round(deadline * 1.1, 3), "deadline_ms": round(deadline, 3)}
        listed.append({"name": name, "pid": int(pid), **times, "curve": f"{name}.json"})
    with open(f"{directory}/tasks.json", "w") as file:
        json.dump({"margin": float(margin), "tasks": listed}, file, indent=1)


def predicted(path):
    for task in read(path)["tasks"]:
        measured = (task["check"] or {}).get("job_ms")
        times = {"deadline": task["deadline_ms"], "response": task["response_ms"], "predicted": task["job_ms"], "measured": measured}
        for what, ms in times.items():
            print(task["name"], task["tpcs"], what, round((ms or 0) * 1e3, 2), sep=",")


def lists(path):
    for task in read(path)["tasks"]:
        print(task["name"], task["tpc_list"])


def deadline(path, name):
    print(*(task["deadline_ms"] * 1e3 for task in read(path)["tasks"] if task["name"] == name))


{one.__name__: one for one in (points, tasks, predicted, lists, deadline)}[sys.argv[1]](*sys.argv[2:])
