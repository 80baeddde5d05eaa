// A loaded PTX module: its variables in global memory, and its kernels, decoded when first asked for.
//
// Thread-safety: belongs to the driver's lock.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emulator/memory.h"
#include "emulator/program.h"
#include "emulator/program_builder.h"
#include "emulator/ptx_syntax.h"

namespace laneshift::emulator {

class Module {
 public:
  // Places the variables and decodes every entry. Errors carry line and column.
  static Result<std::unique_ptr<Module>> Load(ModuleSyntax syntax, GlobalMemory& memory, Chip chip);
  ~Module();

  const ModuleSyntax& syntax() const { return syntax_; }
  const Kernel* Find(std::string_view name) const;
  const std::map<std::string, Kernel, std::less<>>& kernels() const { return kernels_; }
  // Where a variable of the module lies.
  struct Variable {
    uint64_t address, bytes;
  };
  std::optional<Variable> FindVariable(std::string_view name) const;

 private:
  explicit Module(GlobalMemory& memory) : memory_(memory) {}
  Status PlaceVariables();
  Status Initialise();

  GlobalMemory& memory_;
  ModuleSyntax syntax_;
  VariableAddresses addresses_;
  std::vector<uint64_t> owned_;
  std::map<std::string, Kernel, std::less<>> kernels_;
};

}  // namespace laneshift::emulator
