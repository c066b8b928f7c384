"""Goodput with learners that die: decoupled, lock-step, and as simulated.

Three runs side by side, so that they share what else the machine does: one in
which nothing breaks, and two under the same kills.
"""

import math

import abreast
import figures
import schedule
import tape

H = 12
USUAL = {"seconds": 600, "step": 0.25, "up": 132, "down": 18}
LOCK_STEP = ["--wait", "--grace", "none", "--quorum"]


def pace(lines, begin, end):
    """Own steps a second of those that live, from the first report of each
    life to its last."""
    first, last = {}, {}
    for line in tape.events(lines, "step"):
        if begin <= line["now"] <= end:
            who = line["learner"], line["instance"]
            first.setdefault(who, line)
            last[who] = line
    steps = sum(last[who]["steps"] - first[who]["steps"] for who in last)
    time = sum(last[who]["now"] - first[who]["now"] for who in last)
    return steps / time * 1e9 if time else math.nan


def measure(options, run, hand, began):
    """One line of the table: shares of what was possible."""
    lines = tape.read(run.whole_tape())
    seconds, names = options.seconds, run.names
    end = began + int(seconds * 1e9)
    possible = seconds / options.step * len(names)
    down = sum(ended - at for _, at, ended in hand.done) / 1e9
    wasted = int(figures.members(
        run.call("dl-stat", "-t", "whole.tape"))["*"]["wasted"])
    made = sum(figures.own_steps(lines, began, end).values()) / possible
    return {
        "live": 1 - down / seconds / len(names),
        "made": made,
        "goodput": made * figures.counted_share(lines, wasted),
        "pace": pace(lines, began, end),
        "rest": figures.longest_rest(lines, began, end),
        "found": figures.recoveries(lines, hand.done)}


def simulated(options, run, names, faults, more):
    """The same from dl-sim fleet, with the kills that there were."""
    kills = [word for f in faults for word in (
        "--kill", f"{names.index(f.target)}:{f.at:.3f}s:{f.seconds:.3f}s")]
    table = run.call(
        "dl-sim", "fleet", "-m", str(len(names)), "-t", f"{options.step}s",
        "-n", str(abreast.FRAGMENTS), "-H", str(H), "--apply", "carry",
        "--delay", "1ms", "--transfer", "1ms", "--jitter", "0.01", "--merge", "5ms",
        "--time", f"{options.seconds}s", *more, *kills)
    row = figures.members(table)["total"]
    made = int(row["steps"]) * options.step / options.seconds / len(names)
    return {"made": made, "goodput": float(row["goodput%"]) / 100}


def percent(share):
    return "-" if share is None else f"{100 * share:.1f}"


def verdict(calm, hit):
    if hit["pace"] < 0.98 * calm["pace"]:
        yield f"who lived made {hit['pace']:.3f} steps/s, not {calm['pace']:.3f}"
    if hit["goodput"] < hit["live"] - 0.02:
        yield (f"goodput {percent(hit['goodput'])}%, more than 2 points below "
               f"the live share, {percent(hit['live'])}%")


def goodput(options, folder):
    names = [f"l{i}" for i in range(options.learners)]
    faults = schedule.make(options.seed, names, options.seconds, options.up,
                           options.down, {"kill": 1}, {})
    lock_step = [*LOCK_STEP, str(len(names))]
    kinds = {"undisturbed": [], "decoupled": [], "lock-step": lock_step}
    runs = [abreast.make(options, folder, kind, names, ["-H", str(H), *serve])
            for kind, serve in kinds.items()]
    began, hands = abreast.drive(runs, [[], faults, faults], options.seconds,
                                 options.patience)
    measured = [measure(options, run, hand, began)
                for run, hand in zip(runs, hands)]
    expected = [simulated(options, runs[0], names, *more) for more in (
        ([], []), (faults, []),
        (faults, ["--wait", "--grace", "none", "-k", str(len(names))]))]
    print(f"# {len(names)} learners of {1 / options.step:.1f} steps/s, "
          f"{len(faults)} kills in {options.seconds:.0f} s")
    print("# run          live%  made%  sim made%  goodput%  sim goodput%  "
          "steps/s  rest s")
    for kind, is_, sim in zip(kinds, measured, expected):
        print(f"{kind:12} {percent(is_['live']):>7} {percent(is_['made']):>6}"
              f" {percent(sim['made']):>10} {percent(is_['goodput']):>9}"
              f" {percent(sim['goodput']):>13} {is_['pace']:8.3f}"
              f" {is_['rest']:7.1f}")
    figures.print_recoveries(measured[1]["found"])
    return [*verdict(*measured[:2])]
