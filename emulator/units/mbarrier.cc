#include "emulator/units/mbarrier.h"

#include <string>

#include "base/text.h"

namespace laneshift::emulator {

std::string_view NameOf(MbarrierMisuse misuse) {
  switch (misuse) {
    case MbarrierMisuse::kNotInitialised:
      return "not initialised";
    case MbarrierMisuse::kAlreadyInitialised:
      return "already initialised";
    case MbarrierMisuse::kCountOutOfRange:
      return "count out of range";
    case MbarrierMisuse::kNoArrivals:
      return "no arrivals";
    case MbarrierMisuse::kTooManyArrivals:
      return "too many arrivals";
    case MbarrierMisuse::kBytesOutOfRange:
      return "bytes out of range";
    case MbarrierMisuse::kCompletesPhase:
      return "noComplete completes the phase";
    case MbarrierMisuse::kStaleToken:
      return "stale token";
  }
  return "";
}

Error Mbarrier::Misuse(MbarrierMisuse misuse, std::string_view detail) const {
  std::string state;
  if (valid_) {
    state = base::Cat(" (phase ", phase_, ", pending ", pending_, ", expected ", expected_, ", bytes ", bytes_, ")");
  }
  return MakeError(ErrorCode::kInvalidArgument, base::Cat("mbarrier ", NameOf(misuse), ": ", detail, state));
}

Status Mbarrier::NeedValid() const {
  if (valid_) return Ok();
  return Misuse(MbarrierMisuse::kNotInitialised, "the operation needs mbarrier.init first");
}

void Mbarrier::CompletePhaseIfDone() {
  if (pending_ != 0 || bytes_ != 0) return;
  ++phase_;
  pending_ = expected_;
}

Status Mbarrier::Init(int64_t count) {
  if (valid_) return Misuse(MbarrierMisuse::kAlreadyInitialised, "mbarrier.inval must come before another init");
  if (count < 1 || count > kMaxCount) {
    return Misuse(MbarrierMisuse::kCountOutOfRange, base::Cat("init with ", count, ", must be 1 to ", kMaxCount));
  }
  valid_ = true;
  phase_ = 0;
  pending_ = expected_ = static_cast<int32_t>(count);
  bytes_ = 0;
  return Ok();
}

Status Mbarrier::Invalidate() {
  LS_TRY(NeedValid());
  valid_ = false;
  return Ok();
}

Status Mbarrier::AddBytes(int64_t operand, int64_t change, std::string_view operation) {
  LS_TRY(NeedValid());
  if (operand < 0 || operand > kMaxCount) {
    return Misuse(MbarrierMisuse::kBytesOutOfRange,
                  base::Cat(operation, " of ", operand, " bytes, must be 0 to ", kMaxCount));
  }
  if (bytes_ + change > kMaxCount || bytes_ + change < -kMaxCount) {
    return Misuse(MbarrierMisuse::kBytesOutOfRange,
                  base::Cat(operation, " of ", operand, " bytes makes the outstanding bytes ", bytes_ + change));
  }
  bytes_ += change;
  return Ok();
}

Status Mbarrier::ExpectBytes(int64_t bytes) {
  LS_TRY(AddBytes(bytes, bytes, "expect_tx"));
  CompletePhaseIfDone();
  return Ok();
}

Status Mbarrier::CompleteBytes(int64_t bytes) {
  LS_TRY(AddBytes(bytes, -bytes, "complete_tx"));
  CompletePhaseIfDone();
  return Ok();
}

Status Mbarrier::CheckArrival(int64_t count, Completion completion) const {
  LS_TRY(NeedValid());
  if (count < 1) return Misuse(MbarrierMisuse::kNoArrivals, base::Cat("arrive with count ", count));
  if (count > pending_) {
    return Misuse(MbarrierMisuse::kTooManyArrivals, base::Cat(count, " arrivals with ", pending_, " pending"));
  }
  if (completion == Completion::kNoComplete && count == pending_ && bytes_ == 0) {
    return Misuse(MbarrierMisuse::kCompletesPhase, base::Cat("arrive.noComplete with count ", count));
  }
  return Ok();
}

Result<Mbarrier::PtxToken> Mbarrier::Arrive(int64_t count, Completion completion) {
  LS_TRY(CheckArrival(count, completion));
  const PtxToken token{phase_, pending_};
  pending_ -= static_cast<int32_t>(count);
  CompletePhaseIfDone();
  return token;
}

Result<Mbarrier::PtxToken> Mbarrier::ArriveExpectBytes(int64_t bytes) {
  LS_TRY(NeedValid());
  // The bytes come first, without a separate completion test: the arrival that follows has one.
  LS_TRY(AddBytes(bytes, bytes, "expect_tx"));
  return Arrive(1);
}

Result<Mbarrier::PtxToken> Mbarrier::ArriveAndDrop(int64_t count, Completion completion) {
  LS_TRY(CheckArrival(count, completion));
  if (count > expected_) {
    return Misuse(MbarrierMisuse::kTooManyArrivals,
                  base::Cat("arrive_drop of ", count, " with ", expected_, " expected"));
  }
  expected_ -= static_cast<int32_t>(count);
  return Arrive(count, completion);
}

Result<Mbarrier::PtxToken> Mbarrier::ArriveAndDropExpectBytes(int64_t bytes) {
  LS_TRY(AddBytes(bytes, bytes, "expect_tx"));
  return ArriveAndDrop(1);
}

Status Mbarrier::AddPending() {
  LS_TRY(NeedValid());
  if (pending_ == kMaxCount) return Misuse(MbarrierMisuse::kCountOutOfRange, "one more pending arrival");
  ++pending_;
  return Ok();
}

Result<bool> Mbarrier::TestParity(uint32_t parity) const {
  LS_TRY(NeedValid());
  return (phase_ & 1) != (parity & 1);
}

Result<bool> Mbarrier::TestToken(PtxToken token) const {
  LS_TRY(NeedValid());
  if (token.phase != phase_ && token.phase + 1 != phase_) {
    return Misuse(MbarrierMisuse::kStaleToken, base::Cat("a token of phase ", token.phase));
  }
  return token.phase != phase_;
}

}  // namespace laneshift::emulator
