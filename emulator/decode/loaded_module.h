// A loaded PTX module: its variables in global memory, and its kernels, decoded when first asked for.
//
// Thread-safety: belongs to the driver's lock.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emulator/decode/decode_kernel.h"
#include "emulator/decode/decoded_kernel.h"
#include "emulator/machine/memory.h"
#include "emulator/ptx/ptx_syntax.h"

namespace laneshift::emulator {

class LoadedModule {
 public:
  // Places the variables and decodes every entry. Errors carry line and column.
  static Result<std::unique_ptr<LoadedModule>> Load(ModuleSyntax syntax, GlobalMemory& memory, Chip chip);
  ~LoadedModule();

  const ModuleSyntax& syntax() const { return syntax_; }
  const DecodedKernel* Find(std::string_view name) const;
  const std::map<std::string, DecodedKernel, std::less<>>& kernels() const { return kernels_; }
  // Where a variable of the module lies.
  struct Variable {
    uint64_t address, bytes;
  };
  std::optional<Variable> FindVariable(std::string_view name) const;
  // Whether the allocation at this address is a variable of the module.
  bool Owns(uint64_t address) const { return std::find(owned_.begin(), owned_.end(), address) != owned_.end(); }
  // The variables that no longer hold what the PTX says.
  std::vector<std::string> ChangedVariables() const;

 private:
  explicit LoadedModule(GlobalMemory& memory) : memory_(memory) {}
  Status PlaceVariables();
  Status Initialise();
  // What the variable holds at first.
  Result<std::vector<uint8_t>> InitialBytes(const VariableSyntax& variable) const;

  GlobalMemory& memory_;
  ModuleSyntax syntax_;
  VariableAddresses addresses_;
  std::vector<uint64_t> owned_;
  std::map<std::string, DecodedKernel, std::less<>> kernels_;
};

}  // namespace laneshift::emulator
