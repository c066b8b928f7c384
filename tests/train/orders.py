#!/usr/bin/env python3
"""A learner that plays a script: orders.py ORDERS COMMAND...

Starts the trainer, says the lines of the file ORDERS to it one at a time, and
prints what it answers to each.
"""
import os
import socket
import subprocess
import sys

orders, command = sys.argv[1], sys.argv[2:]
path = os.path.abspath("trainer")
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
listener.listen()
trainer = subprocess.Popen(command, env={**os.environ, "DL_TRAINER": path})
talk = listener.accept()[0].makefile("rw")
print(talk.readline(), end="")
for order in open(orders):
    talk.write(order)
    talk.flush()
    print(talk.readline(), end="", flush=True)
talk.close()
sys.exit(trainer.wait())
