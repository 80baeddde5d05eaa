// Proof of a livelock: warps that run, but return to an earlier state while nothing else has changed.
// Part of Cluster.
//
// What a warp does next depends on its registers, its paths and what it reads. If all of that is the same as at an
// earlier instruction, and nothing that others read or wait for has changed in between, the warp repeats its state
// until another warp acts. When that holds for every warp of a cluster, only another cluster can help; grid.cc decides
// whether one can. A loop that counts its iterations, reads a clock or writes to memory does not repeat its state.

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "emulator/machine/access.h"
#include "emulator/machine/cluster.h"

namespace laneshift::emulator {
namespace {

using base::Cat;

// The window, in instructions of one warp, in which a repetition is searched.
constexpr uint64_t kProbe = 1 << 14;

bool SamePath(const Path& a, const Path& b) {
  return a.state == b.state && a.pc == b.pc && a.reconvergence == b.reconvergence && a.mask == b.mask &&
         a.expected == b.expected && a.parent == b.parent && a.frame == b.frame && a.wait.kind == b.wait.kind &&
         a.wait.object == b.wait.object;
}

template <typename T>
void AddOnce(std::vector<T>& to, const T& value) {
  if (to.size() < Spin::kMaxWords && std::find(to.begin(), to.end(), value) == to.end()) to.push_back(value);
}

}  // namespace

void Spin::NoteLine(int line) {
  first_line = first_line == 0 ? line : std::min(first_line, line);
  last_line = std::max(last_line, line);
}
void Spin::Note(const PolledWord& word) { AddOnce(words, word); }
void Spin::NoteBarrier(uint32_t offset) { AddOnce(barriers, offset); }

bool Warp::IsAt(const WarpState& state) const {
  return live_ == state.live && carry == state.carry && local_top == state.local_top &&
         std::equal(paths_.begin(), paths_.end(), state.paths.begin(), state.paths.end(), SamePath) &&
         std::memcmp(registers_, state.registers.data(), state.registers.size()) == 0 && local_ == state.local;
}

void Warp::Remember(WarpState& state) const {
  state.live = live_;
  state.carry = carry;
  state.local_top = local_top;
  state.paths = paths_;
  state.registers.assign(registers_, registers_ + kernel_.register_bytes);
  state.local = local_;
}

// Brent's cycle detection: the state is compared with one that is saved at intervals of powers of two.
Cluster::Repetition Cluster::FindRepetition(Warp& warp, Spin& spin) {
  spin.warp = &warp;
  const uint64_t news = this->news();
  WarpState remembered;
  warp.Remember(remembered);
  uint64_t since = 0, until_next = 1, executed = 0;
  while (executed < kProbe) {
    const uint64_t before = executed;
    for (size_t p = 0; p < warp.paths().size(); ++p) {
      if (warp.paths()[p].state != Path::State::kRunnable) continue;
      spin.NoteLine(warp.LineOf(warp.paths()[p].pc));
      uint64_t one = 0;
      if (!warp.Run(p, 1, one)) return Repetition::kFault;
      executed += one;
      uncounted_ += one;
    }
    if (this->news() != news) return Repetition::kNone;
    if (executed == before) {  // it is waiting now
      spin.warp = nullptr;
      return Repetition::kFound;
    }
    if (warp.IsAt(remembered)) return Repetition::kFound;
    if (++since == until_next) {
      warp.Remember(remembered);
      spin.Forget();
      since = 0;
      until_next *= 2;
    }
  }
  return Repetition::kNone;
}

Cluster::Repetition Cluster::AllRepeat() {
  spins_.clear();
  for (const auto& cta : ctas_) {
    for (const auto& warp : cta->warps) {
      const bool runs = std::any_of(warp->paths().begin(), warp->paths().end(),
                                    [](const Path& path) { return path.state == Path::State::kRunnable; });
      if (!runs) continue;
      Spin spin;
      watch_ = &spin;
      const Repetition found = FindRepetition(*warp, spin);
      watch_ = nullptr;
      if (found != Repetition::kFound) return found;
      if (spin.warp != nullptr) spins_.push_back(std::move(spin));
    }
  }
  return Repetition::kFound;
}

std::string Cluster::DescribeSpin(const Spin& spin) const {
  std::string text = Cat("repeats lines ", spin.first_line, " to ", spin.last_line);
  const char* joint = ", which read ";
  for (const PolledWord& word : spin.words) {
    uint64_t value = 0;
    std::memcpy(&value, word.host, std::min<size_t>(word.bytes, sizeof value));
    text += word.space == StateSpace::kGlobal
                ? Cat(joint, "global address ", HexAddress(word.address))
                : Cat(joint, "shared offset ", word.address, word.cta == &spin.warp->cta() ? "" : " of another CTA");
    text += Cat(" (", word.bytes, " bytes, ", value, ")");
    joint = " and ";
  }
  for (const uint32_t offset : spin.barriers) {
    const BarrierSlot* const slot = spin.warp->cta().cluster().FindBarrier(spin.warp->cta(), offset);
    if (slot == nullptr) continue;
    text += Cat(joint, "the mbarrier at shared offset ", offset, " (phase ", slot->state.phase(), ", ",
                slot->state.pending(), " of ", slot->state.expected(), " arrivals pending, ", slot->state.bytes(),
                " bytes outstanding)");
    joint = " and ";
  }
  return text;
}

void Cluster::ReportLivelock() {
  Fault fault;
  fault.kind = FaultKind::kLivelock;
  DrawWaits(fault);
  fault.place = fault.waits[0].who;
  fault.message =
      Cat(spins_.size(), spins_.size() == 1 ? " warp repeats itself" : " warps repeat themselves",
          " forever, and nothing that still runs can change what they read; the first one ", fault.waits[0].what);
  SetFault(std::move(fault));
}

}  // namespace laneshift::emulator
