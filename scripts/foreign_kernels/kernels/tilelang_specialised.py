"""tilelang kernels whose roles, barriers and phases are written by hand, and convolutions by im2col copies."""
import numpy as np
import tilelang.language as T

from tilelang_frontend import launch


def _roles_tensor_memory(M, N, K, dtype, BM, BN, BK, STAGES):
    """C = A * B^T: one warp loads, one issues tcgen05.mma, a warpgroup stores."""
    steps = K // BK

    @T.prim_func
    def kernel(A: T.Tensor((M, K), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((M, N), "bfloat16")):
        with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=256) as (bx, by):
            left = T.alloc_shared((STAGES, BM, BK), dtype)
            right = T.alloc_shared((STAGES, BN, BK), dtype)
            sums = T.alloc_tmem((BM, BN), "float32")
            local = T.alloc_fragment((BM, BN), "float32")
            out = T.alloc_shared((BM, BN), "bfloat16")
            full = T.alloc_barrier([32] * STAGES)
            empty = T.alloc_barrier([1] * STAGES)
            done = T.alloc_barrier(1)
            thread = T.get_thread_binding()
            if thread < 32:
                for k in T.serial(steps):
                    T.mbarrier_wait_parity(empty[k % STAGES], ((k // STAGES) & 1) ^ 1)
                    T.tma_copy(A[by * BM:(by + 1) * BM, k * BK:(k + 1) * BK], left[k % STAGES, :, :], barrier=full[k % STAGES])
                    T.tma_copy(B[bx * BN:(bx + 1) * BN, k * BK:(k + 1) * BK], right[k % STAGES, :, :], barrier=full[k % STAGES])
                    T.mbarrier_arrive(full[k % STAGES])
            elif thread < 64:
                for k in T.serial(steps):
                    T.mbarrier_wait_parity(full[k % STAGES], (k // STAGES) & 1)
                    T.tcgen05_gemm(left[k % STAGES, :, :], right[k % STAGES, :, :], sums, transpose_B=True, clear_accum=k == 0,
                                   mbar=empty[k % STAGES])
                T.tcgen05_mma_arrive(done)
            T.mbarrier_wait_parity(done, 0)
            T.copy(sums, local)
            T.copy(local, out)
            T.copy(out, C[by * BM, bx * BN])

    return kernel


def gemm_roles(case, m, n, k, type, tile=(128, 128, 64), stages=3, **tolerance):
    a, b = case.normal((m, k), type), case.normal((n, k), type)
    c = case.empty((m, n), "bfloat16")
    launch(_roles_tensor_memory(m, n, k, type, *tile, stages), case.upload(a), case.upload(b), c)
    case.expect("c", c, a.astype(np.float64) @ b.astype(np.float64).T, **tolerance)


def _consumers(M, N, K, dtype, BM, BN, BK, STAGES):
    """C = A * B^T by wgmma: a producer warpgroup and two consumers with a tile of rows each."""
    steps = K // BK

    @T.prim_func
    def kernel(A: T.Tensor((M, K), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, 2 * BM), threads=384) as (bx, by):
            upper = T.alloc_shared((STAGES, BM, BK), dtype)
            lower = T.alloc_shared((STAGES, BM, BK), dtype)
            right = T.alloc_shared((STAGES, BN, BK), dtype)
            full = T.alloc_barrier([128] * STAGES)
            empty = T.alloc_barrier([256] * STAGES)
            upper_sums = T.alloc_fragment((BM, BN), "float32")
            lower_sums = T.alloc_fragment((BM, BN), "float32")
            thread = T.get_thread_binding()
            if thread < 128:
                T.clear(upper_sums)
                for k in T.serial(steps):
                    T.mbarrier_wait_parity(full[k % STAGES], (k // STAGES) & 1)
                    T.gemm(upper[k % STAGES, :, :], right[k % STAGES, :, :], upper_sums, transpose_B=True)
                    T.mbarrier_arrive(empty[k % STAGES])
                T.copy(upper_sums, C[by * 2 * BM, bx * BN])
            elif thread < 256:
                T.clear(lower_sums)
                for k in T.serial(steps):
                    T.mbarrier_wait_parity(full[k % STAGES], (k // STAGES) & 1)
                    T.gemm(lower[k % STAGES, :, :], right[k % STAGES, :, :], lower_sums, transpose_B=True)
                    T.mbarrier_arrive(empty[k % STAGES])
                T.copy(lower_sums, C[by * 2 * BM + BM, bx * BN])
            else:
                for k in T.serial(steps):
                    T.mbarrier_wait_parity(empty[k % STAGES], ((k // STAGES) & 1) ^ 1)
                    T.tma_copy(A[by * 2 * BM:by * 2 * BM + BM, k * BK:(k + 1) * BK], upper[k % STAGES, :, :], barrier=full[k % STAGES])
                    T.tma_copy(A[by * 2 * BM + BM:(by + 1) * 2 * BM, k * BK:(k + 1) * BK], lower[k % STAGES, :, :], barrier=full[k % STAGES])
                    T.tma_copy(B[bx * BN:(bx + 1) * BN, k * BK:(k + 1) * BK], right[k % STAGES, :, :], barrier=full[k % STAGES])
                    T.mbarrier_arrive(full[k % STAGES])

    return kernel


def gemm_consumers(case, m, n, k, type, tile=(64, 128, 64), stages=3, **tolerance):
    a, b = case.normal((m, k), type), case.normal((n, k), type)
    c = case.empty((m, n), "float32")
    launch(_consumers(m, n, k, type, *tile, stages), case.upload(a), case.upload(b), c)
    case.expect("c", c, a.astype(np.float64) @ b.astype(np.float64).T, **tolerance)


def _convolution(N, H, W, C, F, R, S, PAD, STRIDE, BM, BN, BK):
    P, Q = (H + 2 * PAD - R) // STRIDE + 1, (W + 2 * PAD - S) // STRIDE + 1

    @T.prim_func
    def kernel(X: T.Tensor((N, H, W, C), "float16"), B: T.Tensor((R * S * C, F), "float16"), Y: T.Tensor((N * P * Q, F), "float32")):
        with T.Kernel(T.ceildiv(F, BN), T.ceildiv(N * P * Q, BM), threads=128) as (bx, by):
            pixels = T.alloc_shared((BM, BK), "float16")
            filters = T.alloc_shared((BK, BN), "float16")
            sums = T.alloc_fragment((BM, BN), "float32")
            T.clear(sums)
            for k in T.Pipelined(R * S * C // BK, num_stages=2):
                T.im2col(X, pixels, by, k, R, STRIDE, 1, PAD)
                T.copy(B[k * BK, bx * BN], filters)
                T.gemm(pixels, filters, sums)
            T.copy(sums, Y[by * BM, bx * BN])

    return kernel


def convolution(case, n, h, w, c, k, r, s, pad, stride, tile=(64, 64, 32), **tolerance):
    x, filters = case.normal((n, h, w, c), "float16"), case.normal((r, s, c, k), "float16")
    p, q = ((h + 2 * pad - r) // stride + 1, (w + 2 * pad - s) // stride + 1)
    y = case.empty((n * p * q, k), "float32")
    launch(_convolution(n, h, w, c, k, r, s, pad, stride, *tile), case.upload(x), case.upload(filters.reshape(-1, k)), y)
    padded = np.pad(x.astype(np.float64), ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    want = np.zeros((n, p, q, k))
    for i in range(r):
        for j in range(s):
            want += padded[:, i:i + stride * (p - 1) + 1:stride, j:j + stride * (q - 1) + 1:stride] @ filters[i, j].astype(np.float64)
    case.expect("y", y, want.reshape(-1, k), **tolerance)
