// Module: loaded code. The driver compiles PTX; a cubin is loaded as it is.
//
// Thread-safety: immutable once loaded. Its Kernels must not be used after it is gone.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "device/kernel.h"

namespace laneshift::device {

class Module {
 public:
  // A failure carries the driver's own log. kUnsupported if the driver does not know the PTX version or the device
  // cannot run the PTX's target.
  static Result<Module> LoadPtx(Context context, const std::string& ptx);
  // kUnsupported: this driver does not accept the machine code, because it is of a later CUDA release or the driver is
  // an emulator. Its PTX may work instead.
  static Result<Module> LoadCubin(Context context, std::string_view cubin);
  Module(Module&& other) noexcept;
  Module& operator=(Module&& other) noexcept;
  ~Module();

  Result<Kernel> GetKernel(const std::string& name) const { return Kernel::Find(context_, handle_, name); }

 private:
  Module(Context context, CuModule handle) : context_(context), handle_(handle) {}

  Context context_;
  CuModule handle_;  // null: moved from
};

// Version numbers as {major, minor}.
using Version = std::pair<int, int>;
// The values after `.version` and `.target`, if present.
std::optional<Version> PtxVersionOf(std::string_view ptx);
std::string_view PtxTargetOf(std::string_view ptx);
// The newest PTX version that a driver of this CUDA version (13000 is 13.0) compiles, if it is one that we know.
std::optional<Version> PtxVersionOfDriver(int driver_version);

}  // namespace laneshift::device
