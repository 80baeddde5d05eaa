// The large parts of a warp, as a unit that a later warp of any kernel can reuse: mapping fresh pages for each warp
// costs as much as running a small kernel.
//
// Thread-safety: none; they belong to their cluster's host thread. Invariant: Prepare drops all that an earlier use has
// left, except for registers that the kernel writes first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "emulator/decode/decoded_kernel.h"

namespace laneshift::emulator {

struct WarpMemory {
  struct AlignedDelete {
    void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t(64)); }
  };

  // Of what `cleared` leaves out the warp reads nothing that it has not written.
  void Prepare(size_t bytes, std::span<const DecodedKernel::Cleared> cleared, size_t opcodes) {
    if (capacity < bytes) {
      registers.reset();
      registers.reset(static_cast<std::byte*>(::operator new[](bytes, std::align_val_t(64))));
      capacity = bytes;
    }
    for (const auto& [begin, end] : cleared) std::memset(registers.get() + begin, 0, end - begin);
    owned.assign(bytes / 128 + 8, 0);
    unfenced.assign(bytes / 128 + 8, false);
    opcode_counts.assign(opcodes, 0);
  }

  std::unique_ptr<std::byte[], AlignedDelete> registers;
  size_t capacity = 0;
  std::vector<uint16_t> owned;
  std::vector<bool> unfenced;
  std::vector<uint32_t> opcode_counts;
};

// Those of warps that have ended.
class KeptWarps {
 public:
  WarpMemory Take() {
    if (kept_.empty()) return {};
    WarpMemory memory = std::move(kept_.back());
    kept_.pop_back();
    bytes_ -= memory.capacity;
    return memory;
  }
  void Keep(WarpMemory memory) {
    constexpr size_t kMostBytes = size_t{16} << 20;
    if (memory.capacity > kMostBytes - bytes_) return;
    bytes_ += memory.capacity;
    kept_.push_back(std::move(memory));
  }

 private:
  std::vector<WarpMemory> kept_;
  size_t bytes_ = 0;
};

}  // namespace laneshift::emulator
