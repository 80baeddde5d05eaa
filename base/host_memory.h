// Where a lack of host memory becomes an Error: at functions that are called from outside, at threads, and where others
// wait for what one makes. In between std::bad_alloc passes through, so what it passes has to own what it holds.
//
// Thread-safety: pure functions.
#pragma once

#include <new>
#include <system_error>

#include "laneshift/result.h"

namespace laneshift::base {

// kResourceExhausted. Their texts are short enough to need no memory themselves.
Error NoHostMemory();
Error NoHostThread();

// What `call` returns, a Result; NoHostMemory() or NoHostThread() where the host gives it no memory or no thread.
template <typename Call>
auto WithinHostMemory(const Call& call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return NoHostMemory();
  } catch (const std::system_error&) {  // of std::thread
    return NoHostThread();
  }
}

}  // namespace laneshift::base
