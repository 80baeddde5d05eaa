"""What a kernel's function gets: inputs, outputs and its judge."""
import numpy as np

from device import Array, dtype_of


class Case:
    """One run of one kernel. The function uploads inputs, launches, and says what it expects."""

    def __init__(self, seed=1):
        self._random = np.random.default_rng(seed)
        self.verdicts = []

    def normal(self, shape, dtype, scale=1.0):
        """Normally distributed values, rounded to dtype, as a NumPy array."""
        return (self._random.standard_normal(shape, np.float32) * scale).astype(dtype_of(dtype))

    def integers(self, low, high, shape, dtype):
        """Uniform integers of [low, high)."""
        return self._random.integers(low, high, shape).astype(dtype_of(dtype))

    def permutation(self, count):
        return self._random.permutation(count)

    def upload(self, values):
        return Array.of(values)

    def empty(self, shape, dtype):
        return Array(shape, dtype)

    def zeros(self, shape, dtype):
        return Array.of(np.zeros(shape, dtype_of(dtype)))

    def expect(self, name, got, want, relative=0.0, absolute=0.0):
        """Compares an array with what the host computed: every |got - want| <= absolute + relative * |want|."""
        got = np.asarray(got.numpy() if isinstance(got, Array) else got).astype(np.float64)
        want = np.asarray(want).astype(np.float64)
        if got.shape != want.shape:
            raise ValueError(f"{name}: the kernel's output is {got.shape}, the reference {want.shape}")
        error = np.abs(got - want)
        wrong = ~(error <= absolute + relative * np.abs(want))  # a NaN is wrong
        first = np.unravel_index(np.argmax(wrong), wrong.shape) if wrong.any() else None
        self.verdicts.append({
            "output": name, "elements": int(want.size), "wrong": int(wrong.sum()),
            "worst": float(np.nanmax(error)) if error.size and not np.isnan(error).all() else None,
            "first": None if first is None else
                     {"index": [int(i) for i in first], "got": float(got[first]), "want": float(want[first])}})
