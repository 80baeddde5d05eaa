"""Runs one kernel of the manifest under several settings: a process for each, forked once the imports are done.

Reads one JSON object from stdin: row, device, runs (each with profile and order, empty for a real GPU), emulator (the
library, or null), directory (for what is compiled and for reports), seconds (the limit of a run), threads (of the
emulator, or null: all), budget (starts no further run after so many seconds, or null). Writes one JSON line to stdout
for each run.
"""
import ctypes
import importlib
import json
import os
import pathlib
import sys
import time
import traceback


def main():
    started = time.monotonic()
    job = json.load(sys.stdin)
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "kernels"))
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    module, function = job["row"]["function"].split(":")
    import case  # noqa: F401  NumPy, the front end and the kernels are imported before the processes part
    importlib.import_module(module)
    importlib.import_module(f"{job['row']['frontend']}_frontend")
    for index, run in enumerate(job["runs"]):
        if job["budget"] is not None and time.monotonic() - started >= job["budget"]:
            return
        out = pathlib.Path(job["directory"]) / f"run-{os.getpid()}-{index}"
        begin = time.monotonic()
        child = os.fork()
        if child == 0:
            _run(job, run, module, function, out)
        _, status = os.waitpid(child, 0)
        print(json.dumps(_outcome(run, status, time.monotonic() - begin, out)), flush=True)


def _run(job, run, module, function, out):
    """Runs in a separate process. Ends by libc's exit, so that the emulator writes its report."""
    verdict = {}
    try:
        os.dup2(os.open(f"{out}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
        os.dup2(1, 2)
        if job["emulator"]:
            os.environ.update({
                "LANESHIFT_EMULATOR_DEVICE": job["device"], "LANESHIFT_EMULATOR_ASYNC": run["order"],
                "LANESHIFT_EMULATOR_PROFILE": run["profile"], "LANESHIFT_EMULATOR_REPORT": f"{out}.report",
                "LANESHIFT_EMULATOR_QUIET": "1", "LANESHIFT_EMULATOR_LIMITS": f"seconds={job['seconds']}"})
            if job["threads"]:
                os.environ["LANESHIFT_EMULATOR_THREADS"] = str(job["threads"])
        import case
        import device
        device.open_driver(job["emulator"])
        frontend = importlib.import_module(f"{job['row']['frontend']}_frontend")
        frontend.install(job["emulator"], job["directory"])
        made = case.Case()
        getattr(importlib.import_module(module), function)(made, **job["row"]["arguments"])
        device.synchronize()
        verdict = {"verdicts": made.verdicts}
    except BaseException as error:  # whatever ends a kernel's function is its result
        traceback.print_exc()
        verdict = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
    pathlib.Path(f"{out}.verdict").write_text(json.dumps(verdict))
    sys.stdout.flush()
    ctypes.CDLL(None).exit(0)


def _outcome(run, status, seconds, out):
    """What the process left: its verdict and the emulator's report."""
    outcome = dict(run, seconds=round(seconds, 2), hazards=[], faults=[])
    verdict, report = pathlib.Path(f"{out}.verdict"), pathlib.Path(f"{out}.report")
    if verdict.exists():
        outcome |= json.loads(verdict.read_text())
    if status != 0:
        outcome["error"] = f"the process ended with status {status}"
    if report.exists():
        made = json.loads(report.read_text())
        outcome["hazards"] = [{key: h[key] for key in ("kind", "count", "message")} for h in made["hazards"]]
        outcome["faults"] = [f"{f['kind']}: {f['message']}" for f in made["faults"]]
        outcome["instructions"] = made["counters"]["warp_instructions"]
        outcome["launches"] = made["launches"]
    wrong = [v for v in outcome.get("verdicts", []) if v["wrong"]]
    outcome["passed"] = bool(outcome.get("verdicts")) and not wrong and "error" not in outcome and not outcome["faults"]
    for left in out.parent.glob(out.name + ".*"):
        left.unlink()
    return outcome


if __name__ == "__main__":
    status = 0
    try:
        main()
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stderr.flush()
    os._exit(status)  # at an ordinary exit Triton's bindings write about leaks: the exception is the last line
