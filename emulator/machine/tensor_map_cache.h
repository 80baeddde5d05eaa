// The tensor maps that clusters have used last, decoded: a loop uses the same few in every round.
//
// Thread-safety: none; each host thread has its own. Invariant: a map depends on its 128 bytes and the dialect only.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "emulator/units/tensor_map_words.h"
#include "laneshift/result.h"

namespace laneshift::emulator {

class TensorMapCache {
 public:
  // An Error if the bytes are no map that the dialect allows.
  Result<std::shared_ptr<const TensorMap>> Find(std::span<const uint8_t, 128> bytes, TensorMapDialect dialect) {
    const auto known = std::find_if(places_.begin(), places_.end(), [&](const Place& place) {
      return place.map != nullptr && place.dialect == dialect &&
             std::memcmp(place.bytes.data(), bytes.data(), bytes.size()) == 0;
    });
    if (known != places_.end()) return known->map;
    Place fresh{{}, dialect, nullptr};
    std::copy(bytes.begin(), bytes.end(), fresh.bytes.begin());  // once: others may edit them meanwhile
    LS_ASSIGN(TensorMap map, DecodeTensorMap(std::span<const uint8_t, 128>(fresh.bytes)));
    LS_TRY(ValidateTensorMap(map, dialect));
    fresh.map = std::make_shared<const TensorMap>(map);
    return (places_[next_++ % places_.size()] = std::move(fresh)).map;
  }

 private:
  struct Place {
    std::array<uint8_t, 128> bytes{};
    TensorMapDialect dialect{};
    std::shared_ptr<const TensorMap> map;
  };
  std::array<Place, 8> places_;
  size_t next_ = 0;
};

}  // namespace laneshift::emulator
