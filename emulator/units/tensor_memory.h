// Tensor Memory: 128 lanes x 512 columns of 32 bits with a validity mark per cell, and the thread-visible accesses to
// it (tcgen05.ld, st, cp, shift).
//
// An access is first planned (shape and addresses checked, touched ranges known) and then executed, so that a scheduler
// may let time pass in between. Reads of cells that were never written are reported, not refused.
//
// Thread-safety: none; a CTA's Tensor Memory belongs to its host thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "emulator/units/cta_state.h"
#include "emulator/units/element.h"
#include "emulator/units/matrix_descriptor.h"
#include "emulator/units/policies.h"
#include "laneshift/result.h"

namespace laneshift::emulator {

// Bits 31:16 lane, bits 15:0 column.
struct TensorAddress {
  uint16_t lane = 0, column = 0;
  static TensorAddress Unpack(uint32_t bits) {
    return {static_cast<uint16_t>(bits >> 16), static_cast<uint16_t>(bits)};
  }
  uint32_t Pack() const { return static_cast<uint32_t>(lane) << 16 | column; }
  bool operator==(const TensorAddress&) const = default;
};

class TensorMemory {
 public:
  static constexpr int kLanes = 128, kColumns = 512;
  // What a never written cell reads as: a NaN in f32 and in both f16 halves.
  static constexpr uint32_t kPoison = 0x7fff7fff;
  static constexpr uint64_t kHostBytes = uint64_t{kLanes} * kColumns * 4 + uint64_t{kLanes} * kColumns / 8;

  TensorMemory();
  // As new.
  void Reset();

  uint32_t Read(int lane, int column) const { return cells_[Index(lane, column)]; }
  void Write(int lane, int column, uint32_t value) {
    cells_[Index(lane, column)] = value;
    Marks(lane, column / 64) |= uint64_t{1} << (column % 64);
  }
  bool Written(int lane, int column) const { return Marks(lane, column / 64) >> (column % 64) & 1; }
  // A lane's columns, contiguous. Whoever writes through Row calls MarkWritten.
  uint32_t* Row(int lane) { return &cells_[Index(lane, 0)]; }
  const uint32_t* Row(int lane) const { return &cells_[Index(lane, 0)]; }
  void MarkWritten(const TensorRange& range);
  // Forgets the range's contents (at allocation and release).
  void Poison(const TensorRange& range);
  // Moves columns of a lane, with their marks, to another lane.
  void Move(int lane, int to_lane, int column, int columns);
  // The first cell of the range that was never written.
  std::optional<TensorAddress> FirstUnwritten(const TensorRange& range) const;

 private:
  static size_t Index(int lane, int column) {
    return static_cast<size_t>(lane) * kColumns + static_cast<size_t>(column);
  }
  uint64_t& Marks(int lane, int word) { return written_[static_cast<size_t>(word)][static_cast<size_t>(lane)]; }
  const uint64_t& Marks(int lane, int word) const {
    return written_[static_cast<size_t>(word)][static_cast<size_t>(lane)];
  }

  std::vector<uint32_t> cells_;
  std::array<std::array<uint64_t, kLanes>, kColumns / 64> written_{};  // by 64 columns: ranges have many lanes
};

// An Error unless the range lies inside the 128 lanes and 512 columns.
Status CheckRange(const TensorRange& range, std::string_view what);

// ---- tcgen05.ld, tcgen05.st ----

enum class LaneShape : uint8_t { k32x32b, k16x64b, k16x128b, k16x256b, k16x32bx2 };
enum class HalfWords : uint8_t { kWhole, kPacked };  // .pack::16b / .unpack::16b

struct LaneAccess {
  LaneShape shape = LaneShape::k32x32b;
  int repeat = 1;  // .xN
  HalfWords half_words = HalfWords::kWhole;
  TensorAddress address;
  int half_split = 0;  // .16x32bx2: column offset of the second half
};
// b32 registers per thread.
int RegistersOf(LaneShape shape, int repeat);
// The cell (relative lane, relative column) of a thread's register, without packing.
TensorAddress CellOf(LaneShape shape, int thread, int reg, int half_split);

struct PlannedLaneAccess {
  LaneAccess access;
  int first_lane = 0;          // the lane that relative lane 0 is
  bool foreign_lanes = false;  // the address named another warp's lanes: policy foreign_lanes
  std::vector<TensorRange> ranges;
  Policies policies;
  PolicySet used;
};
// `warp` is the warp's rank in the CTA; only warp % 4 matters.
Result<PlannedLaneAccess> PlanLaneAccess(const LaneAccess& access, int warp, const Policies& policies = {});
// registers[r] points to the 32 lanes of register r. Returns the first cell read that was never written.
std::optional<TensorAddress> LoadLanes(const PlannedLaneAccess& plan, const TensorMemory& memory,
                                       std::span<uint32_t* const> registers);
void StoreLanes(const PlannedLaneAccess& plan, TensorMemory& memory, std::span<const uint32_t* const> registers);

// ---- tcgen05.cp, tcgen05.shift ----

enum class CopyShape : uint8_t {
  k128x256b,
  k4x256b,
  k128x128b,
  k64x128bWarpx2_02_13,
  k64x128bWarpx2_01_23,
  k32x128bWarpx4
};
enum class Decompress : uint8_t { kNone, kB4x16P64, kB6x16P32 };

struct PlannedCopy {
  CopyShape shape = CopyShape::k128x256b;
  Decompress decompress = Decompress::kNone;
  TensorAddress address;
  MatrixDescriptor source;
  Touched touched;  // per CTA; with cta_group::2 each CTA of the pair does the same in its own memories
  Policies policies;
  PolicySet used;
};
Result<PlannedCopy> PlanCopy(CopyShape shape, Decompress decompress, TensorAddress address, uint64_t descriptor,
                             const SharedWindow& window, const Policies& policies = {});
void ExecuteCopy(const PlannedCopy& plan, const CtaState& cta);

// Rows move one lane down (towards lower numbers) inside each 32-lane group, 8 columns; lanes 31, 63, 95, 127 stay.
// ShiftScope has the other readings: one group only, or all 128 lanes as one group.
struct PlannedShift {
  TensorAddress address;
  std::vector<TensorRange> groups;  // the lanes and columns that move among themselves; the last lane of each stays
  Touched touched;
  PolicySet used;
};
Result<PlannedShift> PlanShift(TensorAddress address, const Policies& policies = {});
void ExecuteShift(const PlannedShift& plan, TensorMemory& memory);

// ---- tcgen05.alloc, dealloc, relinquish_alloc_permit ----

// The columns of one SM as one CTA allocates them: first fit over 16 slots of 32 columns.
class TensorMemoryAllocator {
 public:
  struct Block {
    uint32_t column = 0, columns = 0;
    bool operator==(const Block&) const = default;
  };
  // The block, or nothing when the instruction has to wait for columns to become free. Misuse is an Error.
  Result<std::optional<Block>> Allocate(uint32_t columns);
  // cta_group::2: the same columns in both CTAs of the pair.
  static Result<std::optional<Block>> AllocatePair(TensorMemoryAllocator& even, TensorMemoryAllocator& odd,
                                                   uint32_t columns);
  // `address` as alloc returned it, with the same size.
  Status Release(TensorAddress address, uint32_t columns);
  // Whether such a block was released, and nothing has been allocated there since.
  bool WasReleased(TensorAddress address, uint32_t columns) const;
  Status RelinquishPermit();

  // Every column of [column, column+columns) belongs to a block.
  bool Covers(uint32_t column, uint32_t columns) const;
  // What was never released: leaks, when the CTA has exited.
  const std::vector<Block>& live() const { return live_; }

 private:
  Status CheckRequest(uint32_t columns) const;
  static std::optional<uint32_t> FirstFit(uint32_t occupied, uint32_t columns);
  static uint32_t SlotsOf(Block block);
  void Take(Block block);

  uint32_t occupied_ = 0;  // one bit per slot
  uint32_t last_size_ = 512;
  bool may_allocate_ = true;
  std::vector<Block> live_, released_;
};

}  // namespace laneshift::emulator
