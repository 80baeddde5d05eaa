"""The pictures of docs/performance/, each a function without arguments."""
import re

from drawing import INK
from performance.charts import BLUE, GREEN, ORANGE, Axis, Point, Row, Series, dot_plot, scatter
from performance.measured import (MEMORY_RATE, PRODUCT_RATE, SETS, extents, geometric_mean, grouped_models_rows, grouped_rows, label,
                                  lane_shift_layers, of_kind, ratio, rows_of, with_operands, with_sum, without_types, work)

TUNED, FIRST, FLOOR = Series("tuned", "dot", BLUE), Series("first choice, no trial", "ring", ORANGE), Series(
    "at the floor of memory and tensor core", "tick", INK)
RATIO = "the peer's time / ours: right of 1 laneshift is faster"

def summary_picture():
    rows = []
    for name, measured, _ in SETS:
        ratios = [ratio(row) for row in measured]
        first = [row["first_choice_ratio"] for row in measured if "first_choice_ratio" in row]
        mean = geometric_mean(ratios)
        rows.append(Row(f"{name}, {len(measured)} problems", [mean, geometric_mean(first) if first else None], f"{mean:.3f}",
                        (min(ratios), max(ratios))))
    for row in rows_of("other_problems_h200"):
        mean = row["geometric_mean"]
        rows.append(Row(row["what"].split(":")[0], [mean, row["first_choice_geometric_mean"]], f"{mean:.3f}",
                        (row["worst"], mean)))
    series = [Series("geometric mean, tuned", "dot", BLUE), Series("geometric mean of first choices", "ring", ORANGE)]
    return dot_plot("laneshift against its peers on an H200; lines from the worst to the best problem", rows, series,
                    Axis(RATIO, [0.7, 1, 1.5, 2, 3, 5, 8], 0.7, 9, log=True), left=440, reference=1)


def roofline_picture():
    series = [Series("GEMM, tuned", "dot", BLUE), Series("convolution, tuned", "square", ORANGE)]
    points = []
    for one, name in zip(series, ("gemm_bf16_h200", "conv_bf16_h200")):
        for row in rows_of(name):
            flop, size = work(row["problem"])
            points.append(Point(one, flop / size, flop / row["us"] / 1e6))
    ridge = PRODUCT_RATE / MEMORY_RATE
    return scatter("bf16 on an H200: what tuned kernels reach", points, series,
                   Axis("FLOP per byte of operands and result, each moved once", [1, 3, 10, 30, 100, 300, 1000, 3000], 0.8, 4000, True),
                   Axis("TFLOP/s", [2, 5, 10, 20, 50, 100, 200, 400, 800], 2, 1000, True),
                   [("", 0.8, 0.8 * MEMORY_RATE / 1e6, ridge, PRODUCT_RATE / 1e6),
                    ("800 TFLOP/s", ridge, PRODUCT_RATE / 1e6, 4000, PRODUCT_RATE / 1e6),
                    ("4.25 TB/s", 0.8, 0.8 * MEMORY_RATE / 1e6, 30, 30 * MEMORY_RATE / 1e6)], height=480)


def ratio_picture(title, name, axis):
    """A floor beyond the axis is left out."""
    return dot_plot(title, [
        Row(label(row["problem"]),
            [ratio(row), row["first_choice_ratio"], ratio(row, "floor_us") if ratio(row, "floor_us") < axis.high else None],
            f"{ratio(row):.3f}", low=ratio(row) < 1) for row in sorted(rows_of(name), key=ratio)
    ], [TUNED, FIRST, FLOOR], axis, reference=1)


def gemm_picture():
    return ratio_picture("bf16 GEMM (m × n × k) against cuBLAS on an H200", "gemm_bf16_h200",
                         Axis(RATIO, [0.9, 1, 1.1, 1.2, 1.3, 1.4, 1.5], 0.89, 1.52, log=True))


def conv_picture():
    return ratio_picture("bf16 convolution (n×h×w×c → k, r×s /stride) against cuDNN on an H200", "conv_bf16_h200",
                         Axis(RATIO, [0.7, 0.8, 1, 1.25, 1.5, 2, 3, 4], 0.68, 4.3, log=True))


def gradients_picture():
    series = [Series("of the input, tuned", "dot", BLUE), Series("of the filters, tuned", "square", ORANGE)]
    filters = {label(row["problem"]): ratio(row) for row in rows_of("conv_gradients_h200", of_kind("conv_wgrad"))}
    rows = sorted(rows_of("conv_gradients_h200", of_kind("conv_dgrad")), key=ratio)
    return dot_plot("bf16 gradients of convolutions (n×h×w×c → k, r×s /stride) against cuDNN on an H200", [
        Row(label(row["problem"]), [ratio(row), filters[label(row["problem"])]],
            f"{ratio(row):.3f} / {filters[label(row['problem'])]:.3f}", low=min(ratio(row), filters[label(row["problem"])]) < 0.95)
        for row in rows
    ], series, Axis(RATIO, [0.9, 1, 1.25, 1.5, 2, 3, 5, 8], 0.8, 9, log=True), right=120, reference=1)


def few_channels_picture():
    passes = {"conv": "y", "conv_dgrad": "dx", "conv_wgrad": "dw"}
    rows = rows_of("conv_few_channels_h200")
    return dot_plot("bf16 convolutions with groups of 4 to 32 channels against cuDNN on an H200", [
        Row(f"{label(row['problem'])}, {extents(row['problem'])['groups']} groups, {passes[row['problem'].split()[0]]}",
            [ratio(row), row["first_choice_ratio"]], f"{ratio(row):.3f}", low=ratio(row) < 1)
        for row in sorted(rows, key=ratio)
    ], [TUNED, FIRST], Axis(RATIO, [0.8, 1, 1.25, 1.5, 2], 0.78, 2.2, log=True), left=330, reference=1)


def gemv_picture():
    units = {unit: {row["problem"]: ratio(row) for row in rows_of("gemv_h100") if row["setting"] == unit}
             for unit in ("CUDA cores", "tensor cores")}
    series = [Series("CUDA cores", "dot", BLUE), Series("tensor cores", "square", ORANGE)]
    return dot_plot("GEMV (m × n × k) against cuBLAS on an H100", [
        Row(label(problem) + (", e4m3" if "a=e4m3" in problem else ""), [here, units["tensor cores"][problem]],
            f"{here:.3f} / {units['tensor cores'][problem]:.3f}", low=max(here, units["tensor cores"][problem]) < 1)
        for problem, here in units["CUDA cores"].items()
    ], series, Axis(RATIO, [0.6, 0.8, 1, 1.25], 0.5, 1.4, log=True), right=120, reference=1)


def layers_picture():
    """Of each layer the first choice and what tuning made of it."""
    series = [Series("first choice", "ring", ORANGE), Series("tuned", "dot", BLUE)]
    rows = sorted(rows_of("conv_layers_h200"), key=ratio)
    points = []
    for rank, row in enumerate(rows, 1):
        points.append(Point(series[0], rank, row["first_choice_ratio"]))
        points.append(Point(series[1], rank, ratio(row), f"{label(row['problem'])}: {ratio(row):.3f}" if rank <= 6 else ""))
    return scatter("82 convolution layers of five networks against cuDNN on an H200, sorted", points, series,
                   Axis("rank of the layer; numbers: the six lowest", [1, 20, 40, 60, 82], 0, 84),
                   Axis("cuDNN's time / ours: above 1 laneshift is faster", [0.8, 0.9, 1, 1.25, 1.5, 2, 3], 0.8, 3.9, True),
                   [("", 0, 1, 84, 1)], (110, 100), 460)


def unaligned_picture():
    series = [Series("packed first", "dot", BLUE), Series("copied by threads", "ring", ORANGE)]
    return dot_plot("bf16 GEMM whose rows are not TMA-addressable against cuBLAS on an H200", [
        Row(without_types(row["problem"]), [ratio(row), row["peer_us"] / row["copied_us"] if "copied_us" in row else None],
            f"{ratio(row):.2f}", low=ratio(row) < 1)
        for row in sorted(rows_of("gemm_unaligned_h200"), key=ratio)
    ], series, Axis(RATIO, [0.3, 0.5, 1, 2, 4, 6], 0.25, 8, log=True), reference=1, left=330)


def fp8_picture():
    series = [Series("sum=fast", "dot", BLUE), Series("sum=f32, promoted accumulators", "ring", ORANGE)]
    f32 = {label(row["problem"]): ratio(row) for row in rows_of("gemm_e4m3_h200", with_sum("f32"))}
    rows = sorted(rows_of("gemm_e4m3_h200", with_sum("fast")), key=lambda row: f32[label(row["problem"])])
    return dot_plot("e4m3 GEMM (m × n × k) against cuBLASLt on an H200", [
        Row(label(row["problem"]), [ratio(row), f32[label(row["problem"])]],
            f"{ratio(row):.3f} / {f32[label(row['problem'])]:.3f}", low=f32[label(row["problem"])] < 0.95) for row in rows
    ], series, Axis(RATIO, [0.9, 0.95, 1, 1.05, 1.1, 1.15], 0.87, 1.16, log=True), right=120, reference=1)


def fp8_block_picture(measured, setting, what="(m × n × k)", ticks=(0.8, 0.9, 1, 1.1, 1.2), ends=(0.76, 1.24)):
    series = [Series("tuned", "dot", BLUE), FIRST]
    rows = sorted(rows_of(measured), key=ratio)
    return dot_plot(f"e4m3 GEMM {what} with {setting} against DeepGEMM on an H200", [
        Row(label(row["problem"]), [ratio(row), row["first_choice_ratio"]], f"{ratio(row):.3f}", low=ratio(row) < 0.97)
        for row in rows
    ], series, Axis(RATIO, list(ticks), *ends, log=True), right=120, reference=1)


def grouped_picture(chip):
    series = [Series("e4m3, scale=block", "dot", BLUE), Series("bf16", "ring", ORANGE)]
    fp8, bf16 = ([row for row in grouped_rows(chip, of_fp8) if row["peer"] == "DeepGEMM"] for of_fp8 in (True, False))
    rows = [(row, [ratio(row), None]) for row in fp8] + [(row, [None, ratio(row)]) for row in bf16]
    return dot_plot(f"Grouped GEMM (groups × m × n × k) against DeepGEMM on an {chip.upper()}", [
        Row(label(row["problem"]), values, f"{ratio(row):.3f}", low=ratio(row) < 0.97) for row, values in sorted(rows, key=lambda r: ratio(r[0]))
    ], series, Axis(RATIO, [0.9, 1, 1.1, 1.2, 1.3, 1.4, 1.5], 0.88, 1.6, log=True), right=120, reference=1)


def grouped_models_picture():
    """First choices against DeepGEMM, a line for each shape."""
    of = {}
    for row in grouped_models_rows(lambda row: row["peer"] == "DeepGEMM"):
        of.setdefault(label(row["problem"]), {})["a=e4m3" in row["problem"]] = ratio(row)
    series = [Series("e4m3, scale=block", "dot", BLUE), Series("bf16", "ring", ORANGE)]
    return dot_plot("Grouped GEMM of models (groups × m × n × k), first choices against DeepGEMM on an H200", [
        Row(name, [values[True], values[False]], f"{values[True]:.3f}, {values[False]:.3f}", low=min(values.values()) < 0.97)
        for name, values in sorted(of.items(), key=lambda item: min(item[1].values()))
    ], series, Axis(RATIO, [0.9, 1, 1.1, 1.2, 1.3], 0.87, 1.34, log=True), right=120, reference=1)


def operand_types_picture():
    series = [Series("s8, sums in s32", "dot", BLUE), Series("tf32", "ring", ORANGE)]
    tf32 = {label(row["problem"]): ratio(row) for row in rows_of("gemm_tf32_s8_h200", with_operands("tf32"))}
    rows = sorted(rows_of("gemm_tf32_s8_h200", with_operands("s8")), key=lambda row: tf32[label(row["problem"])])
    return dot_plot("s8 and tf32 GEMM (m × n × k) against cuBLASLt on an H200", [
        Row(label(row["problem"]), [ratio(row), tf32[label(row["problem"])]],
            f"{ratio(row):.3f} / {tf32[label(row['problem'])]:.3f}", low=tf32[label(row["problem"])] < 0.95) for row in rows
    ], series, Axis(RATIO, [0.9, 1, 1.1, 1.2, 1.3, 1.4], 0.88, 1.45, log=True), right=120, reference=1)


def sparse_picture():
    rows = [Row(re.sub(r"^gemm | [bd]=\w+| sparse=a", "", row["problem"]), [ratio(row)], f"{ratio(row):.2f}", low=ratio(row) < 1)
            for row in rows_of("gemm_sparse_h200")]
    return dot_plot("GEMM with a 2:4 sparse A against the dense one on an H200", rows, [Series("tuned", "dot", BLUE)],
                    Axis("dense time / sparse time: above 1 sparse is faster", [1, 1.2, 1.4, 1.6, 1.8, 2], 0.95, 2.05), left=330, reference=1)


def nvfp4_picture():
    rows = [Row(nvfp4_label(row["problem"]), [ratio(row)], f"{ratio(row):.2f}", low=ratio(row) < 1 / 1.5)
            for row in rows_of("nvfp4_b200_predicted")]
    return dot_plot("NVFP4 on a B200, predicted: the problems of GPU MODE's contest", rows, [Series("predicted", "dot", BLUE)],
                    Axis("speed of light / predicted time, both without a launch", [0.2, 0.4, 0.6, 0.8, 1], 0.2, 1.05),
                    left=330, reference=1)


def nvfp4_label(problem):
    return re.sub(r" (a=e2m1|scale=nv)", "", problem)


def chains_picture():
    settings = {"tuned": Series("plain launches, tuned", "ring", ORANGE),
                "tuned, programmatic launch": Series("programmatic launches, tuned", "square", GREEN),
                "first choice, constant=b": Series("constant=b, first choices (2026-11-28)", "tick", BLUE),
                "tuned, constant=b": Series("constant=b, tuned (2026-11-28)", "dot", BLUE)}
    layers = {}
    for row in [*rows_of("chains_h200"), *rows_of("chains_early_h200")]:
        if "ratio" in row:
            layers.setdefault(row["what"], {})[row["setting"]] = ratio(row)
    return dot_plot("16 layers of GEMMs in one CUDA graph against the same graph of cuBLAS calls, on an H200", [
        Row(what, [ratios[setting] for setting in settings], " / ".join(f"{ratios[setting]:.3f}" for setting in settings))
        for what, ratios in layers.items()
    ], list(settings.values()), Axis(RATIO, [0.94, 0.96, 0.98, 1, 1.02, 1.04, 1.06, 1.08, 1.1, 1.12, 1.14], 0.935, 1.16, log=True), right=200,
                    reference=1)


def lane_shift_picture():
    series = [Series("1 clock a shift", "dot", BLUE), Series("4", "square", GREEN), Series("16", "ring", ORANGE)]
    layers = lane_shift_layers()
    return dot_plot("reuse=lane_shift on a B200, predicted, by the clocks that a shift takes", [
        Row(lane_shift_label(problem), [ratio(row) for row in rows], " / ".join(f"{ratio(row):.2f}" for row in rows),
            low=max(map(ratio, rows)) < 1) for problem, rows in layers
    ], series, Axis("the fastest other mode's time / lane_shift's: above 1 lanes are worth shifting", [0.25, 0.5, 0.75, 1, 1.25, 1.5],
                    0.24, 1.6, log=True), left=380, right=130, reference=1)


def lane_shift_label(problem):
    return re.sub(r"^conv | pad=\S+", "", problem)


def epilogue_picture():
    series = [Series("cuBLASLt's first algorithm", "dot", BLUE), Series("its fastest algorithm", "ring", ORANGE)]
    rows = {}
    for row in rows_of("epilogues_h200"):
        base, _, steps = row["problem"].partition(" epilogue=")
        key = f"{label(base)}, {steps or 'plain'}"
        rows.setdefault(key, [None, None])[1 if "fastest" in row["peer"] else 0] = row["ratio"]
    lowest = {key: min(value for value in values if value is not None) for key, values in rows.items()}
    return dot_plot("bf16 GEMM with an epilogue against cuBLASLt's own epilogue on an H200", [
        Row(key, rows[key], " / ".join(f"{value:.3f}" for value in rows[key] if value is not None), low=lowest[key] < 1)
        for key in sorted(rows, key=lowest.get)
    ], series, Axis(RATIO, [1, 1.05, 1.1, 1.15, 1.2], 0.97, 1.21, log=True), left=290, right=120, reference=1)


def epilogue_cost_picture():
    series = [Series("numerics=default", "dot", BLUE), Series("numerics=deterministic", "square", ORANGE)]
    rows = {}
    for row in rows_of("epilogue_cost_h200"):
        steps = row.get("what") or row["problem"].partition("epilogue=")[2].split()[0]
        values, span = rows.setdefault(steps, ([None, None], None))
        if "low" in row:
            rows[steps] = (values, (row["low"], row["high"]))
        else:
            values["deterministic" in row["problem"]] = row["value"]
    return dot_plot("What the steps of an epilogue cost at 4096 × 4096 × 4096 on an H200", [
        Row(steps, values, cost_text(values, span), span) for steps, (values, span) in rows.items()
    ], series, Axis("% of the plain product's time", [0, 2, 4, 6, 8, 10, 12, 14], 0, 14.5), left=440, right=110)


def cost_text(values, span):
    known = [f"{value:g}" for value in values if value is not None]
    return (f"{span[0]:g} to {span[1]:g}" if span else ", ".join(known)) + " %"


def tuning_picture():
    series = [Series("best of 16 trials", "dot", BLUE), FIRST]
    return dot_plot("Time over that of the best schedule of exhaustive search, on an H200", [
        Row(label(row["problem"]), [row["loss"], row["first_choice_loss"]], f"{row['loss']:.3f} / {row['first_choice_loss']:.3f}",
            low=max(row["loss"], row["first_choice_loss"]) > 1.05)
        for row in sorted(rows_of("tuning_h200"), key=lambda row: -max(row["loss"], row["first_choice_loss"]))
    ], series, Axis("time / best time; below 1 is noise between two runs", [0.96, 0.98, 1, 1.02, 1.04, 1.06, 1.08, 1.1], 0.96, 1.11),
                    right=120, reference=1)


def l2_picture():
    ours, peer = Series("laneshift's schedules", "dot", BLUE), Series("the peers' kernels", "square", ORANGE)
    points = [
        Point(ours, row["l2_mb"], row["us"], row["schedule"]) if "us" in row else
        Point(peer, row["peer_l2_mb"], row["peer_us"], f"{row['peer']}: {row['peer_kernel']}") for row in rows_of("l2_h200")
    ]
    return scatter("gemm m=200 n=4096 k=4096 on an H200: the time follows the bytes that reach L2", points, [ours, peer],
                   Axis("MB at L2", [0, 50, 100, 150, 200], 0, 240), Axis("us", [0, 5, 10, 15, 20, 25, 30], 0, 32), (),
                   (560, 215))


# Settings on one line of the picture, the first as a dot, the second as a ring.
PAIRS = {"sm_90a": 0, "sm_100a": 1, "empty store": 0, "again": 1, "same buffers": 0, "64 sets of buffers": 1}


def us_of(row):
    """The least, where a row has a range."""
    return row.get("value", row.get("low")) * {"ns": 1e-3, "us": 1, "ms": 1e3, "s": 1e6}[row["unit"]]


def plan_picture():
    values, texts = {}, {}
    for name in ("plan_host", "choice_host", "compile_host", "compile_h200", "user_function_host"):
        for row in rows_of(name):
            setting = row.get("setting", "")
            parts = [row["what"], plan_problem(row), "" if setting in PAIRS else setting, "H200" if name == "compile_h200" else ""]
            what = ", ".join(part for part in parts if part)
            values.setdefault(what, [None, None])[PAIRS.get(setting, 0)] = us_of(row)
            written = f"{row['value']:g}" if "value" in row else f"{row['low']:g} to {row['high']:g}"
            texts.setdefault(what, []).append(f"{written} {row['unit']}")
    rows = [Row(what, values[what], " / ".join(texts[what]).replace(" ms / ", " / ").replace(" us / ", " / "))
            for what in sorted(values, key=lambda what: values[what][0])]
    series = [Series("same buffers; sm_90a; empty store", "dot", BLUE), Series("64 sets of buffers; sm_100a; again", "ring", ORANGE)]
    ticks = {0.001: "1 ns", 0.1: "100 ns", 10: "10 us", 1000: "1 ms", 100000: "100 ms"}
    return dot_plot("What a launch, a plan and a kernel cost the host", rows, series,
                    Axis("time (logarithmic)", list(ticks), 0.001, 200000, True, ticks.get), left=460, right=120)


def plan_problem(row):
    """The problem of a row in a few characters."""
    problem = row.get("problem", "")
    if "epilogue=" in problem:
        return problem.partition("epilogue=")[2]
    if problem.startswith("conv"):
        return "conv"
    return f"gemm m={extents(problem)['m']}" if problem else ""


def emulator_picture():
    series = [Series("hardware arithmetic", "dot", BLUE), Series("fast arithmetic", "square", ORANGE)]
    rows = {}
    for row in rows_of("emulator_tensor_host"):
        rows.setdefault(row["what"], {})[row["setting"]] = row["value"]
    return dot_plot("The emulator's tensor core, one host thread", [
        Row(what, [values[one.name] for one in series], f"{values[series[0].name]:g} / {values[series[1].name]:g}")
        for what, values in rows.items()
    ], series, Axis("GFLOP/s (logarithmic)", [1, 2, 5, 10, 20, 40], 1, 40, True), left=320, right=90)


PICTURES = {
    "summary": summary_picture,
    "roofline": roofline_picture,
    "gemm": gemm_picture,
    "gemm_unaligned": unaligned_picture,
    "convolution": conv_picture,
    "gradients": gradients_picture,
    "convolution_layers": layers_picture,
    "few_channels": few_channels_picture,
    "gemv": gemv_picture,
    "fp8": fp8_picture,
    "fp8_block": lambda: fp8_block_picture("gemm_fp8_block_h200", "scale=block"),
    "fp8_block_constant": lambda: fp8_block_picture("gemm_fp8_block_constant_h200", "scale=block constant=b"),
    "grouped_models": grouped_models_picture,
    "fp8_block_odd": lambda: fp8_block_picture("fp8_block_odd_h200", "scale=block", "([groups ×] m × n × k)",
                                               (0.9, 1, 1.1, 1.2, 1.3), (0.9, 1.35)),
    "grouped": lambda: grouped_picture("h200"),
    "grouped_h100": lambda: grouped_picture("h100"),
    "sparse": sparse_picture,
    "operand_types": operand_types_picture,
    "nvfp4": nvfp4_picture,
    "lane_shift": lane_shift_picture,
    "chains": chains_picture,
    "epilogues": epilogue_picture,
    "epilogue_cost": epilogue_cost_picture,
    "tuning": tuning_picture,
    "l2": l2_picture,
    "plan": plan_picture,
    "emulator": emulator_picture,
}
