#!/usr/bin/env python3
"""Opens reports of `laneshift inspect --html` in headless Chromium, and time lines in Perfetto's trace processor.

  scripts/check_report.py build/laneshift                       # checks six kernels
  scripts/check_report.py build/laneshift --screenshots DIR     # and keeps a picture of each, wide and narrow, light and dark

Fails if a page writes to its console, lacks a section, is wider than its window, cuts a text off, makes it too small
to read or lays it on another, or does not mark, sort, choose and step. Needs chromium (Debian's package, or --chromium PATH). With the Python package `perfetto` and its trace_processor, which it
downloads when it is first used, the time lines are also loaded and queried there; without them that part is skipped and
said so.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # the lint reads all files in scripts/

KERNELS = [
    ("pair", "sm_100a", "gemm m=4096 n=4096 k=4096", "tile=128x256x64 cluster=2x1 ctas=2", {"lanes"}),
    ("block_scaled", "sm_100a", "gemm m=4096 n=4096 k=4096 a=e4m3 b=e4m3 scale=mx", "", {"lanes"}),
    ("row_offset", "sm_100a", "conv n=32 h=28 w=28 c=128 k=128 r=3 s=3 pad=1", "reuse=row_offset", set()),
    ("row_offset_hopper", "sm_90a", "conv n=32 h=28 w=28 c=128 k=128 r=3 s=3 pad=1", "reuse=row_offset", {"tensor-memory"}),
    ("lane_shift", "sm_100a", "conv n=32 h=28 w=28 c=64 k=64 r=3 s=3 pad=1", "reuse=lane_shift", set()),
    ("grouped", "sm_100a", "grouped_gemm groups=16 m=8192 n=2048 k=2048", "", {"lanes"}),
]
WITH_PEERS = {"block_scaled", "row_offset_hopper"}
SECTIONS = ["summary", "why", "roofline", "timeline", "pipeline", "waves", "bytes", "tensor-memory", "shared-memory",
            "registers", "lanes", "schedules", "census", "code"]
# Chromium's own messages about a machine without a display or D-Bus are no errors of the page.
CONSOLE = re.compile(r":(?:INFO|WARNING|ERROR):CONSOLE[^\]]*\] (.*)")
# Written into a copy of the page: how wide it is, for a window of this width, and what its script does when it is used.
MEASURE = """<script>
[...document.querySelectorAll("#ptx-text i[data-l]")].find(line => /tcgen05.mma|wgmma.mma/.test(line.textContent)).dispatchEvent(new Event("mouseover", {bubbles: true}));
document.querySelector("#shared-memory rect[data-tile]").dispatchEvent(new Event("click"));
// A text that leaves its picture is cut off.
const cut = [...document.querySelectorAll("svg")].flatMap(svg => [...svg.querySelectorAll("text")].filter(text => {
  const box = text.getBoundingClientRect(), all = svg.getBoundingClientRect();
  return box.width > 0 && (box.left < all.left - 1 || box.right > all.right + 1 || box.top < all.top - 2 || box.bottom > all.bottom + 2);
}).map(text => text.textContent));
const small = [...document.querySelectorAll("svg:not(.swatch)")].filter(svg => {
  const box = svg.getBoundingClientRect();
  return box.width > 0 && box.width < 0.84 * svg.viewBox.baseVal.width;
}).length;
// Names of the roofline that lie on each other.
const names = [...document.querySelectorAll("#roofline svg text")].map(text => [text.textContent, text.getBoundingClientRect()]);
const laid = names.flatMap(([name, a], i) => names.slice(i + 1).filter(([, b]) =>
  Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3).map(([other]) => name + " on " + other));
const heads = document.querySelectorAll("#schedules th"), first = () => document.querySelector("#schedules tbody td").textContent;
heads[0].click(); const up = first(); heads[0].click();
if (slider) { slider.value = 1; slider.dispatchEvent(new Event("input")); }
document.title = ["WIDTH", document.documentElement.scrollWidth, "of", window.innerWidth,
  "lit", ...["program", "llvm", "ptx"].map(text => document.querySelectorAll("#" + text + "-text i.lit").length > 0), "sorted", up !== first(),
  "tiles", document.querySelectorAll("#shared-memory details[open].chosen").length, "cut", cut.join("; ") || "none", "small", small, "laid", laid.join("; ") || "none",
  "tap", taps.length ? taps.findIndex(tap => !tap.hidden) : 1].join(" ");
</script>"""


def run_program(program, arguments, cache):
    environment = dict(os.environ, LANESHIFT_CACHE_DIR=cache)
    done = subprocess.run([program, *arguments], env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments)}: {done.stderr}")


def browse(chromium, page, *options):
    with tempfile.TemporaryDirectory() as profile:
        command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr",
                   f"--user-data-dir={profile}", "--virtual-time-budget=2000", *options, page.as_uri()]
        return subprocess.run(command, capture_output=True, text=True, timeout=180)


def check_page(chromium, page, absent):
    failures = []
    opened = browse(chromium, page, "--dump-dom", "--window-size=1280,1000")
    failures += [f"console: {m}" for m in CONSOLE.findall(opened.stderr)]
    for section in SECTIONS:
        if (f'<section id="{section}">' in opened.stdout) == (section in absent):
            failures.append(f"section {section} is {'present' if section in absent else 'missing'}")
    measured = page.with_name("measured_" + page.name)
    measured.write_text(page.read_text().replace("</body>", MEASURE + "</body>"))
    for width in (1280, 500):  # headless Chromium has no narrower windows; pictures of 390 pixels are made in a frame
        title = re.search(r"<title>WIDTH (\d+) of (\d+) (.*)</title>",
                          browse(chromium, measured, "--dump-dom", f"--window-size={width},1000").stdout)
        if not title or int(title[1]) > int(title[2]):
            failures.append(f"wider than its window of {width}: {title[0] if title else 'not measured'}")
        elif title[3] != "lit true true true sorted true tiles 1 cut none small 0 laid none tap 1":
            failures.append(f"its script does not do what it should: {title[3]}")
    return failures


def peers_of(page):
    """What `laneshift bench --json` would print of the page's problem, with peers that are about as fast."""
    report = json.loads(re.search(r'id="report-json">(.*?)</script>', page.read_text(), re.DOTALL)[1])
    us = report["prediction"]["us"]
    peers = {"cudnn": 1.02, "cublas": 0.98, "cublas_best": 0.97}
    return {"problem": report["problem"], "target": report["target"], "device": "a GPU", "time_us": us,
            **{f"{name}_us": us * times for name, times in peers.items()}, **{f"vs_{name}": times for name, times in peers.items()}}


def take_screenshots(chromium, page, directory):
    directory.mkdir(parents=True, exist_ok=True)
    name = page.stem
    for scheme, option in (("light", []), ("dark", ["--blink-settings=preferredColorScheme=0"])):
        browse(chromium, page, f"--screenshot={directory}/{name}_{scheme}.png", "--window-size=1280,6200", *option)
    frame = page.with_name("narrow_" + page.name)
    frame.write_text(f'<body style="margin:0"><iframe src="{page.name}" style="border:0;width:390px;height:9000px"></iframe>')
    browse(chromium, frame, f"--screenshot={directory}/{name}_narrow.png", "--window-size=500,9000")


def format_flaws(trace):
    """What the trace-event format demands of complete events and metadata, and Perfetto of the slices of a track."""
    def is_number(value):
        return isinstance(value, (int, float)) and not isinstance(value, bool)

    flaws, tracks, threads = [], {}, set()
    for event in trace["traceEvents"]:
        good = isinstance(event.get("name"), str) and isinstance(event.get("pid"), int) and isinstance(event.get("args", {}), dict)
        if event.get("ph") == "M":
            key = {"process_name": "name", "thread_name": "name", "thread_sort_index": "sort_index"}.get(event.get("name"))
            good = good and key in event["args"] and isinstance(event["args"][key], str if key == "name" else int)
            if event.get("name") == "thread_name":
                threads.add((event.get("pid"), event.get("tid")))
        else:
            good = good and event.get("ph") == "X" and isinstance(event.get("tid"), int) and isinstance(event.get("cat"), str)
            good = good and is_number(event.get("ts")) and event["ts"] >= 0 and is_number(event.get("dur")) and event["dur"] > 0
            if good:
                tracks.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"]))
        if not good:
            flaws.append(f"not of the trace-event format: {event}")
    flaws += [f"spans without a thread: {track}" for track in tracks if track not in threads]
    for track, spans in tracks.items():
        open_until = []  # slices of a track may be nested, and do not overlap otherwise
        for begin, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            while open_until and open_until[-1] <= begin + 1e-6:
                open_until.pop()
            if open_until and end > open_until[-1] + 1e-6:
                flaws.append(f"spans of track {track} overlap at {begin} us")
                break
            open_until.append(end)
    if trace.get("displayTimeUnit") not in ("ms", "ns"):
        flaws.append("displayTimeUnit is neither ms nor ns")
    return flaws


def check_timeline(path):
    """The format of the events; then, where it is available, Perfetto's own parser."""
    trace = json.loads(path.read_text())
    spans = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    failures = format_flaws(trace)
    try:
        from perfetto.trace_processor import TraceProcessor
        with TraceProcessor(trace=str(path)) as processor:
            row = next(iter(processor.query("select count(*) as n, count(distinct track_id) as tracks from slice")))
            if row.n != len(spans):
                failures.append(f"Perfetto reads {row.n} of {len(spans)} spans")
            print(f"  Perfetto: {row.n} slices on {row.tracks} tracks")
    except Exception as reason:  # not installed, or its program cannot be downloaded
        print(f"  Perfetto's trace processor was not used: {reason.__class__.__name__}: {reason}")
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("program")
    parser.add_argument("--screenshots", type=pathlib.Path)
    parser.add_argument("--chromium", default=shutil.which("chromium") or shutil.which("google-chrome"))
    arguments = parser.parse_args()
    if not arguments.chromium:
        print("left out: no chromium on PATH; install the package chromium, or give --chromium PATH")
        sys.exit(77)  # ctest calls it skipped
    failed = False
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        for name, target, problem, schedule, absent in KERNELS:
            page, trace = scratch / f"{name}.html", scratch / f"{name}.json"
            call = ["inspect", *problem.split(), "--target", target, "--schedule", schedule, "--no-ptx", "--html", str(page)]
            run_program(arguments.program, [*call, "--timeline", str(trace)], str(scratch / "cache"))
            if name in WITH_PEERS:  # and with a time line that stands for a measured one
                peers = scratch / "bench.json"
                peers.write_text(json.dumps(peers_of(page)) + "\n")
                run_program(arguments.program, [*call, "--measured", str(trace), "--peers", str(peers)], str(scratch / "cache"))
            print(f"{name}: {page.stat().st_size // 1024} KiB")
            failures = check_page(arguments.chromium, page, absent) + check_timeline(trace)
            if arguments.screenshots:
                take_screenshots(arguments.chromium, page, arguments.screenshots.resolve())
            for failure in failures:
                print(f"  FAILED: {failure}")
            failed = failed or bool(failures)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
