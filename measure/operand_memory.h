// Whether this host has the memory for a problem's operands.
#pragma once

#include "laneshift/problem.h"
#include "laneshift/result.h"

namespace laneshift::measure {

// The parts of a problem that occupy this host's memory.
enum class HostCopies : uint8_t {
  kOnce,   // the operands; the device has its own memory
  kTwice,  // and those of the device too, which is emulated
};

// kResourceExhausted names the largest operand with its bytes, the sum of all, and what the host has (of memory, or of
// address space where that is limited). REQUIRES: the problem is complete.
Status CheckHostMemory(const Problem& problem, HostCopies copies);

}  // namespace laneshift::measure
