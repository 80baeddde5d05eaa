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

struct PointerRule {
  std::string_view name;
  const void* pointer;
  int64_t align;
  bool whole_elements;  // the alignment is that of an element, which no plan can lower
};

Status CheckPointer(const PointerRule& rule) {
  if (rule.pointer == nullptr) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        Cat("pointer ", rule.name, " is null, but the problem reads or writes ", rule.name, "; pass device memory"));
  }
  const auto address = reinterpret_cast<uintptr_t>(rule.pointer);
  if (address % static_cast<uintptr_t>(rule.align) == 0) return Ok();
  const uintptr_t own = uintptr_t{1} << std::countr_zero(address);
  const std::string remedy =
      rule.whole_elements ? "pass whole elements" : Cat("align it, or make the plan with align_", rule.name, "=", own);
  return MakeError(ErrorCode::kInvalidArgument, Cat("pointer ", rule.name, " (", rule.pointer, ") is aligned to ", own,
                                                    " bytes, the plan needs ", rule.align, "; ", remedy));
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
                       .scale_d = conv.scale_y};
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
                       .scale_y = roles.scale_d};
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
    LS_TRY(CheckPointer({ir::NameOf(problem, role), pointer, align, promised == 0}));
  }
  return Ok();
}

}  // namespace laneshift::runtime
