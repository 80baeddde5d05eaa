"""tilelang on a device that takes PTX: its NVRTC back end compiles as far as PTX, and its host code loads and launches that."""
import os
import pathlib

import tilelang
from tilelang.jit.adapter.nvrtc import libgen

import device


def install(emulator_library, directory):
    """Makes tilelang stop at PTX. directory: where it keeps what it has compiled. The driver is open (`device.open_driver`)."""
    del emulator_library  # cuda-python opens libcuda.so.1 by name, and finds the one that is open
    tilelang.env.TILELANG_CACHE_DIR = os.environ["TILELANG_CACHE_DIR"] = str(pathlib.Path(directory) / "tilelang")
    compile_cuda = libgen.compile_cuda
    libgen.compile_cuda = lambda code, target_format, **rest: bytes(
        compile_cuda(code, target_format="ptx", arch=device.capability(), **rest)).rstrip(b"\0")


def launch(function, *arguments):
    """Compiles a prim_func for the device that is open, and launches it on arrays (`device.Array`) and numbers."""
    kernel = tilelang.compile(function, target={"kind": "cuda", "arch": f"sm_{device.capability()}a"}, execution_backend="nvrtc")
    kernel.adapter.pymodule.call(kernel.adapter.kernels, *arguments)
