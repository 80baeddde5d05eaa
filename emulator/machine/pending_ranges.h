// Ranges of global memory that pending operations read or write.
//
// A tensor copy has a range per row, and many copies may be pending at once: conflicts are looked up in order of
// address. Thread-safety: none; a cluster has one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace laneshift::emulator {

class PendingRanges {
 public:
  bool empty() const { return ranges_.empty(); }
  void Add(uint64_t begin, uint64_t end, bool write) {
    if (spare_.empty()) {
      ranges_.emplace(begin, Range{end, write});
    } else {
      Node node = std::move(spare_.back());
      spare_.pop_back();
      node.key() = begin;
      node.mapped() = {end, write};
      ranges_.insert(std::move(node));
    }
    longest_ = std::max(longest_, end - begin);
  }
  // One range as it was added.
  void Remove(uint64_t begin, uint64_t end, bool write) {
    const auto [first, last] = ranges_.equal_range(begin);
    for (auto at = first; at != last; ++at) {
      if (at->second.end != end || at->second.write != write) continue;
      Node node = ranges_.extract(at);
      if (spare_.size() < kMostSpare) spare_.push_back(std::move(node));
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
  using Node = std::multimap<uint64_t, Range>::node_type;
  static constexpr size_t kMostSpare = 1024;
  std::multimap<uint64_t, Range> ranges_;  // by where they begin
  std::vector<Node> spare_;                // of ranges that were removed
  uint64_t longest_ = 0;
};

}  // namespace laneshift::emulator
