"""State-space duality (Mamba 2) and convolution in Triton."""
import numpy as np
import triton
import triton.language as tl


@triton.jit
def _chunks(x, b, c, decay, out, L, P: tl.constexpr, N: tl.constexpr, Q: tl.constexpr):
    """One head: y = (C B^T * decays) x inside of chunks of Q steps, and a state [P, N] that goes from chunk to chunk.

    decay: the logarithms of the steps' decays; x: [L, P]; b, c: [L, N].
    """
    base = tl.program_id(0) * L
    t, p, n = tl.arange(0, Q), tl.arange(0, P), tl.arange(0, N)
    state = tl.zeros((P, N), tl.float32)
    for t0 in range(0, L, Q):
        at = base + t0 + t
        logs = tl.cumsum(tl.load(decay + at), 0)
        last = tl.sum(tl.where(t == Q - 1, logs, 0.0), 0)
        left = tl.load(c + at[:, None] * N + n[None, :])
        right = tl.load(b + at[:, None] * N + n[None, :])
        values = tl.load(x + at[:, None] * P + p[None, :])
        weights = tl.where(t[:, None] >= t[None, :], tl.exp(logs[:, None] - logs[None, :]), 0.0)
        inside = (tl.dot(left, right.T) * weights).to(x.dtype.element_ty)
        y = tl.dot(left, state.to(x.dtype.element_ty).T) * tl.exp(logs)[:, None]
        y = tl.dot(inside, values, y)
        tl.store(out + at[:, None] * P + p[None, :], y)
        faded = (right * tl.exp(last - logs)[:, None]).to(x.dtype.element_ty)
        state = tl.dot(values.T, faded, state * tl.exp(last))


def ssd(case, heads, length, head, states, type, chunk=64, **tolerance):
    x = case.normal((heads, length, head), type)
    b, c = (case.normal((heads, length, states), type, states**-.5) for _ in range(2))
    decay = -np.abs(case.normal((heads, length), "float32", 0.1))
    out = case.empty(x.shape, "float32")
    _chunks[(heads,)](case.upload(x), case.upload(b), case.upload(c), case.upload(decay), out, length, head, states, chunk)
    state, want = np.zeros((heads, head, states)), np.zeros(x.shape)
    for t in range(length):
        state = state * np.exp(decay[:, t].astype(np.float64))[:, None, None] + \
            x[:, t, :, None].astype(np.float64) * b[:, t, None, :].astype(np.float64)
        want[:, t] = np.einsum("hpn,hn->hp", state, c[:, t].astype(np.float64))
    case.expect("y", out, want, **tolerance)


@triton.jit
def _convolution(x, w, y, H, W, C, K, P, Q, R: tl.constexpr, S: tl.constexpr, PAD: tl.constexpr, STRIDE: tl.constexpr,
                 BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Implicit GEMM: x [N, H, W, C], w [R, S, C, K], y [N, P, Q, K]."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    k = tl.program_id(1) * BN + tl.arange(0, BN)
    c = tl.arange(0, BK)
    image, pixel = m // (P * Q), m % (P * Q)
    sums = tl.zeros((BM, BN), tl.float32)
    for tap in range(R * S):
        h = pixel // Q * STRIDE - PAD + tap // S
        v = pixel % Q * STRIDE - PAD + tap % S
        inside = (h >= 0) & (h < H) & (v >= 0) & (v < W)
        for c0 in range(0, C, BK):
            left = tl.load(x + ((image * H + h) * W + v)[:, None] * C + (c0 + c)[None, :], inside[:, None], 0)
            right = tl.load(w + (tap * C + c0 + c)[:, None] * K + k[None, :])
            sums = tl.dot(left, right, sums)
    tl.store(y + m[:, None] * K + k[None, :], sums)


def convolution(case, n, h, w, c, k, r, s, pad, stride, type, tile=(64, 64, 64), **tolerance):
    x, filters = case.normal((n, h, w, c), type), case.normal((r, s, c, k), type)
    p, q = ((h + 2 * pad - r) // stride + 1, (w + 2 * pad - s) // stride + 1)
    y = case.empty((n, p, q, k), "float32")
    _convolution[(n * p * q // tile[0], k // tile[1])](case.upload(x), case.upload(filters), y, h, w, c, k, p, q, r, s, pad,
                                                       stride, *tile)
    padded = np.pad(x.astype(np.float64), ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    want = np.zeros((n, p, q, k))
    for i in range(r):
        for j in range(s):
            taps = padded[:, i:i + stride * (p - 1) + 1:stride, j:j + stride * (q - 1) + 1:stride]
            want += taps @ filters[i, j].astype(np.float64)
    case.expect("y", y, want, **tolerance)
