"""Triton on a device that takes PTX: kernels are compiled as far as PTX and loaded as that.

Triton's own driver launches them; only its last step, ptxas, is left out, since the emulator refuses machine code.
"""
import os
import pathlib

import triton
import triton.experimental.gluon.nvidia.hopper  # noqa: F401  Triton imports it when it first launches
from triton import knobs
from triton.backends.nvidia import compiler
from triton.backends.nvidia.driver import CudaDriver
from triton.runtime.cache import triton_key

from device import Array, driver_version

triton_key()  # Triton keeps this digest of its files: made here, it is made once for all runs of a worker


def install(emulator_library, directory):
    """Makes Triton stop at PTX. directory: where it keeps what it has compiled."""
    directory = pathlib.Path(directory)
    knobs.cache.dir = str(directory / "triton")
    if emulator_library:
        # Triton links a small extension with libcuda.so.1 and wants to know where that lies.
        links = directory / "libcuda"
        links.mkdir(parents=True, exist_ok=True)
        link = links / "libcuda.so.1"
        if link.resolve() != pathlib.Path(emulator_library).resolve():
            # Other processes may do the same at this moment.
            own = links / f"link-{os.getpid()}"
            own.symlink_to(emulator_library)
            own.replace(link)
        knobs.nvidia.libcuda_path = str(links)
    compiler.CUDABackend.binary_ext = property(lambda self: "ptx", lambda self, value: None)
    knobs.runtime.add_stages_inspection_hook = _stop_at_ptx
    # Triton writes the newest PTX that its own ptxas knows; the driver that compiles it may be older.
    newest = compiler.ptx_get_version
    compiler.ptx_get_version = lambda toolkit: min(newest(toolkit), newest(driver_version()))
    triton.set_allocator(lambda size, alignment, stream: Array((size,), "uint8"))
    triton.runtime.driver.set_active(CudaDriver())


def _stop_at_ptx(backend=None, stages=None, *rest):
    if stages is None:
        return "ptx", "ptx"  # the hook's part of the cache's key
    del stages["cubin"]
    return None
