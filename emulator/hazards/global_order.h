// GlobalOrder: the last accesses of global memory, by whom, across the clusters of a grid and of concurrent grids, and
// what synchronising words carry from one cluster to another.
//
// Ordinary accesses are remembered per 32-bit word (the last write and the last read), mostly for four words together;
// bulk copies per 16 bytes. An access is ordered after another one if the accessing lane knows a moment at which that
// one was complete; a lane learns of accesses by threads of other clusters from words of global memory that they
// released and it acquired, each at device scope (vector_clock.h). Left out on purpose: accesses of one warp among
// themselves, all readers but the last one, and shadow above kMostBytes. Lost records make it miss hazards and never
// report false ones.
//
// Thread-safety: all of it may be called from all host threads of a launch.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "emulator/hazards/vector_clock.h"
#include "emulator/machine/limits.h"
#include "emulator/machine/memory.h"

namespace laneshift::emulator {

struct DecodedKernel;
struct GridShape;

// One lane that accesses global memory, of a cluster as GlobalOrder counts them.
struct GlobalViewer {
  const Knowledge* knowledge;
  uint8_t lane;  // kAllLanes: the warp as a whole
  uint32_t cluster;

  bool Knows(uint32_t of, const Epoch& moment) const {
    if (of == cluster && knowledge->Knows(lane, moment)) return true;
    return knowledge->View(lane).KnowsOf(of, moment);
  }
};

// A recorded access.
struct GlobalAccess {
  enum : uint8_t { kStrong = 1, kPending = 2, kBulkLoad = 4 };
  uint32_t cluster = 0;  // from 1; 0: no cluster
  uint32_t clock = 0;
  int32_t line = 0;
  uint16_t agent = 0;
  uint16_t bytes = 0;   // of the word, or of the 16 bytes
  uint16_t fences = 0;  // fence.proxy.async for global memory that the lane had executed
  uint8_t lane = 0;
  uint8_t flags = 0;

  Epoch moment() const { return {agent, lane, clock}; }
  bool operator==(const GlobalAccess&) const = default;
};

struct GlobalRange {
  uint64_t begin, end;
  bool operator==(const GlobalRange&) const = default;
};

struct GlobalRival {
  enum class Kind : uint8_t { kNone, kRace, kPending, kUnfenced } kind = Kind::kNone;
  GlobalAccess access;
  bool wrote = false, bulk = false;  // of the access
  uint64_t address = 0;

  explicit operator bool() const { return kind != Kind::kNone; }
};

class GlobalOrder {
 public:
  explicit GlobalOrder(LimitMeter& meter) : meter_(meter) {}
  ~GlobalOrder();
  GlobalOrder(const GlobalOrder&) = delete;
  GlobalOrder& operator=(const GlobalOrder&) = delete;

  // A grid begins: the number of its first cluster. Called by the driver's thread, between or before launches.
  struct Grid {
    const DecodedKernel* kernel;
    const GridShape* shape;
    uint32_t first, clusters;
  };
  uint32_t AddGrid(const DecodedKernel& kernel, const GridShape& shape, uint32_t clusters);
  // REQUIRES: a cluster of a grid that was added.
  const Grid& GridOf(uint32_t cluster) const;

  // Where the accesses of an allocation are recorded.
  struct Directory;
  // nullptr: it exceeds the shadow's limit.
  Directory* Find(const Allocation& allocation);

  // An ordinary access, of one aligned block of at most 32 bytes: records it and returns what it is not
  // ordered after.
  GlobalRival Touch(Directory& at, uint64_t address, uint32_t bytes, bool write, const GlobalViewer& who,
                    GlobalAccess access);
  // The same for weak accesses by all lanes of `mask`, in lane order; returns the lanes that are not ordered after one.
  struct LaneAccesses {
    uint32_t mask, bytes;
    const uint64_t* addresses;  // by lane
    const uint32_t* fences;     // GlobalAccess::fences, by lane
    bool write;
  };
  using LaneRivals = std::vector<std::pair<int, GlobalRival>>;
  LaneRivals TouchLanes(Directory& at, const LaneAccesses& lanes, GlobalViewer who, GlobalAccess access);
  using Fenced = std::function<bool(const GlobalAccess&)>;
  // A bulk copy that is being issued. `fenced(access)`: whether a proxy fence follows that ordinary write. A
  // write is recorded as pending.
  GlobalRival Issue(Directory& at, uint64_t begin, uint64_t end, bool write, const GlobalViewer& who,
                    const GlobalAccess& access, const Fenced& fenced);
  // Whether a bulk load there can find a rival.
  static bool Written(const Directory& at);
  // The copy is complete: at the moment of `access`. FinishLoad: of all that an operation has loaded there.
  void FinishLoad(Directory& at, std::span<const GlobalRange> loaded, const GlobalAccess& access);
  void FinishStore(Directory& at, uint64_t begin, uint64_t end, const GlobalAccess& access);

  // ---- words by which clusters synchronise ----
  void Release(const uint8_t* word, uint32_t cluster, VectorClock told, const VectorClock& fenced);
  // What clusters have released at the word; empty if none has.
  VectorClock Released(const uint8_t* word);

 private:
  static constexpr uint64_t kPageBytes = 1024;
  static constexpr uint64_t kMostBytes = uint64_t{1} << 30;
  static constexpr size_t kMostWords = 1 << 16;
  enum Table : uint8_t { kWordWrites, kWordReads, kBulkWrites, kBulkReads };
  // Tables are allocated on first use: most pages are read by bulk copies and by nothing else.
  // The words of 16 bytes whose last accesses were weak ones of one moment, by one lane or by consecutive lanes. All
  // others have a table of words.
  struct Block {
    uint32_t cluster, clock;
    uint16_t agent, fences;
    uint8_t lane, scale;  // word k: of the lane `lane + (k << scale >> 2)`, the last one where several share it
    uint8_t words;        // one bit per word
    bool apart;
    std::array<int32_t, 4> lines;
  };
  // A page has few bulk copies, each with many cells.
  struct BulkTable {
    struct Cell {
      uint16_t access, bytes;  // bytes 0: none
    };
    std::vector<GlobalAccess> accesses;  // some that no cell has any more
    std::unique_ptr<Cell[]> cells;       // null: there was none
  };
  struct Page {
    std::atomic_flag busy;
    std::atomic<bool> written{false};                      // there is a table of writes
    std::array<std::unique_ptr<Block[]>, 2> blocks;        // of kWordWrites and kWordReads
    std::array<std::unique_ptr<GlobalAccess[]>, 2> words;  // of the same, where blocks are apart
    std::array<BulkTable, 2> bulk;                         // of kBulkWrites and kBulkReads

    BulkTable& BulkOf(Table table) { return bulk[table - kBulkWrites]; }
    const BulkTable& BulkOf(Table table) const { return bulk[table - kBulkWrites]; }
  };
  static constexpr bool IsWords(Table table) { return table == kWordWrites || table == kWordReads; }
  static constexpr bool IsBulk(Table table) { return table == kBulkWrites || table == kBulkReads; }
  static constexpr bool IsWrite(Table table) { return table == kWordWrites || table == kBulkWrites; }
  class Lock {
   public:
    explicit Lock(Page& page) : page_(page) {
      while (page_.busy.test_and_set(std::memory_order_acquire)) {
      }
    }
    ~Lock() { page_.busy.clear(std::memory_order_release); }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    Page& page_;
  };

  void NoteWrite(Directory& at, bool write);
  // nullptr: nothing of it was recorded yet.
  static Page* KnownPage(const Directory& at, uint64_t address);
  Page* PageAt(Directory& at, uint64_t address);
  bool Take(uint64_t bytes);
  void Give(uint64_t bytes);
  template <typename Cell>
  Cell* TableOf(Page& page, Table table, std::unique_ptr<Cell[]>& cells);
  static GlobalAccess WordOf(const Block& block, uint64_t k);
  // nullptr: nothing of that table was recorded yet. `word`: room for one that is recorded with others.
  static const GlobalAccess* CellOf(const Page& page, Table table, uint64_t cell, GlobalAccess& word);
  // What the table records of [begin, end), which lies in one page, and `who` does not know.
  GlobalRival Check(const Page& page, Table table, uint64_t begin, uint64_t end, const GlobalViewer& who,
                    const GlobalAccess& access, const Fenced& fenced) const;
  // What an ordinary access is not ordered after.
  GlobalRival CheckTouch(const Page& page, uint64_t address, uint32_t bytes, bool write, const GlobalViewer& who,
                         const GlobalAccess& access) const;
  // One lane, or consecutive lanes, that access memory of one page by an ordinary instruction; `access` is the first
  // one's.
  struct PageAccess {
    uint64_t address, end;
    uint32_t lane_bytes;
    bool write;
    const GlobalAccess& access;
  };
  // Whether all accesses that the page records for those blocks are complete for each lane of the warp.
  static bool AllOver(const Page& page, const PageAccess& lanes, const GlobalViewer& warp);
  // Records accesses of whole blocks.
  void NoteBlocks(Page& page, const PageAccess& lanes);
  // Records an access of one lane.
  void NoteLane(Page& page, const PageAccess& lane);
  static bool Join(Block& block, uint32_t first, uint32_t last, const GlobalAccess& access);
  // An ordinary access. REQUIRES: the page is locked.
  GlobalRival TouchPage(Page& page, uint64_t address, uint32_t bytes, bool write, const GlobalViewer& who,
                        const GlobalAccess& access);
  // Without knowledge of other clusters nothing is reported.
  GlobalRival Believe(const GlobalRival& rival, uint32_t cluster) const {
    return blind_.load(std::memory_order_relaxed) && rival.access.cluster != cluster ? GlobalRival{} : rival;
  }
  void NoteWords(Page& page, Table table, uint64_t begin, uint64_t end, const GlobalAccess& access);
  void NoteBulk(Page& page, Table table, uint64_t begin, uint64_t end, const GlobalAccess& access);
  // The number of an access in the list of a table.
  std::optional<uint16_t> NumberOf(BulkTable& table, const GlobalAccess& access);
  // Drops the accesses of the list that no cell has.
  static void DropUnused(BulkTable& table, uint64_t cells);
  void NotePages(Directory& at, Table table, uint64_t begin, uint64_t end, const GlobalAccess& access);
  // Calls visit(begin, end) for each page's part of a range.
  template <typename Visit>
  static void ForEachPage(uint64_t begin, uint64_t end, Visit visit) {
    for (uint64_t at = begin; at < end;) {
      const uint64_t next = std::min(end, (at / kPageBytes + 1) * kPageBytes);
      visit(at, next);
      at = next;
    }
  }

  LimitMeter& meter_;
  std::atomic<uint64_t> taken_{0};
  std::vector<Grid> grids_;
  std::shared_mutex mutex_;  // of directories_
  std::unordered_map<const Allocation*, std::unique_ptr<Directory>> directories_;
  std::mutex pages_mutex_;
  std::vector<std::unique_ptr<Page>> pages_;
  std::mutex words_mutex_;
  std::unordered_map<const uint8_t*, VectorClock> words_;
  std::atomic<bool> any_words_{false};
  std::atomic<bool> blind_{false};  // too many synchronising words: who knows what is unknown
};

// In two levels: a launch allocates it again, and most launches touch little of a large allocation.
struct GlobalOrder::Directory {
  static constexpr uint64_t kLeafPages = 128;
  using Leaf = std::array<std::atomic<Page*>, kLeafPages>;

  // Bulk loads of one box, which are recorded for its pages when something is written there for the first time: most
  // operands never are, and their boxes are loaded again and again.
  struct Box {
    std::vector<GlobalRange> ranges;
    GlobalAccess last;
    uint64_t order;  // of the last load among all

    uint64_t HostBytes() const { return sizeof(Box) + ranges.size() * sizeof(GlobalRange); }
  };

  std::atomic<bool> written{false};                      // something has been written there
  uint64_t first = 0;                                    // page
  std::mutex boxes_mutex;                                // of what follows, and of a change of `written`
  std::unordered_map<uint64_t, std::vector<Box>> boxes;  // by a hash of their ranges
  uint64_t loads = 0;
  std::unique_ptr<std::atomic<Leaf*>[]> leaves;
  std::vector<std::unique_ptr<Leaf>> owned;  // the same
};

}  // namespace laneshift::emulator
