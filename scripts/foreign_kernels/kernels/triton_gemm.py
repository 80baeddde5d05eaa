"""GEMMs in Triton."""
import ml_dtypes
import numpy as np
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def _pointers(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WIDE: tl.constexpr):
    """C = A * B, all row-major, by pointers and masks: cp.async, ldmatrix or generic stores feed the MMA."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    sums = tl.zeros((BM, BN), WIDE)
    for k0 in range(0, K, BK):
        left = tl.load(a + m[:, None] * K + (k0 + k)[None, :], (m[:, None] < M) & ((k0 + k)[None, :] < K), 0)
        right = tl.load(b + (k0 + k)[:, None] * N + n[None, :], ((k0 + k)[:, None] < K) & (n[None, :] < N), 0)
        sums = tl.dot(left, right, sums, out_dtype=WIDE)
    tl.store(c + m[:, None] * N + n[None, :], sums, (m[:, None] < M) & (n[None, :] < N))


def gemm_pointers(case, m, n, k, type, stages=3, warps=4, ctas=1, tile=(128, 128, 64), **tolerance):
    integer = type == "int8"
    a, b = (case.integers(-8, 8, s, type) if integer else case.normal(s, type) for s in ((m, k), (k, n)))
    c = case.empty((m, n), "int32" if integer else "float32")
    grid = (triton.cdiv(m, tile[0]), triton.cdiv(n, tile[1]))
    _pointers[grid](case.upload(a), case.upload(b), c, m, n, k, *tile, tl.int32 if integer else tl.float32,
                    num_stages=stages, num_warps=warps, num_ctas=ctas)
    wide = np.int64 if integer else np.float64
    case.expect("c", c, a.astype(wide) @ b.astype(wide), **tolerance)


@triton.jit
def _tensor_maps(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """C = A * B^T through tensor maps that the host encodes."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    sums = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        sums = tl.dot(a.load([m, k]), b.load([n, k]).T, sums)
    c.store([m, n], sums.to(c.dtype))


def gemm_tensor_maps(case, m, n, k, type, result="float32", stages=3, warps=4, ctas=1, tile=(128, 128, 64), **tolerance):
    a, b = case.normal((m, k), type), case.normal((n, k), type)
    c = case.empty((m, n), result)
    bm, bn, bk = tile
    _tensor_maps[(triton.cdiv(m, bm), triton.cdiv(n, bn))](
        TensorDescriptor.from_tensor(case.upload(a), [bm, bk]), TensorDescriptor.from_tensor(case.upload(b), [bn, bk]),
        TensorDescriptor.from_tensor(c, [bm, bn]), k, bm, bn, bk, num_stages=stages, num_warps=warps, num_ctas=ctas)
    case.expect("c", c, a.astype(np.float64) @ b.astype(np.float64).T, **tolerance)


@triton.jit
def _persistent(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr,
                PROGRAMS: tl.constexpr):
    """C = A * B^T: each program takes tile after tile, through tensor maps that it writes itself."""
    left = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    right = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    out = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    columns = tl.cdiv(N, BN)
    tiles = tl.cdiv(M, BM) * columns
    for tile in tl.range(tl.program_id(0), tiles, PROGRAMS, flatten=True, warp_specialize=SPLIT):
        m, n = (tile // columns) * BM, (tile % columns) * BN
        sums = tl.zeros((BM, BN), tl.float32)
        for k in range(tl.cdiv(K, BK)):
            sums = tl.dot(left.load([m, k * BK]), right.load([n, k * BK]).T, sums)
        out.store([m, n], sums.to(out.dtype))


def gemm_persistent(case, m, n, k, type, specialize, programs=3, stages=3, warps=4, tile=(128, 128, 64), **tolerance):
    a, b = case.normal((m, k), type), case.normal((n, k), type)
    c = case.empty((m, n), type)
    _persistent[(programs,)](case.upload(a), case.upload(b), c, m, n, k, *tile, specialize, programs,
                             num_stages=stages, num_warps=warps)
    case.expect("c", c, a.astype(np.float64) @ b.astype(np.float64).T, **tolerance)


@triton.jit
def _grouped(sizes, a, b, c, N, K, GROUPS: tl.constexpr, PROGRAMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
             BK: tl.constexpr):
    """C[g] = A[g] * B[g] for groups with different numbers of rows; tiles are dealt to programs one after the other."""
    tile = tl.program_id(0)
    before, row = 0, 0
    columns = tl.cdiv(N, BN)
    for g in range(GROUPS):
        rows = tl.load(sizes + g)
        tiles = tl.cdiv(rows, BM) * columns
        while tile >= before and tile < before + tiles:
            m = (tile - before) // columns * BM + tl.arange(0, BM)
            n = (tile - before) % columns * BN + tl.arange(0, BN)
            k = tl.arange(0, BK)
            sums = tl.zeros((BM, BN), tl.float32)
            for k0 in range(0, K, BK):
                left = tl.load(a + (row + m)[:, None] * K + (k0 + k)[None, :], m[:, None] < rows, 0)
                right = tl.load(b + g * K * N + (k0 + k)[:, None] * N + n[None, :])
                sums = tl.dot(left, right, sums)
            tl.store(c + (row + m)[:, None] * N + n[None, :], sums, m[:, None] < rows)
            tile += PROGRAMS
        before += tiles
        row += rows


def gemm_grouped(case, sizes, n, k, type, programs=4, tile=(64, 64, 64), **tolerance):
    rows = sum(sizes)
    a, b = case.normal((rows, k), type), case.normal((len(sizes), k, n), type)
    c = case.empty((rows, n), "float32")
    _grouped[(programs,)](case.upload(np.array(sizes, np.int32)), case.upload(a), case.upload(b), c, n, k, len(sizes),
                          programs, *tile)
    parts = np.split(a.astype(np.float64), np.cumsum(sizes)[:-1])
    case.expect("c", c, np.concatenate([p @ w for p, w in zip(parts, b.astype(np.float64))]), **tolerance)


@triton.jit
def _int4_weights(a, packed, scales, c, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """C = A * (weights * scales): two 4-bit weights a byte, along K, and a scale for each 64 weights of a column."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k, half = tl.arange(0, BK), tl.arange(0, BK // 2)
    sums = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        left = tl.load(a + m[:, None] * K + (k0 + k)[None, :])
        both = tl.load(packed + (k0 // 2 + half)[:, None] * N + n[None, :])
        low, high = (both & 15).to(tl.int8) - 8, (both >> 4).to(tl.int8) - 8
        weights = tl.join(low, high).permute(0, 2, 1).reshape(BK, BN).to(a.dtype.element_ty)
        scale = tl.load(scales + (k0 // BK) * N + n)
        sums = tl.dot(left, weights * scale[None, :], sums)
    tl.store(c + m[:, None] * N + n[None, :], sums)


def gemm_int4_weights(case, m, n, k, type, tile=(64, 64, 64), **tolerance):
    a, weights = case.normal((m, k), type), case.integers(-8, 8, (k, n), "int8")
    scales = case.normal((k // tile[2], n), type)
    packed = ((weights[0::2] + 8) | ((weights[1::2] + 8) << 4)).astype(np.uint8)
    c = case.empty((m, n), "float32")
    _int4_weights[(m // tile[0], n // tile[1])](case.upload(a), case.upload(packed), case.upload(scales), c, n, k, *tile)
    wide = (weights * np.repeat(scales, tile[2], 0).astype(np.float32)).astype(scales.dtype)
    case.expect("c", c, a.astype(np.float64) @ wide.astype(np.float64), **tolerance)


@triton.jit
def _scaled(a, sa, b, sb, c, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, VECTOR: tl.constexpr,
            A: tl.constexpr, B: tl.constexpr):
    """C = (A * scales) * (B * scales)^T with a scale for each VECTOR elements along K; e2m1 are two a byte."""
    A_PACK: tl.constexpr = 2 if A == "e2m1" else 1
    B_PACK: tl.constexpr = 2 if B == "e2m1" else 1
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    ka, kb, ks = tl.arange(0, BK // A_PACK), tl.arange(0, BK // B_PACK), tl.arange(0, BK // VECTOR)
    sums = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        left = tl.load(a + m[:, None] * (K // A_PACK) + (k0 // A_PACK + ka)[None, :])
        right = tl.load(b + n[:, None] * (K // B_PACK) + (k0 // B_PACK + kb)[None, :])
        left_scale = tl.load(sa + m[:, None] * (K // VECTOR) + (k0 // VECTOR + ks)[None, :])
        right_scale = tl.load(sb + n[:, None] * (K // VECTOR) + (k0 // VECTOR + ks)[None, :])
        sums = tl.dot_scaled(left, left_scale, A, right.T, right_scale, B, sums)
    tl.store(c + m[:, None] * N + n[None, :], sums)


_E2M1 = np.array([0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6])


def _operand(case, rows, k, format):
    """What the kernel reads, and the values: packed e2m1, or e4m3."""
    if format == "e2m1":
        codes = case.integers(0, 16, (rows, k), "uint8")
        return codes[:, 0::2] | (codes[:, 1::2] << 4), _E2M1[codes]
    values = case.normal((rows, k), "float8_e4m3fn")
    return values, values.astype(np.float64)


def _scales(case, rows, count, format):
    if format == "ue8m0":
        bits = case.integers(124, 131, (rows, count), "uint8")
        return bits, 2.0 ** (bits.astype(np.float64) - 127)
    values = np.abs(case.normal((rows, count), "float32")).astype(ml_dtypes.float8_e4m3fn)
    return values, values.astype(np.float64)


def gemm_scaled(case, m, n, k, a, b, scales="ue8m0", vector=32, tile=(128, 128, 128), stages=2, **tolerance):
    left, left_values = _operand(case, m, k, a)
    right, right_values = _operand(case, n, k, b)
    left_scales, sa = _scales(case, m, k // vector, scales)
    right_scales, sb = _scales(case, n, k // vector, scales)
    c = case.empty((m, n), "float32")
    _scaled[(m // tile[0], n // tile[1])](case.upload(left), case.upload(left_scales), case.upload(right),
                                         case.upload(right_scales), c, n, k, *tile, vector, a, b, num_stages=stages)
    want = (left_values * np.repeat(sa, vector, 1)) @ (right_values * np.repeat(sb, vector, 1)).T
    case.expect("c", c, want, **tolerance)


@triton.jit
def _split_k(a, b, c, N, K, SPLITS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """C += A * B: split-K; programs add their partials by atomics."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    part = K // SPLITS
    k = tl.program_id(2) * part + tl.arange(0, BK)
    sums = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, part, BK):
        sums = tl.dot(tl.load(a + m[:, None] * K + (k0 + k)[None, :]), tl.load(b + (k0 + k)[:, None] * N + n[None, :]),
                      sums)
    tl.atomic_add(c + m[:, None] * N + n[None, :], sums, sem="relaxed")


def gemm_split_k(case, m, n, k, type, splits, tile=(64, 64, 64), **tolerance):
    a, b = case.normal((m, k), type), case.normal((k, n), type)
    c = case.zeros((m, n), "float32")
    _split_k[(m // tile[0], n // tile[1], splits)](case.upload(a), case.upload(b), c, n, k, splits, *tile)
    case.expect("c", c, a.astype(np.float64) @ b.astype(np.float64), **tolerance)


@triton.jit
def _gathered(a, rows, b, c, scattered, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """C[rows] = A[rows] * B^T: rows by tile::gather4, stored by tile::scatter4."""
    at = tl.load(rows + tl.program_id(0) * BM + tl.arange(0, BM))
    n = tl.program_id(1) * BN
    sums = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        sums = tl.dot(a.gather(at, k), b.load([n, k]).T, sums)
    c.store([tl.program_id(0) * BM, n], sums.to(c.dtype))
    scattered.scatter(sums.to(c.dtype), at, n)


def gemm_gathered(case, rows, of, n, k, type, tile=(128, 64, 64), **tolerance):
    a, b = case.normal((of, k), type), case.normal((n, k), type)
    at = case.permutation(of)[:rows].astype(np.int32)
    c, scattered = case.empty((rows, n), type), case.zeros((of, n), type)
    bm, bn, bk = tile
    _gathered[(rows // bm, n // bn)](
        TensorDescriptor.from_tensor(case.upload(a), [1, bk]), case.upload(at),
        TensorDescriptor.from_tensor(case.upload(b), [bn, bk]), TensorDescriptor.from_tensor(c, [bm, bn]),
        TensorDescriptor.from_tensor(scattered, [1, bn]), k, *tile)
    want = a[at].astype(np.float64) @ b.astype(np.float64).T
    case.expect("gathered", c, want, **tolerance)
    everywhere = np.zeros((of, n))
    everywhere[at] = want
    case.expect("scattered", scattered, everywhere, **tolerance)
