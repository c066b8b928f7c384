#!/usr/bin/env python3
"""recover.py SAID COMMAND...: what spy.py noted until its trainer died, from
the middle of its saves on, is said again to a new trainer that restores that
save: it must send the same bytes."""
import os, socket, subprocess, sys

said = sys.argv[1]
lines = []
for line in open(said).read().split("\n")[1:]:
    if line == "ready":
        break
    lines.append(line.split())

saves = [i for i, w in enumerate(lines) if w[0] == "save"]
start = saves[len(saves) // 2]

listener = socket.socket(socket.AF_UNIX)
listener.bind("again")
listener.listen()
child = subprocess.Popen(
    sys.argv[2:], env={**os.environ, "DL_TRAINER": "again"})
trainer, _ = listener.accept()
answers = trainer.makefile("r")


def hear():
    line = answers.readline().strip()
    if line.startswith("error") or not line:
        sys.exit(f"the trainer says: {line}")


def say(*words):
    trainer.sendall((" ".join(words) + "\n").encode())
    hear()


hear()
say("restore", f"{said}.d/{start + 2}")
steps = sends = applies = 0
for i in range(start + 1, len(lines)):
    verb, *words = lines[i]
    there = f"{said}.d/{i + 2}"
    if verb in ("send", "apply", "save") and not os.path.exists(there):
        break  # it died in this one
    if verb == "send":
        say(verb, words[0], "sent")
        if open("sent", "rb").read() != open(there, "rb").read():
            sys.exit(f"line {i + 2}: other values of fragment {words[0]}")
        sends += 1
    elif verb == "apply":
        say(verb, words[0], there, *words[2:])
        applies += 1
    elif verb != "save":
        say(verb, *words)
        steps += verb == "go"
child.kill()
child.wait()
print(f"{steps} steps, {sends} sends, {applies} applies: the same bytes")
sys.exit(not (steps and sends and applies))
