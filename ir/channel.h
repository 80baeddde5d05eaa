// The rings through which the roles of a tile program exchange tiles, and the staging buffers of single roles.
//
// Thread-safety: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/layout.h"

namespace laneshift::ir {

constexpr int kBarrierBytes = 8;       // of one mbarrier
constexpr int kClcResponseBytes = 16;  // of a response of cluster launch control

// An entry of a channel: a tile in shared memory, or an accumulator in Tensor Memory. A slot of a channel of CLC
// responses holds one response; a slot of an order channel is empty, and one of a channel of partial sums has those of
// a tile in f32, in the order of WorkspaceLayout.
struct TileSlot {
  std::string name{};
  SharedLayout layout{};  // of a shared channel
  int offset = -1;        // assigned: byte offset of stage 0 in shared memory
  bool operator==(const TileSlot&) const = default;
};

inline constexpr size_t kMostTilesOfSlot = 16;  // of a shared channel

enum class Space : uint8_t { kShared, kTensor, kClcResponses, kOrder, kSums };

struct Channel {
  std::string name{};
  Space space = Space::kShared;
  int stages = 1;
  std::vector<TileSlot> tiles{};  // of a shared channel
  int rows = 0, columns = 0;      // 32-bit cells of partial sums, or in Tensor Memory
  int overlap = 0;                // of two accumulators: columns that both have, in their middle
  bool is_overlap = false;        // those columns of the channel before it, which has them twice
  bool is_private = false;        // a ring that only one role uses, by reserve and retire
  bool resident = false;          // resident: each slot is filled once and remains full
  bool own = false;               // of a shared channel: threads take its slots, in a pair each CTA its own
  bool stored = false;            // in Tensor Memory: threads fill its slots for MMAs, in a pair those of both CTAs
  int tmem_column = -1;           // assigned: first column of stage 0
  int slots_offset = -1;  // assigned, of CLC responses and of partial sums: byte offset of stage 0 in shared memory
  int full_arrivals = 0, empty_arrivals = 0;  // set by LowerChannels
  int barrier_offset = -1;  // assigned: `stages` full barriers, then `stages` empty ones unless resident, 8 bytes each

  int StageBytes() const;                                 // distance of two stages in shared memory
  int StageColumns() const { return columns - overlap; }  // and in Tensor Memory
  // Whether MMAs read what the CTAs of a pair put into their slots: the full barriers are then those of the leader.
  bool FeedsMmas() const { return space == Space::kShared ? !own : stored; }
  int Barriers() const { return resident ? stages : 2 * stages; }
  bool operator==(const Channel&) const = default;
};

// Shared memory in which the warps of a role turn fragments into rows for the TMA: each warp by itself, or groups of
// `sharers` adjacent warps, whose fragments are adjacent along the rows of one copy, in the order of the warps.
struct Buffer {
  std::string name{};
  SharedLayout layout{};  // of one copy
  int copies = 1, warps = 0, sharers = 1;
  int offset = -1;  // assigned; copy c of group g of warps lies at offset + (g * copies + c) * layout.Bytes()

  int Groups() const { return warps / sharers; }
  int Bytes() const { return Groups() * copies * layout.Bytes(); }
  bool operator==(const Buffer&) const = default;
};

}  // namespace laneshift::ir
