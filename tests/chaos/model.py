"""The small model and the text that chaos trains on."""

import glob
import os

MANUALS = os.path.join(os.path.dirname(__file__), "../../man/*.[0-9]")


def prose(path):
    """What people wrote, 150 KB of it."""
    with open(path, "wb") as out:
        for name in sorted(glob.glob(MANUALS)):
            with open(name, "rb") as page:
                out.write(page.read())


def make(run, fragments, width=16, context=16):
    """In the run's folder: m, layout.tsv and text."""
    prose(os.path.join(run.folder, "text"))
    run.call("dl-train", "init", "-q", "-f", "-L", "1", "-H", "2", "-d",
             str(width), "-c", str(context), "-s", "3", "m")
    layout = run.call("dl-frag", "plan", "-n", str(fragments),
                      "m/model.safetensors")
    with open(os.path.join(run.folder, "layout.tsv"), "w",
              encoding="ascii") as f:
        f.write(layout)
