// ShortArray: a vector of at most Capacity plain values that lies where it is declared: no allocation.
//
// Thread-safety: values.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <type_traits>

#include "base/check.h"

namespace laneshift::base {

template <typename T, size_t Capacity>
class ShortArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  ShortArray() = default;
  ShortArray(std::initializer_list<T> values) {
    for (const T& value : values) push_back(value);
  }

  // REQUIRES: there is room.
  void push_back(const T& value) {
    LS_CHECK(size_ < Capacity, "more than ", Capacity, " values");
    values_[size_++] = value;
  }
  // REQUIRES: count <= Capacity.
  void assign(size_t count, const T& value) {
    LS_CHECK(count <= Capacity, count, " values are more than ", Capacity);
    std::fill_n(values_.begin(), count, value);
    size_ = count;
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T* data() const { return values_.data(); }
  const T* begin() const { return values_.data(); }
  const T* end() const { return values_.data() + size_; }
  T& operator[](size_t i) { return values_[i]; }
  const T& operator[](size_t i) const { return values_[i]; }

 private:
  std::array<T, Capacity> values_;  // the first size_ of them
  size_t size_ = 0;
};

}  // namespace laneshift::base
