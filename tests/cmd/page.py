"""Is a page of dl-stat one that shows: are its figures XML with numbers that
can be drawn, and does it fetch or run nothing?

    page.py FILE
"""

import re
import sys
import xml.etree.ElementTree as tree

FIGURES = 9
NUMBER = re.compile(r"-?[0-9]*\.?[0-9]+")


def check(page):
    assert page.startswith("<!DOCTYPE html>")
    figures = re.findall(r"<svg.*?</svg>", page, re.S)
    assert len(figures) == FIGURES, f"{len(figures)} figures"
    for figure in figures:
        for path in tree.fromstring(figure).iter("path"):
            for number in re.split("[MLHVhvZz ]+", path.get("d")):
                assert not number or NUMBER.fullmatch(number), number
    assert not re.search(r"<script|src=|href=|@import|://", page)
    assert not re.search(r">-?(nan|inf)\b", page)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        check(file.read())
