// A std::vector whose memory begins with a cache line, so that no vector register of 64 bytes that is loaded from a
// multiple of its size lies in two lines.
//
// Thread-safety: as std::vector.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace laneshift::emulator {

template <typename T>
struct LineAllocator {
  using value_type = T;
  static constexpr std::align_val_t kLine{64};

  LineAllocator() = default;
  template <typename U>
  LineAllocator(const LineAllocator<U>&) {}  // NOLINT(google-explicit-constructor): as std::allocator
  T* allocate(size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), kLine)); }
  void deallocate(T* memory, size_t) { ::operator delete(memory, kLine); }
  bool operator==(const LineAllocator&) const = default;
};

template <typename T>
using LineVector = std::vector<T, LineAllocator<T>>;

}  // namespace laneshift::emulator
