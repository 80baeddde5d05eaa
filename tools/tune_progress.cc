#include "tools/tune_progress.h"

#include <algorithm>
#include <numeric>

#include "base/text.h"
#include "tools/table.h"
#include "tools/terminal.h"

namespace laneshift::tools {
namespace {

using base::Cat;

constexpr std::chrono::milliseconds kRewriteEvery{100}, kLineEvery{1000};
constexpr size_t kLeastName = 16;
constexpr int kProgressBarWidth = 16;

std::string Bar(double part) {
  const int full = std::clamp(static_cast<int>(part * kProgressBarWidth), 0, kProgressBarWidth);
  return Cat("[", std::string(static_cast<size_t>(full), '#'),
             std::string(static_cast<size_t>(kProgressBarWidth - full), '.'), "] ");
}

// "41 s", "12 min", "3.5 h".
std::string PrintSeconds(double seconds) {
  if (seconds < 120) return Cat(PrintFixed(seconds, 0), " s");
  if (seconds < 7200) return Cat(PrintFixed(seconds / 60, 0), " min");
  return Cat(PrintFixed(seconds / 3600, 1), " h");
}

}  // namespace

double ShareDone(const autotune::TuneProgress& progress, double max_seconds) {
  const double of_trials = progress.max_trials > 0 ? static_cast<double>(progress.trials) / progress.max_trials : 1;
  const double of_time = max_seconds > 0 ? progress.seconds / max_seconds : 0;
  return std::clamp(std::max(of_trials, of_time), 0.0, 1.0);
}

std::string PrintProgress(const autotune::TuneProgress& p, size_t problem, size_t problems,
                          std::optional<double> seconds_left, size_t width) {
  const std::string head = Cat(problem + 1, "/", problems, " ");
  std::string trials = Cat(": ", p.trials, "/", p.max_trials, " trials");
  if (p.known > 0) trials += Cat(" (", p.known, " known)");
  if (p.best_us) trials += Cat(", best ", PrintDuration(*p.best_us / 1000));
  std::string others = Cat(" (model ", PrintDuration(p.predicted_us / 1000));
  if (p.default_us) others += Cat(", default ", PrintDuration(*p.default_us / 1000));
  others += ")";
  std::string end;
  if (p.failed > 0) end += Cat(", ", p.failed, " failed");
  if (seconds_left) end += Cat(", ", PrintSeconds(*seconds_left), " left");
  const size_t fixed = head.size() + trials.size() + end.size();
  if (fixed + others.size() + kLeastName > width) others.clear();
  const size_t room = width - std::min(width, fixed + others.size());
  std::string name = p.problem;
  if (name.size() > room) name = room > 2 ? Cat(name.substr(0, room - 2), "..") : "";
  return Cat(head, name, trials, others, end);
}

std::optional<double> TuneProgressLine::SecondsLeft(double seconds, double part) const {
  const double done = std::accumulate(parts_.begin(), parts_.end(), 0.0);
  if (done <= 0) return std::nullopt;
  const double passed = std::chrono::duration<double>(Clock::now() - began_).count();
  // The problem at hand may take longer than those before it.
  return std::max(passed / done * (static_cast<double>(parts_.size()) - done), seconds * (1 - part));
}

void TuneProgressLine::Show(const autotune::TuneProgress& progress, size_t problem, double max_seconds) {
  const std::lock_guard lock(mutex_);
  double& part = parts_[problem];
  part = std::max(part, ShareDone(progress, max_seconds));
  const size_t terminal = TerminalWidth(to_);
  const bool rewrites = terminal != kUnlimited;
  const Clock::time_point now = Clock::now();
  if (now - last_ < (rewrites ? kRewriteEvery : kLineEvery)) return;
  last_ = now;
  if (!rewrites) {
    std::fprintf(
        to_, "%s\n",
        PrintProgress(progress, problem, parts_.size(), SecondsLeft(progress.seconds, part), kUnlimited).c_str());
    return;
  }
  // The last column stays empty: some terminals begin a new line there.
  const size_t width = terminal - 1;
  const std::string bar = Bar(part);
  const bool has_bar = width >= bar.size() + kUsualWidth - 2;
  std::string line = PrintProgress(progress, problem, parts_.size(), SecondsLeft(progress.seconds, part),
                                   width - (has_bar ? bar.size() : 0));
  if (has_bar) line.insert(0, bar);
  line = line.substr(0, width);
  const size_t used = line.size();
  line.append(std::min(width_, width) - std::min({width_, width, used}), ' ');
  std::fprintf(to_, "\r%s", line.c_str());
  std::fflush(to_);
  width_ = used;
}

void TuneProgressLine::Finish(size_t problem) {
  const std::lock_guard lock(mutex_);
  parts_[problem] = 1;
}

void TuneProgressLine::Clear() {
  const std::lock_guard lock(mutex_);
  if (width_ == 0) return;
  std::fprintf(to_, "\r%s\r", std::string(width_, ' ').c_str());
  std::fflush(to_);
  width_ = 0;
}

}  // namespace laneshift::tools
