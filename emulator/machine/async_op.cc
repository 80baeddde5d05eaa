#include "emulator/machine/async_op.h"

namespace laneshift::emulator {
namespace {

// Keeps the memory of an ordinary list.
template <typename T>
void Clear(std::vector<T>& list) {
  constexpr size_t kMostBytes = 16 << 10;
  if (list.capacity() * sizeof(T) > kMostBytes) {
    list = {};
  } else {
    list.clear();
  }
}

}  // namespace

bool IsTensorQueue(AsyncKind kind) {
  return kind == AsyncKind::kMma || kind == AsyncKind::kTensorCopy || kind == AsyncKind::kTensorShift ||
         kind == AsyncKind::kCommit;
}

std::string_view NameOf(AsyncKind kind) {
  switch (kind) {
    case AsyncKind::kBulkLoad:
      return "bulk load";
    case AsyncKind::kBulkStore:
      return "bulk store";
    case AsyncKind::kCopy:
      return "cp.async";
    case AsyncKind::kMma:
      return "tcgen05.mma";
    case AsyncKind::kTensorCopy:
      return "tcgen05.cp";
    case AsyncKind::kTensorShift:
      return "tcgen05.shift";
    case AsyncKind::kCommit:
      return "tcgen05.commit";
    case AsyncKind::kTensorLoad:
      return "tcgen05.ld";
    case AsyncKind::kTensorStore:
      return "tcgen05.st";
    case AsyncKind::kWgmma:
      return "wgmma";
    case AsyncKind::kRemoteStore:
      return "st.async or red.async";
    case AsyncKind::kCancel:
      return "clusterlaunchcontrol.try_cancel";
  }
  return "operation";
}

bool AsyncOp::SharedUse::Overlaps(uint32_t begin, uint32_t end) const {
  if (begin >= range.end || range.begin >= end) return false;
  if (granules == nullptr) return true;
  bool any = false;
  ForEachGranuleWord({begin, end}, [&](GranuleWord word) {
    const auto mine = std::lower_bound(granules->begin(), granules->end(), word.block,
                                       [](const GranuleWord& w, uint32_t block) { return w.block < block; });
    any |= mine != granules->end() && mine->block == word.block && (mine->mask & word.mask) != 0;
  });
  return any;
}

void AsyncOp::Reset() {
  if (ledger != nullptr) ledger->Give(counted_bytes);
  static_cast<OpState&>(*this) = {};
  effect = nullptr;
  record = {};
  issuer_knew.reset();
  copy.transaction_bytes = copy.shared_bytes = 0;
  copy.used = {};
  Clear(copy.runs);
  Clear(copied);
  Clear(shared);
  Clear(tensor);
  Clear(global);
  Clear(loads);
  Clear(sums);
  Clear(registers);
  Clear(matrices);
  Clear(moves);
  Clear(after);
  Clear(covered);
}

}  // namespace laneshift::emulator
