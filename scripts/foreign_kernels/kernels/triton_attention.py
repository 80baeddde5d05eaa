"""Attention in Triton: forward, backward, and decoding with a split of the keys."""
import numpy as np
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def _forward(q, k, v, out, lse, scale, S, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr,
             SPLIT: tl.constexpr):
    """One block of queries of one head: q, k, v are tensor maps over [heads * S, D]."""
    row = tl.program_id(1) * S
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    query = q.load([row + tl.program_id(0) * BM, 0])
    greatest = tl.full((BM,), float("-inf"), tl.float32)
    weight = tl.zeros((BM,), tl.float32)
    sums = tl.zeros((BM, D), tl.float32)
    end = (tl.program_id(0) + 1) * BM if CAUSAL else S
    for n0 in tl.range(0, end, BN, warp_specialize=SPLIT):
        scores = tl.dot(query, k.load([row + n0, 0]).T) * (scale * 1.44269504)
        if CAUSAL:
            scores = tl.where(m[:, None] >= (n0 + tl.arange(0, BN))[None, :], scores, float("-inf"))
        new = tl.maximum(greatest, tl.max(scores, 1))
        p = tl.exp2(scores - new[:, None])
        keep = tl.exp2(greatest - new)
        weight = weight * keep + tl.sum(p, 1)
        sums = tl.dot(p.to(q.dtype), v.load([row + n0, 0]), sums * keep[:, None])
        greatest = new
    out.store([row + tl.program_id(0) * BM, 0], (sums / weight[:, None]).to(q.dtype))
    tl.store(lse + row + m, greatest + tl.log2(weight))


@triton.jit
def _backward_keys(q, k, v, do, lse, delta, dk, dv, scale, S, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
                   CAUSAL: tl.constexpr):
    """dK and dV of one block of keys: loops over the queries."""
    row = tl.program_id(1) * S
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    d = tl.arange(0, D)
    key = tl.load(k + (row + n)[:, None] * D + d[None, :])
    value = tl.load(v + (row + n)[:, None] * D + d[None, :])
    dkey, dvalue = tl.zeros((BN, D), tl.float32), tl.zeros((BN, D), tl.float32)
    begin = (tl.program_id(0) * BN) // BM * BM if CAUSAL else 0
    for m0 in range(begin, S, BM):
        m = m0 + tl.arange(0, BM)
        query = tl.load(q + (row + m)[:, None] * D + d[None, :])
        gradient = tl.load(do + (row + m)[:, None] * D + d[None, :])
        p = tl.exp2(tl.dot(key, query.T) * (scale * 1.44269504) - tl.load(lse + row + m)[None, :])
        if CAUSAL:
            p = tl.where(m[None, :] >= n[:, None], p, 0.0)
        dvalue = tl.dot(p.to(q.dtype.element_ty), gradient, dvalue)
        dp = tl.dot(value, gradient.T) - tl.load(delta + row + m)[None, :]
        dkey = tl.dot((p * dp).to(q.dtype.element_ty), query, dkey)
    tl.store(dk + (row + n)[:, None] * D + d[None, :], dkey * scale)
    tl.store(dv + (row + n)[:, None] * D + d[None, :], dvalue)


@triton.jit
def _backward_queries(q, k, v, do, lse, delta, dq, scale, S, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
                      CAUSAL: tl.constexpr):
    """dQ of one block of queries: loops over the keys."""
    row = tl.program_id(1) * S
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    query = tl.load(q + (row + m)[:, None] * D + d[None, :])
    gradient = tl.load(do + (row + m)[:, None] * D + d[None, :])
    scaled, offset = tl.load(lse + row + m), tl.load(delta + row + m)
    dquery = tl.zeros((BM, D), tl.float32)
    end = (tl.program_id(0) + 1) * BM if CAUSAL else S
    for n0 in range(0, end, BN):
        n = n0 + tl.arange(0, BN)
        key = tl.load(k + (row + n)[:, None] * D + d[None, :])
        value = tl.load(v + (row + n)[:, None] * D + d[None, :])
        p = tl.exp2(tl.dot(query, key.T) * (scale * 1.44269504) - scaled[:, None])
        if CAUSAL:
            p = tl.where(m[:, None] >= n[None, :], p, 0.0)
        dp = tl.dot(gradient, value.T) - offset[:, None]
        dquery = tl.dot((p * dp).to(q.dtype.element_ty), key, dquery)
    tl.store(dq + (row + m)[:, None] * D + d[None, :], dquery * scale)


def _reference(q, k, v, scale, causal):
    """Scores' weights, the output and the logarithm (base 2) of the weights' sums, in f64."""
    scores = np.einsum("hmd,hnd->hmn", q, k) * scale
    if causal:
        scores = np.where(np.tri(*scores.shape[1:], dtype=bool), scores, -np.inf)
    greatest = scores.max(-1, keepdims=True)
    p = np.exp(scores - greatest)
    total = p.sum(-1, keepdims=True)
    return p / total, (p / total) @ v, ((greatest + np.log(total)) * np.log2(np.e))[..., 0]


def attention_forward(case, heads, length, head, type, causal, specialize=False, tile=(128, 64), stages=2, **tolerance):
    q, k, v = (case.normal((heads, length, head), type) for _ in range(3))
    out, lse = case.empty((heads * length, head), type), case.empty((heads, length), "float32")
    bm, bn = tile
    maps = [TensorDescriptor.from_tensor(case.upload(x.reshape(-1, head)), [rows, head])
            for x, rows in ((q, bm), (k, bn), (v, bn))]
    _forward[(length // bm, heads)](*maps, TensorDescriptor.from_tensor(out, [bm, head]), lse, head**-.5, length, head, bm,
                                    bn, causal, specialize, num_stages=stages)
    _, want, wanted_lse = _reference(*(x.astype(np.float64) for x in (q, k, v)), head**-.5, causal)
    case.expect("out", out, want.reshape(-1, head), **tolerance)
    case.expect("lse", lse, wanted_lse, absolute=1e-2)


def attention_backward(case, heads, length, head, type, causal, tile=(64, 64), **tolerance):
    q, k, v, do = (case.normal((heads, length, head), type) for _ in range(4))
    wide = [x.astype(np.float64) for x in (q, k, v, do)]
    p, out, lse = _reference(*wide[:3], head**-.5, causal)
    delta = (out * wide[3]).sum(-1)
    inputs = [case.upload(x) for x in (q, k, v, do, lse.astype(np.float32), delta.astype(np.float32))]
    dq, dk, dv = (case.empty(q.shape, "float32") for _ in range(3))
    _backward_keys[(length // tile[1], heads)](*inputs, dk, dv, head**-.5, length, head, *tile, causal)
    _backward_queries[(length // tile[0], heads)](*inputs, dq, head**-.5, length, head, *tile, causal)
    dscores = p * (np.einsum("hmd,hnd->hmn", wide[3], wide[2]) - delta[..., None]) * head**-.5
    case.expect("dv", dv, np.einsum("hmn,hmd->hnd", p, wide[3]), **tolerance)
    case.expect("dk", dk, np.einsum("hmn,hmd->hnd", dscores, wide[0]), **tolerance)
    case.expect("dq", dq, np.einsum("hmn,hnd->hmd", dscores, wide[1]), **tolerance)


@triton.jit
def _decode(q, k, v, part, part_lse, scale, S, PARTS: tl.constexpr, GROUP: tl.constexpr, D: tl.constexpr, BN: tl.constexpr):
    """One new token for GROUP query heads that share a head of keys, over one part of the keys."""
    kv, which = tl.program_id(0), tl.program_id(1)
    g, d = tl.arange(0, GROUP), tl.arange(0, D)
    query = tl.load(q + (kv * GROUP + g)[:, None] * D + d[None, :])
    greatest = tl.full((GROUP,), float("-inf"), tl.float32)
    weight = tl.zeros((GROUP,), tl.float32)
    sums = tl.zeros((GROUP, D), tl.float32)
    for n0 in range(which * (S // PARTS), (which + 1) * (S // PARTS), BN):
        n = kv * S + n0 + tl.arange(0, BN)
        scores = tl.dot(query, tl.load(k + n[:, None] * D + d[None, :]).T) * (scale * 1.44269504)
        new = tl.maximum(greatest, tl.max(scores, 1))
        p = tl.exp2(scores - new[:, None])
        keep = tl.exp2(greatest - new)
        weight = weight * keep + tl.sum(p, 1)
        sums = tl.dot(p.to(q.dtype.element_ty), tl.load(v + n[:, None] * D + d[None, :]), sums * keep[:, None])
        greatest = new
    at = (which * tl.num_programs(0) + kv) * GROUP + g
    tl.store(part + at[:, None] * D + d[None, :], sums / weight[:, None])
    tl.store(part_lse + at, greatest + tl.log2(weight))


@triton.jit
def _combine(part, part_lse, out, HEADS, PARTS: tl.constexpr, D: tl.constexpr):
    """The parts of one head, weighted by their sums."""
    head, p, d = tl.program_id(0), tl.arange(0, PARTS), tl.arange(0, D)
    lse = tl.load(part_lse + p * HEADS + head)
    weight = tl.exp2(lse - tl.max(lse, 0))
    values = tl.load(part + (p * HEADS + head)[:, None] * D + d[None, :])
    tl.store(out + head * D + d, tl.sum(values * weight[:, None], 0) / tl.sum(weight, 0))


def attention_decode(case, groups, group, length, head, type, parts, tile=64, **tolerance):
    heads = groups * group
    q = case.normal((heads, head), type)
    k, v = case.normal((groups, length, head), type), case.normal((groups, length, head), type)
    part, part_lse = case.empty((parts, heads, head), "float32"), case.empty((parts, heads), "float32")
    out = case.empty((heads, head), "float32")
    _decode[(groups, parts)](case.upload(q), case.upload(k), case.upload(v), part, part_lse, head**-.5, length, parts, group,
                             head, tile)
    _combine[(heads,)](part, part_lse, out, heads, parts, head)
    _, want, _ = _reference(*(x.astype(np.float64) for x in (q.reshape(groups, group, head), k, v)), head**-.5, False)
    case.expect("out", out, want.reshape(heads, head), **tolerance)
