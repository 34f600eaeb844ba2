"""Usage: predictions.py

Reads what `nvtaskset top --once --json PID` printed, and prints for each function and graph of the program, and for all of its
launches, FUNCTION,WHAT,VALUE:

  launches   how many have ended while it was looked at
  us         how long one took on the average
  predicted  how many were predicted from launches like them, since the program began
  percent    how far predictions were from what came, of what came

Functions whose names are not plain are numbered. What is not known is "n/a".
"""

import json
import re
import sys

NOT_SAID = "n/a"
WHAT = {"launches": ("instances", 1), "us": ("average_ns", 1e-3), "predicted": ("predicted", 1), "percent": ("error", 100)}


def name_of(number, name):
    if name.startswith("(graph "):
        name = "graph"
    return name if re.fullmatch(r"\w+", name) else f"kernel {number}"


def write(name, what, value, factor):
    print(f"{name},{what},{NOT_SAID if value is None else f'{value * factor:.6g}'}")


def main():
    looked = json.load(sys.stdin)
    if not looked["kernels"]:
        sys.exit("predictions.py: no function is known")
    for number, kernel in enumerate(looked["kernels"], start=1):
        for what, (member, factor) in WHAT.items():
            write(name_of(number, kernel["name"]), what, kernel.get(member), factor)
    total = looked.get("predictions") or {}
    for what in ("predicted", "percent"):
        member, factor = WHAT[what]
        write("all", what, total.get(member), factor)


if __name__ == "__main__":
    main()
