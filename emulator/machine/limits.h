// Limits: the host resources that emulated programs may use, and the meter that counts them.
//
// Foreign PTX may recurse, loop or allocate without end. Whatever grows with a kernel's execution is counted by a
// LimitMeter; when a limit is exceeded the meter trips, and the next instruction that any warp executes ends the launch
// with a fault of the limit's name. Thread-safety: Limits is a plain value; a meter's functions may be called from all
// host threads of a launch, BeginLaunch and EndLaunch from the driver's only.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/hazards/report.h"
#include "laneshift/result.h"

namespace laneshift::emulator {

struct Limits {
#define LIMIT(field, fault, standard, counts) uint64_t field = standard;
#include "emulator/machine/limits.def"
  bool operator==(const Limits&) const = default;
};

struct LimitRow {
  std::string_view name, counts;
  uint64_t standard;
};
const std::vector<LimitRow>& LimitTable();
// "host_memory=8G": a whole number, with K, M, G or T for powers of 1024. The Error lists what would be right.
Status SetLimit(Limits& limits, std::string_view assignment);
// Three quarters of the memory that this process may use on the host: the machine's, or its control group's if that is
// less.
uint64_t StandardHostMemory();

class LimitMeter {
 public:
  explicit LimitMeter(const Limits& limits);
  const Limits& limits() const { return limits_; }

  // Clears what tripped, and counts instructions from 0. `news`: the time after which Count asks for news of the
  // launch, and then again whenever it has doubled; zero: never.
  void BeginLaunch(std::chrono::milliseconds news = {});
  void EndLaunch();

  // Host memory. TryTake takes nothing if that would exceed the limit; Take takes it anyway, and trips.
  bool TryTake(uint64_t bytes);
  void Take(uint64_t bytes);
  void Give(uint64_t bytes) { host_bytes_.fetch_sub(bytes, std::memory_order_relaxed); }
  uint64_t host_bytes() const { return host_bytes_.load(std::memory_order_relaxed); }

  // Counts instructions and checks the clock. True: the caller is to tell the user how far it is, and then call Told.
  bool Count(uint64_t instructions);
  void Told() { telling_.store(false, std::memory_order_release); }
  uint64_t instructions() const { return instructions_.load(std::memory_order_relaxed); }
  // Since the launch began.
  double Seconds() const { return std::chrono::duration<double>(Clock::now() - begun_).count(); }
  // The first limit that trips is the launch's.
  void Trip(FaultKind which);
  const std::atomic<bool>& tripped() const { return tripped_; }
  // REQUIRES: tripped.
  FaultKind which() const { return which_.load(std::memory_order_relaxed); }

 private:
  using Clock = std::chrono::steady_clock;
  Limits limits_;
  std::atomic<uint64_t> host_bytes_{0}, instructions_{0};
  std::atomic<bool> tripped_{false};
  std::mutex mutex_;  // of Trip
  std::atomic<FaultKind> which_{};
  Clock::duration spent_{};  // by earlier launches
  Clock::time_point begun_{}, deadline_{};
  std::atomic<int64_t> news_after_{0};  // ticks after the beginning; 0: never
  std::atomic<bool> telling_{false};
};

// "the limit instructions=1000 (warp instructions of a launch) is exceeded; …" and how to raise it.
std::string DescribeLimit(const Limits& limits, FaultKind which);

// Host memory that an object holds for its lifetime.
class MemoryCharge {
 public:
  MemoryCharge() = default;
  MemoryCharge(LimitMeter& meter, uint64_t bytes) : meter_(&meter), bytes_(bytes) { meter.Take(bytes); }
  MemoryCharge(MemoryCharge&& other) noexcept
      : meter_(std::exchange(other.meter_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  MemoryCharge& operator=(MemoryCharge&& other) noexcept {
    std::swap(meter_, other.meter_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MemoryCharge() {
    if (meter_ != nullptr) meter_->Give(bytes_);
  }

 private:
  LimitMeter* meter_ = nullptr;
  uint64_t bytes_ = 0;
};

// The host memory of many small objects of one host thread: the meter, which all threads share, is updated
// when the sum has changed by kStep.
class MemoryLedger {
 public:
  explicit MemoryLedger(LimitMeter& meter) : meter_(meter) {}
  MemoryLedger(const MemoryLedger&) = delete;
  MemoryLedger& operator=(const MemoryLedger&) = delete;
  ~MemoryLedger() { Settle(); }
  void Take(uint64_t bytes) {
    if ((taken_ += bytes) >= told_ + kStep) Settle();
  }
  void Give(uint64_t bytes) {
    if ((taken_ -= bytes) + kStep <= told_) Settle();
  }

 private:
  static constexpr uint64_t kStep = 64 << 10;
  void Settle();
  LimitMeter& meter_;
  uint64_t taken_ = 0, told_ = 0;
};

}  // namespace laneshift::emulator
