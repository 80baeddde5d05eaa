// TuneProgressLine: where a search stands, for people: a line that is rewritten in place on a terminal, else a plain
// line a second.
//
// Thread-safety: all members may be called from any thread.
#pragma once

#include <chrono>
#include <cstdio>
#include <mutex>
#include <string>

#include "autotune/tuner.h"

namespace laneshift::tools {

// "[3/24] gemm m=16 …: 12/64 trials, best 10.4 us (model 11.0, default 12.1 us), 2 failed, 41 s left". `problem` and
// `problems`: which one of how many; `seconds_left` below zero: unknown.
std::string PrintProgress(const autotune::TuneProgress& progress, size_t problem, size_t problems, double seconds_left);

class TuneProgressLine {
 public:
  TuneProgressLine(std::FILE* to, bool terminal, size_t problems) : to_(to), terminal_(terminal), problems_(problems) {}
  ~TuneProgressLine() { Clear(); }

  void Show(const autotune::TuneProgress& progress, size_t problem, double max_seconds);
  // Takes the line away, so that something else can be printed.
  void Clear();

 private:
  using Clock = std::chrono::steady_clock;

  std::FILE* const to_;
  const bool terminal_;
  const size_t problems_;
  std::mutex mutex_;
  size_t width_ = 0;             // of what stands on the terminal
  Clock::time_point last_ = {};  // when a line was printed
};

}  // namespace laneshift::tools
