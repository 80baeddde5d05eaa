#include "emulator/decode/loaded_module.h"

#include <cstring>

#include "base/text.h"

namespace laneshift::emulator {

LoadedModule::~LoadedModule() {
  for (const uint64_t address : owned_) memory_.Free(address);
}

Status LoadedModule::PlaceVariables() {
  std::vector<const VariableSyntax*> all;
  for (const VariableSyntax& variable : syntax_.variables) all.push_back(&variable);
  for (const FunctionSyntax& function : syntax_.functions) {
    for (const VariableSyntax& variable : function.variables) all.push_back(&variable);
  }
  for (const VariableSyntax* variable : all) {
    if (variable->space != StateSpace::kGlobal && variable->space != StateSpace::kConst) continue;
    if (variable->is_extern)
      return PtxError(variable->at, base::Cat("the external variable '", variable->name, "' has no definition"));
    if (variable->bytes == 0)
      return PtxError(variable->at, base::Cat("the variable '", variable->name, "' has no size"));
    Allocation* allocation = memory_.Allocate(variable->bytes, std::max<uint64_t>(variable->align, 256));
    if (allocation == nullptr) {
      return MakeError(ErrorCode::kResourceExhausted,
                       base::Cat("no memory for the variable '", variable->name, "' of ", variable->bytes, " bytes"));
    }
    owned_.push_back(allocation->address());
    addresses_[variable] = allocation->address();
    // Variables of modules start as zero.
    allocation->MarkZero();
    const uint64_t given = variable->initial.size();
    if (given != 0 && !allocation->TryWrite(allocation->address(), given)) {
      return MakeError(ErrorCode::kResourceExhausted,
                       base::Cat("the limit on host memory leaves none for the variable '", variable->name, "'"));
    }
    if (given != 0) std::memcpy(allocation->At(allocation->address()), variable->initial.data(), given);
  }
  return Ok();
}

Result<std::vector<uint8_t>> LoadedModule::InitialBytes(const VariableSyntax& variable) const {
  std::vector<uint8_t> bytes = variable.initial;
  bytes.resize(variable.bytes);
  for (const SymbolReference& reference : variable.references) {
    uint64_t value = 0;
    for (const auto& [other, target] : addresses_) {
      if (other->name == reference.symbol) value = target;
    }
    if (const FunctionSyntax* function = syntax_.FindFunction(reference.symbol); value == 0 && function != nullptr)
      value = syntax_.AddressOf(*function);
    if (value == 0) return PtxError(variable.at, base::Cat("unknown name '", reference.symbol, "' in an initialiser"));
    value += static_cast<uint64_t>(reference.offset);
    std::memcpy(bytes.data() + reference.at, &value, 8);
  }
  return bytes;
}

Status LoadedModule::Initialise() {
  for (const auto& [variable, address] : addresses_) {
    if (variable->references.empty()) continue;
    LS_ASSIGN(const std::vector<uint8_t> bytes, InitialBytes(*variable));
    std::memcpy(memory_.Find(address, 1)->At(address), bytes.data(), bytes.size());
  }
  return Ok();
}

std::vector<std::string> LoadedModule::ChangedVariables() const {
  std::vector<std::string> changed;
  for (const auto& [variable, address] : addresses_) {
    const auto bytes = InitialBytes(*variable);
    if (bytes && std::memcmp(memory_.Find(address, 1)->At(address), bytes->data(), bytes->size()) != 0)
      changed.emplace_back(variable->name);
  }
  return changed;
}

Result<std::unique_ptr<LoadedModule>> LoadedModule::Load(ModuleSyntax syntax, GlobalMemory& memory, Chip chip) {
  std::unique_ptr<LoadedModule> module(new LoadedModule(memory));
  module->syntax_ = std::move(syntax);
  LS_TRY(module->PlaceVariables());
  LS_TRY(module->Initialise());
  for (const FunctionSyntax& function : module->syntax_.functions) {
    if (!function.is_entry || !function.has_body) continue;
    LS_ASSIGN(DecodedKernel kernel, BuildKernel(module->syntax_, function, module->addresses_, chip));
    module->kernels_.emplace(std::string(function.name), std::move(kernel));
  }
  return module;
}

const DecodedKernel* LoadedModule::Find(std::string_view name) const {
  const auto known = kernels_.find(name);
  return known == kernels_.end() ? nullptr : &known->second;
}

std::optional<LoadedModule::Variable> LoadedModule::FindVariable(std::string_view name) const {
  for (const VariableSyntax& variable : syntax_.variables) {
    const auto placed = addresses_.find(&variable);
    if (variable.name == name && placed != addresses_.end()) return Variable{placed->second, variable.bytes};
  }
  return std::nullopt;
}

}  // namespace laneshift::emulator
