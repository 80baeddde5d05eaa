// Pool and Counted: objects that are used again and again, and the pointers that share them.
//
// An object returns to its pool when the last Counted that refers to it is gone, and its next user gets it as if it
// were new, except that its lists keep their memory. Unlike std::shared_ptr: no atomic counters, no control block, and
// an object can make a pointer that refers to itself. Thread-safety: none; a pool and its objects belong to one thread
// at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace laneshift::base {

template <typename T>
class Pool;

// The base of T, which has a function Reset(): as if it were new.
template <typename T>
class Pooled {
 private:
  template <typename>
  friend class Counted;
  friend class Pool<T>;
  uint32_t references_ = 0;
  Pool<T>* pool_ = nullptr;
};

template <typename T>
class Counted {
 public:
  Counted() = default;
  Counted(std::nullptr_t) {}  // NOLINT(google-explicit-constructor): as std::shared_ptr
  explicit Counted(T* object) : object_(object) {
    if (object_ != nullptr) ++object_->references_;
  }
  Counted(const Counted& other) : Counted(other.object_) {}
  Counted(Counted&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Counted& operator=(Counted other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Counted() {
    if (object_ != nullptr && --object_->references_ == 0) object_->pool_->Return(object_);
  }

  explicit operator bool() const { return object_ != nullptr; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  T* get() const { return object_; }
  bool operator==(const Counted&) const = default;

 private:
  T* object_ = nullptr;
};

template <typename T>
class Pool {
 public:
  // It returns here when nobody refers to it any more. REQUIRES: this pool outlives it.
  Counted<T> Take() {
    std::unique_ptr<T> object;
    if (free_.empty()) {
      free_.reserve(kMost);
      object = std::make_unique<T>();
    } else {
      object = std::move(free_.back());
      free_.pop_back();
    }
    object->pool_ = this;
    return Counted<T>(object.release());
  }
  // Exchanges what the two have that nobody uses.
  void Refill(Pool& other) { free_.swap(other.free_); }

 private:
  friend class Counted<T>;
  static constexpr size_t kMost = 256;
  // Nothing is allocated: objects are released where there may be no memory. Apart, so that what ~Counted mostly does
  // is small.
  [[gnu::noinline]] void Return(T* object) {
    std::unique_ptr<T> owned(object);
    owned->Reset();
    if (free_.size() < free_.capacity()) free_.push_back(std::move(owned));
  }
  std::vector<std::unique_ptr<T>> free_;  // Invariant: as new, but their lists have memory
};

}  // namespace laneshift::base
