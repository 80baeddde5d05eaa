#!/usr/bin/env python3
"""Times DeepGEMM on the problems of bench/gemm_fp8_block.txt as `laneshift bench` times: one JSON object a line.

  scripts/time_deepgemm.py DEEPGEMM      a checkout of deepseek-ai/DeepGEMM that is built in place

Operands are uniform in [-1, 1) and rotate through at least 200 MB; calls follow each other without a pause; medians of 72.
"""
import json
import math
import pathlib
import re
import sys

import torch

sys.path.insert(0, sys.argv[1])
import deep_gemm  # noqa: E402

FILE = pathlib.Path(__file__).resolve().parent.parent / "bench" / "gemm_fp8_block.txt"
ROTATED_BYTES, ROUNDS, REPEATS = 200 << 20, 24, 3
RUN = 128


def uniform(*shape):
    return torch.rand(*shape, device="cuda") * 2 - 1


def operands(m, n, k):
    runs = math.ceil(k / RUN)
    a, b = (uniform(rows, k).to(torch.float8_e4m3fn) for rows in (m, n))
    scale_a = deep_gemm.utils.layout.get_mn_major_tma_aligned_tensor(1 + uniform(m, runs) / 2)
    scale_b = 1 + uniform(math.ceil(n / RUN), runs) / 2
    return (a, scale_a), (b, scale_b), torch.empty(m, n, device="cuda", dtype=torch.bfloat16)


def median_us(m, n, k):
    sets = [operands(m, n, k) for _ in range(max(2, math.ceil(ROTATED_BYTES / (m * k + n * k + 2 * m * n))))]
    calls = 0

    def call():
        nonlocal calls
        deep_gemm.fp8_gemm_nt(*sets[calls % len(sets)], disable_ue8m0_cast=True)
        calls += 1

    for _ in range(max(3, len(sets))):
        call()
    times = []
    for _ in range(REPEATS):
        events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(ROUNDS)]
        torch.cuda.synchronize()
        torch.cuda._sleep(4_000_000)  # the host gets ahead
        for _ in range(3):
            call()
        for begin, end in events:
            begin.record()
            call()
            end.record()
        torch.cuda.synchronize()
        times += [begin.elapsed_time(end) * 1e3 for begin, end in events]
    return sorted(times)[len(times) // 2]


for line in FILE.read_text(encoding="utf-8").splitlines():
    if line.startswith("gemm"):
        sizes = [int(size) for size in re.findall(r" [mnk]=(\d+)", line)]
        print(json.dumps({"problem": line, "peer_us": round(median_us(*sizes), 2)}), flush=True)
