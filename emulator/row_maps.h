// The tensor maps that the programs under tests/emulator/rows/ request in `// map:` comments, in the terms of
// cuTensorMapEncode*. See tests/emulator/rows/README.md.
//
// Thread-safety: pure functions.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "emulator/units/tensor_map_words.h"

namespace laneshift::emulator::rows {

struct RowTensorMap {
  bool of_out = false;  // the tensor lies in `out`, else in `in`
  uint64_t at = 0;      // its first word there
  TensorMap map;        // without its address
};

inline std::vector<int64_t> Numbers(std::string_view text) {
  std::vector<int64_t> numbers;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    numbers.push_back(std::strtoll(std::string(text.substr(begin, end - begin)).c_str(), nullptr, 10));
    begin = end + 1;
  }
  return numbers;
}

template <typename T, size_t kSize>
void Assign(const std::vector<int64_t>& numbers, std::array<T, kSize>& to, size_t first = 0) {
  for (size_t k = 0; k < numbers.size() && first + k < kSize; ++k) to[first + k] = static_cast<T>(numbers[k]);
}

// One KEY=NUMBERS of a map. False: there is no such key.
inline bool SetMapField(RowTensorMap& row, std::string_view key, const std::vector<int64_t>& numbers) {
  TensorMap& map = row.map;
  if (key == "at") {
    row.at = static_cast<uint64_t>(numbers[0]);
  } else if (key == "type") {
    map.element = static_cast<TensorElement>(numbers[0]);
  } else if (key == "dims") {
    Assign(numbers, map.dims);
    map.rank = static_cast<int>(numbers.size());
  } else if (key == "strides") {
    Assign(numbers, map.strides, 1);
  } else if (key == "box") {
    Assign(numbers, map.box);
  } else if (key == "steps") {
    Assign(numbers, map.element_strides);
  } else if (key == "lower") {
    Assign(numbers, map.lower_corner);
  } else if (key == "upper") {
    Assign(numbers, map.upper_corner);
  } else if (key == "channels") {
    map.channels = static_cast<uint32_t>(numbers[0]);
  } else if (key == "pixels") {
    map.pixels = static_cast<uint32_t>(numbers[0]);
  } else if (key == "swizzle") {
    map.swizzle = static_cast<TensorSwizzle>(numbers[0]);
  } else if (key == "fill") {
    map.fill = static_cast<TensorFill>(numbers[0]);
  } else {
    return false;
  }
  return true;
}

// "in tiled dims=8,4 strides=64 box=4,4": words of 32 bits unless `type` says otherwise. Errors in the text are
// appended to `complaints`.
inline RowTensorMap ParseMap(std::string_view text, std::vector<std::string>& complaints) {
  static constexpr std::string_view kModes[] = {"tiled", "im2col", "im2col::w", "im2col::w::128"};
  RowTensorMap row;
  row.map.element = TensorElement::kU32;
  row.map.element_strides = {1, 1, 1, 1, 1};
  const auto words = base::Words(text);
  const auto* mode = words.size() < 2 ? std::end(kModes) : std::find(std::begin(kModes), std::end(kModes), words[1]);
  if (mode == std::end(kModes) || (words[0] != "in" && words[0] != "out")) {
    complaints.push_back(base::Cat("a map is in|out tiled|im2col|im2col::w|im2col::w::128 KEY=NUMBERS…, not ", text));
    return row;
  }
  row.of_out = words[0] == "out";
  row.map.mode = static_cast<TensorMapMode>(mode - std::begin(kModes));
  for (size_t w = 2; w < words.size(); ++w) {
    const size_t equals = words[w].find('=');
    if (equals == std::string_view::npos ||
        !SetMapField(row, words[w].substr(0, equals), Numbers(words[w].substr(equals + 1))))
      complaints.push_back(base::Cat("a map has no ", words[w]));
  }
  return row;
}

}  // namespace laneshift::emulator::rows
