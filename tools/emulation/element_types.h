// Types of array elements in launch files: their size, their name in NumPy files, and how numbers become their bits.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace laneshift::tools {

// A number of a launch file: integers keep all their bits.
struct Value {
  double number = 0;
  uint64_t bits = 0;
  bool is_integer = false;
};

struct LaunchElementType {
  std::string_view name, npy;  // NumPy has no bf16 and no 8-bit floats: their bits are stored as unsigned integers
  uint32_t bytes;
  bool is_float, is_signed;
  void (*store)(const Value& value, uint8_t* to);
  double (*load)(const uint8_t* from);
};

std::span<const LaunchElementType> ElementTypes();
// Whether the type holds the value, rounded if it is a float type.
bool Holds(const LaunchElementType& type, const Value& value);

}  // namespace laneshift::tools
