// Spin: a warp that repeats its state, and what it reads meanwhile.
//
// Thread-safety: plain values of the cluster's host thread.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/decode/decoded_kernel.h"

namespace laneshift::emulator {

class Cta;
class Warp;

// Memory that a spinning warp reads.
struct PolledWord {
  StateSpace space = StateSpace::kGlobal;
  uint64_t address = 0;  // shared: the offset in the window of `cta`
  const Cta* cta = nullptr;
  const uint8_t* host = nullptr;
  uint32_t bytes = 0;
  bool operator==(const PolledWord&) const = default;
};

struct Spin {
  static constexpr size_t kMaxWords = 4;  // enough to show what a loop waits for

  Warp* warp = nullptr;
  int first_line = 0, last_line = 0;
  std::vector<PolledWord> words;
  std::vector<uint32_t> barriers;  // window offsets of mbarriers whose phase is not complete

  void Forget() { first_line = 0, words.clear(), barriers.clear(); }
  void NoteLine(int line);
  void Note(const PolledWord& word);
  void NoteBarrier(uint32_t offset);
};

}  // namespace laneshift::emulator
