"""Gives the tape of a simulated run what simulation has none of: a loss that
falls, sizes of pushes and values, and learners' names that look like some.

    dl-sim fleet --tape - ... | dress.py
"""

import json
import math
import random
import sys

SITES = ["amsterdam", "frankfurt", "iowa", "mumbai", "ohio", "oregon", "sydney",
         "tokyo"]
ELEMENTS = 5_000_000
HEADER = 900


def name_of(learner):
    number = int(learner.rsplit("-", 1)[1])
    return f"{SITES[number % 8]}-{number // 8}"


def main():
    dice = random.Random(1)
    for text in sys.stdin:
        line = json.loads(text)
        if "learner" in line:
            line["learner"] = name_of(line["learner"])
        kind = line.get("event")
        if kind == "step":
            line["loss"] = round(
                2.45 + 5 * math.exp(-line["clock"] / 90)
                + 2 / (1 + line["clock"] / 150) + dice.gauss(0, 0.06), 4)
        elif kind == "push":
            line["elements"] = ELEMENTS
            line["bytes"] = ELEMENTS // 2 + HEADER
        elif kind == "applied":
            line["elements"] = ELEMENTS
            line["bytes"] = 2 * ELEMENTS + HEADER
        elif not kind:
            line["run"] = "atlantic"
            for learner in (line["saved"] or {"learners": []})["learners"]:
                learner["name"] = name_of(learner["name"])
        print(json.dumps(line, separators=(",", ":")))


if __name__ == "__main__":
    main()
