// The memories of the emulated device: global memory with guard zones, and a CTA's shared memory with its shadow.
//
// Thread-safety: GlobalMemory is changed by the driver's thread only, never during a launch; its bytes may be accessed
// by all host threads of a launch. SharedMemory belongs to its CTA's host thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "emulator/decode/decoded_kernel.h"
#include "emulator/machine/limits.h"
#include "emulator/units/cta_state.h"

namespace laneshift::emulator {

enum class MemoryKind : uint8_t {
  kDevice,
  kHost,        // page-locked memory of ours that kernels reach under the host's address
  kManaged,     // the same, under the rules for managed memory
  kRegistered,  // the caller's own memory, which outlives its entry here
};

// One cuMemAlloc, or one variable of a module. Host pages are mapped on first touch.
class Allocation {
 public:
  // `meter` counts the host memory that it takes; null: not counted.
  Allocation(uint64_t address, uint64_t bytes, LimitMeter* meter = nullptr);
  // Memory that the host accesses too, under the same address. The host's writes are not tracked, so all of it
  // counts as written.
  Allocation(uint8_t* host, uint64_t bytes, MemoryKind kind, LimitMeter* meter = nullptr);
  ~Allocation();
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  MemoryKind kind() const { return kind_; }
  uint64_t address() const { return address_; }
  uint64_t bytes() const { return bytes_; }
  bool Contains(uint64_t address, uint64_t count) const {
    return address - address_ < bytes_ && count <= bytes_ - (address - address_);
  }
  // REQUIRES: Contains(address, 1).
  uint8_t* At(uint64_t address) const { return host_ + (address - address_); }
  // By a kernel: trips the meter if that exceeds the host memory limit.
  void MarkWritten(uint64_t address, uint64_t count);
  // The same for a writer that can be refused: false, and nothing is marked.
  bool TryWrite(uint64_t address, uint64_t count);
  // It holds zeros, which take no memory.
  void MarkZero() { all_written_ = true; }
  // Whether every byte of the range has been written.
  bool Written(uint64_t address, uint64_t count) const {
    if (all_written_) return true;
    bool all = true;
    ForEachCell(address, count, [&](std::atomic<uint64_t>& cell, uint64_t bits) {
      all = all && (cell.load(std::memory_order_relaxed) & bits) == bits;
    });
    return all;
  }
  // Whether any byte has been written, as far as it is counted: no meter, and all of it counts as written.
  bool Touched() const { return all_written_ || taken_ == nullptr || taken_bytes_ != 0; }
  bool mapped() const { return host_ != nullptr; }

 private:
  uint64_t address_, bytes_;
  MemoryKind kind_ = MemoryKind::kDevice;
  uint8_t* host_ = nullptr;
  std::atomic<uint64_t>* written_ = nullptr;  // one bit per byte
  bool all_written_ = false;
  uint64_t WrittenBytes() const { return (bytes_ / 64 + 1) * sizeof *written_; }
  // Calls visit(cell, bits) for the cells of written_ that a range covers, and its bits there.
  template <typename Visit>
  void ForEachCell(uint64_t address, uint64_t count, Visit visit) const {
    uint64_t at = address - address_;
    for (const uint64_t end = at + count; at < end;) {
      const uint64_t low = at % 64, bits = std::min(end - at, 64 - low);
      visit(written_[at / 64], ~uint64_t{0} >> (64 - bits) << low);
      at += bits;
    }
  }
  // Host memory is counted on first write, by kChunk: the host may back it by huge pages.
  static constexpr int kChunkShift = 21;
  static constexpr uint64_t kChunk = uint64_t{1} << kChunkShift;
  bool TakeChunks(uint64_t address, uint64_t count, bool force);
  LimitMeter* meter_ = nullptr;
  std::unique_ptr<std::atomic<uint8_t>[]> taken_;  // by chunk
  std::atomic<uint64_t> taken_bytes_{0};
};

class GlobalMemory {
 public:
  explicit GlobalMemory(uint64_t capacity, LimitMeter* meter = nullptr) : capacity_(capacity), meter_(meter) {}
  // The new allocation, or nullptr when the capacity or the host's memory is exhausted.
  Allocation* Allocate(uint64_t bytes, uint64_t align = 512);
  // The same at an address that is said; nullptr too if a part of it is not free, or no place for memory.
  Allocation* AllocateAt(uint64_t address, uint64_t bytes);
  // Memory under one address for host and kernels; nullptr when the host's memory, or the limit on it, is exhausted.
  Allocation* AllocateShared(uint64_t bytes, MemoryKind kind);
  // The caller's memory as kRegistered; nullptr if a part of it is already registered here.
  Allocation* Register(void* host, uint64_t bytes);
  // False if `address` is not the start of a live allocation.
  bool Free(uint64_t address);
  // The allocation that holds the whole range, or nullptr.
  Allocation* Find(uint64_t address, uint64_t count) const;
  // Every live one, in the order of addresses.
  std::vector<const Allocation*> All() const;
  // Whether the address is of the range reserved for the device's own allocations.
  bool IsDeviceAddress(uint64_t address) const { return address >= kFirst && address < next_; }
  // "16 bytes past the end of the allocation of 4096 bytes at 0x…", for messages about a bad address.
  std::string Describe(uint64_t address) const;
  uint64_t used() const { return used_; }
  uint64_t capacity() const { return capacity_; }

 private:
  // Addresses are never reused, so that a stale pointer faults.
  static constexpr uint64_t kFirst = uint64_t{0x7000} << 32;
  static constexpr uint64_t kGuard = 1 << 16;
  // Allocations are nowhere else: below are the windows of generic addresses, above no host has memory of programs.
  static constexpr uint64_t kLeast = uint64_t{0x1000} << 32, kMost = uint64_t{0x8000} << 32;
  static constexpr uint64_t kOwnEnd = uint64_t{0x7800} << 32;  // of the device's own; hosts map memory above
  uint64_t capacity_, used_ = 0, next_ = kFirst;
  LimitMeter* meter_;
  std::map<uint64_t, std::unique_ptr<Allocation>> live_;
  std::map<uint64_t, uint64_t> freed_;
};

// A CTA's shared window [kSharedBase, kSharedBase + size): bytes, which of them were written, and how many asynchronous
// operations are pending in each KiB.
class SharedMemory {
 public:
  explicit SharedMemory(uint32_t bytes);
  // Back to the initial state.
  void Reset();
  uint32_t size() const { return size_; }
  bool Contains(uint64_t offset, uint64_t count) const {
    return offset >= kSharedBase && offset + count <= kSharedBase + uint64_t{size_};
  }
  uint8_t* At(uint32_t offset) { return &bytes_[offset - kSharedBase]; }
  SharedWindow Window() { return {std::span(bytes_.data(), size_), kSharedBase}; }

  // Every writer of its bytes calls this, for Reset too.
  void MarkWritten(uint32_t offset, uint32_t count);
  // Changed by writers that leave unwritten bytes unwritten.
  void MarkChanged(uint32_t offset, uint32_t count) {
    ForEachGranuleWord({offset, offset + count}, [&](GranuleWord word) { BlockOf(word).in_part |= word.mask; });
  }
  bool Written(uint32_t offset, uint32_t count) const;
  // Whether all bytes of the granules were written.
  bool Written(GranuleWord word);

  // A KiB of the window: a filter that lets most operations pass without a look at their granules.
  struct Block {
    uint32_t reads = 0, writes = 0;  // operations not yet waited for that touch it
    uint32_t pieces = 0;             // of these writes: copies of a single thread, which are counted by word, too
    uint64_t barriers = 0;           // granules that hold a live mbarrier object
    uint64_t written = 0;            // granules known to be written
    uint64_t in_part = 0;            // granules that were changed, and of which written_ knows the written bytes
    bool Quiet(uint64_t mask, bool write) const {
      return writes == 0 && (reads == 0 || !write) && (barriers & mask) == 0;
    }
  };
  Block& BlockAt(uint32_t offset) { return blocks_[offset / GranuleWord::kBlockBytes]; }
  Block& BlockOf(GranuleWord word) { return blocks_[word.block]; }
  bool HoldsBarrier(uint32_t offset) const {
    return blocks_[offset / GranuleWord::kBlockBytes].barriers >> (offset / GranuleWord::kGranuleBytes % 64) & 1;
  }
  void SetBarrier(uint32_t offset, bool live);
  // Copies of 4, 8 or 16 bytes that are pending are many, and of each word it is known how many write it.
  void CountPieces(uint32_t begin, uint32_t end, uint32_t delta);
  bool HasPieces(uint32_t begin, uint32_t end) const;

 private:
  // Bytes of one granule.
  void MarkPart(uint32_t begin, uint32_t end);

  uint32_t size_;
  std::vector<uint8_t> bytes_, written_;  // written_: by byte, of granules that were written in part
  std::vector<Block> blocks_;             // from offset 0
  static constexpr uint32_t kWordBytes = 4;
  std::vector<uint16_t> pieces_;  // by word, from offset 0; empty until there are some
};

}  // namespace laneshift::emulator
