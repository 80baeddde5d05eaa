#include "emulator/hazards/global_order.h"

#include <algorithm>
#include <bit>
#include <new>

#include "base/check.h"

namespace laneshift::emulator {

namespace {

// How a table covers memory: a cell for every `step` bytes, each bit of which covers `unit` bytes; both are powers of
// two, given by their logarithms. Bulk loads are many and wide, so that they share cells; partial units of
// theirs are dropped.
struct Grain {
  int step_shift, unit_shift;

  uint64_t step() const { return uint64_t{1} << step_shift; }
  uint64_t CellOf(uint64_t at) const { return at >> step_shift; }
  uint64_t StartOf(uint64_t at) const { return at >> step_shift << step_shift; }
};

// By GlobalOrder::Table.
constexpr uint64_t kBlockBytes = 16;
constexpr Grain kGrains[] = {{2, 0}, {2, 0}, {4, 0}, {7, 3}};

const GlobalOrder::Fenced kNoFenceNeeded = [](const GlobalAccess&) { return true; };

// The bits of the cell at `at` for bytes of [begin, end): all that they touch, or only those that they cover whole.
uint16_t BitsOf(Grain grain, uint64_t at, uint64_t begin, uint64_t end, bool touched) {
  const uint64_t low = std::max(at, begin) - at, high = std::min(at + grain.step(), end) - at;
  const uint64_t rest = (uint64_t{1} << grain.unit_shift) - 1;
  const uint64_t first = (touched ? low : low + rest) >> grain.unit_shift;
  const uint64_t last = (touched ? high + rest : high) >> grain.unit_shift;
  return first >= last ? uint16_t{0} : static_cast<uint16_t>(((1u << (last - first)) - 1) << first);
}

}  // namespace

GlobalOrder::~GlobalOrder() { meter_.Give(taken_); }

uint32_t GlobalOrder::AddGrid(const DecodedKernel& kernel, const GridShape& shape, uint32_t clusters) {
  const uint32_t first = grids_.empty() ? 1 : grids_.back().first + grids_.back().clusters;
  grids_.push_back({&kernel, &shape, first, clusters});
  return first;
}

const GlobalOrder::Grid& GlobalOrder::GridOf(uint32_t cluster) const {
  const auto after = std::upper_bound(grids_.begin(), grids_.end(), cluster,
                                      [](uint32_t wanted, const Grid& grid) { return wanted < grid.first; });
  LS_CHECK(after != grids_.begin(), "no grid has the cluster ", cluster);
  return *std::prev(after);
}

bool GlobalOrder::Take(uint64_t bytes) {
  if (taken_.fetch_add(bytes) + bytes <= kMostBytes && meter_.TryTake(bytes)) return true;
  taken_ -= bytes;
  return false;
}

void GlobalOrder::Give(uint64_t bytes) {
  taken_ -= bytes;
  meter_.Give(bytes);
}

GlobalOrder::Directory* GlobalOrder::Find(const Allocation& allocation) {
  {
    const std::shared_lock lock(mutex_);
    if (const auto known = directories_.find(&allocation); known != directories_.end()) return known->second.get();
  }
  const std::unique_lock lock(mutex_);
  const auto [at, fresh] = directories_.try_emplace(&allocation);
  if (!fresh) return at->second.get();
  const uint64_t first = allocation.address() / kPageBytes;
  const uint64_t pages = (allocation.address() + allocation.bytes() - 1) / kPageBytes - first + 1;
  auto* const leaves = new (std::nothrow) std::atomic<Directory::Leaf*>[pages / Directory::kLeafPages + 1]();
  if (leaves == nullptr) return nullptr;
  at->second = std::make_unique<Directory>();
  at->second->first = first;
  at->second->leaves.reset(leaves);
  return at->second.get();
}

void GlobalOrder::NoteWrite(Directory& at, bool write) {
  if (!write || at.written.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(at.boxes_mutex);
  std::vector<const Directory::Box*> boxes;
  for (const auto& [hash, alike] : at.boxes) {
    for (const Directory::Box& box : alike) boxes.push_back(&box);
  }
  std::sort(boxes.begin(), boxes.end(), [](const auto* a, const auto* b) { return a->order < b->order; });
  uint64_t bytes = 0;
  for (const Directory::Box* box : boxes) {
    for (const GlobalRange& range : box->ranges) NotePages(at, kBulkReads, range.begin, range.end, box->last);
    bytes += box->HostBytes();
  }
  Give(bytes);
  at.boxes.clear();
  at.written.store(true, std::memory_order_relaxed);
}

bool GlobalOrder::Written(const Directory& at) { return at.written.load(std::memory_order_relaxed); }

void GlobalOrder::FinishLoad(Directory& at, std::span<const GlobalRange> loaded, const GlobalAccess& access) {
  if (!Written(at)) {
    uint64_t hash = loaded.size();
    for (const GlobalRange& range : {loaded.front(), loaded.back()})
      hash = (hash + range.begin) * 0x9e3779b97f4a7c15u + range.end;
    const std::lock_guard lock(at.boxes_mutex);
    if (!Written(at)) {
      std::vector<Directory::Box>& alike = at.boxes[hash];
      auto box = std::find_if(alike.begin(), alike.end(), [&](const Directory::Box& known) {
        return std::equal(loaded.begin(), loaded.end(), known.ranges.begin(), known.ranges.end());
      });
      if (box == alike.end()) {
        Directory::Box fresh{{loaded.begin(), loaded.end()}, {}, 0};
        if (!Take(fresh.HostBytes())) return;
        box = alike.insert(box, std::move(fresh));
      }
      box->last = access;
      box->order = ++at.loads;
      return;
    }
  }
  for (const GlobalRange& range : loaded) NotePages(at, kBulkReads, range.begin, range.end, access);
}

void GlobalOrder::NotePages(Directory& at, Table table, uint64_t begin, uint64_t end, const GlobalAccess& access) {
  ForEachPage(begin, end, [&](uint64_t first, uint64_t last) {
    Page* const page = PageAt(at, first);
    if (page == nullptr) return;
    const Lock lock(*page);
    NoteBulk(*page, table, first, last, access);
  });
}

GlobalOrder::Page* GlobalOrder::KnownPage(const Directory& at, uint64_t address) {
  const uint64_t page = address / kPageBytes - at.first;
  const auto* const leaf = at.leaves[page / Directory::kLeafPages].load(std::memory_order_acquire);
  return leaf == nullptr ? nullptr : (*leaf)[page % Directory::kLeafPages].load(std::memory_order_acquire);
}

GlobalOrder::Page* GlobalOrder::PageAt(Directory& at, uint64_t address) {
  if (Page* const page = KnownPage(at, address); page != nullptr) return page;
  const std::lock_guard lock(pages_mutex_);
  const uint64_t page = address / kPageBytes - at.first;
  std::atomic<Directory::Leaf*>& root = at.leaves[page / Directory::kLeafPages];
  if (root.load(std::memory_order_relaxed) == nullptr) {
    at.owned.push_back(std::make_unique<Directory::Leaf>());
    root.store(at.owned.back().get(), std::memory_order_release);
  }
  std::atomic<Page*>& slot = (*root.load(std::memory_order_relaxed))[page % Directory::kLeafPages];
  if (Page* const known = slot.load(std::memory_order_relaxed); known != nullptr) return known;
  if (!Take(sizeof(Page))) return nullptr;
  pages_.push_back(std::make_unique<Page>());
  slot.store(pages_.back().get(), std::memory_order_release);
  return pages_.back().get();
}

// Made on first use.
template <typename Cell>
Cell* GlobalOrder::TableOf(Page& page, Table table, std::unique_ptr<Cell[]>& cells) {
  const uint64_t count = std::is_same_v<Cell, Block> ? kPageBytes / kBlockBytes : kGrains[table].CellOf(kPageBytes);
  if (cells == nullptr && Take(count * sizeof(Cell))) {
    cells = std::make_unique<Cell[]>(count);
    if (IsWrite(table)) page.written.store(true, std::memory_order_relaxed);
  }
  return cells.get();
}

GlobalAccess GlobalOrder::WordOf(const Block& block, uint64_t k) {
  GlobalAccess word;
  if ((block.words >> k & 1) == 0) return word;
  word.cluster = block.cluster;
  word.clock = block.clock;
  word.line = block.lines[k];
  word.agent = block.agent;
  // Of the lanes that share a word, the last one is recorded, with its bytes.
  word.bytes = block.scale <= 2 ? 0xf : block.scale == 3 ? 0xc : 0x8;
  word.fences = block.fences;
  word.lane = static_cast<uint8_t>(block.lane + (k << block.scale >> 2));
  return word;
}

const GlobalAccess* GlobalOrder::CellOf(const Page& page, Table table, uint64_t cell, GlobalAccess& word) {
  if (IsWords(table)) {
    const Block* const blocks = page.blocks[table].get();
    if (blocks == nullptr) return nullptr;
    const Block& block = blocks[cell / 4];
    if (!block.apart) return word = WordOf(block, cell % 4), &word;
    return &page.words[table][cell];
  }
  const BulkTable& bulk = page.BulkOf(table);
  if (bulk.cells == nullptr) return nullptr;
  const BulkTable::Cell& held = bulk.cells[cell];
  if (held.bytes == 0) {
    word = {};
  } else {
    word = bulk.accesses[held.access];
    word.bytes = held.bytes;
  }
  return &word;
}

bool GlobalOrder::AllOver(const Page& page, const PageAccess& lanes, const GlobalViewer& warp) {
  const VectorClock& known = warp.knowledge->View(kAllLanes);
  GlobalAccess fine;  // neighbours mostly have the same history
  const auto over = [&](const auto& held) {
    if (held.cluster == 0 || held.cluster < known.ended()) return true;
    if (held.cluster == fine.cluster && held.agent == fine.agent && held.clock == fine.clock) return true;
    const Epoch moment{held.agent, kAllLanes, held.clock};
    if (held.cluster != warp.cluster ? !known.KnowsOf(held.cluster, moment)
                                     : held.agent != warp.knowledge->agent() && !known.Knows(moment))
      return false;
    fine.cluster = held.cluster;
    fine.agent = held.agent;
    fine.clock = held.clock;
    return true;
  };
  const uint64_t begin = lanes.address % kPageBytes, end = begin + (lanes.end - lanes.address);
  for (const Table table : {kWordWrites, kWordReads}) {
    const Block* const blocks = page.blocks[table].get();
    if (blocks == nullptr || !(lanes.write || IsWrite(table))) continue;
    for (uint64_t b = begin / kBlockBytes; b * kBlockBytes < end; ++b) {
      if (blocks[b].apart) {
        const GlobalAccess* const words = &page.words[table][4 * b];
        if (!std::all_of(words, words + 4, over)) return false;
      } else if (!over(blocks[b])) {
        return false;
      }
    }
  }
  for (const Table table : {kBulkWrites, kBulkReads}) {
    const BulkTable& bulk = page.BulkOf(table);
    if (bulk.cells == nullptr || !(lanes.write || IsWrite(table))) continue;
    const Grain grain = kGrains[table];
    for (uint64_t cell = grain.CellOf(begin); cell <= grain.CellOf(end - 1); ++cell) {
      if (bulk.cells[cell].bytes == 0) continue;
      const GlobalAccess& held = bulk.accesses[bulk.cells[cell].access];
      if ((held.flags & GlobalAccess::kPending) != 0 || !over(held)) return false;
    }
  }
  return true;
}

void GlobalOrder::NoteBlocks(Page& page, const PageAccess& lanes) {
  const Table table = lanes.write ? kWordWrites : kWordReads;
  Block* const blocks = TableOf(page, table, page.blocks[table]);
  if (blocks == nullptr) return;
  const GlobalAccess& access = lanes.access;
  Block block{access.cluster, access.clock, access.agent, access.fences, 0, 0, 0xf, false, {}};
  block.scale = lanes.lane_bytes >= kBlockBytes ? 0 : static_cast<uint8_t>(4 - std::countr_zero(lanes.lane_bytes));
  const uint64_t first = lanes.lane_bytes >= 4 ? 0 : 4 / lanes.lane_bytes - 1;
  block.lines.fill(access.line);
  for (uint64_t at = lanes.address; at < lanes.end; at += kBlockBytes) {
    Block& own = blocks[at % kPageBytes / kBlockBytes];
    own = block;
    own.lane = static_cast<uint8_t>(access.lane + first + (at - lanes.address) / lanes.lane_bytes);
  }
}

// A weak access of the words [first, last] of a block. False: it does not fit there.
bool GlobalOrder::Join(Block& block, uint32_t first, uint32_t last, const GlobalAccess& access) {
  const uint32_t bits = ((2u << last) - (1u << first)) & 0xf;
  if ((block.words & ~bits) == 0) {
    block.cluster = access.cluster;
    block.clock = access.clock;
    block.agent = access.agent;
    block.fences = access.fences;
    block.lane = access.lane;
    block.scale = 0;
  } else if (block.cluster != access.cluster || block.clock != access.clock || block.agent != access.agent ||
             block.fences != access.fences || block.scale > 2 ||
             block.lane + (first << block.scale >> 2) != access.lane ||
             block.lane + (last << block.scale >> 2) != access.lane) {
    return false;
  }
  block.words |= static_cast<uint8_t>(bits);
  for (uint32_t k = first; k <= last; ++k) block.lines[k] = access.line;
  return true;
}

void GlobalOrder::NoteLane(Page& page, const PageAccess& lane) {
  const Table table = lane.write ? kWordWrites : kWordReads;
  Block* const blocks = TableOf(page, table, page.blocks[table]);
  if (blocks == nullptr) return;
  const bool fits = lane.access.flags == 0 && lane.lane_bytes >= 4;
  for (uint64_t at = lane.address; at < lane.end; at = (at / kBlockBytes + 1) * kBlockBytes) {
    Block& block = blocks[at % kPageBytes / kBlockBytes];
    const uint64_t end = std::min(lane.end, (at / kBlockBytes + 1) * kBlockBytes);
    if (!block.apart) {
      const auto first = static_cast<uint32_t>(at % kBlockBytes / 4);
      const auto last = static_cast<uint32_t>((end - 1) % kBlockBytes / 4);
      if (fits && Join(block, first, last, lane.access)) continue;
      GlobalAccess* const words = TableOf(page, table, page.words[table]);
      if (words == nullptr) continue;
      for (uint64_t k = 0; k < 4; ++k) words[at % kPageBytes / kBlockBytes * 4 + k] = WordOf(block, k);
      block.apart = true;
    }
    NoteWords(page, table, at, end, lane.access);
  }
}

GlobalRival GlobalOrder::Check(const Page& page, Table table, uint64_t begin, uint64_t end, const GlobalViewer& who,
                               const GlobalAccess& access, const Fenced& fenced) const {
  const Grain grain = kGrains[table];
  GlobalAccess word;
  for (uint64_t at = grain.StartOf(begin); at < end; at += grain.step()) {
    const GlobalAccess* const cell = CellOf(page, table, grain.CellOf(at % kPageBytes), word);
    if (cell == nullptr) return {};
    const GlobalAccess& held = *cell;
    if (held.cluster == 0) continue;
    if ((held.bytes & BitsOf(grain, at, begin, end, true)) == 0) continue;
    if ((held.flags & access.flags & GlobalAccess::kStrong) != 0) continue;
    const bool own = held.cluster == who.cluster;
    if (held.cluster < who.knowledge->View(who.lane).ended()) continue;
    GlobalRival rival{GlobalRival::Kind::kRace, held, IsWrite(table), IsBulk(table), at};
    if ((held.flags & GlobalAccess::kPending) != 0) {
      if (own && (access.flags & GlobalAccess::kBulkLoad) == 0) continue;  // Cluster::PendingGlobal is more precise
      rival.kind = GlobalRival::Kind::kPending;
      return rival;
    }
    const bool same_warp = own && held.agent == who.knowledge->agent();
    if (!same_warp && !who.Knows(held.cluster, held.moment())) return rival;
    if (table != kWordWrites || fenced(held)) continue;
    rival.kind = GlobalRival::Kind::kUnfenced;
    return rival;
  }
  return {};
}

GlobalRival GlobalOrder::Issue(Directory& directory, uint64_t begin, uint64_t end, bool write, const GlobalViewer& who,
                               const GlobalAccess& access, const Fenced& fenced) {
  GlobalRival rival;
  NoteWrite(directory, write);
  if (!Written(directory)) return rival;
  ForEachPage(begin, end, [&](uint64_t first, uint64_t last) {
    Page* const page = write ? PageAt(directory, first) : KnownPage(directory, first);
    if (page == nullptr || !(write || page->written.load(std::memory_order_relaxed))) return;
    const Lock lock(*page);
    if (!rival) rival = Check(*page, kBulkWrites, first, last, who, access, kNoFenceNeeded);
    if (!rival) rival = Check(*page, kWordWrites, first, last, who, access, fenced);
    if (!write) return;
    if (!rival) rival = Check(*page, kWordReads, first, last, who, access, kNoFenceNeeded);
    if (!rival) rival = Check(*page, kBulkReads, first, last, who, access, kNoFenceNeeded);
    NoteBulk(*page, kBulkWrites, first, last, access);
  });
  return Believe(rival, who.cluster);
}

// REQUIRES: a table of words.
void GlobalOrder::NoteWords(Page& page, Table table, uint64_t begin, uint64_t end, const GlobalAccess& access) {
  GlobalAccess* const words = TableOf(page, table, page.words[table]);
  if (words == nullptr) return;
  const Grain grain = kGrains[table];
  for (uint64_t at = grain.StartOf(begin); at < end; at += grain.step()) {
    GlobalAccess& word = words[grain.CellOf(at % kPageBytes)];
    // Neighbours in one word by the same access.
    const bool same = word.cluster == access.cluster && word.agent == access.agent && word.clock == access.clock &&
                      word.lane == access.lane && word.line == access.line;
    const auto before = same ? word.bytes : uint16_t{0};
    word = access;
    word.bytes = static_cast<uint16_t>(before | BitsOf(grain, at, begin, end, false));
  }
}

std::optional<uint16_t> GlobalOrder::NumberOf(BulkTable& table, const GlobalAccess& access) {
  std::vector<GlobalAccess>& all = table.accesses;
  const auto latest = std::find(all.rbegin(), all.rend(), access);
  if (latest != all.rend()) return static_cast<uint16_t>(all.rend() - latest - 1);
  constexpr size_t kMost = 128;  // more than a page has cells
  if (all.size() == kMost) return std::nullopt;
  if (all.size() == all.capacity()) {
    const size_t more = std::max<size_t>(4, all.size());
    if (!Take(more * sizeof(GlobalAccess))) return std::nullopt;
    all.reserve(all.size() + more);
  }
  all.push_back(access);
  return static_cast<uint16_t>(all.size() - 1);
}

// REQUIRES: a table of bulk copies.
void GlobalOrder::NoteBulk(Page& page, Table table, uint64_t begin, uint64_t end, const GlobalAccess& access) {
  BulkTable& bulk = page.BulkOf(table);
  BulkTable::Cell* const cells = TableOf(page, table, bulk.cells);
  if (cells == nullptr) return;
  std::optional<uint16_t> number = NumberOf(bulk, access);
  if (!number) {
    DropUnused(bulk, kGrains[table].CellOf(kPageBytes));
    if (!(number = NumberOf(bulk, access))) return;
  }
  const Grain grain = kGrains[table];
  for (uint64_t at = grain.StartOf(begin); at < end; at += grain.step()) {
    const uint16_t bytes = BitsOf(grain, at, begin, end, false);
    if (bytes == 0) continue;
    BulkTable::Cell& cell = cells[grain.CellOf(at % kPageBytes)];
    // Neighbours in one cell by the same access.
    const auto before = cell.access == *number ? cell.bytes : uint16_t{0};
    cell = {*number, static_cast<uint16_t>(before | bytes)};
  }
}

void GlobalOrder::DropUnused(BulkTable& table, uint64_t cells) {
  const std::vector<GlobalAccess> before = std::move(table.accesses);
  table.accesses.clear();
  table.accesses.reserve(before.capacity());
  std::vector<int> numbers(before.size(), -1);
  for (uint64_t c = 0; c < cells; ++c) {
    BulkTable::Cell& cell = table.cells[c];
    if (cell.bytes == 0) continue;
    int& number = numbers[cell.access];
    if (number < 0) {
      number = static_cast<int>(table.accesses.size());
      table.accesses.push_back(before[cell.access]);
    }
    cell.access = static_cast<uint16_t>(number);
  }
}

GlobalRival GlobalOrder::Touch(Directory& at, uint64_t address, uint32_t bytes, bool write, const GlobalViewer& who,
                               GlobalAccess access) {
  NoteWrite(at, write);
  Page* const page = PageAt(at, address);
  if (page == nullptr) return {};
  const Lock lock(*page);
  return Believe(TouchPage(*page, address, bytes, write, who, access), who.cluster);
}

GlobalRival GlobalOrder::CheckTouch(const Page& page, uint64_t address, uint32_t bytes, bool write,
                                    const GlobalViewer& who, const GlobalAccess& access) const {
  const uint64_t end = address + bytes;
  GlobalRival rival = Check(page, kWordWrites, address, end, who, access, kNoFenceNeeded);
  if (!rival) rival = Check(page, kBulkWrites, address, end, who, access, kNoFenceNeeded);
  if (write) {
    if (!rival) rival = Check(page, kWordReads, address, end, who, access, kNoFenceNeeded);
    if (!rival) rival = Check(page, kBulkReads, address, end, who, access, kNoFenceNeeded);
  }
  return rival;
}

GlobalRival GlobalOrder::TouchPage(Page& page, uint64_t address, uint32_t bytes, bool write, const GlobalViewer& who,
                                   const GlobalAccess& access) {
  const PageAccess lane{address, address + bytes, bytes, write, access};
  GlobalRival rival;
  if (!AllOver(page, lane, who)) rival = CheckTouch(page, address, bytes, write, who, access);
  NoteLane(page, lane);
  return rival;
}

namespace {

// How many lanes, from the one of the lowest bit of `rest`, access whole blocks of 16 bytes in one page, in lane order
// and with the same fences after them; 0: the first one's do not.
int LanesOfBlocks(const GlobalOrder::LaneAccesses& lanes, uint32_t rest, uint64_t page_bytes) {
  const int first = std::countr_zero(rest);
  const uint64_t begin = lanes.addresses[first], page_end = (begin / page_bytes + 1) * page_bytes;
  if (begin % 16 != 0) return 0;
  // The second of two blocks of one lane would pass for the next lane's.
  if (lanes.bytes > 16) return 1;
  int lane = first + 1;
  uint64_t next = begin + lanes.bytes;
  for (; lane < kLanes && (rest >> lane & 1) != 0 && next < page_end && lanes.addresses[lane] == next &&
         lanes.fences[lane] == lanes.fences[first];
       ++lane)
    next += lanes.bytes;
  const int count = lane - first, each = static_cast<int>(16 / lanes.bytes);
  return count / each * each;
}

}  // namespace

// A page is found and locked once for the lanes that share it.
GlobalOrder::LaneRivals GlobalOrder::TouchLanes(Directory& at, const LaneAccesses& lanes, GlobalViewer who,
                                                GlobalAccess access) {
  LaneRivals rivals;
  NoteWrite(at, lanes.write);
  const auto page_of = [&](uint32_t rest) { return lanes.addresses[std::countr_zero(rest)] / kPageBytes; };
  const auto found = [&](int lane, const GlobalRival& rival) {
    if (Believe(rival, who.cluster)) rivals.emplace_back(lane, rival);
  };
  const auto be = [&](int lane) {
    who.lane = access.lane = static_cast<uint8_t>(lane);
    access.fences = static_cast<uint16_t>(lanes.fences[lane]);
  };
  // Lanes [first, first + count), which access whole blocks.
  const auto touch_blocks = [&](Page& page, int first, int count) {
    const uint64_t begin = lanes.addresses[first];
    be(first);
    const GlobalAccess first_access = access;
    const PageAccess blocks{begin, begin + static_cast<uint64_t>(count) * lanes.bytes, lanes.bytes, lanes.write,
                            first_access};
    if (!AllOver(page, blocks, who)) {
      for (int lane = first; lane < first + count; ++lane) {
        be(lane);
        const uint64_t address = lanes.addresses[lane];
        // Lanes that share a word find the record of the lane before them.
        found(lane, lanes.bytes < 4 ? TouchPage(page, address, lanes.bytes, lanes.write, who, access)
                                    : CheckTouch(page, address, lanes.bytes, lanes.write, who, access));
      }
    }
    NoteBlocks(page, blocks);
  };
  for (uint32_t rest = lanes.mask; rest != 0;) {
    const uint64_t number = page_of(rest);
    Page* const page = PageAt(at, number * kPageBytes);
    if (page == nullptr) {
      rest &= rest - 1;
      continue;
    }
    const Lock lock(*page);
    while (rest != 0 && page_of(rest) == number) {
      const int lane = std::countr_zero(rest), count = LanesOfBlocks(lanes, rest, kPageBytes);
      if (count != 0) {
        touch_blocks(*page, lane, count);
      } else {
        be(lane);
        found(lane, TouchPage(*page, lanes.addresses[lane], lanes.bytes, lanes.write, who, access));
      }
      const uint32_t done = lane + std::max(count, 1) == kLanes ? ~0u : (1u << (lane + std::max(count, 1))) - 1;
      rest &= ~done;
    }
  }
  return rivals;
}

void GlobalOrder::FinishStore(Directory& directory, uint64_t begin, uint64_t end, const GlobalAccess& access) {
  NoteWrite(directory, true);
  NotePages(directory, kBulkWrites, begin, end, access);
}

void GlobalOrder::Release(const uint8_t* word, uint32_t cluster, VectorClock told, const VectorClock& fenced) {
  auto mine = std::make_shared<ForeignClocks>();
  mine->push_back({cluster, std::make_shared<VectorClock>(told.Near()),
                   fenced.empty() ? nullptr : std::make_shared<VectorClock>(fenced.Near())});
  VectorClock all;
  all.LearnEnded(told.ended());
  all.JoinForeign(told.foreign());
  if (fenced.foreign() != nullptr) {
    // Accesses of other clusters that those fences follow.
    auto others = std::make_shared<ForeignClocks>(*fenced.foreign());
    for (ForeignClock& clock : *others) clock.fenced = clock.known;
    all.JoinForeign(std::move(others));
  }
  all.JoinForeign(mine);
  const std::lock_guard lock(words_mutex_);
  if (words_.size() >= kMostWords && !words_.contains(word)) {
    blind_ = true;
    return;
  }
  words_[word].Join(all);
  any_words_ = true;
}

VectorClock GlobalOrder::Released(const uint8_t* word) {
  if (!any_words_.load(std::memory_order_relaxed)) return {};
  const std::lock_guard lock(words_mutex_);
  const auto known = words_.find(word);
  return known == words_.end() ? VectorClock() : known->second;
}

}  // namespace laneshift::emulator
