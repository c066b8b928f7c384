"""What a tape must show, whatever happened."""

import json
from collections import defaultdict


def read(path):
    """Its lines, in order; one that is being written is left out."""
    with open(path, encoding="ascii") as f:
        return [json.loads(line) for line in f if line.endswith("\n")]


def events(lines, kind):
    return [line for line in lines if line.get("event") == kind]


def version(text):
    epoch, number = text.split(".")
    return int(epoch), int(number)


def numbers(start):
    """Of the versions of all fragments that a start goes on from."""
    saved = start["saved"] or {}
    return dict(enumerate(version(fragment["version"])[1]
                          for fragment in saved.get("fragments", [])))


def falls(now, last):
    """A start that goes on from less than there was: from a checkpoint."""
    return any(n < last.get(p, 0) for p, n in now.items())


def stretches(lines):
    """The tape in parts, each but the first from such a start on."""
    parts, last = [[]], {}
    for line in lines:
        if "format" in line:
            if falls(numbers(line), last):
                parts.append([])
            last = numbers(line)
        elif line["event"] == "merged":
            last[line["fragment"]] = version(line["version"])[1]
        parts[-1].append(line)
    return parts


def check_versions(lines):
    """The versions of a fragment rise by one, epochs with every start. One
    merge may have been committed and not told of."""
    epoch, last, clock = 0, {}, 0
    for line in lines:
        if "format" in line:
            saved = line["saved"] or {"epoch": 0, "clock": 0}
            now = numbers(line)
            if saved["epoch"] < epoch:
                yield f"epoch {saved['epoch']} was saved after {epoch}"
            if saved["clock"] < clock and not falls(now, last):
                yield f"clock {saved['clock']} was saved after {clock}"
            for p, n in now.items():
                if n > last.get(p, 0) + 1:
                    yield f"fragment {p}: {n} was saved after {last.get(p, 0)}"
            epoch, clock = saved["epoch"] + 1, saved["clock"]
            last.update(now)
        elif line["event"] == "merged":
            p, (e, n) = line["fragment"], version(line["version"])
            if e != epoch or n != last.get(p, 0) + 1:
                yield (f"fragment {p}: {e}.{n} in epoch {epoch} after "
                       f"number {last.get(p, 0)}")
            last[p] = n


def check_clocks(lines):
    """No learner's clock falls while it is connected, nor ever what it says it
    has done. Who comes with a clock that the run has not seen yet, of a peer
    that is ahead, may be told an earlier one."""
    last = {}
    for line in lines:
        if line.get("event") not in ("join", "step"):
            continue
        who = line["learner"], line["instance"]
        clock = line["clock"] if line["event"] == "step" else 0
        now = clock, line["steps"], line["tokens"]
        if not clock and who in last:
            last[who] = 0, *last[who][1:]
        before = last.get(who, now)
        if any(a < b for a, b in zip(now, before)):
            yield f"{who[0]}: (clock, steps, tokens) {now} after {before}"
        last[who] = now


def push_key(line):
    return line["learner"], line["instance"], line["fragment"], line["seq"]


def pushes(lines):
    """By what names them, those that came again left out."""
    found = {}
    for line in events(lines, "push"):
        found.setdefault(push_key(line), line)
    return found


def check_pushes(lines):
    """A push that comes again is the same, but for clock and version after they
    were set back, and no step is pushed twice."""
    first = pushes(lines)
    for part in stretches(lines):
        since = pushes(part)
        for line in events(part, "push"):
            key = push_key(line)
            for field, was in (
                    *((field, since) for field in ("step", "base")),
                    *((field, first) for field in ("steps", "tokens",
                                                   "norm"))):
                if line[field] != was[key][field]:
                    yield f"push {key} came again with another {field}"
    made, pushed = defaultdict(int), defaultdict(int)
    for line in lines:
        if line.get("event") in ("join", "step"):
            who = line["learner"], line["instance"]
            made[who] = max(made[who], line["steps"])
    for (name, instance, p, _), line in first.items():
        pushed[name, instance, p] += line["steps"]
    for (name, instance, p), steps in pushed.items():
        if steps > made[name, instance]:
            yield (f"{name} pushed {steps} steps of fragment {p} and made "
                   f"{made[name, instance]}")


def check(lines):
    """All that is wrong with it."""
    return [*check_versions(lines), *check_clocks(lines),
            *check_pushes(lines)]
