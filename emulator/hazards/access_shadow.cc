#include "emulator/hazards/access_shadow.h"

#include <algorithm>

#include "base/check.h"

namespace laneshift::emulator {

void OpRecord::Reset() {
  std::vector<Epoch> memory = std::move(over);
  memory.clear();
  *this = OpRecord();
  over = std::move(memory);
}

bool OpRecord::KnownTo(const Knowledge& knowledge, uint8_t lane_of_knower) const {
  return std::any_of(over.begin(), over.end(), [&](const Epoch& e) { return knowledge.Knows(lane_of_knower, e); });
}

bool OpRecord::KnownTo(const VectorClock& clock) const {
  return std::any_of(over.begin(), over.end(), [&](const Epoch& e) { return clock.Knows(e); });
}

SharedShadow::SharedShadow(uint32_t base, uint32_t bytes)
    : base_(base),
      bytes_(bytes),
      // Zero pages are valid, and most of a CTA's shared memory never sees an ordinary access.
      granules_(static_cast<Granule*>(std::calloc(bytes / 16 + 2 + kRow, sizeof(Granule)))),
      words_(static_cast<Word*>(std::calloc(bytes / 4 + 8, sizeof(Word)))),
      blocks_((base + bytes) / GranuleWord::kBlockBytes + 2) {
  LS_CHECK(base % (16 * kRow) == 0, "the shadow begins at ", base, ", in the middle of a row");
  LS_CHECK(granules_ != nullptr && words_ != nullptr, "no memory for the shadow of ", bytes, " bytes of shared memory");
}

void SharedShadow::Reset() {
  Forget(base_, base_ + bytes_);
  for (Block& block : blocks_) {
    block.segments.clear();
    block.ordinary = 0;
  }
  readers_.clear();
  free_readers_.clear();
}

void SharedShadow::DropReaders(Word& word) {
  if (word.flags & kSeveralWarps) {
    readers_[word.read_clock].clear();
    free_readers_.push_back(word.read_clock);
  }
  word.reader = 0;
  word.read_by = {};
  word.flags = static_cast<uint8_t>(word.flags & (kStrongWrite | kWarpWrite));
}

Rival SharedShadow::CheckReads(const Word& word, uint32_t offset, uint8_t bytes, const Knowledge& knowledge,
                               uint8_t lane, bool strong) const {
  if (word.reader == 0 || (word.bytes >> 4 & bytes) == 0 || (strong && (word.flags & kStrongReads))) return {};
  // Only its own lanes' bytes are known apart.
  const auto apart = [&](const Epoch& moment, uint8_t first, ReadBytes read_by) {
    return moment.agent == knowledge.agent() && moment.lane == kAllLanes && !read_by.Rival(lane == first, bytes);
  };
  if (!(word.flags & kSeveralWarps)) {
    const Epoch moment = ReaderOf(word);
    if (knowledge.Knows(lane, moment) || apart(moment, LaneOf(word.reader), word.read_by)) return {};
    return {Conflict::kWriteAfterRead, offset, ReaderOf(word), nullptr, word.read_line};
  }
  for (const Reader& reader : readers_[word.read_clock]) {
    if (!knowledge.Knows(lane, reader.moment) && !apart(reader.moment, reader.first, reader.read_by))
      return {Conflict::kWriteAfterRead, offset, reader.moment, nullptr, reader.line};
  }
  return {};
}

void SharedShadow::AddWarp(Word& word, uint8_t bytes, const Accessor& by) {
  if (!(word.flags & kSeveralWarps)) {
    uint32_t index;
    if (free_readers_.empty()) {
      index = static_cast<uint32_t>(readers_.size());
      readers_.emplace_back();
    } else {
      index = free_readers_.back();
      free_readers_.pop_back();
    }
    const uint8_t lane = LaneOf(word.reader);
    const ReadBytes read_by =
        word.flags & kSeveralLanes ? word.read_by : ReadBytes{static_cast<uint8_t>(word.bytes >> 4), 0};
    readers_[index].push_back({ReaderOf(word), word.read_line, lane, word.read_fences, lane, read_by});
    word.read_clock = index;
    word.read_by = {};
    word.flags = static_cast<uint8_t>((word.flags & ~kSeveralLanes) | kSeveralWarps);
  }
  const Epoch now = by.knowledge->Now(by.lane);
  for (Reader& reader : readers_[word.read_clock]) {
    if (reader.moment.agent != now.agent) continue;
    const bool known = by.knowledge->Knows(by.lane, reader.moment);
    if (known && reader.moment.lane != now.lane) reader.read_by = {};  // that lane's own reads cover them
    if (known) reader.first = now.lane;
    uint8_t& read = reader.first == now.lane ? reader.read_by.first : reader.read_by.others;
    read = static_cast<uint8_t>(read | bytes);
    reader.moment.lane = known ? now.lane : kAllLanes;
    reader.moment.clock = now.clock;
    reader.line = by.line;
    reader.lane = by.lane;
    reader.fences = by.fences;
    return;
  }
  readers_[word.read_clock].push_back({now, by.line, by.lane, by.fences, by.lane, {bytes, 0}});
}

void SharedShadow::AddReader(Word& word, uint8_t bytes, const Accessor& by) {
  const Epoch now = by.knowledge->Now(by.lane);
  const auto thread = static_cast<uint16_t>(now.agent * kLanes + by.lane + 1);
  const bool strong = by.strong && (word.reader == 0 || (word.flags & kStrongReads));
  const auto strength = static_cast<uint8_t>(strong ? kStrongReads : 0);
  word.flags = static_cast<uint8_t>((word.flags & ~kStrongReads) | strength);
  if (word.flags & kSeveralWarps) return AddWarp(word, bytes, by);
  if (word.reader != 0 && (word.reader != thread || (word.flags & kSeveralLanes))) {
    const Epoch before = ReaderOf(word);
    if (!by.knowledge->Knows(by.lane, before)) {
      if (before.agent != now.agent) return AddWarp(word, bytes, by);
      if (!(word.flags & kSeveralLanes)) word.read_by = {static_cast<uint8_t>(word.bytes >> 4), 0};
      word.flags |= kSeveralLanes;
      uint8_t& read = word.reader == thread ? word.read_by.first : word.read_by.others;
      read = static_cast<uint8_t>(read | bytes);
      word.bytes = static_cast<uint8_t>(word.bytes | bytes << 4);
      word.read_clock = now.clock;
      word.read_fences = by.fences;
      return;
    }
    word.flags = static_cast<uint8_t>(word.flags & ~kSeveralLanes);
    word.read_by = {};
    word.bytes = static_cast<uint8_t>(word.bytes & 0xf);
  }
  word.reader = thread;
  word.read_clock = now.clock;
  word.read_fences = by.fences;
  word.bytes = static_cast<uint8_t>(word.bytes | bytes << 4);
  word.read_line = by.line;
}

Rival SharedShadow::Read(uint32_t offset, uint32_t bytes, const Accessor& by) {
  Rival rival =
      CheckAsync(GranuleWord::Of(offset, offset + bytes), {offset, offset + bytes}, false, *by.knowledge, by.lane);
  const uint32_t begin = offset - base_;
  for (uint32_t w = begin >> 2, end = (begin + bytes - 1) >> 2; w <= end; ++w)
    ReadWord(w, BytesOf(w, begin, bytes), by, rival);
  return rival;
}

void SharedShadow::ReadWord(uint32_t w, uint8_t covered, const Accessor& by, Rival& rival) {
  Word& word = Apart(w);
  OrdinaryOf(w) |= BitOf(w);
  if (word.writer != 0 && (word.bytes & covered) != 0 && !(by.strong && (word.flags & kStrongWrite)) &&
      !by.knowledge->Knows(by.lane, WriterOf(word)) && !rival) {
    rival = {Conflict::kReadAfterWrite, base_ + 4 * w, WriterOf(word), nullptr, word.write_line};
  }
  AddReader(word, covered, by);
}

Rival SharedShadow::Write(uint32_t offset, uint32_t bytes, const Accessor& by) {
  Rival rival;
  ForEachGranuleWord({offset, offset + bytes}, [&](GranuleWord word) {
    if (!rival) rival = CheckAsync(word, {offset, offset + bytes}, true, *by.knowledge, by.lane);
  });
  const uint32_t begin = offset - base_;
  for (uint32_t w = begin >> 2, end = (begin + bytes - 1) >> 2; w <= end; ++w)
    WriteWord(w, BytesOf(w, begin, bytes), by, rival);
  return rival;
}

void SharedShadow::WriteWord(uint32_t w, uint8_t covered, const Accessor& by, Rival& rival) {
  const Epoch now = by.knowledge->Now(by.lane);
  Word& word = Apart(w);
  OrdinaryOf(w) |= BitOf(w);
  const bool read = word.reader != 0;
  if (read && !rival) rival = CheckReads(word, base_ + 4 * w, covered, *by.knowledge, by.lane, by.strong);
  // Lanes of one warp that store to one word one after the other mostly store one value: not reported.
  if (!rival && word.writer != 0 && !read && (word.bytes & covered) != 0 &&
      !(by.strong && (word.flags & kStrongWrite)) && WriterOf(word).agent != now.agent &&
      !by.knowledge->Knows(by.lane, WriterOf(word))) {
    rival = {Conflict::kWriteAfterWrite, base_ + 4 * w, WriterOf(word), nullptr, word.write_line};
  }
  if (read) DropReaders(word);
  word.writer = static_cast<uint16_t>(now.agent * kLanes + by.lane + 1);
  word.write_clock = now.clock;
  word.bytes = covered;
  word.fences = by.fences;
  word.write_line = by.line;
  word.flags = by.strong ? kStrongWrite : 0;
  word.read_by = {};
}

uint64_t SharedShadow::Unsettled(uint32_t block, bool write, const VectorClock& known) const {
  uint64_t granules = 0;
  for (const Segment& segment : blocks_[block].segments) {
    bool settled = !segment.write || segment.write->KnownTo(known);
    for (size_t r = 0; settled && write && r < segment.reads.size() && segment.reads[r]; ++r)
      settled = segment.reads[r]->KnownTo(known);
    if (!settled) granules |= segment.mask;
  }
  return granules;
}

SharedShadow::Word SharedShadow::WordOf(const Granule& granule, uint32_t k) {
  Word word{};
  if ((granule.written >> k & 1) != 0) {
    word.writer = static_cast<uint16_t>(granule.writer + (k << granule.write_scale >> 2));
    word.write_clock = granule.write_clock;
    word.fences = granule.fences;
    word.write_line = granule.write_lines[k];
    word.bytes = granule.bytes;
  }
  if ((granule.read >> k & 1) != 0) {
    word.reader = static_cast<uint16_t>(granule.reader + (k << granule.read_scale >> 2));
    word.read_clock = granule.read_clock;
    word.read_fences = granule.read_fences;
    word.read_line = granule.read_lines[k];
    word.bytes |= 0xf0;
  }
  return word;
}

SharedShadow::Granule SharedShadow::GranuleOfRow(uint32_t granule) const {
  const uint32_t g = granule % kRow;
  Granule made = granules_[granule - g];
  made.row = false;
  if (made.written != 0) made.writer = static_cast<uint16_t>(made.writer + (g << made.write_scale));
  if (made.read != 0) made.reader = static_cast<uint16_t>(made.reader + (g << made.read_scale));
  return made;
}

void SharedShadow::Unfold(uint32_t row) {
  for (uint32_t g = kRow; g-- > 0;) granules_[row + g] = GranuleOfRow(row + g);
}

void SharedShadow::Split(uint32_t w) {
  Granule& granule = granules_[w / 4];
  for (uint32_t k = 0; k < 4; ++k) words_[(w & ~3u) + k] = WordOf(granule, k);
  granule.apart = true;
}

void SharedShadow::NoteWarpWrite(uint32_t offset, uint32_t bytes) {
  for (uint32_t w = (offset - base_) >> 2; w <= (offset + bytes - 1 - base_) >> 2; ++w) Apart(w).flags |= kWarpWrite;
}

Rival SharedShadow::CheckAsync(GranuleWord word, SharedRange within, bool write, const Knowledge& issuer,
                               uint8_t lane) const {
  for (const Segment& segment : blocks_[word.block].segments) {
    const uint64_t common = segment.mask & word.mask;
    if (common == 0) continue;
    const auto rival = [&](Conflict conflict, const RecordRef& record) -> Rival {
      const auto granule = static_cast<uint32_t>(std::countr_zero(common));
      return {conflict, word.block * GranuleWord::kBlockBytes + 16 * granule, {}, record.get(), record->line};
    };
    bool read_since = false;
    for (const RecordRef& read : segment.reads) {
      if (!read) break;
      read_since = true;
      if (write && read->Touches(within) && !read->KnownTo(issuer, lane)) return rival(Conflict::kWriteAfterRead, read);
    }
    if (segment.write && !(write && read_since) && segment.write->Touches(within) &&
        !segment.write->KnownTo(issuer, lane))
      return rival(write ? Conflict::kWriteAfterWrite : Conflict::kReadAfterWrite, segment.write);
  }
  return {};
}

Rival SharedShadow::CheckWords(uint32_t begin, uint32_t end, bool write, const Knowledge& issuer, uint8_t lane) const {
  Rival rival;
  Word fine{};  // adjacent words mostly have the same history
  const auto over = [&](uint16_t thread, uint32_t clock) {
    return issuer.Knows(lane, {AgentOf(thread), kAllLanes, clock});
  };
  const auto is_over = [&](const Granule& granule) {
    return (granule.written == 0 || over(granule.writer, granule.write_clock)) &&
           (!write || granule.read == 0 || over(granule.reader, granule.read_clock));
  };
  ForEachOrdinary(begin, end, is_over, [&](uint32_t w, const Word& word) {
    if (rival || word == fine) return;
    fine = word;
    if (write) rival = CheckReads(word, base_ + 4 * w, 0xf, issuer, lane, false);
    if (!rival && word.writer != 0 && !(write && word.reader != 0) && !issuer.Knows(lane, WriterOf(word))) {
      rival = {write ? Conflict::kWriteAfterWrite : Conflict::kReadAfterWrite, base_ + 4 * w, WriterOf(word), nullptr,
               word.write_line};
    }
  });
  return rival;
}

bool SharedShadow::Segment::Alike(const Segment& other) const {
  return write.get() == other.write.get() &&
         std::equal(reads.begin(), reads.end(), other.reads.begin(),
                    [](const RecordRef& a, const RecordRef& b) { return a.get() == b.get(); });
}

void SharedShadow::Segment::AddRead(const RecordRef& record) {
  size_t at = 0;
  while (at + 1 < reads.size() && reads[at] && reads[at]->issuer != record->issuer) ++at;
  reads[at] = record;
}

// The common case of NoteAsync: the operation reads what an earlier one read in the previous iteration of a loop.
// False: the general case, and nothing was changed.
bool SharedShadow::ReadSegment(std::vector<Segment>& segments, uint64_t mask, const RecordRef& record) {
  const auto read = std::find_if(segments.begin(), segments.end(), [&](const Segment& s) { return s.mask == mask; });
  if (read == segments.end()) return false;
  for (const Segment& other : segments) {
    if (&other != &*read && (other.mask & mask) != 0) return false;
  }
  read->AddRead(record);
  for (Segment& other : segments) {
    if (&other == &*read || !other.Alike(*read)) continue;
    other.mask |= mask;
    segments.erase(read);
    return true;
  }
  return true;
}

void SharedShadow::NoteAsync(GranuleWord word, bool write, const RecordRef& record) {
  std::vector<Segment>& segments = blocks_[word.block].segments;
  if (!write && ReadSegment(segments, word.mask, record)) return;
  // What the operation changes leaves its old segments and is inserted as new ones.
  std::vector<Segment>& changed = changed_;
  uint64_t fresh = word.mask;
  for (Segment& segment : segments) {
    const uint64_t common = segment.mask & word.mask;
    if (common == 0 || (write && segment.IsAdjacent(*record))) continue;
    segment.mask &= ~common;
    if (write) continue;
    fresh &= ~common;
    changed.push_back(segment.mask == 0 ? std::move(segment) : segment);
    changed.back().mask = common;
    changed.back().AddRead(record);
  }
  std::erase_if(segments, [](const Segment& segment) { return segment.mask == 0; });
  if (fresh != 0) {
    Segment& segment = changed.emplace_back();
    segment.mask = fresh;
    if (write) {
      segment.write = record;
    } else {
      segment.AddRead(record);
    }
  }
  for (Segment& segment : changed) {
    const auto like =
        std::find_if(segments.begin(), segments.end(), [&](const Segment& s) { return s.Alike(segment); });
    if (like != segments.end()) {
      like->mask |= segment.mask;
    } else {
      segments.push_back(std::move(segment));
    }
  }
  changed.clear();
}

// The words of [begin, end) of the granule at `at`.
void SharedShadow::ForgetGranule(uint32_t at, uint32_t begin, uint32_t end) {
  Granule& granule = At((at - base_) / 16);
  const bool whole = begin == at && end == at + 16;
  if (!whole || granule.apart) {
    for (uint32_t offset = begin; offset < end; offset += 4) {
      Word& word = Apart((offset - base_) / 4);
      if ((word.flags & kSeveralWarps) != 0) DropReaders(word);
      word = {};
    }
  }
  if (whole) granule = {};
}

void SharedShadow::Forget(uint32_t begin, uint32_t end) {
  ForEachGranuleWord({begin, end}, [&](GranuleWord word) {
    for (uint64_t rest = word.mask & blocks_[word.block].ordinary; rest != 0; rest &= rest - 1) {
      const uint32_t at = word.block * GranuleWord::kBlockBytes + static_cast<uint32_t>(std::countr_zero(rest)) * 16;
      ForgetGranule(at, std::max(at, begin & ~3u), std::min(at + 16, end));
    }
  });
  const uint32_t first = (begin + 15) & ~15u, last = end & ~15u;
  if (first >= last) return;
  ForEachGranuleWord({first, last}, [&](GranuleWord word) { blocks_[word.block].ordinary &= ~word.mask; });
}

size_t TensorShadow::Cut(std::vector<Run>& runs, int column) {
  const auto run = std::partition_point(runs.begin(), runs.end(), [&](const Run& r) { return r.end <= column; });
  const auto index = static_cast<size_t>(run - runs.begin());
  if (run == runs.end() || run->begin == column) return index;
  Run left = *run;
  left.end = run->begin = column;
  runs.insert(run, std::move(left));
  return index + 1;
}

void TensorShadow::Join(std::vector<Run>& runs, size_t first, size_t last) {
  size_t kept = first;
  for (size_t r = first + 1; r < last; ++r) {
    if (runs[r].cell == runs[kept].cell) {
      runs[kept].end = runs[r].end;
    } else if (++kept != r) {
      runs[kept] = std::move(runs[r]);
    }
  }
  const auto end = runs.begin() + static_cast<ptrdiff_t>(last);
  if (kept + 1 < last) runs.erase(runs.begin() + static_cast<ptrdiff_t>(kept) + 1, end);
}

std::array<std::vector<TensorShadow::Run>, TensorShadow::kGroups> TensorShadow::AllColumns() {
  std::array<std::vector<Run>, kGroups> all;
  for (auto& runs : all) runs.push_back({0, TensorMemory::kColumns, {}});
  return all;
}

}  // namespace laneshift::emulator
