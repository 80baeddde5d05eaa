#include "runtime/argument_roles.h"

#include <array>
#include <bit>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "base/text.h"
#include "compiler/plan/factor_packing.h"
#include "device/memory_range.h"
#include "ir/element_type.h"
#include "ir/stored_tensor.h"

namespace laneshift::runtime {
namespace {

using base::Cat;

using ir::OperandRole;

// The member of a kind of arguments that holds the address of an operand.
template <typename Kind>
using Member = std::variant<std::monostate, const void * Kind::*, void * Kind::*, const int32_t * Kind::*>;

// By role. A role that the kind lacks has no member.
template <typename Kind>
constexpr std::array<Member<Kind>, ir::kRoles> kMembers;
template <>
constexpr std::array<Member<GemmArguments>, ir::kRoles> kMembers<GemmArguments> = {
    &GemmArguments::a,
    &GemmArguments::b,
    &GemmArguments::c,
    &GemmArguments::d,
    &GemmArguments::bias,
    &GemmArguments::scale_a,
    &GemmArguments::scale_b,
    &GemmArguments::scale_d,
    &GemmArguments::tensor_scale_a,
    &GemmArguments::tensor_scale_b,
    &GemmArguments::group_offsets,
    &GemmArguments::group_sizes,
    &GemmArguments::block_scale_d,
    &GemmArguments::metadata_a,
    &GemmArguments::a_row_indices,
    &GemmArguments::d_row_indices,
};
template <>
constexpr std::array<Member<ConvArguments>, ir::kRoles> kMembers<ConvArguments> = {
    &ConvArguments::x,    &ConvArguments::w,       &ConvArguments::z,       &ConvArguments::y,
    &ConvArguments::bias, &ConvArguments::scale_x, &ConvArguments::scale_w, &ConvArguments::scale_y,
};
template <>
constexpr std::array<Member<ConvDgradArguments>, ir::kRoles> kMembers<ConvDgradArguments> = {
    &ConvDgradArguments::y, &ConvDgradArguments::w,       &ConvDgradArguments::z,       &ConvDgradArguments::x,
    std::monostate{},       &ConvDgradArguments::scale_y, &ConvDgradArguments::scale_w, &ConvDgradArguments::scale_x,
};
template <>
constexpr std::array<Member<ConvWgradArguments>, ir::kRoles> kMembers<ConvWgradArguments> = {
    &ConvWgradArguments::y, &ConvWgradArguments::x,       &ConvWgradArguments::z,       &ConvWgradArguments::w,
    std::monostate{},       &ConvWgradArguments::scale_y, &ConvWgradArguments::scale_x, &ConvWgradArguments::scale_w,
};

template <typename Kind>
const void* Get(const Kind& arguments, OperandRole role) {
  return std::visit(
      [&](auto member) -> const void* {
        if constexpr (std::is_same_v<decltype(member), std::monostate>) {
          return nullptr;
        } else {
          return arguments.*member;
        }
      },
      kMembers<Kind>[static_cast<size_t>(role)]);
}

template <typename Kind>
void Set(Kind& arguments, OperandRole role, void* address) {
  std::visit(
      [&](auto member) {
        if constexpr (!std::is_same_v<decltype(member), std::monostate>) {
          using Pointer = std::remove_reference_t<decltype(arguments.*member)>;
          arguments.*member = static_cast<Pointer>(address);
        }
      },
      kMembers<Kind>[static_cast<size_t>(role)]);
}

template <typename To, typename From>
To Converted(const From& from) {
  To to;
  // Arguments hold what is written as an address that is not const already.
  for (const OperandRole role : ir::kAllRoles) Set(to, role, const_cast<void*>(Get(from, role)));
  if constexpr (requires { to.epilogue = from.epilogue; }) to.epilogue = from.epilogue;
  return to;
}

// The alternative of Arguments that fits.
size_t KindOf(const Problem& problem) {
  const ConvProblem* conv = std::get_if<ConvProblem>(&problem);
  return conv == nullptr ? 0 : 1 + static_cast<size_t>(conv->pass);
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
  return std::visit([](const auto& kind) { return Converted<GemmArguments>(kind); }, arguments);
}

Arguments ArgumentsOf(const Problem& problem, const GemmArguments& roles) {
  const ConvProblem* conv = std::get_if<ConvProblem>(&problem);
  if (conv == nullptr) return roles;
  switch (conv->pass) {
    case ConvPass::kForward:
      return Converted<ConvArguments>(roles);
    case ConvPass::kDgrad:
      return Converted<ConvDgradArguments>(roles);
    case ConvPass::kWgrad:
      return Converted<ConvWgradArguments>(roles);
  }
  __builtin_unreachable();
}

const void* AddressOf(const GemmArguments& roles, ir::OperandRole role) { return Get(roles, role); }
void SetAddress(GemmArguments& roles, ir::OperandRole role, void* address) { Set(roles, role, address); }

PointerRules::PointerRules(const Problem& problem) {
  constexpr int64_t kMatrixAlignment = 16;
  for (const OperandRole role : ir::kAllRoles) {
    if (!ir::Uses(problem, role)) continue;
    const ir::StoredTensor tensor = ir::Stored(problem, role);
    const int64_t promised = ir::AlignmentOf(problem, role);
    // Of scale factors or metadata, which tensor maps address.
    const bool in_rows = compiler::HasFactorsInRows(problem) && role != OperandRole::kBlockScaleD;
    const bool of_operand = role == OperandRole::kScaleA || role == OperandRole::kScaleB;
    const bool blocks = (ir::ScaleBlock::Holds(tensor.type) && !in_rows) || role == OperandRole::kMetadataA ||
                        (of_operand && tensor.type == DataType::kF32 && tensor.rank > 1);
    rules_.push_back({.name = std::string(ir::NameOf(problem, role)),
                      .index = static_cast<size_t>(role),
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
  return index < ir::kRoles ? AddressOf(roles, ir::kAllRoles[index]) : roles.epilogue[index - ir::kRoles];
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
