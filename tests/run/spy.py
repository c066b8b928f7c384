#!/usr/bin/env python3
"""A trainer that hands on what a learner says to another, and notes it in the
file $SAID, and keeps what the files in each order held in $SAID.d/LINE. Files in
its folder make it misbehave, once for each of them but those that say refuse:
die, die-in-save, die-in-restore, refuse-save, refuse-restore,
refuse-import."""
import os, shutil, socket, subprocess, sys

said = open(os.environ["SAID"], "a", buffering=1)
kept = os.environ["SAID"] + ".d"
os.makedirs(kept, exist_ok=True)
lines = len(open(os.environ["SAID"]).readlines()) + 1  # "ready" is one


def asked(what):
    if not os.path.exists(what):
        return False
    os.remove(what)
    return True


def die():
    child.kill()
    os._exit(9)


learner = socket.socket(socket.AF_UNIX)
learner.connect(os.environ["DL_TRAINER"])
listener = socket.socket(socket.AF_UNIX)
name = os.environ["DL_TRAINER"] + "." + str(os.getpid())
listener.bind(name)
listener.listen()
child = subprocess.Popen(sys.argv[1:], env={**os.environ, "DL_TRAINER": name})
trainer, _ = listener.accept()
os.remove(name)
orders = learner.makefile("r")
answers = trainer.makefile("r")


def answer():
    line = answers.readline()
    if not line:
        os._exit(8)
    learner.sendall(line.encode())


def keep(verb, words):
    path = words.split()[verb in ("send", "apply")]
    shutil.copyfile(path, f"{kept}/{lines}")


said.write("ready\n")
answer()
for line in orders:
    said.write(line)
    lines += 1
    verb, _, rest = line.strip().partition(" ")
    if verb == "go" and asked("die"):
        die()
    if verb == "save" and asked("die-in-save"):
        said.write("torn\n")
        with open(rest, "r+b" if os.path.exists(rest) else "wb") as f:
            f.write(b"half of it")
        die()
    if verb == "restore" and asked("die-in-restore"):
        die()
    if verb == "save" and os.path.exists("refuse-save"):
        open(rest, "w").write("half of it")
        learner.sendall(b"error no room\n")
        continue
    if verb == "restore" and os.path.exists("refuse-restore"):
        learner.sendall(b"error bad save\n")
        continue
    if verb == "import" and os.path.exists("refuse-import"):
        learner.sendall(b"error bad state\n")
        continue
    if verb in ("load", "apply", "restore"):
        keep(verb, rest)
    trainer.sendall(line.encode())
    answer()
    if verb in ("send", "save"):
        keep(verb, rest)
    if verb == "stop":
        break
child.wait()
