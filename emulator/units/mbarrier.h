// The mbarrier object: phase, pending and expected arrivals, outstanding transaction bytes.
//
// The state machine of PTX's mbarrier chapter with the limits that an H200 showed: the completion test runs after every
// operation, transaction counts may be negative for a while, and what traps on hardware is an Error naming the misuse.
// Memory addresses, waiting threads and proxies are the caller's business.
//
// Thread-safety: none; a barrier belongs to its CTA's host thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "laneshift/result.h"

namespace laneshift::emulator {

enum class MbarrierMisuse : uint8_t {
  kNotInitialised,      // any operation but init on raw or invalidated memory
  kAlreadyInitialised,  // init without inval in between
  kCountOutOfRange,     // init with 0 or more than 2^20-1 arrivals
  kNoArrivals,          // an arrival of count 0
  kTooManyArrivals,     // more arrivals than are pending
  kBytesOutOfRange,     // one operand of 2^20 or more, or a running total outside +-(2^20-1)
  kCompletesPhase,      // a .noComplete arrival that would complete the phase
  kStaleToken,          // a token neither of this phase nor of the one before
};
std::string_view NameOf(MbarrierMisuse misuse);

class Mbarrier {
 public:
  static constexpr int32_t kMaxCount = (1 << 20) - 1;

  // What an arrival returns: the phase before it, and for .noComplete the pending count before it.
  struct PtxToken {
    uint32_t phase = 0;
    int32_t pending = 0;
    // As the 64-bit register that PTX sees; opaque to programs.
    uint64_t Pack() const { return static_cast<uint64_t>(phase) << 32 | static_cast<uint32_t>(pending); }
    static PtxToken Unpack(uint64_t bits) { return {static_cast<uint32_t>(bits >> 32), static_cast<int32_t>(bits)}; }
  };
  enum class Completion : uint8_t { kMayComplete, kNoComplete };

  Status Init(int64_t count);
  Status Invalidate();
  Status ExpectBytes(int64_t bytes);
  Status CompleteBytes(int64_t bytes);
  Result<PtxToken> Arrive(int64_t count = 1, Completion completion = Completion::kMayComplete);
  Result<PtxToken> ArriveExpectBytes(int64_t bytes);
  Result<PtxToken> ArriveAndDrop(int64_t count = 1, Completion completion = Completion::kMayComplete);
  Result<PtxToken> ArriveAndDropExpectBytes(int64_t bytes);
  // cp.async.mbarrier.arrive without .noinc: one more arrival is pending in this phase.
  Status AddPending();

  // True when the phase of parity `parity` (0 or 1) has completed.
  Result<bool> TestParity(uint32_t parity) const;
  Result<bool> TestToken(PtxToken token) const;

  bool valid() const { return valid_; }
  // As Init has left it.
  bool unused() const { return valid_ && phase_ == 0 && pending_ == expected_ && bytes_ == 0; }
  uint32_t phase() const { return phase_; }
  int32_t pending() const { return pending_; }
  int32_t expected() const { return expected_; }
  int64_t bytes() const { return bytes_; }
  // Every participant has dropped out. Hardware goes on; a checker reports any further use.
  bool dropped_to_zero() const { return valid_ && expected_ == 0; }

 private:
  Status NeedValid() const;
  Status AddBytes(int64_t operand, int64_t change, std::string_view operation);
  Status CheckArrival(int64_t count, Completion completion) const;
  Error Misuse(MbarrierMisuse misuse, std::string_view detail) const;
  void CompletePhaseIfDone();

  bool valid_ = false;
  uint32_t phase_ = 0;
  int32_t pending_ = 0, expected_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace laneshift::emulator
