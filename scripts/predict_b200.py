#!/usr/bin/env python3
"""What the timing model says of a B200: two files of bench/measured/.

  scripts/predict_b200.py build/laneshift nvfp4 REVISION DATE > bench/measured/nvfp4_b200_predicted.json
  scripts/predict_b200.py build/laneshift dense_kinds REVISION DATE > bench/measured/dense_kinds_b200_predicted.json

nvfp4: the problems of bench/nvfp4.txt, against the speed of light that GPU MODE publishes. dense_kinds: 8192 x 8192 x 8192 of each dense
kind of matrix instruction. A store that remembers other choices would be asked first: LANESHIFT_CACHE_DIR should be an empty directory.
"""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LAUNCH_US = 2.5
# In the order of bench/nvfp4.txt (gpu-mode/reference-kernels, problems/nvidia).
SPEED_OF_LIGHT_US = (8.6, 17.3, 4.3, 9.0, 2.4, 1.3, 4.7, 8.7, 2.1, 6.5, 18.8, 10.7, 2.4, 1.5)
DENSE_KINDS = (
    ("kind::f16", "a=bf16"), ("kind::tf32", "a=tf32"), ("kind::f8f6f4", "a=e4m3"), ("kind::i8", "a=s8"),
    ("kind::mxf8f6f4", "a=e4m3 scale=mx"), ("kind::mxf4", "a=e2m1 scale=mx"), ("kind::mxf4nvf4", "a=e2m1 scale=nv"),
)


def explain(program, problem, *options):
    command = [program, "explain", problem, "--target", "sm_100a", "--top", "1", *options]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def prediction(program, problem):
    """What `explain` says of the default schedule, and the keys of that schedule that are not the usual ones."""
    first = json.loads(explain(program, problem, "--json").splitlines()[0])
    schedule = re.search(r"^run takes +(.*) \(", explain(program, problem), re.MULTILINE).group(1)
    return first, schedule


def largest(breakdown, *without):
    """The name and the us of what takes most time."""
    return max((item for item in breakdown.items() if item[0] not in without), key=lambda item: item[1])


def nvfp4(program):
    lines = (ROOT / "bench" / "nvfp4.txt").read_text(encoding="utf-8").splitlines()
    problems = [line for line in lines if line and not line.startswith("#")]
    for problem, light in zip(problems, SPEED_OF_LIGHT_US, strict=True):
        first, schedule = prediction(program, problem)
        us = first["predicted_us"] - LAUNCH_US
        name, most = largest(first["breakdown_us"], "launch")
        yield {"problem": problem, "schedule": schedule, "us": round(us, 1), "peer": "speed of light", "peer_us": light,
               "ratio": round(light / round(us, 1), 2), "notes": f"{name} {100 * most / us:.0f}%"}


def dense_kinds(program):
    for what, operands in DENSE_KINDS:
        problem = f"gemm m=8192 n=8192 k=8192 {operands}"
        first, schedule = prediction(program, problem)
        us = first["predicted_us"]
        name, most = largest(first["breakdown_us"], "launch", "tensor core")
        yield {"what": what, "problem": problem, "schedule": schedule, "us": round(us, 1),
               "value": round(first["tensor_share"], 3), "notes": f"{name} {100 * most / us:.0f}%"}


UNPROVEN = "No B200 has run these kernels; they are proven on the emulator and by ptxas."
SETS = {
    "nvfp4": (nvfp4, "NVFP4 on a B200, predicted, against the speed of light",
              "PROBLEM is a line of bench/nvfp4.txt. us: predicted_us without the 2.5 us of a launch. peer_us: the speed of light that GPU "
              "MODE publishes, at 1.5 GHz and 8 TB/s and without a launch. notes: what binds, and its share of us. " + UNPROVEN),
    "dense_kinds": (dense_kinds, "8192 x 8192 x 8192 of each dense kind of matrix instruction on a B200, predicted",
                    "us: predicted_us, with the 2.5 us of a launch. value: the part of the time in which the tensor core multiplies. notes: "
                    "what takes most of the rest, and its share of us. " + UNPROVEN),
}


def main():
    program, name, revision, date = sys.argv[1:]
    rows_of, title, notes = SETS[name]
    head = {
        "title": title, "device": "predicted for a B200 (published facts)", "driver": "none", "date": date, "revision": revision,
        "commands": ["laneshift explain PROBLEM --target sm_100a --json --top 1",
                     f"scripts/predict_b200.py build/laneshift {name} REVISION DATE"],
        "notes": notes,
    }
    body = ",\n    ".join(json.dumps(row) for row in rows_of(program))
    print(json.dumps(head, indent=2)[:-2] + ',\n  "rows": [\n    ' + body + "\n  ]\n}")


if __name__ == "__main__":
    main()
