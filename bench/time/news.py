"""When a borrower has called waiting launches back, from the first launch of the lender on: of a trace of both.

    nvtaskset trace --seconds 5 -o FILE; news.py FILE [LENDER]

LENDER is a process; otherwise all lenders count. A lender that launches graphs is left out: the trace has no launch of
a kernel there.
"""

import bisect
import json
import statistics
import sys

sys.dont_write_bytecode = True  # in a working tree

COUNTED_US = 100  # a launch is counted less long before the time of the launch is noted


def main():
    with open(sys.argv[1]) as file:
        events = json.load(file)
    back = [(event["pid"], event["ts"]) for event in events
            if event["ph"] == "b" and event["name"].startswith("waits for the rest")
            and sys.argv[2:] in ([], [str(event["pid"])])]
    launches = {}
    for event in events:
        if event.get("cat") == "kernel":
            begin, end = event["ts"] - event["args"].get("waited_us", 0), event["ts"] + event["dur"]
            launches.setdefault(event["pid"], []).append((begin, end))
    for times in launches.values():
        times.sort()
    news = []
    for pid, at in back:
        times = launches.get(pid, [])
        following = bisect.bisect_right(times, (at, float("inf")))
        is_last = following == len(times)
        has_ended = following > 0 and times[following - 1][1] < at
        if following == 0 or (has_ended and is_last):
            continue  # the launch is not in the trace
        is_early = has_ended and times[following][0] - at < COUNTED_US
        news.append(0 if is_early else at - times[following - 1][0])
    if len(news) < 2:
        sys.exit("too few returns")
    parts = statistics.quantiles(news, n=100, method="inclusive")
    told = ", ".join(f"{us:.0f} us" for us in (parts[49], parts[94], parts[98], max(news)))
    print(f"n {len(news)} of {len(back)}; p50, p95, p99, the longest: {told}")


main()
