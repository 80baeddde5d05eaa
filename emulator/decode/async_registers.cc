#include "emulator/decode/async_registers.h"

#include <unordered_set>

namespace laneshift::emulator {
namespace {

using Registers = std::unordered_set<uint32_t>;

void AddAsync(const Instruction& instruction, int which, Registers& registers) {
  for (uint32_t i = 0; i < instruction.operand_count; ++i) {
    if ((instruction.async_operands & which & 1 << i) == 0) continue;
    const DecodedOperand& operand = instruction[i];
    if (operand.count == 0 && operand.slot != kNoSlot && operand.bytes != 0) registers.insert(operand.slot);
    for (uint32_t e = 0; e < operand.count; ++e) registers.insert(operand.elements[e].slot);
  }
}

bool MeetsAny(const Instruction& instruction, const Registers& registers) {
  bool meets = false;
  ForEachRegister(instruction, [&](uint32_t slot) { meets = meets || registers.contains(slot); });
  return meets;
}

// A move of a register that is due takes effect with the operation, which then has its destination too.
void AddDestinationsOfMoves(const std::vector<Instruction>& code, Registers& registers) {
  for (size_t before = 0; before != registers.size();) {
    before = registers.size();
    for (const Instruction& move : code) {
      if (move.is_move && registers.contains(move[1].slot)) registers.insert(move[0].slot);
    }
  }
}

}  // namespace

void MarkAsyncRegisters(std::vector<Instruction>& code, const std::vector<std::string>& opcodes) {
  Registers of_wgmma, of_any;
  for (const Instruction& instruction : code) {
    if (instruction.is_wgmma) AddAsync(instruction, kAsyncD | kAsyncA, of_wgmma);
    AddAsync(instruction, ~0, of_any);
  }
  AddDestinationsOfMoves(code, of_any);
  for (Instruction& instruction : code) {
    instruction.watches_registers = instruction.watches_registers && MeetsAny(instruction, of_any);
    if (instruction.is_wgmma || opcodes[instruction.opcode].starts_with("mov.")) continue;
    instruction.meets_wgmma = MeetsAny(instruction, of_wgmma);
  }
}

}  // namespace laneshift::emulator
