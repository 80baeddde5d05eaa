"""Arrays in the memory of a CUDA device, through the driver API: the emulator's, or a real GPU's.

Nothing here knows which of the two it is. `open_driver` decides, once a process, before anything else loads libcuda.
"""
import ctypes
import os
import types

import ml_dtypes
import numpy as np

_driver = None


class DriverError(RuntimeError):
    """A driver call failed: the emulator's report says what the kernel did wrong."""


def open_driver(emulator_library):
    """Loads libcuda for this process: the emulator's (its SONAME is libcuda.so.1 too), or with None the machine's own."""
    global _driver
    _driver = ctypes.CDLL(emulator_library or "libcuda.so.1", mode=os.RTLD_GLOBAL | os.RTLD_NOW)
    call("cuInit", 0)
    device, context = ctypes.c_int(), ctypes.c_void_p()
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)


def call(name, *arguments):
    """Calls a driver function; a result other than CUDA_SUCCESS is a DriverError."""
    result = getattr(_driver, name)(*arguments)
    if result != 0:
        text = ctypes.c_char_p()
        _driver.cuGetErrorName(result, ctypes.byref(text))
        raise DriverError(f"{name}: {text.value.decode() if text.value else result}")


def driver_version():
    """The CUDA version of the driver, as "13.0"."""
    version = ctypes.c_int()
    call("cuDriverGetVersion", ctypes.byref(version))
    return f"{version.value // 1000}.{version.value % 1000 // 10}"


def capability():
    """Ten times the device's compute capability: 90 or 100."""
    digits = []
    for attribute in (75, 76):  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR
        value = ctypes.c_int()
        call("cuDeviceGetAttribute", ctypes.byref(value), attribute, 0)
        digits.append(value.value)
    return 10 * digits[0] + digits[1]


def synchronize():
    call("cuCtxSynchronize")


def dtype_of(name):
    """The NumPy type of a name such as "bfloat16" or "float8_e4m3fn"."""
    return np.dtype(getattr(ml_dtypes, name, None) or name)


class Array:
    """A row-major array on the device, with what Triton and tilelang ask of a tensor: data_ptr(), dtype, shape, stride(), device.

    A new one without contents is uninitialised, so that the emulator reports its first use before a store.
    """

    device = types.SimpleNamespace(index=0)

    def __init__(self, shape, dtype):
        self.shape = tuple(shape)
        self.dtype = dtype_of(dtype) if isinstance(dtype, str) else np.dtype(dtype)
        self.bytes = max(int(np.prod(self.shape)) * self.dtype.itemsize, 16)
        self._pointer = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(self._pointer), ctypes.c_size_t(self.bytes))

    @staticmethod
    def of(values):
        values = np.ascontiguousarray(values)
        array = Array(values.shape, values.dtype)
        call("cuMemcpyHtoD_v2", array._pointer, values.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(values.nbytes))
        return array

    def numpy(self):
        synchronize()
        values = np.empty(self.shape, self.dtype)
        call("cuMemcpyDtoH_v2", values.ctypes.data_as(ctypes.c_void_p), self._pointer, ctypes.c_size_t(values.nbytes))
        return values

    def data_ptr(self):
        return self._pointer.value

    def stride(self, dimension=None):
        strides = [int(np.prod(self.shape[d + 1:])) for d in range(len(self.shape))]
        return tuple(strides) if dimension is None else strides[dimension]

    def element_size(self):
        return self.dtype.itemsize

