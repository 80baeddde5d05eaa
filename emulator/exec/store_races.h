// StoreRaces: unordered stores of two threads to one place in shared memory are a race only if they differ, unless the
// policy equal_stores says otherwise.
//
// Thread-safety: as the warp.
#pragma once

#include <array>
#include <cstring>
#include <vector>

#include "emulator/machine/access.h"

namespace laneshift::emulator {

// Those of one instruction: what is found while it lives is judged when the values are stored.
class StoreRaces {
 public:
  explicit StoreRaces(Warp& w) : warp_(w) { w.cta().cluster().DeferStoreRaces(&races_); }
  ~StoreRaces() { warp_.cta().cluster().DeferStoreRaces(nullptr); }
  StoreRaces(const StoreRaces&) = delete;
  StoreRaces& operator=(const StoreRaces&) = delete;

  // Calls `store`, which stores `bytes` bytes at each of `hosts`.
  template <typename Store>
  void Around(const HostBytes& hosts, uint32_t bytes, Store store) {
    if (races_.empty()) return store();
    warp_.cta().cluster().DeferStoreRaces(nullptr);
    std::vector<std::array<uint8_t, kMostBytes>> before(races_.size());
    const auto at = [&](const StoreRace& race) { return hosts[static_cast<size_t>(race.lane)]; };
    for (size_t r = 0; r < races_.size(); ++r) std::memcpy(before[r].data(), at(races_[r]), bytes);
    store();
    for (size_t r = 0; r < races_.size(); ++r)
      warp_.cta().cluster().SettleStore(warp_, races_[r], std::memcmp(before[r].data(), at(races_[r]), bytes) == 0);
    races_.clear();
    warp_.cta().cluster().DeferStoreRaces(&races_);
  }

 private:
  static constexpr size_t kMostBytes = 32;
  Warp& warp_;
  std::vector<StoreRace> races_;
};

}  // namespace laneshift::emulator
