// Calls of device functions: what a call keeps until its return, and the handlers that the program builder places.
//
// A call gives each lane a frame in its local memory, copies the arguments there, and saves the registers of the callee
// if it is active already. Lanes that call different callees, or none, diverge and reconverge after the call.
// Thread-safety: as the warp.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "emulator/decode/decoded_kernel.h"
#include "emulator/machine/limits.h"

namespace laneshift::emulator {

// Shared by the paths into which the caller's path parts inside the callee; immutable once made.
struct CallFrame {
  const CallTarget* callee = nullptr;
  // Of the caller's path.
  uint32_t return_pc = 0, reconvergence = kNoTarget;
  int parent = -1;
  mutable std::shared_ptr<const CallFrame> caller;  // taken apart by the last owner
  uint32_t depth = 1;
  // Offsets in each lane's local memory: of the frame, and of the stack's top before the call.
  std::array<uint64_t, kLanes> base{}, top{};
  std::vector<std::array<uint64_t, kLanes>> results;  // where the caller wants them
  std::vector<std::byte> saved;                       // the callee's slots, if it was active; in the order of its list
  MemoryLedger* ledger = nullptr;
  uint64_t counted_bytes = 0;

  CallFrame() = default;
  CallFrame(const CallFrame&) = delete;
  CallFrame& operator=(const CallFrame&) = delete;
  ~CallFrame();
  // Its host memory, once it is complete.
  void Count(MemoryLedger& with);
};

// operands: target (absent: `modifiers` is the callee), results, arguments; `target` counts the results.
Outcome ExecuteCall(Warp& warp, const Instruction& instruction, uint32_t mask);
Outcome ExecuteReturn(Warp& warp, const Instruction& instruction, uint32_t mask);
// vprintf: operands result, format, arguments.
Outcome ExecutePrint(Warp& warp, const Instruction& instruction, uint32_t mask);
// __assertfail: operands message, file, line, function, size of a character.
Outcome ExecuteAssertFail(Warp& warp, const Instruction& instruction, uint32_t mask);

}  // namespace laneshift::emulator
