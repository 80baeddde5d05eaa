// PlanWorkspace: the layout of the device memory that the launches of a plan share.
//
// Thread-safety: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace laneshift::compiler {

enum class WorkspaceUse : uint8_t {
  kSplitK,       // counters and partial accumulators of tiles that are cut along K
  kPackedCopy,   // of an operand
  kPartialRows,  // of reductions in a fixed order
  kStamps,       // records of kernels that are timed
};

// In this order. Split-K comes first and its counters are always in the first bytes (ir::WorkspaceLayout), which no
// other use touches: plans of any kind may share a workspace one after another.
class PlanWorkspace {
 public:
  struct Region {
    WorkspaceUse use{};
    size_t begin = 0, bytes = 0;
    bool operator==(const Region&) const = default;
  };

  // The first byte of a new region of this size, rounded up to 128 bytes. Split-K is added first, if at all.
  size_t Add(WorkspaceUse use, size_t bytes);
  const std::vector<Region>& regions() const { return regions_; }
  // Of all regions, and of all of one use; with the gaps between them.
  size_t Bytes() const { return regions_.empty() ? 0 : regions_.back().begin + regions_.back().bytes; }
  size_t BytesFor(WorkspaceUse use) const;

 private:
  std::vector<Region> regions_;
};

}  // namespace laneshift::compiler
