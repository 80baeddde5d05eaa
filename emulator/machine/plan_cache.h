// Plans of the instructions that clusters have issued: a loop issues the same few requests again in every round of its
// ring of stages, and so do all clusters of a launch.
//
// Thread-safety: none; each host thread of a launch has its own. Invariant: a plan depends on its request and on what
// the same for all instructions of the launch (the size of the window, the policies), never on the contents of
// memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <utility>

#include "laneshift/result.h"

namespace laneshift::emulator {

// A key that distinguishes requests.
inline uint64_t PlanKey(std::initializer_list<uint64_t> parts) {
  uint64_t key = 0;
  for (const uint64_t part : parts) key = (key ^ part ^ key >> 32) * 0x9e3779b97f4a7c15u;
  return key;
}

// Each request has a few places, where it evicts the least recently used one. With one place, two
// requests of a kernel's loop that mapped there evicted each other in every iteration.
template <typename Request, typename Plan>
class PlanCache {
 public:
  // The plan of `request`; `make` gives it as a Result<Plan> on a miss. `key` distinguishes requests, mostly.
  template <typename Make>
  Result<std::shared_ptr<const Plan>> Find(const Request& request, uint64_t key, Make make) {
    auto& places = places_[(key * 0x9e3779b97f4a7c15u) >> (64 - kBits)];
    auto at = std::find_if(places.begin(), places.end(), [&](const Place& place) {
      return place.key == key && place.plan != nullptr && place.plan->request == request;
    });
    if (at == places.end()) {
      LS_ASSIGN(Plan plan, make());
      --at;
      *at = {key, std::make_shared<const Plan>(std::move(plan))};
    }
    if (at != places.begin()) std::rotate(places.begin(), at, at + 1);
    return places.front().plan;
  }

 private:
  struct Place {
    uint64_t key = 0;
    std::shared_ptr<const Plan> plan;
  };
  static constexpr int kBits = 8;
  std::array<std::array<Place, 4>, 1 << kBits> places_;
};

}  // namespace laneshift::emulator
