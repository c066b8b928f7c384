#!/usr/bin/env python3
"""A member of a run, with a key of its own, that lies.

    liar.py --key FILE -n NAME LIE LINK

takes part as learner.py does, but in one thing, by LIE:

    nan, inf     pushes values that are none
    huge         pushes values that are far too large
    empty        says that a push is of no tokens
    count        says that it is of more steps than were reported
    base         says that it starts from a version never issued
    old          says that it starts from the first version, all the time
    clock        says that it was made at a step that is far ahead
    report       reports a clock that is far ahead, with each step
    fast         reports a thousand million steps, with each step
    layout       says that its model is cut otherwise
    shape        pushes the tensors of such a one
    twice        sends each push twice

and prints a line for every word it gets on a push, until 6 have come or the
connection is over. Of old and twice one word is that it is in a round; of twice
two are that it was taken before, which is said once its round is over.
"""
import argparse
import sys
from array import array

from learner import Learner, read_key
from link import DATA, Gone, Link

VALUES = dict(nan=float("nan"), inf=float("inf"), huge=1e6)
FIELDS = dict(empty=dict(tokens=0), count=dict(steps=10**9, tokens=10**9),
              base=dict(base="1.999999"), old=dict(base="1.0"),
              clock=dict(step=2**62))


class Enough(Exception):
    pass


class Liar(Learner):
    def __init__(self, name, lie):
        super().__init__(name, step_time=0.02)
        self.lie, self.words = lie, 0
        self.again = 2 if lie == "twice" else 0  # to come
        self.counts = lie not in ("old", "twice")

    def hello_fields(self):
        more = dict(layout="0" * 64) if self.lie == "layout" else {}
        return dict(super().hello_fields(), **more)

    def train(self, f):
        super().train(f)
        if self.lie in VALUES:
            f.values = (array("f", [VALUES[self.lie] * self.steps]) *
                        len(f.values))

    def push_fields(self, p):
        return dict(super().push_fields(p), **FIELDS.get(self.lie, {}))

    def push(self, p):
        f = self.fragments[p]
        true = f.tensors
        if self.lie == "shape":
            f.tensors = [(name, [n, 1], n) for name, _, n in true]
        super().push(p)
        f.tensors = true
        if self.lie == "twice":
            push = self.fragments[p].sent[-1]
            self.link.say("push", push.fields, push.tensors, DATA)

    def tell_step(self):
        super().tell_step()
        if self.lie == "report":
            self.link.say("step", dict(clock=2**62, steps=self.steps,
                                       tokens=self.tokens, loss=5.5))
        if self.lie == "fast":
            steps = self.steps + 10**9
            self.link.say("step", dict(clock=self.clock, steps=steps,
                                       tokens=steps * self.TOKENS, loss=5.5))

    def on_taken(self, f, m):
        super().on_taken(f, m)
        if m.fields["taken"] == "settled":
            return
        print(m.fields["taken"], m.fields["refusal"], flush=True)
        self.words += 1
        self.counts |= m.fields["taken"] == "round"
        self.again -= m.fields["taken"] == "again"
        if self.words >= 6 and self.counts and self.again <= 0:
            raise Enough


def main():
    a = argparse.ArgumentParser(usage=__doc__)
    a.add_argument("--key", required=True)
    a.add_argument("-n", required=True)
    a.add_argument("lie")
    a.add_argument("link")
    o = a.parse_args()
    try:
        Liar(o.n, o.lie).take_part(Link(o.link, key=read_key(o.key)))
    except Enough:
        return 0
    except Gone as e:
        print("gone:", e)
    return 1


if __name__ == "__main__":
    sys.exit(main())
