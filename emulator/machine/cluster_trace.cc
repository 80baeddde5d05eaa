// What a cluster adds to an event trace.
#include "emulator/machine/cluster.h"

namespace laneshift::emulator {
namespace {

std::string_view NameOfWait(WaitState::Kind kind) {
  switch (kind) {
    case WaitState::Kind::kNone:
      return "its quantum";
    case WaitState::Kind::kMbarrier:
      return "an mbarrier";
    case WaitState::Kind::kNamedBarrier:
      return "a barrier of the CTA";
    case WaitState::Kind::kClusterBarrier:
      return "a barrier of the cluster";
    case WaitState::Kind::kWarpSync:
      return "lanes of the warp";
    case WaitState::Kind::kWarpgroup:
      return "its warpgroup";
    case WaitState::Kind::kTensorAlloc:
      return "Tensor Memory";
    case WaitState::Kind::kTensorPair:
      return "the other CTA of the pair";
    case WaitState::Kind::kGridTrigger:
    case WaitState::Kind::kGrid:
      return "the kernel before";
  }
  __builtin_unreachable();
}

}  // namespace

uint64_t Cluster::Steps() const {
  return steps_ + (running_ != nullptr ? running_->instructions() - steps_of_running_ : 0);
}

bool Cluster::RunTraced(Warp& warp, size_t path, uint64_t quantum, uint64_t& executed) {
  running_ = &warp;
  steps_of_running_ = warp.instructions();
  const bool runs = warp.Run(path, quantum, executed);
  const uint64_t begin = steps_;
  steps_ = Steps();
  running_ = nullptr;
  if (steps_ == begin) return runs;
  const Path& after = warp.paths()[path];
  const bool waits = after.state == Path::State::kBlocked;
  trace_->Add({.kernel = launch_.kernel->name,
               .cta = warp.cta().rank(),
               .warp = static_cast<uint32_t>(warp.index()),
               .begin = begin,
               .end = steps_,
               .what = waits ? NameOfWait(after.wait.kind) : std::string_view()});
  return runs;
}

void Cluster::TraceOperation(const AsyncOp& op) {
  trace_->Add({.kernel = launch_.kernel->name,
               .cta = op.warp->cta().rank(),
               .warp = static_cast<uint32_t>(op.warp->index()),
               .asynchronous = true,
               .begin = op.issued_at,
               .end = Steps(),
               .what = NameOf(op.kind)});
}

}  // namespace laneshift::emulator
