#include "runtime/argument_pointers.h"

#include <array>
#include <bit>
#include <string>
#include <string_view>

#include "base/text.h"
#include "ir/stored_tensor.h"

namespace laneshift::runtime {
namespace {

using base::Cat;

struct PointerRule {
  std::string_view name;
  const void* pointer;
  bool needed;
  int64_t align;
  bool fixed = false;  // the alignment is no choice of the problem
};

std::array<PointerRule, 5> RulesOf(const GemmProblem& problem, const GemmArguments& given) {
  return {{{"a", given.a, true, problem.align_a},
           {"b", given.b, true, problem.align_b},
           {"c", given.c, problem.beta != 0, problem.align_c},
           {"d", given.d, true, problem.align_d},
           {"bias", given.bias, problem.bias != BiasAxis::kNone, DataTypeBytes(problem.d)}}};
}

std::array<PointerRule, 5> RulesOf(const ConvProblem& problem, const ConvArguments& given) {
  return {{{"x", given.x, true, problem.align_x},
           {"w", given.w, true, problem.align_w},
           {"z", given.z, problem.beta != 0, problem.align_z},
           {"y", given.y, true, problem.align_y},
           {"bias", given.bias, problem.bias != ConvBias::kNone, DataTypeBytes(problem.y)}}};
}

constexpr int64_t kMatrixAlignment = 16;

Status CheckPointer(const PointerRule& rule) {
  if (!rule.needed) return Ok();
  if (rule.pointer == nullptr) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        Cat("pointer ", rule.name, " is null, but the problem reads or writes ", rule.name, "; pass device memory"));
  }
  const auto address = reinterpret_cast<uintptr_t>(rule.pointer);
  if (address % static_cast<uintptr_t>(rule.align) == 0) return Ok();
  const uintptr_t own = uintptr_t{1} << std::countr_zero(address);
  const std::string remedy = rule.fixed            ? "align it"
                             : rule.name == "bias" ? "pass whole elements"
                                                   : Cat("align it, or make the plan with align_", rule.name, "=", own);
  return MakeError(ErrorCode::kInvalidArgument, Cat("pointer ", rule.name, " (", rule.pointer, ") is aligned to ", own,
                                                    " bytes, the plan needs ", rule.align, "; ", remedy));
}

Status CheckEpilogue(const Problem& problem, const EpilogueArguments& given) {
  const bool none = std::visit([](const auto& kind) { return kind.epilogue.empty(); }, problem);
  if (none) return Ok();
  size_t i = 0;
  for (const ir::EpilogueTensor& operand : ir::EpilogueTensors(problem)) {
    const bool vector = operand.tensor.Rows() == 1 && operand.tensor.rank == 1;
    const int64_t align = vector ? DataTypeBytes(operand.tensor.type) : kMatrixAlignment;
    LS_TRY(CheckPointer({operand.name, given[i++], true, align, true}));
  }
  return Ok();
}

}  // namespace

Status CheckPointers(const Problem& problem, const Arguments& arguments) {
  const std::array<PointerRule, 5> rules =
      std::holds_alternative<GemmProblem>(problem)
          ? RulesOf(std::get<GemmProblem>(problem), std::get<GemmArguments>(arguments))
          : RulesOf(std::get<ConvProblem>(problem), std::get<ConvArguments>(arguments));
  for (const PointerRule& rule : rules) LS_TRY(CheckPointer(rule));
  const EpilogueArguments& given =
      std::visit([](const auto& kind) -> const EpilogueArguments& { return kind.epilogue; }, arguments);
  return CheckEpilogue(problem, given);
}

}  // namespace laneshift::runtime
