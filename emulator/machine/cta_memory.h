// The memories of one CTA with their shadows, as a unit that the next CTA of the launch can reuse: mapping fresh pages
// for each CTA costs more than running a small one.
//
// Thread-safety: none; it belongs to its cluster's host thread. Invariant: a new one and one after Reset are the same.
#pragma once

#include <cstdint>
#include <memory>

#include "emulator/hazards/access_shadow.h"
#include "emulator/machine/memory.h"
#include "emulator/units/tensor_memory.h"

namespace laneshift::emulator {

struct CtaMemory {
  CtaMemory(uint32_t shared_bytes, bool checks, LimitMeter& meter)
      : shared(shared_bytes), charge(meter, uint64_t{shared_bytes} * (checks ? kCheckedBytes : 2)) {
    if (checks) shadow = std::make_unique<SharedShadow>(kSharedBase, shared_bytes);
  }
  void Reset() {
    shared.Reset();
    if (shadow != nullptr) shadow->Reset();
    if (tensor != nullptr) tensor->Reset();
  }

  // Host bytes per byte of shared memory with a shadow.
  static constexpr uint64_t kCheckedBytes = 13;

  SharedMemory shared;
  std::unique_ptr<SharedShadow> shadow;  // null without hazard checks
  std::unique_ptr<TensorMemory> tensor;  // null until it is used
  MemoryCharge charge;                   // of the first two
  MemoryCharge tensor_charge;
};

}  // namespace laneshift::emulator
