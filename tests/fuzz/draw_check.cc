#include "tests/fuzz/draw_check.h"

#include <algorithm>

#include "base/text.h"
#include "compiler/compile.h"
#include "device/assembler.h"
#include "laneshift/engine.h"
#include "target/target.h"
#include "tools/problem_run.h"

namespace laneshift::fuzz {
namespace {

using base::Cat;

std::string InOneLine(std::string text) {
  std::replace(text.begin(), text.end(), '\n', '|');
  return text;
}

Judgement Finding(std::string_view what, std::string_view reason) {
  return {DrawVerdict::kFinding, InOneLine(Cat(what, ": ", reason))};
}

// What is said no to must be the caller's affair, in one line.
Judgement JudgeError(std::string_view stage, const Error& error) {
  const bool callers = error.code == ErrorCode::kInvalidArgument || error.code == ErrorCode::kUnsupported ||
                       error.code == ErrorCode::kResourceExhausted;
  const std::string text = Cat(ErrorCodeName(error.code), ": ", error.message);
  if (!callers) return Finding(stage, text);
  if (base::Trim(error.message).empty()) return Finding(stage, "a refusal without a reason");
  if (error.message.find('\n') != std::string::npos) return Finding(stage, Cat("a refusal of several lines: ", text));
  return {DrawVerdict::kRefused, text};
}

// The text form is what stores and logs go by.
std::string LostInText(const Problem& problem) {
  const std::string text = PrintProblem(problem);
  const auto again = ParseProblem(text);
  if (!again) return Cat("'", text, "' is refused: ", again.error().message);
  if (!(*again == problem)) return Cat("'", text, "' reads back as '", PrintProblem(*again), "'");
  return "";
}

// The main kernel; tests/assembler_sweep_test.cc assembles those that pack and those that add partial rows of
// reductions.
Status AssembleProduct(const device::PtxAssembler& assembler, const Problem& problem, const std::string& schedule,
                       std::string_view target_name) {
  LS_ASSIGN(const target::Target* target, target::FindTarget(target_name));
  LS_ASSIGN(const ScheduleConstraint chosen, ParseSchedule(schedule));
  LS_ASSIGN(const ir::Program program, compiler::BuildProgram(problem, chosen.value, *target));
  LS_ASSIGN(const compiler::PtxModule module, compiler::EmitPtx(program, *target));
  LS_ASSIGN(const device::AssembleResult result, assembler.Assemble(module.ptx, target->name));
  const int local = result.spill_store_bytes + result.spill_load_bytes + result.stack_bytes;
  if (local > 0) return MakeError(ErrorCode::kInternal, Cat("spills or a stack frame: ", result.log));
  if (!result.advisories.empty()) return MakeError(ErrorCode::kInternal, result.advisories.front());
  return Ok();
}

Result<tools::RunOutcome> Run(const Draw& draw, const Problem& problem, const ScheduleConstraint& constraint) {
  EngineOptions options;
  options.device = "emulator";
  options.target = draw.target;
  options.emulator_multiprocessors = draw.multiprocessors;
  // Draws run concurrently.
  options.emulator_threads = 1;
  LS_ASSIGN(options.async_order, ParseAsyncOrder(draw.async));
  LS_ASSIGN(const Engine engine, Engine::Open(options));
  tools::RunSettings settings;
  settings.check = true;
  settings.constraint = constraint;
  // Some draws have most rows in few groups, and none in others.
  const auto* grouped = std::get_if<GroupedGemmProblem>(&problem);
  if (grouped != nullptr && grouped->n % 2 == 0) settings.group_sizes = Cat("zipf:", grouped->k);
  return tools::RunProblem(engine, problem, settings);
}

}  // namespace

std::string_view VerdictName(DrawVerdict verdict) {
  constexpr std::string_view kNames[] = {"right", "refused", "finding"};
  return kNames[static_cast<size_t>(verdict)];
}

Judgement Judge(const Draw& draw, Assembly assembly) {
  const auto problem = ParseProblem(draw.ProblemText());
  if (!problem) return JudgeError("problem", problem.error());
  if (const std::string lost = LostInText(*problem); !lost.empty()) return Finding("text", lost);
  const auto constraint = ParseSchedule(draw.ScheduleText());
  if (!constraint) return JudgeError("schedule", constraint.error());
  const auto outcome = Run(draw, *problem, *constraint);
  if (!outcome) return JudgeError("run", outcome.error());
  if (!outcome->verified.value_or(false)) {
    return Finding("result", outcome->failures.empty() ? "not verified" : base::Join(outcome->failures, "; "));
  }
  if (assembly == Assembly::kNone) return {};
  const auto assembler = device::PtxAssembler::Find({});
  if (!assembler) return {};
  const Status assembled = AssembleProduct(*assembler, *problem, outcome->plan.schedule, draw.target);
  return assembled ? Judgement{} : Finding("ptxas", assembled.error().message);
}

}  // namespace laneshift::fuzz
