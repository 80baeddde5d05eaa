#include "runtime/argument_roles.h"

#include <bit>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "device/memory_range.h"
#include "ir/element_type.h"
#include "ir/stored_tensor.h"

namespace laneshift::runtime {
namespace {

using base::Cat;

// The operands of roles, in their order, followed by those of the epilogue.
constexpr const void* GemmArguments::*kOfRoles[] = {&GemmArguments::a,
                                                    &GemmArguments::b,
                                                    &GemmArguments::c,
                                                    nullptr,
                                                    &GemmArguments::bias,
                                                    &GemmArguments::scale_a,
                                                    &GemmArguments::scale_b,
                                                    &GemmArguments::scale_d,
                                                    &GemmArguments::tensor_scale_a,
                                                    &GemmArguments::tensor_scale_b};
constexpr auto kOffsets = static_cast<size_t>(ir::OperandRole::kGroupOffsets);
constexpr auto kSizes = static_cast<size_t>(ir::OperandRole::kGroupSizes);
static_assert(std::size(kOfRoles) == kOffsets && kOffsets + 1 == kSizes && kSizes + 1 == ir::kRoles);

// The alternative of Arguments that fits.
size_t KindOf(const Problem& problem) {
  const ConvProblem* conv = std::get_if<ConvProblem>(&problem);
  return conv == nullptr ? 0 : 1 + static_cast<size_t>(conv->pass);
}

GemmArguments InRoles(const GemmArguments& gemm) { return gemm; }
GemmArguments InRoles(const ConvArguments& conv) {
  return {.a = conv.x,
          .b = conv.w,
          .c = conv.z,
          .d = conv.y,
          .bias = conv.bias,
          .scale_a = conv.scale_x,
          .scale_b = conv.scale_w,
          .scale_d = conv.scale_y,
          .epilogue = conv.epilogue};
}
GemmArguments InRoles(const ConvDgradArguments& conv) {
  return {.a = conv.y,
          .b = conv.w,
          .c = conv.z,
          .d = conv.x,
          .bias = nullptr,
          .scale_a = conv.scale_y,
          .scale_b = conv.scale_w,
          .scale_d = conv.scale_x,
          .epilogue = conv.epilogue};
}
GemmArguments InRoles(const ConvWgradArguments& conv) {
  return {.a = conv.y,
          .b = conv.x,
          .c = conv.z,
          .d = conv.w,
          .bias = nullptr,
          .scale_a = conv.scale_y,
          .scale_b = conv.scale_x,
          .scale_d = conv.scale_w};
}

}  // namespace

Result<GemmArguments> RolesOf(const Problem& problem, const Arguments& arguments) {
  const size_t wanted = KindOf(problem);
  if (wanted != arguments.index()) {
    constexpr std::string_view kNames[] = {"GemmArguments", "ConvArguments", "ConvDgradArguments",
                                           "ConvWgradArguments"};
    static_assert(std::size(kNames) == std::variant_size_v<Arguments>);
    return MakeError(ErrorCode::kInvalidArgument,
                     base::Cat("the problem is a ", ProblemKind(problem), ", but the arguments are ",
                               kNames[arguments.index()], "; pass ", kNames[wanted]));
  }
  return std::visit([](const auto& kind) { return InRoles(kind); }, arguments);
}

Arguments ArgumentsOf(const Problem& problem, const GemmArguments& roles) {
  const ConvProblem* conv = std::get_if<ConvProblem>(&problem);
  if (conv == nullptr) return roles;
  switch (conv->pass) {
    case ConvPass::kForward:
      return ConvArguments{.x = roles.a,
                           .w = roles.b,
                           .z = roles.c,
                           .y = roles.d,
                           .bias = roles.bias,
                           .scale_x = roles.scale_a,
                           .scale_w = roles.scale_b,
                           .scale_y = roles.scale_d,
                           .epilogue = roles.epilogue};
    case ConvPass::kDgrad:
      return ConvDgradArguments{.y = roles.a,
                                .w = roles.b,
                                .z = roles.c,
                                .x = roles.d,
                                .scale_y = roles.scale_a,
                                .scale_w = roles.scale_b,
                                .scale_x = roles.scale_d,
                                .epilogue = roles.epilogue};
    case ConvPass::kWgrad:
      return ConvWgradArguments{.y = roles.a,
                                .x = roles.b,
                                .z = roles.c,
                                .w = roles.d,
                                .scale_y = roles.scale_a,
                                .scale_x = roles.scale_b,
                                .scale_w = roles.scale_d};
  }
  __builtin_unreachable();
}

PointerRules::PointerRules(const Problem& problem) {
  constexpr int64_t kMatrixAlignment = 16;
  for (size_t i = 0; i < ir::kRoles; ++i) {
    const auto role = static_cast<ir::OperandRole>(i);
    if (!ir::Uses(problem, role)) continue;
    const ir::StoredTensor tensor = ir::Stored(problem, role);
    const int64_t promised = ir::AlignmentOf(problem, role);
    const bool blocks = ir::ScaleBlock::Holds(tensor.type);  // of scale factors, which tensor maps address
    rules_.push_back({.name = std::string(ir::NameOf(problem, role)),
                      .index = i,
                      .align = promised != 0 ? promised
                               : blocks      ? kMatrixAlignment
                                             : ir::BytesOf(tensor.type, 1),
                      .remedy = promised != 0 ? Remedy::kPromiseLess
                                : blocks      ? Remedy::kAlign
                                              : Remedy::kWholeElements,
                      .bytes = tensor.Bytes()});
  }
  size_t index = ir::kRoles;
  for (const ir::EpilogueTensor& operand : ir::EpilogueTensors(problem)) {
    rules_.push_back({.name = operand.name,
                      .index = index++,
                      .align = operand.matrix ? kMatrixAlignment : DataTypeBytes(operand.tensor.type),
                      .remedy = operand.matrix ? Remedy::kAlign : Remedy::kWholeElements,
                      .bytes = operand.tensor.Bytes()});
  }
}

const void* PointerRules::AddressAt(const GemmArguments& roles, size_t index) {
  if (index >= ir::kRoles) return roles.epilogue[index - ir::kRoles];
  if (index == kOffsets) return roles.group_offsets;
  if (index == kSizes) return roles.group_sizes;
  return index == static_cast<size_t>(ir::OperandRole::kD) ? roles.d : roles.*kOfRoles[index];
}

std::string PointerRules::PrintRemedy(const Rule& rule, uintptr_t own) {
  switch (rule.remedy) {
    case Remedy::kPromiseLess:
      return Cat("align it, or make the plan with align_", rule.name, "=", own);
    case Remedy::kWholeElements:
      return "pass whole elements";
    case Remedy::kAlign:
      return "align it";
  }
  return "";
}

Status PointerRules::Check(const Rule& rule, const void* pointer) {
  if (pointer == nullptr) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        Cat("pointer ", rule.name, " is null, but the problem reads or writes ", rule.name, "; pass device memory"));
  }
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  if (address % static_cast<uintptr_t>(rule.align) == 0) return Ok();
  const uintptr_t own = uintptr_t{1} << std::countr_zero(address);
  return MakeError(ErrorCode::kInvalidArgument,
                   Cat("pointer ", rule.name, " (", pointer, ") is aligned to ", own, " bytes, the plan needs ",
                       rule.align, "; ", PrintRemedy(rule, own)));
}

Status PointerRules::CheckPointers(const GemmArguments& roles) const {
  for (const Rule& rule : rules_) LS_TRY(Check(rule, AddressAt(roles, rule.index)));
  return Ok();
}

Status PointerRules::CheckMemory(const device::Device& device, const GemmArguments& roles) const {
  for (const Rule& rule : rules_)
    LS_TRY(runtime::CheckMemory(device, rule.name, AddressAt(roles, rule.index), rule.bytes));
  return Ok();
}

Status CheckMemory(const device::Device& device, std::string_view name, const void* pointer, size_t bytes) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  LS_ASSIGN(const std::optional<device::MemoryRange> range, device::FindMemory(device.api(), address));
  if (!range) {
    if (device.facts().pageable_memory) return Ok();
    return MakeError(ErrorCode::kInvalidArgument,
                     Cat("pointer ", name, " (", pointer, ") is no address of ", device.facts().name,
                         "; pass memory that was allocated on the device, such as by cuMemAlloc or cudaMalloc"));
  }
  const size_t left = range->begin + range->bytes - address;
  if (bytes <= left) return Ok();
  return MakeError(
      ErrorCode::kInvalidArgument,
      Cat("pointer ", name, " (", pointer, ") has ", left, " bytes up to the end of its allocation, ", name, " takes ",
          bytes, "; pass an allocation of its size, or make the plan of a smaller problem"));
}

}  // namespace laneshift::runtime
