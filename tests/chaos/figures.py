"""What the run came to, in numbers."""

import statistics
from collections import defaultdict

import tape

BACK = ("absent", "kill", "leave", "freeze", "cut", "silence")


def own_steps(lines, begin, end):
    """Each learner's own steps between two moments, over all its lives."""
    first, last = {}, {}
    for line in lines:
        if line.get("event") not in ("join", "step"):
            continue
        who = line["learner"], line["instance"]
        if line["now"] <= begin:
            first[who] = line["steps"]
        if line["now"] <= end:
            last[who] = line["steps"]
    made = defaultdict(int)
    for (name, instance), steps in last.items():
        made[name] += steps - first.get((name, instance), 0)
    return made


def longest_rest(lines, begin, end):
    """Seconds for which the run's clock, the highest, did not rise."""
    longest, since, clock = 0, begin, 0
    for line in lines:
        if line.get("event") == "step" and line["clock"] > clock and \
                begin <= line["now"] <= end:
            longest = max(longest, line["now"] - since)
            since, clock = line["now"], line["clock"]
    return max(longest, end - since) / 1e9


def recovery(lines, fault, ended):
    """Seconds from its end to the first push of that learner, or the first
    merge of that syncer; None when there was none any more."""
    kind = "merged" if fault.target == "syncer" else "push"
    for line in tape.events(lines, kind):
        if line["now"] > ended and \
                line.get("learner", "syncer") == fault.target:
            return (line["now"] - ended) / 1e9
    return None


def recoveries(lines, done):
    """Of those faults that keep somebody away: each with its recovery."""
    return [(fault, began, recovery(lines, fault, ended))
            for fault, began, ended in done
            if fault.target == "syncer" or fault.kind in BACK]


def print_each(found, began):
    for fault, at, seconds in found:
        back = "never" if seconds is None else f"{seconds:.2f} s"
        print(f"# {(at - began) / 1e9:7.2f} s: {fault.target} {fault.kind} "
              f"for {fault.seconds:.2f} s, back after {back}")


def print_recoveries(found):
    times = defaultdict(list)
    for fault, _, seconds in found:
        who = "syncer " if fault.target == "syncer" else ""
        if seconds is not None:
            times[who + fault.kind].append(seconds)
    print(f"# {'fault':16} {'times':>5} {'median s':>9} {'longest s':>9}")
    for kind, all_of in sorted(times.items()):
        print(f"  {kind:16} {len(all_of):5} "
              f"{statistics.median(all_of):9.2f} {max(all_of):9.2f}")


def members(text):
    """The lines of dl-stat -t, by name."""
    head, *rows = [row.split("\t") for row in text.splitlines()]
    head[0] = "name"
    return {row[0]: dict(zip(head, row)) for row in rows}


def counted_share(lines, wasted):
    """Of the own steps, those that were pushed; but for those tokens that were
    wasted."""
    fragments = lines[0]["config"]["fragments"]
    found = tape.pushes(lines).values()
    steps = sum(line["steps"] for line in found)
    tokens = sum(line["tokens"] for line in found)
    made = sum(own_steps(lines, 0, lines[-1]["now"]).values())
    if not made or not tokens:
        return 0
    return (steps / fragments - wasted * steps / tokens) / made
