"""A mixture of experts for kernels in any language: tokens in blocks of rows that one expert has, and the expected result."""
import numpy as np


def experts(case, tokens, experts, chosen, n, k, type, rows, launch, **tolerance):
    """Calls `launch` with a list of arrays on the device (tokens, weights of experts, the token of each row, its weight, the expert of
    each block of `rows` rows) and the result, to which it adds. A row without a token has the number `tokens`."""
    x, w = case.normal((tokens, k), type), case.normal((experts, k, n), type)
    picks = np.argsort(case.normal((tokens, experts), "float32"), 1)[:, :chosen]
    weights = np.abs(case.normal((tokens, experts), "float32"))
    slots, groups = [], []
    for expert in range(experts):
        of_expert = np.flatnonzero((picks == expert).any(1))
        padded = -len(of_expert) % rows
        slots += [*of_expert, *[tokens] * padded]
        groups += [expert] * ((len(of_expert) + padded) // rows)
    slots = np.array(slots, np.int32)
    scale = np.where(slots < tokens, weights[np.minimum(slots, tokens - 1), np.repeat(groups, rows)], 0).astype(np.float32)
    y = case.zeros((tokens, n), "float32")
    launch([case.upload(v) for v in (x, w, slots, scale, np.array(groups, np.int32))], y)
    want = np.zeros((tokens, n))
    for expert in range(experts):
        of = (picks == expert).any(1)
        want[of] += x[of].astype(np.float64) @ w[expert].astype(np.float64) * weights[of, expert, None]
    case.expect("y", y, want, **tolerance)
