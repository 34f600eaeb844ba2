"""Reads metrics with Prometheus's own parsers, which are not ours (Debian: python3-prometheus-client).

Usage: metrics.py openmetrics|prometheus FILE [NAME [LABEL=VALUE]...]

Prints each family as "NAME TYPE UNIT", or the samples of this name with these labels: "LABEL=VALUE… NUMBER", the labels
sorted. What a parser refuses is an error.
"""
import sys

from prometheus_client import parser
from prometheus_client.openmetrics import parser as openmetrics


def main(form, path, name=None, *wanted):
    with open(path, encoding="utf-8", newline="") as file:
        text = file.read()
    read = openmetrics if form == "openmetrics" else parser
    families = list(read.text_string_to_metric_families(text))
    wanted = dict(label.split("=", 1) for label in wanted)
    for family in families:
        if not name:
            print(family.name, family.type, family.unit or "-")
        for sample in family.samples:
            if sample.name == name and wanted.items() <= sample.labels.items():
                labels = ["%s=%s" % label for label in sorted(sample.labels.items())]
                print(*labels, "%.17g" % sample.value)


main(*sys.argv[1:])
