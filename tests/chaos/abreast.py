"""Several runs side by side, so that they share what else the machine does."""

import contextlib
import os

import model
from faults import Faults
from run import Run


FRAGMENTS = 6


def make(options, folder, kind, names, serve, train=("-b", "1")):
    """A run in folder/kind; serve and train are what dl-sync serve and
    dl-train run are told beside."""
    os.mkdir(f"{folder}/{kind}")
    run = Run(f"{folder}/{kind}", names, options.shim,
              serve=["--end-timeout", "10s", *serve], learn=["-q"],
              train=["dl-train", "run", "-q", "--step-time",
                     f"{options.step}s", *train, "m", "text"], relays=False)
    model.make(run, FRAGMENTS)
    return run


def start(run, faults):
    """All but those that come later."""
    late = {f.target for f in faults if f.kind == "absent"}
    first = set(run.names) - late
    run.start_syncer()
    for name in sorted(first):
        run.start(name)
    return first


def drive(runs, schedules, seconds, patience, meanwhile=None):
    """Each run under its schedule; meanwhile gets them, as a context, once all
    have begun. Returns when that was, and what the faults came to."""
    with contextlib.ExitStack() as stack:
        for run in runs:
            stack.callback(run.release)
        first = [start(*pair) for pair in zip(runs, schedules)]
        for run, names in zip(runs, first):
            run.wait_for("learners join", lambda: run.present() >= names)
        hands = [Faults(run) for run in runs]
        with meanwhile(runs) if meanwhile else contextlib.nullcontext():
            began = Faults.carry_out_all(list(zip(hands, schedules)), seconds)
        for run in runs:
            run.end(patience)
    return began, hands
