#include "emulator/machine/limits.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "base/text.h"

namespace laneshift::emulator {
namespace {

using base::Cat;

// A control group's limit: a number, or "max", which is none.
uint64_t LimitIn(const char* path) {
  std::string text;
  std::ifstream(path) >> text;
  const auto bytes = base::ParseInt(text);
  return bytes && *bytes > 0 ? static_cast<uint64_t>(*bytes) : ~uint64_t{0};
}

uint64_t* FieldOf(Limits& limits, std::string_view name) {
#define LIMIT(field, fault, standard, counts) \
  if (name == #field) return &limits.field;
#include "emulator/machine/limits.def"
  return nullptr;
}

// The row of a limit whose fault this is.
size_t RowOf(FaultKind which) {
  static constexpr FaultKind kFaults[] = {
#define LIMIT(field, fault, standard, counts) FaultKind::k##fault,
#include "emulator/machine/limits.def"
  };
  return static_cast<size_t>(std::find(std::begin(kFaults), std::end(kFaults), which) - std::begin(kFaults));
}

}  // namespace

const std::vector<LimitRow>& LimitTable() {
  static const auto* table = new std::vector<LimitRow>{
#define LIMIT(field, fault, standard, counts) {#field, counts, standard},
#include "emulator/machine/limits.def"
  };
  return *table;
}

Status SetLimit(Limits& limits, std::string_view assignment) {
  const size_t equals = assignment.find('=');
  const std::string_view name = assignment.substr(0, equals);
  uint64_t* field = FieldOf(limits, name);
  if (field == nullptr) {
    std::vector<std::string_view> names;
    for (const LimitRow& row : LimitTable()) names.push_back(row.name);
    return MakeError(ErrorCode::kInvalidArgument, base::UnknownName("limit", name, names));
  }
  std::string_view number = equals == std::string_view::npos ? "" : assignment.substr(equals + 1);
  constexpr std::string_view kUnits = "KMGT";
  const size_t unit = number.empty() ? std::string_view::npos : kUnits.find(number.back());
  if (unit != std::string_view::npos) number.remove_suffix(1);
  const int shift = unit == std::string_view::npos ? 0 : 10 * (static_cast<int>(unit) + 1);
  const auto value = base::ParseInt(number);
  if (!value || *value < 0 || static_cast<uint64_t>(*value) > (~uint64_t{0} >> 1 >> shift)) {
    return MakeError(ErrorCode::kInvalidArgument,
                     Cat("limit ", name, " is a whole number, optionally followed by K, M, G or T, not '",
                         equals == std::string_view::npos ? "" : assignment.substr(equals + 1), "'"));
  }
  *field = static_cast<uint64_t>(*value) << shift;
  return Ok();
}

uint64_t StandardHostMemory() {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  uint64_t bytes = pages > 0 && page > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(page) : ~uint64_t{0};
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"})
    bytes = std::min(bytes, LimitIn(path));
  return bytes / 4 * 3;
}

std::string DescribeLimit(const Limits& limits, FaultKind which) {
  const size_t row = RowOf(which);
  if (row >= LimitTable().size()) return "a limit is exceeded";
  const std::string_view name = LimitTable()[row].name;
  Limits copy = limits;
  return Cat("the limit ", name, "=", *FieldOf(copy, name), " (", LimitTable()[row].counts,
             ") is exceeded; a greater one can be given (--limit ", name, "=N, LANESHIFT_EMULATOR_LIMITS=", name,
             "=N)");
}

LimitMeter::LimitMeter(const Limits& limits) : limits_(limits) {
  if (limits_.host_memory == 0) limits_.host_memory = StandardHostMemory();
}

void LimitMeter::BeginLaunch(std::chrono::milliseconds news) {
  tripped_ = false;
  instructions_ = 0;
  begun_ = Clock::now();
  news_after_ = Clock::duration(news).count();
  telling_ = false;
  const auto allowed = std::chrono::seconds(std::min<uint64_t>(limits_.seconds, uint64_t{1} << 32));
  deadline_ = limits_.seconds == 0 ? Clock::time_point::max() : begun_ + (allowed - spent_);
}

void LimitMeter::EndLaunch() { spent_ += Clock::now() - begun_; }

bool LimitMeter::TryTake(uint64_t bytes) {
  if (host_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= limits_.host_memory) return true;
  Give(bytes);
  return false;
}

void LimitMeter::Take(uint64_t bytes) {
  if (host_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes > limits_.host_memory)
    Trip(FaultKind::kMemoryLimit);
}

bool LimitMeter::Count(uint64_t instructions) {
  if (instructions_.fetch_add(instructions, std::memory_order_relaxed) + instructions > limits_.instructions)
    Trip(FaultKind::kInstructionLimit);
  const int64_t news_after = news_after_.load(std::memory_order_relaxed);
  if (deadline_ == Clock::time_point::max() && news_after == 0) return false;
  const Clock::time_point now = Clock::now();
  if (now > deadline_) Trip(FaultKind::kTimeLimit);
  if (news_after == 0 || (now - begun_).count() < news_after) return false;
  if (telling_.exchange(true, std::memory_order_acquire)) return false;
  news_after_.store(2 * news_after, std::memory_order_relaxed);
  return true;
}

void LimitMeter::Trip(FaultKind which) {
  const std::lock_guard lock(mutex_);
  if (tripped_.load(std::memory_order_relaxed)) return;
  which_.store(which, std::memory_order_relaxed);
  tripped_.store(true, std::memory_order_release);
}

void MemoryLedger::Settle() {
  if (taken_ > told_) meter_.Take(taken_ - told_);
  if (taken_ < told_) meter_.Give(told_ - taken_);
  told_ = taken_;
}

}  // namespace laneshift::emulator
