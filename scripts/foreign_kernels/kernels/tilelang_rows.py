"""Kernels over rows in tilelang: norms, softmax, quantisation, a chunked recurrence."""
import numpy as np
import tilelang.language as T

from tilelang_frontend import launch


def _softmax(M, N, BN):
    """Two passes over each row: the greatest element and the sum of weights online, then the weights."""

    @T.prim_func
    def kernel(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(M, threads=128) as row:
            part = T.alloc_fragment((BN,), "float32")
            greatest = T.alloc_fragment((1,), "float32")
            now = T.alloc_fragment((1,), "float32")
            total = T.alloc_fragment((1,), "float32")
            weight = T.alloc_fragment((1,), "float32")
            T.fill(greatest, -T.infinity("float32"))
            T.fill(weight, 0)
            for n in T.Pipelined(T.ceildiv(N, BN), num_stages=2):
                for j in T.Parallel(BN):
                    part[j] = T.if_then_else(n * BN + j < N, X[row, n * BN + j], -T.infinity("float32"))
                T.reduce_max(part, now, dim=0, clear=True)
                for i in T.Parallel(1):
                    now[i] = T.max(now[i], greatest[i])
                for j in T.Parallel(BN):
                    part[j] = T.exp(part[j] - now[0])
                T.reduce_sum(part, total, dim=0)
                for i in T.Parallel(1):
                    weight[i] = weight[i] * T.exp(greatest[i] - now[i]) + total[i]
                    greatest[i] = now[i]
            for n in T.serial(T.ceildiv(N, BN)):
                for j in T.Parallel(BN):
                    if n * BN + j < N:
                        Y[row, n * BN + j] = T.exp(X[row, n * BN + j] - greatest[0]) / weight[0]

    return kernel


def softmax(case, rows, columns, block=256, **tolerance):
    x = case.normal((rows, columns), "float32", 4.0)
    y = case.empty(x.shape, "float32")
    launch(_softmax(rows, columns, block), case.upload(x), y)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    case.expect("y", y, e / e.sum(1, keepdims=True), **tolerance)


def _norm(M, N, BM):
    @T.prim_func
    def kernel(X: T.Tensor((M, N), "bfloat16"), W: T.Tensor((N,), "bfloat16"), B: T.Tensor((N,), "bfloat16"),
               Y: T.Tensor((M, N), "bfloat16")):
        with T.Kernel(T.ceildiv(M, BM), threads=128) as bx:
            tile = T.alloc_shared((BM, N), "bfloat16")
            x = T.alloc_fragment((BM, N), "float32")
            square = T.alloc_fragment((BM, N), "float32")
            mean = T.alloc_fragment((BM,), "float32")
            scale = T.alloc_fragment((BM,), "float32")
            T.copy(X[bx * BM, 0], tile)
            T.copy(tile, x)
            T.reduce_sum(x, mean, dim=1)
            for i, j in T.Parallel(BM, N):
                x[i, j] -= mean[i] / N
            for i, j in T.Parallel(BM, N):
                square[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(square, scale, dim=1)
            for i in T.Parallel(BM):
                scale[i] = T.rsqrt(scale[i] / N + 1e-5)
            for i, j in T.Parallel(BM, N):
                x[i, j] = x[i, j] * scale[i] * W[j] + B[j]
            T.copy(x, tile)
            T.copy(tile, Y[bx * BM, 0])

    return kernel


def layer_norm(case, rows, columns, block=8, **tolerance):
    x = case.normal((rows, columns), "bfloat16", 2.0)
    w, b = case.normal((columns,), "bfloat16"), case.normal((columns,), "bfloat16")
    y = case.empty(x.shape, "bfloat16")
    launch(_norm(rows, columns, block), case.upload(x), case.upload(w), case.upload(b), y)
    wide = x.astype(np.float64)
    wide -= wide.mean(1, keepdims=True)
    case.expect("y", y, wide / np.sqrt(wide.var(1, keepdims=True) + 1e-5) * w.astype(np.float64) + b.astype(np.float64), **tolerance)


def _quantise(M, N, BLOCK, BM):
    """e4m3 with one scale for BLOCK elements of a row: the greatest magnitude becomes 448."""

    @T.prim_func
    def kernel(X: T.Tensor((M, N), "bfloat16"), Y: T.Tensor((M, N), "float8_e4m3fn"), S: T.Tensor((M, N // BLOCK), "float32")):
        with T.Kernel(T.ceildiv(M, BM), N // BLOCK, threads=128) as (bx, by):
            x = T.alloc_fragment((BM, BLOCK), "float32")
            greatest = T.alloc_fragment((BM,), "float32")
            scale = T.alloc_fragment((BM,), "float32")
            narrow = T.alloc_fragment((BM, BLOCK), "float8_e4m3fn")
            T.copy(X[bx * BM, by * BLOCK], x)
            T.reduce_absmax(x, greatest, dim=1)
            for i in T.Parallel(BM):
                scale[i] = T.max(greatest[i], 1e-4) / 448.0
                S[bx * BM + i, by] = scale[i]
            for i, j in T.Parallel(BM, BLOCK):
                narrow[i, j] = T.clamp(x[i, j] / scale[i], -448.0, 448.0)
            T.copy(narrow, Y[bx * BM, by * BLOCK])

    return kernel


def quantise(case, rows, columns, block=128, rows_of_a_tile=32, **tolerance):
    x = case.normal((rows, columns), "bfloat16")
    y, scales = case.empty(x.shape, "float8_e4m3fn"), case.empty((rows, columns // block), "float32")
    launch(_quantise(rows, columns, block, rows_of_a_tile), case.upload(x), y, scales)
    wide = x.astype(np.float32).reshape(rows, -1, block)
    want = np.maximum(np.abs(wide).max(-1), 1e-4) / np.float32(448)
    case.expect("scales", scales, want, relative=1e-6)
    case.expect("y", y, (wide / want[..., None]).reshape(rows, columns), **tolerance)


def _recurrence(H, L, D, C):
    """Linear attention, chunk by chunk: o = (q k^T, causal) v + q s, then s += k^T v."""

    @T.prim_func
    def kernel(Q: T.Tensor((H, L, D), "bfloat16"), K: T.Tensor((H, L, D), "bfloat16"), V: T.Tensor((H, L, D), "bfloat16"),
               O: T.Tensor((H, L, D), "float32")):
        with T.Kernel(H, threads=128) as head:
            query = T.alloc_shared((C, D), "bfloat16")
            key = T.alloc_shared((C, D), "bfloat16")
            value = T.alloc_shared((C, D), "bfloat16")
            state_copy = T.alloc_shared((D, D), "bfloat16")
            weights_copy = T.alloc_shared((C, C), "bfloat16")
            weights = T.alloc_fragment((C, C), "float32")
            out = T.alloc_fragment((C, D), "float32")
            state = T.alloc_fragment((D, D), "float32")
            T.clear(state)
            for t in T.Pipelined(L // C, num_stages=1):
                T.copy(Q[head, t * C:(t + 1) * C, :], query)
                T.copy(K[head, t * C:(t + 1) * C, :], key)
                T.copy(V[head, t * C:(t + 1) * C, :], value)
                T.clear(weights)
                T.gemm(query, key, weights, transpose_B=True)
                for i, j in T.Parallel(C, C):
                    weights[i, j] = T.if_then_else(i >= j, weights[i, j], 0)
                T.copy(weights, weights_copy)
                T.copy(state, state_copy)
                T.clear(out)
                T.gemm(weights_copy, value, out)
                T.gemm(query, state_copy, out)
                T.gemm(key, value, state, transpose_A=True)
                T.copy(out, O[head, t * C:(t + 1) * C, :])

    return kernel


def linear_attention(case, heads, length, head, chunk=64, **tolerance):
    q, k, v = (case.normal((heads, length, head), "bfloat16", head**-.25) for _ in range(3))
    out = case.empty(q.shape, "float32")
    launch(_recurrence(heads, length, head, chunk), *(case.upload(x) for x in (q, k, v)), out)
    wide = [x.astype(np.float64) for x in (q, k, v)]
    case.expect("out", out, np.tril(np.einsum("hmd,hnd->hmn", *wide[:2])) @ wide[2], **tolerance)
