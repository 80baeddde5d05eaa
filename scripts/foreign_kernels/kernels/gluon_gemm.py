"""GEMMs in Gluon, Triton's dialect in which layouts, copies, barriers and roles are written by hand."""
import numpy as np
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.blackwell import TensorMemoryLayout, allocate_tensor_memory, clc, tcgen05_commit
from triton.experimental.gluon.language.nvidia.blackwell import tcgen05_mma
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma, warpgroup_mma
from triton.experimental.gluon.language.nvidia.hopper import warpgroup_mma_init, warpgroup_mma_wait
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor


@gluon.jit
def _request(a, b, left, right, full, m, n, step, BK: gl.constexpr, STAGES: gl.constexpr, wanted):
    stage = step % STAGES
    mbarrier.expect(full.index(stage), a.nbytes_per_cta + b.nbytes_per_cta, pred=wanted)
    tma.async_load(a, [m, step * BK], full.index(stage), left.index(stage), pred=wanted)
    tma.async_load(b, [n, step * BK], full.index(stage), right.index(stage), pred=wanted)


@gluon.jit
def _wgmma(a, b, c, K, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr, STAGES: gl.constexpr, WARPS: gl.constexpr):
    """C = A * B^T: every warp waits for TMA, one wgmma is in flight while the next stage is requested."""
    left = gl.allocate_shared_memory(a.dtype, [STAGES, BM, BK], a.layout)
    right = gl.allocate_shared_memory(b.dtype, [STAGES, BN, BK], b.layout)
    out = gl.allocate_shared_memory(c.dtype, [BM, BN], c.layout)
    full = mbarrier.allocate_mbarrier(batch=STAGES)
    for each in gl.static_range(STAGES):
        mbarrier.init(full.index(each), count=1)
    m, n, steps = gl.program_id(0) * BM, gl.program_id(1) * BN, K // BK
    layout: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[WARPS, 1], instr_shape=[16, BN, 16])
    sums = warpgroup_mma_init(gl.zeros([BM, BN], gl.float32, layout))
    for ahead in gl.static_range(STAGES - 1):
        _request(a, b, left, right, full, m, n, ahead, BK, STAGES, ahead < steps)
    for step in range(steps):
        stage = step % STAGES
        mbarrier.wait(full.index(stage), (step // STAGES) & 1)
        sums = warpgroup_mma_wait(num_outstanding=0, deps=(sums,))
        _request(a, b, left, right, full, m, n, step + STAGES - 1, BK, STAGES, step + STAGES - 1 < steps)
        sums = warpgroup_mma(left.index(stage), right.index(stage).permute((1, 0)), sums, is_async=True)
    sums = warpgroup_mma_wait(num_outstanding=0, deps=(sums,))
    for each in gl.static_range(STAGES):
        mbarrier.invalidate(full.index(each))
    out.store(sums.to(c.dtype))
    fence_async_shared()
    tma.async_store(c, [m, n], out)
    tma.store_wait(pendings=0)


def _maps(case, a, b, c, tile):
    """Tensor maps over A, B and C with the layouts that the matrix instructions want."""
    maps = []
    for array, block in ((case.upload(a), [tile[0], tile[2]]), (case.upload(b), [tile[1], tile[2]]), (c, [tile[0], tile[1]])):
        layout = gl.NVMMASharedLayout.get_default_for(block, getattr(gl, array.dtype.name))
        maps.append(TensorDescriptor.from_tensor(array, block, layout))
    return maps


def gemm_wgmma(case, m, n, k, type, tile=(128, 128, 64), stages=3, warps=4, **tolerance):
    a, b = case.normal((m, k), type), case.normal((n, k), type)
    c = case.empty((m, n), type)
    _wgmma[(m // tile[0], n // tile[1])](*_maps(case, a, b, c, tile), k, *tile, stages, warps, num_warps=warps)
    case.expect("c", c, a.astype(np.float64) @ b.astype(np.float64).T, **tolerance)


@gluon.jit
def _load(a, b, left, right, full, empty, M, N, K, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr, STAGES: gl.constexpr,
          PROGRAMS: gl.constexpr):
    step = 0
    for tile in range(gl.program_id(0), (M // BM) * (N // BN), PROGRAMS):
        m, n = tile // (N // BN) * BM, tile % (N // BN) * BN
        for k in range(0, K, BK):
            stage = step % STAGES
            mbarrier.wait(empty.index(stage), ((step // STAGES) & 1) ^ 1)
            mbarrier.expect(full.index(stage), a.nbytes_per_cta + b.nbytes_per_cta)
            tma.async_load(a, [m, k], full.index(stage), left.index(stage))
            tma.async_load(b, [n, k], full.index(stage), right.index(stage))
            step += 1


@gluon.jit
def _multiply(left, right, sums, full, empty, ready, free, M, N, K, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr,
              STAGES: gl.constexpr, PROGRAMS: gl.constexpr):
    step, turn = 0, 0
    for tile in range(gl.program_id(0), (M // BM) * (N // BN), PROGRAMS):
        mbarrier.wait(free.index(turn % 2), ((turn // 2) & 1) ^ 1)
        for k in range(0, K, BK):
            stage = step % STAGES
            mbarrier.wait(full.index(stage), (step // STAGES) & 1)
            tcgen05_mma(left.index(stage), right.index(stage).permute((1, 0)), sums.index(turn % 2), use_acc=k > 0)
            tcgen05_commit(empty.index(stage))
            step += 1
        tcgen05_commit(ready.index(turn % 2))
        turn += 1


@gluon.jit
def _store(c, out, sums, ready, free, M, N, BM: gl.constexpr, BN: gl.constexpr, PROGRAMS: gl.constexpr):
    turn = 0
    for tile in range(gl.program_id(0), (M // BM) * (N // BN), PROGRAMS):
        mbarrier.wait(ready.index(turn % 2), (turn // 2) & 1)
        values = sums.index(turn % 2).load()
        mbarrier.arrive(free.index(turn % 2), count=1)
        tma.store_wait(pendings=0)
        out.store(values.to(c.dtype))
        fence_async_shared()
        tma.async_store(c, [tile // (N // BN) * BM, tile % (N // BN) * BN], out)
        turn += 1
    tma.store_wait(pendings=0)


@gluon.jit
def _roles(a, b, c, M, N, K, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr, STAGES: gl.constexpr, PROGRAMS: gl.constexpr):
    """C = A * B^T, persistent: a warp loads, a warp multiplies into two accumulators in turn, four warps store."""
    left = gl.allocate_shared_memory(a.dtype, [STAGES, BM, BK], a.layout)
    right = gl.allocate_shared_memory(b.dtype, [STAGES, BN, BK], b.layout)
    out = gl.allocate_shared_memory(c.dtype, [BM, BN], c.layout)
    layout: gl.constexpr = TensorMemoryLayout([BM, BN], col_stride=1)
    sums = allocate_tensor_memory(gl.float32, [2, BM, BN], layout)
    full = mbarrier.allocate_mbarrier(batch=STAGES)
    empty = mbarrier.allocate_mbarrier(batch=STAGES)
    ready = mbarrier.allocate_mbarrier(batch=2)
    free = mbarrier.allocate_mbarrier(batch=2)
    for stage in gl.static_range(STAGES):
        mbarrier.init(full.index(stage), count=1)
        mbarrier.init(empty.index(stage), count=1)
    for turn in gl.static_range(2):
        mbarrier.init(ready.index(turn), count=1)
        mbarrier.init(free.index(turn), count=1)
    gl.warp_specialize([(_store, (c, out, sums, ready, free, M, N, BM, BN, PROGRAMS)),
                        (_load, (a, b, left, right, full, empty, M, N, K, BM, BN, BK, STAGES, PROGRAMS)),
                        (_multiply, (left, right, sums, full, empty, ready, free, M, N, K, BM, BN, BK, STAGES, PROGRAMS))],
                       [1, 1], [24, 24])


def gemm_roles(case, m, n, k, type, programs=2, tile=(128, 64, 64), stages=3, **tolerance):
    a, b = case.normal((m, k), type), case.normal((n, k), type)
    c = case.empty((m, n), type)
    _roles[(programs,)](*_maps(case, a, b, c, tile), m, n, k, *tile, stages, programs, num_warps=4)
    case.expect("c", c, a.astype(np.float64) @ b.astype(np.float64).T, **tolerance)


@gluon.jit
def _stolen(x, y, N, BLOCK: gl.constexpr):
    """y = 2 x + 1, tile after tile, of which all but a program's first one are those of cancelled programs."""
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    answer = clc_answer()
    barrier = mbarrier.allocate_mbarrier()
    mbarrier.init(barrier, count=1)
    tile = gl.program_id(0)
    more = True
    phase = 0
    while more:
        mbarrier.expect(barrier, 16)
        clc.try_cancel(answer, barrier)
        at = tile * BLOCK + gl.arange(0, BLOCK, layout)
        gl.store(y + at, gl.load(x + at, at < N) * 2 + 1, at < N)
        mbarrier.wait(barrier, phase)
        got = clc.load_result(answer)
        more = got.is_canceled()
        if more:
            tile = got.program_id(0)
        phase ^= 1


@gluon.jit
def clc_answer():
    layout: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    return gl.allocate_shared_memory(gl.int64, [2], layout)


def stolen(case, n, block=512):
    x = case.integers(-1000, 1000, (n,), "float32")
    y = case.empty((n,), "float32")
    _stolen[(triton.cdiv(n, block),)](case.upload(x), y, n, block, num_warps=4)
    case.expect("y", y, x.astype(np.float64) * 2 + 1)
