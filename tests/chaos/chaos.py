#!/usr/bin/env python3
"""Breaks runs on purpose, by a schedule that a seed makes, and measures them.

    chaos.py soak|replay|schedule|goodput|scavenge|join [options]

soak is a run under all kinds of faults, replay one of a thousand rounds, schedule
only says which; goodput, scavenge and join are as their modules say. Exits 0 when all held, 1 with a line for
each thing that did not; then the folder of the runs is kept.
"""

import argparse
import os
import shutil
import sys
import tempfile

import fleet
import goodput
import join
import scavenge
import soak
from run import Failure

MODES = {"soak": (soak.soak, soak.USUAL), "replay": (soak.soak, soak.THOUSAND),
         "schedule": (soak.show, soak.USUAL),
         "goodput": (goodput.goodput, goodput.USUAL),
         "scavenge": (scavenge.scavenge, scavenge.USUAL),
         "join": (join.join, join.USUAL),
         "fleet": (fleet.fleet, fleet.USUAL)}


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("mode", choices=MODES)
    p.add_argument("--seed", default="1")
    p.add_argument("--seconds", type=float)
    p.add_argument("--learners", type=int, default=8)
    p.add_argument("--step", type=float, help="seconds of a paced step")
    p.add_argument("--up", type=float,
                   help="mean seconds between two faults of a process")
    p.add_argument("--down", type=float,
                   help="mean seconds that a fault lasts")
    p.add_argument("--rounds", type=int,
                   help="goes on until there were so many merges")
    p.add_argument("--state", type=int, default=200,
                   help="megabytes that a learner gives who is joined")
    p.add_argument("--patience", type=float, default=60,
                   help="seconds that the end may take")
    p.add_argument("-v", "--verbose", action="store_true")
    p.add_argument("--shim", help="the chaos shim, tests/chaos/shim.so")
    given = p.parse_args()
    for name, usual in MODES[given.mode][1].items():
        if getattr(given, name) is None:
            setattr(given, name, usual)
    return given


def main():
    options = arguments()
    print("#", options.mode, *(f"--{name} {getattr(options, name)}" for name in
                               ("seed", "learners", *MODES[options.mode][1])),
          flush=True)
    folder = tempfile.mkdtemp(prefix="chaos-")
    try:
        mode = MODES[options.mode][0]
        wrong = list(mode(options, os.path.realpath(folder)))
    except Failure as failure:
        wrong = [str(failure)]
    if wrong:
        print(*wrong, sep="\n", file=sys.stderr)
        print(f"seed {options.seed}: see {folder}", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
