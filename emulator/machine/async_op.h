// An asynchronous operation.
//
// Thread-safety: none; they belong to their cluster, or to the host thread that keeps them for the next one.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/decode/decoded_kernel.h"
#include "emulator/hazards/access_shadow.h"
#include "emulator/hazards/global_order.h"
#include "emulator/machine/limits.h"
#include "emulator/machine/warp.h"
#include "emulator/units/cta_state.h"
#include "emulator/units/tensor_copy.h"

namespace laneshift::emulator {

class Cta;

enum class AsyncKind : uint8_t {
  kBulkLoad,
  kBulkStore,
  kCopy,
  kMma,
  kTensorCopy,
  kTensorShift,
  kCommit,
  kTensorLoad,
  kTensorStore,
  kWgmma,
  kRemoteStore,
  kCancel
};
std::string_view NameOf(AsyncKind kind);
// mma, cp, shift, commit: what a thread issues to its tcgen05 queue.
bool IsTensorQueue(AsyncKind kind);

// What an operation is besides lists and pointers that it owns.
struct OpState {
  enum class State : uint8_t { kPending, kDone, kReleased };

  AsyncKind kind = AsyncKind::kBulkLoad;
  State state = State::kPending;
  bool reads_released = false;
  // tcgen05 order: same issuer, cta_group and, for two mma, accumulator and shape.
  bool is_4x256b = false;
  bool shifts_a = false;
  // An mma of a chain: it follows all other operations on Tensor Memory that were under way when it was issued, which
  // are mma of its queue with its D and shape.
  bool in_chain = false;
  int lane = 0;
  int cta_group = 0;
  uint64_t order_key = 0;
  Warp* warp = nullptr;
  Position at;
  uint64_t serial = 0;
  uint64_t issued_at = 0;    // Cluster::Steps()
  uint64_t followed_by = 0;  // serial of the latest operation that was found to be ordered after this one
  // Host memory: of its effect beyond a few words, and, once it is issued, in total.
  uint64_t effect_bytes = 0, counted_bytes = 0;
  MemoryLedger* ledger = nullptr;
};

// An asynchronous operation from its issue until a completion mechanism of the ISA has shown its end.
class AsyncOp : public OpState, public base::Pooled<AsyncOp> {
 public:
  struct SharedUse {
    Cta* cta;
    SharedRange range;
    bool write;
    std::shared_ptr<const GranuleWords> granules = nullptr;  // of these only; otherwise of the whole range
    std::shared_ptr<const std::vector<PaddedGranules>> padded = nullptr;

    bool Overlaps(uint32_t begin, uint32_t end) const;
    // Calls visit(word) for each KiB that it touches.
    template <typename Visit>
    void ForEachWord(Visit visit) const {
      if (granules == nullptr) return ForEachGranuleWord(range, visit);
      for (const GranuleWord& word : *granules) visit(word);
    }
    // Calls visit(begin, end) for each run of bytes that it touches, ascending.
    template <typename Visit>
    void ForEachRun(Visit visit) const {
      if (granules == nullptr) return visit(range.begin, range.end);
      for (const GranuleWord& word : *granules) {
        for (uint64_t rest = word.mask; rest != 0;) {
          const int first = std::countr_zero(rest), length = std::countr_one(rest >> first);
          const uint32_t begin = word.block * GranuleWord::kBlockBytes + static_cast<uint32_t>(first) * 16;
          visit(std::max(begin, range.begin), std::min(begin + static_cast<uint32_t>(length) * 16, range.end));
          rest = first + length == 64 ? 0 : rest >> (first + length) << (first + length);
        }
      }
    }
  };
  struct TensorUse {
    Cta* cta;
    TensorRange range;
    bool write;
  };
  struct GlobalUse {
    uint64_t begin, end;
    bool write;
    bool in_part = false;  // only some of its bytes are written
  };
  std::vector<SharedUse> shared;
  std::vector<TensorUse> tensor;
  std::vector<GlobalUse> global;
  // What it loads from global memory, and what it adds to there: atomic reductions do not conflict with each other.
  std::vector<GlobalRange> loads, sums;
  CopyPlan copy;  // of a tensor copy, and the granules of shared memory that it touches
  std::vector<SharedRange> copied;
  std::vector<std::pair<Warp*, uint32_t>> registers;  // slots that it owns
  struct Matrices {
    Warp* warp;
    const Instruction* wgmma;  // whose D, and A in registers, it owns in that warp
  };
  std::vector<Matrices> matrices;
  std::vector<RegisterMove> moves;       // of those, to others that it owns too, in program order
  std::vector<OpHandle> after;           // operations that take effect before this one
  std::vector<OpHandle> covered;         // a commit: the operations that its arrival covers
  std::function<bool(AsyncOp&)> effect;  // false: the launch has a fault
  // With hazard checks: what accesses of its ranges will be compared with, and, of a commit, what its issuer
  // knew.
  RecordRef record;
  std::unique_ptr<VectorClock> issuer_knew;

  AsyncOp() = default;
  AsyncOp(const AsyncOp&) = delete;
  AsyncOp& operator=(const AsyncOp&) = delete;
  ~AsyncOp() { Reset(); }
  // As if it were new, except that its lists keep their memory.
  void Reset();
};

// Where it was issued.
SourcePlace PlaceOf(const AsyncOp& op);

}  // namespace laneshift::emulator
