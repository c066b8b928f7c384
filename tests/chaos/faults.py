"""Carries out a schedule on a run, and notes when it did."""

import time
from typing import NamedTuple

from run import UNDELIVERED


class Done(NamedTuple):
    """What a fault came to, in nanoseconds of the monotonic clock."""
    fault: object
    began: int
    ended: int


class Faults:
    def __init__(self, run):
        self.run = run
        self.began, self.done = {}, []

    def process(self, target):
        run = self.run
        return run.syncer if target == "syncer" else run.learners[target]

    def start(self, target):
        if target == "syncer":
            self.run.start_syncer()
        else:
            self.run.start(target)

    def begin(self, fault):
        process = self.process(fault.target)
        control, relay = process.control, self.run.relays.get(fault.target)
        self.began[fault] = time.monotonic_ns()
        if fault.kind == "kill":
            process.kill()
        elif fault.kind == "lose":
            process.kill()
            self.run.lose_store(fault.amount < 0.5)
        elif fault.kind in ("leave", "restart"):
            process.ask()
        elif fault.kind == "freeze":
            process.freeze(True)
        elif fault.kind == "cut":
            relay.cut()
        elif fault.kind == "silence":
            relay.silence()
        elif fault.kind == "clock":
            control.wall = fault.amount
        elif fault.kind == "slow":
            control.delay = fault.amount
        elif fault.kind == "full":
            control.disk = "full"
        elif fault.kind == "rotate":
            self.run.rotate()
        control.write()

    def end(self, fault):
        process = self.process(fault.target)
        control = process.control
        if fault.kind == "leave":
            process.ends((0, UNDELIVERED))
        elif fault.kind == "restart":
            process.ends()
        if fault.kind in ("absent", "kill", "leave", "lose", "restart"):
            self.start(fault.target)
        elif fault.kind == "freeze":
            process.freeze(False)
        elif fault.kind in ("cut", "silence"):
            self.run.relays[fault.target].mend()
        control.disk, control.delay, control.wall = "sound", 0.0, 0.0
        control.write()
        self.done.append(Done(fault, self.began.pop(fault),
                              time.monotonic_ns()))

    def carry_out(self, schedule, seconds):
        return self.carry_out_all([(self, schedule)], seconds)

    @staticmethod
    def carry_out_all(hands, seconds):
        """Of several runs at once, pairs of Faults and a schedule. Returns
        when it began, after so many seconds."""
        moments = sorted(
            [(f.at, 0, f, i) for i, (_, s) in enumerate(hands) for f in s] +
            [(f.end, 1, f, i) for i, (_, s) in enumerate(hands) for f in s])
        began = time.monotonic_ns()
        for at, is_end, fault, i in [*moments, (seconds, 0, None, 0)]:
            while (left := began / 1e9 + at - time.monotonic()) > 0:
                time.sleep(min(left, 0.2))
                for hand, _ in hands:
                    hand.run.check_alive()
            if fault and is_end:
                hands[i][0].end(fault)
            elif fault:
                hands[i][0].begin(fault)
        return began
