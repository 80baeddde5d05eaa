// One warp: its registers, its diverged paths, and its threads' pending operations.
//
// A divergent branch splits a path in two that meet again at the branch's immediate post-dominator. Both sides make
// progress independently: when one blocks, the other runs. A `.sync` instruction whose mask names lanes of several
// paths waits until all of them have arrived. Thread-safety: a warp belongs to the host thread that runs its cluster.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <list>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "base/pool.h"
#include "emulator/decode/decoded_kernel.h"
#include "emulator/hazards/fence_memory.h"
#include "emulator/hazards/report.h"
#include "emulator/hazards/vector_clock.h"
#include "emulator/machine/limits.h"
#include "emulator/machine/warp_memory.h"

namespace laneshift::emulator {

// The state spaces of a fence.proxy.async.
enum class ProxySpace : uint8_t { kShared = 1, kGlobal = 2 };

struct CallFrame;
class Allocation;
class AsyncOp;
class Cta;
using OpHandle = base::Counted<AsyncOp>;

// What a blocked instruction keeps between its executions.
struct WaitState {
  enum class Kind : uint8_t {
    kNone,
    kMbarrier,
    kNamedBarrier,
    kClusterBarrier,
    kWarpSync,
    kWarpgroup,
    kTensorAlloc,
    kTensorPair,
    kGridTrigger,
    kGrid
  } kind = Kind::kNone;
  uint32_t object = 0;      // window offset of an mbarrier, number of a named barrier, lanes of a warp sync
  uint64_t generation = 0;  // of the barrier when this path arrived
  uint32_t parity = 0;
  bool timed_out = false;  // try_wait: give up once
};

struct Path {
  enum class State : uint8_t { kFree, kRunnable, kBlocked, kWaitingForParts } state = State::kFree;
  uint32_t pc = 0;
  uint32_t reconvergence = kNoTarget;
  uint32_t mask = 0;      // kWaitingForParts: the lanes that have arrived
  uint32_t expected = 0;  // kWaitingForParts: the lanes that may still arrive
  int parent = -1;
  uint64_t seen_event = 0;  // the cluster's event count when it blocked
  WaitState wait;
  std::shared_ptr<const CallFrame> frame;  // of the function that it is in; null in the kernel itself
};

// All that determines what a warp does next, except for memory and barriers.
struct WarpState {
  uint32_t live = 0, carry = 0;
  std::array<uint64_t, kLanes> local_top{};
  std::vector<Path> paths;
  std::vector<std::byte> registers;
  std::vector<uint8_t> local;
};

// Operations of one thread that it waits for in groups: bulk copies, cp.async, wgmma. A list, unlike a deque, takes no
// memory while it is empty, as in most warps.
struct OpGroups {
  std::vector<OpHandle> open;
  std::list<std::vector<OpHandle>> closed;
  void Close();
};

// Those of each thread of a warp.
class ThreadGroups {
 public:
  // nullptr: it never had any.
  const OpGroups* Find(int lane) const {
    return groups_ == nullptr ? nullptr : (*groups_)[static_cast<size_t>(lane)].get();
  }
  OpGroups& Of(int lane);

 private:
  std::unique_ptr<std::array<std::unique_ptr<OpGroups>, kLanes>> groups_;
};

// A `mov` of a register that a pending operation will write: compilers put it before the wait.
struct RegisterMove {
  uint32_t from, to, lanes;
};

class Warp {
 public:
  Warp(Cta& cta, int index, uint32_t live, WarpMemory memory);

  // ---- for handlers ----
  Cta& cta() { return cta_; }
  const DecodedKernel& kernel() const { return kernel_; }
  int index() const { return index_; }
  uint32_t live() const { return live_; }
  template <typename T>
  T* At(const DecodedOperand& operand) {
    return reinterpret_cast<T*>(registers_ + operand.slot);
  }
  uint32_t* Words(uint32_t slot) { return reinterpret_cast<uint32_t*>(registers_ + slot); }
  uint32_t Predicate(const DecodedOperand& operand) {
    const uint32_t bits = *At<uint32_t>(operand);
    return operand.negated ? ~bits : bits;
  }
  void SetPredicate(const DecodedOperand& operand, uint32_t mask, uint32_t bits) {
    uint32_t& word = *At<uint32_t>(operand);
    word = (word & ~mask) | (bits & mask);
  }
  // The lower 64 bits of one lane's value.
  uint64_t Value(const DecodedOperand& operand, int lane) {
    if (operand.bytes == 4) return At<uint32_t>(operand)[lane];
    if (operand.bytes == 0) return Predicate(operand) >> lane & 1;
    return operand.bytes == 16 ? At<uint64_t>(operand)[2 * lane] : At<uint64_t>(operand)[lane];
  }
  // The address of a lane's memory operand, before the space is considered.
  uint64_t AddressOf(const DecodedOperand& operand, int lane) {
    return Value(operand, lane) + static_cast<uint64_t>(operand.offset);
  }
  uint8_t* Local(int lane) { return local_.data() + static_cast<size_t>(lane) * local_bytes_; }
  uint64_t local_bytes() const { return local_bytes_; }
  // Makes room for `bytes` of local memory in every lane. False beyond the limit on a thread's stack.
  bool GrowLocal(uint64_t bytes);

  Outcome Fault(FaultKind kind, int lane, std::string message);
  void Report(HazardKind kind, int lane, std::string message);
  SourcePlace Here(int lane) const;
  Position position() const { return current_->at; }

  // Control flow, of the running path.
  Outcome Branch(const Instruction& instruction, uint32_t taken);
  // The lanes in `taken` go to `target`, the rest to `stay`; all reconverge at `meet`. REQUIRES: neither is empty.
  Outcome Split(uint32_t target, uint32_t meet, uint32_t taken, uint32_t stay);
  Outcome Exit(uint32_t mask);
  Path& path() { return paths_[running_]; }
  // Joins all paths of the lanes in `members` at this instruction. True for the path that executes it for all of them,
  // with `mask` widened; it advances the others. False: blocked.
  bool SyncLanes(uint32_t members, uint32_t& mask);
  // For instructions that block: records why, for the report of a deadlock.
  Outcome Block(WaitState::Kind kind, uint32_t object, uint32_t parity = 0);
  void DoneWaiting() { path().wait = {}; }

  // Registers that an asynchronous operation will write (or still reads).
  void OwnRegisters(uint32_t slot, int delta);
  // Of the D of a wgmma, and of its A in registers.
  void OwnMatrices(const Instruction& instruction, int delta);
  void Apply(const RegisterMove& move);
  bool Owned(uint32_t slot) const { return owned_count_ != 0 && owned_[slot >> 7] != 0; }

  // What its lanes know of the rest of the cluster; kept up to date only with hazard checks.
  Knowledge knowledge;
  bool checks() const { return checks_; }
  void Acquire(uint32_t mask, const VectorClock& from) {
    if (!checks_) return;
    knowledge.Acquire(mask, live_, from);
    NoteWait(mask);
  }
  // The lanes have waited for other threads, or read what others may have released.
  void NoteWait(uint32_t mask) {
    for (uint32_t lane = 0; lane < kLanes; ++lane) waits[lane] += mask >> lane & 1;
  }
  std::array<uint32_t, kLanes> waits{};  // how often
  void Release(uint32_t mask, VectorClock& to) {
    if (checks_) knowledge.Release(mask, live_, to);
  }

  // ---- for the scheduler ----
  // Runs path `index` until it blocks, ends, or `budget` instructions are done. False after a fault.
  bool Run(size_t index, uint64_t budget, uint64_t& executed);
  std::vector<Path>& paths() { return paths_; }
  bool done() const { return live_ == 0; }
  // Reuse for another warp. REQUIRES: nothing uses this one any more.
  WarpMemory TakeMemory() {
    memory_.owned = std::move(owned_);
    memory_.unfenced = std::move(unfenced);
    memory_.opcode_counts = std::move(opcode_counts_);
    return std::move(memory_);
  }
  // For the proof of a livelock (livelock.cc).
  void Remember(WarpState& state) const;
  bool IsAt(const WarpState& state) const;
  // Lets lanes that wait at a reconvergence point proceed without the rest. False if there are none.
  bool ReleaseParts();
  uint64_t instructions() const { return warp_instructions_; }
  uint64_t thread_instructions() const { return thread_instructions_; }
  std::vector<uint32_t>& opcode_counts() { return opcode_counts_; }
  int LineOf(uint32_t pc) const;
  // For a message: the positions of the lanes that the running path lacks.
  std::string WhereOthersAre() const;

  // ---- pending operations of its threads; used by the handlers of asynchronous instructions ----
  std::array<uint32_t, kLanes> proxy_fences{};  // executed so far, per lane; starts at 0
  uint64_t before_fence = 0;                    // when its last tcgen05.fence::before_thread_sync was
  // Registers that have been accessed since its last wgmma.fence, by number of 128 bytes; everything before the first.
  std::vector<bool> unfenced;
  bool fenced_wgmma = false;
  VectorClock fenced;  // what it knew at its tcgen05.fence::after_thread_sync
  FenceMemory fences;
  // Its last fence.proxy.async instructions, the newest last: by which lanes, when, and what they knew then.
  std::array<uint32_t, kLanes> global_proxy_fences{};  // those of them that cover global memory
  struct ProxyFenced {
    uint32_t lanes;
    uint8_t spaces;  // of ProxySpace
    Epoch moment;    // lane: unused
    VectorClock knew;
  };
  std::vector<ProxyFenced> proxy_fenced;
  ThreadGroups bulk, copies;  // cp.async.bulk and cp.async
  OpGroups wgmma;
  std::vector<OpHandle> tensor_loads, tensor_stores;
  std::array<uint64_t, kLanes> local_top{};  // of each lane's stack in local memory
  uint32_t carry = 0;                        // the condition-code register's carry bit
  uint64_t cluster_generation = 0;           // of barrier.cluster when this warp last arrived
  uint32_t cluster_arrived = 0;              // its lanes that have arrived in that generation
  uint32_t cluster_unwaited = 0;             // its lanes that have arrived and not waited since
  bool met_cluster = false;                  // it has waited at barrier.cluster
  Allocation* last_allocation = nullptr;     // of the last global access

 private:
  size_t NewPath();
  void Arrive(size_t index);
  void LeaveParent(size_t index, uint32_t lanes);
  void Resume(size_t parent);
  // Reports what the instruction should have waited for. A tcgen05.ld is then waited for, as hardware does by its
  // scoreboard: widely used libraries rely on that. False after a fault.
  bool CheckOwned(const Instruction& instruction);
  // A mov out of a register of a pending tcgen05.ld: the target becomes another register of that load.
  bool FollowMove(const Instruction& instruction, uint32_t mask);
  // The pending tcgen05.ld that will write the register, or nullptr.
  OpHandle LoadInto(uint32_t slot) const;
  void InitialiseSlots();
  // Of a special register that all lanes share.
  uint64_t SpecialValue(uint64_t special) const;
  // Of one that differs by lane; false: it does not.
  bool SpecialValues(uint64_t special, std::array<uint32_t, kLanes>& values) const;

  Cta& cta_;
  const DecodedKernel& kernel_;
  int index_;
  uint32_t live_;
  bool checks_;
  size_t running_ = 0;
  const Instruction* current_ = nullptr;
  WarpMemory memory_;  // without its vectors
  std::byte* registers_ = nullptr;
  std::vector<uint8_t> local_;
  uint64_t local_bytes_ = 0;
  MemoryCharge grown_;  // beyond the kernel's initial size
  const std::atomic<bool>& stop_;
  std::vector<Path> paths_;
  std::vector<uint16_t> owned_;  // per 128 bytes of the register file
  uint64_t owned_count_ = 0;
  uint64_t warp_instructions_ = 0, thread_instructions_ = 0;
  std::vector<uint32_t> opcode_counts_;
};

}  // namespace laneshift::emulator
