// Which instructions can meet registers that asynchronous operations (tcgen05.ld, wgmma) read or write.
//
// Most never do, so that the checks of a warp that has such operations under way are few.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "emulator/decode/decoded_kernel.h"

namespace laneshift::emulator {

// Calls visit(slot) for every register that an operand of the instruction names.
template <typename Visit>
void ForEachRegister(const Instruction& instruction, Visit visit) {
  for (uint32_t i = 0; i < instruction.operand_count; ++i) {
    const DecodedOperand& operand = instruction.operands[i];
    if (operand.count == 0 && operand.slot != kNoSlot && operand.bytes != 0) visit(operand.slot);
    for (uint32_t e = 0; e < operand.count; ++e) {
      if (operand.elements[e].slot != kNoSlot && operand.elements[e].bytes != 0) visit(operand.elements[e].slot);
    }
  }
}

// Of Instruction::async_operands of a wgmma: D and A. The third is the metadata.
enum : uint8_t { kAsyncD = 1, kAsyncA = 2 };

// Clears Instruction::watches_registers where no asynchronous operation can have any of the instruction's registers,
// and sets Instruction::meets_wgmma: a wgmma.fence is required between such an access and the wgmma. There, register
// moves do not count: compilers put them around inline assembly, and the assembler sees through them.
void MarkAsyncRegisters(std::vector<Instruction>& code, const std::vector<std::string>& opcodes);

}  // namespace laneshift::emulator
