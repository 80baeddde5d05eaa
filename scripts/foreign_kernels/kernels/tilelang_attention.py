"""Attention in tilelang: forward, backward, and decoding with a split of the keys."""
import numpy as np
import tilelang.language as T

from tilelang_frontend import launch


def _forward(H, S, D, dtype, causal, BM, BN, stages, threads):
    scale = D**-0.5 * 1.44269504

    @T.prim_func
    def kernel(Q: T.Tensor((H, S, D), dtype), K: T.Tensor((H, S, D), dtype), V: T.Tensor((H, S, D), dtype),
               O: T.Tensor((H, S, D), dtype), L: T.Tensor((H, S), "float32")):
        with T.Kernel(T.ceildiv(S, BM), H, threads=threads) as (bx, head):
            query = T.alloc_shared((BM, D), dtype)
            key = T.alloc_shared((BN, D), dtype)
            value = T.alloc_shared((BN, D), dtype)
            out = T.alloc_shared((BM, D), dtype)
            scores = T.alloc_fragment((BM, BN), "float32")
            p = T.alloc_fragment((BM, BN), dtype)
            sums = T.alloc_fragment((BM, D), "float32")
            greatest = T.alloc_fragment((BM,), "float32")
            before = T.alloc_fragment((BM,), "float32")
            keep = T.alloc_fragment((BM,), "float32")
            row = T.alloc_fragment((BM,), "float32")
            weight = T.alloc_fragment((BM,), "float32")
            T.copy(Q[head, bx * BM:(bx + 1) * BM, :], query)
            T.fill(sums, 0)
            T.fill(weight, 0)
            T.fill(greatest, -T.infinity("float32"))
            for n in T.Pipelined(T.ceildiv((bx + 1) * BM, BN) if causal else T.ceildiv(S, BN), num_stages=stages):
                T.copy(K[head, n * BN:(n + 1) * BN, :], key)
                if causal:
                    for i, j in T.Parallel(BM, BN):
                        scores[i, j] = T.if_then_else(bx * BM + i >= n * BN + j, 0, -T.infinity("float32"))
                else:
                    T.clear(scores)
                T.gemm(query, key, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(greatest, before)
                T.reduce_max(scores, greatest, dim=1, clear=False)
                for i in T.Parallel(BM):
                    keep[i] = T.exp2((before[i] - greatest[i]) * scale)
                for i, j in T.Parallel(BM, BN):
                    scores[i, j] = T.exp2(scores[i, j] * scale - greatest[i] * scale)
                T.reduce_sum(scores, row, dim=1)
                for i in T.Parallel(BM):
                    weight[i] = weight[i] * keep[i] + row[i]
                T.copy(scores, p)
                for i, j in T.Parallel(BM, D):
                    sums[i, j] *= keep[i]
                T.copy(V[head, n * BN:(n + 1) * BN, :], value)
                T.gemm(p, value, sums, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(BM, D):
                sums[i, j] /= weight[i]
            T.copy(sums, out)
            T.copy(out, O[head, bx * BM:(bx + 1) * BM, :])
            for i in T.Parallel(BM):
                L[head, bx * BM + i] = T.log2(weight[i]) + greatest[i] * scale

    return kernel


def _reference(q, k, v, scale, causal):
    """Scores' weights, the output and the logarithm (base 2) of the weights' sums, in f64."""
    scores = np.einsum("hmd,hnd->hmn", q, k) * scale
    if causal:
        scores = np.where(np.tri(*scores.shape[1:], dtype=bool), scores, -np.inf)
    greatest = scores.max(-1, keepdims=True)
    p = np.exp(scores - greatest)
    total = p.sum(-1, keepdims=True)
    return p / total, (p / total) @ v, ((greatest + np.log(total)) * np.log2(np.e))[..., 0]


def attention_forward(case, heads, length, head, type, causal=False, tile=(64, 64), stages=2, threads=128, **tolerance):
    q, k, v = (case.normal((heads, length, head), type) for _ in range(3))
    out, lse = case.empty(q.shape, type), case.empty((heads, length), "float32")
    launch(_forward(heads, length, head, type, causal, *tile, stages, threads), *(case.upload(x) for x in (q, k, v)), out, lse)
    _, want, wanted_lse = _reference(*(x.astype(np.float64) for x in (q, k, v)), head**-.5, causal)
    case.expect("out", out, want, **tolerance)
    case.expect("lse", lse, wanted_lse, absolute=1e-2)


def _backward(H, S, D, dtype, causal, BM, BN):
    """dK and dV of a block of keys, and dQ by atomics, in one kernel that loops over the queries."""
    scale = D**-0.5

    @T.prim_func
    def kernel(Q: T.Tensor((H, S, D), dtype), K: T.Tensor((H, S, D), dtype), V: T.Tensor((H, S, D), dtype),
               dO: T.Tensor((H, S, D), dtype), L: T.Tensor((H, S), "float32"), Delta: T.Tensor((H, S), "float32"),
               dQ: T.Tensor((H, S, D), "float32"), dK: T.Tensor((H, S, D), "float32"), dV: T.Tensor((H, S, D), "float32")):
        with T.Kernel(T.ceildiv(S, BN), H, threads=128) as (by, head):
            key = T.alloc_shared((BN, D), dtype)
            value = T.alloc_shared((BN, D), dtype)
            query = T.alloc_shared((BM, D), dtype)
            gradient = T.alloc_shared((BM, D), dtype)
            lse = T.alloc_shared((BM,), "float32")
            delta = T.alloc_shared((BM,), "float32")
            dscores = T.alloc_shared((BN, BM), dtype)
            scores = T.alloc_fragment((BN, BM), "float32")
            dp = T.alloc_fragment((BN, BM), "float32")
            p = T.alloc_fragment((BN, BM), dtype)
            ds = T.alloc_fragment((BN, BM), dtype)
            dkey = T.alloc_fragment((BN, D), "float32")
            dvalue = T.alloc_fragment((BN, D), "float32")
            dquery = T.alloc_fragment((BM, D), "float32")
            T.copy(K[head, by * BN:(by + 1) * BN, :], key)
            T.copy(V[head, by * BN:(by + 1) * BN, :], value)
            T.clear(dkey)
            T.clear(dvalue)
            for m in T.Pipelined(T.floordiv(by * BN, BM) if causal else 0, T.ceildiv(S, BM), num_stages=2):
                T.copy(Q[head, m * BM:(m + 1) * BM, :], query)
                T.clear(scores)
                T.gemm(key, query, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(L[head, m * BM:(m + 1) * BM], lse)
                for i, j in T.Parallel(BN, BM):
                    scores[i, j] = T.exp2(scores[i, j] * scale * 1.44269504 - lse[j])
                if causal:
                    for i, j in T.Parallel(BN, BM):
                        scores[i, j] = T.if_then_else(by * BN + i <= m * BM + j, scores[i, j], 0)
                T.copy(dO[head, m * BM:(m + 1) * BM, :], gradient)
                T.clear(dp)
                T.gemm(value, gradient, dp, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(scores, p)
                T.gemm(p, gradient, dvalue, policy=T.GemmWarpPolicy.FullRow)
                T.copy(Delta[head, m * BM:(m + 1) * BM], delta)
                for i, j in T.Parallel(BN, BM):
                    ds[i, j] = scores[i, j] * (dp[i, j] - delta[j]) * scale
                T.gemm(ds, query, dkey, policy=T.GemmWarpPolicy.FullRow)
                T.copy(ds, dscores)
                T.clear(dquery)
                T.gemm(dscores, key, dquery, transpose_A=True)
                for i, j in T.Parallel(BM, D):
                    T.atomic_add(dQ[head, m * BM + i, j], dquery[i, j])
            T.copy(dkey, dK[head, by * BN:(by + 1) * BN, :])
            T.copy(dvalue, dV[head, by * BN:(by + 1) * BN, :])

    return kernel


def attention_backward(case, heads, length, head, type, causal=False, tile=(64, 64), **tolerance):
    q, k, v, do = (case.normal((heads, length, head), type) for _ in range(4))
    wide = [x.astype(np.float64) for x in (q, k, v, do)]
    p, out, lse = _reference(*wide[:3], head**-.5, causal)
    delta = (out * wide[3]).sum(-1)
    inputs = [case.upload(x) for x in (q, k, v, do, lse.astype(np.float32), delta.astype(np.float32))]
    dq, dk, dv = case.zeros(q.shape, "float32"), case.empty(q.shape, "float32"), case.empty(q.shape, "float32")
    launch(_backward(heads, length, head, type, causal, *tile), *inputs, dq, dk, dv)
    dscores = p * (np.einsum("hmd,hnd->hmn", wide[3], wide[2]) - delta[..., None]) * head**-.5
    case.expect("dv", dv, np.einsum("hmn,hmd->hnd", p, wide[3]), **tolerance)
    case.expect("dk", dk, np.einsum("hmn,hmd->hnd", dscores, wide[0]), **tolerance)
    case.expect("dq", dq, np.einsum("hmn,hnd->hmd", dscores, wide[1]), **tolerance)
