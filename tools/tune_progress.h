// TuneProgressLine: the progress of a search, for people: a line that is rewritten in place on a terminal, otherwise
// one plain line per second.
//
// Thread-safety: all members may be called from any thread.
#pragma once

#include <chrono>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "autotune/tuner.h"

namespace laneshift::tools {

// The fraction of a problem's search that is done, 0 to 1: by trials, or by the time budget if that ends sooner. 0: no
// time budget.
double ShareDone(const autotune::TuneProgress& progress, double max_seconds);

// "3/24 gemm m=16 …: 12/64 trials, best 10.4 us (model 11.0 us, default 12.1 us), 2 failed, 41 s left" in at most
// `width` characters: the problem's name is shortened first, then the text in brackets is omitted. `problem` and
// `problems`: index and count; `seconds_left` is that of all of them.
std::string PrintProgress(const autotune::TuneProgress& progress, size_t problem, size_t problems,
                          std::optional<double> seconds_left, size_t width);

class TuneProgressLine {
 public:
  TuneProgressLine(std::FILE* to, size_t problems) : to_(to), parts_(problems, 0.0) {}
  ~TuneProgressLine() { Clear(); }

  void Show(const autotune::TuneProgress& progress, size_t problem, double max_seconds);
  // A problem is done.
  void Finish(size_t problem);
  // Takes the line away, so that something else can be printed.
  void Clear();

 private:
  using Clock = std::chrono::steady_clock;

  // Of all problems; the one at hand has taken so long for its part.
  std::optional<double> SecondsLeft(double seconds, double part) const;

  std::FILE* const to_;
  const Clock::time_point began_ = Clock::now();
  std::mutex mutex_;
  std::vector<double> parts_;    // the fraction of each problem that is done
  size_t width_ = 0;             // of the text on the terminal
  Clock::time_point last_ = {};  // when a line was printed
};

}  // namespace laneshift::tools
