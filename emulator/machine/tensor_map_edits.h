// Which tensor maps in global memory a launch has edited, so that a copy which may still see the old one is reported.
//
// An edit becomes visible to the tensormap proxy by a release of the editor (fence.proxy.tensormap::generic.release, or
// tensormap.cp_fenceproxy, which includes it) and an acquire of the user. Thread-safety: all functions may be called
// from any host thread of the launch.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>

namespace laneshift::emulator {

class TensorMapEdits {
 public:
  enum class State : uint8_t { kVisible, kNotReleased, kNotAcquired };

  void NoteEdit(uint64_t address, uint64_t editor, bool released);
  // Releases the edits of `editor`.
  void Release(uint64_t editor);
  // User `user` acquires the released edits from now on.
  void Acquire(uint64_t address, uint64_t user);
  State StateOf(uint64_t address, uint64_t user);

 private:
  struct Edit {
    uint64_t version = 0, editor = 0;
    bool released = false;
    std::map<uint64_t, uint64_t> acquired;  // version by user
  };
  std::atomic<bool> any_{false};
  std::mutex mutex_;
  std::map<uint64_t, Edit> edits_;
};

}  // namespace laneshift::emulator
