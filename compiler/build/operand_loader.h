// OperandLoader: how the tiles of one operand come to the slots of a channel. A role that loads joins the loaders of
// its path: for each block of K it fills the slots of one channel after the other, each with the tiles of its loaders.
//
// Thread-safety: values; all functions are pure but for the ops that they append.
#pragma once

#include <functional>
#include <vector>

#include "compiler/build/k_loop.h"
#include "laneshift/schedule.h"

namespace laneshift::compiler {

// Where the tiles of an operand go.
struct LoadTarget {
  LoadPath path{};  // by which they come
  int channel = -1;
  int tile = 0;            // of the slot
  int slots_of_block = 1;  // slots that a block of K takes
  bool early = false;      // no kernel that may still run writes the operand
  int gather_warps = 0;    // of a separate role whose threads issue bulk copies of rows that an index vector names
};

// An operand whose tiles come anew with each output tile.
class OperandLoader {
 public:
  // Loads the operand's tile of slot `i` of those that the block takes.
  using LoadBlock = std::function<void(ir::Builder& b, ir::ValueId slot, const KBlock& block, int i)>;

  explicit OperandLoader(const LoadTarget& target) : target_(target) {}
  OperandLoader(const OperandLoader&) = delete;
  OperandLoader& operator=(const OperandLoader&) = delete;
  virtual ~OperandLoader() = default;

  const LoadTarget& target() const { return target_; }
  // Whether threads that load it keep more addresses than most, as code that is unrolled over a filter does.
  virtual bool KeepsManyAddresses() const { return false; }
  // Registers in which the thread that issues bulk copies keeps where each of them begins, for a tile.
  virtual int StartRegisters() const { return 0; }
  // The kernel's parameters for the operand.
  virtual void AddParams(std::vector<ir::Param>& params) const = 0;
  // Finds where an output tile begins in the operand; the function returned loads one block of K.
  virtual LoadBlock StartTile(ir::Builder& b, const Corner& corner) const = 0;

 private:
  const LoadTarget target_;
};

// An operand that a CTA loads once, before its first tile, into slots that stay full.
class ResidentLoader {
 public:
  explicit ResidentLoader(const LoadTarget& target) : target_(target) {}
  ResidentLoader(const ResidentLoader&) = delete;
  ResidentLoader& operator=(const ResidentLoader&) = delete;
  virtual ~ResidentLoader() = default;

  const LoadTarget& target() const { return target_; }
  // The kernel's parameters for the operand.
  virtual void AddParams(std::vector<ir::Param>& params) const = 0;
  // Loads all of it; fills so many slots.
  virtual void Load(ir::Builder& b) const = 0;
  virtual ir::ValueId Slots(ir::Builder& b) const = 0;

 private:
  const LoadTarget target_;
};

// One loop over K of a role that fills, for the tile at `corner`, what the loaders load. In a slot A's tile comes
// first. REQUIRES: loaders of one channel are neighbours.
void LoadTile(ir::Builder& b, const KLoop& k, const Corner& corner, const std::vector<const OperandLoader*>& loaders);
// The same of the first block of the tile only.
void LoadFirstBlock(ir::Builder& b, const Corner& corner, const std::vector<const OperandLoader*>& loaders);
// What has not been sent of the channels that the role sends late: after the last tile, or where the next one is not
// known before this one is multiplied, after each.
void SendRest(ir::Builder& b, const std::vector<const OperandLoader*>& loaders);

}  // namespace laneshift::compiler
