"""A fifth learner joins four, with 200 MB of state: what it costs them.

A spell without a join, then an equal one with it.
"""

import math
import os
import re
import time

import model
import tape
from run import Run

USUAL = {"seconds": 60, "step": 1.0}
FRAGMENTS, H = 6, 6
BASE, NEW = ["l0", "l1", "l2", "l3"], "l4"


def shape(megabytes):
    """Of a model whose parameters, with two moments each, are so many."""
    width = 16 * max(round(32 * math.sqrt(megabytes / 200)), 1)
    return ["-L", "5", "-H", "8", "-d", str(width), "-F",
            str(width * 45 // 16), "-c", "16"]


def copy_seconds(size):
    """The least of some copies into memory that was touched before."""
    source, sink = bytearray(size), memoryview(bytearray(size))
    least = float("inf")
    for _ in range(5):
        began = time.monotonic()
        sink[:] = source
        least = min(least, time.monotonic() - began)
    return least


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


def spells(options, run):
    """The moments between which nobody joins, and somebody does; and when the
    newcomer had its state."""
    for name in BASE:
        run.start(name)
    run.wait_for("learners train", lambda: trained(run, BASE),
                 max(120, 10 * H * options.step))
    moments = [time.monotonic_ns()]
    for start in (None, NEW):
        if start:
            run.start(start)
        end = time.monotonic() + options.seconds
        while time.monotonic() < end:
            time.sleep(0.1)
            run.check_alive()
            if start and len(moments) == 2 and "has the state" in log(run, NEW):
                moments.append(time.monotonic_ns())
        if not start:
            moments.append(time.monotonic_ns())
    return *moments, time.monotonic_ns()


def join(options, folder):
    step = ["--step-time", f"{options.step}s"]
    run = Run(folder, [*BASE, NEW], options.shim,
              serve=["-H", str(H), "--end-timeout", "30s"],
              learn=["-v", "--serve", "tcp:127.0.0.1:0"],
              train=["dl-train", "run", "-q", "-b", "1", *step, "m", "text"], relays=False)
    try:
        model.make(run, FRAGMENTS, shape(options.state))
        run.start_syncer()
        begin, joins, *state, end = spells(options, run)
        run.end(options.patience)
    finally:
        run.release()
    return report(options, run, begin, joins, state, end)


def report(options, run, begin, joins, state, end):
    lines = tape.read(run.whole_tape())
    size = 3 * os.path.getsize(f"{run.folder}/m/model.safetensors")
    copied = copy_seconds(size)
    print(f"# {len(BASE)} learners of {1 / options.step:.1f} steps/s, {NEW} "
          f"joins; about {size / 1e6:.0f} MB of state, of which a copy into "
          f"memory that was touched takes {copied:.3f} s")
    print("# learner  longest step without  with a join  stood for export")
    for name in BASE:
        stood = exports(run, name)
        print(f"{name:8} {longest_step(lines, name, begin, joins):20.3f} "
              f"{longest_step(lines, name, joins, end):12.3f} "
              f"{max(stood, default=0):16.3f}")
    if not state:
        yield f"{NEW} began without the state of another"
        return
    first = next((line["now"] for line in tape.events(lines, "push")
                  if line["learner"] == NEW), None)
    print(f"# the state was there {(state[0] - joins) / 1e9:.1f} s after the "
          f"start of {NEW}, its first push after {(first - joins) / 1e9:.1f} s")
    stood = max(max(exports(run, name), default=0) for name in BASE)
    if stood > 1.2 * copied:
        yield f"a donor stood for {stood:.3f} s"
