// FunctionTable: the users' functions of one program while its kernel is emitted.
//
// Thread-safety: none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "compiler/functions/function_code.h"
#include "compiler/functions/function_module.h"
#include "ir/program.h"

namespace laneshift::compiler {

class FunctionTable {
 public:
  // kNotFound: the text of a function is missing.
  static Result<FunctionTable> Make(const ir::Program& program, const FunctionTexts& texts);

  // The code of function `index`, for fragments with this many registers. The first call decides.
  const FunctionCode& CodeOf(int index, int registers);

  // The PTX of a kernel with what its functions need in front, and of a sufficient version.
  std::string Link(const std::string& ptx) const;

 private:
  struct Entry {
    FunctionModule module;
    std::string label;
    int calls = 0;  // ops of the program
    std::optional<FunctionCode> code;
  };
  std::vector<Entry> entries_;
};

}  // namespace laneshift::compiler
