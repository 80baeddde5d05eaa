// How an exported C function calls its body: with pointers that are there, and so that no exception gets out.
//
// Thread-safety: pure functions.
#pragma once

#include <new>

namespace laneshift::emulator {

// A pointer that the caller has to give.
template <typename Pointer>
struct Needed {
  Pointer pointer;
};
template <typename Pointer>
Needed<Pointer> Need(Pointer pointer) {
  return {pointer};
}

// Calls kBody; what goes wrong before or apart from it is kRefuse(code), where the codes of the driver and of the
// runtime agree.
template <auto kBody, auto kRefuse>
class Entry {
 public:
  template <typename... Arguments>
  auto operator()(const Arguments&... arguments) const noexcept {
    constexpr int kInvalidValue = 1, kOutOfMemory = 2, kUnknown = 999;
    if ((IsMissing(arguments) || ...)) return kRefuse(kInvalidValue);
    try {
      return kBody(Given(arguments)...);
    } catch (const std::bad_alloc&) {
      return kRefuse(kOutOfMemory);
    } catch (...) {
      return kRefuse(kUnknown);
    }
  }

 private:
  template <typename T>
  static bool IsMissing(const T&) {
    return false;
  }
  template <typename Pointer>
  static bool IsMissing(const Needed<Pointer>& needed) {
    return needed.pointer == nullptr;
  }
  template <typename T>
  static const T& Given(const T& argument) {
    return argument;
  }
  template <typename Pointer>
  static Pointer Given(const Needed<Pointer>& needed) {
    return needed.pointer;
  }
};

}  // namespace laneshift::emulator
