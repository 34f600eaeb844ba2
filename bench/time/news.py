"""How long after the first launch of a lender the borrower's thread calls waiting launches back: of a trace of both.

    nvtaskset trace --seconds 5 -o FILE; news.py FILE
"""

import bisect
import json
import statistics
import sys

sys.dont_write_bytecode = True  # in a working tree
LATE_US = 5000  # after so long, the borrower waited for a different launch


def main():
    with open(sys.argv[1]) as file:
        events = json.load(file)
    back = [(event["pid"], event["ts"]) for event in events if event.get("name", "").startswith("waits for the rest")]
    launches = {}
    for event in events:
        if event.get("cat") == "kernel":
            launches.setdefault(event["pid"], []).append(event["ts"] - event["args"].get("waited_us", 0))
    for times in launches.values():
        times.sort()
    news = []
    for pid, at in back:
        before = bisect.bisect_right(launches.get(pid, []), at) - 1
        if before >= 0 and at - launches[pid][before] < LATE_US:
            news.append(at - launches[pid][before])
    if len(news) < 2:
        sys.exit("too few returns")
    parts = statistics.quantiles(news, n=100, method="inclusive")
    print(f"n {len(news)} of {len(back)}, p50 {parts[49]:.0f} us, p95 {parts[94]:.0f} us, p99 {parts[98]:.0f} us, max {max(news):.0f} us")


main()
