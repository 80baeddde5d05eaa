// Translates a parsed entry into a Kernel: opcodes bound, registers and constants placed, the functions that it may
// call translated after it, reconvergence points computed.
//
// Thread-safety: pure functions.
#pragma once

#include <string_view>
#include <unordered_map>

#include "emulator/decode/decoded_kernel.h"
#include "emulator/ptx/ptx_instructions.h"
#include "laneshift/result.h"

namespace laneshift::emulator {

// Global addresses of the module's .global and .const variables, those inside functions included.
using VariableAddresses = std::unordered_map<const VariableSyntax*, uint64_t>;

Result<DecodedKernel> BuildKernel(const ModuleSyntax& module, const FunctionSyntax& entry,
                                  const VariableAddresses& addresses, Chip chip);

}  // namespace laneshift::emulator
