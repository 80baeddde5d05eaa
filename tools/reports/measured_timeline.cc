#include "tools/reports/measured_timeline.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

#include "base/text.h"
#include "ir/stamp_buffer.h"

namespace laneshift::tools {
namespace {

using base::Cat;
using ir::Op;
using ir::OpCategory;
using ir::OpKind;
using ir::StampBuffer;
using ir::StampEvent;
using ir::StampHeader;
using ir::StampRecord;

// What stamps mean: the wait that follows one, or the work up to the next.
class StampNames {
 public:
  explicit StampNames(const ir::Program& program) : program_(program) {
    for (const ir::Role& role : program.roles) Walk(role.body);
  }
  struct Name {
    StampEvent event{};
    std::string text;
  };
  const Name* Find(uint32_t id) const {
    const auto found = names_.find(id);
    return found == names_.end() ? nullptr : &found->second;
  }

 private:
  // More of it counts: what is named by several ops has the name of the first of these.
  static int RankOf(OpCategory category) {
    switch (category) {
      case OpCategory::kMma:
      case OpCategory::kFma:
        return 4;
      case OpCategory::kBulkLoad:
      case OpCategory::kThreadLoad:
        return 3;
      case OpCategory::kTensorMove:
        return 2;
      case OpCategory::kAccumulator:
      case OpCategory::kElementwise:
      case OpCategory::kReduction:
      case OpCategory::kStore:
      case OpCategory::kSplitK:
        return 1;
      default:
        return 0;
    }
  }
  static std::string_view WorkOf(OpCategory category) {
    constexpr std::string_view kWork[] = {"run", "epilogue", "move operands in Tensor Memory", "load", kMmaIssueName};
    return category == OpCategory::kFma ? "products" : kWork[RankOf(category)];
  }

  void Walk(const std::vector<Op>& body) {
    for (const Op& op : body) {
      if (op.kind == OpKind::kCursor) channels_[op.result] = op.As<ir::CursorAttrs>().channel;
      if (op.kind == OpKind::kResidentSlot) channels_[op.result] = op.As<ir::ChannelAttrs>().channel;
      if (op.kind == OpKind::kStamp) {
        const auto& attrs = op.As<ir::StampAttrs>();
        last_ = &(names_[static_cast<uint32_t>(attrs.id)] = {attrs.event, "run"});
        rank_ = 0;
        continue;
      }
      if (last_ != nullptr && last_->event == StampEvent::kWait) {
        last_->text = WaitOf(op);
      } else if (const OpCategory category = ir::InfoOf(op.kind).category;
                 RankOf(category) > rank_ && last_ != nullptr) {
        rank_ = RankOf(category);
        last_->text = WorkOf(category);
      }
      Walk(op.body);
    }
  }

  std::string WaitOf(const Op& op) const {
    if (op.kind == OpKind::kMmaWait) return kMmaWaitName;
    if (op.kind == OpKind::kCopyWait) return kCopyWaitName;
    if (op.kind == OpKind::kBulkWait) return kStoreWaitName;
    return NameOfSlotWait(op.As<ir::BarrierAttrs>().side,
                          program_.channels[static_cast<size_t>(channels_.at(op.operands[0]))].name);
  }

  const ir::Program& program_;
  std::map<ir::ValueId, int> channels_;
  std::map<uint32_t, Name> names_;
  Name* last_ = nullptr;  // of the stamp before the current op
  int rank_ = 0;
};

// The records of one warp.
struct WarpRecords {
  size_t cta = 0;
  uint32_t warp = 0;
  StampHeader header;
  std::vector<StampRecord> records;

  uint64_t Nanoseconds() const { return header.end_ns - header.begin_ns; }
};

template <typename T>
T ReadAs(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

std::vector<WarpRecords> ReadRecords(const std::vector<std::byte>& buffer, const ir::Program& program) {
  std::vector<WarpRecords> warps;
  const auto of_cta = static_cast<size_t>(program.threads / 32);
  for (size_t i = 0; (i + 1) * StampBuffer::kWarpBytes <= buffer.size(); ++i) {
    const size_t begin = i * StampBuffer::kWarpBytes;
    WarpRecords warp{.cta = i / of_cta, .warp = static_cast<uint32_t>(i % of_cta), .header = {}, .records = {}};
    warp.header = ReadAs<StampHeader>(buffer.data() + begin);
    const size_t first = begin + StampBuffer::kHeaderBytes;
    const size_t end = std::min<size_t>(warp.header.records_end, begin + StampBuffer::kWarpBytes);
    if (warp.header.begin_ns == 0 || warp.header.end_ns < warp.header.begin_ns || end < first) continue;
    for (size_t at = first; at + sizeof(StampRecord) <= end; at += sizeof(StampRecord))
      warp.records.push_back(ReadAs<StampRecord>(buffer.data() + at));
    warps.push_back(std::move(warp));
  }
  return warps;
}

// The clock of an SM on the timer of the device, by the warp that ran longest there.
struct SmClock {
  uint32_t clock = 0;
  double ns = 0, ns_per_clock = 1;

  double At(uint32_t then) const { return ns + static_cast<int32_t>(then - clock) * ns_per_clock; }
};

std::map<size_t, SmClock> ClocksOf(const std::vector<WarpRecords>& warps, uint64_t origin) {
  std::map<size_t, const WarpRecords*> longest;
  for (const WarpRecords& warp : warps) {
    const WarpRecords*& best = longest[warp.cta];
    if (best == nullptr || warp.Nanoseconds() > best->Nanoseconds()) best = &warp;
  }
  std::map<size_t, SmClock> clocks;
  for (const auto& [cta, warp] : longest) {
    const uint32_t ticks = warp->header.end_clock - warp->header.begin_clock;
    clocks[cta] = {.clock = warp->header.begin_clock,
                   .ns = static_cast<double>(warp->header.begin_ns - origin),
                   .ns_per_clock = ticks == 0 ? 1 : static_cast<double>(warp->Nanoseconds()) / ticks};
  }
  return clocks;
}

void AddSpans(const WarpRecords& warp, const StampNames& names, const SmClock& clock, size_t track,
              Timeline& timeline) {
  constexpr double kMicrosecond = 1000;
  int tile = -1;
  TimelineSpan open{.track = track, .begin = clock.At(warp.header.begin_clock) / kMicrosecond, .what = "run"};
  const auto close = [&](uint32_t at) {
    open.end = std::max(open.begin, clock.At(at) / kMicrosecond);
    open.tile = tile;
    if (open.end > open.begin) timeline.spans.push_back(open);
    open.begin = open.end;
  };
  for (const StampRecord& record : warp.records) {
    const StampNames::Name* name = names.Find(record.id);
    if (name == nullptr) continue;
    close(record.clock);
    if (name->event == StampEvent::kTile) ++tile;
    open.what = name->text;
    open.waits = name->event == StampEvent::kWait;
  }
  close(warp.header.end_clock);
}

// The device's timer has coarse steps, so that a clock may lie before the first warp's time there.
void BeginAtZero(Timeline& timeline) {
  double first = timeline.spans.empty() ? 0 : timeline.spans.front().begin;
  for (const TimelineSpan& span : timeline.spans) first = std::min(first, span.begin);
  for (TimelineSpan& span : timeline.spans) span.begin -= first, span.end -= first;
}

// Clocks from a stamp to the next, where the warp did the least between them.
uint32_t ShortestStep(const std::vector<WarpRecords>& warps) {
  uint32_t shortest = ~uint32_t{0};
  for (const WarpRecords& warp : warps) {
    uint32_t before = warp.header.begin_clock;
    for (const StampRecord& record : warp.records) {
      shortest = std::min(shortest, record.clock - before);
      before = record.clock;
    }
  }
  return shortest;
}

std::string PrintChange(double from, double to) {
  const std::string percent = PrintFixed(100 * std::abs(to / std::max(from, 1e-9) - 1), 1);
  return percent == "0.0" ? "as long" : Cat(percent, to > from ? "% more" : "% less");
}

uint64_t BeginOf(const std::vector<WarpRecords>& warps) {
  uint64_t begin = ~uint64_t{0};
  for (const WarpRecords& warp : warps) begin = std::min(begin, warp.header.begin_ns);
  return begin;
}
uint64_t LengthOf(const std::vector<WarpRecords>& warps) {
  uint64_t end = 0;
  for (const WarpRecords& warp : warps) end = std::max(end, warp.header.end_ns);
  return warps.empty() ? 0 : end - BeginOf(warps);
}

}  // namespace

Result<Timeline> MeasuredTimeline(const StampedRun& run) {
  std::vector<WarpRecords> warps;
  for (const std::vector<std::byte>& buffer : run.records) {
    std::vector<WarpRecords> of_launch = ReadRecords(buffer, run.program);
    if (warps.empty() || LengthOf(of_launch) > LengthOf(warps)) warps = std::move(of_launch);
  }
  if (warps.empty()) return MakeError(ErrorCode::kInternal, "the kernel with stamps has left no records");
  const StampNames names(run.program);
  const std::map<size_t, SmClock> clocks = ClocksOf(warps, BeginOf(warps));
  Timeline timeline{.title = "The first cluster, measured"};
  const bool cluster = run.program.ClusterSize() > 1;
  bool full = false;
  for (const WarpRecords& warp : warps) {
    const std::string of = cluster ? Cat(" of CTA ", warp.cta) : std::string();
    timeline.tracks.push_back({"roles", RoleOfWarp(run.program, warp.warp) + of, 0});
    AddSpans(warp, names, clocks.at(warp.cta), timeline.tracks.size() - 1, timeline);
    full |= warp.header.records_end % StampBuffer::kWarpBytes == 0;
  }
  BeginAtZero(timeline);
  timeline.note = Cat("Clocks at ", PrintFixed(1 / clocks.begin()->second.ns_per_clock, 2),
                      " GHz, from the first warp's begin. The kernel takes ", PrintFixed(run.plain_us, 2), " us, and ",
                      PrintFixed(run.stamped_us, 2), " us with the stamps, ", PrintChange(run.plain_us, run.stamped_us),
                      ". A stamp takes up to ", ShortestStep(warps), " clocks, the least between two of a warp.");
  if (full) timeline.note += " A warp had more stamps than its records hold; the last ones are missing.";
  return timeline;
}

}  // namespace laneshift::tools
