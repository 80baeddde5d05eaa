#include "tools/assembler_check/check_corpus.h"

#include <set>
#include <utility>

#include "autotune/ranking.h"
#include "base/read_file.h"
#include "base/text.h"
#include "compiler/compile.h"
#include "device/module.h"
#include "ir/grammar.h"
#include "target/target.h"
#include "tools/draw/grammar_draw.h"

namespace laneshift::tools {
namespace {

using base::Cat;

constexpr uint64_t kMaxPtxBytes = uint64_t{256} << 20;
// The number of draws, refused by a rule or repeating a kernel, per draw that counts.
constexpr int kDrawsPerKernel = 40;

// A problem with a schedule that fits it, and its kernel's key and PTX; nothing if a rule refuses it.
std::optional<std::pair<std::string, CheckedKernel>> DrawKernel(Dice& dice, const target::Target& target) {
  const std::vector<std::string_view> kinds = ir::ProblemKinds();
  const auto problem = ParseProblem(base::Join(DrawProblem(dice, dice.Of(kinds), DrawReach::kEmulated), " "));
  if (!problem) return std::nullopt;
  std::optional<Schedule> schedule = DrawLegal(dice, *problem, target);
  if (!schedule) return std::nullopt;
  const auto program = compiler::BuildProgram(*problem, *schedule, target);
  if (!program) return std::nullopt;
  auto module = compiler::EmitPtx(*program, target);
  if (!module) return std::nullopt;
  CheckedKernel kernel{.name = Cat(PrintProblem(*problem), " --schedule \"", PrintSchedule(*schedule), "\""),
                       .ptx = std::move(module->ptx),
                       .target = std::string(target.name)};
  kernel.drawn = DrawnProblem{*problem, *schedule};
  return std::pair(compiler::KernelKey(*program), std::move(kernel));
}

}  // namespace

Result<std::vector<CheckedKernel>> DrawKernels(int count, uint64_t seed, const std::string& target) {
  std::vector<const target::Target*> targets;
  for (const target::Target& known : target::Targets()) {
    if (target.empty() || known.name == target) targets.push_back(&known);
  }
  if (targets.empty()) LS_TRY(target::FindTarget(target));
  Dice dice(seed);
  std::vector<CheckedKernel> kernels;
  std::set<std::string> seen;
  for (int draw = 0; draw < count * kDrawsPerKernel && std::ssize(kernels) < count; ++draw) {
    auto drawn = DrawKernel(dice, *targets[kernels.size() % targets.size()]);
    if (drawn && seen.insert(drawn->first).second) kernels.push_back(std::move(drawn->second));
  }
  return kernels;
}

Result<std::vector<CheckedKernel>> ReadKernels(const std::vector<std::string>& files) {
  std::vector<CheckedKernel> kernels;
  for (const std::string& file : files) {
    if (file.ends_with(".json")) {
      if (kernels.empty() || !kernels.back().launch_path.empty())
        return MakeError(ErrorCode::kInvalidArgument,
                         Cat(file, ": a launch file follows the PTX file that it launches"));
      kernels.back().launch_path = file;
      continue;
    }
    LS_ASSIGN(std::string ptx, base::ReadFile(file, kMaxPtxBytes, base::Readable::kRegularFile));
    const std::string target(device::PtxTargetOf(ptx));
    if (target.empty())
      return MakeError(ErrorCode::kInvalidArgument, Cat(file, ": there is no .target in it; is it PTX?"));
    kernels.push_back({.name = file, .ptx = std::move(ptx), .target = target});
  }
  return kernels;
}

}  // namespace laneshift::tools
