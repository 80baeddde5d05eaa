// ProblemReader: problems of a command line, whose epilogues may name users' functions in files. An engine is opened
// when the first one does, and not before: most verbs look at problems without a device.
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
  // For verbs without a device; `target` empty: the first.
  static ProblemReader WithoutDevice(const std::string& target, const EngineOptions& sources);

  Result<Problem> Read(std::string_view text);
  // The functions that a program calls.
  Result<compiler::FunctionTexts> TextsOf(const ir::Program& program);
  // The engine, opened now if it was not before.
  Result<Engine> Take();

 private:
  Status Open();

  EngineOptions options_;
  std::optional<Engine> engine_;
};

}  // namespace laneshift::tools
