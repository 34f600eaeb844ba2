"""Usage: follow.py FIRST FIRST_TPCS REST REST_TPCS ALL

What an administrator would write: while one of two programs launches nothing, the other one has the whole GPU. Looks ten times a
second, by nvtaskset -l, and moves a program by nvtaskset -p, until it is ended; both then have their own TPCs again.
"""

import json
import signal
import subprocess
import sys


def main():
    first, first_tpcs, rest, rest_tpcs, all_tpcs = sys.argv[1:]
    own = {int(first): first_tpcs, int(rest): rest_tpcs}
    placed, counts = dict(own), {}

    def move(pid, tpcs):
        if placed[pid] != tpcs:
            subprocess.run(["nvtaskset", "-tp", tpcs, str(pid)], stdout=subprocess.DEVNULL, check=False)
            placed[pid] = tpcs

    def place_all(idle):
        for pid, tpcs in own.items():
            if not set(own) - {pid} <= idle:
                move(pid, tpcs)
        for pid in own:
            if set(own) - {pid} <= idle:
                move(pid, all_tpcs)

    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    looks = subprocess.Popen(["nvtaskset", "-l", "--json", "--watch=0.1"], stdout=subprocess.PIPE, text=True)
    try:
        for line in looks.stdout:
            before = counts
            counts = {one["pid"]: sum(gpu["launches"] for gpu in one["kernels"]) for one in json.loads(line)["processes"]}
            place_all({pid for pid in own if before.get(pid) == counts.get(pid)})
    finally:
        looks.kill()
        place_all(set())


if __name__ == "__main__":
    main()
