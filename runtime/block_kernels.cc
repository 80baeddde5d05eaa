#include "runtime/block_kernels.h"

#include <initializer_list>
#include <utility>

#include "base/host_memory.h"
#include "base/text.h"
#include "ir/element_type.h"
#include "ir/problem_keys.h"
#include "ir/stored_tensor.h"
#include "runtime/argument_roles.h"
#include "runtime/engine_core.h"
#include "runtime/quantized_tensor.h"

namespace laneshift {
namespace runtime {
namespace {

using base::Cat;
using compiler::BlockConversion;
using compiler::ConversionDirection;

constexpr size_t kFactorAlignment = 16;

std::string Describe(const BlockConversion& conversion) {
  const bool quantizes = conversion.direction == ConversionDirection::kQuantize;
  const auto numbers = DataTypeName(conversion.numbers), type = DataTypeName(conversion.type);
  return Cat(quantizes ? "quantize " : "dequantize ", quantizes ? numbers : type, " to ", quantizes ? type : numbers,
             " ", ir::NameOf(conversion.scaling));
}

// A pointer that the caller passed.
struct CallerPointer {
  const char* name;
  const void* address;
  size_t bytes, align;
};

Status CheckPointers(const device::Device& device, std::initializer_list<CallerPointer> pointers) {
  for (const auto& [name, address, bytes, align] : pointers) {
    if (address == nullptr) {
      return MakeError(ErrorCode::kInvalidArgument,
                       Cat("pointer ", name, " is null; pass device memory of ", bytes, " bytes"));
    }
    if (reinterpret_cast<uintptr_t>(address) % align != 0) {
      return MakeError(ErrorCode::kInvalidArgument,
                       Cat("pointer ", name, " (", address, ") is not aligned to ", align, " bytes"));
    }
    LS_TRY(CheckMemory(device, name, address, bytes));
  }
  return Ok();
}

// One launch in either direction, with the pointers as the kernel's parameters call them.
Status Convert(EngineCore& core, CUstream_st* stream, const QuantizedTensor& tensor, ConversionDirection direction,
               DataType numbers, const GemmArguments& roles) {
  const bool quantizes = direction == ConversionDirection::kQuantize, own_scale = tensor.scaling == OutputScaling::kNv;
  LS_ASSIGN(const QuantizedBytes bytes, CheckedBytesOf(tensor, numbers));
  if (!own_scale && roles.scale_d != nullptr) {
    return MakeError(ErrorCode::kInvalidArgument,
                     Cat(ir::NameOf(tensor.scaling), " has no f32 factor; pass a null scale, or use nv"));
  }
  const device::Device& device = core.opened.device;
  LS_ASSIGN(const device::ActiveContext active, device.Activate());
  const auto number_bytes = static_cast<size_t>(DataTypeBytes(numbers));
  const CallerPointer own_numbers{"numbers", quantizes ? roles.a : roles.d,
                                  static_cast<size_t>(tensor.batch * tensor.rows * tensor.columns) * number_bytes,
                                  number_bytes};
  LS_TRY(CheckPointers(device, {own_numbers,
                                {"elements", quantizes ? roles.d : roles.a, bytes.elements, 1},
                                {"factors", roles.block_scale_d, bytes.factors, kFactorAlignment}}));
  if (own_scale) LS_TRY(CheckPointers(device, {{"scale", roles.scale_d, sizeof(float), sizeof(float)}}));
  const BlockConversion conversion{direction, numbers, tensor.type, tensor.scaling};
  std::shared_ptr<const BlockKernel> kernel = core.conversions.Find(conversion);
  if (kernel == nullptr) {
    if (IsCaptured(device, stream)) {
      return MakeError(ErrorCode::kInvalidArgument,
                       Cat("a stream is being captured and the kernel '", Describe(conversion),
                           "' is not loaded; make one such call before the capture begins"));
    }
    LS_ASSIGN(kernel, core.conversions.Get(conversion));
  }
  const PreparedLaunch launch{.params = compiler::BindConversion(tensor, kernel->program),
                              .shape = compiler::ConversionLaunch(tensor, kernel->program, device.facts().sm_count),
                              .kernel = kernel->loaded};
  return Launch(core, launch, roles, nullptr, stream);
}

}  // namespace

std::shared_ptr<const BlockKernel> BlockKernels::Find(const BlockConversion& conversion) const {
  const std::lock_guard lock(mutex_);
  const auto known = loaded_.find(conversion);
  return known == loaded_.end() ? nullptr : known->second;
}

Result<std::shared_ptr<const BlockKernel>> BlockKernels::Get(const BlockConversion& conversion) {
  if (auto known = Find(conversion)) return known;
  LS_ASSIGN(ir::Program program, compiler::BuildConversion(conversion, target_));
  LS_ASSIGN(FoundKernel found, kernels_.Get(program, {Describe(conversion), ""}));
  auto made = std::make_shared<const BlockKernel>(BlockKernel{std::move(program), std::move(found.loaded)});
  const std::lock_guard lock(mutex_);
  return loaded_.try_emplace(conversion, std::move(made)).first->second;
}

}  // namespace runtime

Status Engine::Quantize(CUstream_st* stream, const QuantizedTensor& tensor, DataType from_type, const void* from,
                        const float* scale, void* elements, void* factors) const {
  return base::WithinHostMemory([&] {
    return runtime::Convert(*impl_, stream, tensor, compiler::ConversionDirection::kQuantize, from_type,
                            {.a = from, .d = elements, .scale_d = scale, .block_scale_d = factors});
  });
}

Status Engine::Dequantize(CUstream_st* stream, const QuantizedTensor& tensor, const void* elements, const void* factors,
                          const float* scale, DataType to_type, void* to) const {
  return base::WithinHostMemory([&] {
    // The kernel only reads them.
    return runtime::Convert(*impl_, stream, tensor, compiler::ConversionDirection::kDequantize, to_type,
                            {.a = elements, .d = to, .scale_d = scale, .block_scale_d = const_cast<void*>(factors)});
  });
}

}  // namespace laneshift
