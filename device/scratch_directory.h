// ScratchDirectory: files for a program of the toolkit to read and write.
//
// Thread-safety: none; each has a separate directory.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "laneshift/result.h"

namespace laneshift::device {

// A private directory that is removed with everything in it.
class ScratchDirectory {
 public:
  static Result<ScratchDirectory> Create();
  ScratchDirectory(ScratchDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ScratchDirectory& operator=(ScratchDirectory&&) = delete;
  ~ScratchDirectory();
  std::string File(const char* name) const { return path_ / name; }

 private:
  explicit ScratchDirectory(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace laneshift::device
