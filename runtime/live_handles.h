// Which handles of the C interface are open: a call with one that was given back, or with another pointer, is refused
// instead of using what is not there. An address that a later handle got again is that handle.
//
// Thread-safety: all functions. Who gives a handle back while another thread uses it breaks the rule of laneshift/c.h.
#pragma once

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_set>

namespace laneshift::runtime {

template <typename Handle>
class LiveHandles {
 public:
  // Of this process. Never destroyed: programs give handles back while they end.
  static LiveHandles& Get() {
    static auto* const handles = new LiveHandles;
    return *handles;
  }

  bool Has(const Handle* handle) const {
    const std::shared_lock lock(mutex_);
    return handles_.contains(handle);
  }

  Handle* Add(std::unique_ptr<Handle> handle) {
    const std::lock_guard lock(mutex_);
    handles_.insert(handle.get());
    return handle.release();
  }

  // Nothing if it is not open.
  std::unique_ptr<Handle> Remove(Handle* handle) {
    const std::lock_guard lock(mutex_);
    return std::unique_ptr<Handle>(handles_.erase(handle) > 0 ? handle : nullptr);
  }

 private:
  LiveHandles() = default;

  mutable std::shared_mutex mutex_;
  std::unordered_set<const Handle*> handles_;
};

}  // namespace laneshift::runtime
