#!/usr/bin/env python3
"""Times DeepGEMM, and PyTorch where it has the operation, as `laneshift bench` times: one JSON object a line.

  scripts/time_peers.py DEEPGEMM FILE [CALLS [SIZES]]
                                                a checkout of deepseek-ai/DeepGEMM that is built in place, and a file of problems:
                                                bench/gemm_fp8_block.txt, bench/grouped_fp8_block.txt or bench/grouped_bf16.txt
  scripts/time_peers.py sizes FILE [SIZES]      the sizes of groups, for laneshift's --group-sizes, and the problem

Operands are uniform in [-1, 1) and rotate through at least 200 MB; calls follow each other without a pause; medians of CALLS,
72 if they are not given: as many as laneshift bench --rounds, since a GPU at its limit of power slows down within 100 ms.
With constant=b a sample is eight calls in a row, as it is of `laneshift bench`, with and without DeepGEMM's programmatic launch.
SIZES says what rows groups have. spread, the default: 0.7 to 1.3 times the mean, masked ones 0.54 to 1 times m, drawn at random.
equal: all the same. zipf: in proportion to 1, 1/2, 1/3 and so on, in an order drawn at random. Groups of DeepGEMM are padded to whole
multiples of the rows (layout=k: of the elements of K) that it asks for, which are neither counted nor stored by laneshift.
"""
import json
import math
import pathlib
import random
import re
import sys

ROTATED_BYTES, CALLS, REPEATS = 200 << 20, 72, 3
CALLS_IN_A_ROW = 8
RUN = 128


def problems(path):
    """(line, its sizes by name) of each problem."""
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        if line.startswith(("gemm", "grouped_gemm")):
            yield line, {key: int(value) for key, value in re.findall(r" (groups|m|n|k)=(\d+)", line)}


def layout_of(line):
    found = re.search(r" layout=(\w+)", line)
    return found[1] if found else "contiguous" if line.startswith("grouped") else "dense"


def spread(draw, groups):
    return [draw.uniform(0.7, 1.3) for _ in range(groups)]


def equal(_, groups):
    return [1.0] * groups


def zipf(draw, groups):
    weights = [1 / (rank + 1) for rank in range(groups)]
    draw.shuffle(weights)
    return weights


DISTRIBUTIONS = {"spread": spread, "equal": equal, "zipf": zipf}


def group_sizes(line, extents, distribution):
    weights = DISTRIBUTIONS[distribution](random.Random(line), extents["groups"])
    if layout_of(line) == "masked":
        largest = 1.3 if distribution == "spread" else max(weights)
        return [int(extents["m"] * weight / largest) for weight in weights]
    total = extents["k" if layout_of(line) == "k" else "m"]
    ends = [int(total * sum(weights[:i + 1]) / sum(weights)) for i in range(len(weights) - 1)] + [total]
    return [end - begin for begin, end in zip([0] + ends, ends)]


class Operands:
    """Tensors of one type, and DeepGEMM's functions for it."""

    def __init__(self, gemms, torch, line, extents, distribution):
        self.gemms, self.torch = gemms, torch
        self.scaled = "scale=block" in line
        self.m, self.n, self.k = (extents[name] for name in "mnk")
        self.sizes = group_sizes(line, extents, distribution) if "groups" in extents else []

    def uniform(self, *shape):
        return self.torch.rand(*shape, device="cuda") * 2 - 1

    def narrow(self, *shape):
        """A matrix at a time, so that f32 of all of them need not fit."""
        if len(shape) > 2:
            return self.torch.stack([self.narrow(*shape[1:]) for _ in range(shape[0])])
        return self.uniform(*shape).to(self.torch.float8_e4m3fn if self.scaled else self.torch.bfloat16)

    def a(self, *shape):
        """Rows, with scale factors of 1x128 if the problem has them."""
        if not self.scaled:
            return self.narrow(*shape)
        factors = 1 + self.uniform(*shape[:-1], math.ceil(shape[-1] / RUN)) / 2
        return self.narrow(*shape), self.gemms.utils.layout.get_mn_major_tma_aligned_tensor(factors)

    def b(self, *groups):
        """A matrix of n x k, or one for each group, with scale factors of 128x128 if the problem has them."""
        matrix = self.narrow(*groups, self.n, self.k)
        if not self.scaled:
            return matrix
        return matrix, 1 + self.uniform(*groups, math.ceil(self.n / RUN), math.ceil(self.k / RUN)) / 2

    def d(self, *shape, dtype=None):
        return self.torch.empty(*shape, device="cuda", dtype=dtype or self.torch.bfloat16)

    def integers(self, values):
        return self.torch.tensor(values, device="cuda", dtype=self.torch.int32)

    def function(self, name):
        """DeepGEMM's function of that name: `NAME` has `bf16` or `fp8` in the place of TYPE."""
        if not self.scaled:
            return getattr(self.gemms, name.replace("TYPE", "bf16"))
        fp8 = getattr(self.gemms, name.replace("TYPE", "fp8"))
        return lambda *arguments: fp8(*arguments, disable_ue8m0_cast=True)


# Each function makes operands and returns a call.

def deepgemm_dense(of):
    gemm, arguments = of.function("TYPE_gemm_nt"), (of.a(of.m, of.k), of.b(), of.d(of.m, of.n))
    return lambda: gemm(*arguments)


def deepgemm_masked(of):
    groups = len(of.sizes)
    gemm = of.function("m_grouped_TYPE_gemm_nt_masked")
    arguments = of.a(groups, of.m, of.k), of.b(groups), of.d(groups, of.m, of.n), of.integers(of.sizes)
    expected = math.ceil(sum(of.sizes) / groups)
    return lambda: gemm(*arguments, expected)


def padded(of, size):
    unit = of.gemms.get_mk_alignment_for_contiguous_layout()
    return size + -size % unit


def deepgemm_contiguous(of):
    group_of = []
    for group, rows in enumerate(of.sizes):
        group_of += [group] * rows + [-1] * (padded(of, rows) - rows)
    gemm = of.function("m_grouped_TYPE_gemm_nt_contiguous")
    arguments = of.a(len(group_of), of.k), of.b(len(of.sizes)), of.d(len(group_of), of.n), of.integers(group_of)
    return lambda: gemm(*arguments)


def deepgemm_k(of):
    """D in f32, which DeepGEMM adds to."""
    ks = [padded(of, size) for size in of.sizes]
    d = of.d(len(ks), of.m, of.n, dtype=of.torch.float32)
    a, b, sizes = of.narrow(sum(ks), of.m), of.narrow(sum(ks), of.n), of.integers(ks)
    return lambda: of.gemms.k_grouped_bf16_gemm_tn_contiguous(a, b, d, ks, sizes, d)


def offsets_of(of):
    return of.integers(of.sizes).cumsum(0).to(of.torch.int32)


def torch_contiguous(of):
    a, b, offsets = of.narrow(of.m, of.k), of.narrow(len(of.sizes), of.n, of.k), offsets_of(of)
    return lambda: of.torch._grouped_mm(a, b.transpose(1, 2), offs=offsets)


def torch_k(of):
    a, b, offsets = of.narrow(of.k, of.m), of.narrow(of.k, of.n), offsets_of(of)
    return lambda: of.torch._grouped_mm(a.t(), b, offs=offsets)


def cublas_loop(of):
    """One torch.mm for each group, D in bf16."""
    a, b, d = of.narrow(of.k, of.m), of.narrow(of.k, of.n), of.d(len(of.sizes), of.m, of.n)
    ends = [sum(of.sizes[:i + 1]) for i in range(len(of.sizes))]
    parts = [(a[end - size:end].t(), b[end - size:end], d[group]) for group, (size, end) in enumerate(zip(of.sizes, ends))]

    def call():
        for left, right, out in parts:
            of.torch.mm(left, right, out=out)
    return call


def peers_of(line):
    """The peers of a problem by name."""
    layout, scaled = layout_of(line), "scale=block" in line
    if layout == "k":
        return {"DeepGEMM": deepgemm_k} if "d=f32" in line else {"a loop of cuBLAS": cublas_loop, "torch._grouped_mm": torch_k}
    peers = {"DeepGEMM": {"dense": deepgemm_dense, "contiguous": deepgemm_contiguous, "masked": deepgemm_masked}[layout]}
    if layout == "contiguous" and not scaled:
        peers["torch._grouped_mm"] = torch_contiguous
    return peers


def operand_bytes(line, of):
    size, rows = (1 if of.scaled else 2), sum(of.sizes) or of.m
    if layout_of(line) == "k":
        return size * of.k * (of.m + of.n) + (4 if "d=f32" in line else 2) * len(of.sizes) * of.m * of.n
    return size * max(1, len(of.sizes)) * of.n * of.k + rows * (size * of.k + 2 * of.n)


def median_us(torch, make, count, timed, row):
    """Of `timed` of the calls that `make` returns, `row` in a sample, each with other operands, `count` of them in rotation."""
    sets, calls = [make() for _ in range(count)], 0

    def call():
        nonlocal calls
        sets[calls % len(sets)]()
        calls += 1

    for _ in range(max(3, len(sets))):
        call()
    times = []
    for _ in range(REPEATS):
        events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(math.ceil(timed / REPEATS / row))]
        torch.cuda.synchronize()
        torch.cuda._sleep(4_000_000 * row)  # the host gets ahead
        for _ in range(3):
            call()
        for begin, end in events:
            begin.record()
            for _ in range(row):
                call()
            end.record()
        torch.cuda.synchronize()
        times += [begin.elapsed_time(end) * 1e3 / row for begin, end in events]
    return sorted(times)[len(times) // 2]


def main():
    source, path, *options = sys.argv[1:]
    if source == "sizes":
        distribution = options[0] if options else "spread"
        for line, extents in problems(path):
            if "groups" in extents:
                print(",".join(map(str, group_sizes(line, extents, distribution))), line)
        return
    sys.path.insert(0, source)
    calls = int(options[0]) if options else CALLS
    distribution = options[1] if len(options) > 1 else "spread"
    import deep_gemm
    import torch
    for line, extents in problems(path):
        of = Operands(deep_gemm, torch, line, extents, distribution)
        count = max(2, math.ceil(ROTATED_BYTES / operand_bytes(line, of)))
        constant = "constant=b" in line
        for programmatic in (False, True) if constant else (False,):
            deep_gemm.set_pdl(programmatic)
            for name, make in peers_of(line).items():
                us = median_us(torch, lambda: make(of), count, calls, CALLS_IN_A_ROW if constant else 1)
                name += ", programmatic launch" if programmatic else ""
                print(json.dumps({"problem": line, "peer": name, "peer_us": round(us, 2)}), flush=True)
                torch.cuda.empty_cache()


main()
