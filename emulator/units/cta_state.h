// What the functional units see of a CTA: its shared-memory window, its Tensor Memory, and the ranges that an
// operation touches in them.
//
// Thread-safety: plain values; the caller owns their memory.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace laneshift::emulator {

class TensorMemory;

// The bytes of a CTA's shared-memory window. A window offset `a` (a .shared address without the CTA rank) lives at
// bytes[a - base]; offsets below base (the reserved first KiB) and past the end are faults.
struct SharedWindow {
  std::span<uint8_t> bytes;
  uint32_t base = 0;

  bool Contains(uint64_t begin, uint64_t count) const { return begin >= base && begin - base + count <= bytes.size(); }
  uint8_t* At(uint32_t offset) const { return bytes.data() + (offset - base); }
};

// [begin, end) window offsets.
struct SharedRange {
  uint32_t begin = 0, end = 0;
  bool operator==(const SharedRange&) const = default;
};

// Lanes [lane, lane+lanes) x columns [column, column+columns).
struct TensorRange {
  uint16_t lane = 0, lanes = 0, column = 0, columns = 0;
  bool operator==(const TensorRange&) const = default;
};

// Granules of 16 bytes as bits, one word per KiB of the window that has any: a swizzled tile is hundreds of ranges and
// a few words.
struct GranuleWord {
  uint32_t block = 0;  // window offset / kBlockBytes
  uint64_t mask = 0;

  static constexpr uint32_t kGranuleBytes = 16, kBlockBytes = 64 * kGranuleBytes;
  // The granules of [begin, end), which lies in one block. REQUIRES: begin < end.
  static GranuleWord Of(uint32_t begin, uint32_t end) {
    const uint32_t block = begin / kBlockBytes;
    const uint32_t low = begin / kGranuleBytes % 64, high = (end - 1) / kGranuleBytes % 64;
    return {block, ~uint64_t{0} >> (63 - (high - low)) << low};
  }
};
using GranuleWords = std::vector<GranuleWord>;

// Calls visit(word) for each block of the range.
template <typename Visit>
void ForEachGranuleWord(SharedRange range, Visit visit) {
  while (range.begin < range.end) {
    const uint32_t end = std::min(range.end, (range.begin / GranuleWord::kBlockBytes + 1) * GranuleWord::kBlockBytes);
    visit(GranuleWord::Of(range.begin, end));
    range.begin = end;
  }
}

// The granules of sorted ranges.
inline std::shared_ptr<const GranuleWords> GranulesOf(std::span<const SharedRange> ranges) {
  GranuleWords words;
  for (const SharedRange& range : ranges) {
    ForEachGranuleWord(range, [&](GranuleWord word) {
      if (!words.empty() && words.back().block == word.block) {
        words.back().mask |= word.mask;
      } else {
        words.push_back(word);
      }
    });
  }
  return std::make_shared<const GranuleWords>(std::move(words));
}

inline uint64_t BytesOf(const GranuleWords& words) {
  uint64_t granules = 0;
  for (const GranuleWord& word : words) granules += static_cast<uint64_t>(std::popcount(word.mask));
  return granules * GranuleWord::kGranuleBytes;
}

// Granules of which only the first `bytes` are read: those of 4- and 6-bit elements, 16 in each, that are padded to 16
// bytes. Nobody needs to write the padding.
struct PaddedGranules {
  std::shared_ptr<const GranuleWords> granules;
  uint32_t bytes = 0;
};

// What one operation reads and writes in one CTA. Shared ranges are sorted, disjoint and whole 16-byte granules.
struct Touched {
  std::vector<SharedRange> shared_reads;
  std::shared_ptr<const GranuleWords> granules;                         // the same
  std::shared_ptr<const std::vector<PaddedGranules>> padded = nullptr;  // some of them
  std::vector<TensorRange> tensor_reads, tensor_writes;
};

// 16-byte granules of a window as bits: swizzles visit them out of order, and sorting them would cost more than what is
// done with them.
class GranuleSet {
 public:
  // The granule that holds `offset`; everything from 2^18 on is the last granule, which no window reaches.
  void Add(uint32_t offset) {
    const uint32_t granule = std::min<uint32_t>(offset / 16, 64 * static_cast<uint32_t>(words_.size()) - 1);
    const uint32_t word = granule / 64;
    words_[word] |= uint64_t{1} << (granule % 64);
    first_ = std::min(first_, word);
    last_ = std::max(last_, word);
  }
  void Add(SharedRange range) {
    for (uint32_t at = range.begin & ~15u; at < range.end; at += 16) Add(at);
  }
  // Sorted and disjoint; granules that touch are one range.
  std::vector<SharedRange> Ranges() const {
    std::vector<SharedRange> ranges;
    for (uint32_t word = first_; word <= last_; ++word) {
      for (uint64_t rest = words_[word]; rest != 0;) {
        const int low = std::countr_zero(rest), count = std::countr_one(rest >> low);
        rest = low + count == 64 ? 0 : rest >> (low + count) << (low + count);
        const uint32_t begin = (word * 64 + static_cast<uint32_t>(low)) * 16;
        const uint32_t end = begin + static_cast<uint32_t>(count) * 16;
        if (!ranges.empty() && ranges.back().end == begin) {
          ranges.back().end = end;
        } else {
          ranges.push_back({begin, end});
        }
      }
    }
    return ranges;
  }
  // The same.
  std::shared_ptr<const GranuleWords> Words() const {
    GranuleWords words;
    for (uint32_t word = first_; word <= last_; ++word) {
      if (words_[word] != 0) words.push_back({word, words_[word]});
    }
    return std::make_shared<const GranuleWords>(std::move(words));
  }

 private:
  std::array<uint64_t, (1 << 18) / 16 / 64> words_{};
  uint32_t first_ = static_cast<uint32_t>(words_.size()), last_ = 0;
};

// The units of one CTA as an operation of that CTA, or of its pair, uses them.
struct CtaState {
  SharedWindow shared;
  TensorMemory* tensor = nullptr;
};

}  // namespace laneshift::emulator
