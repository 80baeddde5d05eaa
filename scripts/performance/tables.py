"""The tables of docs/performance/, each a function without arguments that returns lines of Markdown."""
import math
import re

from performance.measured import (MEASURED, SETS, extents, geometric_mean, grouped_models_rows, grouped_rows, grouped_sets, is_small, lane_shift_layers,
                                  of_kind, ratio, rows_of, with_operands, with_sum, without_types)


def table(columns, rows):
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return lines + ["| " + " | ".join("" if cell is None else str(cell) for cell in row) + " |" for row in rows]


def code(text):
    return f"`{text}`"


def mean_and_worst(ratios):
    return f"{geometric_mean(ratios):.3f}, {min(ratios):.3f}"


def first_choices(rows):
    ratios = [row["first_choice_ratio"] for row in rows if "first_choice_ratio" in row]
    return mean_and_worst(ratios) if ratios else ""


def groups(named, floors=True):
    """A line for each (name, rows)."""
    lines = []
    for name, rows in named:
        ratios = [ratio(row) for row in rows]
        best = f"{geometric_mean(ratio(row, 'floor_us') for row in rows):.2f}" if floors else ""
        lines.append([name, len(rows), *mean_and_worst(ratios).split(", "), first_choices(rows), best])
    columns = ["problems", "number", "geometric mean", "worst", "first choices: mean, worst", "at the floor"]
    return table(columns, lines) if floors else [line.rsplit("|", 2)[0] + "|" for line in table(columns, lines)]


def below(rows, limit, peer):
    """The rows whose ratio is below `limit`, the worst first, with their floors if these are known."""
    rows = [row for row in sorted(rows, key=ratio) if ratio(row) < limit]
    floors = any("floor_us" in row for row in rows)
    return table(["problem", "schedule", "us", *["floor us"] * floors, f"{peer} us", f"{peer} / ours"],
                 [[code(without_types(row["problem"])), code(row["schedule"]), row["us"], *[row.get("floor_us")] * floors,
                   row["peer_us"], f"{ratio(row):.3f}"] for row in rows])


def summary():
    lines = []
    for name, rows, page in SETS:
        lines.append([f"[{name}]({page})", len(rows), *mean_and_worst([ratio(row) for row in rows]).split(", "),
                      first_choices(rows)])
    for row in rows_of("other_problems_h200"):
        first = f"{row['first_choice_geometric_mean']:.3f}, {row['first_choice_worst']:.3f}"
        lines.append([row["what"].split(" ", 1)[1], row["problems"], f"{row['geometric_mean']:.3f}", f"{row['worst']:.3f}", first])
    return table(["tuned on an H200", "problems", "geometric mean", "worst", "first choices: mean, worst"], lines)


def gemm_groups():
    rows = rows_of("gemm_bf16_h200")
    of = {name: [row for row in rows if keep(extents(row["problem"])["m"])] for name, keep in {
        "m = 1 and 16": lambda m: m <= 16, "m = 64 and 128": lambda m: 64 <= m <= 128, "m = 256": lambda m: m == 256,
        "m >= 1024": lambda m: m >= 1024}.items()}
    return groups([("all", rows), ("m <= 128", [row for row in rows if is_small(row)]), *of.items()])


def gemm_below():
    return below(rows_of("gemm_bf16_h200"), 1, "cuBLAS")


def gemm_variants():
    return table(["problem", "us", "cuBLAS / ours", "relative error", ""],
                 [[code(row["problem"]), row["us"], f"{row['ratio']:.3f}", f"{row['relative_error']:.2e}", row.get("notes")]
                  for row in rows_of("gemm_variants_h200")])


def gemm_unaligned():
    return table(["problem", "schedule", "us", "copied by threads, us", "cuBLAS us", "cuBLAS / ours"],
                 [[code(without_types(row["problem"])), code(row["schedule"]), row["us"], row.get("copied_us"), row["peer_us"],
                   f"{row['ratio']:.2f}"] for row in rows_of("gemm_unaligned_h200")])


def clusters():
    times = {}
    for row in rows_of("clusters_h200"):
        cluster = row["schedule"].split("cluster=")[1]
        times.setdefault(without_types(row["problem"]), {}).setdefault(cluster, []).append(str(row["us"]))
    shapes = ["1x1", "2x1", "1x2", "2x2"]
    return table(["us, two runs"] + [code(f"cluster={shape}") for shape in shapes],
                 [[code(problem)] + [", ".join(of[shape]) for shape in shapes] for problem, of in times.items()])


def profiles(kind):
    """Of each side: us, MB that leave L2, million warp instructions."""
    return table(["problem", "ours: us, L2 MB, 10^6 instructions", "the peer's", "the peer's kernel", "what is busy"],
                 [[code(without_types(row["problem"])), f"{row['us']}, {row['l2_mb']}, {row['minstructions']}",
                   f"{row['peer_us']}, {row['peer_l2_mb']}, {row['peer_minstructions']}", row["peer_kernel"], row["notes"]]
                  for row in rows_of("profiles_h200") if row["problem"].startswith(kind)])


def is_pointwise(row):
    sizes = extents(row["problem"])
    return sizes["r"] * sizes["s"] == 1


def conv_groups():
    rows = rows_of("conv_bf16_h200")
    channels = {row["problem"]: extents(row["problem"])["c"] for row in rows}
    return groups([
        ("all", rows),
        ("1x1 filters", [row for row in rows if is_pointwise(row)]),
        ("larger filters", [row for row in rows if not is_pointwise(row) and channels[row["problem"]] > 3]),
        ("the RGB stem, 7x7, stride 2", [row for row in rows if channels[row["problem"]] == 3]),
    ])


def conv_below():
    return below(rows_of("conv_bf16_h200"), 1, "cuDNN")


def gradient_groups():
    named = []
    for name, kind in (("of the input", "conv_dgrad"), ("of the filters", "conv_wgrad")):
        rows = rows_of("conv_gradients_h200", of_kind(kind))
        channels = {row["problem"]: extents(row["problem"])["c"] for row in rows}
        named += [(name, rows), (f"{name}, without the RGB stem", [row for row in rows if channels[row["problem"]] > 3])]
    rows = rows_of("conv_gradients_h200")
    named += [("the RGB stem, both", [row for row in rows if extents(row["problem"])["c"] == 3]),
              ("three dimensions, both", [row for row in rows if "d" in extents(row["problem"])])]
    return groups(named, floors=False)


def against_cudnn(rows):
    return table(["problem", "schedule", "us", "cuDNN us", "cuDNN / ours"],
                 [[code(row["problem"]), code(row["schedule"]), row["us"], row["peer_us"], f"{ratio(row):.3f}"] for row in rows])


def groups_by_kind(name, kinds, with_all=False):
    everything = [("all", rows_of(name))] if with_all else []
    return groups(everything + [(text, rows_of(name, of_kind(kind))) for text, kind in kinds], floors=False)


def gradients_below():
    return against_cudnn([row for row in sorted(rows_of("conv_gradients_h200"), key=ratio) if ratio(row) < 0.97])


def depthwise():
    return against_cudnn(rows_of("conv_depthwise_h200"))


def depthwise_groups():
    return groups_by_kind("conv_depthwise_h200", (("forward", "conv"), ("gradient of the input", "conv_dgrad"),
                                                  ("gradient of the filters", "conv_wgrad")), with_all=True)


def gemv():
    rows = rows_of("gemv_h100")
    return table(["problem", "on", "schedule", "us", "cuBLAS us", "cuBLAS / ours"],
                 [[code(row["problem"]), row["setting"], code(row["schedule"]), row["us"], row["peer_us"], f"{ratio(row):.3f}"]
                  for row in rows])


def gemv_groups():
    rows = rows_of("gemv_h100")
    return groups([(f"{unit}, m={m}, {'e4m3' if narrow else 'bf16'}",
                    [row for row in rows if row["setting"] == unit and extents(row["problem"])["m"] == m
                     and ("a=e4m3" in row["problem"]) == narrow])
                   for m in (1, 4) for narrow in (False, True) for unit in ("CUDA cores", "tensor cores")], floors=False)


def few_channels():
    return against_cudnn(rows_of("conv_few_channels_h200"))


def few_channels_groups():
    return groups_by_kind("conv_few_channels_h200", (("forward", "conv"), ("gradient of the input", "conv_dgrad"),
                                                     ("gradient of the filters", "conv_wgrad")))


def fp8_promotion():
    found = {}
    for row in rows_of("fp8_promotion_h200"):
        found.setdefault(row["problem"], {})[row["setting"]] = row
    return table(["problem", "chosen before", "us", "chosen now", "us", "before / now"],
                 [[code(problem), code(of["before"]["schedule"]), of["before"]["us"], code(of["now"]["schedule"]), of["now"]["us"],
                   f"{of['before']['us'] / of['now']['us']:.2f}"] for problem, of in found.items()])


def conv_layers():
    rows = rows_of("conv_layers_h200")
    with_forward = {row["problem"]: row for name in ("conv_bf16_h200", "conv_layers_h200") for row in rows_of(name)}
    return groups([("the layers", rows), ("of these 1x1 filters", [row for row in rows if is_pointwise(row)]),
                   ("with the problems above, each once", list(with_forward.values()))], floors=False)


def conv_fused():
    return against_cudnn(rows_of("conv_fused_h200"))


def conv_fused_groups():
    return groups([("with an epilogue", rows_of("conv_fused_h200"))], floors=False)


def fp8_groups():
    of = []
    for kind in ("fast", "f32"):
        rows = rows_of("gemm_e4m3_h200", with_sum(kind))
        of += [(code(f"sum={kind}"), rows), (code(f"sum={kind}") + ", m <= 128", [row for row in rows if is_small(row)]),
               (code(f"sum={kind}") + ", m >= 256", [row for row in rows if not is_small(row)])]
    return table(["problems", "number", "geometric mean", "worst"],
                 [[name, len(rows), *mean_and_worst([ratio(row) for row in rows]).split(", ")] for name, rows in of])


def nvfp4_predicted():
    return table(["problem", "schedule", "us", "binds", "speed of light, us", "times"],
                 [[code(re.sub(r" (a=e2m1|scale=nv)", "", row["problem"])), code(row["schedule"]), row["us"], row["notes"],
                   row["peer_us"], f"{row['us'] / row['peer_us']:.2f}"] for row in rows_of("nvfp4_b200_predicted")])


def dense_kinds_predicted():
    return table(["instruction", "operands", "schedule", "us", "tensor core busy", "most of the rest"],
                 [[code(row["what"]), code(row["problem"].split("k=8192 ")[1]), code(row["schedule"]), row["us"],
                   f"{100 * row['value']:.0f}%", row["notes"]] for row in rows_of("dense_kinds_b200_predicted")])


def layers_of_chains(measurement):
    return table(["chain", "setting", "us of a layer", "cuBLAS us", "ratio"],
                 [[row["what"], row["setting"], row["us"], row["peer_us"], f"{row['ratio']:.3f}"]
                  for row in rows_of(measurement) if "ratio" in row])


def chains():
    return layers_of_chains("chains_h200")


def chains_early():
    return layers_of_chains("chains_early_h200")


def chain_schedules():
    return table(["chain", "schedule", "setting", "us"],
                 [[row["what"], code(row["schedule"]), row["setting"], row["us"]]
                  for row in rows_of("chains_h200") if "schedule" in row])


def chain_schedules_early():
    """A line for each problem, its schedules with the fastest first."""
    of = {}
    for row in rows_of("chain_gemms_h200"):
        of.setdefault(row["what"], []).append(row)
    return table(["GEMM, 16 alike", "us of one, by schedule"],
                 [[code(what), ", ".join(f"{row['us']:.2f} {code(row['schedule'])}" for row in sorted(rows, key=lambda r: r["us"]))]
                  for what, rows in of.items()])


def workload_groups():
    rows = rows_of("gemm_workloads_h200")
    aligned = [row for row in rows if all(extents(row["problem"])[axis] % 8 == 0 for axis in "nk")]
    return groups([("all", rows), ("rows of 16 bytes", aligned),
                   *((name, [row for row in aligned if keep(extents(row["problem"])["m"])]) for name, keep in {
                       "of these m <= 64": lambda m: m <= 64, "of these m = 192 to 512": lambda m: 128 < m <= 512,
                       "of these m >= 1024": lambda m: m >= 1024}.items())], floors=False)


def workloads_below():
    return below(rows_of("gemm_workloads_h200"), 0.98, "cuBLASLt")


def lane_shift_predicted():
    """The layers on which some cost of a shift lets lane_shift win."""
    return table(["layer", "lane_shift, us at 1 clock", "its form", "other modes, us", "the best of them",
                  "times faster at 1 / 4 / 16 clocks"],
                 [[code(problem), rows[0]["us"], code(rows[0]["schedule"]), rows[0]["peer_us"], code(rows[0]["peer"]),
                   " / ".join(f"{row['ratio']:.2f}" for row in rows)]
                  for problem, rows in lane_shift_layers() if max(row["ratio"] for row in rows) > 1])


def operand_types_groups():
    of = []
    for kind in ("tf32", "s8"):
        rows = rows_of("gemm_tf32_s8_h200", with_operands(kind))
        of += [(kind, rows), (f"{kind}, m <= 128", [row for row in rows if is_small(row)]),
               (f"{kind}, m >= 256", [row for row in rows if not is_small(row)])]
    return groups(of, floors=False)


def gemm_sparse():
    return table(["problem", "schedule", "us", "TFLOP/s", "dense us", "dense / sparse"],
                 [[code(row["problem"].removeprefix("gemm ")), code(row["schedule"]), row["us"], f"{tflops(row):.0f}", row["peer_us"],
                   f"{ratio(row):.2f}"] for row in rows_of("gemm_sparse_h200")])


def gemm_pieces():
    """A line for each problem: the time of each way to load its operands."""
    ways, of = ["async", "pack", "copy"], {}
    for row in rows_of("gemm_pieces_h200"):
        of.setdefault(row["problem"], {})[row["setting"]] = row
    return table(["problem", "`async`, us", "`pack`, us", "`copy`, us", "cuBLAS us", "cuBLAS / the faster"],
                 [[code(problem.removeprefix("gemm ")), *(rows[way]["us"] for way in ways), rows["async"]["peer_us"],
                   f"{max(ratio(row) for row in rows.values()):.2f}"] for problem, rows in of.items()])


def operand_types_below():
    rows = [row for row in rows_of("gemm_tf32_s8_h200") if ratio(row) < 1]
    return table(["problem", "schedule", "us", "cuBLASLt us", "cuBLASLt / ours"],
                 [[code(row["problem"].removeprefix("gemm ")), code(row["schedule"]), row["us"], row["peer_us"], f"{ratio(row):.3f}"]
                  for row in sorted(rows, key=ratio)])


def fp8_below():
    rows = [row for row in rows_of("gemm_e4m3_h200") if ratio(row) < (0.97 if "sum=fast" in row["problem"] else 0.95)]
    return below(rows, 1, "cuBLASLt")


def fp8_block(measured):
    return table(["problem", "schedule", "us", "TFLOP/s", "DeepGEMM us", "DeepGEMM / ours", "first choice"],
                 [[code(re.sub(" scale=block| constant=b", "", without_types(row["problem"]))), code(row["schedule"]), row["us"],
                   f"{tflops(row):.0f}", row["peer_us"], f"{ratio(row):.3f}", f"{row['first_choice_ratio']:.3f}"] for row in rows_of(measured)])


def fp8_block_groups(measured):
    rows = rows_of(measured)
    return groups([("all", rows), ("m <= 128", [row for row in rows if is_small(row)]),
                   ("m = 4096", [row for row in rows if not is_small(row)])], floors=False)


def grouped(chip, of_fp8):
    """Rows of groups; with layout=k elements of K."""
    def line(row):
        used, e = int(row["setting"].split()[0]), extents(row["problem"])
        products = used * e["n"] * (e["m"] if "layout=k" in row["problem"] else e["k"])
        first = f"{row['first_choice_ratio']:.3f}" if "first_choice_ratio" in row else ""
        return [code(without_types(row["problem"]).replace(" scale=block", "").removeprefix("grouped_gemm ")), used,
                code(row["schedule"]), row["us"], f"{2 * products / row['us'] / 1e6:.0f}", row["peer"], row["peer_us"],
                f"{ratio(row):.3f}", first]
    lines = [line(row) for row in grouped_rows(chip, of_fp8)]
    columns = ["problem", "rows in groups", "schedule", "us", "TFLOP/s", "peer", "its us", "its / ours", "first choice"]
    return table(columns, lines) if any(line[-1] for line in lines) else table(columns[:-1], [line[:-1] for line in lines])


def grouped_models_groups():
    """By the peer, and by the rows that a group has on average."""
    sizes = (("all", 0, 1 << 30), ("at most 64 rows a group", 0, 64), ("128 to 512", 128, 512), ("2048 and more", 2048, 1 << 30))
    sets = []
    for types, peer in (("e4m3", "DeepGEMM"), ("bf16", "DeepGEMM"), ("bf16", "torch._grouped_mm")):
        rows = [row for row in grouped_models_rows(with_operands(types)) if row["peer"] == peer]
        for name, least, most in sizes:
            few = [row for row in rows if least <= extents(row["problem"])["m"] // extents(row["problem"])["groups"] <= most]
            sets.append((f"{types}, against {peer}, {name}", few))
    return groups(sets, floors=False)


def grouped_unseen_groups():
    """By the peer, and by how the rows of groups are distributed."""
    rows = rows_of("grouped_unseen_h200")
    sets = []
    for types, peer in (("e4m3", "DeepGEMM"), ("bf16", "DeepGEMM"), ("bf16", "torch._grouped_mm")):
        for sizes in ("spread", "zipf", "equal"):
            sets.append((f"{types}, against {peer}, {sizes}",
                         [row for row in rows if row["peer"] == peer and row["setting"] == sizes and with_operands(types)(row)]))
    return groups(sets, floors=False)


def grouped_unseen_masked_k_groups():
    """By the layout, and by the peer."""
    rows = rows_of("grouped_unseen_masked_k_h200")
    sets = [(f"{types}, masked, against DeepGEMM", [row for row in rows if "layout=masked" in row["problem"] and with_operands(types)(row)])
            for types in ("e4m3", "bf16")]
    sets += [(f"bf16, layout=k, against {peer}", [row for row in rows if "layout=k" in row["problem"] and row["peer"] == peer])
             for peer in ("a loop of cuBLAS", "torch._grouped_mm")]
    return groups(sets, floors=False)


def choices_since(name):
    """What was chosen without a trial before a change of the model, and since."""
    rows = rows_of(name)
    return table(["problem", "before", "us", "since", "us", "before / since"],
                 [[code(re.sub(r" [bd]=\w+| a=bf16| scale=block", "", row["problem"]).removeprefix("grouped_gemm ")), code(row["setting"]),
                   row["peer_us"], code(row["schedule"]), row["us"], f"{ratio(row):.3f}"] for row in sorted(rows, key=ratio, reverse=True)])


def grouped_sustained():
    """What 72 calls in a row take, and 400."""
    rows = rows_of("grouped_sustained_h200")
    short = {(row["problem"], row["peer"]): row for row in rows if row["setting"] == "72 calls"}
    of = lambda row: short[row["problem"], row["peer"]]
    return table(["problem", "peer", "72 calls: us", "its us", "its / ours", "400 calls: us", "its us", "its / ours"],
                 [[code(re.sub(r"^grouped_gemm | [bd]=\w+| a=bf16", "", row["problem"])),
                   row["peer"], of(row)["us"], of(row)["peer_us"], f"{ratio(of(row)):.3f}", row["us"], row["peer_us"], f"{ratio(row):.3f}"]
                  for row in rows if row["setting"] == "400 calls" and row["us"] > 250])


def fp8_scales():
    return table(["problem", "us", "TFLOP/s", "cuBLASLt us"],
                 [[code(row["problem"]), row["us"], f"{tflops(row):.0f}", row.get("peer_us")] for row in rows_of("gemm_e4m3_scales_h200")])


def tflops(row, rows=None):
    e = extents(row["problem"])
    return 2 * (rows or e["m"]) * e["n"] * e["k"] / row["us"] / 1e6


def epilogue_groups():
    lines = []
    for steps in ("bias_n", "bias_n+relu", "bias_n+gelu_tanh"):
        rows = rows_of("epilogues_h200", lambda row: row["problem"].endswith(f"epilogue={steps}"))
        lesser = {}
        for row in rows:
            lesser[row["problem"]] = min(row["ratio"], lesser.get(row["problem"], row["ratio"]))
        by_peer = [geometric_mean(row["ratio"] for row in rows if which in row["peer"]) for which in ("first", "fastest")]
        lines.append([code(steps), len(lesser)] + [f"{value:.3f}" for value in by_peer] + mean_and_worst(lesser.values()).split(", "))
    return table(["epilogue", "problems", "cuBLASLt's first algorithm / ours", "its fastest / ours", "the lesser of both", "worst"], lines)


def tuning_groups():
    rows = rows_of("tuning_h200")
    lines = []
    for name, kind in (("all", ""), ("GEMM", "gemm"), ("convolution", "conv")):
        of = [row for row in rows if row["problem"].startswith(kind)]
        order = sorted(row["rank_correlation"] for row in of)
        median = (order[(len(order) - 1) // 2] + order[len(order) // 2]) / 2
        lines.append([name, len(of), f"{min(row['schedules'] for row in of)} to {max(row['schedules'] for row in of)}"] + [
            f"{geometric_mean(row[key] for row in of):.3f}, {max(row[key] for row in of):.3f}" for key in ("loss", "first_choice_loss")
        ] + [f"{median:.3f}, {order[0]:.3f}"])
    return table(["problems", "number", "schedules each", "16 trials / best: mean, worst", "first choice / best: mean, worst",
                  "rank correlation: median, least"], lines)


def launch_overlap():
    times = {}
    for row in rows_of("launch_overlap_h200"):
        times.setdefault(row["problem"], {"peer": row["peer_us"]})[row["setting"]] = row["us"]
    return table(["problem", "us a launch", "with " + code("--launch-overlap programmatic"), "cuBLAS us"],
                 [[code(without_types(problem)), of["launch_overlap=none"], of["launch_overlap=programmatic"], of["peer"]]
                  for problem, of in times.items()])


def l2():
    return table(["kernel", "us", "MB at L2"],
                 [[code(row["schedule"]) if "us" in row else f"{row['peer']}: {row['peer_kernel']}", row.get("us", row.get("peer_us")),
                   row.get("l2_mb", row.get("peer_l2_mb"))] for row in rows_of("l2_h200")])


def values(name, columns):
    """Rows of a value or a range each."""
    lines = []
    for row in rows_of(name):
        what = ", ".join(part for part in (row["what"], code(row["problem"]) if "problem" in row else "", row.get("setting")) if part)
        known = row["value"] if "value" in row else f"{row['low']} to {row['high']}"
        lines.append([what, f"{known} {row['unit']}", row.get("notes")])
    if not any(line[2] for line in lines):
        return table(columns, [line[:2] for line in lines])
    return table(columns + [""], lines)


def paired(name, first, columns, settings):
    """Rows that differ in one of the settings only, on one line."""
    times = {}
    for row in rows_of(name, lambda row: row["setting"] in settings):
        times.setdefault(first(row), {})[row["setting"]] = row["value"]
    return table(columns, [[what] + [of.get(setting) for setting in settings] for what, of in times.items()])


def choices():
    return paired("choice_host", lambda row: f"{row['what']}, {code(row['problem'])}", ["ms", "sm_90a", "sm_100a"],
                  ["sm_90a", "sm_100a"])


def user_functions():
    return paired("user_function_host", lambda row: code(row["problem"].partition("epilogue=")[2]),
                  ["epilogue", "ms, empty store", "ms, again"], ["empty store", "again"])


def emulator_kernels():
    lines = [[code(row["problem"]), row["setting"], row["peer_us"] / 1000, row["us"] / 1000, row["ratio"]]
             for row in rows_of("emulator_kernels_host")]
    return table(["kernel", "target", "ms before", "ms now", "ratio"],
                 [[*line[:2], f"{line[2]:.0f}", f"{line[3]:.0f}", f"{line[4]:.2f}"] for line in lines])


TABLES = {
    "summary": summary,
    "gemm_groups": gemm_groups,
    "gemm_below": gemm_below,
    "gemm_variants": gemm_variants,
    "gemm_unaligned": gemm_unaligned,
    "gemm_profiles": lambda: profiles("gemm"),
    "clusters": clusters,
    "conv_groups": conv_groups,
    "conv_below": conv_below,
    "gradient_groups": gradient_groups,
    "gradients_below": gradients_below,
    "depthwise": depthwise,
    "depthwise_groups": depthwise_groups,
    "few_channels": few_channels,
    "gemv": gemv,
    "gemv_groups": gemv_groups,
    "few_channels_groups": few_channels_groups,
    "fp8_promotion": fp8_promotion,
    "conv_layers": conv_layers,
    "conv_fused": conv_fused,
    "conv_fused_groups": conv_fused_groups,
    "conv_profiles": lambda: profiles("conv"),
    "fp8_groups": fp8_groups,
    "fp8_below": fp8_below,
    "nvfp4_predicted": nvfp4_predicted,
    "dense_kinds_predicted": dense_kinds_predicted,
    "lane_shift_predicted": lane_shift_predicted,
    "chains": chains,
    "chain_schedules": chain_schedules,
    "chains_early": chains_early,
    "chain_schedules_early": chain_schedules_early,
    "workload_groups": workload_groups,
    "workloads_below": workloads_below,
    "gemm_sparse": gemm_sparse,
    "gemm_pieces": gemm_pieces,
    "operand_types_groups": operand_types_groups,
    "operand_types_below": operand_types_below,
    "fp8_block": lambda: fp8_block("gemm_fp8_block_h200"),
    "fp8_block_groups": lambda: fp8_block_groups("gemm_fp8_block_h200"),
    "fp8_block_h100_groups": lambda: fp8_block_groups("gemm_fp8_block_h100"),
    "fp8_block_constant": lambda: fp8_block("gemm_fp8_block_constant_h200"),
    "grouped_models_groups": grouped_models_groups,
    "grouped_unseen_groups": grouped_unseen_groups,
    "grouped_unseen_masked_k_groups": grouped_unseen_masked_k_groups,
    "fp8_block_unseen_h200": lambda: fp8_block("fp8_block_unseen_h200"),
    "grouped_choices": lambda: choices_since("grouped_choices_h200"),
    "three_warpgroups": lambda: choices_since("three_warpgroups_h200"),
    "divided_rows": lambda: choices_since("divided_rows_h200"),
    "fp8_block_odd": lambda: fp8_block("fp8_block_odd_h200"),
    "fp8_block_odd_groups": lambda: groups_by_kind("fp8_block_odd_h200", (("one matrix", "gemm"), ("groups", "grouped_gemm")),
                                                   with_all=True),
    "fp8_block_constant_groups": lambda: fp8_block_groups("gemm_fp8_block_constant_h200"),
    **{f"grouped_{types}_{chip}": lambda types=types, chip=chip: grouped(chip, types == "fp8_block")
       for types in ("fp8_block", "bf16") for chip in ("h200", "h100")},
    "gemm_again": lambda: below(rows_of("gemm_bf16_again_h200"), math.inf, "cuBLASLt"),
    "gemm_64trials": lambda: below(rows_of("gemm_bf16_64trials_h200"), math.inf, "cuBLASLt"),
    **{f"grouped_groups_{chip}": lambda chip=chip: groups(grouped_sets(chip), floors=False) for chip in ("h200", "h100")},
    "grouped_sustained": grouped_sustained,
    "fp8_scales": fp8_scales,
    "epilogue_groups": epilogue_groups,
    "tuning_groups": tuning_groups,
    "launch_overlap": launch_overlap,
    "l2": l2,
    "launches": lambda: values("plan_host", ["what", "CPU time"]),
    "choices": choices,
    "compile_host": lambda: values("compile_host", ["what", "time"]),
    "compile_h200": lambda: values("compile_h200", ["what", "time"]),
    "user_functions": user_functions,
    "emulator_loops": lambda: values("emulator_loops_host", ["PTX loop", "rate"]),
    "emulator_kernels": emulator_kernels,
}


# A command that a reader can repeat unchanged on a GPU, which tests/docs/run_docs.py knows: no placeholder.
REPEATABLE = re.compile(r"laneshift [^A-Z]*")


def source(name):
    """Where a measurement comes from: machine, date, revision, file and commands."""
    head = MEASURED[name].head
    libraries = f", {head['libraries']}" if "libraries" in head else ""
    driver = "" if head["driver"] == "none" else f", driver {head['driver']}"
    repeatable = [command for command in head["commands"] if REPEATABLE.fullmatch(command) and "H200" in head["device"]]
    others = [code(command) for command in head["commands"] if command not in repeatable]
    lines = [f"{head['title']}. {head['device']}{driver}{libraries}; {head['date']}, revision {head['revision']}; {code(MEASURED[name].path)}" +
             (f", by {' and '.join(others)}." if others else "."), *([head["notes"]] if "notes" in head else [])]
    return lines + (["", "```sh gpu", *repeatable, "```"] if repeatable else [])
