#include "emulator/decode/wgmma_registers.h"

#include <unordered_set>

namespace laneshift::emulator {
namespace {

// The registers of D, and of A if it is in registers.
void ForEachMatrixRegister(const Instruction& wgmma, auto visit) {
  for (size_t i = 0; i < 2; ++i) {
    for (uint32_t e = 0; e < wgmma[i].count; ++e) visit(wgmma[i].elements[e].slot);
  }
}

}  // namespace

void MarkWgmmaRegisters(std::vector<Instruction>& code, const std::vector<std::string>& opcodes) {
  std::unordered_set<uint32_t> registers;
  for (const Instruction& instruction : code) {
    if (instruction.is_wgmma) ForEachMatrixRegister(instruction, [&](uint32_t slot) { registers.insert(slot); });
  }
  if (registers.empty()) return;
  for (Instruction& instruction : code) {
    if (instruction.is_wgmma || opcodes[instruction.opcode].starts_with("mov.")) continue;
    ForEachRegister(instruction, [&](uint32_t slot) {
      instruction.meets_wgmma = instruction.meets_wgmma || registers.contains(slot);
    });
  }
}

}  // namespace laneshift::emulator
