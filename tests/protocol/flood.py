#!/usr/bin/env python3
"""A learner that says one thing over and over.

    flood.py LINK KIND

says KIND, which is its name too, many at once, until the syncer hangs up, and
prints how often; fails when that was not enough.
"""
import sys

from link import CONTROL, Gone, Link, hello, record

FIELDS = dict(step=dict(clock=0, steps=0, tokens=0), want=dict(fragment=0),
              applied=dict(fragment=0, version="1.0"), end=dict(step=0))
ENOUGH = 100000
AT_ONCE = 200


def main():
    kind = sys.argv[2]
    link = Link(sys.argv[1])
    link.say("hello", hello(kind))
    fields = dict(format="1", kind=kind, **FIELDS[kind])
    words = record({k: str(v) for k, v in fields.items()}) * AT_ONCE
    said = 0
    try:
        while said < ENOUGH:
            link.put(CONTROL, words)
            said += AT_ONCE
            if link.wait(0):
                link.read_some()
    except Gone:
        print(said)
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
