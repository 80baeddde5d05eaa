// Where a lack of host memory becomes an Error: at functions that are called from outside, at threads, and where others
// wait for what one makes. In between std::bad_alloc passes through, so what it passes has to own what it holds.
//
// Thread-safety: pure functions.
#pragma once

#include <new>

#include "laneshift/result.h"

namespace laneshift::base {

// kResourceExhausted. Its text is short enough to need no memory itself.
Error NoHostMemory();

// What `call` returns, a Result; NoHostMemory() where the host gives it no memory.
template <typename Call>
auto WithinHostMemory(const Call& call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return NoHostMemory();
  }
}

}  // namespace laneshift::base
