// What the TMA can reach: the rules of tensor maps, as facts about a contraction's operands.
//
// Source: CUDA driver API, cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col; PTX ISA, im2col mode (offsets); stores
// clip a row only at the next multiple of 16 bytes (measured on an H200), so an output row must be whole 16-byte
// chunks. Thread-safety: pure functions.
#pragma once

#include "compiler/contraction/contraction.h"
#include "ir/program.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::compiler {

// Ok, or kUnsupported with the rule that the operand breaks under this schedule.
Status CheckTmaAddressable(const Contraction& contraction, const Schedule& schedule, ir::Operand operand);

// Whether the scale factors of scale=block come with the operands, in slots of a ring, and not by loads of the threads
// that apply them: the TMA can reach them and both operands, and a lane applies more than a few, or has taken the
// operands' slot anyway.
bool ScalesComeInSlots(const Contraction& contraction, const Schedule& schedule, const target::Target& target);

// Whether the target's tensor core reads the operand only along K, though it is stored along the other axis.
bool Transposes(const OperandSource& source, const target::Target& target);

}  // namespace laneshift::compiler
