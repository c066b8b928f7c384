"""What learners are worth that come and go: a base of two that stay, and two
or six more that are there half of the time, for as many tokens."""

import contextlib
import math
import statistics
import subprocess
import threading
import time

import abreast
import model
import schedule
import tape

BASE = 2
EXTRA = {"+0%": 0, "+100%": 2, "+300%": 6}
PAPER = {"+0%": 1.0, "+100%": 0.75, "+300%": 0.62}
SHAPE = ["-L", "1", "-H", "2", "-d", "32", "-c", "32"]
H = 12
NOISY = ["-b", "1", "--lr", "0.01"]  # what more learners average out
USUAL = {"seconds": 240, "step": 0.2, "up": 15}


class Samples(threading.Thread):
    """The model of a run, every so many seconds."""

    def __init__(self, run, every):
        super().__init__()
        self.run_, self.every = run, every
        self.taken, self.over = [], threading.Event()

    def run(self):
        while not self.over.wait(self.every):
            path = f"sample.{len(self.taken)}"
            done = subprocess.run(
                ["dl-join", "-q", "-o", path, "unix:control"],
                cwd=self.run_.folder, check=False, capture_output=True)
            if not done.returncode:
                self.taken.append((time.monotonic_ns(), path))


def held_out(run, path):
    table = run.call("dl-train", "eval", "--config", "m/config.json", path,
                     "text")
    return float(table.splitlines()[-1].split("\t")[1])


def tokens_by(lines, moment):
    """That all learners had made by then."""
    made = {}
    for line in tape.events(lines, "step"):
        if line["now"] <= moment:
            made[line["learner"], line["instance"]] = line["tokens"]
    return sum(made.values())


def first(curve, holds):
    """The first point of it that holds, or None."""
    return next((point for point in curve if holds(point)), None)


def curve(run, samples, began):
    """(seconds, tokens, held-out loss), in order of time; the loss is the mean
    of up to five samples, since a single one goes up and down."""
    lines = tape.read(run.whole_tape())
    losses = [held_out(run, path) for _, path in samples.taken]
    return [((at - began) / 1e9, tokens_by(lines, at),
             statistics.fmean(losses[max(i - 4, 0):i + 1]))
            for i, (at, _) in enumerate(samples.taken)]


def plan(options, extra):
    names = [f"base{i}" for i in range(BASE)]
    more = [f"extra{i}" for i in range(extra)]
    return names + more, schedule.make(
        options.seed, more, options.seconds, options.up, options.up,
        {"leave": 1}, {}, late=0.5)


def run_all(options, folder):
    runs, schedules, samples = [], [], []
    for kind, extra in EXTRA.items():
        names, faults = plan(options, extra)
        runs.append(abreast.make(
            options, folder, kind, names, ["-H", str(H)], NOISY))
        model.make(runs[-1], abreast.FRAGMENTS, SHAPE)
        schedules.append(faults)

    @contextlib.contextmanager
    def sampled(_runs):
        samples.extend(Samples(run, options.seconds / 60) for run in runs)
        for thread in samples:
            thread.start()
        yield
        for thread in samples:
            thread.over.set()
            thread.join()

    began, _ = abreast.drive(runs, schedules, options.seconds,
                             options.patience, sampled)
    return [curve(run, sample, began) for run, sample in zip(runs, samples)]


def row(points, loss, tokens, base):
    """Seconds to the loss and to the tokens, the same relative to those of the
    base, and the loss after as many tokens."""
    to_loss = first(points, lambda point: point[2] <= loss)
    to_tokens = first(points, lambda point: point[1] >= tokens)
    if not to_loss or not to_tokens:
        return None
    return (to_loss[0], to_loss[0] / base, to_tokens[0], to_tokens[2])


def scavenge(options, folder):
    curves = dict(zip(EXTRA, run_all(options, folder)))
    if options.verbose:
        for kind, points in curves.items():
            for seconds, tokens, loss in points:
                print(f"# {kind} {seconds:6.1f} s {tokens:8} {loss:.4f}")
    alone = curves["+0%"]
    loss, tokens = min(point[2] for point in alone), alone[-1][1]
    base = first(alone, lambda point: point[2] <= loss)[0]
    rows = {kind: row(points, loss, tokens, base)
            for kind, points in curves.items()}
    print(f"# {BASE} learners of {1 / options.step:.1f} steps/s, and others "
          "that are there half of the time")
    print(f"# to a held-out loss of {loss:.3f}, that of the base after "
          f"{base:.0f} s; to {tokens} tokens, all that it made")
    print("# extra  to loss s  relative  paper's  to tokens s  relative  loss")
    last = math.inf
    for kind, of_it in rows.items():
        if not of_it:
            yield f"{kind}: never came to the base's loss"
            continue
        print(f"{kind:7} {of_it[0]:10.1f} {of_it[1]:9.2f} {PAPER[kind]:8.2f}"
              f" {of_it[2]:12.1f} {of_it[2] / rows['+0%'][2]:9.2f}"
              f" {of_it[3]:5.3f}")
        if of_it[0] >= last:
            yield f"{kind}: not sooner than with less"
        if of_it[3] > 1.02 * rows["+0%"][3]:
            yield f"{kind}: a loss more than 2% above the base's"
        last = of_it[0]
