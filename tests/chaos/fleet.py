"""A fleet and what dl-sim fleet says of it: learners of two speeds, some of
which are killed, with jumps and in lock-step; the same figures from both tapes.
When each process made its first step is measured, and dl-sim is told.
"""

import abreast
import figures
import schedule
import tape

H = 12
SLOWER = 1.2  # steps of every other learner
NEAR = 0.03  # how far figures may be apart, as a share
USUAL = {"seconds": 30, "step": 0.5, "up": 40, "down": 6}
FIGURES = {"utilisation": None, "participation": "took-part",
           "effective H": "h"}


def step_times(options):
    return [options.step * (SLOWER if i % 2 else 1)
            for i in range(options.learners)]


def paced(options, run):
    """Trainers of their learner's speed."""
    cases = "".join(f"{name}) t={t}s;; " for name, t in
                    zip(run.names, step_times(options)))
    run.train = ["sh", "-c", f"case $DL_NAME in {cases}esac; exec dl-train "
                 "run -q -b 1 --step-time $t m text"]


def utilisation(options, lines, end):
    """The share of its lives that each learner trained, from the first report
    of a life to the last."""
    pace = dict(zip(sorted({x["learner"] for x in tape.events(lines, "join")}),
                    step_times(options)))
    first, last = {}, {}
    for line in tape.events(lines, "step"):
        if line["now"] <= end:
            who = line["learner"], line["instance"]
            first.setdefault(who, line)
            last[who] = line
    busy = sum((last[who]["steps"] - first[who]["steps"]) * pace[who[0]]
               for who in last)
    return busy * 1e9 / sum(last[who]["now"] - first[who]["now"]
                            for who in last)


def measure(options, run, path, end):
    row = figures.members(run.call("dl-stat", "-t", path))["*"]
    lines = tape.read(f"{run.folder}/{path}")
    return {name: float(row[column]) if column
            else utilisation(options, lines, end)
            for name, column in FIGURES.items()}


def lives(options, run, lines):
    """When the first step of each life of each learner began."""
    pace = dict(zip(run.names, step_times(options)))
    begins, seen = {name: [] for name in run.names}, set()
    for line in tape.events(lines, "step"):
        name, instance = line["learner"], line["instance"]
        if instance not in seen:
            seen.add(instance)
            begins[name].append(line["now"] - line["steps"] * pace[name] * 1e9)
    return begins


def kills(run, begins, done, zero, end):
    """As dl-sim fleet is told of them. Who is killed is away until it trains
    again, however long this machine took to start it; and who came later than
    the first, at zero, was away until then."""
    for i, name in enumerate(run.names):
        deaths = [at for fault, at, _ in done if fault.target == name]
        for at in zero, *deaths:
            back = next((t for t in begins[name] if t >= at), end)
            yield "--kill"
            yield f"{i}:{(at - zero) / 1e9:.3f}s:{(back - at) / 1e9:.3f}s"


def simulate(options, run, done, more):
    """Until somebody asked for the end of the real run, which is when this
    machine got to it. Returns that moment on both tapes."""
    lines = tape.read(run.whole_tape())
    begins = lives(options, run, lines)
    zero = min(t for all_of in begins.values() for t in all_of)
    end = tape.events(lines, "end")[0]["now"]
    seconds = (end - zero) / 1e9
    run.call("dl-sim", "fleet", "-m", str(len(run.names)), "-t",
             ",".join(f"{t}s" for t in step_times(options)), "-n",
             str(abreast.FRAGMENTS), "-H", str(H), "--apply", "carry",
             "--delay", "1ms", "--transfer", "1ms", "--jitter", "0.01",
             "--merge", "5ms", "--time", f"{seconds:.3f}s", "--tape",
             "fleet.tape", *more,
             *kills(run, begins, done, zero, lines[-1]["now"]))
    return end, seconds * 1e9


def fleet(options, folder):
    names = [f"l{i}" for i in range(options.learners)]
    faults = schedule.make(options.seed, names, options.seconds, options.up,
                           options.down, {"kill": 1}, {})
    lock_step = ["--wait", "--grace", "none", "--quorum", str(len(names))]
    kinds = {"jumps": [], "lock-step": lock_step}
    troubles = [faults, faults]
    runs = [abreast.make(options, folder, kind, names, ["-H", str(H), *serve])
            for kind, serve in kinds.items()]
    for run in runs:
        paced(options, run)
    _, hands = abreast.drive(runs, troubles, options.seconds, options.patience)
    print(f"# {len(names)} learners, {len(faults)} kills in "
          f"{options.seconds:.0f} s")
    print(f"# {'run':9} {'figure':14} {'real':>8} {'fleet':>8}")
    for (kind, serve), run, hand in zip(kinds.items(), runs, hands):
        ends = simulate(options, run, hand.done, serve)
        real = measure(options, run, "whole.tape", ends[0])
        said = measure(options, run, "fleet.tape", ends[1])
        for name in FIGURES:
            print(f"  {kind:9} {name:14} {real[name]:8.3f} {said[name]:8.3f}")
            if abs(real[name] - said[name]) > NEAR * said[name]:
                yield (f"{kind}: {name} is {real[name]:.3f}, the fleet has "
                       f"{said[name]:.3f}")
