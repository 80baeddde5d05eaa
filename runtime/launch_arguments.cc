#include "runtime/launch_arguments.h"

#include <array>
#include <cstdint>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "compiler/contraction/bindings.h"
#include "compiler/plan/factor_packing.h"
#include "compiler/plan/reductions.h"
#include "device/tensor_map.h"
#include "ir/element_type.h"
#include "ir/stored_tensor.h"
#include "runtime/argument_roles.h"

namespace laneshift::runtime {
namespace {

using base::Cat;
using ir::Binding;

device::CuTensorMapDataType MapType(DataType type, bool padded) {
  if (padded && type == DataType::kE2m1) return device::kCuTensorMap16U4Align16;
  constexpr device::CuTensorMapDataType kTypes[] = {
#define DATA_TYPE(Name, text, bits, numbers, format, result, tensor_map, ...) tensor_map,
#include "ir/element_types.def"
  };
  return kTypes[static_cast<size_t>(type)];
}

device::CuTensorMapSwizzle MapSwizzle(ir::Swizzle swizzle) {
  switch (swizzle) {
    case ir::Swizzle::kNone:
      return device::kCuSwizzleNone;
    case ir::Swizzle::k32:
      return device::kCuSwizzle32;
    case ir::Swizzle::k64:
      return device::kCuSwizzle64;
    case ir::Swizzle::k128:
      return device::kCuSwizzle128;
  }
  LS_CHECK(false, "unknown swizzle ", static_cast<int>(swizzle));
}

constexpr ir::OperandRole RoleOf(ir::Operand operand) { return static_cast<ir::OperandRole>(operand); }
ir::OperandRole RoleOf(const compiler::MappedTensor& tensor) {
  switch (tensor.component) {
    case ir::OperandComponent::kElements:
      return RoleOf(tensor.operand);
    case ir::OperandComponent::kScales:
      return tensor.operand == ir::Operand::kA ? ir::OperandRole::kScaleA : ir::OperandRole::kScaleB;
    case ir::OperandComponent::kMetadata:
      return ir::OperandRole::kMetadataA;
  }
  __builtin_unreachable();
}

Result<device::CuTensorMap> Encode(const device::DriverApi& api, const compiler::MappedTensor& mapped,
                                   device::TensorMapTensor tensor) {
  if (!mapped.im2col) {
    device::TensorMapTiled map{.tensor = std::move(tensor), .box = {}};
    for (const int64_t extent : mapped.box) map.box.push_back(static_cast<uint32_t>(extent));
    return device::EncodeTensorMap(api, map);
  }
  device::TensorMapIm2col map{.tensor = std::move(tensor),
                              .lower_corner = {},
                              .upper_corner = {},
                              .channels_per_pixel = static_cast<uint32_t>(mapped.box[0]),
                              .pixels_per_column = static_cast<uint32_t>(mapped.box[1])};
  for (const int64_t corner : mapped.lower) map.lower_corner.push_back(static_cast<int>(corner));
  for (const int64_t corner : mapped.upper) map.upper_corner.push_back(static_cast<int>(corner));
  return device::EncodeTensorMap(api, map);
}

Result<device::CuTensorMap> EncodeMap(const device::DriverApi& api, const ir::Param& param,
                                      const compiler::MappedTensor& mapped, const void* address) {
  device::TensorMapTensor tensor;
  tensor.type = MapType(mapped.type, param.box.padded);
  const uint64_t unit = param.box.padded ? 32 : 16;  // of strides
  tensor.address = reinterpret_cast<uintptr_t>(address);
  for (const int64_t extent : mapped.dims) tensor.dims.push_back(static_cast<uint64_t>(extent));
  for (size_t i = 0; i < mapped.strides.size(); ++i) {
    const uint64_t stride = static_cast<uint64_t>(ir::BytesOf(mapped.type, mapped.strides[i]));
    // The stride of a dimension of extent 1 is never used, but the encoder checks it.
    tensor.strides.push_back(mapped.dims[i + 1] == 1 ? (stride + unit - 1) & ~(unit - 1) : stride);
  }
  for (const int64_t step : mapped.element_strides) tensor.element_strides.push_back(static_cast<uint32_t>(step));
  tensor.swizzle = param.box.linear ? device::kCuSwizzleNone : MapSwizzle(param.box.swizzle);
  auto encoded = Encode(api, mapped, std::move(tensor));
  if (!encoded) return encoded.error().Within(ir::PrintBinding(param.binding));
  return encoded;
}

const char* Displaced(const void* address, size_t bytes) { return static_cast<const char*>(address) + bytes; }

const void* PointerOf(Binding binding, const GemmArguments& arguments) {
  constexpr std::pair<Binding, ir::OperandRole> kRoles[] = {
      {ir::BaseOf(ir::Operand::kA), ir::OperandRole::kA},
      {ir::BaseOf(ir::Operand::kB), ir::OperandRole::kB},
      {ir::BaseOf(ir::Operand::kC), ir::OperandRole::kC},
      {ir::BaseOf(ir::Operand::kD), ir::OperandRole::kD},
      {Binding::kBaseBias, ir::OperandRole::kBias},
      {Binding::kBaseScaleA, ir::OperandRole::kScaleA},
      {Binding::kBaseScaleB, ir::OperandRole::kScaleB},
      {Binding::kBaseScaleD, ir::OperandRole::kScaleD},
      {Binding::kBaseTensorScaleA, ir::OperandRole::kTensorScaleA},
      {Binding::kBaseTensorScaleB, ir::OperandRole::kTensorScaleB},
      {Binding::kBaseBlockScaleD, ir::OperandRole::kBlockScaleD},
      {Binding::kGroupOffsets, ir::OperandRole::kGroupOffsets},
      {Binding::kGroupSizes, ir::OperandRole::kGroupSizes},
      {Binding::kRowIndicesA, ir::OperandRole::kRowIndicesA},
      {Binding::kRowIndicesD, ir::OperandRole::kRowIndicesD},
  };
  for (const auto& [base, role] : kRoles) {
    if (base == binding) return AddressOf(arguments, role);
  }
  for (int i = 0; i < kMaxEpilogueOperands; ++i) {
    if (binding == ir::EpilogueBase(i)) return arguments.epilogue[static_cast<size_t>(i)];
  }
  LS_CHECK(false, "binding ", ir::PrintBinding(binding), " is no pointer");
}

}  // namespace

Status CheckWorkspace(const Problem& problem, const void* workspace, size_t bytes) {
  constexpr uintptr_t kAlign = 16;
  if (bytes == 0 || (workspace != nullptr && reinterpret_cast<uintptr_t>(workspace) % kAlign == 0)) return Ok();
  const std::string_view why = workspace == nullptr ? "" : " aligned to 16 bytes";
  const std::string_view otherwise =
      compiler::OrdersReductions(problem) ? "; pass one: deterministic reductions need it"
      : compiler::MayPackFactors(problem) ? "; pass one: scale factors are reordered there"
                                          : "; pass one, or make the plan with split_k=1 and no operand packed "
                                            "(a_load and b_load)";
  return MakeError(ErrorCode::kInvalidArgument, Cat("the plan needs a workspace of ", bytes, " bytes", why,
                                                    ", which are zero before its first use", otherwise));
}

Status LaunchArguments::Bind(const device::DriverApi& api, std::span<const compiler::BoundParam> params,
                             const GemmArguments& roles, void* workspace) {
  LS_CHECK(params.size() <= kCapacity, "a program with ", params.size(), " parameters");
  count_ = 0;
  for (const compiler::BoundParam& bound : params) {
    Value& value = values_[count_];
    pointers_[count_++] = &value;
    switch (ir::KindOf(bound.param.binding)) {
      case ir::ParamKind::kTensorMap: {
        const void* address =
            bound.in_workspace ? Displaced(workspace, *bound.in_workspace)
                               : Displaced(AddressOf(roles, RoleOf(bound.tensor)), static_cast<size_t>(bound.offset));
        LS_ASSIGN(value.map, EncodeMap(api, bound.param, bound.tensor, address));
        break;
      }
      case ir::ParamKind::kPointer:
        value.pointer = bound.in_workspace
                            ? Displaced(workspace, *bound.in_workspace)
                            : Displaced(PointerOf(bound.argument, roles), static_cast<size_t>(bound.offset));
        break;
      // Sizes and pitches are below 2^40: exact as doubles.
      case ir::ParamKind::kInt64:
        value.wide = static_cast<int64_t>(bound.number);
        break;
      case ir::ParamKind::kInt32:
        value.narrow = static_cast<int32_t>(bound.number);
        break;
      case ir::ParamKind::kFloat:
        value.real = static_cast<float>(bound.number);
        break;
    }
  }
  return Ok();
}

}  // namespace laneshift::runtime
