#include "runtime/argument_roles.h"

#include <bit>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "ir/stored_tensor.h"

namespace laneshift::runtime {
namespace {

using base::Cat;

// What helps a pointer that is aligned to less than the plan needs.
enum class Remedy : uint8_t { kPromiseLess, kWholeElements, kAlign };

struct PointerRule {
  std::string_view name;
  const void* pointer;
  int64_t align;
  Remedy remedy;
};

std::string PrintRemedy(const PointerRule& rule, uintptr_t own) {
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

Status CheckPointer(const PointerRule& rule) {
  if (rule.pointer == nullptr) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        Cat("pointer ", rule.name, " is null, but the problem reads or writes ", rule.name, "; pass device memory"));
  }
  const auto address = reinterpret_cast<uintptr_t>(rule.pointer);
  if (address % static_cast<uintptr_t>(rule.align) == 0) return Ok();
  const uintptr_t own = uintptr_t{1} << std::countr_zero(address);
  return MakeError(ErrorCode::kInvalidArgument,
                   Cat("pointer ", rule.name, " (", rule.pointer, ") is aligned to ", own, " bytes, the plan needs ",
                       rule.align, "; ", PrintRemedy(rule, own)));
}

Status CheckEpilogue(const Problem& problem, const EpilogueArguments& given) {
  const bool none = std::visit([](const auto& kind) { return kind.epilogue.empty(); }, problem);
  if (none) return Ok();
  constexpr int64_t kMatrixAlignment = 16;
  size_t i = 0;
  for (const ir::EpilogueTensor& operand : ir::EpilogueTensors(problem)) {
    const int64_t align = operand.matrix ? kMatrixAlignment : DataTypeBytes(operand.tensor.type);
    LS_TRY(CheckPointer({operand.name, given[i++], align, operand.matrix ? Remedy::kAlign : Remedy::kWholeElements}));
  }
  return Ok();
}

}  // namespace

Result<GemmArguments> RolesOf(const Problem& problem, const Arguments& arguments) {
  if (problem.index() != arguments.index()) {
    constexpr std::string_view kNames[] = {"GemmArguments", "ConvArguments"};
    static_assert(std::size(kNames) == std::variant_size_v<Arguments>);
    return MakeError(ErrorCode::kInvalidArgument,
                     base::Cat("the problem is a ", ProblemKind(problem), ", but the arguments are ",
                               kNames[arguments.index()], "; pass ", kNames[problem.index()]));
  }
  if (const GemmArguments* gemm = std::get_if<GemmArguments>(&arguments)) return *gemm;
  const ConvArguments& conv = std::get<ConvArguments>(arguments);
  return GemmArguments{.a = conv.x,
                       .b = conv.w,
                       .c = conv.z,
                       .d = conv.y,
                       .bias = conv.bias,
                       .scale_a = conv.scale_x,
                       .scale_b = conv.scale_w,
                       .scale_d = conv.scale_y,
                       .epilogue = conv.epilogue};
}

Arguments ArgumentsOf(const Problem& problem, const GemmArguments& roles) {
  if (std::holds_alternative<GemmProblem>(problem)) return roles;
  return ConvArguments{.x = roles.a,
                       .w = roles.b,
                       .z = roles.c,
                       .y = roles.d,
                       .bias = roles.bias,
                       .scale_x = roles.scale_a,
                       .scale_w = roles.scale_b,
                       .scale_y = roles.scale_d,
                       .epilogue = roles.epilogue};
}

Status CheckPointers(const Problem& problem, const GemmArguments& roles) {
  const std::pair<ir::OperandRole, const void*> pointers[] = {{ir::OperandRole::kA, roles.a},
                                                              {ir::OperandRole::kB, roles.b},
                                                              {ir::OperandRole::kC, roles.c},
                                                              {ir::OperandRole::kD, roles.d},
                                                              {ir::OperandRole::kBias, roles.bias},
                                                              {ir::OperandRole::kScaleA, roles.scale_a},
                                                              {ir::OperandRole::kScaleB, roles.scale_b},
                                                              {ir::OperandRole::kScaleD, roles.scale_d}};
  static_assert(std::size(pointers) == ir::kRoles);
  for (const auto& [role, pointer] : pointers) {
    if (!ir::Uses(problem, role)) continue;
    const int64_t promised = ir::AlignmentOf(problem, role);
    const int64_t align = promised != 0 ? promised : DataTypeBytes(ir::Stored(problem, role).type);
    const Remedy remedy = promised != 0 ? Remedy::kPromiseLess : Remedy::kWholeElements;
    LS_TRY(CheckPointer({ir::NameOf(problem, role), pointer, align, remedy}));
  }
  return CheckEpilogue(problem, roles.epilogue);
}

}  // namespace laneshift::runtime
