"""A fifth learner joins four, with 200 MB of state: what it costs them.

A spell in which all five train, then an equal one in which the fifth is killed
and joins again, several times.
"""

import math
import os
import re
import statistics
import time

import model
import tape
from run import Run

USUAL = {"seconds": 60, "step": 1.0}
FRAGMENTS, H = 6, 6
JOINS = 4
NICE = 19  # of the fifth's processes, which elsewhere have their own machine
BASE, NEW = ["l0", "l1", "l2", "l3"], "l4"


def shape(megabytes):
    """Of a model whose parameters, with two moments each, are so many."""
    width = 16 * max(round(32 * math.sqrt(megabytes / 200)), 1)
    return ["-L", "5", "-H", "8", "-d", str(width), "-F",
            str(width * 45 // 16), "-c", "16"]


class Copies:
    """Copies of so many bytes, each right after an export and beside the same
    processes, into memory that was touched when the donors' was, and not since:
    virtual machines may take back what is not used."""

    def __init__(self, size):
        self.source, self.seconds = bytearray(size), []
        self.sinks = [bytearray(self.source) for _ in range(JOINS)]

    def make(self):
        sink = memoryview(self.sinks.pop())
        began = time.monotonic()
        sink[:] = self.source
        self.seconds.append(time.monotonic() - began)


def longest_step(lines, name, begin, end):
    """Seconds between the reports of two steps in a row."""
    made, at = 0, []
    for line in tape.events(lines, "step"):
        if line["learner"] == name and line["steps"] > made:
            made = line["steps"]
            if begin <= line["now"] <= end:
                at.append(line["now"])
    return max((b - a for a, b in zip(at, at[1:])), default=0) / 1e9


def log(run, name):
    with open(run.learners[name].log, encoding="utf-8") as f:
        return f.read()


SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def exports(run, name):
    """Seconds that its trainer stood for each export, as dl-learn -v says."""
    found = re.findall(r"state of clock \d+: .* in ([\d.]+)(ns|us|ms|s)$",
                       log(run, name), re.M)
    return [float(number) * SECONDS[unit] for number, unit in found]


def trained(run, names):
    """Their memory was touched, and all fragments have gone both ways."""
    made = {}
    for line in tape.events(tape.read(run.whole_tape()), "step"):
        made[line["learner"]] = line["steps"]
    return all(made.get(name, 0) > H for name in names)


def joined(run):
    """How often."""
    return log(run, NEW).count("has the state")


def start_new(run):
    run.start(NEW)
    os.setpriority(os.PRIO_PROCESS, run.learners[NEW].child.pid, NICE)


def exported(run):
    """How often."""
    return sum(len(exports(run, name)) for name in BASE)


def spend(run, seconds, holds=lambda: True):
    """At least so long, until it holds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end or not holds():
        time.sleep(0.01)
        run.check_alive()


def spells(options, run, copies):
    """The moments between which nobody joins, and somebody does."""
    for name in BASE:
        run.start(name)
    start_new(run)
    run.wait_for("learners train", lambda: trained(run, [*BASE, NEW]),
                 max(120, 10 * H * options.step))
    begin = time.monotonic_ns()
    spend(run, options.seconds)
    joins = time.monotonic_ns()
    for _ in range(JOINS):
        before, exports_before = joined(run), exported(run)
        run.learners[NEW].kill()
        start_new(run)
        run.wait_for("a donor exports",
                     lambda: exported(run) > exports_before, options.patience)
        copies.make()
        spend(run, options.seconds / JOINS, lambda: joined(run) > before)
    return begin, joins, time.monotonic_ns()


def join(options, folder):
    step = ["--step-time", f"{options.step}s"]
    run = Run(folder, [*BASE, NEW], options.shim,
              serve=["-H", str(H), "--end-timeout", "30s"],
              learn=["-v", "--serve", "tcp:127.0.0.1:0"],
              train=["dl-train", "run", "-q", "-b", "1", *step, "m",
                     "text"], relays=False)
    try:
        model.make(run, FRAGMENTS, shape(options.state))
        run.start_syncer()
        copies = Copies(3 * os.path.getsize(f"{folder}/m/model.safetensors"))
        moments = spells(options, run, copies)
        run.end(options.patience)
    finally:
        run.release()
    return report(run, copies, *moments)


def report(run, copies, begin, joins, end):
    lines = tape.read(run.whole_tape())
    stood = {name: exports(run, name) for name in BASE}
    usual = statistics.median(copies.seconds)
    print(f"# {len(BASE)} learners, {NEW} joins {JOINS} times; a copy of "
          f"{len(copies.source) / 1e6:.0f} MB meanwhile: median {usual:.3f} s, "
          f"longest {max(copies.seconds):.3f} s")
    print("# learner  longest step without  with joins  stood for exports")
    for name in BASE:
        print(f"{name:8} {longest_step(lines, name, begin, joins):21.3f} "
              f"{longest_step(lines, name, joins, end):11.3f}  ",
              *(f"{seconds:.3f}" for seconds in stood[name]))
    if joined(run) < JOINS:
        yield f"{NEW} began without the state of another"
    longest = max((max(s, default=0) for s in stood.values()))
    if longest > 1.2 * max(copies.seconds):
        yield f"a donor stood for {longest:.3f} s"
