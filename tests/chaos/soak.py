"""A run under every kind of fault, and what must hold nonetheless."""

import filecmp
import itertools
import os
import shutil

import figures
import model
import schedule
import tape
from faults import Faults
from run import Run, Failure, wait_for

FRAGMENTS, H = 4, 12
USUAL = {"seconds": 60, "step": 0.05, "up": 8, "down": 1, "rounds": 0}
THOUSAND = {**USUAL, "seconds": 150, "step": 0.03, "rounds": 1000}
LEVELS, THREADS = ("baseline", "avx2", "avx512"), (1, 2)


def same_folders(a, b):
    """All files that one of them has, the lock aside."""
    for folder in (".", "global", "momentum"):
        both = filecmp.dircmp(f"{a}/{folder}", f"{b}/{folder}", ["lock"])
        names = both.common_files
        if both.left_only or both.right_only or filecmp.cmpfiles(
                f"{a}/{folder}", f"{b}/{folder}", names, False)[0] != names:
            return False
    return True


def check_replay(run):
    """The tape makes the same store again, on any machine: replay compares
    each version's hashes with those that the tape has."""
    for level, threads in itertools.product(LEVELS, THREADS):
        run.call("dl-sync", "replay", "-q", "--threads", str(threads),
                 "--layout", "layout.tsv", "--store", "again", "--record",
                 "record", "--from", "checkpoints", "whole.tape",
                 "m/model.safetensors", patience=300,
                 env={"DL_CPU": level})
        if not same_folders(f"{run.disk}/store", f"{run.folder}/again"):
            yield f"replay by {level} came to another store"
        shutil.rmtree(f"{run.folder}/again")
    print(f"# replayed with {', '.join(LEVELS)}, each on 1 and 2 threads")


def check_model(run):
    """What was written at the end is the last version."""
    values = sorted(os.listdir(f"{run.disk}/store/global"))
    run.call("dl-join", "-b", "m/model.safetensors", "-o", "last.safetensors",
             *(f"disk/store/global/{name}" for name in values))
    run.call("dl-frag", "check", "-e", "last.safetensors", "out.safetensors")


def check_losses(run, lines):
    """Nothing is forgotten unless the store was lost."""
    falls = len(tape.stretches(lines)) - 1
    if falls > run.losses:
        yield (f"{falls} starts from less than there was, and {run.losses} "
               "stores were lost")


def check_peace(run, members):
    """Nobody was refused anything, and nobody is left behind."""
    for name, row in members.items():
        if row["refused"] not in ("-", "0"):
            yield f"{name} was refused: {row['refused']}"
    try:
        wait_for("trainers end", lambda: not run.left_behind(), 5)
    except Failure:
        yield f"left behind: {run.left_behind()}"


def settings(options):
    step = f"{options.step * 1000:.0f}ms"
    return {
        "serve": ["-H", str(H), "--dead", "2s", "--end-timeout", "20s",
                  "--checkpoint", "disk/checkpoints",
                  "--checkpoint-every", str(H)],
        "learn": ["--heartbeat", "300ms", "--drain", "2s",
                  "--serve", "tcp:127.0.0.1:0"],
        "train": ["dl-train", "run", "-q", "-b", "2", "--step-time", step,
                  "m", "text"]}


def summary(run, options, lines, done, began, members):
    end = began + int(options.seconds * 1e9)
    possible = options.seconds / options.step * len(run.names)
    made = sum(figures.own_steps(lines, began, end).values())
    everybody = members["*"]
    counted = figures.counted_share(lines, int(everybody["wasted"]))
    merges = len(tape.events(lines, "merged"))
    print(f"# stores lost {run.losses}, starts from less than there was "
          f"{len(tape.stretches(lines)) - 1}")
    print(f"# learners {len(run.names)}, faults {len(done)}, "
          f"merges {merges}, longest rest of the clock "
          f"{figures.longest_rest(lines, began, end):.1f} s")
    print(f"# live {100 * options.live:.1f}%, "
          f"own steps {100 * made / possible:.1f}% of what was possible, "
          f"counted {100 * counted:.1f}% of them, "
          f"wasted tokens {everybody['wasted']}, "
          f"participation {everybody['took-part']}")
    found = figures.recoveries(lines, done)
    if options.verbose:
        figures.print_each(found, began)
    figures.print_recoveries(found)


def plan(options):
    names = [f"l{i}" for i in range(options.learners)]
    return names, schedule.make(options.seed, names, options.seconds,
                                options.up, options.down, late=0.25)


def show(options, _folder):
    for fault in plan(options)[1]:
        print(f"{fault.at:.3f}\t{fault.target}\t{fault.kind}\t"
              f"{fault.seconds:.3f}\t{fault.amount:.3f}")
    return []


def soak(options, folder):
    names, faults = plan(options)
    options.live = schedule.live_share(faults, names, options.seconds)
    run = Run(folder, names, options.shim, **settings(options))
    try:
        model.make(run, FRAGMENTS)
        run.start_syncer()
        late = {f.target for f in faults if f.kind == "absent"}
        first = [name for name in names if name not in late]
        for name in first:
            run.start(name)
        run.wait_for("learners join", lambda: run.present() >= set(first))
        hand = Faults(run)
        began = hand.carry_out(faults, options.seconds)
        run.wait_for("all are back", lambda: run.present() >= set(names))
        run.wait_for("rounds", lambda: run.merges() >= options.rounds,
                     options.seconds)
        run.end(options.patience)
    finally:
        run.release()
    lines = tape.read(run.whole_tape())
    members = figures.members(run.call("dl-stat", "-t", "whole.tape"))
    wrong = [*tape.check(lines), *check_replay(run),
             *check_losses(run, lines),
             *check_peace(run, members)]
    check_model(run)
    summary(run, options, lines, hand.done, began, members)
    return wrong
