// Descriptor: a file descriptor that closes itself.
//
// Thread-safety: none.
#pragma once

#include <unistd.h>

#include <utility>

namespace laneshift::base {

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { Close(); }
  void Close() {
    if (fd_ >= 0) close(Release());
  }
  // The caller closes it.
  int Release() { return std::exchange(fd_, -1); }
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

 private:
  int fd_;
};

}  // namespace laneshift::base
