"""How long at least one kernel ran, in each part of the time from the first begin to the last end.

usage: shares.py PARTS FILE...

A FILE has lines of BEGIN,END in ns, and others. Prints PART,PERCENT for so many parts, which are equally long.
"""

import sys


def intervals(paths):
    """Those of all kernels together, in order, where none overlaps another one."""
    lines = [line for path in paths for line in open(path, encoding="utf-8") if "," in line]
    last = 0
    for begin, end in sorted(tuple(int(word) for word in line.split(",")[:2]) for line in lines):
        if end > last:
            yield max(begin, last), end
            last = end


def main():
    parts, kernels = int(sys.argv[1]), list(intervals(sys.argv[2:]))
    zero, length = kernels[0][0], (kernels[-1][1] - kernels[0][0]) / parts
    for part in range(parts):
        first, last = zero + part * length, zero + (part + 1) * length
        busy = sum(max(0, min(end, last) - max(begin, first)) for begin, end in kernels)
        print(f"{part + 1},{100 * busy / length:.3f}")


main()
