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


SMALL = ["-L", "1", "-H", "2", "-d", "16", "-c", "16"]


def make(run, fragments, shape=SMALL):
    """In the run's folder: m, layout.tsv and text."""
    prose(os.path.join(run.folder, "text"))
    run.call("dl-train", "init", "-q", "-f", *shape, "-s", "3", "m")
    layout = run.call("dl-frag", "plan", "-n", str(fragments),
                      "m/model.safetensors")
    with open(os.path.join(run.folder, "layout.tsv"), "w",
              encoding="ascii") as f:
        f.write(layout)
