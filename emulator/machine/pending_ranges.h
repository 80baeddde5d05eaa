// Ranges of global memory that pending operations read or write.
//
// A tensor copy has a range per row, and many copies may be pending at once: conflicts are looked up in order of
// address. Thread-safety: none; a cluster has one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

namespace laneshift::emulator {

class PendingRanges {
 public:
  bool empty() const { return ranges_.empty(); }
  void Add(uint64_t begin, uint64_t end, bool write) {
    ranges_.emplace(begin, Range{end, write});
    longest_ = std::max(longest_, end - begin);
  }
  // One range as it was added.
  void Remove(uint64_t begin, uint64_t end, bool write) {
    const auto [first, last] = ranges_.equal_range(begin);
    for (auto at = first; at != last; ++at) {
      if (at->second.end != end || at->second.write != write) continue;
      ranges_.erase(at);
      break;
    }
    if (ranges_.empty()) longest_ = 0;
  }
  // A write conflicts with every range that it overlaps, a read with the written ones.
  bool Conflicts(uint64_t begin, uint64_t end, bool write) const {
    for (auto at = ranges_.lower_bound(begin - std::min(begin, longest_)); at != ranges_.end() && at->first < end;
         ++at) {
      if (begin < at->second.end && (write || at->second.write)) return true;
    }
    return false;
  }

 private:
  struct Range {
    uint64_t end;
    bool write;
  };
  std::multimap<uint64_t, Range> ranges_;  // by where they begin
  uint64_t longest_ = 0;
};

}  // namespace laneshift::emulator
