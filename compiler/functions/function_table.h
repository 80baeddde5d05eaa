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
  // kNotFound: the text of a function is not there.
  static Result<FunctionTable> Make(const ir::Program& program, const FunctionTexts& texts);

  // How function `index` is written, into fragments of so many registers. The first that asks decides.
  const FunctionCode& CodeOf(int index, int registers);

  // The PTX of a kernel with what its functions need in front, and of a version that knows it.
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
