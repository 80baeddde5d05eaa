#include "tools/problem_reader.h"

#include <algorithm>

#include "base/text.h"
#include "ir/function_call.h"
#include "runtime/engine_parts.h"

namespace laneshift::tools {
namespace {

bool NamesFiles(std::string_view problem) {
  constexpr std::string_view kKey = "epilogue=";
  const std::vector<std::string_view> words = base::Words(problem);
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    if (!word.starts_with(kKey)) return false;
    const std::vector<std::string_view> steps = base::Split(word.substr(kKey.size()), '+');
    return std::any_of(steps.begin(), steps.end(), ir::NamesFile);
  });
}

}  // namespace

ProblemReader ProblemReader::ForLooking(const std::string& target, const EngineOptions& sources) {
  EngineOptions options = sources;
  options.device = "auto";
  options.target = target;
  return ProblemReader(std::move(options));
}

Status ProblemReader::Open() {
  if (engine_) return Ok();
  LS_ASSIGN(engine_, Engine::Open(options_));
  return Ok();
}

Result<Problem> ProblemReader::Read(std::string_view text) {
  if (!NamesFiles(text)) return ParseProblem(text);
  LS_TRY(Open());
  return engine_->ReadProblem(text);
}

Result<compiler::FunctionTexts> ProblemReader::TextsOf(const ir::Program& program) {
  if (program.functions.empty()) return compiler::FunctionTexts{};
  LS_TRY(Open());
  return engine_->parts().functions.TextsOf(program);
}

Result<const Engine*> ProblemReader::Look() {
  LS_TRY(Open());
  return &*engine_;
}

Result<Engine> ProblemReader::Take() {
  LS_TRY(Open());
  return std::move(*engine_);
}

}  // namespace laneshift::tools
