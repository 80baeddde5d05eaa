#include "compiler/plan/plan_workspace.h"

#include <algorithm>

#include "base/check.h"
#include "base/integer_math.h"
#include "ir/layout.h"

namespace laneshift::compiler {
namespace {

constexpr size_t kRegionAlignment = 128;  // a line of memory

size_t Aligned(size_t bytes) { return base::RoundUp(bytes, kRegionAlignment); }

}  // namespace

size_t PlanWorkspace::Add(WorkspaceUse use, size_t bytes) {
  size_t begin = 0;
  if (use == WorkspaceUse::kSplitK) {
    LS_CHECK(regions_.empty(), "split-K's region is not the first of the workspace");
  } else {
    begin = Aligned(std::max(Bytes(), static_cast<size_t>(ir::WorkspaceLayout::kCounterBytes)));
  }
  regions_.push_back({use, begin, bytes});
  return begin;
}

size_t PlanWorkspace::BytesFor(WorkspaceUse use) const {
  const auto of_use = [&](const Region& region) { return region.use == use; };
  const auto first = std::find_if(regions_.begin(), regions_.end(), of_use);
  if (first == regions_.end()) return 0;
  const auto last = std::find_if(regions_.rbegin(), regions_.rend(), of_use);
  return last->begin + last->bytes - first->begin;
}

}  // namespace laneshift::compiler
