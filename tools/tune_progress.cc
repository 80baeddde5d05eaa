#include "tools/tune_progress.h"

#include <algorithm>

#include "base/text.h"
#include "tools/table.h"

namespace laneshift::tools {
namespace {

using base::Cat;

constexpr std::chrono::milliseconds kRewriteEvery{100}, kLineEvery{1000};
constexpr size_t kMaxProblemWidth = 48;
constexpr int kBarWidth = 16;

std::string Bar(double part) {
  const int full = std::clamp(static_cast<int>(part * kBarWidth), 0, kBarWidth);
  return Cat("[", std::string(static_cast<size_t>(full), '#'), std::string(static_cast<size_t>(kBarWidth - full), '.'),
             "]");
}

}  // namespace

std::string PrintProgress(const autotune::TuneProgress& p, size_t problem, size_t problems, double seconds_left) {
  std::string name = p.problem;
  if (name.size() > kMaxProblemWidth) name = name.substr(0, kMaxProblemWidth - 2) + "..";
  std::string line = Cat(problem + 1, "/", problems, " ", name, ": ", p.trials, "/", p.max_trials, " trials");
  if (p.known > 0) line += Cat(" (", p.known, " known)");
  if (p.best_us) line += Cat(", best ", PrintDuration(*p.best_us / 1000));
  line += Cat(" (model ", PrintDuration(p.predicted_us / 1000));
  if (p.default_us) line += Cat(", default ", PrintDuration(*p.default_us / 1000));
  line += ")";
  if (p.failed > 0) line += Cat(", ", p.failed, " failed");
  if (seconds_left >= 0) line += Cat(", ", PrintFixed(seconds_left, 0), " s left");
  return line;
}

void TuneProgressLine::Show(const autotune::TuneProgress& progress, size_t problem, double max_seconds) {
  const std::lock_guard lock(mutex_);
  const Clock::time_point now = Clock::now();
  if (now - last_ < (terminal_ ? kRewriteEvery : kLineEvery)) return;
  last_ = now;
  // By the trials that were made; by the budget of time where that ends sooner.
  double left = -1;
  if (progress.trials > 0) left = progress.seconds / progress.trials * (progress.max_trials - progress.trials);
  if (max_seconds > 0) {
    const double budget = std::max(0.0, max_seconds - progress.seconds);
    left = left < 0 ? budget : std::min(left, budget);
  }
  std::string line = PrintProgress(progress, problem, problems_, left);
  if (!terminal_) {
    std::fprintf(to_, "%s\n", line.c_str());
    return;
  }
  const double part = progress.max_trials == 0 ? 0 : static_cast<double>(progress.trials) / progress.max_trials;
  line = Cat(Bar(part), " ", line);
  const size_t width = line.size();
  if (width < width_) line.append(width_ - width, ' ');
  std::fprintf(to_, "\r%s", line.c_str());
  std::fflush(to_);
  width_ = width;
}

void TuneProgressLine::Clear() {
  const std::lock_guard lock(mutex_);
  if (width_ == 0) return;
  std::fprintf(to_, "\r%s\r", std::string(width_, ' ').c_str());
  std::fflush(to_);
  width_ = 0;
}

}  // namespace laneshift::tools
