#!/usr/bin/env python3
"""Breaks dl-protocol(7) in every way that it names, each on a connection of its
own, and says which were let pass.

    broken.py LINK

Prints the number of ways, and a line for each that did not end the connection.
"""
import struct
import sys

from link import CONTROL, DATA, Gone, Link, Tensor, hello, record

PUSH = dict(fragment=0, seq=1, step=0, base="1.0", steps=1, tokens=1,
            codec="f32")


def message(kind, fields, **more):
    return dict(dict(format="1", kind=kind, **fields), **more)


def without(fields, key):
    return {k: v for k, v in fields.items() if k != key}


def put(link, fields, tensors=(), channel=CONTROL):
    link.frame(channel, record({k: str(v) for k, v in fields.items()},
                               tensors))


def tensor(dtype, shape, n):
    return Tensor(dtype, shape, bytes(n))


def frames():
    yield "length 0", lambda k: k.wire(b"\0\0")
    yield "length 65520", lambda k: k.wire(struct.pack("<HB", 65520, 0))
    yield "another channel", lambda k: k.frame(9, b"x")
    yield "empty data", lambda k: k.frame(DATA, b"")
    yield "header of 2^63", lambda k: k.frame(CONTROL, struct.pack("<Q", 2**63))
    yield "no JSON", lambda k: k.frame(CONTROL, struct.pack("<Q", 2) + b"[]")


def hellos():
    fields = hello("eve")
    yield "no format", without(message("hello", fields), "format"), ()
    yield "format 2", message("hello", fields, format="2"), ()
    yield "no kind", without(message("hello", fields), "kind"), ()
    yield "unknown kind", message("hallo", fields), ()
    for key in fields:
        yield f"no {key}", message("hello", without(fields, key)), ()
    for key, value in (("role", "king"), ("run", "a b"), ("learner", ".eve"),
                       ("learner", "e" * 64), ("learner", ""),
                       ("instance", "x"), ("instance", str(2**64)),
                       ("layout", "0123"), ("clock", "-1"), ("steps", "1.5"),
                       ("tokens", ""), ("codecs", "a\0b")):
        yield f"{key} {value!r}", message("hello", fields, **{key: value}), ()
    for name, t in (("versions", tensor("I64", [3, 2], 48)),
                    ("versions", tensor("U64", [6], 48)),
                    ("versions", tensor("U64", [3, 3], 72)),
                    ("other", tensor("U64", [3, 2], 48))):
        yield f"{name} {t.dtype} {t.shape}", message("hello", fields), [
            (name, t)]


def others():
    """Fields of the right type of each kind that a client sends not, or not
    at first."""
    for kind, fields in (
            ("step", dict(clock=0, steps=0, tokens=0)),
            ("want", dict(fragment=0)),
            ("applied", dict(fragment=0, version="1.0")),
            ("end", dict(step=0)),
            ("open", dict(fragment=0, step=0)),
            ("error", dict(code=76, text="no")),
            ("peers", dict(text="")),
            ("taken", dict(fragment=0, seq=1, taken="round", refusal="not",
                           scale=1))):
        yield kind, message(kind, fields)


def from_strangers():
    for what, do in frames():
        yield what, do
    for what, fields, tensors in hellos():
        yield what, lambda k, f=fields, t=tensors: put(k, f, t)
    for kind, fields in others():
        yield f"{kind} before hello", lambda k, f=fields: put(k, f)
    yield "push before hello", lambda k: put(k, message("push", PUSH), (),
                                             DATA)
    yield "hello as data", lambda k: put(k, message("hello", hello("eve")), (),
                                         DATA)


def from_learners():
    for what, do in frames():
        yield what, do
    for kind, fields in others():
        if kind not in ("step", "want", "applied", "end"):
            yield f"{kind} from a learner", lambda k, f=fields: put(k, f)
    yield "hello twice", lambda k: k.say("hello", hello("eve"))
    for key in ("clock", "steps", "tokens"):
        yield f"step without {key}", lambda k, key=key: put(
            k, without(message("step", dict(clock=0, steps=0, tokens=0)), key))
    yield "loss 'x'", lambda k: k.say("step", dict(clock=0, steps=0, tokens=0,
                                                   loss="x"))
    yield "reason 'x'", lambda k: k.say("bye", dict(reason="x"))
    yield "want 99", lambda k: k.say("want", dict(fragment=99))
    yield "applied 99", lambda k: k.say("applied", dict(fragment=99,
                                                        version="1.0"))
    yield "version '1'", lambda k: k.say("applied", dict(fragment=0,
                                                         version="1"))
    yield "step with a tensor", lambda k: k.say(
        "step", dict(clock=0, steps=0, tokens=0), [("w", tensor("U8", [1], 1))])
    yield "step as data", lambda k: k.say("step", dict(
        clock=0, steps=0, tokens=0), (), DATA)
    yield "push as control", lambda k: k.say("push", PUSH)
    yield "global", lambda k: k.say("global", dict(
        fragment=0, version="1.0", step=0, final=0, codec="f32"), (), DATA)
    yield "push 99", lambda k: k.say("push", dict(PUSH, fragment=99), (), DATA)
    yield "push of nothing", lambda k: k.say("push", PUSH, (), DATA)
    yield "push of another", lambda k: k.say("push", PUSH, [
        ("w", tensor("F32", [1], 4))], DATA)
    for key in PUSH:
        yield f"push without {key}", lambda k, key=key: k.say(
            "push", without(PUSH, key), (), DATA)
    yield "seq 0", lambda k: k.say("push", dict(PUSH, seq=0), (), DATA)


def ends(link):
    """The syncer hangs up."""
    try:
        while link.wait(20):
            link.read_some()
    except Gone:
        return True
    return False


def main():
    ways = 0
    for ask, list_of in ((False, from_strangers()), (True, from_learners())):
        for what, do in list_of:
            link = Link(sys.argv[1])
            if ask:
                link.say("hello", hello("eve"))
                link.hear(20)
            do(link)
            ways += 1
            if not ends(link):
                print(f"let pass: {what}")
    print(ways)


if __name__ == "__main__":
    main()
