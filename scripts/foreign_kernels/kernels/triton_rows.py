"""Kernels over rows in Triton: no tensor core, but reductions, scans, sorting and atomics."""
import numpy as np
import triton
import triton.language as tl


@triton.jit
def _softmax(x, y, columns, WIDTH: tl.constexpr):
    at = tl.arange(0, WIDTH)
    row = tl.load(x + tl.program_id(0) * columns + at, at < columns, float("-inf")).to(tl.float32)
    p = tl.exp(row - tl.max(row, 0))
    tl.store(y + tl.program_id(0) * columns + at, p / tl.sum(p, 0), at < columns)


def softmax(case, rows, columns, type, **tolerance):
    x, y = case.normal((rows, columns), type), case.empty((rows, columns), "float32")
    _softmax[(rows,)](case.upload(x), y, columns, triton.next_power_of_2(columns))
    wide = np.exp(x.astype(np.float64) - x.astype(np.float64).max(1, keepdims=True))
    case.expect("y", y, wide / wide.sum(1, keepdims=True), **tolerance)


@triton.jit
def _norm_gradient(x, dy, weight, mean, scale, dx, dweight, locks, columns, GROUPS: tl.constexpr, WIDTH: tl.constexpr):
    """dX of one row, and a partial dW that is added under a lock; there are as many locks as groups of rows."""
    row, at = tl.program_id(0), tl.arange(0, WIDTH)
    inside = at < columns
    values = tl.load(x + row * columns + at, inside, 0)
    gradient = tl.load(dy + row * columns + at, inside, 0)
    s = tl.load(scale + row)
    hat = tl.where(inside, (values - tl.load(mean + row)) * s, 0.0)
    weighted = tl.where(inside, tl.load(weight + at, inside, 0) * gradient, 0.0)
    c1, c2 = tl.sum(hat * weighted, 0) / columns, tl.sum(weighted, 0) / columns
    tl.store(dx + row * columns + at, (weighted - (hat * c1 + c2)) * s, inside)
    group = row % GROUPS
    while tl.atomic_cas(locks + group, 0, 1) == 1:
        pass
    old = tl.load(dweight + group * columns + at, inside, 0)
    tl.store(dweight + group * columns + at, old + gradient * hat, inside)
    tl.debug_barrier()
    tl.atomic_xchg(locks + group, 0)


def norm_gradient(case, rows, columns, groups, **tolerance):
    x, dy = case.normal((rows, columns), "float32"), case.normal((rows, columns), "float32")
    weight = case.normal((columns,), "float32")
    mean, scale = x.mean(1), 1 / np.sqrt(x.var(1) + 1e-5)
    dx, parts = case.empty(x.shape, "float32"), case.zeros((groups, columns), "float32")
    _norm_gradient[(rows,)](*(case.upload(v) for v in (x, dy, weight, mean, scale)), dx, parts, case.zeros((groups,), "int32"),
                            columns, groups, triton.next_power_of_2(columns))
    hat = (x.astype(np.float64) - mean[:, None]) * scale[:, None]
    weighted = weight * dy.astype(np.float64)
    want = (weighted - hat * (hat * weighted).mean(1, keepdims=True) - weighted.mean(1, keepdims=True)) * scale[:, None]
    case.expect("dx", dx, want, **tolerance)
    case.expect("dweight", parts.numpy().astype(np.float64).sum(0), (dy * hat).sum(0), **tolerance)


@triton.jit
def _sorted_and_summed(x, ordered, sums, counts, WIDTH: tl.constexpr, BINS: tl.constexpr):
    at = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    values = tl.load(x + at)
    tl.store(ordered + at, tl.sort(values))
    tl.store(sums + at, tl.cumsum(values, 0))
    tl.atomic_add(counts + tl.arange(0, BINS), tl.histogram(values, BINS))


def sorted_and_summed(case, rows, width, bins):
    x = case.integers(0, bins, (rows, width), "int32")
    ordered, sums = case.empty(x.shape, "int32"), case.empty(x.shape, "int32")
    counts = case.zeros((bins,), "int32")
    _sorted_and_summed[(rows,)](case.upload(x), ordered, sums, counts, width, bins)
    case.expect("sorted", ordered, np.sort(x, 1))
    case.expect("sums", sums, np.cumsum(x, 1))
    case.expect("histogram", counts, np.bincount(x.ravel(), minlength=bins))
