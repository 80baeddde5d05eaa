// The last accesses of a CTA's shared memory and Tensor Memory, by whom, so that the next access can be checked for
// being ordered after them.
//
// Ordinary accesses are remembered per 32-bit word (the last write, and the reads since), completed asynchronous
// operations per 16-byte granule, and per column and 16 lanes of Tensor Memory. Granules of a KiB and adjacent columns
// with the same history share one record, and mostly so do the words of a granule and the granules of a row. An access
// is ordered after another one if the accessing lane knows a moment at which the other one was complete
// (vector_clock.h). A write covers the reads before it, and reads cover the write before them: each was checked when it
// happened. Thread-safety: none; it belongs to its cluster's host thread. It exists only with hazard checks.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/pool.h"
#include "emulator/hazards/vector_clock.h"
#include "emulator/units/cta_state.h"
#include "emulator/units/tensor_memory.h"

namespace laneshift::emulator {

// What remains of an asynchronous operation after a thread has observed its completion.
struct OpRecord : base::Pooled<OpRecord> {
  std::vector<Epoch> over;  // the moments at which it was complete
  const class Warp* issuer = nullptr;
  int lane = 0;
  int line = 0;
  uint8_t kind = 0;  // OpKind
  uint8_t cta_group = 0;
  bool shifts_a = false;
  uint64_t order_key = 0;
  // Of shared memory, where it covers part of a granule.
  uint32_t begin = 0, end = ~0u;

  // As if it were new, except that its list keeps its memory.
  void Reset();
  bool KnownTo(const Knowledge& knowledge, uint8_t lane_of_knower) const;
  bool KnownTo(const VectorClock& clock) const;
  bool Touches(SharedRange range) const { return begin < range.end && range.begin < end; }
};

using RecordRef = base::Counted<OpRecord>;

// One lane about to access memory by an ordinary instruction.
struct Accessor {
  const Knowledge* knowledge;
  uint8_t lane;
  bool strong;      // atomic, volatile, relaxed or stronger: does not race with other strong accesses
  uint16_t fences;  // fence.proxy.async that the lane has executed
  int line;
};

// The lanes of `mask` about to access `bytes` bytes each, by one ordinary instruction that is not strong.
struct WarpAccess {
  const Knowledge* knowledge;
  uint32_t mask;
  uint32_t bytes;           // a power of two; the offsets are multiples of it
  const uint64_t* offsets;  // by lane
  const uint32_t* fences;   // fence.proxy.async that each lane has executed
  int line;
  // The distance between the addresses of adjacent lanes, if all 32 take part with the same number of fences and it is
  // constant; else 0.
  uint32_t stride;

  bool consecutive() const { return stride == bytes; }
  Accessor Of(int lane) const {
    return {knowledge, static_cast<uint8_t>(lane), false, static_cast<uint16_t>(fences[lane]), line};
  }
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

// An ordinary store of a lane to a word that another thread has stored to; nothing orders the two.
struct StoreRace {
  int lane;
  Rival rival;
};

class SharedShadow {
 public:
  // `base`: the offset at which the memory begins.
  SharedShadow(uint32_t base, uint32_t bytes);
  // Back to the initial state.
  void Reset();

  // Records an ordinary access and returns what it is not ordered after.
  Rival Read(uint32_t offset, uint32_t bytes, const Accessor& by);
  Rival Write(uint32_t offset, uint32_t bytes, const Accessor& by);
  // The same as Read or Write of each lane of `access`, in lane order; returns the lanes that are not ordered after
  // an earlier access.
  using LaneRivals = std::vector<std::pair<int, Rival>>;
  LaneRivals ReadLanes(const WarpAccess& access) { return AccessLanes<false>(access); }
  LaneRivals WriteLanes(const WarpAccess& access) { return AccessLanes<true>(access); }
  // The words that one lane has just stored were stored by a warp-wide instruction: all its lanes know.
  void NoteWarpWrite(uint32_t offset, uint32_t bytes);
  // What an access of `lane` is not ordered after: asynchronous operations on the granules of `word` and the bytes of
  // `within`, and ordinary accesses of [begin, end). Records nothing.
  Rival CheckAsync(GranuleWord word, SharedRange within, bool write, const Knowledge& issuer, uint8_t lane) const;
  Rival CheckWords(uint32_t begin, uint32_t end, bool write, const Knowledge& issuer, uint8_t lane) const;
  // An operation whose completion a thread has observed.
  void NoteAsync(GranuleWord word, bool write, const RecordRef& record);
  // Whether an ordinary access has touched any of these granules since their records were dropped.
  bool Ordinary(GranuleWord word) const { return (blocks_[word.block].ordinary & word.mask) != 0; }
  // Updates the records of earlier accesses for an asynchronous write.
  void Forget(uint32_t begin, uint32_t end);

  // The first word of [begin, end) that was stored without a proxy fence after it. `fenced(moment, lane, had)`: whether
  // there is one after the access of `lane` at that moment, when the lane had executed `had` of them. Before a `write`,
  // a load covers the store that it saw: such words are left to FindUnfencedRead.
  struct Unfenced {
    uint32_t offset = 0;
    uint16_t agent = 0;
    uint8_t lane = 0;
    int line = 0;
  };
  // The same for the first word that was loaded.
  template <typename Fenced>
  bool FindUnfencedRead(uint32_t begin, uint32_t end, Fenced fenced, Unfenced& found) const {
    bool any = false;
    const auto check = [&](uint32_t w, const Epoch& moment, uint8_t lane, uint16_t had, int line) {
      if (any || fenced(moment, lane, had)) return;
      found = {base_ + 4 * w, moment.agent, lane, line};
      any = true;
    };
    const auto unread = [](const Granule& granule) { return granule.read == 0; };
    ForEachOrdinary(begin, end, unread, [&](uint32_t w, const Word& word) {
      if (any || word.reader == 0) return;
      if (!(word.flags & kSeveralWarps))
        return check(w, ReaderOf(word), LaneOf(word.reader), word.read_fences, word.read_line);
      for (const Reader& reader : readers_[word.read_clock])
        check(w, reader.moment, reader.lane, reader.fences, reader.line);
    });
    return any;
  }
  template <typename Fenced>
  bool FindUnfenced(uint32_t begin, uint32_t end, bool write, Fenced fenced, Unfenced& found) const {
    bool any = false;
    Word fine{};  // adjacent words mostly have the same history
    const auto is_fine = [&](const Granule& granule) {
      if (any || (granule.written & (write ? ~uint32_t{granule.read} : ~0u)) == 0) return true;
      const uint8_t lane = LaneOf(granule.writer);
      const Epoch moment = {AgentOf(granule.writer), lane, granule.write_clock};
      return granule.write_scale == 0 && fenced(moment, lane, granule.fences);
    };
    ForEachOrdinary(begin, end, is_fine, [&](uint32_t w, const Word& word) {
      if (any || word.writer == 0 || (write && word.reader != 0)) return;
      if (word == fine) return;
      fine = word;
      const Epoch moment = WriterOf(word);
      const uint8_t lane = LaneOf(word.writer);
      if (fenced(moment, lane, word.fences)) return;
      found = {base_ + 4 * w, moment.agent, lane, word.write_line};
      any = true;
    });
    return any;
  }

 private:
  // Thread numbers are agent * 32 + lane + 1; 0: no thread.
  static uint16_t AgentOf(uint16_t thread) { return static_cast<uint16_t>((thread - 1) / kLanes); }
  static uint8_t LaneOf(uint16_t thread) { return static_cast<uint8_t>((thread - 1) % kLanes); }
  // Which bytes of a word lanes of one warp have read: elements smaller than a word have a lane each.
  struct ReadBytes {
    uint8_t first, others;  // by one lane, and by the others

    // Whether another lane than this one may have read any of `bytes`. Three lanes or more are not distinguished.
    bool Rival(bool is_first, uint8_t bytes) const { return ((is_first ? others : first) & bytes) != 0; }
    bool operator==(const ReadBytes&) const = default;
  };
  struct Word {
    uint32_t write_clock, read_clock;  // read_clock: an index into readers_ if there are several
    uint16_t writer, reader;
    uint16_t fences, read_fences;
    uint8_t bytes;  // low half: written, high half: read
    uint8_t flags;
    ReadBytes read_by;  // with kSeveralLanes: `reader` is the first of them
    int32_t write_line, read_line;

    bool operator==(const Word& other) const { return std::memcmp(this, &other, sizeof(Word)) == 0; }
  };
  static_assert(std::has_unique_object_representations_v<Word>);
  // The four words of a granule: those in `written` were written at one moment by one thread or by consecutive
  // threads, and those in `read` were read since in the same way, all by weak accesses of whole words. Anything else
  // has per-word records, in words_.
  struct Granule {
    uint32_t write_clock, read_clock;
    uint16_t writer, reader;  // of word 0; word k has the thread `writer + (k << write_scale >> 2)`
    uint16_t fences, read_fences;
    uint8_t write_scale, read_scale;
    uint8_t bytes;          // of each word that were written last, as in Word: several lanes may write one
    uint8_t written, read;  // one bit per word
    bool apart;
    bool row;  // of the first granule of a row: the record is the row's
    std::array<int32_t, 4> write_lines, read_lines;
  };
  // Eight granules. A row that a warp has filled has one record until an access does not treat its granules alike:
  // granule g has the threads of the first one plus g << scale, and the rest in common.
  static constexpr uint32_t kRow = 8;
  enum : uint8_t { kStrongWrite = 1, kStrongReads = 2, kSeveralLanes = 4, kSeveralWarps = 8, kWarpWrite = 16 };
  struct Reader {
    Epoch moment;
    int line;
    uint8_t lane;  // the latest one
    uint16_t fences;
    uint8_t first;  // the lane of read_by
    ReadBytes read_by;
  };
  // Granules of one KiB that the same asynchronous operations have accessed.
  struct Segment {
    uint64_t mask = 0;
    RecordRef write;
    std::array<RecordRef, 3> reads;  // the latest ones of different issuers

    bool Alike(const Segment& other) const;
    // Whether a write by `record` is adjacent to the one that is recorded here: single words have neighbours.
    bool IsAdjacent(const OpRecord& record) const { return write && !record.Touches({write->begin, write->end}); }
    void AddRead(const RecordRef& record);
  };
  struct Block {
    // Disjoint, except where operations wrote part of a granule; granules in none have seen no operation.
    std::vector<Segment> segments;
    uint64_t ordinary = 0;  // granules whose words ordinary accesses have touched
  };
  struct Free {
    void operator()(void* cells) const { std::free(cells); }
  };

  // Which bytes of word `w` the range [begin, begin + bytes) covers, or of each of its words.
  static uint8_t BytesOf(uint32_t w, uint32_t begin, uint32_t bytes) {
    if (bytes >= 4) return 0xf;
    return static_cast<uint8_t>(((1u << bytes) - 1) << (begin - 4 * w));
  }
  static Epoch WriterOf(const Word& word) {
    return {AgentOf(word.writer), word.flags & kWarpWrite ? kAnyLane : LaneOf(word.writer), word.write_clock};
  }
  static Epoch ReaderOf(const Word& word) {
    return {AgentOf(word.reader), word.flags & kSeveralLanes ? kAllLanes : LaneOf(word.reader), word.read_clock};
  }
  Rival CheckReads(const Word& word, uint32_t offset, uint8_t bytes, const Knowledge& knowledge, uint8_t lane,
                   bool strong) const;
  // One lane, or consecutive lanes, about to access words of a granule by an ordinary instruction.
  struct GranuleAccess {
    uint16_t thread;  // of the first word; of several the last one
    uint8_t scale;    // as in Granule
    uint8_t bytes;    // of each word that the last lane accesses
    bool fills;       // else it is one lane that accesses part of it
    uint16_t fences;
    uint32_t clock;
    int line;
    const VectorClock* known;  // to all these lanes
  };
  static Word WordOf(const Granule& granule, uint32_t k);
  bool InRow(uint32_t granule) const { return granules_[granule & ~(kRow - 1)].row; }
  // The record of a granule of a row.
  Granule GranuleOfRow(uint32_t granule) const;
  void Unfold(uint32_t row);
  // A granule, which has its own record from now on.
  Granule& At(uint32_t granule) {
    if (InRow(granule)) Unfold(granule & ~(kRow - 1));
    return granules_[granule];
  }
  // The word, which has its own record from now on.
  Word& Apart(uint32_t w) {
    if (!At(w / 4).apart) Split(w);
    return words_[w];
  }
  void Split(uint32_t w);
  void ForgetGranule(uint32_t at, uint32_t begin, uint32_t end);
  static bool IsOver(uint16_t thread, uint32_t clock, const GranuleAccess& access) {
    return access.known->Knows({AgentOf(thread), kAllLanes, clock});
  }
  // If the granule holds only accesses that all its lanes know to be complete, or made themselves, and the access fits:
  // records it. False: the general case, and nothing was changed. TouchPart: `words` words from `first` on, of
  // one lane.
  template <bool kWrite>
  static bool TouchGranule(Granule& granule, const GranuleAccess& access);
  template <bool kWrite>
  static bool TouchPart(Granule& granule, uint32_t first, uint32_t words, const GranuleAccess& access);
  // One lane that accesses part of a granule, `covered` of the bytes of each of its words, and finds nothing in them
  // but accesses that it knows, or made itself.
  template <bool kWrite>
  bool TouchLane(uint32_t w, uint8_t covered, uint32_t words, const GranuleAccess& access);
  // The same for a row, of which each granule is accessed by as many lanes; `w` is the first word.
  template <bool kWrite>
  bool TouchRow(const WarpAccess& access, uint32_t w, const GranuleAccess& one);
  // The rows among the granules [begin, end), which lanes of `access` have filled.
  void FoldRows(const WarpAccess& access, uint32_t begin, uint32_t end);
  // The lanes of a row; 0: the access treats no rows alike.
  static int LanesOfRow(const WarpAccess& access);
  static void FillGranule(Granule& granule, const GranuleAccess& access);
  static uint8_t ScaleOf(uint32_t lane_bytes) {
    return lane_bytes >= 16 ? 0 : static_cast<uint8_t>(4 - std::countr_zero(lane_bytes));
  }
  // Lanes of one granule, and of one word.
  static int LanesEach(uint32_t lane_bytes) { return lane_bytes >= 16 ? 1 : static_cast<int>(16 / lane_bytes); }
  static int LanesOfWord(uint32_t lane_bytes) { return lane_bytes >= 4 ? 1 : static_cast<int>(4 / lane_bytes); }
  // How many lanes of `access`, from the one of the lowest bit of `rest`, cover whole granules of one KiB in lane
  // order.
  static int LanesOfGranules(const WarpAccess& access, uint32_t rest);
  template <bool kWrite>
  void TouchApart(const WarpAccess& access, const GranuleAccess& one, int lane, int lanes, uint32_t first,
                  bool unsettled, LaneRivals& rivals);
  template <bool kWrite>
  void TouchLaneApart(const WarpAccess& access, int lane, uint32_t first, bool unsettled, LaneRivals& rivals);
  int ReadTogether(const WarpAccess& access, const GranuleAccess& one, int lane, uint32_t w);
  bool RepeatsRead(const WarpAccess& access, const GranuleAccess& one, int lane, uint32_t first, uint32_t words);
  template <bool kWrite>
  void TouchWords(const WarpAccess& access, int lane, uint32_t first, uint32_t words, Rival& rival);
  void ReadWord(uint32_t w, uint8_t covered, const Accessor& by, Rival& rival);
  void WriteWord(uint32_t w, uint8_t covered, const Accessor& by, Rival& rival);
  template <bool kWrite>
  LaneRivals AccessLanes(const WarpAccess& access);
  static bool ReadSegment(std::vector<Segment>& segments, uint64_t mask, const RecordRef& record);
  // The granules of a block for which some lane may have to wait for an asynchronous operation.
  uint64_t Unsettled(uint32_t block, bool write, const VectorClock& known) const;
  // A word of whose accesses a lane was found to know. Adjacent words mostly have the same history.
  struct KnownWord {
    bool any = false;
    uint8_t flags = 0;
    uint16_t writer = 0, reader = 0;
    uint32_t write_clock = 0, read_clock = 0;
    bool Is(const Word& word) const {
      return any && word.write_clock == write_clock && word.read_clock == read_clock && word.writer == writer &&
             word.reader == reader && word.flags == flags;
    }
  };
  // Whether a weak access by `thread`, a lane of the warp that knows `knowledge`, finds nothing there but accesses that
  // it made itself or knows to be complete.
  template <bool kWrite>
  static bool IsPlain(const Word& word, uint16_t thread, uint8_t lane, const Knowledge& knowledge, KnownWord& known);
  void AddReader(Word& word, uint8_t bytes, const Accessor& by);
  void AddWarp(Word& word, uint8_t bytes, const Accessor& by);
  void DropReaders(Word& word);
  uint64_t& OrdinaryOf(uint32_t word) { return blocks_[(base_ + 4 * word) / GranuleWord::kBlockBytes].ordinary; }
  static uint64_t BitOf(uint32_t word) { return uint64_t{1} << (word / 4 % 64); }
  // Calls visit(index, word) for the words of [begin, end) whose granule ordinary accesses have touched, except
  // those of granules without per-word records for which skip(granule) holds; for the first of words that are known
  // to have the same history.
  template <typename Skip, typename Visit>
  void ForEachOrdinary(uint32_t begin, uint32_t end, Skip skip, Visit visit) const {
    ForEachGranuleWord({begin, end}, [&](GranuleWord word) {
      for (uint64_t rest = word.mask & blocks_[word.block].ordinary; rest != 0; rest &= rest - 1) {
        const uint32_t at = word.block * GranuleWord::kBlockBytes + static_cast<uint32_t>(std::countr_zero(rest)) * 16;
        const uint32_t first = std::max(at, begin & ~3u), last = std::min(at + 16, end);
        const uint32_t index = (at - base_) / 16;
        Granule of_row;
        const Granule& granule = InRow(index) ? of_row = GranuleOfRow(index) : granules_[index];
        if (!granule.apart && skip(granule)) continue;
        const bool alike = !granule.apart && (granule.written == 0 || granule.written == 0xf) &&
                           (granule.read == 0 || granule.read == 0xf) && granule.write_scale == 0 &&
                           granule.read_scale == 0;
        const uint32_t step = alike ? 16 : 4;
        for (uint32_t offset = first; offset < last; offset = (offset & ~(step - 1)) + step) {
          const uint32_t w = (offset - base_) / 4;
          visit(w, granule.apart ? words_[w] : WordOf(granule, (offset - at) / 4));
        }
      }
    });
  }

  uint32_t base_, bytes_;
  std::unique_ptr<Granule[], Free> granules_;
  std::unique_ptr<Word[], Free> words_;  // of granules with per-word records
  std::vector<Block> blocks_;            // from offset 0
  std::vector<std::vector<Reader>> readers_;
  std::vector<uint32_t> free_readers_;
  std::vector<Segment> changed_;  // of NoteAsync, empty between its calls
};

// The same for a CTA's Tensor Memory, which only asynchronous operations access.
class TensorShadow {
 public:
  struct Cell {
    RecordRef write, read;
    uint64_t written_at = 0, read_at = 0;  // cluster ticks, for fences

    bool operator==(const Cell& other) const {
      return write.get() == other.write.get() && read.get() == other.read.get() && written_at == other.written_at &&
             read_at == other.read_at;
    }
  };
  // Lanes are recorded by 16: two accumulators with M = 64 share columns, one in lanes 0 to 15 of each warp's 32 and
  // one in lanes 16 to 31.
  static constexpr int kGroupLanes = 16, kGroups = TensorMemory::kLanes / kGroupLanes;
  struct Groups {
    int begin, end;
    bool Contains(int group) const { return begin <= group && group < end; }
  };
  // The groups of which `range` has lanes.
  static Groups GroupsOf(const TensorRange& range) {
    return {range.lane / kGroupLanes, (range.lane + range.lanes + kGroupLanes - 1) / kGroupLanes};
  }

  // Calls visit(first column, end, cell) for the columns [begin, end) of a group, until it returns false. Returns
  // true if it never did.
  template <typename Visit>
  bool ForEach(int group, int begin, int end, Visit visit) const {
    for (const Run& run : runs_[static_cast<size_t>(group)]) {
      if (run.end <= begin) continue;
      if (run.begin >= end) break;
      if (!visit(std::max(run.begin, begin), std::min(run.end, end), run.cell)) return false;
    }
    return true;
  }
  // Calls change(cell) for the history of the columns [begin, end) of a group.
  template <typename Change>
  void Update(int group, int begin, int end, Change change) {
    std::vector<Run>& runs = runs_[static_cast<size_t>(group)];
    const size_t first = Cut(runs, begin), last = Cut(runs, end);
    for (size_t r = first; r < last; ++r) change(runs[r].cell);
    Join(runs, first == 0 ? 0 : first - 1, std::min(last + 1, runs.size()));
  }
  void Forget(int column, int columns) {
    for (int group = 0; group < kGroups; ++group)
      Update(group, column, column + columns, [](Cell& cell) { cell = {}; });
  }

 private:
  // Adjacent columns with the same history.
  struct Run {
    int begin, end;
    Cell cell;
  };
  // Makes a run begin at `column`: its index.
  static size_t Cut(std::vector<Run>& runs, int column);
  // Those of the runs [first, last) that are adjacent and alike.
  static void Join(std::vector<Run>& runs, size_t first, size_t last);

  std::array<std::vector<Run>, kGroups> runs_ = AllColumns();
  static std::array<std::vector<Run>, kGroups> AllColumns();
};

}  // namespace laneshift::emulator
