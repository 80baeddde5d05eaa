#include "emulator/machine/warp.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/text.h"
#include "emulator/decode/async_registers.h"
#include "emulator/decode/calls.h"
#include "emulator/machine/cluster.h"
#include "emulator/ptx/function_names.h"

namespace laneshift::emulator {
namespace {

// Nested divergence needs at most one waiting path per lane and level that is still split; far below this.
constexpr size_t kMaxPaths = 4096;

}  // namespace

Warp::Warp(Cta& cta, int index, uint32_t live, WarpMemory memory)
    : knowledge(
          static_cast<uint16_t>(cta.rank() * ((cta.threads() + kLanes - 1) / kLanes) + static_cast<uint32_t>(index))),
      cta_(cta),
      kernel_(*cta.cluster().launch().kernel),
      index_(index),
      live_(live),
      checks_(cta.cluster().checks()),
      memory_(std::move(memory)),
      stop_(cta.cluster().machine().meter->tripped()) {
  memory_.Prepare(kernel_.register_bytes, kernel_.cleared, kernel_.opcodes.size());
  registers_ = memory_.registers.get();
  owned_ = std::move(memory_.owned);
  unfenced = std::move(memory_.unfenced);
  opcode_counts_ = std::move(memory_.opcode_counts);
  local_bytes_ = kernel_.local_bytes;
  local_.resize(local_bytes_ * kLanes);
  local_top.fill(local_bytes_);
  InitialiseSlots();
  knowledge.LearnEnded(cta.cluster().launch().ended_before);
  paths_.resize(1);
  paths_[0].state = Path::State::kRunnable;
  paths_[0].mask = live;
}

void Warp::InitialiseSlots() {
  for (const SlotInitial& initial : kernel_.initial) {
    std::byte* slot = registers_ + initial.slot;
    if (initial.source == SlotSource::kPredicate) {
      *reinterpret_cast<uint32_t*>(slot) = initial.value != 0 ? kFullMask : 0;
      continue;
    }
    uint64_t value = initial.value;
    if (initial.source == SlotSource::kSharedAddress) value += uint64_t{cta_.rank()} << kRankShift;
    const bool special = initial.source == SlotSource::kSpecial;
    std::array<uint32_t, kLanes> values;
    const bool by_lane = special && SpecialValues(initial.value, values);
    if (special && !by_lane) value = SpecialValue(initial.value);
    const auto fill = [&](auto* words, size_t step) {
      using Word = std::remove_pointer_t<decltype(words)>;
      if (!by_lane && step == 1) return static_cast<void>(std::fill_n(words, kLanes, static_cast<Word>(value)));
      for (size_t lane = 0; lane < kLanes; ++lane)
        words[lane * step] = by_lane ? Word{values[lane]} : static_cast<Word>(value);
    };
    if (initial.bytes == 4) fill(reinterpret_cast<uint32_t*>(slot), 1);
    if (initial.bytes == 8) fill(reinterpret_cast<uint64_t*>(slot), 1);
    if (initial.bytes == 16) fill(reinterpret_cast<uint64_t*>(slot), 2);
  }
}

void OpGroups::Close() {
  closed.push_back(std::move(open));
  open.clear();
}

OpGroups& ThreadGroups::Of(int lane) {
  if (groups_ == nullptr) groups_ = std::make_unique<std::array<std::unique_ptr<OpGroups>, kLanes>>();
  auto& groups = (*groups_)[static_cast<size_t>(lane)];
  if (groups == nullptr) groups = std::make_unique<OpGroups>();
  return *groups;
}

bool Warp::SpecialValues(uint64_t special, std::array<uint32_t, kLanes>& values) const {
  const auto& block = cta_.cluster().launch().shape.block;
  const bool flat = block[1] == 1 && block[2] == 1;
  const auto first = static_cast<uint32_t>(index_ * kLanes);
  const auto each = [&](auto value) {
    for (uint32_t lane = 0; lane < kLanes; ++lane) values[lane] = value(lane);
    return true;
  };
  switch (static_cast<Special>(special)) {
    case Special::kTidX:
      if (flat) return each([&](uint32_t lane) { return first + lane; });
      return each([&](uint32_t lane) { return (first + lane) % block[0]; });
    case Special::kTidY:
      if (flat) return each([](uint32_t) { return 0u; });
      return each([&](uint32_t lane) { return (first + lane) / block[0] % block[1]; });
    case Special::kTidZ:
      if (flat) return each([](uint32_t) { return 0u; });
      return each([&](uint32_t lane) { return (first + lane) / block[0] / block[1]; });
    case Special::kLaneid:
      return each([](uint32_t lane) { return lane; });
    case Special::kLanemaskEq:
      return each([](uint32_t lane) { return 1u << lane; });
    case Special::kLanemaskLe:
      return each([](uint32_t lane) { return 1u << lane | ((1u << lane) - 1); });
    case Special::kLanemaskLt:
      return each([](uint32_t lane) { return (1u << lane) - 1; });
    case Special::kLanemaskGe:
      return each([](uint32_t lane) { return ~((1u << lane) - 1); });
    case Special::kLanemaskGt:
      return each([](uint32_t lane) { return ~(1u << lane | ((1u << lane) - 1)); });
    default:
      return false;
  }
}

uint64_t Warp::SpecialValue(uint64_t special) const {
  const GridShape& shape = cta_.cluster().launch().shape;
  const auto& block = shape.block;
  const auto& cta = cta_.index();
  const auto in_cluster = [&](size_t d) { return cta[d] % shape.cluster[d]; };
  switch (static_cast<Special>(special)) {
    case Special::kNtidX:
      return block[0];
    case Special::kNtidY:
      return block[1];
    case Special::kNtidZ:
      return block[2];
    case Special::kCtaidX:
      return cta[0];
    case Special::kCtaidY:
      return cta[1];
    case Special::kCtaidZ:
      return cta[2];
    case Special::kNctaidX:
      return shape.grid[0];
    case Special::kNctaidY:
      return shape.grid[1];
    case Special::kNctaidZ:
      return shape.grid[2];
    case Special::kWarpid:
      return static_cast<uint64_t>(index_);
    case Special::kNwarpid:
      return 64;
    case Special::kSmid:
      return (cta[0] + shape.grid[0] * (cta[1] + uint64_t{shape.grid[1]} * cta[2])) %
             cta_.cluster().machine().multiprocessors;
    case Special::kNsmid:
      return cta_.cluster().machine().multiprocessors;
    case Special::kGridid:
      return cta_.cluster().launch().serial;
    case Special::kClusteridX:
      return cta[0] / shape.cluster[0];
    case Special::kClusteridY:
      return cta[1] / shape.cluster[1];
    case Special::kClusteridZ:
      return cta[2] / shape.cluster[2];
    case Special::kNclusteridX:
      return shape.grid[0] / shape.cluster[0];
    case Special::kNclusteridY:
      return shape.grid[1] / shape.cluster[1];
    case Special::kNclusteridZ:
      return shape.grid[2] / shape.cluster[2];
    case Special::kClusterCtaidX:
      return in_cluster(0);
    case Special::kClusterCtaidY:
      return in_cluster(1);
    case Special::kClusterCtaidZ:
      return in_cluster(2);
    case Special::kClusterNctaidX:
      return shape.cluster[0];
    case Special::kClusterNctaidY:
      return shape.cluster[1];
    case Special::kClusterNctaidZ:
      return shape.cluster[2];
    case Special::kClusterCtarank:
      return cta_.rank();
    case Special::kClusterNctarank:
      return shape.cluster[0] * shape.cluster[1] * shape.cluster[2];
    case Special::kIsExplicitCluster:
      return shape.explicit_cluster ? 1 : 0;
    case Special::kDynamicSmemSize:
      return shape.dynamic_shared;
    case Special::kTotalSmemSize:
      return kernel_.static_shared_bytes + shape.dynamic_shared;
    case Special::kAggrSmemSize:
      return kernel_.static_shared_bytes + shape.dynamic_shared + kSharedBase;
    case Special::kZero:
      return 0;
    case Special::kTidX:
    case Special::kTidY:
    case Special::kTidZ:
    case Special::kLaneid:
    case Special::kLanemaskEq:
    case Special::kLanemaskLe:
    case Special::kLanemaskLt:
    case Special::kLanemaskGe:
    case Special::kLanemaskGt:
    case Special::kClock:
    case Special::kClockHi:
    case Special::kClock64:
    case Special::kGlobaltimer:
    case Special::kGlobaltimerLo:
    case Special::kGlobaltimerHi:
      break;
  }
  LS_CHECK(false, "a special register that differs by lane, or a clock, which an instruction reads: ", special);
}

bool Warp::GrowLocal(uint64_t bytes) {
  if (bytes <= local_bytes_) return true;
  LimitMeter& meter = *cta_.cluster().machine().meter;
  const uint64_t most = std::max(meter.limits().stack, kernel_.local_bytes);
  if (bytes > most) return false;
  const uint64_t wanted = std::min(std::max(bytes, 2 * local_bytes_), most);
  const uint64_t extra = (wanted - kernel_.local_bytes) * kLanes;
  MemoryCharge charge(meter, extra);
  if (meter.tripped()) return false;
  grown_ = std::move(charge);
  std::vector<uint8_t> grown(wanted * kLanes);
  for (size_t lane = 0; lane < kLanes; ++lane) {
    std::copy_n(local_.data() + lane * local_bytes_, local_bytes_, grown.data() + lane * wanted);
  }
  local_ = std::move(grown);
  local_bytes_ = wanted;
  return true;
}

SourcePlace Warp::Here(int lane) const {
  SourcePlace place;
  place.kernel = kernel_.name;
  place.line = current_ != nullptr ? current_->at.line : 0;
  place.cta = cta_.index();
  place.warp = index_;
  place.lane = lane;
  return place;
}

Outcome Warp::Fault(FaultKind kind, int lane, std::string message) {
  emulator::Fault fault;
  fault.kind = kind;
  fault.place = Here(lane);
  fault.place.kernel = KernelAt(kernel_, fault.place.line);
  fault.message = std::move(message);
  cta_.cluster().SetFault(std::move(fault));
  return Outcome::kFault;
}

void Warp::Report(HazardKind kind, int lane, std::string message) {
  HazardLog* log = cta_.cluster().machine().hazards;
  if (log == nullptr) return;
  SourcePlace place = Here(lane);
  place.kernel = KernelAt(kernel_, place.line);
  log->Add(kind, place, std::move(message));
}

std::string Warp::WhereOthersAre() const {
  for (size_t p = 0; p < paths_.size(); ++p) {
    const Path& other = paths_[p];
    const bool moves = other.state == Path::State::kRunnable || other.state == Path::State::kBlocked;
    if (p != running_ && moves && other.mask != 0)
      return base::Cat("; lane ", std::countr_zero(other.mask),
                       other.wait.kind == WaitState::Kind::kNone ? " is" : " waits", " at line ", LineOf(other.pc));
  }
  return {};
}

int Warp::LineOf(uint32_t pc) const { return kernel_.code[pc].at.line; }

// ---- registers that asynchronous operations own ----

void Warp::OwnRegisters(uint32_t slot, int delta) {
  owned_[slot >> 7] = static_cast<uint16_t>(owned_[slot >> 7] + delta);
  owned_count_ += static_cast<uint64_t>(static_cast<int64_t>(delta));
}

void Warp::OwnMatrices(const Instruction& instruction, int delta) {
  for (size_t operand = 0; operand < 2; ++operand) {
    for (uint32_t e = 0; e < instruction[operand].count; ++e)
      OwnRegisters(instruction[operand].elements[e].slot, delta);
  }
}

void Warp::Apply(const RegisterMove& move) {
  const uint32_t* from = Words(move.from);
  uint32_t* to = Words(move.to);
  for (int lane = 0; lane < kLanes; ++lane) {
    if (move.lanes >> lane & 1) to[lane] = from[lane];
  }
}

OpHandle Warp::LoadInto(uint32_t slot) const {
  for (auto op = tensor_loads.rbegin(); op != tensor_loads.rend(); ++op) {
    for (const auto& [warp, owned] : (*op)->registers) {
      if (owned == slot && (*op)->state != AsyncOp::State::kReleased) return *op;
    }
  }
  return nullptr;
}

bool Warp::FollowMove(const Instruction& instruction, uint32_t mask) {
  if (!instruction.is_move) return false;
  const uint32_t to = instruction[0].slot, from = instruction[1].slot;
  if (to == kNoSlot || from == kNoSlot || !Owned(from) || Owned(to)) return false;
  const OpHandle load = LoadInto(from);
  if (load == nullptr) return false;
  load->registers.emplace_back(this, to);
  OwnRegisters(to, 1);
  load->moves.push_back({from, to, mask});
  return true;
}

bool Warp::CheckOwned(const Instruction& instruction) {
  bool told = false;
  Cluster& cluster = cta_.cluster();
  const auto check = [&](const DecodedOperand& operand, bool is_destination) {
    if (operand.slot == kNoSlot || operand.bytes == 0 || !Owned(operand.slot)) return true;
    const OpHandle load = LoadInto(operand.slot);
    const bool scoreboard = load != nullptr && cluster.machine().policies.load_wait == LoadWait::kScoreboard;
    if (!told && load != nullptr) cluster.NotePolicy(Policy::kLoadWait);
    if (!told && !scoreboard) {
      Report(HazardKind::kPendingRegister, -1,
             base::Cat("'", kernel_.opcodes[instruction.opcode], "' ", is_destination ? "writes" : "reads",
                       " a register whose tcgen05.ld or wgmma has not been waited for"));
    }
    told = true;
    return load == nullptr || cluster.Await(load, *this, live_);
  };
  for (uint32_t i = 0; i < instruction.operand_count; ++i) {
    const DecodedOperand& operand = instruction.operands[i];
    if (operand.count == 0 && !check(operand, operand.is_destination)) return false;
    for (uint32_t e = 0; e < operand.count; ++e) {
      if (!check(operand.elements[e], operand.is_destination)) return false;
    }
  }
  return true;
}

// ---- divergence ----

size_t Warp::NewPath() {
  for (size_t i = 0; i < paths_.size(); ++i) {
    if (paths_[i].state == Path::State::kFree) return paths_[i] = {}, i;
  }
  LS_CHECK(paths_.size() < kMaxPaths, "a warp has ", paths_.size(), " diverged paths");
  paths_.emplace_back();
  return paths_.size() - 1;
}

Outcome Warp::Branch(const Instruction& instruction, uint32_t taken) {
  Path& self = paths_[running_];
  if (taken == self.mask) {
    self.pc = instruction.target;
    return Outcome::kJumped;
  }
  return Split(instruction.target, instruction.reconvergence, taken, self.pc + 1);
}

Outcome Warp::Split(uint32_t target, uint32_t meet, uint32_t taken, uint32_t stay) {
  const Path& self = paths_[running_];
  const uint32_t rest = self.mask & ~taken;
  size_t parent;
  if (meet == self.reconvergence && self.parent >= 0) {
    // The sides reconverge where this path ends: they become siblings, and loops do not nest ever deeper.
    parent = static_cast<size_t>(self.parent);
  } else {
    parent = NewPath();
    Path& waiting = paths_[parent];
    const Path& me = paths_[running_];
    waiting.state = Path::State::kWaitingForParts;
    waiting.pc = meet;
    waiting.reconvergence = me.reconvergence;
    waiting.parent = me.parent;
    waiting.expected = me.mask;
    waiting.frame = me.frame;
  }
  const size_t other = NewPath();
  Path& jump = paths_[other];
  jump.state = Path::State::kRunnable;
  jump.pc = target;
  jump.mask = taken;
  jump.reconvergence = meet;
  jump.parent = static_cast<int>(parent);
  Path& me = paths_[running_];
  jump.frame = me.frame;
  me.pc = stay;
  me.mask = rest;
  me.reconvergence = meet;
  me.parent = static_cast<int>(parent);
  if (paths_[other].pc == meet) Arrive(other);
  return Outcome::kJumped;
}

// Path `index` has reached its reconvergence point.
void Warp::Arrive(size_t index) {
  const auto parent = static_cast<size_t>(paths_[index].parent);
  paths_[parent].mask |= paths_[index].mask;
  paths_[index].state = Path::State::kFree;
  Resume(parent);
}

void Warp::Resume(size_t parent) {
  Path& waiting = paths_[parent];
  if ((waiting.expected & ~waiting.mask) != 0) return;
  if (waiting.mask == 0) {
    waiting.state = Path::State::kFree;
    return;
  }
  waiting.state = Path::State::kRunnable;
  // It may itself be at the point where its own parent waits.
  if (waiting.parent >= 0 && waiting.pc == waiting.reconvergence) Arrive(parent);
}

// Lanes of path `index` exit: no path up the tree waits for them any more.
void Warp::LeaveParent(size_t index, uint32_t lanes) {
  for (int p = paths_[index].parent; p >= 0;) {
    const auto parent = static_cast<size_t>(p);
    p = paths_[parent].parent;
    paths_[parent].expected &= ~lanes;
    if (paths_[parent].state == Path::State::kWaitingForParts) Resume(parent);
  }
}

Outcome Warp::Exit(uint32_t mask) {
  if (checks_) knowledge.Release(mask, live_, cta_.known_at_exit);
  cta_.cluster().LeaveClusterBarrier(*this, mask);
  live_ &= ~mask;
  Path& self = paths_[running_];
  self.mask &= ~mask;
  LeaveParent(running_, mask);
  Path& me = paths_[running_];
  if (me.mask == 0) {
    me.state = Path::State::kFree;
  } else {
    ++me.pc;
  }
  cta_.cluster().NoteExit(cta_);
  return Outcome::kJumped;
}

bool Warp::ReleaseParts() {
  bool released = false;
  for (size_t i = 0; i < paths_.size(); ++i) {
    if (paths_[i].state != Path::State::kWaitingForParts || paths_[i].mask == 0) continue;
    const size_t early = NewPath();
    Path& waiting = paths_[i];
    Path& go = paths_[early];
    go.state = Path::State::kRunnable;
    go.pc = waiting.pc;
    go.mask = waiting.mask;
    go.reconvergence = waiting.reconvergence;
    go.parent = waiting.parent;
    go.frame = waiting.frame;
    waiting.expected &= ~waiting.mask;
    waiting.mask = 0;
    if (go.parent >= 0 && go.pc == go.reconvergence) Arrive(early);
    released = true;
  }
  return released;
}

bool Warp::SyncLanes(uint32_t members, uint32_t& mask) {
  const uint32_t wanted = members & live_;
  if ((wanted & ~mask) == 0) return NoteWait(mask), true;
  Path& self = paths_[running_];
  uint32_t present = mask;
  for (const Path& other : paths_) {
    if (other.state == Path::State::kBlocked && other.wait.kind == WaitState::Kind::kWarpSync &&
        other.wait.object == members && other.pc == self.pc) {
      present |= other.mask;
    }
  }
  if ((wanted & ~present) != 0) {
    // An event for the others, once; one at every poll would keep a deadlocked cluster busy forever.
    if (self.wait.kind != WaitState::Kind::kWarpSync) cta_.cluster().Signal();
    Block(WaitState::Kind::kWarpSync, members);
    return false;
  }
  for (Path& other : paths_) {
    if (&other == &self || other.state != Path::State::kBlocked || other.wait.kind != WaitState::Kind::kWarpSync ||
        other.wait.object != members || other.pc != self.pc) {
      continue;
    }
    other.state = Path::State::kRunnable;
    other.wait = {};
    ++other.pc;
    if (other.parent >= 0 && other.pc == other.reconvergence) Arrive(static_cast<size_t>(&other - paths_.data()));
  }
  mask = present;
  NoteWait(mask);
  DoneWaiting();
  return true;
}

Outcome Warp::Block(WaitState::Kind kind, uint32_t object, uint32_t parity) {
  WaitState& wait = path().wait;
  wait.kind = kind;
  wait.object = object;
  wait.parity = parity;
  return Outcome::kBlocked;
}

bool Warp::Run(size_t index, uint64_t budget, uint64_t& executed) {
  running_ = index;
  const Instruction* code = kernel_.code.data();
  while (budget-- > 0) {
    // Handlers may add paths, so no reference to the path is kept across the call.
    Path& self = paths_[index];
    const Instruction& instruction = code[self.pc];
    current_ = &instruction;
    uint32_t mask = self.mask;
    if (instruction.guard != kNoSlot) {
      const uint32_t guard = *Words(instruction.guard);
      mask &= instruction.guard_negated ? ~guard : guard;
    }
    Outcome outcome = Outcome::kNext;
    if (mask != 0) {
      if (owned_count_ != 0 && instruction.watches_registers && !FollowMove(instruction, mask) &&
          !CheckOwned(instruction)) {
        return false;
      }
      if (instruction.meets_wgmma && checks_)
        ForEachRegister(instruction, [&](uint32_t slot) { unfenced[slot >> 7] = true; });
      outcome = instruction.handler(*this, instruction, mask);
    }
    if (outcome == Outcome::kFault) {
      ++opcode_counts_[instruction.opcode];
      return false;
    }
    if (stop_.load(std::memory_order_relaxed)) {
      LimitMeter& meter = *cta_.cluster().machine().meter;
      return cta_.cluster().EndAtLimit(*this, meter.which()), false;
    }
    Path& after = paths_[index];
    if (outcome == Outcome::kBlocked) {
      after.state = Path::State::kBlocked;
      after.seen_event = cta_.cluster().events();
      return true;
    }
    ++executed;
    ++warp_instructions_;
    // Mostly all lanes or one; counting bits is a call where the compiler may not assume the instruction for it.
    thread_instructions_ += mask == kFullMask          ? uint64_t{kLanes}
                            : (mask & (mask - 1)) == 0 ? uint64_t{mask != 0}
                                                       : static_cast<uint64_t>(std::popcount(mask));
    ++opcode_counts_[instruction.opcode];
    if (outcome == Outcome::kNext) ++after.pc;
    if (after.state != Path::State::kRunnable) return true;
    if (after.parent >= 0 && after.pc == after.reconvergence) {
      Arrive(index);
      return true;
    }
  }
  return true;
}

}  // namespace laneshift::emulator
