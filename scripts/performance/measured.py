"""The measurements of bench/measured/*.json, whose schema bench/measured/README.md explains."""
import json
import math
import pathlib
import re
import sys

DIRECTORY = pathlib.Path(__file__).resolve().parents[2] / "bench" / "measured"

REQUIRED = {"title", "device", "driver", "date", "revision", "commands", "rows"}
OPTIONAL = {"libraries", "notes"}
TEXT = {"problem", "what", "setting", "schedule", "peer", "peer_kernel", "unit", "notes"}
NUMBERS = {
    "us", "best_us", "copied_us", "floor_us", "peer_us", "ratio", "first_choice_ratio", "loss", "first_choice_loss",
    "rank_correlation", "schedules", "relative_error", "value", "low", "high", "l2_mb", "minstructions", "peer_l2_mb",
    "peer_minstructions", "problems", "geometric_mean", "worst", "first_choice_geometric_mean", "first_choice_worst",
}

# The basis of the floor of an H200, in bytes/us, FLOP/us and us (bench/measured/README.md).
MEMORY_RATE, PRODUCT_RATE, LAUNCH_US = 4.25e6, 800e6, 4.4


class Measurement:
    """One file: `head` is all but the rows."""

    def __init__(self, name):
        self.name, self.path = name, f"bench/measured/{name}.json"
        try:
            self.head = json.loads((DIRECTORY / f"{name}.json").read_text(encoding="utf-8"))
            self.rows = self.head.pop("rows")
        except (OSError, ValueError, KeyError) as error:
            sys.exit(f"{self.path}: not an object with rows ({type(error).__name__}: {error})")

    def mistakes(self):
        """What is wrong with the file, a line each."""
        keys = set(self.head) | {"rows"}
        for key in sorted(REQUIRED - keys):
            yield f"{self.path}: no {key}"
        for key in sorted(keys - REQUIRED - OPTIONAL):
            yield f"{self.path}: unknown key {key}"
        if not re.fullmatch(r"\d{4}-\d\d-\d\d", self.head.get("date", "")):
            yield f"{self.path}: date is not YYYY-MM-DD"
        for number, row in enumerate(self.rows, 1):
            for mistake in mistakes_of(row):
                yield f"{self.path}: row {number}: {mistake}"


def mistakes_of(row):
    for key, value in row.items():
        if key not in TEXT | NUMBERS:
            yield f"unknown key {key}"
        elif not isinstance(value, str if key in TEXT else (int, float)):
            yield f"{key} is {value!r}"
    if not {"problem", "what"} & set(row):
        yield "names neither problem nor what"
    if {"us", "peer_us", "ratio"} <= set(row):
        # All three are rounded, times to 0.1 us and ratios to two or three decimals.
        error = row["ratio"] * (0.05 / row["us"] + 0.05 / row["peer_us"]) + 0.006
        if abs(row["peer_us"] / row["us"] - row["ratio"]) > error:
            yield f"ratio {row['ratio']} is not peer_us / us = {row['peer_us'] / row['us']:.3f}"
    if "floor_us" in row and abs(floor_us(row["problem"]) - row["floor_us"]) > 0.06:
        yield f"floor_us {row['floor_us']} is not {floor_us(row['problem']):.1f}"


def undocumented():
    """Keys that bench/measured/README.md does not explain, a line each."""
    text = (DIRECTORY / "README.md").read_text(encoding="utf-8")
    for key in sorted(REQUIRED | OPTIONAL | TEXT | NUMBERS):
        if f"`{key}`" not in text:
            yield f"bench/measured/README.md does not explain {key}"


def names():
    return sorted(path.stem for path in DIRECTORY.glob("*.json"))


def extents(problem):
    """The sizes of a problem; where they are not one number, as in pad=0,3, their text. w=56 is one, w=bf16 is not."""
    values = (word.split("=", 1) for word in problem.split()[1:])
    return {key: int(value) if value.isdigit() else value for key, value in values if value[0].isdigit()}


def outputs(e):
    """Rows of the implicit GEMM of a convolution, whose padding and stride are the same in all dimensions or named for each."""
    count = e["n"]
    taps = {"d": "t", "h": "r", "w": "s"}
    present = [axis for axis in "dhw" if axis in e]
    for index, axis in enumerate(present):
        pad, stride, dilation = (of_axis(e.get(key, default), index) for key, default in
                                 (("pad", 0), ("stride", 1), ("dilation", 1)))
        reach = (e.get(taps[axis], 1) - 1) * dilation + 1
        count *= (e[axis] + 2 * pad - reach) // stride + 1
    return count


def of_axis(value, index):
    return value if isinstance(value, int) else int(value.split(",")[index])


def work(problem):
    """(FLOP, bytes read and written once) of a problem of 16-bit operands and results."""
    e = extents(problem)
    if problem.startswith("gemm"):
        m, n, k, batch = e["m"], e["n"], e["k"], e.get("batch", 1)
        return 2 * batch * m * n * k, 2 * batch * (m * k + n * k + m * n)
    taps = e.get("t", 1) * e["r"] * e["s"]
    pixels = math.prod(e[axis] for axis in "ndhw" if axis in e)
    rows = outputs(e)
    return 2 * rows * e["k"] * e["c"] * taps, 2 * (pixels * e["c"] + e["k"] * e["c"] * taps + rows * e["k"])


def floor_us(problem):
    flop, size = work(problem)
    return max(size / MEMORY_RATE, flop / PRODUCT_RATE) + LAUNCH_US


def without_types(problem):
    """A problem without its kind and the types common to all rows of a table."""
    return " ".join(word for word in problem.split()[1:] if not re.fullmatch(r"[abdxwy]=\w*[a-z]\w*", word))


def label(problem):
    """A problem in a picture: m x n x k, of groups their number before it, or n x h x w x c -> k, filter."""
    e = extents(problem)
    if problem.startswith("grouped_gemm"):
        layout = re.search(r"layout=(\w+)", problem)
        return f"{e['groups']} × {e['m']} × {e['n']} × {e['k']}" + (f", {layout[1]}" if layout else "")
    if problem.startswith("gemm"):
        return f"{e['m']} × {e['n']} × {e['k']}" + (f" × {e['batch']}" if "batch" in e else "")
    image = "×".join(str(e[axis]) for axis in "ndhwc" if axis in e)
    taps = "×".join(str(e[axis]) for axis in "trs" if axis in e)
    extra = f" /{e['stride']}" if "stride" in e else ""
    return f"{image} → {e['k']}, {taps}{extra}" + (f" dil. {e['dilation']}" if "dilation" in e else "")


def geometric_mean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values))


MEASURED = {name: Measurement(name) for name in names()}


def rows_of(name, keep=lambda row: True):
    return [row for row in MEASURED[name].rows if keep(row)]


def rows_of_all(names, keep):
    return [row for name in names for row in rows_of(name, keep)]


def grouped_models_rows(keep):
    """Of both types, which were measured at different revisions."""
    return rows_of_all(("grouped_models_h200", "grouped_models_bf16_h200", "grouped_models_few_bf16_h200"), keep)


def ratio(row, key="us"):
    """The peer's time over ours: above 1 we are faster."""
    return row["ratio"] if "ratio" in row and key == "us" else row["peer_us"] / row[key]


def is_small(row):
    return extents(row["problem"])["m"] <= 128


def with_operands(kind):
    return lambda row: f" a={kind} " in row["problem"]


def with_sum(kind):
    return lambda row: f"sum={kind}" in row["problem"]


def of_kind(kind):
    return lambda row: row["problem"].startswith(kind + " ")


# Grouped GEMMs on a chip, in one measurement or several.
GROUPED = {"h200": ["grouped_fp8_block_h200", "grouped_h200", "grouped_few_bf16_h200", "grouped_masked_k_bf16_h200"],
           "h100": ["grouped_fp8_block_h100", "grouped_bf16_h100"]}


def grouped_rows(chip, of_fp8):
    return rows_of_all(GROUPED[chip], lambda row: ("a=e4m3" in row["problem"]) == of_fp8)


# Sets of them: types, layout, peer.
def grouped_sets(chip):
    sets = []
    for types, of_fp8 in (("e4m3, scale=block", True), ("bf16", False)):
        for layout in ("contiguous", "masked", "k"):
            of = [row for row in grouped_rows(chip, of_fp8)
                  if (re.search(r"layout=(\w+)", row["problem"]) or ["", "contiguous"])[1] == layout]
            for peer in dict.fromkeys(row["peer"] for row in of):
                rows = [row for row in of if row["peer"] == peer]
                sets.append((f"{types}, {'layout=' if layout == 'k' else ''}{layout}, against {peer}", rows))
    return sets


# The sets of the summary: name, rows, page.
SETS = [
    ("bf16 GEMM", rows_of("gemm_bf16_h200"), "gemm-h200.md"),
    ("of these m <= 128", rows_of("gemm_bf16_h200", is_small), "gemm-h200.md"),
    ("bf16 GEMM of models and benchmarks", rows_of("gemm_workloads_h200"), "gemm-h200.md"),
    ("layers of Llama-3-8B in a CUDA graph", rows_of("chains_early_h200", lambda row: row["setting"].startswith("tuned")), "chains-h200.md"),
    ("bf16 convolution", rows_of("conv_bf16_h200"), "convolution-h200.md"),
    ("bf16 convolution layers", rows_of("conv_layers_h200"), "convolution-h200.md"),
    ("convolution, epilogue", rows_of("conv_fused_h200"), "convolution-h200.md"),
    ("bf16 dgrad", rows_of("conv_gradients_h200", of_kind("conv_dgrad")), "gradients-h200.md"),
    ("bf16 wgrad", rows_of("conv_gradients_h200", of_kind("conv_wgrad")), "gradients-h200.md"),
    ("e4m3 GEMM, sum=fast", rows_of("gemm_e4m3_h200", with_sum("fast")), "fp8-h200.md"),
    ("e4m3 GEMM, sum=f32", rows_of("gemm_e4m3_h200", with_sum("f32")), "fp8-h200.md"),
    ("e4m3 GEMM, scale=block, against DeepGEMM", rows_of("gemm_fp8_block_h200"), "fp8-h200.md"),
    ("the same, constant=b, calls in a row", rows_of("gemm_fp8_block_constant_h200"), "fp8-h200.md"),
    ("e4m3, scale=block, other m and k, against DeepGEMM", rows_of("fp8_block_odd_h200"), "fp8-h200.md"),
    *((f"grouped {name.replace(', scale=block', '')}", rows, "grouped-h200.md") for name, rows in grouped_sets("h200")),
]


def lane_shift_layers():
    """Of each layer its rows by the cost of a shift; best layers first."""
    layers = {}
    for row in rows_of("lane_shift_b200_predicted"):
        layers.setdefault(row["problem"], []).append(row)
    return sorted(layers.items(), key=lambda layer: -ratio(layer[1][0]))
