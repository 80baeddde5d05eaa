#!/usr/bin/env python3
"""Times DeepGEMM on problems of scale=block as `laneshift bench` times: one JSON object a line.

  scripts/time_deepgemm.py DEEPGEMM FILE      a checkout of deepseek-ai/DeepGEMM that is built in place, and a file of
                                              problems: bench/gemm_fp8_block.txt or bench/grouped_fp8_block.txt
  scripts/time_deepgemm.py sizes FILE         the sizes of groups, for laneshift's --group-sizes, and the problem

Operands are uniform in [-1, 1) and rotate through at least 200 MB; calls follow each other without a pause; medians of 72.
Groups of rows have 0.7 to 1.3 times the mean, masked ones 0.54 to 1 times m, drawn at random. DeepGEMM's contiguous groups
are padded to whole multiples of the rows that it asks for, which are neither counted nor stored by laneshift.
"""
import json
import math
import pathlib
import random
import re
import sys

ROTATED_BYTES, ROUNDS, REPEATS = 200 << 20, 24, 3
RUN = 128


def problems(path):
    """(line, its sizes by name) of each problem."""
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        if line.startswith(("gemm", "grouped_gemm")):
            yield line, {key: int(value) for key, value in re.findall(r" (groups|m|n|k)=(\d+)", line)}


def is_masked(line):
    return "layout=masked" in line


def group_sizes(line, extents):
    draw = random.Random(line)
    weights = [draw.uniform(0.7, 1.3) for _ in range(extents["groups"])]
    if is_masked(line):
        return [int(extents["m"] * weight / 1.3) for weight in weights]
    ends = [int(extents["m"] * sum(weights[:i + 1]) / sum(weights)) for i in range(len(weights) - 1)] + [extents["m"]]
    return [end - begin for begin, end in zip([0] + ends, ends)]


class Peer:
    """DeepGEMM's kernels, with operands for each."""

    def __init__(self, path):
        sys.path.insert(0, path)
        import deep_gemm
        import torch
        self.gemms, self.torch = deep_gemm, torch

    def uniform(self, *shape):
        return self.torch.rand(*shape, device="cuda") * 2 - 1

    def narrow(self, *shape):
        """e4m3, a matrix at a time."""
        if len(shape) == 2:
            return self.uniform(*shape).to(self.torch.float8_e4m3fn)
        return self.torch.stack([self.narrow(*shape[1:]) for _ in range(shape[0])])

    def scaled(self, of_rows, *shape):
        """A matrix, or one for each group, with scale factors of rows or of blocks."""
        *groups, rows, k = shape
        factors = 1 + self.uniform(*groups, rows if of_rows else math.ceil(rows / RUN), math.ceil(k / RUN)) / 2
        if of_rows:
            factors = self.gemms.utils.layout.get_mn_major_tma_aligned_tensor(factors)
        return self.narrow(*shape), factors

    def out(self, *shape):
        return self.torch.empty(*shape, device="cuda", dtype=self.torch.bfloat16)

    def integers(self, values):
        return self.torch.tensor(values, device="cuda", dtype=self.torch.int32)

    def call_of(self, line, extents):
        """A call with new operands, and their bytes."""
        m, n, k = (extents[name] for name in "mnk")
        if "groups" not in extents:
            arguments = self.scaled(True, m, k), self.scaled(False, n, k), self.out(m, n)
            return lambda: self.gemms.fp8_gemm_nt(*arguments, disable_ue8m0_cast=True), m * k + n * k + 2 * m * n
        groups, sizes = extents["groups"], group_sizes(line, extents)
        b = self.scaled(False, groups, n, k)
        size = groups * n * k + sum(sizes) * (k + 2 * n)
        if is_masked(line):
            arguments = self.scaled(True, groups, m, k), b, self.out(groups, m, n), self.integers(sizes)
            expected = math.ceil(sum(sizes) / groups)
            return lambda: self.gemms.m_grouped_fp8_gemm_nt_masked(*arguments, expected, disable_ue8m0_cast=True), size
        unit = self.gemms.get_mk_alignment_for_contiguous_layout()
        group_of = []
        for group, rows in enumerate(sizes):
            group_of += [group] * rows + [-1] * (-rows % unit)
        padded = len(group_of)
        arguments = self.scaled(True, padded, k), b, self.out(padded, n), self.integers(group_of)
        return lambda: self.gemms.m_grouped_fp8_gemm_nt_contiguous(*arguments, disable_ue8m0_cast=True), size

    def median_us(self, line, extents):
        cuda = self.torch.cuda
        first, size = self.call_of(line, extents)
        sets = [first] + [self.call_of(line, extents)[0] for _ in range(max(2, math.ceil(ROTATED_BYTES / size)) - 1)]
        calls = 0

        def call():
            nonlocal calls
            sets[calls % len(sets)]()
            calls += 1

        for _ in range(max(3, len(sets))):
            call()
        times = []
        for _ in range(REPEATS):
            events = [[cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(ROUNDS)]
            cuda.synchronize()
            cuda._sleep(4_000_000)  # the host gets ahead
            for _ in range(3):
                call()
            for begin, end in events:
                begin.record()
                call()
                end.record()
            cuda.synchronize()
            times += [begin.elapsed_time(end) * 1e3 for begin, end in events]
        return sorted(times)[len(times) // 2]


def main():
    source, path = sys.argv[1:]
    peer = None if source == "sizes" else Peer(source)
    for line, extents in problems(path):
        if peer:
            print(json.dumps({"problem": line, "peer_us": round(peer.median_us(line, extents), 2)}), flush=True)
        else:
            print(",".join(map(str, group_sizes(line, extents))), line)


main()
