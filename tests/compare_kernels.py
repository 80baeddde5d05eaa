#!/usr/bin/env python3
"""Compares the PTX that two builds of laneshift make of the kernels of compiler/emit/emission_digests.txt.

  tests/compare_kernels.py OLD/laneshift NEW/laneshift [--old-list FILE] [--list FILE] [--show N]

Names of kernels, parameters and shared variables count as equal if they are renamed throughout. Prints the kernels that
differ, with the first lines that do, and exits with 1 if there are any. Where the text forms of the two builds differ,
--old-list is the old checkout's list: its line i is the new one's line i.
"""
import argparse
import concurrent.futures
import difflib
import os
import pathlib
import re
import subprocess
import sys

LIST = pathlib.Path(__file__).resolve().parent.parent / "compiler" / "emission_digests.txt"
# What PTX calls by a name of the program's choice: what is declared with one, not registers and labels.
DECLARED = re.compile(r"^\s*(?:\.visible |\.extern |\.weak )*\.(?:entry|func|shared|global|const|param)\b[^;({=]*?([\w$]+)"
                      r"(?:\[\d*\])?\s*[;({=,]?\s*$", re.MULTILINE)


def kernels(path):
    for line in pathlib.Path(path).read_text().splitlines():
        if line.startswith(("#", "generator ")) or not line:
            continue
        problem, schedule, target = (part.strip() for part in line.split(" ", 2)[2].split(";"))
        yield problem, schedule, target


def ptx(program, kernel):
    problem, schedule, target = kernel
    run = subprocess.run([program, "compile", *problem.split(), "--schedule", schedule, "--target", target],
                         capture_output=True, text=True)
    if run.returncode != 0:
        return f"refused: {run.stderr.strip()}"
    return run.stdout


def renamed(text):
    """`text` with the names that it declares numbered in their order."""
    text = re.sub(r"^//.*\n", "", text, flags=re.MULTILINE)
    names = {}
    for name in DECLARED.findall(text):
        names.setdefault(name, f"name_{len(names)}")
    if not names:
        return text
    longest_first = sorted(names, key=len, reverse=True)
    pattern = re.compile(r"(?<![\w$%])(" + "|".join(map(re.escape, longest_first)) + r")(?![\w$])")
    return pattern.sub(lambda found: names[found.group(1)], text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old"), parser.add_argument("new")
    parser.add_argument("--list", default=LIST, help="problem; schedule; target a line, after two digests")
    parser.add_argument("--old-list", help="the old build's list; left out: the same")
    parser.add_argument("--show", type=int, default=12, help="lines of difference to show for each kernel")
    options = parser.parse_args()
    new_kernels = list(kernels(options.list))
    old_kernels = list(kernels(options.old_list or options.list))
    if len(old_kernels) > len(new_kernels):
        sys.exit(f"{options.list} has {len(new_kernels)} kernels, the old list {len(old_kernels)}")
    pairs = list(zip(old_kernels, new_kernels))

    def both(pair):
        return ptx(options.old, pair[0]), ptx(options.new, pair[1])

    different = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for (_, kernel), (old, new) in zip(pairs, pool.map(both, pairs)):
            old, new = renamed(old), renamed(new)
            if old == new:
                continue
            different += 1
            print("; ".join(kernel))
            lines = difflib.unified_diff(old.splitlines(), new.splitlines(), "old", "new", lineterm="", n=0)
            for _, line in zip(range(options.show), lines):
                print("  " + line)
    print(f"{len(pairs) - different} of {len(pairs)} kernels are the same")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
