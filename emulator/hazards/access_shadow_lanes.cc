// Ordinary accesses of a whole warp in SharedShadow: granules that consecutive lanes cover are recorded as
// wholes, and only the rest word by word.

#include <algorithm>
#include <array>
#include <bit>

#include "emulator/hazards/access_shadow.h"

namespace laneshift::emulator {

template <bool kWrite>
bool SharedShadow::IsPlain(const Word& word, uint16_t thread, uint8_t lane, const Knowledge& knowledge,
                           KnownWord& known) {
  if ((word.flags & kSeveralWarps) != 0) return false;
  if (word.reader == thread && (word.flags & kSeveralLanes) != 0) return false;
  const bool other_reader = word.reader != 0 && word.reader != thread;
  const bool other_writer = word.writer != 0 && word.writer != thread && !(kWrite && word.reader != 0);
  if ((!other_reader && !other_writer) || known.Is(word)) return true;
  if (other_reader && !knowledge.Knows(lane, ReaderOf(word))) return false;
  if (other_writer && !knowledge.Knows(lane, WriterOf(word))) return false;
  known = {true, word.flags, word.writer, word.reader, word.write_clock, word.read_clock};
  return true;
}

inline void SharedShadow::FillGranule(Granule& granule, const GranuleAccess& access) {
  granule.write_clock = access.clock;
  granule.writer = access.thread;
  granule.fences = access.fences;
  granule.write_scale = access.scale;
  granule.bytes = access.bytes;
  granule.written = 0xf;
  granule.read = 0;
  granule.apart = false;
  granule.write_lines.fill(access.line);
}

template <bool kWrite>
inline bool SharedShadow::TouchGranule(Granule& granule, const GranuleAccess& access) {
  if (granule.apart) return false;
  if (granule.read != 0 && !(granule.reader == access.thread && granule.read_scale == access.scale) &&
      !IsOver(granule.reader, granule.read_clock, access))
    return false;
  // What was read since it was written was ordered then, and stores of one warp to one word are not distinguished.
  const uint32_t written = kWrite ? granule.written & ~granule.read : granule.written;
  const bool own = kWrite ? AgentOf(granule.writer) == AgentOf(access.thread)
                          : granule.writer == access.thread && granule.write_scale == access.scale;
  if (written != 0 && !own && !IsOver(granule.writer, granule.write_clock, access)) return false;
  if constexpr (kWrite) {
    FillGranule(granule, access);
  } else {
    granule.read_clock = access.clock;
    granule.reader = access.thread;
    granule.read_fences = access.fences;
    granule.read_scale = access.scale;
    granule.read = 0xf;
    granule.read_lines.fill(access.line);
  }
  return true;
}

template <bool kWrite>
inline bool SharedShadow::TouchPart(Granule& granule, uint32_t first, uint32_t words, const GranuleAccess& access) {
  if (granule.apart) return false;
  const uint32_t bits = ((1u << words) - 1) << first, last = first + words - 1;
  // One thread's accesses at one moment, as in a loop over its own memory.
  const bool wrote = granule.writer == access.thread && granule.write_scale == 0;
  const bool has_read = granule.reader == access.thread && granule.read_scale == 0;
  if (kWrite && wrote && granule.write_clock == access.clock && granule.fences == access.fences &&
      granule.bytes == 0xf && (has_read || (granule.read & bits) == 0)) {
    granule.written |= static_cast<uint8_t>(bits);
    granule.read &= static_cast<uint8_t>(~bits);
    granule.write_lines[first] = granule.write_lines[last] = access.line;
    return true;
  }
  if (!kWrite && has_read && granule.read_clock == access.clock && granule.read_fences == access.fences &&
      (wrote || (granule.written & bits) == 0)) {
    granule.read |= static_cast<uint8_t>(bits);
    granule.read_lines[first] = granule.read_lines[last] = access.line;
    return true;
  }
  const auto own = [&](uint16_t thread, uint8_t scale) {
    return thread + (first << scale >> 2) == access.thread && thread + (last << scale >> 2) == access.thread;
  };
  const bool own_read = own(granule.reader, granule.read_scale), own_write = own(granule.writer, granule.write_scale);
  if ((granule.read & bits) != 0 && !own_read && !IsOver(granule.reader, granule.read_clock, access)) return false;
  const uint32_t written = granule.written & bits & (kWrite ? ~uint32_t{granule.read} : ~0u);
  if (written != 0 && !own_write && !IsOver(granule.writer, granule.write_clock, access)) return false;
  if constexpr (kWrite) {
    if (!own_write || granule.write_clock != access.clock || granule.fences != access.fences || granule.bytes != 0xf) {
      if ((granule.written & ~bits) != 0) return false;
      granule.write_clock = access.clock;
      granule.writer = access.thread;
      granule.fences = access.fences;
      granule.write_scale = 0;
      granule.bytes = 0xf;
    }
    granule.written |= static_cast<uint8_t>(bits);
    granule.read &= static_cast<uint8_t>(~bits);
  } else {
    if (!own_read || granule.read_clock != access.clock || granule.read_fences != access.fences) {
      if ((granule.read & ~bits) != 0) return false;
      granule.read_clock = access.clock;
      granule.reader = access.thread;
      granule.read_fences = access.fences;
      granule.read_scale = 0;
    }
    granule.read |= static_cast<uint8_t>(bits);
  }
  std::array<int32_t, 4>& lines = kWrite ? granule.write_lines : granule.read_lines;
  for (uint32_t k = first; k <= last; ++k) lines[k] = access.line;
  return true;
}

inline int SharedShadow::LanesOfGranules(const WarpAccess& access, uint32_t rest) {
  const int first = std::countr_zero(rest);
  const uint64_t begin = access.offsets[first];
  if (begin % 16 != 0) return 0;
  const int each = LanesEach(access.bytes);
  if (access.consecutive()) {
    const uint64_t block_end = (begin / GranuleWord::kBlockBytes + 1) * GranuleWord::kBlockBytes;
    return std::min<int>(kLanes - first, static_cast<int>((block_end - begin) / access.bytes)) / each * each;
  }
  for (int next = 1; next < each; ++next) {
    if ((rest >> first >> next & 1) == 0 ||
        access.offsets[first + next] != begin + static_cast<uint32_t>(next) * access.bytes ||
        access.fences[first + next] != access.fences[first])
      return 0;
  }
  return each;
}

template <bool kWrite>
void SharedShadow::TouchWords(const WarpAccess& access, int lane, uint32_t first, uint32_t words, Rival& rival) {
  const Knowledge& knowledge = *access.knowledge;
  const Epoch now = knowledge.Now(0);
  const auto thread = static_cast<uint16_t>(now.agent * kLanes + static_cast<uint32_t>(lane) + 1);
  const uint8_t covered = BytesOf(first, static_cast<uint32_t>(access.offsets[lane]) - base_, access.bytes);
  KnownWord known;
  for (uint32_t w = first; w < first + words; ++w) {
    Word& word = Apart(w);
    if (!IsPlain<kWrite>(word, thread, static_cast<uint8_t>(lane), knowledge, known)) {
      (this->*(kWrite ? &SharedShadow::WriteWord : &SharedShadow::ReadWord))(w, covered, access.Of(lane), rival);
    } else if constexpr (kWrite) {
      word = {now.clock, 0, thread, 0, static_cast<uint16_t>(access.fences[lane]), 0, covered, 0, {}, access.line, 0};
    } else {
      // A read that this thread knows of is covered by this thread's own read.
      if (word.reader != thread) word.bytes &= 0xf;
      word.flags = static_cast<uint8_t>(word.flags & ~(kStrongReads | kSeveralLanes));
      word.read_by = {};
      word.reader = thread;
      word.read_clock = now.clock;
      word.read_fences = static_cast<uint16_t>(access.fences[lane]);
      word.bytes = static_cast<uint8_t>(word.bytes | covered << 4);
      word.read_line = access.line;
    }
  }
}

template <bool kWrite>
inline bool SharedShadow::TouchLane(uint32_t w, uint8_t covered, uint32_t words, const GranuleAccess& access) {
  if (covered == 0xf && TouchPart<kWrite>(At(w / 4), w % 4, words, access)) return true;
  if (words != 1) return false;
  Word& word = Apart(w);
  // All records are the thread's own.
  if ((word.flags & (kSeveralWarps | kSeveralLanes)) != 0 || (word.reader != 0 && word.reader != access.thread) ||
      (word.writer != 0 && word.writer != access.thread && !(kWrite && word.reader != 0)))
    return false;
  if constexpr (kWrite) {
    word = {access.clock, 0, access.thread, 0, access.fences, 0, covered, 0, {}, access.line, 0};
  } else {
    word.flags = static_cast<uint8_t>(word.flags & ~kStrongReads);
    if (word.reader == 0) word.bytes &= 0xf;
    word.reader = access.thread;
    word.read_clock = access.clock;
    word.read_fences = access.fences;
    word.bytes = static_cast<uint8_t>(word.bytes | covered << 4);
    word.read_line = access.line;
  }
  return true;
}

// Lanes after the second that read whole words at one moment leave the record of them as it is.
inline bool SharedShadow::RepeatsRead(const WarpAccess& access, const GranuleAccess& one, int lane, uint32_t first,
                                      uint32_t words) {
  for (uint32_t w = first; w < first + words; ++w) {
    if (!At(w / 4).apart) return false;
    const Word& word = words_[w];
    const bool same = (word.flags & (kSeveralWarps | kStrongReads | kSeveralLanes)) == kSeveralLanes &&
                      word.reader != one.thread && AgentOf(word.reader) == AgentOf(one.thread) &&
                      word.read_clock == one.clock && word.read_fences == one.fences && word.bytes >> 4 == 0xf &&
                      word.read_by.others == 0xf;
    if (!same || access.knowledge->Knows(static_cast<uint8_t>(lane), ReaderOf(word))) return false;
    if (word.writer != 0 && !access.knowledge->Knows(static_cast<uint8_t>(lane), WriterOf(word))) return false;
  }
  return true;
}

// Adjacent lanes that read one word, which holds nothing but accesses that all lanes know to be complete, or the same
// read: their record is that of the first one and of others. Returns how many; 0: the general case, and nothing was
// changed.
inline int SharedShadow::ReadTogether(const WarpAccess& access, const GranuleAccess& one, int lane, uint32_t w) {
  int end = lane + 1;
  while (end < kLanes && (access.mask >> end & 1) != 0 && access.offsets[end] == access.offsets[lane] &&
         access.fences[end] == access.fences[lane])
    ++end;
  if (end == lane + 1) return 0;
  Word& word = Apart(w);
  if ((word.flags & (kSeveralWarps | kStrongReads)) != 0) return 0;
  if (word.writer != 0 && !one.known->Knows(WriterOf(word))) return 0;
  const ReadBytes read_by = {0xf, 0xf};
  const bool repeats = word.reader == one.thread && (word.flags & kSeveralLanes) != 0 && word.read_by == read_by &&
                       word.read_clock == one.clock && word.read_fences == one.fences;
  if (repeats) return end - lane;
  if (word.reader != 0 && !one.known->Knows(ReaderOf(word))) return 0;
  word.flags |= kSeveralLanes;
  word.reader = one.thread;
  word.read_by = read_by;
  word.read_clock = one.clock;
  word.read_fences = one.fences;
  word.bytes |= 0xf0;
  word.read_line = one.line;
  return end - lane;
}

// One lane, which accesses words from `first` on, or a part of one.
template <bool kWrite>
void SharedShadow::TouchLaneApart(const WarpAccess& access, int lane, uint32_t first, bool unsettled,
                                  LaneRivals& rivals) {
  Rival found;
  if (unsettled) {
    const auto at = static_cast<uint32_t>(access.offsets[lane]);
    found = CheckAsync(GranuleWord::Of(at, at + access.bytes), {at, at + access.bytes}, kWrite, *access.knowledge,
                       static_cast<uint8_t>(lane));
  }
  TouchWords<kWrite>(access, lane, first, std::max(access.bytes / 4, 1u), found);
  if (found) rivals.emplace_back(lane, found);
}

// Lanes [lane, lane + lanes), which fill granules from the word `first` on: those of one granule, or one lane.
template <bool kWrite>
void SharedShadow::TouchApart(const WarpAccess& access, const GranuleAccess& one, int lane, int lanes, uint32_t first,
                              bool unsettled, LaneRivals& rivals) {
  std::array<Rival, 16> found;  // by lane of these
  const uint32_t words = std::max(access.bytes / 4, 1u);
  if (unsettled) {
    for (int i = 0; i < lanes; ++i) {
      const auto at = static_cast<uint32_t>(access.offsets[lane + i]);
      found[static_cast<size_t>(i)] = CheckAsync(GranuleWord::Of(at, at + access.bytes), {at, at + access.bytes},
                                                 kWrite, *access.knowledge, static_cast<uint8_t>(lane + i));
    }
  }
  const uint32_t end = first + static_cast<uint32_t>(lanes) * access.bytes / 4;
  for (uint32_t w = first; w < end; w += 4) {
    Granule& granule = At(w / 4);
    if (TouchGranule<kWrite>(granule, one)) continue;
    if (access.bytes >= 16) {
      TouchWords<kWrite>(access, lane, w, 4, found[0]);
    } else {
      for (int i = 0; i < lanes; ++i)
        TouchWords<kWrite>(access, lane + i, w + static_cast<uint32_t>(i) * access.bytes / 4, words,
                           found[static_cast<size_t>(i)]);
    }
    // All four words have been written by these lanes now, and nobody has read them since.
    if constexpr (kWrite) FillGranule(granule, one);
  }
  for (int i = 0; i < lanes; ++i) {
    if (found[static_cast<size_t>(i)]) rivals.emplace_back(lane + i, found[static_cast<size_t>(i)]);
  }
}

int SharedShadow::LanesOfRow(const WarpAccess& access) {
  if (access.bytes < 4 || access.bytes > 16) return 0;
  if (access.consecutive()) return static_cast<int>(kRow) * LanesEach(access.bytes);
  return access.stride == 16 ? static_cast<int>(kRow) : 0;
}

// What is compared is the same for all granules of the row: which warp, or whether it is this lane's own record, in
// which the threads of adjacent granules are as far apart as the lanes are.
template <bool kWrite>
inline bool SharedShadow::TouchRow(const WarpAccess& access, uint32_t w, const GranuleAccess& one) {
  Granule& row = granules_[w / 4];
  if (w / 4 % kRow != 0 || !row.row) return false;
  if (access.consecutive()) return w % 4 == 0 && TouchGranule<kWrite>(row, one);
  return (row.write_scale | row.read_scale) == 0 && TouchPart<kWrite>(row, w % 4, access.bytes / 4, one);
}

void SharedShadow::FoldRows(const WarpAccess& access, uint32_t begin, uint32_t end) {
  if (!access.consecutive() || LanesOfRow(access) == 0) return;
  for (uint32_t row = (begin + kRow - 1) / kRow * kRow; row + kRow <= end; row += kRow) {
    granules_[row].row = true;
    granules_[row].reader = 0;
    granules_[row].read_scale = 0;
  }
}

template <bool kWrite>
SharedShadow::LaneRivals SharedShadow::AccessLanes(const WarpAccess& access) {
  LaneRivals rivals;
  const Knowledge& knowledge = *access.knowledge;
  const Epoch now = knowledge.Now(0);
  const VectorClock& view = knowledge.View(kAllLanes);  // no lane knows less
  const int each = LanesEach(access.bytes), of_word = LanesOfWord(access.bytes);
  const uint32_t words = std::max(access.bytes / 4, 1u), step = static_cast<uint32_t>(each) * access.bytes / 4;
  const uint8_t last_bytes = access.bytes >= 4 ? 0xf : static_cast<uint8_t>(0xf << (4 - access.bytes) & 0xf);
  GranuleAccess one{0, ScaleOf(access.bytes), last_bytes, true, 0, now.clock, access.line, &view};
  // If the first two lanes differ, mostly all do. A word that several lanes read records them all.
  const int lane0 = std::countr_zero(access.mask);
  const bool pair = lane0 + 1 < kLanes && (access.mask >> (lane0 + 1) & 1) != 0;
  const bool grouped = access.bytes >= 16 || ((kWrite || access.bytes >= 4) && pair &&
                                              access.offsets[lane0 + 1] == access.offsets[lane0] + access.bytes);
  const int row_lanes = LanesOfRow(access);
  uint32_t block = ~0u;
  uint64_t unsettled = 0;  // of that block
  for (uint32_t rest = access.mask; rest != 0;) {
    int lane = std::countr_zero(rest);
    const auto offset = static_cast<uint32_t>(access.offsets[lane]);
    if (offset / GranuleWord::kBlockBytes != block) {
      block = offset / GranuleWord::kBlockBytes;
      unsettled = Unsettled(block, kWrite, view);
    }
    uint32_t w = (offset - base_) >> 2;
    one.thread = static_cast<uint16_t>(now.agent * kLanes + static_cast<uint32_t>(lane) + 1);
    one.fences = static_cast<uint16_t>(access.fences[lane]);
    const auto skip_to = [&](int end) { rest = end == kLanes ? 0 : rest >> end << end; };
    if (row_lanes != 0 && lane + row_lanes <= kLanes && (unsettled >> (offset / 16 % 64) & 0xff) == 0 &&
        TouchRow<kWrite>(access, w, one)) {
      skip_to(lane + row_lanes);
      continue;
    }
    const int filling = grouped ? LanesOfGranules(access, rest) : 0;
    const int lanes = std::max(filling, 1), end = lane + lanes;
    const uint64_t granules = filling == 0
                                  ? uint64_t{1} << (offset / 16 % 64)
                                  : GranuleWord::Of(offset, offset + static_cast<uint32_t>(lanes) * access.bytes).mask;
    blocks_[block].ordinary |= granules;
    skip_to(end);
    const bool waits = (unsettled & granules) != 0;
    one.fills = filling != 0;
    if (!one.fills) {
      if (const int together = !kWrite && !waits && access.bytes == 4 ? ReadTogether(access, one, lane, w) : 0;
          together != 0) {
        skip_to(lane + together);
        continue;
      }
      if (!kWrite && !waits && access.bytes >= 4 && RepeatsRead(access, one, lane, w, words)) continue;
      if (waits || !TouchLane<kWrite>(w, BytesOf(w, offset - base_, access.bytes), words, one))
        TouchLaneApart<kWrite>(access, lane, w, waits, rivals);
      continue;
    }
    one.thread = static_cast<uint16_t>(one.thread + of_word - 1);
    const uint32_t first = w / 4;
    for (; lane < end; lane += each, w += step, one.thread = static_cast<uint16_t>(one.thread + each)) {
      const bool plain =
          !waits && TouchGranule<kWrite>(At(w / 4), one) && (step == 4 || TouchGranule<kWrite>(At(w / 4 + 1), one));
      if (!plain) TouchApart<kWrite>(access, one, lane, each, w, waits, rivals);
    }
    if constexpr (kWrite) FoldRows(access, first, w / 4);
  }
  return rivals;
}

template SharedShadow::LaneRivals SharedShadow::AccessLanes<false>(const WarpAccess& access);
template SharedShadow::LaneRivals SharedShadow::AccessLanes<true>(const WarpAccess& access);

}  // namespace laneshift::emulator
