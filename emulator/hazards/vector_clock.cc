#include "emulator/hazards/vector_clock.h"

#include <algorithm>
#include <bit>

namespace laneshift::emulator {

void AgentClocks::Grow(size_t size) {
  size_ = std::max(size_, size);
  if (size_ > kNear && far_.size() < size_ - kNear) far_.resize(size_ - kNear);
}

void AgentClocks::Raise(size_t agent, uint32_t clock) {
  Grow(agent + 1);
  uint32_t& known = agent < kNear ? near_[agent] : far_[agent - kNear];
  known = std::max(known, clock);
}

void AgentClocks::Join(const AgentClocks& other) {
  Grow(other.size_);
  const size_t near = std::min(other.size_, kNear);
  for (size_t a = 0; a < near; ++a) near_[a] = std::max(near_[a], other.near_[a]);
  for (size_t a = 0; a < other.far_.size(); ++a) far_[a] = std::max(far_[a], other.far_[a]);
}

bool AgentClocks::Covers(const AgentClocks& other) const {
  for (size_t a = 0; a < other.size_; ++a) {
    if (Of(a) < other.Of(a)) return false;
  }
  return true;
}

void AgentClocks::Clear() {
  size_ = 0;
  near_.fill(0);
  far_.clear();
}

bool VectorClock::KnowsLane(const Epoch& moment) const {
  return std::any_of(singles_.begin(), singles_.end(), [&](const Epoch& known) {
    return known.agent == moment.agent && (known.lane == moment.lane || moment.lane == kAnyLane) &&
           known.clock >= moment.clock;
  });
}

void VectorClock::Learn(const Epoch& moment) {
  if (moment.lane == kAllLanes) {
    known_.Raise(moment.agent, moment.clock);
    return;
  }
  if (moment.agent < known_.size() && known_.Of(moment.agent) >= moment.clock) return;
  for (Epoch& known : singles_) {
    if (known.agent != moment.agent || known.lane != moment.lane) continue;
    known.clock = std::max(known.clock, moment.clock);
    return;
  }
  if (singles_.capacity() == 0) singles_.reserve(4);
  singles_.push_back(moment);
}

void VectorClock::Join(const VectorClock& other) {
  known_.Join(other.known_);
  std::erase_if(singles_, [&](const Epoch& s) { return s.agent < known_.size() && known_.Of(s.agent) >= s.clock; });
  for (const Epoch& single : other.singles_) Learn(single);
  ended_ = std::max(ended_, other.ended_);
  JoinForeign(other.foreign_);
}

bool VectorClock::Covers(const VectorClock& other) const {
  return known_.Covers(other.known_) && ended_ >= other.ended_ &&
         (other.foreign_ == nullptr || other.foreign_ == foreign_) &&
         std::all_of(other.singles_.begin(), other.singles_.end(), [this](const Epoch& s) { return Knows(s); });
}

void VectorClock::Clear() {
  known_.Clear();
  singles_.clear();
  foreign_.reset();
  ended_ = 0;
}

namespace {

const ForeignClock* ClockOf(const std::shared_ptr<const ForeignClocks>& clocks, uint32_t cluster) {
  if (clocks == nullptr) return nullptr;
  const auto at = std::lower_bound(clocks->begin(), clocks->end(), cluster,
                                   [](const ForeignClock& clock, uint32_t wanted) { return clock.cluster < wanted; });
  return at == clocks->end() || at->cluster != cluster ? nullptr : &*at;
}

// One of the two, if that knows all that the other one does.
std::shared_ptr<const VectorClock> Joined(const std::shared_ptr<const VectorClock>& a,
                                          const std::shared_ptr<const VectorClock>& b) {
  if (b == nullptr || a == b) return a;
  if (a == nullptr || b->Covers(*a)) return b;
  if (a->Covers(*b)) return a;
  auto both = std::make_shared<VectorClock>(*a);
  both->Join(*b);
  return both;
}

bool Covers(const ForeignClocks& all, const ForeignClocks& part) {
  const auto covers = [](const std::shared_ptr<const VectorClock>& a, const std::shared_ptr<const VectorClock>& b) {
    return b == nullptr || a == b || (a != nullptr && a->Covers(*b));
  };
  auto at = all.begin();
  return std::all_of(part.begin(), part.end(), [&](const ForeignClock& clock) {
    while (at != all.end() && at->cluster < clock.cluster) ++at;
    return at != all.end() && at->cluster == clock.cluster && covers(at->known, clock.known) &&
           covers(at->fenced, clock.fenced);
  });
}

}  // namespace

bool VectorClock::KnowsOf(uint32_t cluster, const Epoch& moment) const {
  if (cluster < ended_) return true;
  const ForeignClock* clock = ClockOf(foreign_, cluster);
  return clock != nullptr && clock->known->Knows(moment);
}

bool VectorClock::FencedOf(uint32_t cluster, const Epoch& moment) const {
  if (cluster < ended_) return true;
  const ForeignClock* clock = ClockOf(foreign_, cluster);
  return clock != nullptr && clock->fenced != nullptr && clock->fenced->Knows(moment);
}

void VectorClock::JoinForeign(const std::shared_ptr<const ForeignClocks>& other) {
  if (other == nullptr || other == foreign_) return;
  if (foreign_ == nullptr || emulator::Covers(*other, *foreign_)) {
    foreign_ = other;
    return;
  }
  if (emulator::Covers(*foreign_, *other)) return;
  auto both = std::make_shared<ForeignClocks>();
  both->reserve(foreign_->size() + other->size());
  auto mine = foreign_->begin();
  for (const ForeignClock& theirs : *other) {
    for (; mine != foreign_->end() && mine->cluster < theirs.cluster; ++mine) both->push_back(*mine);
    if (mine == foreign_->end() || mine->cluster != theirs.cluster) {
      both->push_back(theirs);
      continue;
    }
    both->push_back({theirs.cluster, Joined(mine->known, theirs.known), Joined(mine->fenced, theirs.fenced)});
    ++mine;
  }
  both->insert(both->end(), mine, foreign_->end());
  foreign_ = std::move(both);
}

VectorClock VectorClock::Near() const {
  VectorClock near;
  near.known_ = known_;
  near.singles_ = singles_;
  return near;
}

bool VectorClock::KnowsAnyOf(uint16_t first, uint16_t last) const {
  for (size_t a = first; a < last && a < known_.size(); ++a) {
    if (known_.Of(a) != 0) return true;
  }
  return std::any_of(singles_.begin(), singles_.end(),
                     [&](const Epoch& s) { return s.agent >= first && s.agent < last; });
}

void Knowledge::Acquire(uint32_t mask, uint32_t live, const VectorClock& from) {
  const bool all = (live & ~mask) == 0;
  if (all) view_.Join(from);
  for (uint32_t rest = all ? with_own_ : mask; rest != 0; rest &= rest - 1) {
    auto& own = own_[static_cast<size_t>(std::countr_zero(rest))];
    if (own == nullptr) own = std::make_unique<VectorClock>(view_);
    own->Join(from);
  }
  if (!all) with_own_ |= mask;
}

void Knowledge::Peek(uint32_t mask, VectorClock& to) const {
  to.Join(view_);
  for (uint32_t rest = mask & with_own_; rest != 0; rest &= rest - 1)
    to.Join(*own_[static_cast<size_t>(std::countr_zero(rest))]);
}

void Knowledge::Release(uint32_t mask, uint32_t live, VectorClock& to) {
  Peek(mask, to);
  if ((live & ~mask) == 0) {
    to.Learn(Now(kAllLanes));
  } else {
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) to.Learn(Now(static_cast<uint8_t>(std::countr_zero(rest))));
  }
  ++clock_;
}

void Knowledge::SyncLanes(uint32_t mask, uint32_t live) {
  VectorClock together;
  Release(mask, live, together);
  if ((live & ~mask) == 0) {
    // No lane knows more than the others any longer.
    for (uint32_t rest = with_own_; rest != 0; rest &= rest - 1)
      own_[static_cast<size_t>(std::countr_zero(rest))].reset();
    with_own_ = 0;
  }
  Acquire(mask, live, together);
}

}  // namespace laneshift::emulator
