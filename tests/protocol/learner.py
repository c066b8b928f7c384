#!/usr/bin/env python3
"""A learner written from dl-protocol(7) and the pages it names, and from
nothing else. It shares no code with dl-tools: what it and they agree on is
what the pages say.

    learner.py [-v] [-n NAME] [--key FILE] [--suites LIST] [--run NAME]
               [--step-time SECONDS] [--leave STEPS] [--streams N] LINK

takes part in the run at LINK (unix:PATH, tcp:HOST:PORT or, with a key,
tcp:KEY@HOST:PORT) until it ends, or leaves after so many steps. What it trains
is made up. -v shows every message.

Tests that want a learner of another kind can make a subclass of Learner, and
override push_fields() to lie, train() to make other values, or after_step() to
do what it likes at a step boundary; link.py has what is below.
"""
import argparse
import random
import socket
import struct
import sys
import time
from array import array
from base64 import b64decode
from collections import namedtuple

from link import (DATA, Gone, Tensor, hello, pairs, u64s, version,
                  version_text)
from stripes import Striped
from values import from_f32, from_int8, read_layout, to_f32

Values = namedtuple("Values", "version step final values")


class Fragment:
    """What a learner keeps of a fragment, by the page's words."""

    def __init__(self, tensors):
        self.tensors = tensors
        self.values = self.anchor = None
        self.version = self.newest = (0, 0)
        self.n = self.t = self.seq = self.pushed = self.opened = 0
        self.pushed_own = 0     # own steps at the last push
        self.sent = []          # pushes that are not settled
        self.came = Values((0, 0), 0, False, None)  # the newest that came
        self.asked = False      # for values, by want
        self.waiting = None     # the newest global that is not applied
        self.done = False       # holds the final values


def base_of(made_on, newest):
    """One whose number is higher was lost, and the syncer set back."""
    lost = not made_on[0] or made_on[1] > newest[1]
    return version_text(newest if lost else made_on)


class Push:
    def __init__(self, fields, tensors):
        self.fields, self.tensors, self.taken = fields, tensors, ""


class Learner:
    TOKENS = 64         # a step

    far = 0     # how far a step goes, always the same way; 0: to and fro

    def __init__(self, name, step_time=0.01, leave=None, streams=1):
        self.name, self.step_time, self.leave = name, step_time, leave
        self.instance, self.streams = random.getrandbits(64), streams
        self.clock = self.steps = self.tokens = 0
        self.fragments = None   # until welcome says the layout
        self.ending = self.drained = False
        self.told = 0           # when step was said last

    # Saying.

    def greet(self, link):
        self.link, self.welcomed = link, False
        versions = []
        if self.fragments:
            data = b"".join(struct.pack("<QQ", *f.version)
                            for f in self.fragments)
            versions = [("versions",
                         Tensor("U64", [len(self.fragments), 2], data))]
        link.say("hello", self.hello_fields(), versions)

    def hello_fields(self):
        more = {}
        if self.streams > 1:
            more = dict(streams=self.streams, window=1 << 20)
        return hello(self.name, instance=self.instance, clock=self.clock,
                     steps=self.steps, tokens=self.tokens, **more)

    def tell_step(self):
        self.told = time.monotonic()
        self.link.say("step", dict(clock=self.clock, steps=self.steps,
                                   tokens=self.tokens, loss=5.5))

    def push_fields(self, p):
        f = self.fragments[p]
        return dict(fragment=p, seq=f.seq, step=self.clock,
                    base=base_of(f.version, f.newest), steps=f.n, tokens=f.t,
                    codec="f32")

    def push(self, p):
        f = self.fragments[p]
        f.seq += 1
        delta = array("f", (v - a for v, a in zip(f.values, f.anchor)))
        f.anchor = array("f", (a + d for a, d in zip(f.anchor, delta)))
        push = Push(self.push_fields(p), to_f32(delta, f.tensors))
        f.sent.append(push)
        f.n, f.t, f.pushed, f.pushed_own = 0, 0, self.clock, self.steps
        self.link.say("push", push.fields, push.tensors, DATA)

    # Hearing.

    def on_welcome(self, m):
        if self.welcomed:
            raise Gone("welcome comes twice")
        if not self.fragments:
            layout = m.tensors["layout"].data.decode()
            self.fragments = [Fragment(t) for t in read_layout(layout)]
        self.welcomed, self.ending, self.drained = True, False, False
        self.h, self.tau = int(m.fields["h"]), int(m.fields["tau"])
        self.apply_how, self.lockstep = m.fields["apply"], m.fields["wait"] == "1"
        self.clock = int(m.fields["clock"])
        self.name = m.fields.get("learner", self.name)
        if "streams" in m.fields:
            self.link.stripe(int(m.fields["streams"]), int(m.fields["window"]),
                             self.name, self.instance)
        versions, origins = pairs(m.tensors["versions"]), pairs(
            m.tensors["origins"])
        for p, taken in enumerate(u64s(m.tensors["taken"])):
            f = self.fragments[p]
            f.opened, f.pushed = 0, min(f.pushed, self.clock)
            f.asked, f.newest = False, versions[p]
            if f.version == origins[p]:
                f.version = versions[p]
            if f.came.version == origins[p]:
                f.came = f.came._replace(version=versions[p])
            for push in f.sent:
                if push.fields["seq"] > taken:
                    push.taken = ""
                    push.fields["step"] = min(push.fields["step"], self.clock)
                    push.fields["base"] = base_of(
                        version(push.fields["base"]), f.newest)
                    self.link.say("push", push.fields, push.tensors, DATA)

    def on_taken(self, f, m):
        seq, word = int(m.fields["seq"]), m.fields["taken"]
        if word == "settled":
            f.sent = [s for s in f.sent if s.fields["seq"] > seq]
        for push in [s for s in f.sent if s.fields["seq"] == seq]:
            push.taken = word
            if word in ("late", "again", "refused"):
                f.sent.remove(push)

    def on_global(self, p, m):
        f, now = self.fragments[p], version(m.fields["version"])
        f.newest = max(f.newest, now)
        final = m.fields["final"] == "1"
        if final:
            f.sent = []
        if "base" not in m.fields:
            values = from_f32(m.tensors, f.tensors)
        elif now <= f.came.version:
            return
        elif f.came.version != version(m.fields["base"]):
            self.want(p)
            return
        else:
            values = array("f", map(sum, zip(f.came.values, from_int8(
                m.fields, m.tensors, f.tensors))))
        new = Values(now, int(m.fields["step"]), final, values)
        if now >= f.came.version:
            f.came, f.asked = new, False
        if now < f.version or (now == f.version and not final):
            return
        if not f.waiting or now >= f.waiting.version:
            f.waiting = new

    def want(self, p):
        if not self.fragments[p].asked:
            self.fragments[p].asked = True
            self.link.say("want", dict(fragment=p))

    def on_message(self, m):
        """Takes a message in; False when the syncer has said its last."""
        if m.kind == "welcome":
            self.on_welcome(m)
        elif m.kind == "error":
            raise SystemExit(refused(m))
        elif m.kind == "bye":
            if m.fields["reason"] == "restarting":
                raise Gone("the syncer restarts")
            return False
        elif m.kind == "end":
            self.ending = True
        elif m.kind != "peers":
            f = self.fragments[int(m.fields["fragment"])]
            if m.kind == "open":
                f.opened = max(f.opened, int(m.fields["step"]))
            elif m.kind == "taken":
                self.on_taken(f, m)
            elif m.kind == "global":
                self.on_global(int(m.fields["fragment"]), m)
            else:
                raise Gone(f"{m.kind} is not for learners")
        return True

    # Training.

    def train(self, f):
        """One inner step: some values move a little."""
        for i in range(self.steps % 7, len(f.values), 7):
            turn = 0 if self.far else self.steps
            f.values[i] += (self.far or 1e-5) * ((i * 13 + turn) % 5 - 2)

    def step(self):
        self.clock, self.steps = self.clock + 1, self.steps + 1
        self.tokens += self.TOKENS
        for f in self.fragments:
            self.train(f)
            f.n, f.t = f.n + 1, f.t + self.TOKENS

    def is_wanted(self, p):
        f = self.fragments[p]
        if not f.n or f.done or self.ending:
            return f.n and not f.done
        due = self.clock % self.h == p * self.h // len(self.fragments)
        if self.lockstep:
            return due
        return (due and not f.sent) or f.opened > f.pushed or (
            f.waiting and not f.waiting.final and f.waiting.step > f.pushed)

    def is_out(self, f):
        """In lock-step: no step is made while this is so."""
        return (self.lockstep and f.sent and f.sent[-1].taken != "waiting" and
                self.steps - f.pushed_own >= self.tau)

    def apply(self, p):
        f, came = self.fragments[p], self.fragments[p].waiting
        new = came.values
        how = "overwrite" if came.final else self.apply_how
        if how == "overwrite" or not f.values:
            f.values, f.anchor, f.n, f.t = array("f", new), new, 0, 0
        elif how == "carry":
            f.values = array("f", (v + (w - a) for v, w, a in
                                   zip(f.values, new, f.anchor)))
            f.anchor = new
        else:
            a = float(how.partition(":")[2])
            f.values, f.anchor = (
                array("f", (a * v + (1 - a) * w for v, w in zip(old, new)))
                for old in (f.values, f.anchor))
            f.n, f.t = int(a * f.n + 0.5), int(a * f.t + 0.5)
        f.version, f.done, f.waiting = came.version, came.final, None
        f.pushed = max(f.pushed, came.step)
        self.link.say("applied", dict(fragment=p,
                                      version=version_text(came.version)))

    def after_step(self):
        if not self.lockstep:
            self.clock = max([self.clock] +
                             [f.opened for f in self.fragments])
        wanted = [p for p in range(len(self.fragments)) if self.is_wanted(p)]
        if wanted or time.monotonic() - self.told >= 0.1:
            self.tell_step()
        for p in wanted:
            self.push(p)
        for p, f in enumerate(self.fragments):
            if f.waiting:
                self.apply(p)

    # Living.

    def is_delivered(self):
        return not any(f.n or any(not s.taken for s in f.sent)
                       for f in self.fragments if not f.done)

    def turn(self):
        """One step, if there is one to make; False when all is done."""
        if not self.welcomed or not all(
                f.values or f.waiting for f in self.fragments):
            return True
        if self.leave is not None and self.steps >= self.leave:
            self.ending = True
        if not self.ending and all(
                f.values and not self.is_out(f) for f in self.fragments):
            self.step()
        self.after_step()
        if self.ending and not self.drained and self.is_delivered():
            if self.leave is not None:
                return False
            self.drained = True
            self.link.say("end", dict(step=self.clock))
        return not all(f.done for f in self.fragments)

    def take_part(self, link):
        """Until the run ends; Gone when the connection does."""
        self.greet(link)
        heard = beat = time.monotonic()
        next_step = heard
        while True:
            m = link.hear(max(next_step - time.monotonic(), 0))
            now = time.monotonic()
            if m:
                heard = now
                if not self.on_message(m):
                    break
            if now >= next_step:
                next_step = max(next_step + self.step_time, now)
                if not self.turn():
                    break
            if now - beat >= 2:
                beat = now
                link.beat()
            if now - heard > 30:
                raise Gone("the syncer says nothing")
        link.say("bye", dict(reason="leaving"))
        link.close()


def refused(m):
    print(f"learner.py: refused: {m.fields['text']}", file=sys.stderr)
    return int(m.fields["code"])


def read_key(path):
    with open(path, encoding="ascii") as f:
        return b64decode(f.read())


def main():
    a = argparse.ArgumentParser(usage=__doc__)
    a.add_argument("-v", action="store_true")
    a.add_argument("-n", default=socket.gethostname())
    a.add_argument("--key")
    a.add_argument("--suites", default="AESGCM,ChaChaPoly")
    a.add_argument("--run", default="-")
    a.add_argument("--step-time", type=float, default=0.01)
    a.add_argument("--leave", type=int)
    a.add_argument("--streams", type=int, default=1)
    a.add_argument("--far", type=float, default=0)
    a.add_argument("link")
    o = a.parse_args()
    learner = Learner(o.n, o.step_time, o.leave, o.streams)
    learner.far = o.far
    key = read_key(o.key) if o.key else None
    for attempt in range(20):
        try:
            link = Striped(o.link, key=key, suites=o.suites, run=o.run)
            link.verbose = o.v
            learner.take_part(link)
            return 0
        except (Gone, OSError) as e:
            print(f"learner.py: {e}: trying again", file=sys.stderr)
            time.sleep(0.2 + 0.1 * attempt)
    return 69


if __name__ == "__main__":
    sys.exit(main())
