// The arguments of any kind of problem, by the roles that they have in a program.
//
// Thread-safety: pure functions; PointerRules are immutable.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "ir/stored_tensor.h"
#include "laneshift/engine.h"

namespace laneshift::runtime {

// The x, w, z and y of a convolution are the a, b, c and d of a GEMM, and its gradients as ir::OperandRole says.
// kInvalidArgument: the arguments are of another kind than the problem.
Result<GemmArguments> RolesOf(const Problem& problem, const Arguments& arguments);

// The inverse.
Arguments ArgumentsOf(const Problem& problem, const GemmArguments& roles);

// The address of an operand, apart from those of the epilogue.
const void* AddressOf(const GemmArguments& roles, ir::OperandRole role);
void SetAddress(GemmArguments& roles, ir::OperandRole role, void* address);

// The requirements on the pointers of a problem's operands, computed once, so that checking allocates nothing.
class PointerRules {
 public:
  PointerRules() = default;
  // REQUIRES: the problem is complete.
  explicit PointerRules(const Problem& problem);

  // kInvalidArgument names the pointer that is missing or less aligned than the problem promises. REQUIRES: `roles` are
  // RolesOf the problem.
  Status CheckPointers(const GemmArguments& roles) const;
  // kInvalidArgument names the pointer that is not a device address, or whose allocation is smaller than its operand.
  // REQUIRES: CheckPointers is ok, and the device's context is active.
  Status CheckMemory(const device::Device& device, const GemmArguments& roles) const;

 private:
  // How to fix a pointer that is aligned to less than the plan needs.
  enum class Remedy : uint8_t { kPromiseLess, kWholeElements, kAlign };
  struct Rule {
    std::string name;
    size_t index;  // of AddressAt
    int64_t align;
    Remedy remedy;
    size_t bytes;
  };
  static const void* AddressAt(const GemmArguments& roles, size_t index);
  static std::string PrintRemedy(const Rule& rule, uintptr_t own);
  static Status Check(const Rule& rule, const void* pointer);

  std::vector<Rule> rules_;
};

// kInvalidArgument: `pointer`, which messages call `name`, is not a device address or has fewer than `bytes` bytes up
// to the end of its allocation. REQUIRES: the device's context is active.
Status CheckMemory(const device::Device& device, std::string_view name, const void* pointer, size_t bytes);

}  // namespace laneshift::runtime
