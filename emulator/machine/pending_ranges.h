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
  PendingRanges() = default;
  PendingRanges(const PendingRanges&) = delete;  // last_added_ points into it
  PendingRanges& operator=(const PendingRanges&) = delete;
  bool empty() const { return ranges_.empty(); }
  void Clear() {
    while (!ranges_.empty()) Spare(ranges_.begin());
    longest_ = 0;
  }
  // Exchanges the memory that the two do not use.
  void Refill(PendingRanges& other) { spare_.swap(other.spare_); }
  void Add(uint64_t begin, uint64_t end, bool write) {
    if (spare_.empty()) {
      last_added_ = ranges_.emplace_hint(AfterLast(), begin, Range{end, write});
    } else {
      Node node = std::move(spare_.back());
      spare_.pop_back();
      node.key() = begin;
      node.mapped() = {end, write};
      last_added_ = ranges_.insert(AfterLast(), std::move(node));
    }
    longest_ = std::max(longest_, end - begin);
  }
  // One range as it was added.
  void Remove(uint64_t begin, uint64_t end, bool write) {
    const auto [first, last] = ranges_.equal_range(begin);
    for (auto at = first; at != last; ++at) {
      if (at->second.end != end || at->second.write != write) continue;
      Spare(at);
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
  using Ranges = std::multimap<uint64_t, Range>;
  void Spare(Ranges::const_iterator at) {
    if (at == last_added_) last_added_ = ranges_.end();
    Node node = ranges_.extract(at);
    if (spare_.size() < kMostSpare) spare_.push_back(std::move(node));
  }
  // The ranges of a copy are added in order.
  Ranges::const_iterator AfterLast() const {
    return last_added_ == ranges_.end() ? last_added_ : std::next(last_added_);
  }

  Ranges ranges_;  // by where they begin
  Ranges::const_iterator last_added_ = ranges_.end();
  std::vector<Node> spare_;  // of ranges that were removed
  uint64_t longest_ = 0;
};

}  // namespace laneshift::emulator
