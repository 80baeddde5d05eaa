// Who touched what in a CTA's shared memory and Tensor Memory last, so that the next access can be asked whether it is
// ordered behind that.
//
// Ordinary accesses are remembered per 32-bit word (the last write, and the reads since), completed asynchronous
// operations per 16-byte granule, and per column and quarter of the lanes of Tensor Memory. An access is ordered behind
// another one if the accessing lane knows a moment at which the other one was over (vector_clock.h). A write stands for
// the reads before it, and reads stand for the write before them: each was checked when it happened.
// Thread-safety: none; it belongs to its cluster's host thread. It exists only where hazards are looked for.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "emulator/units/tensor_memory.h"
#include "emulator/vector_clock.h"

namespace laneshift::emulator {

// What is left of an asynchronous operation after somebody has seen its completion.
struct OpRecord {
  std::vector<Epoch> over;  // at each of these moments it was over
  const class Warp* issuer = nullptr;
  int lane = 0;
  int line = 0;
  uint8_t kind = 0;  // OpKind
  uint8_t cta_group = 0;
  uint64_t order_key = 0;
  uint32_t references = 0;

  bool KnownTo(const Knowledge& knowledge, uint8_t lane_of_knower) const;
  bool KnownTo(const VectorClock& clock) const;
};

// A counted reference.
class RecordRef {
 public:
  RecordRef() = default;
  explicit RecordRef(OpRecord* record) : record_(record) { Hold(); }
  RecordRef(const RecordRef& other) : record_(other.record_) { Hold(); }
  RecordRef(RecordRef&& other) noexcept : record_(std::exchange(other.record_, nullptr)) {}
  RecordRef& operator=(RecordRef other) noexcept {
    std::swap(record_, other.record_);
    return *this;
  }
  ~RecordRef() {
    if (record_ != nullptr && --record_->references == 0) delete record_;
  }
  explicit operator bool() const { return record_ != nullptr; }
  OpRecord* operator->() const { return record_; }
  OpRecord& operator*() const { return *record_; }
  OpRecord* get() const { return record_; }

 private:
  void Hold() {
    if (record_ != nullptr) ++record_->references;
  }
  OpRecord* record_ = nullptr;
};

// One lane about to touch memory by an ordinary instruction.
struct Accessor {
  const Knowledge* knowledge;
  uint8_t lane;
  bool strong;      // atomic, volatile, relaxed or stronger: does not race with its like
  uint16_t fences;  // fence.proxy.async that the lane has executed
  int line;
};

enum class Conflict : uint8_t { kNone, kReadAfterWrite, kWriteAfterWrite, kWriteAfterRead };

// The other side of a race.
struct Rival {
  Conflict conflict = Conflict::kNone;
  uint32_t offset = 0;
  Epoch moment;                      // an ordinary access
  const OpRecord* record = nullptr;  // else the operation
  int line = 0;

  explicit operator bool() const { return conflict != Conflict::kNone; }
};

class SharedShadow {
 public:
  // `base`: the offset at which the memory begins.
  SharedShadow(uint32_t base, uint32_t bytes);

  // Remembers an ordinary access and says what it is not ordered behind.
  Rival Read(uint32_t offset, uint32_t bytes, const Accessor& by);
  Rival Write(uint32_t offset, uint32_t bytes, const Accessor& by);
  // What an asynchronous operation of `lane` is not ordered behind: other operations, and ordinary accesses. Nothing is
  // remembered yet.
  Rival CheckAsync(uint32_t begin, uint32_t end, bool write, const Knowledge& issuer, uint8_t lane) const;
  Rival CheckWords(uint32_t begin, uint32_t end, bool write, const Knowledge& issuer, uint8_t lane) const;
  // An operation whose completion somebody has seen.
  void NoteAsync(uint32_t begin, uint32_t end, bool write, const RecordRef& record);
  // What an asynchronous write makes of earlier accesses.
  void Forget(uint32_t begin, uint32_t end);

  // The first word of [begin, end) that was stored without a proxy fence after it. `fences(agent, lane)`: how many the
  // lane has executed by now.
  struct Unfenced {
    uint32_t offset = 0;
    uint16_t agent = 0;
    uint8_t lane = 0;
    int line = 0;
  };
  template <typename Fences>
  bool FindUnfenced(uint32_t begin, uint32_t end, Fences fences, Unfenced& found) const {
    for (uint32_t g = (begin - base_) >> 4, last = (end - base_ + 15) >> 4; g < last; ++g) {
      if (!granules_[g].ordinary) continue;
      for (uint32_t w = std::max(4 * g, (begin - base_) >> 2); w < 4 * g + 4 && 4 * w < end - base_; ++w) {
        const Word& word = words_[w];
        if (word.writer == 0) continue;
        const auto agent = static_cast<uint16_t>((word.writer - 1) / kLanes);
        const auto lane = static_cast<uint8_t>((word.writer - 1) % kLanes);
        if (static_cast<uint16_t>(fences(agent, lane)) != word.fences) continue;
        found = {base_ + 4 * w, agent, lane, word.write_line};
        return true;
      }
    }
    return false;
  }

 private:
  // Thread numbers are agent * 32 + lane + 1; 0: nobody.
  struct Word {
    uint32_t write_clock, read_clock;  // read_clock: an index into readers_ if there are several
    uint16_t writer, reader;
    uint16_t fences;
    uint8_t bytes;  // low half: written, high half: read
    uint8_t flags;
    int32_t write_line, read_line;
  };
  enum : uint8_t { kStrongWrite = 1, kStrongReads = 2, kSeveralLanes = 4, kSeveralWarps = 8 };
  struct Reader {
    Epoch moment;
    int line;
  };
  struct Granule {
    RecordRef write;
    std::array<RecordRef, 3> reads;  // the newest ones of different issuers
    bool ordinary = false;           // its words have been touched by ordinary accesses
  };
  struct Free {
    void operator()(Word* words) const { std::free(words); }
  };

  static Epoch WriterOf(const Word& word) {
    return {static_cast<uint16_t>((word.writer - 1) / kLanes), static_cast<uint8_t>((word.writer - 1) % kLanes),
            word.write_clock};
  }
  static Epoch ReaderOf(const Word& word) {
    return {static_cast<uint16_t>((word.reader - 1) / kLanes),
            word.flags & kSeveralLanes ? kAllLanes : static_cast<uint8_t>((word.reader - 1) % kLanes), word.read_clock};
  }
  Rival CheckReads(const Word& word, uint32_t offset, uint8_t bytes, const Knowledge& knowledge, uint8_t lane,
                   bool strong) const;
  void AddReader(Word& word, uint8_t bytes, const Accessor& by);
  void AddWarp(Word& word, const Accessor& by);
  void DropReaders(Word& word);

  uint32_t base_;
  std::unique_ptr<Word[], Free> words_;
  std::vector<Granule> granules_;
  std::vector<std::vector<Reader>> readers_;
  std::vector<uint32_t> free_readers_;
};

// The same for a CTA's Tensor Memory, which only asynchronous operations touch.
class TensorShadow {
 public:
  struct Cell {
    RecordRef write, read;
    uint64_t written_at = 0, read_at = 0;  // cluster ticks, for fences
  };
  static constexpr int kQuarters = 4;

  Cell& At(int column, int quarter) { return cells_[static_cast<size_t>(column * kQuarters + quarter)]; }
  void Forget(int column, int columns) {
    for (int c = column * kQuarters; c < (column + columns) * kQuarters; ++c) cells_[static_cast<size_t>(c)] = {};
  }

 private:
  std::vector<Cell> cells_ = std::vector<Cell>(static_cast<size_t>(TensorMemory::kColumns * kQuarters));
};

}  // namespace laneshift::emulator
