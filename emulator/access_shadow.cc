#include "emulator/access_shadow.h"

#include <algorithm>

#include "base/check.h"

namespace laneshift::emulator {
namespace {

// Which bytes of word `w` the range [begin, begin + bytes) covers.
uint8_t BytesOf(uint32_t w, uint32_t begin, uint32_t bytes) {
  if (bytes >= 4) return 0xf;
  return static_cast<uint8_t>(((1u << bytes) - 1) << (begin - 4 * w));
}

}  // namespace

bool OpRecord::KnownTo(const Knowledge& knowledge, uint8_t lane_of_knower) const {
  return std::any_of(over.begin(), over.end(), [&](const Epoch& e) { return knowledge.Knows(lane_of_knower, e); });
}

bool OpRecord::KnownTo(const VectorClock& clock) const {
  return std::any_of(over.begin(), over.end(), [&](const Epoch& e) { return clock.Knows(e); });
}

SharedShadow::SharedShadow(uint32_t base, uint32_t bytes)
    : base_(base),
      // Zero pages are valid words, and most of a CTA's shared memory never sees an ordinary access.
      words_(static_cast<Word*>(std::calloc(bytes / 4 + 8, sizeof(Word)))),
      granules_(bytes / 16 + 2) {
  LS_CHECK(words_ != nullptr, "no memory for the shadow of ", bytes, " bytes of shared memory");
}

void SharedShadow::DropReaders(Word& word) {
  if (word.flags & kSeveralWarps) {
    readers_[word.read_clock].clear();
    free_readers_.push_back(word.read_clock);
  }
  word.reader = 0;
  word.flags = static_cast<uint8_t>(word.flags & kStrongWrite);
}

Rival SharedShadow::CheckReads(const Word& word, uint32_t offset, uint8_t bytes, const Knowledge& knowledge,
                               uint8_t lane, bool strong) const {
  if (word.reader == 0 || (word.bytes >> 4 & bytes) == 0 || (strong && (word.flags & kStrongReads))) return {};
  if (!(word.flags & kSeveralWarps)) {
    if (knowledge.Knows(lane, ReaderOf(word))) return {};
    return {Conflict::kWriteAfterRead, offset, ReaderOf(word), nullptr, word.read_line};
  }
  for (const Reader& reader : readers_[word.read_clock]) {
    if (!knowledge.Knows(lane, reader.moment))
      return {Conflict::kWriteAfterRead, offset, reader.moment, nullptr, reader.line};
  }
  return {};
}

void SharedShadow::AddWarp(Word& word, const Accessor& by) {
  if (!(word.flags & kSeveralWarps)) {
    uint32_t index;
    if (free_readers_.empty()) {
      index = static_cast<uint32_t>(readers_.size());
      readers_.emplace_back();
    } else {
      index = free_readers_.back();
      free_readers_.pop_back();
    }
    readers_[index].push_back({ReaderOf(word), word.read_line});
    word.read_clock = index;
    word.flags = static_cast<uint8_t>((word.flags & ~kSeveralLanes) | kSeveralWarps);
  }
  const Epoch now = by.knowledge->Now(by.lane);
  for (Reader& reader : readers_[word.read_clock]) {
    if (reader.moment.agent != now.agent) continue;
    const bool same_lane = reader.moment.lane == now.lane;
    if (!same_lane && !by.knowledge->Knows(by.lane, reader.moment)) reader.moment.lane = kAllLanes;
    if (same_lane || reader.moment.lane != kAllLanes) reader.moment.lane = now.lane;
    reader.moment.clock = now.clock;
    reader.line = by.line;
    return;
  }
  readers_[word.read_clock].push_back({now, by.line});
}

void SharedShadow::AddReader(Word& word, uint8_t bytes, const Accessor& by) {
  const Epoch now = by.knowledge->Now(by.lane);
  const auto thread = static_cast<uint16_t>(now.agent * kLanes + by.lane + 1);
  const bool strong = by.strong && (word.reader == 0 || (word.flags & kStrongReads));
  const auto strength = static_cast<uint8_t>(strong ? kStrongReads : 0);
  word.flags = static_cast<uint8_t>((word.flags & ~kStrongReads) | strength);
  if (word.flags & kSeveralWarps) return AddWarp(word, by);
  if (word.reader != 0 && word.reader != thread) {
    const Epoch before = ReaderOf(word);
    if (!by.knowledge->Knows(by.lane, before)) {
      if (before.agent != now.agent) return AddWarp(word, by);
      word.flags |= kSeveralLanes;
      word.bytes = static_cast<uint8_t>(word.bytes | bytes << 4);
      word.read_clock = now.clock;
      return;
    }
    word.flags = static_cast<uint8_t>(word.flags & ~kSeveralLanes);
    word.bytes = static_cast<uint8_t>(word.bytes & 0xf);
  }
  // The same lane again keeps what is said about the others.
  word.reader = thread;
  word.read_clock = now.clock;
  word.bytes = static_cast<uint8_t>(word.bytes | bytes << 4);
  word.read_line = by.line;
}

Rival SharedShadow::Read(uint32_t offset, uint32_t bytes, const Accessor& by) {
  Rival rival = CheckAsync(offset, offset + bytes, false, *by.knowledge, by.lane);
  const uint32_t begin = offset - base_;
  for (uint32_t w = begin >> 2, end = (begin + bytes - 1) >> 2; w <= end; ++w) {
    Word& word = words_[w];
    const uint8_t covered = BytesOf(w, begin, bytes);
    granules_[w >> 2].ordinary = true;
    if (word.writer != 0 && (word.bytes & covered) != 0 && !(by.strong && (word.flags & kStrongWrite)) &&
        !by.knowledge->Knows(by.lane, WriterOf(word)) && !rival) {
      rival = {Conflict::kReadAfterWrite, base_ + 4 * w, WriterOf(word), nullptr, word.write_line};
    }
    AddReader(word, covered, by);
  }
  return rival;
}

Rival SharedShadow::Write(uint32_t offset, uint32_t bytes, const Accessor& by) {
  Rival rival = CheckAsync(offset, offset + bytes, true, *by.knowledge, by.lane);
  const Epoch now = by.knowledge->Now(by.lane);
  const uint32_t begin = offset - base_;
  for (uint32_t w = begin >> 2, end = (begin + bytes - 1) >> 2; w <= end; ++w) {
    Word& word = words_[w];
    const uint8_t covered = BytesOf(w, begin, bytes);
    granules_[w >> 2].ordinary = true;
    if (!rival) rival = CheckReads(word, base_ + 4 * w, covered, *by.knowledge, by.lane, by.strong);
    // Lanes of one warp that store to one word in turn mostly store one value: not reported.
    if (!rival && word.writer != 0 && word.reader == 0 && (word.bytes & covered) != 0 &&
        !(by.strong && (word.flags & kStrongWrite)) && WriterOf(word).agent != now.agent &&
        !by.knowledge->Knows(by.lane, WriterOf(word))) {
      rival = {Conflict::kWriteAfterWrite, base_ + 4 * w, WriterOf(word), nullptr, word.write_line};
    }
    DropReaders(word);
    word.writer = static_cast<uint16_t>(now.agent * kLanes + by.lane + 1);
    word.write_clock = now.clock;
    word.bytes = covered;
    word.fences = by.fences;
    word.write_line = by.line;
    word.flags = by.strong ? kStrongWrite : 0;
  }
  return rival;
}

Rival SharedShadow::CheckAsync(uint32_t begin, uint32_t end, bool write, const Knowledge& issuer, uint8_t lane) const {
  for (uint32_t g = (begin - base_) >> 4, last = (end - base_ + 15) >> 4; g < last; ++g) {
    const Granule& granule = granules_[g];
    const uint32_t offset = base_ + 16 * g;
    bool read_since = false;
    for (const RecordRef& read : granule.reads) {
      if (!read) break;
      read_since = true;
      if (write && !read->KnownTo(issuer, lane)) return {Conflict::kWriteAfterRead, offset, {}, read.get(), read->line};
    }
    if (granule.write && !(write && read_since) && !granule.write->KnownTo(issuer, lane)) {
      return {write ? Conflict::kWriteAfterWrite : Conflict::kReadAfterWrite,
              offset,
              {},
              granule.write.get(),
              granule.write->line};
    }
  }
  return {};
}

Rival SharedShadow::CheckWords(uint32_t begin, uint32_t end, bool write, const Knowledge& issuer, uint8_t lane) const {
  for (uint32_t g = (begin - base_) >> 4, last = (end - base_ + 15) >> 4; g < last; ++g) {
    if (!granules_[g].ordinary) continue;
    for (uint32_t w = std::max(4 * g, (begin - base_) >> 2); w < 4 * g + 4 && 4 * w < end - base_; ++w) {
      const Word& word = words_[w];
      if (write) {
        if (Rival rival = CheckReads(word, base_ + 4 * w, 0xf, issuer, lane, false)) return rival;
      }
      if (word.writer != 0 && !(write && word.reader != 0) && !issuer.Knows(lane, WriterOf(word))) {
        return {write ? Conflict::kWriteAfterWrite : Conflict::kReadAfterWrite, base_ + 4 * w, WriterOf(word), nullptr,
                word.write_line};
      }
    }
  }
  return {};
}

void SharedShadow::NoteAsync(uint32_t begin, uint32_t end, bool write, const RecordRef& record) {
  for (uint32_t g = (begin - base_) >> 4, last = (end - base_ + 15) >> 4; g < last; ++g) {
    Granule& granule = granules_[g];
    if (write) {
      granule.write = record;
      for (RecordRef& read : granule.reads) read = RecordRef();
      continue;
    }
    size_t at = 0;
    while (at + 1 < granule.reads.size() && granule.reads[at] && granule.reads[at]->issuer != record->issuer) ++at;
    granule.reads[at] = record;
  }
}

void SharedShadow::Forget(uint32_t begin, uint32_t end) {
  for (uint32_t g = (begin - base_) >> 4, last = (end - base_ + 15) >> 4; g < last; ++g) {
    if (!granules_[g].ordinary) continue;
    for (uint32_t w = 4 * g; w < 4 * g + 4; ++w) {
      if (4 * w + 4 <= begin - base_ || 4 * w >= end - base_) continue;
      DropReaders(words_[w]);
      words_[w] = {};
    }
    granules_[g].ordinary = begin - base_ > 16 * g || end - base_ < 16 * g + 16;
  }
}

}  // namespace laneshift::emulator
