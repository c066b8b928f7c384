#!/usr/bin/env python3
"""A trainer that refuses some orders: stands between a learner and the trainer
that it runs.

    refuser.py VERB[,VERB...] COMMAND...
"""
import os
import socket
import subprocess
import sys


def main():
    verbs, command = sys.argv[1].split(","), sys.argv[2:]
    path = os.environ["DL_TRAINER"]
    up = socket.socket(socket.AF_UNIX)
    up.connect(path)
    door = socket.socket(socket.AF_UNIX)
    door.bind(path + ".inner")
    door.listen()
    os.environ["DL_TRAINER"] = path + ".inner"
    trainer = subprocess.Popen(command)
    down = door.accept()[0]
    os.unlink(path + ".inner")
    orders, answers = up.makefile("r"), down.makefile("r")
    up.sendall(answers.readline().encode())
    for line in orders:
        if line.split()[0] in verbs:
            up.sendall(b"error not today\n")
            continue
        down.sendall(line.encode())
        up.sendall(answers.readline().encode())
    down.close()
    sys.exit(trainer.wait())


if __name__ == "__main__":
    main()
