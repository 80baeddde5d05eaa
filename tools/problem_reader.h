// ProblemReader: problems of a command line, whose epilogues may name users' functions in files. It opens an engine
// when the first one does, or when the verb asks for it, so that mistakes in a line are reported at once.
//
// Thread-safety: none.
#pragma once

#include <optional>
#include <string_view>

#include "compiler/compile.h"
#include "laneshift/engine.h"

namespace laneshift::tools {

class ProblemReader {
 public:
  explicit ProblemReader(EngineOptions options) : options_(std::move(options)) {}
  // For verbs that show a problem as `run` would compute it, but run nothing: a GPU of the target, otherwise the
  // emulator. `target` empty: that of the GPU, otherwise the emulator's first.
  static ProblemReader ForLooking(const std::string& target, const EngineOptions& sources);

  Result<Problem> Read(std::string_view text);
  // The functions that a program calls.
  Result<compiler::FunctionTexts> TextsOf(const ir::Program& program);
  // The engine, opened now if it was not before.
  Result<const Engine*> Look();
  Result<Engine> Take();

 private:
  Status Open();

  EngineOptions options_;
  std::optional<Engine> engine_;
};

}  // namespace laneshift::tools
