"""Is a file in Prometheus' text exposition format, version 0.0.4, as promtool
check metrics wants it?

    metrics.py FILE

The grammar is that of the format's page; beyond it: every metric has HELP and
TYPE before its samples, all samples of a metric stand together and differ in
their labels, counters end in _total, nothing else does, and units are base
units.
"""

import re
import sys

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
SAMPLE = re.compile(
    rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (\S+)(?: (-?[0-9]+))?")
NUMBER = re.compile(r"NaN|[+-]?Inf|[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
UNITS = re.compile(r"_(milliseconds|ns|ms|us|kilobytes|kb|mb|percent)(_|$)")


def check(text):
    assert text.endswith("\n"), "ends without a newline"
    done, samples, name, kind, help_of = set(), set(), None, None, None
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            help_of, told = re.fullmatch(rf"# HELP ({NAME}) (.+)", line).groups()
            assert not re.search(r"\\(?![\\n])", told), line
            assert help_of not in done, f"{help_of} comes twice"
        elif line.startswith("# TYPE "):
            name, kind = re.fullmatch(
                rf"# TYPE ({NAME}) (counter|gauge)", line).groups()
            assert name == help_of, line
            assert (kind == "counter") == name.endswith("_total"), line
            assert not UNITS.search(name), line
            done.add(name)
        else:
            sample = SAMPLE.fullmatch(line)
            assert sample, f"no sample: {line}"
            assert sample[1] == name, f"{line} is not of {name}"
            assert NUMBER.fullmatch(sample[7]), line
            if kind == "counter":
                assert float(sample[7]) >= 0, line
            labels = re.findall(LABEL, sample[2] or "")
            assert len(dict(labels)) == len(labels), f"label twice: {line}"
            key = name, tuple(sorted(labels))
            assert key not in samples, f"twice: {line}"
            samples.add(key)
    assert samples, "no samples"


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8", newline="") as file:
        check(file.read())
