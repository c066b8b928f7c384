"""steps.py MODEL LAYOUT N COMMAND...: has a trainer (dl-trainer(7)) make N steps,
and prints what it says of each."""
import os
import socket
import subprocess
import sys
import tempfile

model, layout, n, *command = sys.argv[1:]
with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as at:
    path = os.path.join(folder, "trainer")
    at.bind(path)
    at.listen()
    at.settimeout(120)
    trainer = subprocess.Popen(
        command, env={**os.environ, "DL_TRAINER": path, "DL_LAYOUT": layout})
    link, _ = at.accept()
    with link, link.makefile("r") as heard:
        def order(*words):
            link.sendall((" ".join(words) + "\n").encode())
            return heard.readline().strip()

        assert heard.readline() == "ready 1\n"
        assert order("load", os.path.abspath(model)) == "ok"
        assert order("clock 0 fresh") == "ok"
        for _ in range(int(n)):
            print(order("go"))
        # In all of its processes, if there are many.
        assert order("apply 0 /nowhere set").startswith("error apply: File")
        assert order("stop") == "ok"
    assert trainer.wait(60) == 0
