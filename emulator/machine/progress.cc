// News of a launch that takes long: a loop that counts up to 2^32 repeats no state, so no proof ends it, and its user
// would see nothing until a limit does. Part of Cluster. It only looks: what runs, and in which order, is as without
// it.

#include <algorithm>

#include "base/text.h"
#include "emulator/machine/cluster.h"
#include "emulator/ptx/function_names.h"

namespace laneshift::emulator {

using base::Cat;

void Cluster::BeginToWatch() {
  progress_.emplace();
  progress_->news = news();
}

void Cluster::WatchProgress() {
  Progress& seen = *progress_;
  for (const auto& cta : ctas_) {
    for (const auto& warp : cta->warps) {
      if (seen.warp != nullptr && seen.warp != warp.get()) continue;
      for (const Path& path : warp->paths()) {
        if (path.state != Path::State::kRunnable) continue;
        if (seen.warp == nullptr) {
          seen.warp = warp.get();
          seen.instructions = warp->instructions();
        }
        const int line = warp->LineOf(path.pc);
        seen.first_line = seen.first_line == 0 ? line : std::min(seen.first_line, line);
        seen.last_line = std::max(seen.last_line, line);
      }
    }
  }
  if (++seen.rounds == Progress::kRounds) TellProgress();
}

void Cluster::TellProgress() {
  const Progress& seen = *progress_;
  LimitMeter& meter = *machine().meter;
  std::string text =
      Cat("kernel ", launch_.kernel->name, " still runs after ", static_cast<uint64_t>(meter.Seconds() * 10) / 10.0,
          " s and ", meter.instructions(), " warp instructions");
  if (seen.warp != nullptr && seen.first_line != 0) {
    const SourcePlace place = seen.warp->Here(-1);
    text += Cat(": warp ", place.warp, " of CTA (", place.cta[0], ",", place.cta[1], ",", place.cta[2], ") spins in ",
                seen.first_line == seen.last_line ? Cat("line ", seen.first_line)
                                                  : Cat("lines ", seen.first_line, " to ", seen.last_line));
    text +=
        Cat(news() == seen.news ? ", and its cluster has done nothing that another thread could see, for " : ", after ",
            seen.warp->instructions() - seen.instructions, " more instructions");
  }
  const uint64_t seconds = meter.limits().seconds;
  if (seconds != 0) text += Cat("; the limit seconds=", seconds, " will end it");
  machine().progress(text);
  progress_.reset();
  meter.Told();
}

}  // namespace laneshift::emulator
