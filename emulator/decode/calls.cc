#include "emulator/decode/calls.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/text.h"
#include "emulator/decode/binders.h"
#include "emulator/exec/lanes.h"
#include "emulator/machine/cluster.h"

namespace laneshift::emulator {
namespace {

using base::Cat;

constexpr uint64_t kFrameAlign = 16;  // and what a call takes at least: its return address

size_t BytesOf(const CallTarget::Saved& slot) { return slot.bytes == 0 ? 4 : size_t{slot.bytes} * kLanes; }

std::vector<std::byte> Save(Warp& w, const CallTarget& callee) {
  size_t total = 0;
  for (const auto& slot : callee.saved) total += BytesOf(slot);
  std::vector<std::byte> saved(total);
  std::byte* to = saved.data();
  for (const auto& slot : callee.saved) {
    std::memcpy(to, w.Words(slot.slot), BytesOf(slot));
    to += BytesOf(slot);
  }
  return saved;
}

// Only what belongs to the lanes in `mask`: others may be in the same function, at another depth.
void Restore(Warp& w, const CallFrame& frame, uint32_t mask) {
  const std::byte* from = frame.saved.data();
  for (const auto& slot : frame.callee->saved) {
    if (slot.bytes == 0) {
      uint32_t bits;
      std::memcpy(&bits, from, 4);
      uint32_t& word = *w.Words(slot.slot);
      word = (word & ~mask) | (bits & mask);
    } else {
      auto* to = reinterpret_cast<std::byte*>(w.Words(slot.slot));
      ForLanes(mask, [&](int lane) {
        const size_t at = static_cast<size_t>(lane) * slot.bytes;
        std::memcpy(to + at, from + at, slot.bytes);
      });
    }
    from += BytesOf(slot);
  }
}

bool IsActive(const CallFrame* frame, const CallTarget& callee) {
  for (; frame != nullptr; frame = frame->caller.get()) {
    if (frame->callee == &callee) return true;
  }
  return false;
}

// The callee of the first lane, and all lanes that call the same one; nullptr after a fault.
const CallTarget* CalleeOf(Warp& w, const Instruction& i, uint32_t mask, uint32_t& same) {
  const DecodedKernel& kernel = w.kernel();
  same = mask;
  if (i[0].slot == kNoSlot) return &kernel.callees[i.modifiers];
  const int first = std::countr_zero(mask);
  const uint64_t address = w.Value(i[0], first);
  same = 0;
  ForLanes(mask, [&](int lane) { same |= static_cast<uint32_t>(w.Value(i[0], lane) == address) << lane; });
  const auto known = kernel.function_addresses.find(address);
  if (known == kernel.function_addresses.end()) {
    w.Fault(FaultKind::kIllegalInstruction, first, Cat("indirect call of ", address, ", which is no function"));
    return nullptr;
  }
  return &kernel.callees[known->second];
}

bool Fits(Warp& w, const Instruction& i, const CallTarget& callee, int lane) {
  const size_t results = i.target, arguments = i.operand_count - 1 - results;
  if (results == callee.returns.size() && arguments == callee.parameters.size()) return true;
  w.Fault(FaultKind::kIllegalInstruction, lane,
          Cat("'", callee.name, "' returns ", callee.returns.size(), " and takes ", callee.parameters.size(),
              " values, the call has ", results, " and ", arguments));
  return false;
}

// A copy between two places of a lane's own local memory.
bool CopyLocal(Warp& w, int lane, uint64_t to, uint64_t from, uint64_t bytes) {
  const uint64_t size = w.local_bytes();
  if (to > size || bytes > size - to || from > size || bytes > size - from) {
    w.Fault(FaultKind::kIllegalAddress, lane, "a value passed to a function lies outside of local memory");
    return false;
  }
  std::memmove(w.Local(lane) + to, w.Local(lane) + from, bytes);
  return true;
}

uint64_t BytesOfFrame(const CallTarget& callee) { return std::max(callee.frame_bytes, kFrameAlign); }

Outcome OutOfStack(Warp& w, int lane, const std::string& what) {
  const LimitMeter& meter = *w.cta().cluster().machine().meter;
  // Where it is the host's memory that lacks, that is the fault.
  if (meter.tripped()) return w.cta().cluster().EndAtLimit(w, meter.which(), lane);
  return w.Fault(FaultKind::kStackLimit, lane, Cat(what, ": ", DescribeLimit(meter.limits(), FaultKind::kStackLimit)));
}

bool EnterFrame(Warp& w, const Instruction& i, const CallTarget& callee, CallFrame& frame, uint32_t mask) {
  uint64_t highest = 0;
  ForLanes(mask, [&](int lane) {
    const auto l = static_cast<size_t>(lane);
    frame.top[l] = w.local_top[l];
    frame.base[l] = (w.local_top[l] + kFrameAlign - 1) / kFrameAlign * kFrameAlign;
    highest = std::max(highest, frame.base[l] + BytesOfFrame(callee));
  });
  const int first = std::countr_zero(mask);
  if (!w.GrowLocal(highest)) {
    OutOfStack(w, first, Cat("the stack of calls is ", frame.depth, " deep at '", callee.name, "'"));
    return false;
  }
  for (size_t p = 0; p < callee.parameters.size(); ++p) {
    const DecodedOperand& actual = i[1 + i.target + p];
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      const uint64_t to = frame.base[static_cast<size_t>(lane)] + callee.parameters[p].offset;
      if (!CopyLocal(w, lane, to, w.AddressOf(actual, lane), callee.parameters[p].bytes)) return false;
    }
  }
  ForLanes(mask, [&](int lane) {
    const auto l = static_cast<size_t>(lane);
    w.local_top[l] = frame.base[l] + BytesOfFrame(callee);
  });
  return true;
}

void SetFrameAddresses(Warp& w, const CallTarget& callee, const CallFrame& frame, uint32_t mask) {
  for (const auto& address : callee.frame_addresses) {
    ForLanes(mask, [&](int lane) {
      const uint64_t value = frame.base[static_cast<size_t>(lane)] + address.offset;
      if (address.bytes == 4) {
        w.Words(address.slot)[lane] = static_cast<uint32_t>(value);
      } else {
        reinterpret_cast<uint64_t*>(w.Words(address.slot))[lane] = value;
      }
    });
  }
}

}  // namespace

void CallFrame::Count(MemoryLedger& with) {
  ledger = &with;
  counted_bytes = sizeof(CallFrame) + saved.size() + results.size() * sizeof(results[0]);
  ledger->Take(counted_bytes);
}

CallFrame::~CallFrame() {
  if (ledger != nullptr) ledger->Give(counted_bytes);
  // One after the other: a chain of destructors as long as the emulated stack would use up the host's own.
  std::shared_ptr<const CallFrame> next = std::move(caller);
  while (next != nullptr && next.use_count() == 1) next = std::exchange(next->caller, nullptr);
}

Outcome ExecuteCall(Warp& w, const Instruction& i, uint32_t mask) {
  uint32_t lanes;
  const CallTarget* callee = CalleeOf(w, i, mask, lanes);
  if (callee == nullptr) return Outcome::kFault;
  if (lanes != w.path().mask) {
    const uint32_t pc = w.path().pc;
    // Lanes that call elsewhere try again; those whose guard is false are already past the call.
    return w.Split(pc, pc + 1, lanes, (mask & ~lanes) != 0 ? pc : pc + 1);
  }
  const int first = std::countr_zero(mask);
  if (!Fits(w, i, *callee, first)) return Outcome::kFault;
  Path& path = w.path();
  auto frame = std::make_shared<CallFrame>();
  frame->callee = callee;
  frame->return_pc = path.pc + 1;
  frame->reconvergence = path.reconvergence;
  frame->parent = path.parent;
  frame->caller = path.frame;
  frame->depth = path.frame ? path.frame->depth + 1 : 1;
  for (uint32_t r = 0; r < i.target; ++r) {
    auto& addresses = frame->results.emplace_back();
    ForLanes(mask, [&](int lane) { addresses[static_cast<size_t>(lane)] = w.AddressOf(i[1 + r], lane); });
  }
  if (!EnterFrame(w, i, *callee, *frame, mask)) return Outcome::kFault;
  if (IsActive(path.frame.get(), *callee)) frame->saved = Save(w, *callee);
  frame->Count(w.cta().cluster().ledger());
  SetFrameAddresses(w, *callee, *frame, mask);
  path.frame = std::move(frame);
  path.pc = callee->start;
  // The caller's lanes reconverge at none of the callee's instructions.
  path.reconvergence = kNoTarget;
  return Outcome::kJumped;
}

Outcome ExecuteReturn(Warp& w, const Instruction&, uint32_t mask) {
  Path& path = w.path();
  const std::shared_ptr<const CallFrame> frame = path.frame;
  LS_CHECK(frame != nullptr, "a return outside of any call at line ", w.position().line);
  const CallTarget& callee = *frame->callee;
  for (size_t r = 0; r < callee.returns.size(); ++r) {
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      const auto l = static_cast<size_t>(lane);
      if (!CopyLocal(w, lane, frame->results[r][l], frame->base[l] + callee.returns[r].offset, callee.returns[r].bytes))
        return Outcome::kFault;
    }
  }
  ForLanes(mask, [&](int lane) { w.local_top[static_cast<size_t>(lane)] = frame->top[static_cast<size_t>(lane)]; });
  if (!frame->saved.empty()) Restore(w, *frame, mask);
  path.pc = frame->return_pc;
  path.reconvergence = frame->reconvergence;
  path.parent = frame->parent;
  path.frame = frame->caller;
  return Outcome::kJumped;
}

// ---- the stack of a thread ----

namespace {

// alloca: d, size, alignment
Outcome Alloca(Warp& w, const Instruction& i, uint32_t mask) {
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    uint64_t& top = w.local_top[static_cast<size_t>(lane)];
    const uint64_t align = i[2].slot == kNoSlot && i[2].offset == 0 ? 8 : static_cast<uint64_t>(i[2].offset);
    const uint64_t at = (top + align - 1) / align * align, bytes = w.Value(i[1], lane);
    if (at + bytes < at || !w.GrowLocal(at + bytes)) return OutOfStack(w, lane, Cat("alloca of ", bytes, " bytes"));
    top = at + bytes;
    if (i[0].bytes == 4) {
      w.At<uint32_t>(i[0])[lane] = static_cast<uint32_t>(at);
    } else {
      w.At<uint64_t>(i[0])[lane] = at;
    }
  }
  return Outcome::kNext;
}

}  // namespace

Result<Handler> BindAlloca(const Match&, Instruction& i) {
  const int64_t align = i[2].offset;
  if (align != 0 && (align < 1 || align > 4096 || !std::has_single_bit(static_cast<uint64_t>(align))))
    return Wrong(Cat("the alignment ", align, " is no power of two up to 4096"));
  return Handler(Alloca);
}
Result<Handler> BindStacksave(const Match&, Instruction&) {
  return Handler([](Warp& w, const Instruction& i, uint32_t mask) {
    ForLanes(mask, [&](int lane) {
      const uint64_t top = w.local_top[static_cast<size_t>(lane)];
      if (i[0].bytes == 4) {
        w.At<uint32_t>(i[0])[lane] = static_cast<uint32_t>(top);
      } else {
        w.At<uint64_t>(i[0])[lane] = top;
      }
    });
    return Outcome::kNext;
  });
}
Result<Handler> BindStackrestore(const Match&, Instruction&) {
  return Handler([](Warp& w, const Instruction& i, uint32_t mask) -> Outcome {
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      const uint64_t top = w.Value(i[0], lane);
      if (top > w.local_top[static_cast<size_t>(lane)])
        return w.Fault(FaultKind::kIllegalAddress, lane, "stackrestore of a value that stacksave did not give");
      w.local_top[static_cast<size_t>(lane)] = top;
    }
    return Outcome::kNext;
  });
}

}  // namespace laneshift::emulator
