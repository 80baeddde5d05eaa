#!/usr/bin/env python3
"""What the timing model says of each publication that it is not fitted to: the table of docs/timing-model.md.

  scripts/timing_left_out.py build/timing_error

Each publication of bench/published/blackwell.txt is left out of the fit in turn. The clock of its node is fitted to it
where nothing else ran there. Takes about two minutes.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

PUBLISHED = pathlib.Path(__file__).resolve().parent.parent / "bench" / "published"
CONSTANTS = ["cta_start", "tile_start", "l2_rate", "launch_us", "product_issue"]
APART = (0.03, 0.076)


def clocks(lines):
    return [f"{node}:busy_clock_ghz" for node in sorted({re.search(r"node=(\S+)", line)[1] for line in lines})]


class Judge:
    """timing_error on files next to a copy of the nodes."""

    def __init__(self, program, directory):
        self.program = program
        self.directory = pathlib.Path(directory)
        for name in ("nodes.txt", "mainloop.txt"):
            (self.directory / name).write_text((PUBLISHED / name).read_text())

    def run(self, files, *options):
        command = [self.program, "--target", "sm_100a", "--published", *(str(self.directory / f) for f in files), *options]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def fit(self, files, names, facts):
        given = ["--set", ",".join(facts)] if facts else []
        return self.run(files, "--fit", ",".join(names), *given).splitlines()[0].split()

    def order(self, files, facts, apart):
        said = self.run(files, "--set", ",".join(facts), "--apart", str(apart))
        return re.search(r"of all (\d+) samples: median error ([\d.]+)%; of (\d+) pairs .*, (\d+) are", said).groups()


def main():
    lines = [line for line in (PUBLISHED / "blackwell.txt").read_text().splitlines() if line.startswith("m=")]
    sources = list(dict.fromkeys(re.search(r"source=(\S+)", line)[1] for line in lines))
    with tempfile.TemporaryDirectory() as directory:
        judge = Judge(sys.argv[1], directory)
        for source in sources:
            left = [line for line in lines if f"source={source} " in line]
            rest = [line for line in lines if line not in left]
            (judge.directory / "left.txt").write_text("\n".join(left) + "\n")
            (judge.directory / "rest.txt").write_text("\n".join(rest) + "\n")
            facts = judge.fit(["rest.txt", "mainloop.txt"], CONSTANTS + clocks(rest), [])
            own = [clock for clock in clocks(left) if clock not in clocks(rest)]
            if own:
                facts = judge.fit(["left.txt"], own, facts)
            near, far = (judge.order(["left.txt"], facts, apart) for apart in APART)
            print(f"| {source} | {near[0]} | {near[1]} % | {near[3]} of {near[2]} | {far[3]} of {far[2]} |", flush=True)


if __name__ == "__main__":
    main()
