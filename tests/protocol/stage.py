"""What a newcomer meets, from dl-protocol(7): donors of every kind, and a door
in front of a syncer that names them.

    stage.py DOOR SYNCER STATE NEWCOMER=KIND,KIND,... ...

DOOR is a unix socket to make, SYNCER the unix socket of a real syncer. Who
comes through the door as a joiner is answered here, and all others are passed
on. STATE is a state file. A newcomer of that name is told of donors of these
kinds; NEWCOMER-0KIND is the first:

    good    gives the file
    dies    gives half of it, and hangs up; it does not come back
    busy    says that it serves enough
    mute    says nothing
    hash    gives a wrong hash in the middle
    size    gives a part of another size
    nan     has a NaN
    layout  has a tensor of another name
    huge    has a header of 2^63 bytes
    far     claims 2^62 bytes
    old     has a state of an older clock

Standard output tells who came and what was fetched, a line each.
"""
import base64
import os
import select
import socket
import struct
import sys
import threading
import time

from link import (DATA, Gone, Link, Tensor, hello, pairs)
import session

LIES = 60000  # from this byte on


class Served(Link):
    """A connection that was accepted; with a key, as a session."""

    def __init__(self, accepted, key=None):
        self.received = bytearray()
        self.streams = [bytearray(), bytearray()]
        self.ciphers, self.verbose, self.peer = None, False, None
        self.socket = accepted
        self.socket.settimeout(60)
        if key:
            self.answer(key)

    def answer(self, key):
        ask = self.read_line()
        suite = ask.split()[2].decode().split(",")[-1]
        answer = f"dl-tools 1 {suite}\n".encode()
        self.wire(answer)
        hands = session.Answer(suite, key, ask + answer, os.urandom(32))
        n = struct.unpack("<H", self.read_bytes(2))[0]
        hands.first(self.read_bytes(n)[:96])
        second = hands.second()
        self.wire(struct.pack("<H", len(second)) + second)
        self.ciphers, self.peer = hands.split(), hands.client


def tell(*words):
    """One write: print makes several, and donors speak at once."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


class Donor(threading.Thread):
    def __init__(self, name, kind, stage):
        super().__init__(daemon=True)
        self.name, self.kind, self.stage = name, kind, stage
        self.key = os.urandom(32)
        self.state = self.spoil(bytearray(stage.state))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.given = 0

    def link(self):
        key = base64.b64encode(session.public_key(self.key)).decode()
        return f"tcp:{key}@127.0.0.1:{self.port}"

    def spoil(self, state):
        n = struct.unpack_from("<Q", state)[0]
        if self.kind == "huge":
            struct.pack_into("<Q", state, 0, 1 << 63)
        if self.kind == "layout":
            head = state[8:8 + n].replace(b'"lm_head.weight"',
                                          b'"lm_heat.weight"')
            state[8:8 + n] = head
        if self.kind == "nan":
            at = 8 + n + (len(state) - 8 - n) // 8 * 4
            struct.pack_into("<I", state, at, 0x7fc00000)
        return bytes(state)

    def run(self):
        while True:
            accepted, _ = self.listener.accept()
            try:
                self.serve(Served(accepted, self.key))
            except (Gone, OSError) as e:
                tell(self.name, "gone", e)
            accepted.close()
            if self.kind == "dies" and self.given:
                self.listener.close()
                return

    def serve(self, c):
        m = c.hear(30)
        tell(self.name, m.kind, *(f"{k}={m.fields.get(k)}"
                                  for k in ("role", "learner", "clock")))
        if self.kind == "busy":
            c.say("error", dict(code=75, text="serves as many as it will"))
            c.close()
            return
        if self.kind == "mute":
            time.sleep(60)
            return
        self.say_state(c, int(m.fields["clock"]))
        while True:
            m = c.hear(60)
            if m and m.kind == "bye":
                tell(self.name, "bye")
                c.close()
                return
            if m and m.kind == "fetch":
                self.part(c, int(m.fields["offset"]), int(m.fields["bytes"]))

    def say_state(self, c, clock):
        versions = self.stage.welcome().tensors["versions"]
        size = 1 << 62 if self.kind == "far" else len(self.state)
        c.say("state", dict(clock=clock - (self.kind == "old"), bytes=size,
                            fragments=len(pairs(versions))),
              [("versions", versions)])

    def part(self, c, offset, size):
        data = self.state[offset:offset + size]
        tell(self.name, "fetch", offset, size)
        if self.kind == "dies" and self.given > len(self.state) // 2:
            time.sleep(1)  # what was given arrives
            raise Gone("dies")
        late = self.given > LIES
        if self.kind == "size" and size > 8:
            data += b"x"
        digest = session.hashlib.blake2b(
            data + b"x" * (late and self.kind == "hash"), digest_size=32)
        c.say("part", dict(offset=offset, hash=digest.hexdigest()),
              [("data", Tensor("U8", [len(data)], data))], channel=DATA)
        self.given += len(data)


class Stage:
    def __init__(self, syncer, state, casts):
        self.syncer = syncer
        with open(state, "rb") as f:
            self.state = f.read()
        self.donors = {}
        for cast in casts:
            newcomer, _, kinds = cast.partition("=")
            self.donors[newcomer] = [
                Donor(f"{newcomer}-{i}{kind}", kind, self)
                for i, kind in enumerate(kinds.split(",")) if kind]
            for donor in self.donors[newcomer]:
                donor.start()

    def welcome(self):
        """What the syncer says to an observer."""
        c = Link(f"unix:{self.syncer}")
        c.say("hello", hello("", role="observer"))
        m = c.hear(30)
        c.socket.close()
        return m

    def peers(self, newcomer):
        lines = ["mallory 5 exec:touch hacked", "mallory 5 unix:/tmp/x",
                 "mallory 5 tcp:127.0.0.1:1", "mallory", ""]
        lines += [f"{d.name} 5 {d.link()}"
                  for d in self.donors[newcomer]]
        return "\n".join(lines) + "\n"

    def enter(self, client):
        c = Served(client)
        m = c.hear(30)
        tell(m.fields["learner"], "asks key=" + m.fields.get("key", ""))
        welcome = self.welcome()
        del welcome.fields["format"]
        c.say("welcome", welcome.fields, list(welcome.tensors.items()))
        c.say("peers", dict(text=self.peers(m.fields["learner"])))
        c.say("bye", dict(reason="done"))
        c.close()

    def open(self, client):
        try:
            peeked = b""
            while b"dl.role" not in peeked or len(peeked) < 100:
                peeked = client.recv(4096, socket.MSG_PEEK)
                if not peeked:
                    return
            if b'"joiner"' in peeked:
                self.enter(client)
            else:
                self.pass_on(client)
        except (Gone, OSError) as e:
            tell("door", e)
        client.close()

    def pass_on(self, client):
        with socket.socket(socket.AF_UNIX) as behind:
            behind.connect(self.syncer)
            other = {client: behind, behind: client}
            while True:
                for s in select.select(list(other), [], [])[0]:
                    data = s.recv(1 << 16)
                    if not data:
                        return
                    other[s].sendall(data)

    def listen(self, door):
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(door)
            s.listen()
            tell("door open")
            while True:
                client, _ = s.accept()
                threading.Thread(target=self.open, args=(client,),
                                 daemon=True).start()


def main(door, syncer, state, *casts):
    Stage(syncer, state, casts).listen(door)


if __name__ == "__main__":
    main(*sys.argv[1:])
