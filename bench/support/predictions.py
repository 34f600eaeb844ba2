"""Usage: predictions.py

Reads what `nvtaskset top --once --json PID` printed, and prints for each function of the program FUNCTION,WHAT,VALUE:

  launches   how many have ended meanwhile
  us         how long one took on the average
  predicted  how many were predicted from launches like them
  percent    how far predictions were from what came, of what came

Functions whose names are not plain are numbered. What is not known is "n/a".
"""

import json
import re
import sys

NOT_SAID = "n/a"


def said(kernel, name, factor=1.0):
    value = kernel.get(name)
    return NOT_SAID if value is None else f"{value * factor:.6g}"


def main():
    kernels = json.load(sys.stdin)["kernels"] or []
    for number, kernel in enumerate(kernels, start=1):
        name = kernel["name"] if re.fullmatch(r"\w+", kernel["name"]) else f"kernel {number}"
        for what, member, factor in (
            ("launches", "instances", 1),
            ("us", "average_ns", 1e-3),
            ("predicted", "predicted", 1),
            ("percent", "error", 100),
        ):
            print(f"{name},{what},{said(kernel, member, factor)}")
    if not kernels:
        sys.exit("predictions.py: no function is known")


if __name__ == "__main__":
    main()
