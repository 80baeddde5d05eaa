"""GEMMs in tilelang."""
import numpy as np
import tilelang.language as T

import expert_routing
from tilelang_frontend import launch


def _pipelined(M, N, K, dtype, result, BM, BN, BK, stages, threads, transposed):
    """C = A * B through a software pipeline: on Hopper tilelang makes a producer warpgroup, TMA and wgmma of it."""

    @T.prim_func
    def kernel(A: T.Tensor((M, K), dtype), B: T.Tensor((N, K) if transposed else (K, N), dtype), C: T.Tensor((M, N), result)):
        with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=threads) as (bx, by):
            left = T.alloc_shared((BM, BK), dtype)
            right = T.alloc_shared((BN, BK) if transposed else (BK, BN), dtype)
            sums = T.alloc_fragment((BM, BN), "int32" if dtype == "int8" else "float32")
            T.clear(sums)
            for k in T.Pipelined(T.ceildiv(K, BK), num_stages=stages):
                T.copy(A[by * BM, k * BK], left)
                if transposed:
                    T.copy(B[bx * BN, k * BK], right)
                else:
                    T.copy(B[k * BK, bx * BN], right)
                T.gemm(left, right, sums, transpose_B=transposed)
            T.copy(sums, C[by * BM, bx * BN])

    return kernel


def gemm(case, m, n, k, type, result="float32", tile=(128, 128, 64), stages=3, threads=128, transposed=False, **tolerance):
    integer = type == "int8"
    a, b = (case.integers(-8, 8, s, type) if integer else case.normal(s, type) for s in ((m, k), (n, k) if transposed else (k, n)))
    c = case.empty((m, n), result)
    launch(_pipelined(m, n, k, type, result, *tile, stages, threads, transposed), case.upload(a), case.upload(b), c)
    wide = np.int64 if integer else np.float64
    case.expect("c", c, a.astype(wide) @ (b.T if transposed else b).astype(wide), **tolerance)




def _tensor_memory(M, N, K, dtype, BM, BN, BK, stages, threads):
    """C = A * B^T by tcgen05.mma; the sums are in Tensor Memory, and D leaves through shared memory."""

    @T.prim_func
    def kernel(A: T.Tensor((M, K), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((M, N), "bfloat16")):
        with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=threads) as (bx, by):
            left = T.alloc_shared((BM, BK), dtype)
            right = T.alloc_shared((BN, BK), dtype)
            sums = T.alloc_tmem((BM, BN), "float32")
            done = T.alloc_barrier(1)
            local = T.alloc_fragment((BM, BN), "float32")
            out = T.alloc_shared((BM, BN), "bfloat16")
            for k in T.Pipelined(T.ceildiv(K, BK), num_stages=stages):
                T.copy(A[by * BM, k * BK], left)
                T.copy(B[bx * BN, k * BK], right)
                T.gemm(left, right, sums, transpose_B=True, clear_accum=k == 0, mbar=done)
            T.copy(sums, local)
            T.copy(local, out)
            T.copy(out, C[by * BM, bx * BN])

    return kernel


def gemm_tensor_memory(case, m, n, k, type, tile=(128, 128, 64), stages=2, threads=256, **tolerance):
    a, b = case.normal((m, k), type), case.normal((n, k), type)
    c = case.empty((m, n), "bfloat16")
    launch(_tensor_memory(m, n, k, type, *tile, stages, threads), case.upload(a), case.upload(b), c)
    case.expect("c", c, a.astype(np.float64) @ b.astype(np.float64).T, **tolerance)


def _split_k(M, N, K, dtype, BM, BN, BK, PARTS):
    """C += A * B: each part of K adds its sums by atomics."""

    @T.prim_func
    def kernel(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), PARTS, threads=128) as (bx, by, part):
            left = T.alloc_shared((BM, BK), dtype)
            right = T.alloc_shared((BK, BN), dtype)
            out = T.alloc_shared((BM, BN), "float32")
            sums = T.alloc_fragment((BM, BN), "float32")
            T.clear(sums)
            for k in T.Pipelined(K // PARTS // BK, num_stages=2):
                T.copy(A[by * BM, part * (K // PARTS) + k * BK], left)
                T.copy(B[part * (K // PARTS) + k * BK, bx * BN], right)
                T.gemm(left, right, sums)
            T.copy(sums, out)
            for i, j in T.Parallel(BM, BN):
                T.atomic_add(C[by * BM + i, bx * BN + j], out[i, j])

    return kernel


def gemm_split_k(case, m, n, k, type, parts, tile=(64, 64, 32), **tolerance):
    a, b = case.normal((m, k), type), case.normal((k, n), type)
    c = case.zeros((m, n), "float32")
    launch(_split_k(m, n, k, type, *tile, parts), case.upload(a), case.upload(b), c)
    case.expect("c", c, a.astype(np.float64) @ b.astype(np.float64), **tolerance)


def _scaled(M, N, K, BM, BN, BLOCK):
    """C = A * B^T of e4m3: a scale for BLOCK elements of a row of A, one for BLOCK x BLOCK of B; sums are promoted per block."""

    @T.prim_func
    def kernel(A: T.Tensor((M, K), "float8_e4m3fn"), B: T.Tensor((N, K), "float8_e4m3fn"),
               SA: T.Tensor((M, K // BLOCK), "float32"), SB: T.Tensor((N // BLOCK, K // BLOCK), "float32"),
               C: T.Tensor((M, N), "bfloat16")):
        with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=128) as (bx, by):
            left = T.alloc_shared((BM, BLOCK), "float8_e4m3fn")
            right = T.alloc_shared((BN, BLOCK), "float8_e4m3fn")
            scales = T.alloc_shared((BM,), "float32")
            out = T.alloc_shared((BM, BN), "bfloat16")
            part = T.alloc_fragment((BM, BN), "float32")
            sums = T.alloc_fragment((BM, BN), "float32")
            T.clear(sums)
            for k in T.Pipelined(K // BLOCK, num_stages=3):
                T.copy(A[by * BM, k * BLOCK], left)
                T.copy(B[bx * BN, k * BLOCK], right)
                for i in T.Parallel(BM):
                    scales[i] = SA[by * BM + i, k] * SB[bx * BN // BLOCK, k]
                T.clear(part)
                T.gemm(left, right, part, transpose_B=True)
                for i, j in T.Parallel(BM, BN):
                    sums[i, j] += part[i, j] * scales[i]
            T.copy(sums, out)
            T.copy(out, C[by * BM, bx * BN])

    return kernel


def gemm_scaled(case, m, n, k, block=128, tile=(64, 64), **tolerance):
    a, b = case.normal((m, k), "float8_e4m3fn"), case.normal((n, k), "float8_e4m3fn")
    sa = np.exp2(case.integers(-3, 3, (m, k // block), "float32"))
    sb = np.exp2(case.integers(-3, 3, (n // block, k // block), "float32"))
    c = case.empty((m, n), "bfloat16")
    launch(_scaled(m, n, k, *tile, block), *(case.upload(x) for x in (a, b, sa, sb)), c)
    wide = a.astype(np.float64) * sa.repeat(block, 1), b.astype(np.float64) * sb.repeat(block, 0).repeat(block, 1)
    case.expect("c", c, wide[0] @ wide[1].T, **tolerance)


def _int4_weights(M, N, K, BM, BN, BK):
    """C = A * weights^T: two 4-bit weights a byte, unpacked in registers and stored to shared memory for the MMA."""

    @T.prim_func
    def kernel(A: T.Tensor((M, K), "float16"), W: T.Tensor((N, K // 2), "uint8"), S: T.Tensor((N,), "float32"),
               C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=128) as (bx, by):
            left = T.alloc_shared((BM, BK), "float16")
            packed = T.alloc_shared((BN, BK // 2), "uint8")
            right = T.alloc_shared((BN, BK), "float16")
            bytes_ = T.alloc_fragment((BN, BK // 2), "uint8")
            wide = T.alloc_fragment((BN, BK), "float16")
            sums = T.alloc_fragment((BM, BN), "float32")
            T.clear(sums)
            for k in T.Pipelined(K // BK, num_stages=2):
                T.copy(A[by * BM, k * BK], left)
                T.copy(W[bx * BN, k * BK // 2], packed)
                T.copy(packed, bytes_)
                for i, j in T.Parallel(BN, BK):
                    wide[i, j] = T.Cast("float16", T.Cast("int8", (bytes_[i, j // 2] >> T.Cast("uint8", 4 * (j % 2))) & T.uint8(15)) - T.int8(8))
                T.copy(wide, right)
                T.gemm(left, right, sums, transpose_B=True)
            for i, j in T.Parallel(BM, BN):
                C[by * BM + i, bx * BN + j] = sums[i, j] * S[bx * BN + j]

    return kernel


def gemm_int4_weights(case, m, n, k, tile=(64, 64, 64), **tolerance):
    a, w = case.normal((m, k), "float16"), case.integers(0, 16, (n, k), "uint8")
    scales = np.abs(case.normal((n,), "float32"))
    c = case.empty((m, n), "float32")
    launch(_int4_weights(m, n, k, *tile), case.upload(a), case.upload(w[:, 0::2] | w[:, 1::2] << 4), case.upload(scales), c)
    case.expect("c", c, a.astype(np.float64) @ ((w.astype(np.float64) - 8) * scales[:, None].astype(np.float64)).T, **tolerance)


def _grouped(ROWS, TILES, GROUPS, N, K, dtype, BM, BN, BK):
    """C[g] = A[g] * B[g]: the host says for each tile of rows its group and its first row; the last tile of a group is cut."""

    @T.prim_func
    def kernel(A: T.Tensor((ROWS, K), dtype), B: T.Tensor((GROUPS, K, N), dtype), G: T.Tensor((TILES,), "int32"),
               F: T.Tensor((TILES,), "int32"), E: T.Tensor((TILES,), "int32"), C: T.Tensor((ROWS, N), "float32")):
        with T.Kernel(T.ceildiv(N, BN), TILES, threads=128) as (bx, by):
            left = T.alloc_shared((BM, BK), dtype)
            right = T.alloc_shared((BK, BN), dtype)
            sums = T.alloc_fragment((BM, BN), "float32")
            group = G[by]
            first = F[by]
            end = E[by]
            T.clear(sums)
            for k in T.Pipelined(K // BK, num_stages=2):
                T.copy(A[first:first + BM, k * BK:(k + 1) * BK], left)
                T.copy(B[group, k * BK:(k + 1) * BK, bx * BN:(bx + 1) * BN], right)
                T.gemm(left, right, sums)
            for i, j in T.Parallel(BM, BN):
                if first + i < end:
                    C[first + i, bx * BN + j] = sums[i, j]

    return kernel


def gemm_grouped(case, sizes, n, k, type, tile=(64, 64, 32), **tolerance):
    tiles, row = [], 0
    for group, rows in enumerate(sizes):
        tiles += [(group, first, row + rows) for first in range(row, row + rows, tile[0])]
        row += rows
    a, b = case.normal((row, k), type), case.normal((len(sizes), k, n), type)
    c = case.empty((row, n), "float32")
    columns = [case.upload(np.array(column, np.int32)) for column in zip(*tiles)]
    launch(_grouped(row, len(tiles), len(sizes), n, k, type, *tile), case.upload(a), case.upload(b), *columns, c)
    parts = np.split(a.astype(np.float64), np.cumsum(sizes)[:-1])
    case.expect("c", c, np.concatenate([p @ w for p, w in zip(parts, b.astype(np.float64))]), **tolerance)


def _experts(TOKENS, SLOTS, EXPERTS, N, K, dtype, BM, BN, BK):
    """Rows of X gathered by a list of tokens, times the weights of their tile's expert, weighted and added to the tokens' rows."""

    @T.prim_func
    def kernel(X: T.Tensor((TOKENS, K), dtype), B: T.Tensor((EXPERTS, K, N), dtype), L: T.Tensor((SLOTS,), "int32"),
               W: T.Tensor((SLOTS,), "float32"), G: T.Tensor((SLOTS // BM,), "int32"), Y: T.Tensor((TOKENS, N), "float32")):
        with T.Kernel(T.ceildiv(N, BN), SLOTS // BM, threads=128) as (bx, by):
            left = T.alloc_shared((BM, BK), dtype)
            right = T.alloc_shared((BK, BN), dtype)
            sums = T.alloc_fragment((BM, BN), "float32")
            expert = G[by]
            T.clear(sums)
            for k in T.Pipelined(K // BK, num_stages=2):
                for i, j in T.Parallel(BM, BK):
                    left[i, j] = T.if_then_else(L[by * BM + i] < TOKENS, X[L[by * BM + i], k * BK + j], T.Cast(dtype, 0))
                T.copy(B[expert, k * BK:(k + 1) * BK, bx * BN:(bx + 1) * BN], right)
                T.gemm(left, right, sums)
            for i, j in T.Parallel(BM, BN):
                if L[by * BM + i] < TOKENS:
                    T.atomic_add(Y[L[by * BM + i], bx * BN + j], sums[i, j] * W[by * BM + i])

    return kernel


def gemm_experts(case, tokens, experts, chosen, n, k, type, tile=(32, 64, 32), **tolerance):
    def run(inputs, y):
        launch(_experts(tokens, inputs[2].shape[0], experts, n, k, type, *tile), *inputs, y)

    expert_routing.experts(case, tokens, experts, chosen, n, k, type, tile[0], run, **tolerance)
