"""The small model and the text that chaos trains on."""

import os


def text(path, lines):
    with open(path, "w", encoding="ascii") as f:
        for i in range(1, lines + 1):
            print(f"{i} bottles, and if one of them falls: {i * i % 97} left.",
                  file=f)


def make(run, fragments, width=16):
    """In the run's folder: m, layout.tsv and text."""
    text(os.path.join(run.folder, "text"), 400)
    run.call("dl-train", "init", "-q", "-L", "1", "-H", "2", "-d", str(width),
             "-c", "16", "-s", "3", "m")
    layout = run.call("dl-frag", "plan", "-n", str(fragments),
                      "m/model.safetensors")
    with open(os.path.join(run.folder, "layout.tsv"), "w",
              encoding="ascii") as f:
        f.write(layout)
