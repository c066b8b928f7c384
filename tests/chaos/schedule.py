"""What breaks when: the same seed makes the same schedule."""

import random
from typing import NamedTuple

LEARNER_KINDS = {"kill": 3, "leave": 2, "freeze": 2, "cut": 2, "silence": 2,
                 "clock": 1}
SYNCER_KINDS = {"kill": 2, "restart": 2, "freeze": 1, "slow": 2, "full": 2,
                "clock": 1, "rotate": 1, "lose": 2}
AWAY = ("absent", "kill", "leave", "freeze")
SHORTEST = 0.2


class Fault(NamedTuple):
    """At, in seconds from the start, and for how long. A learner that is
    "absent" has not come yet."""
    at: float
    target: str
    kind: str
    seconds: float
    amount: float = 0.0

    @property
    def end(self):
        return self.at + self.seconds


def amount_of(rng, kind):
    """Seconds: that a wall clock is off, or that a call of the disk takes. A
    store that is lost takes the newest checkpoint with it up to one half."""
    if kind == "lose":
        return rng.random()
    if kind == "clock":
        return rng.choice((-1, 1)) * rng.uniform(60, 86400)
    return rng.uniform(0.01, 0.1) if kind == "slow" else 0.0


def faults_of(rng, target, kinds, begin, end, up, down):
    """Well for a random time of mean up, then down for one of mean down, as
    dl-sim fleet has it; all is mended before the end."""
    at = begin + rng.expovariate(1 / up)
    while True:
        seconds = SHORTEST + rng.expovariate(1 / down)
        if at + seconds > end:
            return
        kind = rng.choices(list(kinds), list(kinds.values()))[0]
        yield Fault(at, target, kind, seconds, amount_of(rng, kind))
        at += seconds + rng.expovariate(1 / up)


def make(seed, names, seconds, up, down, learner=None, syncer=None, late=0.0):
    """Faults in order of time. Each target has its own numbers, so that one
    more learner changes nothing for the others; the share late of the learners
    come within the first third."""
    faults = []
    for i, name in enumerate(names):
        rng = random.Random(f"{seed} {name}")
        begin = 0.0
        if i >= len(names) * (1 - late):
            begin = rng.uniform(0.1, 0.33) * seconds
            faults.append(Fault(0.0, name, "absent", begin))
        faults += faults_of(rng, name, learner or LEARNER_KINDS, begin,
                            seconds, up, down)
    if syncer != {}:
        faults += faults_of(random.Random(f"{seed} syncer"), "syncer",
                            syncer or SYNCER_KINDS, 0.0, seconds, up, down)
    return sorted(faults)


def live_share(faults, names, seconds):
    """The share of all learners' time that no fault takes from them."""
    lost = sum(f.seconds for f in faults
               if f.target in names and f.kind in ("kill", "absent", "leave",
                                                   "freeze"))
    return 1 - lost / (seconds * len(names))
