#include "emulator/machine/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "base/text.h"
#include "emulator/machine/out_of_memory.h"

namespace laneshift::emulator {
namespace {

void* Map(uint64_t bytes) {
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return pages == MAP_FAILED ? nullptr : pages;
}

std::string Hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace

Allocation::Allocation(uint64_t address, uint64_t bytes, LimitMeter* meter)
    : address_(address), bytes_(bytes), meter_(meter) {
  // First: were this to fail later, nobody would return the pages.
  if (meter_ != nullptr) taken_ = std::make_unique<std::atomic<uint8_t>[]>((bytes >> kChunkShift) + 1);
  host_ = static_cast<uint8_t*>(Map(bytes));
  // Zero pages are valid objects of this lock-free type: no byte was written yet.
  written_ = static_cast<std::atomic<uint64_t>*>(Map(WrittenBytes()));
  if (written_ == nullptr && host_ != nullptr) {
    munmap(host_, bytes_);
    host_ = nullptr;
  }
}

Allocation::Allocation(uint8_t* host, uint64_t bytes, MemoryKind kind, LimitMeter* meter)
    : address_(reinterpret_cast<uint64_t>(host)),
      bytes_(bytes),
      kind_(kind),
      host_(host),
      all_written_(true),
      meter_(meter),
      taken_bytes_(meter != nullptr ? bytes : 0) {}

Allocation::~Allocation() {
  if (host_ != nullptr && kind_ != MemoryKind::kRegistered) munmap(host_, bytes_);
  if (written_ != nullptr) munmap(static_cast<void*>(written_), WrittenBytes());
  if (meter_ != nullptr) meter_->Give(taken_bytes_);
}

bool Allocation::TakeChunks(uint64_t address, uint64_t count, bool force) {
  if (taken_ == nullptr || count == 0) return true;
  const uint64_t first = (address - address_) >> kChunkShift, last = (address - address_ + count - 1) >> kChunkShift;
  for (uint64_t chunk = first; chunk <= last; ++chunk) {
    if (taken_[chunk].load(std::memory_order_relaxed) != 0 || taken_[chunk].exchange(1) != 0) continue;
    uint64_t bytes = std::min(kChunk, bytes_ - (chunk << kChunkShift));
    bytes += bytes / 8;  // which of them are written
    if (force) {
      meter_->Take(bytes);
    } else if (!meter_->TryTake(bytes)) {
      taken_[chunk] = 0;
      return false;
    }
    taken_bytes_ += bytes;
  }
  return true;
}

bool Allocation::TryWrite(uint64_t address, uint64_t count) {
  if (!TakeChunks(address, count, false)) return false;
  MarkWritten(address, count);
  return true;
}

void Allocation::MarkWritten(uint64_t address, uint64_t count) {
  TakeChunks(address, count, true);
  if (all_written_) return;
  if (address == address_ && count == bytes_) {
    all_written_ = true;
    return;
  }
  ForEachCell(address, count, [](std::atomic<uint64_t>& cell, uint64_t bits) {
    // A load first: neighbouring CTAs do not contend for the cache line.
    if ((cell.load(std::memory_order_relaxed) & bits) != bits) cell.fetch_or(bits, std::memory_order_relaxed);
  });
}

Allocation* GlobalMemory::Allocate(uint64_t bytes, uint64_t align) {
  if (bytes == 0 || bytes > capacity_ || used_ > capacity_ - bytes) return nullptr;
  const uint64_t address = (next_ + align - 1) / align * align;
  auto allocation = std::make_unique<Allocation>(address, bytes, meter_);
  if (!allocation->mapped()) return nullptr;
  Allocation* made = (live_[address] = std::move(allocation)).get();
  // Counted once nothing can fail any more.
  next_ = address + bytes + kGuard;
  used_ += bytes;
  return made;
}

Allocation* GlobalMemory::AllocateAt(uint64_t address, uint64_t bytes) {
  if (bytes == 0 || bytes > capacity_ || used_ > capacity_ - bytes) return nullptr;
  if (address < kLeast || address >= kMost || bytes > kMost - address) return nullptr;
  const auto after = live_.lower_bound(address);
  if ((after != live_.end() && after->first - address < bytes) || Find(address, 1) != nullptr) return nullptr;
  auto allocation = std::make_unique<Allocation>(address, bytes, meter_);
  if (!allocation->mapped()) return nullptr;
  Allocation* made = (live_[address] = std::move(allocation)).get();
  freed_.erase(address);
  if (address >= kFirst && address < kOwnEnd) next_ = std::max(next_, address + bytes + kGuard);
  used_ += bytes;
  return made;
}

std::vector<const Allocation*> GlobalMemory::All() const {
  std::vector<const Allocation*> all;
  for (const auto& [address, allocation] : live_) all.push_back(allocation.get());
  return all;
}

Allocation* GlobalMemory::AllocateShared(uint64_t bytes, MemoryKind kind) {
  if (bytes == 0 || bytes > capacity_ || used_ > capacity_ - bytes) return nullptr;
  if (meter_ != nullptr && !meter_->TryTake(bytes)) return nullptr;
  auto* host = static_cast<uint8_t*>(Map(bytes));
  if (host == nullptr) {
    if (meter_ != nullptr) meter_->Give(bytes);
    return nullptr;
  }
  auto allocation = std::make_unique<Allocation>(host, bytes, kind, meter_);
  Allocation* made = (live_[reinterpret_cast<uint64_t>(host)] = std::move(allocation)).get();
  // The host may reuse an address that was freed.
  freed_.erase(made->address());
  used_ += bytes;
  return made;
}

Allocation* GlobalMemory::Register(void* host, uint64_t bytes) {
  const auto begin = reinterpret_cast<uint64_t>(host);
  const auto after = live_.lower_bound(begin);
  if (bytes == 0 || (after != live_.end() && after->first - begin < bytes) || Find(begin, 1) != nullptr) return nullptr;
  auto allocation = std::make_unique<Allocation>(static_cast<uint8_t*>(host), bytes, MemoryKind::kRegistered);
  Allocation* made = (live_[begin] = std::move(allocation)).get();
  freed_.erase(begin);
  used_ += bytes;
  return made;
}

bool GlobalMemory::Free(uint64_t address) {
  const auto known = live_.find(address);
  if (known == live_.end()) return false;
  used_ -= known->second->bytes();
  // For messages only; pages are returned even without memory for them.
  (void)RunWithinMemory([this, &known] { freed_[known->first] = known->second->bytes(); });
  live_.erase(known);
  return true;
}

Allocation* GlobalMemory::Find(uint64_t address, uint64_t count) const {
  auto after = live_.upper_bound(address);
  if (after == live_.begin()) return nullptr;
  Allocation* allocation = std::prev(after)->second.get();
  return allocation->Contains(address, count) ? allocation : nullptr;
}

std::string GlobalMemory::Describe(uint64_t address) const {
  if (const auto freed = freed_.upper_bound(address); freed != freed_.begin()) {
    const auto& [start, bytes] = *std::prev(freed);
    if (address - start < bytes) return base::Cat("inside an allocation of ", bytes, " bytes that was freed");
  }
  const auto after = live_.upper_bound(address);
  std::string text = "no allocation is near";
  uint64_t distance = ~uint64_t{0};
  if (after != live_.begin()) {
    const Allocation& below = *std::prev(after)->second;
    distance = address - (below.address() + below.bytes());
    if (address < below.address() + below.bytes())
      return base::Cat("runs past the end of the allocation of ", below.bytes(), " bytes at ", Hex(below.address()));
    text = base::Cat(distance, " bytes past the end of the allocation of ", below.bytes(), " bytes at ",
                     Hex(below.address()));
  }
  if (after != live_.end() && after->first - address < distance) {
    text = base::Cat(after->first - address, " bytes before the allocation of ", after->second->bytes(), " bytes at ",
                     Hex(after->first));
  }
  return text;
}

SharedMemory::SharedMemory(uint32_t bytes)
    : size_(bytes),
      bytes_(bytes + 16u),
      written_(bytes + 16u),
      blocks_((kSharedBase + bytes) / GranuleWord::kBlockBytes + 2) {}

// Only what was written: a small kernel touches little of a window's 227 KiB.
void SharedMemory::Reset() {
  for (size_t b = 0; b < blocks_.size(); ++b) {
    const uint64_t touched = blocks_[b].written | blocks_[b].in_part;
    if (touched != 0) {
      const size_t begin = b * GranuleWord::kBlockBytes - kSharedBase;
      const size_t count = std::min<size_t>(GranuleWord::kBlockBytes, bytes_.size() - begin);
      std::fill_n(&bytes_[begin], count, uint8_t{0});
      if (blocks_[b].in_part != 0) std::fill_n(&written_[begin], count, uint8_t{0});
    }
    blocks_[b] = {};
  }
  pieces_.clear();
}

void SharedMemory::MarkWritten(uint32_t offset, uint32_t count) {
  if (offset % 16 + count < 16) return MarkPart(offset, offset + count);
  const uint32_t end = offset + count, first = (offset + 15) & ~15u, last = end & ~15u;
  if (first < last) ForEachGranuleWord({first, last}, [&](GranuleWord word) { BlockOf(word).written |= word.mask; });
  if (offset < first) MarkPart(offset, first);
  if (last < end) MarkPart(last, end);
}

void SharedMemory::MarkPart(uint32_t begin, uint32_t end) {
  Block& block = BlockAt(begin);
  const uint64_t granule = uint64_t{1} << (begin / GranuleWord::kGranuleBytes % 64);
  if ((block.written & granule) != 0) return;
  block.in_part |= granule;
  uint8_t* const marks = &written_[begin - kSharedBase];
  if (end - begin == 4) {  // most stores: a word is marked by a word
    std::memset(marks, 1, 4);
  } else {
    std::memset(marks, 1, end - begin);
  }
}

bool SharedMemory::Written(uint32_t offset, uint32_t count) const {
  bool all = true;
  ForEachGranuleWord({offset, offset + count}, [&](GranuleWord word) {
    const Block& block = blocks_[word.block];
    const uint64_t missing = word.mask & ~block.written;
    all = all && (missing & ~block.in_part) == 0;
    for (uint64_t rest = all ? missing : 0; rest != 0; rest &= rest - 1) {
      const uint32_t at = word.block * GranuleWord::kBlockBytes + static_cast<uint32_t>(std::countr_zero(rest)) * 16;
      const uint32_t begin = std::max(at, offset), end = std::min(at + 16, offset + count);
      all = all && std::memchr(&written_[begin - kSharedBase], 0, end - begin) == nullptr;
    }
  });
  return all;
}

bool SharedMemory::Written(GranuleWord word) {
  Block& block = BlockOf(word);
  for (uint64_t rest = word.mask & ~block.written; rest != 0; rest &= rest - 1) {
    const auto granule = static_cast<uint32_t>(std::countr_zero(rest));
    if (!Written(word.block * GranuleWord::kBlockBytes + granule * 16, 16)) return false;
    block.written |= uint64_t{1} << granule;
  }
  return true;
}

void SharedMemory::CountPieces(uint32_t begin, uint32_t end, uint32_t delta) {
  if (pieces_.empty()) pieces_.assign(blocks_.size() * GranuleWord::kBlockBytes / kWordBytes, 0);
  ForEachGranuleWord({begin, end}, [&](GranuleWord word) { BlockOf(word).pieces += delta; });
  for (uint32_t at = begin; at < end; at += kWordBytes) pieces_[at / kWordBytes] += static_cast<uint16_t>(delta);
}

bool SharedMemory::HasPieces(uint32_t begin, uint32_t end) const {
  if (pieces_.empty()) return false;
  for (uint32_t word = begin / kWordBytes; word * kWordBytes < end; ++word) {
    if (pieces_[word] != 0) return true;
  }
  return false;
}

void SharedMemory::SetBarrier(uint32_t offset, bool live) {
  const uint64_t bit = uint64_t{1} << (offset / 16 % 64);
  uint64_t& barriers = BlockAt(offset).barriers;
  barriers = live ? barriers | bit : barriers & ~bit;
}

}  // namespace laneshift::emulator
