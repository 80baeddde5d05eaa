#!/usr/bin/env python3
"""Runs kernels of other projects on the emulator, or on a GPU, with their own oracles.

  scripts/foreign_kernels/run.py --python VENV/bin/python               every kernel on the emulator
  scripts/foreign_kernels/run.py --only 'triton-*' --orders 100          eager, late and 100 random orders of each profile
  scripts/foreign_kernels/run.py --device --only '*f16*'                 the same kernels and oracles on this machine's GPU
  scripts/foreign_kernels/run.py --record                                writes results.json and docs/foreign-kernels.md
  scripts/foreign_kernels/run.py --jobs 16 --orders 100 --journal RUNS --budget 500
                                    16 processes; what does not run within 500 s runs when the call is repeated
  scripts/foreign_kernels/run.py --journal RUNS --budget 0 --record       records what another machine ran

Exit status: 0 all passed, 1 some did not, 2 something is missing or wrong with the call.
"""
import argparse
import concurrent.futures
import fnmatch
import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import journal
import manifest
import table

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RESULTS, PAGE = HERE / "results.json", ROOT / "docs" / "foreign-kernels.md"
LEAST_RUNS_OF_A_WORKER = 10  # a worker imports its packages once, which takes as long as some runs
WORKERS_OF_A_JOB = 4  # at least, where there are as many runs: jobs end at about the same time


class Missing(Exception):
    """What the machine or the call lacks, and what would be right."""


def orders_of(text):
    """"eager,random:3-5" as a list of settings; "100" is eager, late and a hundred random ones."""
    if text.isdigit():
        text = f"eager,late,random:1-{int(text)}" if int(text) else "eager,late"
    orders = []
    for part in text.split(","):
        kind, _, seeds = part.partition(":")
        if kind not in ("eager", "late", "random") or (kind != "random" and seeds):
            raise argparse.ArgumentTypeError(f"{part}: eager, late, random:SEED, random:FIRST-LAST, or a number only")
        first, _, last = seeds.partition("-")
        if kind == "random" and not (first.isdigit() and (not last or last.isdigit())):
            raise argparse.ArgumentTypeError(f"{part}: random needs a seed, as random:1, or some, as random:1-5")
        orders += [f"random:{s}" for s in range(int(first), int(last or first) + 1)] if kind == "random" else [kind]
    return orders


def checkouts_of(pairs):
    checkouts = {}
    for pair in pairs:
        name, equals, path = pair.partition("=")
        if not equals or not pathlib.Path(path).is_dir():
            raise Missing(f"--checkout {pair}: not NAME=DIRECTORY of a directory that exists")
        checkouts[name] = path
    return checkouts


@functools.cache
def versions_of(python, packages):
    """"triton 3.9.0" for each package that the interpreter has. Error: the first that it lacks."""
    code = ("import importlib.metadata as m, json, sys\n"
            "def v(p):\n  try: return m.version(p)\n  except m.PackageNotFoundError: return None\n"
            "print(json.dumps({p: v(p) for p in sys.argv[1:]}))")
    try:
        found = json.loads(subprocess.run([python, "-c", code, *packages], check=True, capture_output=True).stdout)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Missing(f"{python} does not run: name an interpreter with --python") from error
    lacking = [package for package, version in found.items() if version is None]
    if lacking:
        raise Missing(f"{python} has no package {', '.join(lacking)}: {python} -m pip install {' '.join(lacking)}")
    return [f"{package} {version}" for package, version in found.items()]


def seconds_left(call):
    """Of the budget; None: there is no limit."""
    return None if call.budget is None else call.begin + call.budget - time.monotonic()


def run_python(row, device, runs, call, note):
    """Hands each outcome to `note` as its run ends. A worker that fails has an outcome for each of its runs."""
    job = {"row": row, "device": device, "runs": runs, "emulator": call.library, "directory": call.directory,
           "seconds": call.seconds, "threads": 1 if call.jobs > 1 else None, "budget": seconds_left(call)}
    alone = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"} if call.jobs > 1 else {}
    with tempfile.TemporaryFile("w+") as messages:
        process = subprocess.Popen([call.python, str(HERE / "worker.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=messages, text=True, env=os.environ | alone)
        process.stdin.write(json.dumps(job))
        process.stdin.close()
        done = 0
        for line in process.stdout:
            note(json.loads(line))
            done += 1
        process.wait()
        messages.seek(0)
        last = (messages.read().strip().splitlines() or ["the worker ended"])[-1]
    if process.returncode != 0:
        for run in runs[done:]:
            note(dict(run, passed=False, seconds=0, hazards=[], faults=[], error=last))


def filled(words, checkouts, directory):
    return [word.format(build=directory, **{f"checkout_{name}": path for name, path in checkouts.items()}) for word in words]


def run_program(row, device, runs, call, note):
    """A program with its own check: exit status 0 is its verdict. Hands each outcome to `note`."""
    directory = pathlib.Path(call.directory) / f"{row['name']}-{device}"
    directory.mkdir(exist_ok=True)
    lacking = [name for name in row.get("checkouts", []) if name not in call.checkouts]
    if lacking:
        raise Missing(f"{row['name']} needs a checkout of {lacking[0]}: --checkout {lacking[0]}=DIRECTORY")
    if "build" in row:
        try:
            built = subprocess.run(filled(row["build"], call.checkouts, directory), capture_output=True, text=True)
        except OSError as error:
            raise Missing(f"{row['name']} is built by {row['build'][0]}, which does not run: {error.strerror}") from error
        if built.returncode != 0:
            raise Missing(f"{row['name']} does not build: {(built.stderr.strip().splitlines() or ['no message'])[0]}")
    for run in runs:
        report = directory / "report.json"
        report.unlink(missing_ok=True)
        settings = {"LD_PRELOAD": call.library, "LANESHIFT_EMULATOR_DEVICE": device, "LANESHIFT_EMULATOR_QUIET": "1",
                    "LANESHIFT_EMULATOR_ASYNC": run["order"], "LANESHIFT_EMULATOR_PROFILE": run["profile"],
                    "LANESHIFT_EMULATOR_REPORT": str(report)} if call.library else {}
        begin = time.monotonic()
        ended = subprocess.run(filled(row["command"], call.checkouts, directory), env=os.environ | settings,
                               capture_output=True, text=True, cwd=directory)
        made = json.loads(report.read_text()) if report.exists() else {"hazards": [], "faults": [], "counters": {}}
        last = (ended.stdout + ended.stderr).strip().splitlines()
        note(dict(
            run, seconds=round(time.monotonic() - begin, 2), passed=ended.returncode == 0 and not made["faults"],
            hazards=[{key: h[key] for key in ("kind", "count", "message")} for h in made["hazards"]],
            faults=[f["message"] for f in made["faults"]], instructions=made["counters"].get("warp_instructions", 0),
            error=f"exit status {ended.returncode}: {last[-1] if last else ''}"))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--manifest", action="append", default=[], metavar="FILE", help="more kernels, repeatable")
    parser.add_argument("--checkout", action="append", default=[], metavar="NAME=DIR", help="sources that a row names, repeatable")
    parser.add_argument("--only", default="*", metavar="GLOB", help="kernels by name")
    parser.add_argument("--orders", type=orders_of, default=orders_of("eager,late,random:1-5"))
    parser.add_argument("--profiles", default="hardware,manual", help="hardware, manual or both")
    parser.add_argument("--device", action="store_true", help="run on this machine's GPU instead of the emulator")
    parser.add_argument("--python", default=sys.executable, help="an interpreter with the packages of the manifest")
    parser.add_argument("--library", default=str(ROOT / "build" / "liblaneshift_emulator.so"), help="the emulator to preload")
    parser.add_argument("--build-directory", dest="directory", help="keeps what is compiled")
    parser.add_argument("--seconds", type=int, default=600, help="the limit of a run")
    parser.add_argument("--jobs", type=int, default=1, help="processes that run kernels, each on one host thread if more than one")
    parser.add_argument("--budget", type=float, metavar="SECONDS", help="starts no more runs after so long; 0: runs nothing")
    parser.add_argument("--journal", metavar="FILE", help="keeps outcomes, one JSON line a run; those in it are not run again")
    parser.add_argument("--record", action="store_true", help="write results.json and docs/foreign-kernels.md")
    parser.add_argument("--list", action="store_true", help="print the kernels and exit")
    return parser.parse_args()


def gpu_of_this_machine():
    """b200 or h200, whose PTX the GPU takes."""
    try:
        text = subprocess.run(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader", "-i", "0"],
                              check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        raise Missing("--device: nvidia-smi finds no GPU on this machine") from error
    for name, capability in manifest.DEVICES.items():
        if text == capability:
            return name
    raise Missing(f"--device: no kernel here is for compute capability {text}; 9.0 and 10.0 are")


def tasks_of(rows, call, gpu, kept):
    """What is to run, in the order of the profiles: for each row and device some runs that the journal does not have."""
    wanted = []
    for profile in [""] if gpu else call.profiles.split(","):
        orders = [""] if gpu else call.orders
        for row in rows:
            for device in row["devices"]:
                if gpu is None or device == gpu:
                    done = kept.of(row["name"], device)
                    wanted.append((row, device, [{"profile": profile, "order": o} for o in orders if (profile, o) not in done]))
    share = max(sum(len(runs) for _, _, runs in wanted) // (WORKERS_OF_A_JOB * call.jobs), LEAST_RUNS_OF_A_WORKER)
    tasks = []
    for row, device, runs in wanted:
        size = share if row["frontend"] != "program" else max(len(runs), 1)
        tasks += [(row, device, runs[i:i + size]) for i in range(0, len(runs), size)]
    return tasks


def run_task(task, call, kept):
    """Runs the task unless the time is up."""
    row, device, runs = task
    if call.budget is not None and seconds_left(call) <= 0:
        return
    run = run_program if row["frontend"] == "program" else run_python
    run(row, device, runs, call, lambda outcome: kept.note(row["name"], device, outcome))


def report(row, device, judgements, call, kept):
    """Prints what the runs of a kernel gave, and records it if asked. False: some did not pass."""
    outcomes = list(kept.of(row["name"], device).values())
    if not outcomes:
        return True
    made = table.summary(row, device, kept.versions(row["name"]), outcomes)
    if call.record:
        table.write_page(PAGE, table.merge(RESULTS, [made]), judgements)
    passed = sum(outcome["passed"] for outcome in outcomes)
    print(f"{row['name']:32} {device:5} {passed}/{len(outcomes)} passed  "
          f"{made['seconds']:6.1f} s  {made['instructions']:>10,}  {' '.join(sorted(made['hazards']))}", flush=True)
    for why in made["failures"]:
        print(f"    {why}", flush=True)
    return passed == len(outcomes)


def run_all(rows, judgements, call, gpu):
    """How many kernels did not pass. Each is recorded when its last run ends, so that an interrupted call loses few."""
    kept = journal.Journal(call.journal, call.library)
    if call.budget != 0:
        for row in rows:
            program = row["frontend"] == "program"
            kept.made_with(row["name"], [row["project"]] if program else versions_of(call.python, tuple(row["packages"])))
    tasks = tasks_of(rows, call, gpu, kept)
    left = {(row["name"], device): 0 for row in rows for device in row["devices"]}
    for row, device, _ in tasks:
        left[row["name"], device] += 1
    failed = 0
    for row in rows:
        for device in row["devices"]:
            if left[row["name"], device] == 0:
                failed += not report(row, device, judgements, call, kept)
    with concurrent.futures.ThreadPoolExecutor(call.jobs) as pool:
        futures = {pool.submit(run_task, task, call, kept): task for task in tasks}
        try:
            for future in concurrent.futures.as_completed(futures):
                future.result()
                row, device, _ = futures[future]
                left[row["name"], device] -= 1
                if left[row["name"], device] == 0:
                    failed += not report(row, device, judgements, call, kept)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    missing = sum(len(runs) for _, _, runs in tasks_of(rows, call, gpu, kept))
    if missing:
        print(f"{missing} runs did not fit the budget; the same call with the same --journal runs them")
    return failed


def main():
    call = arguments()
    try:
        rows, judgements = manifest.load([HERE / "manifest.json", *call.manifest])
        rows = [row for row in rows if fnmatch.fnmatch(row["name"], call.only)]
        if not rows:
            raise Missing(f"no kernel's name matches {call.only}")
        if call.list:
            for row in rows:
                print(f"{row['name']:32} {','.join(row['devices']):10} {row['exercises']}")
            return 0
        if call.device and call.record:
            raise Missing("--record keeps what the emulator gave: not with --device")
        call.checkouts = checkouts_of(call.checkout)
        if call.jobs < 1:
            raise Missing(f"--jobs {call.jobs}: at least 1")
        if call.budget is not None and not call.journal:
            raise Missing("--budget leaves runs for a later call: name a --journal that keeps what ran")
        call.begin = time.monotonic()
        gpu = gpu_of_this_machine() if call.device else None
        if gpu or call.budget == 0:
            call.library = None
        elif not pathlib.Path(call.library).exists():
            raise Missing(f"{call.library} does not exist: build the target liblaneshift_emulator.so, or name it with --library")
        else:
            call.library = str(pathlib.Path(call.library).resolve())
        with tempfile.TemporaryDirectory() as temporary:
            call.directory = call.directory or temporary
            pathlib.Path(call.directory).mkdir(parents=True, exist_ok=True)
            failed = run_all(rows, judgements, call, gpu)
    except (Missing, manifest.ManifestError, journal.JournalError) as error:
        print(f"run.py: {error}", file=sys.stderr)
        return 2
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
