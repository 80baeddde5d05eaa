"""The results as a JSON file that is kept, and as the tables of docs/foreign-kernels.md."""
import json
import pathlib

BEGIN, END = "<!-- made by scripts/foreign_kernels/run.py -->", "<!-- end -->"


def summary(row, device, versions, outcomes):
    """What is kept of a kernel's runs: for each profile and kind of order how many passed, and each hazard once."""
    kept = {"name": row["name"], "device": device, "project": row["project"], "versions": versions,
            "exercises": row["exercises"], "size": row["size"], "oracle": row["oracle"],
            "instructions": max((o.get("instructions", 0) for o in outcomes), default=0),
            "seconds": max((o["seconds"] for o in outcomes), default=0), "runs": {}, "hazards": {}, "failures": []}
    for outcome in outcomes:
        kind = outcome["order"].split(":")[0] if outcome["order"] else "gpu"
        key = f"{outcome['profile']} {kind}".strip()
        counts = kept["runs"].setdefault(key, {"runs": 0, "passed": 0})
        counts["runs"] += 1
        counts["passed"] += outcome["passed"]
        for hazard in outcome["hazards"]:
            kept["hazards"].setdefault(hazard["kind"], {"where": [], "message": hazard["message"]})
            if key not in kept["hazards"][hazard["kind"]]["where"]:
                kept["hazards"][hazard["kind"]]["where"].append(key)
        if not outcome["passed"] and len(kept["failures"]) < 4:
            wrong = [f"{v['output']}: {v['wrong']} of {v['elements']} wrong" for v in outcome.get("verdicts", []) if v["wrong"]]
            why = outcome["faults"] or wrong or [outcome.get("error", "no verdict")]
            kept["failures"].append(f"{outcome['profile']} {outcome['order']}: {why[0]}".strip())
    return kept


def _with(old, new):
    """A kernel's summary after further runs: those of a profile and kind of order replace the earlier ones of the same."""
    if old is None or old["versions"] != new["versions"]:
        return new
    made = dict(new, runs=old["runs"] | new["runs"], hazards={}, failures=list(new["failures"]))
    for kept, keys in ((old, set(old["runs"]) - set(new["runs"])), (new, set(new["runs"]))):
        for kind, hazard in kept["hazards"].items():
            where = [key for key in hazard["where"] if key in keys]
            if where:
                made["hazards"].setdefault(kind, {"where": [], "message": hazard["message"]})["where"] += where
    made["failures"] += [why for why in old["failures"] if not any(why.startswith(key) for key in new["runs"])]
    for counter in ("instructions", "seconds"):
        made[counter] = max(old[counter], new[counter])
    return made


def merge(path, summaries):
    """Adds runs to those in the file, and returns all kernels."""
    path = pathlib.Path(path)
    kept = {(k["name"], k["device"]): k for k in json.loads(path.read_text())["kernels"]} if path.exists() else {}
    for summary_ in summaries:
        key = summary_["name"], summary_["device"]
        kept[key] = _with(kept.get(key), summary_)
    kernels = sorted(kept.values(), key=lambda k: (k["project"], k["name"], k["device"]))
    path.write_text(json.dumps({"kernels": kernels}, indent=1) + "\n")
    return kernels


def _cell(runs, profile):
    parts = []
    for order in ("eager", "late", "random"):
        counts = runs.get(f"{profile} {order}")
        if counts is None:
            parts.append("–")
        elif counts["passed"] == counts["runs"]:
            parts.append("ok" if counts["runs"] == 1 else f"{counts['runs']} ok")
        else:
            parts.append(f"**{counts['runs'] - counts['passed']} of {counts['runs']} failed**")
    return " / ".join(parts)


def _hazards(hazards):
    """What was reported, and where it was asked for only."""
    names = []
    for kind in sorted(hazards):
        only_manual = all(where.startswith("manual") for where in hazards[kind]["where"])
        names.append(f"`{kind}`" + (" (manual)" if only_manual else ""))
    return ", ".join(names) or "none"


def render(kernels, judgements):
    """The two tables: kernels, and hazards with what we think of them."""
    lines = ["| kernel | project | device | exercises | size | instructions | s | hardware: eager / late / random | manual | hazards |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    for k in kernels:
        lines.append(f"| {k['name']} | {', '.join(k['versions'])} | {k['device']} | {k['exercises']} | {k['size']} | "
                     f"{k['instructions']:,} | {k['seconds']:.1f} | {_cell(k['runs'], 'hardware')} | "
                     f"{_cell(k['runs'], 'manual')} | {_hazards(k['hazards'])} |")
    lines += ["", "| project | hazard | kernels | is it true |", "|---|---|---|---|"]
    for project in sorted({k["project"] for k in kernels}):
        own = [k for k in kernels if k["project"] == project]
        for kind in sorted({kind for k in own for kind in k["hazards"]}):
            count = sum(kind in k["hazards"] for k in own)
            lines.append(f"| {project} | `{kind}` | {count} | {judgements.get(project, {}).get(kind, 'not judged')} |")
    failures = [f"- {k['name']} on {k['device']}: {why}" for k in kernels for why in k["failures"]]
    return "\n".join(lines + (["", "Runs that did not pass:", ""] + failures if failures else []))


def write_page(page, kernels, judgements):
    page = pathlib.Path(page)
    page.write_text(with_tables(page.read_text(), kernels, judgements))


def with_tables(text, kernels, judgements):
    """The page with its tables made again."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{render(kernels, judgements)}\n{END}{after}"
