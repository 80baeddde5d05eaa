#!/usr/bin/env python3
"""Draws the pictures of docs/performance/ and writes its tables, from bench/measured/*.json.

  scripts/plot_performance.py            writes docs/images/performance/*.svg and what stands between markers of the pages
  scripts/plot_performance.py --check    fails if they are not what it would write, or if a measurement contradicts itself

Between `<!-- table: NAME -->` or `<!-- source: FILE -->` and `<!-- end -->` a page has what this script writes.
"""
import pathlib
import re
import sys

sys.dont_write_bytecode = True  # the lint reads all files in scripts/
from performance.measured import MEASURED, undocumented
from performance.pictures import PICTURES
from performance.tables import TABLES, source

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "performance"
IMAGES = ROOT / "docs" / "images" / "performance"

MOST_BYTES = 60 * 1024
MARKER = re.compile(r"<!-- (?:table|source|end)\b")
BLOCK = re.compile(r"(<!-- (table|source): (\S+) -->\n)(?:(?!<!-- ).)*(<!-- end -->)", re.DOTALL)


class Output:
    """Writes files, or with `check` compares them."""

    def __init__(self, check):
        self.check, self.mistakes = check, []

    def put(self, path, text):
        path = path.relative_to(ROOT)
        if not self.check:
            (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
            (ROOT / path).write_text(text, encoding="utf-8")
        elif not (ROOT / path).exists() or (ROOT / path).read_text(encoding="utf-8") != text:
            self.mistakes.append(f"{path} is not what scripts/plot_performance.py writes; run make docs")


def draw_pictures(output):
    for name, draw in PICTURES.items():
        try:
            text = draw().svg()
        except ValueError as error:  # a figure that the axis does not reach, a label that does not fit
            output.mistakes.append(f"{name}.svg: {error}")
            continue
        output.put(IMAGES / f"{name}.svg", text)
        if len(text.encode()) > MOST_BYTES:
            output.mistakes.append(f"{name}.svg has more than {MOST_BYTES} bytes")
    drawn = {path.stem for path in IMAGES.glob("*")}
    output.mistakes += [f"nothing draws docs/images/performance/{name}" for name in sorted(drawn - set(PICTURES))]


def written(match):
    """A block of a page as it should be."""
    begin, kind, name, end = match.groups()
    return begin + "\n".join(TABLES[name]() if kind == "table" else source(name)) + "\n" + end


def write_pages(output):
    """Writes the blocks; what is measured, drawn or made into a table has to be on some page."""
    shown = set()
    for page in sorted(PAGES.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        blocks = [(match[2], match[3]) for match in BLOCK.finditer(text)]
        unknown = [f"there is no {kind} {name}" for kind, name in blocks
                   if name not in (TABLES if kind == "table" else MEASURED)]
        if len(MARKER.findall(text)) != 2 * len(blocks):
            unknown.append("a block has no <!-- end -->, or an end no block")
        output.mistakes += [f"docs/performance/{page.name}: {what}" for what in unknown]
        if not unknown:
            output.put(page, BLOCK.sub(written, text))
        shown |= set(blocks) | {("picture", name) for name in re.findall(r"\]\(\.\./images/performance/(\w+)\.svg\)", text)}
    for kind, known in (("table", TABLES), ("source", MEASURED), ("picture", PICTURES)):
        output.mistakes += [f"no page shows the {kind} {name}" for name in sorted(known) if (kind, name) not in shown]


def main():
    output = Output("--check" in sys.argv[1:])
    output.mistakes += undocumented()
    for measurement in MEASURED.values():
        output.mistakes += measurement.mistakes()
    if not output.mistakes:
        draw_pictures(output)
        write_pages(output)
    for mistake in output.mistakes:
        print(mistake, file=sys.stderr)
    return 1 if output.mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
