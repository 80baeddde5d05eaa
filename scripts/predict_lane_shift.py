#!/usr/bin/env python3
"""What the timing model says of reuse=lane_shift, by the cost of a shift: bench/measured/lane_shift_b200_predicted.json.

  scripts/predict_lane_shift.py build/laneshift REVISION DATE > bench/measured/lane_shift_b200_predicted.json

Of each layer of bench/conv_layers.txt and bench/lane_shift.txt that lane_shift can run, the fastest schedule that shifts lanes and
the fastest of all other modes, where a shift or a refresh of Tensor Memory takes 1, 4 and 16 clocks.
"""
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLOCKS = (1, 4, 16)
MODE_KEYS = ("reuse", "shift", "border")
DEFAULTS = {"shift": "separate", "border": "zeros"}


def layers():
    for name in ("conv_layers.txt", "lane_shift.txt"):
        for line in (ROOT / "bench" / name).read_text(encoding="utf-8").splitlines():
            problem = line.partition("#")[0].replace(" x=bf16 w=bf16 y=bf16", "").strip()
            if problem and " s=1 " not in problem + " ":
                yield problem


def mode_of(schedule):
    keys = dict(word.split("=", 1) for word in schedule.split())
    return " ".join(f"{key}={keys[key]}" for key in MODE_KEYS if keys[key] != DEFAULTS.get(key))


def fastest(program, problem, clocks):
    """Of the modes that shift lanes and of the others: (microseconds, mode), or None."""
    command = [program, "explain", problem, "--target", "sm_100a", "--fact", f"tensor_move={clocks}", "--json"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    best = {True: None, False: None}
    for candidate in map(json.loads, lines):
        mode = mode_of(candidate["schedule"])
        shifts = mode.startswith("reuse=lane_shift")
        best[shifts] = best[shifts] or (candidate["predicted_us"], mode)
    return best[True], best[False]


def rows(program):
    for problem in layers():
        for clocks in CLOCKS:
            shifting, other = fastest(program, problem, clocks)
            if shifting and other:
                us, peer_us = round(shifting[0], 2), round(other[0], 2)
                yield {"problem": problem, "setting": f"{clocks} clk", "schedule": shifting[1], "us": us, "peer": other[1],
                       "peer_us": peer_us, "ratio": round(peer_us / us, 3)}


def main():
    program, revision, date = sys.argv[1:]
    head = {
        "title": "reuse=lane_shift on a B200, predicted, by the clocks of a shift",
        "device": "predicted for a B200 (published facts)", "driver": "none", "date": date, "revision": revision,
        "commands": ["laneshift explain PROBLEM --target sm_100a --fact tensor_move=CLOCKS --json",
                     "scripts/predict_lane_shift.py build/laneshift REVISION DATE"],
        "notes": "us: the fastest schedule that shifts lanes, in the form that `schedule` says. peer_us: the fastest of all other "
                 "modes. setting: the clocks for which a shift or a refresh occupies the pipe, which nobody has published. No B200 "
                 "has run these kernels.",
    }
    body = ",\n    ".join(json.dumps(row) for row in rows(program))
    print(json.dumps(head, indent=2)[:-2] + ',\n  "rows": [\n    ' + body + "\n  ]\n}")


if __name__ == "__main__":
    main()
