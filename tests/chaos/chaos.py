#!/usr/bin/env python3
"""Breaks a run on purpose, by a schedule that a seed makes, and checks it.

    chaos.py soak|schedule [options]

soak is a run under all kinds of faults, schedule only says which. Exits 0 when all held, 1 with a line for each thing that did not; then the
run's folder is kept.
"""

import argparse
import os
import shutil
import sys
import tempfile

import soak
from run import Failure

MODES = {"soak": soak.soak, "schedule": soak.show}


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("mode", choices=MODES)
    p.add_argument("--seed", default="1")
    p.add_argument("--seconds", type=float, default=60)
    p.add_argument("--learners", type=int, default=8)
    p.add_argument("--step", type=float, default=0.05, help="seconds")
    p.add_argument("--up", type=float, default=8,
                   help="mean seconds between two faults of a process")
    p.add_argument("--down", type=float, default=1,
                   help="mean seconds that a fault lasts")
    p.add_argument("--patience", type=float, default=60,
                   help="seconds that the end may take")
    p.add_argument("-v", "--verbose", action="store_true")
    p.add_argument("--shim", help="the chaos shim, tests/chaos/shim.so")
    return p.parse_args()


def main():
    options = arguments()
    print("#", " ".join(sys.argv[1:]), flush=True)
    folder = tempfile.mkdtemp(prefix="chaos-")
    try:
        wrong = MODES[options.mode](options, os.path.realpath(folder))
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
