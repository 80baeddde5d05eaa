#include "laneshift/problem.h"

#include "base/text.h"
#include "ir/problem_keys.h"
#include "ir/problem_kinds.h"
#include "ir/stored_tensor.h"

namespace laneshift {
namespace {

using base::Cat;

// One row per kind, in the order of the alternatives of Problem.
struct Kind {
  std::string_view name;
  Result<Problem> (*parse)(const std::vector<std::string_view>& words);
};
constexpr Kind kKinds[] = {{"gemm", ir::ParseGemm}, {"conv", ir::ParseConv}};
static_assert(std::size(kKinds) == std::variant_size_v<Problem>);

}  // namespace

std::string_view ProblemKind(const Problem& problem) { return kKinds[problem.index()].name; }

std::string_view NumericsName(Numerics numerics) { return ir::NameOf(numerics); }

Result<Problem> ParseProblem(std::string_view text) {
  const std::vector<std::string_view> words = base::Words(text);
  if (words.empty()) {
    return ir::InvalidProblem("empty problem; write for example: gemm m=256 n=256 k=256 a=bf16 b=bf16 d=bf16");
  }
  std::vector<std::string> known;
  for (const Kind& kind : kKinds) {
    if (kind.name != words[0]) {
      known.emplace_back(kind.name);
      continue;
    }
    LS_ASSIGN(const Problem problem, kind.parse(words));
    return CompleteProblem(problem);
  }
  return ir::InvalidProblem(Cat("unknown kind of problem '", words[0], "'; known kinds: ", base::Join(known, ", ")));
}

Result<Problem> CompleteProblem(const Problem& problem) {
  return std::visit([](const auto& kind) { return ir::Complete(kind); }, problem);
}

std::string PrintProblem(const Problem& problem) {
  return std::visit([](const auto& kind) { return ir::Print(kind); }, problem);
}

double ProblemFlops(const Problem& problem) {
  return std::visit([](const auto& kind) { return ir::Flops(kind); }, problem);
}

double ProblemBytes(const Problem& problem) {
  double bytes = std::visit([](const auto& kind) { return ir::Bytes(kind); }, problem);
  for (const ir::EpilogueTensor& operand : ir::EpilogueTensors(problem)) {
    bytes += static_cast<double>(operand.tensor.Elements() * DataTypeBytes(operand.tensor.type));
  }
  return bytes;
}

}  // namespace laneshift
