#include "laneshift/problem.h"

#include <algorithm>

#include "base/check.h"
#include "base/host_memory.h"
#include "base/text.h"
#include "ir/problem_keys.h"
#include "ir/problem_kinds.h"
#include "ir/stored_tensor.h"

namespace laneshift {
namespace {

using base::Cat;

// One row per kind: GEMM, and the passes of a convolution in the order of ConvPass.
struct Kind {
  std::string_view name;
  Result<Problem> (*parse)(const std::vector<std::string_view>& words);
  std::vector<ir::GrammarRow> (*keys)();
  std::string_view others;  // other names of the kind, for messages
  std::string_view example;
};
template <ConvPass kPass>
Result<Problem> ParsePass(const std::vector<std::string_view>& words) {
  return ir::ParseConv(kPass, words);
}
template <ConvPass kPass>
std::vector<ir::GrammarRow> KeysOfPass() {
  return ir::ConvKeys(kPass);
}
constexpr Kind kKinds[] = {
    {"gemm", ir::ParseGemm, ir::GemmKeys, "matmul mm bmm addmm linear dot product hgemm sgemm mul matrix",
     "gemm m=512 n=512 k=512"},
    {"conv", ParsePass<ConvPass::kForward>, KeysOfPass<ConvPass::kForward>,
     "conv1d conv2d conv3d convolution conv2d_fprop fprop conv_fwd cudnn",
     "conv n=1 h=56 w=56 c=64 k=64 r=3 s=3 pad=1"},
    {"conv_dgrad", ParsePass<ConvPass::kDgrad>, KeysOfPass<ConvPass::kDgrad>,
     "dgrad conv2d_dgrad conv_bwd_data backward_data deconv conv_transpose",
     "conv_dgrad n=1 h=56 w=56 c=64 k=64 r=3 s=3 pad=1"},
    {"conv_wgrad", ParsePass<ConvPass::kWgrad>, KeysOfPass<ConvPass::kWgrad>,
     "wgrad conv2d_wgrad conv_bwd_filter backward_filter", "conv_wgrad n=1 h=56 w=56 c=64 k=64 r=3 s=3 pad=1"},
};

const Kind& KindOf(const Problem& problem) {
  const ConvProblem* conv = std::get_if<ConvProblem>(&problem);
  return kKinds[conv == nullptr ? 0 : 1 + static_cast<size_t>(conv->pass)];
}

Error UnknownKind(std::string_view word) {
  for (const Kind& kind : kKinds) {
    const std::vector<std::string_view> others = base::Words(kind.others);
    const bool meant = std::find(others.begin(), others.end(), word) != others.end();
    if (!meant && !base::NearestName(word, {kind.name})) continue;
    return ir::InvalidProblem(Cat("unknown kind of problem '", word, "'; write for example: ", kind.example));
  }
  return ir::InvalidProblem(
      Cat("unknown kind of problem '", word,
          "'; known kinds: gemm, conv, conv_dgrad, conv_wgrad; write for example: ", kKinds[0].example));
}

}  // namespace

std::vector<std::string_view> ir::ProblemKinds() {
  std::vector<std::string_view> names;
  for (const Kind& kind : kKinds) names.push_back(kind.name);
  return names;
}

std::vector<ir::GrammarRow> ir::ProblemKeys(std::string_view kind) {
  for (const Kind& known : kKinds) {
    if (known.name == kind) return known.keys();
  }
  LS_CHECK(false, "there is no kind of problem called ", kind);
  return {};
}

std::string_view ProblemKind(const Problem& problem) { return KindOf(problem).name; }

std::string_view NumericsName(Numerics numerics) { return ir::NameOf(numerics); }

Result<Problem> ParseProblem(std::string_view text) {
  return base::WithinHostMemory([&]() -> Result<Problem> {
    const std::vector<std::string_view> words = base::Words(text);
    if (words.empty()) {
      return ir::InvalidProblem("empty problem; write for example: gemm m=256 n=256 k=256 a=bf16 b=bf16 d=bf16");
    }
    for (const Kind& kind : kKinds) {
      if (kind.name != words[0]) continue;
      LS_ASSIGN(const Problem problem, kind.parse(words));
      return CompleteProblem(problem);
    }
    return UnknownKind(words[0]);
  });
}

Result<Problem> CompleteProblem(const Problem& problem) {
  return base::WithinHostMemory(
      [&] { return std::visit([](const auto& kind) { return ir::Complete(kind); }, problem); });
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
