"""GEMMs in Triton whose rows or parts are found while they run: experts, stream-K, block scales, and a norm."""
import numpy as np
import triton
import triton.language as tl

import expert_routing


@triton.jit
def _experts(x, w, rows, weights, expert_of_tile, y, tokens, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Rows of x by a list, times the weights of their tile's expert; each product is added to its token's row of y."""
    slot = tl.program_id(0) * BM + tl.arange(0, BM)
    row = tl.load(rows + slot)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    expert = tl.load(expert_of_tile + tl.program_id(0))
    sums = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        left = tl.load(x + row[:, None] * K + (k0 + k)[None, :], row[:, None] < tokens, 0)
        right = tl.load(w + expert * K * N + (k0 + k)[:, None] * N + n[None, :])
        sums = tl.dot(left, right, sums)
    tl.atomic_add(y + row[:, None] * N + n[None, :], sums * tl.load(weights + slot)[:, None], row[:, None] < tokens)


def gemm_experts(case, tokens, experts, chosen, n, k, type, tile=(64, 64, 32), **tolerance):
    def run(inputs, y):
        _experts[(inputs[4].shape[0], n // tile[1])](*inputs, y, tokens, n, k, *tile)

    expert_routing.experts(case, tokens, experts, chosen, n, k, type, tile[0], run, **tolerance)


@triton.jit
def _stream_k(a, b, c, parts, locks, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PROGRAMS: tl.constexpr):
    """C = A * B: the steps of all tiles are dealt evenly; who does not begin a tile leaves its part to the one that does."""
    steps = K // BK
    total = (M // BM) * (N // BN) * steps
    me = tl.program_id(0)
    step = me * total // PROGRAMS
    end = (me + 1) * total // PROGRAMS
    i, j = tl.arange(0, BM), tl.arange(0, BN)
    while step < end:
        tile = step // steps
        last = min(end, (tile + 1) * steps)
        m, n = tile // (N // BN) * BM + i, tile % (N // BN) * BN + j
        sums = tl.zeros((BM, BN), tl.float32)
        for s in range(step, last):
            k = s % steps * BK + tl.arange(0, BK)
            sums = tl.dot(tl.load(a + m[:, None] * K + k[None, :]), tl.load(b + k[:, None] * N + n[None, :]), sums)
        if step % steps == 0:
            after = last
            other = me + 1
            while after < (tile + 1) * steps:
                while tl.atomic_cas(locks + other, 1, 1, sem="acquire") != 1:
                    pass
                sums += tl.load(parts + other * BM * BN + i[:, None] * BN + j[None, :])
                after = min((other + 1) * total // PROGRAMS, (tile + 1) * steps)
                other += 1
            tl.store(c + m[:, None] * N + n[None, :], sums)
        else:
            tl.store(parts + me * BM * BN + i[:, None] * BN + j[None, :], sums)
            tl.debug_barrier()
            tl.atomic_xchg(locks + me, 1, sem="release")
        step = last


def gemm_stream_k(case, m, n, k, type, programs, tile=(64, 64, 64), **tolerance):
    a, b = case.normal((m, k), type), case.normal((k, n), type)
    c = case.empty((m, n), "float32")
    parts, locks = case.empty((programs, *tile[:2]), "float32"), case.zeros((programs,), "int32")
    _stream_k[(programs,)](case.upload(a), case.upload(b), c, parts, locks, m, n, k, *tile, programs)
    case.expect("c", c, a.astype(np.float64) @ b.astype(np.float64), **tolerance)


@triton.jit
def _block_scaled(a, b, sa, sb, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BLOCK: tl.constexpr):
    """C = A * B^T of e4m3: f32 scales for BLOCK elements of a row of A and for BLOCK x BLOCK of B, applied to each block's sums."""
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BLOCK)
    sums = tl.zeros((BM, BN), tl.float32)
    for block in range(K // BLOCK):
        left = tl.load(a + m[:, None] * K + (block * BLOCK + k)[None, :])
        right = tl.load(b + n[None, :] * K + (block * BLOCK + k)[:, None])
        scale = tl.load(sa + m * (K // BLOCK) + block)[:, None] * tl.load(sb + n // BLOCK * (K // BLOCK) + block)[None, :]
        sums += tl.dot(left, right) * scale
    tl.store(c + m[:, None] * N + n[None, :], sums)


def gemm_block_scaled(case, m, n, k, block=128, tile=(64, 64), **tolerance):
    a, b = case.normal((m, k), "float8_e4m3fn"), case.normal((n, k), "float8_e4m3fn")
    sa = np.exp2(case.integers(-3, 1, (m, k // block), "float32"))
    sb = np.exp2(case.integers(-3, 1, (n // block, k // block), "float32"))
    c = case.empty((m, n), "float32")
    _block_scaled[(m // tile[0], n // tile[1])](*(case.upload(v) for v in (a, b, sa, sb)), c, m, n, k, *tile, block)
    wide = a.astype(np.float64) * sa.repeat(block, 1), b.astype(np.float64) * sb.repeat(block, 0).repeat(block, 1)
    case.expect("c", c, wide[0] @ wide[1].T, **tolerance)


@triton.jit
def _norm(x, w, b, y, mean_of, scale_of, columns, WIDTH: tl.constexpr):
    """Layer norm of one row, in parts of WIDTH: a pass for the mean, one for the variance, one for the result."""
    row = tl.program_id(0) * columns
    part = tl.zeros((WIDTH,), tl.float32)
    for j0 in range(0, columns, WIDTH):
        j = j0 + tl.arange(0, WIDTH)
        part += tl.load(x + row + j, j < columns, 0).to(tl.float32)
    mean = tl.sum(part, 0) / columns
    part = tl.zeros((WIDTH,), tl.float32)
    for j0 in range(0, columns, WIDTH):
        j = j0 + tl.arange(0, WIDTH)
        away = tl.where(j < columns, tl.load(x + row + j, j < columns, 0).to(tl.float32) - mean, 0.0)
        part += away * away
    scale = 1 / tl.sqrt(tl.sum(part, 0) / columns + 1e-5)
    tl.store(mean_of + tl.program_id(0), mean)
    tl.store(scale_of + tl.program_id(0), scale)
    for j0 in range(0, columns, WIDTH):
        j = j0 + tl.arange(0, WIDTH)
        value = (tl.load(x + row + j, j < columns, 0).to(tl.float32) - mean) * scale
        tl.store(y + row + j, value * tl.load(w + j, j < columns, 0) + tl.load(b + j, j < columns, 0), j < columns)


def layer_norm(case, rows, columns, width=256, **tolerance):
    x = case.normal((rows, columns), "float16", 2.0)
    w, b = case.normal((columns,), "float32"), case.normal((columns,), "float32")
    y, mean, scale = case.empty(x.shape, "float16"), case.empty((rows,), "float32"), case.empty((rows,), "float32")
    _norm[(rows,)](case.upload(x), case.upload(w), case.upload(b), y, mean, scale, columns, width)
    wide = x.astype(np.float64)
    away = wide - wide.mean(1, keepdims=True)
    want_scale = 1 / np.sqrt(wide.var(1) + 1e-5)
    case.expect("mean", mean, wide.mean(1), absolute=1e-4)
    case.expect("scale", scale, want_scale, relative=1e-4)
    case.expect("y", y, away * want_scale[:, None] * w + b, **tolerance)
