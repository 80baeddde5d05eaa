#!/usr/bin/env python3
"""Draws the pictures of docs/performance/ and writes its tables, from bench/measured/*.json.

  scripts/plot_performance.py            writes docs/images/performance/*.svg and what stands between markers of the pages
  scripts/plot_performance.py --check    fails if they are not what it would write, or if a measurement contradicts itself

Between `<!-- table: NAME -->` or `<!-- source: FILE -->` and `<!-- end -->` a page has what this script writes.
"""
import pathlib
import re
import sys

sys.dont_write_bytecode = True  # what stands in scripts/ is read by the lint
from performance.measured import MEASURED, undocumented
from performance.pictures import PICTURES
from performance.tables import TABLES, source

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "performance"
IMAGES = ROOT / "docs" / "images" / "performance"

MOST_BYTES = 60 * 1024
BLOCK = re.compile(r"(<!-- (table|source): (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


class Output:
    """Writes files, or with `check` compares them."""

    def __init__(self, check):
        self.check, self.mistakes = check, []

    def put(self, path, text):
        path = path.relative_to(ROOT)
        if not self.check:
            (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
            (ROOT / path).write_text(text)
        elif not (ROOT / path).exists() or (ROOT / path).read_text() != text:
            self.mistakes.append(f"{path} is not what scripts/plot_performance.py writes; run make docs")


def written(match, used):
    """A block of a page as it should be."""
    begin, kind, name, end = match.groups()
    used.add((kind, name))
    lines = TABLES[name]() if kind == "table" else source(name)
    return begin + "\n".join(lines) + "\n" + end


def main():
    output = Output("--check" in sys.argv[1:])
    output.mistakes += undocumented()
    for measurement in MEASURED.values():
        output.mistakes += measurement.mistakes()
    if output.mistakes:
        print("\n".join(output.mistakes), file=sys.stderr)
        return 1

    for name, draw in PICTURES.items():
        try:
            text = draw().svg()
        except ValueError as error:  # a figure that the axis does not reach
            output.mistakes.append(f"{name}.svg: {error}")
            continue
        output.put(IMAGES / f"{name}.svg", text)
        if len(text.encode()) > MOST_BYTES:
            output.mistakes.append(f"{name}.svg has more than {MOST_BYTES} bytes")
    used, shown = set(), set()
    for page in sorted(PAGES.glob("*.md")):
        text = page.read_text()
        shown |= set(re.findall(r"\]\(\.\./images/performance/(\w+)\.svg\)", text))
        for kind, name in {(match[2], match[3]) for match in BLOCK.finditer(text)}:
            if name not in (TABLES if kind == "table" else MEASURED):
                output.mistakes.append(f"docs/performance/{page.name}: there is no {kind} {name}")
                return finish(output)
        if text.count("<!-- end -->") != len(BLOCK.findall(text)):
            output.mistakes.append(f"docs/performance/{page.name}: a block has no <!-- end --> or no name")
        output.put(page, BLOCK.sub(lambda match: written(match, used), text))

    # What is kept is shown, and has a source.
    for kind, known in (("table", TABLES), ("source", MEASURED)):
        output.mistakes += [f"no page shows the {kind} {name}" for name in sorted(known) if (kind, name) not in used]
    output.mistakes += [f"no page shows {name}.svg" for name in PICTURES if name not in shown]
    drawn = {path.stem for path in IMAGES.glob("*")}
    output.mistakes += [f"nothing draws docs/images/performance/{name}" for name in sorted(drawn - set(PICTURES))]
    return finish(output)


def finish(output):
    print("\n".join(output.mistakes), file=sys.stderr, end="\n" if output.mistakes else "")
    return 1 if output.mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
